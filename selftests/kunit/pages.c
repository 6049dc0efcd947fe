// SPDX-License-Identifier: GPL-2.0-only
/* A client's pages, in whatever size the kernel has, and which mappings of them are refused. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "compat.h"
#include "kunit.h"

static void pages_are_whole_and_apart(struct kunit *test)
{
	struct gsched_attach req = {};

	gsched_pages_offsets(&req);
	KUNIT_EXPECT_EQ(test, gsched_pages_bytes() % PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, gsched_pages_bytes(),
			PAGE_ALIGN(req.arb_size) + PAGE_ALIGN(req.cl_size));
	KUNIT_EXPECT_EQ(test, req.arb_offset % PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, req.cl_offset % PAGE_SIZE, 0);
	KUNIT_EXPECT_LE(test, req.arb_offset + PAGE_ALIGN(req.arb_size), req.cl_offset);
}

/* vm_insert_page() and pins count each page by itself; what a mapping shows beside is zero */
static void check_pages(struct kunit *test, const void *at, size_t size)
{
	size_t pos;

	for (pos = 0; pos < PAGE_ALIGN(size); pos += PAGE_SIZE) {
		struct page *page = virt_to_page(at + pos);

		KUNIT_EXPECT_FALSE(test, PageCompound(page));
		KUNIT_EXPECT_EQ(test, page_count(page), 1);
		KUNIT_EXPECT_PTR_EQ(test, memchr_inv(at + pos, 0, PAGE_SIZE), NULL);
	}
}

static void pages_are_single_and_zero(struct kunit *test)
{
	struct gsched_client *client = gsched_kunit_client(test);

	KUNIT_EXPECT_EQ(test, gsched_pages_alloc(client), 0);
	if (client->arb && client->cl) {
		check_pages(test, client->arb, sizeof(*client->arb));
		check_pages(test, client->cl, sizeof(*client->cl));
	}
	gsched_kunit_close(client);
}

static void pinned_page_outlives_its_client(struct kunit *test)
{
	struct gsched_client *client = gsched_kunit_client(test);
	struct gsched_arb_slot *slot;
	struct page *page;

	KUNIT_EXPECT_EQ(test, gsched_pages_alloc(client), 0);
	slot = client->arb ? &client->arb->slot[0] : NULL;
	if (slot) {
		WRITE_ONCE(slot->window, 77);
		page = virt_to_page(slot);
		get_page(page);
	}
	gsched_kunit_close(client);
	if (!slot)
		return;
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(slot->window), 77);
	put_page(page);
}

static int map(struct gsched_client *client, u64 offset, size_t size, unsigned long flags)
{
	struct vm_area_struct vma = {
		.vm_start = PAGE_SIZE,
		.vm_end = PAGE_SIZE + size,
		.vm_pgoff = offset >> PAGE_SHIFT,
	};
	unsigned long before = VM_READ | flags;
	int ret;

	gsched_vm_flags_set(&vma, before);
	ret = gsched_pages_mmap(client, &vma);
	/* what is refused is left as it was */
	return vma.vm_flags == before ? ret : -EUCLEAN;
}

static void wrong_mappings_are_refused(struct kunit *test)
{
	struct gsched_client *client = gsched_kunit_client(test);
	const unsigned long shared = VM_SHARED | VM_MAYSHARE;
	struct gsched_attach req = {};
	size_t arb, cl;

	gsched_pages_offsets(&req);
	arb = PAGE_ALIGN(req.arb_size);
	cl = PAGE_ALIGN(req.cl_size);
	KUNIT_EXPECT_EQ(test, gsched_pages_alloc(client), 0);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset, 0, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset, arb - PAGE_SIZE, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset, arb + PAGE_SIZE, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset, arb, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset, arb, shared | VM_WRITE), -EACCES);
	KUNIT_EXPECT_EQ(test, map(client, req.arb_offset + PAGE_SIZE, arb, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.cl_offset, cl - PAGE_SIZE, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.cl_offset, cl + PAGE_SIZE, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.cl_offset, cl, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.cl_offset - PAGE_SIZE, cl, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, req.cl_offset + PAGE_SIZE, cl, shared), -EINVAL);
	KUNIT_EXPECT_EQ(test, map(client, U64_MAX, cl, shared), -EINVAL);
	gsched_kunit_close(client);
}

static void flags_of_an_area(struct kunit *test)
{
	struct vm_area_struct vma = {};

	gsched_vm_flags_set(&vma, VM_READ | VM_MAYWRITE);
	gsched_vm_flags_set(&vma, VM_DONTCOPY);
	KUNIT_EXPECT_EQ(test, vma.vm_flags, VM_READ | VM_MAYWRITE | VM_DONTCOPY);
	gsched_vm_flags_clear(&vma, VM_MAYWRITE | VM_DONTEXPAND);
	KUNIT_EXPECT_EQ(test, vma.vm_flags, VM_READ | VM_DONTCOPY);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(pages_are_whole_and_apart),
	KUNIT_CASE(pages_are_single_and_zero),
	KUNIT_CASE(pinned_page_outlives_its_client),
	KUNIT_CASE(wrong_mappings_are_refused),
	KUNIT_CASE(flags_of_an_area),
	{}
};

static struct kunit_suite suite = {
	.name = "gsched-pages",
	.test_cases = cases,
};

kunit_test_suite(suite);
