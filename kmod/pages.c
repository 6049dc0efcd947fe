// SPDX-License-Identifier: GPL-2.0-only
/*
 * The two mappings of a client. Ordinary pages, each with a reference count of its own, inserted
 * one by one: drivers pin them for long (FOLL_LONGTERM), which a PFN map would not allow, and a pin
 * that outlives the file keeps its page.
 *
 * A mapping has as many whole pages as its structure needs, of 4 KiB two or three; what is behind
 * the structure is zero. Where a page is larger than that (16 and 64 KiB, on arm64) it has one.
 */
#include <linux/build_bug.h>
#include <linux/gfp.h>
#include <linux/mm.h>

#include "compat.h"
#include "internal.h"

#define ARB_OFFSET	0UL
#define CL_OFFSET	BIT(20)
#define ARB_LENGTH	PAGE_ALIGN(sizeof(struct gsched_arb_page))
#define CL_LENGTH	PAGE_ALIGN(sizeof(struct gsched_cl_page))

static_assert(sizeof(struct gsched_arb_header) == 4096);
static_assert(offsetof(struct gsched_arb_header, flags) == 20);
static_assert(offsetof(struct gsched_arb_header, slice_us) == 24);
static_assert(offsetof(struct gsched_arb_header, bands) == 28);
static_assert(offsetof(struct gsched_arb_header, share) == 32);
static_assert(offsetof(struct gsched_arb_header, in_flight_us) == 36);
static_assert(sizeof(struct gsched_arb_slot) == 64);
static_assert(sizeof(struct gsched_arb_page) == 8192);
static_assert(offsetof(struct gsched_arb_slot, window) == 0);
static_assert(sizeof(struct gsched_cl_header) == 4096);
static_assert(offsetof(struct gsched_cl_header, leased_usage) == 320);
static_assert(offsetof(struct gsched_cl_header, slice_us) == 328);
static_assert(offsetof(struct gsched_cl_header, slice_error) == 332);
static_assert(offsetof(struct gsched_cl_header, activity) == 336);
static_assert(offsetof(struct gsched_cl_header, passed) == 344);
static_assert(offsetof(struct gsched_cl_header, held_ns) == 352);
static_assert(offsetof(struct gsched_cl_header, paced_ns) == 360);
static_assert(sizeof(struct gsched_cl_slot) == 128);
static_assert(offsetof(struct gsched_cl_page, slot) % 128 == 0);
static_assert(sizeof(struct gsched_cl_page) == 4096 + GSCHED_SLOTS * 128);
static_assert(offsetof(struct gsched_cl_slot, blocks) == 16);
static_assert(offsetof(struct gsched_cl_slot, launch_ns) == 48);
/* the GPU's line begins */
static_assert(offsetof(struct gsched_cl_slot, start_ns) == 64);
static_assert(offsetof(struct gsched_cl_slot, retired) == 80);
static_assert(offsetof(struct gsched_cl_slot, seen_limit) == 92);
static_assert(IS_ALIGNED(CL_OFFSET, PAGE_SIZE) && ARB_OFFSET + ARB_LENGTH <= CL_OFFSET);

/* Memory of a client's pages */
size_t gsched_pages_bytes(void)
{
	return ARB_LENGTH + CL_LENGTH;
}

int gsched_pages_alloc(struct gsched_client *client)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO;

	client->arb = alloc_pages_exact(ARB_LENGTH, gfp);
	client->cl = alloc_pages_exact(CL_LENGTH, gfp);
	if (!client->arb || !client->cl) {
		gsched_pages_free(client);
		return -ENOMEM;
	}
	return 0;
}

void gsched_pages_free(struct gsched_client *client)
{
	if (client->arb)
		free_pages_exact(client->arb, ARB_LENGTH);
	if (client->cl)
		free_pages_exact(client->cl, CL_LENGTH);
	client->arb = NULL;
	client->cl = NULL;
}

void gsched_pages_offsets(struct gsched_attach *req)
{
	req->arb_offset = ARB_OFFSET;
	req->arb_size = sizeof(struct gsched_arb_page);
	req->cl_offset = CL_OFFSET;
	req->cl_size = sizeof(struct gsched_cl_page);
}

static int insert(struct vm_area_struct *vma, void *addr, size_t size)
{
	unsigned long pos;
	int ret = 0;

	for (pos = 0; !ret && pos < size; pos += PAGE_SIZE)
		ret = vm_insert_page(vma, vma->vm_start + pos, virt_to_page(addr + pos));
	return ret;
}

/*
 * EINVAL unknown offset, wrong length, or a private mapping; EACCES writable where only the arbiter
 * writes
 */
int gsched_pages_mmap(struct gsched_client *client, struct vm_area_struct *vma)
{
	size_t size = vma->vm_end - vma->vm_start;
	bool arb;

	switch (vma->vm_pgoff) {
	case ARB_OFFSET >> PAGE_SHIFT:
		arb = true;
		break;
	case CL_OFFSET >> PAGE_SHIFT:
		arb = false;
		break;
	default:
		return -EINVAL;
	}
	if (size != (arb ? ARB_LENGTH : CL_LENGTH))
		return -EINVAL;
	/*
	 * also for read-only mappings: a private one turns into a copy that the GPU would poll in
	 * vain
	 */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	/* The pages belong to one process: a child must not inherit them */
	if (!arb) {
		gsched_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
		return insert(vma, client->cl, size);
	}
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	gsched_vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	gsched_vm_flags_clear(vma, VM_MAYWRITE);
	return insert(vma, client->arb, size);
}
