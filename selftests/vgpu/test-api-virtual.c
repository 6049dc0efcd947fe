// SPDX-License-Identifier: LGPL-2.1-or-later
/* The driver API of vgpu: virtual memory management */
#include <unistd.h>
#include "test-api.h"

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static CUmemAccessDesc all = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
			       CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

/* out[i] = in[i] + v, a warp */
static bool add(CUdeviceptr out, CUdeviceptr in, uint32_t v)
{
	OK(run(k_add, 1, 32, NULL, (void *[]){ &out, &in, &v }));
	OK(cuCtxSynchronize());
	return true;
}

static bool mapping(void)
{
	CUmemGenericAllocationHandle a, b, again;
	size_t g, left, after, total;
	CUmemAllocationProp got;
	unsigned long long flags;
	CUdeviceptr at, base;
	uint32_t word = 0;

	OK(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	OK(cuMemGetInfo(&left, &total));
	OK(cuMemAddressReserve(&at, 4 * g, 0, 0, 0));
	OK(cuMemGetInfo(&after, &total));
	CHECK(at % g == 0 && after == left);
	IS(INVALID_VALUE, cuMemsetD32(at, 1, 32));
	OK(cuMemCreate(&a, g, &prop, 0));
	OK(cuMemCreate(&b, 2 * g, &prop, 0));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == left - 3 * g);
	OK(cuMemMap(at, g, 0, a, 0));
	IS(INVALID_VALUE, cuMemMap(at, g, 0, b, 0));
	IS(INVALID_VALUE, cuMemMap(at + g, g, 2 * g, b, 0));
	OK(cuMemMap(at + g, g, g, b, 0));
	OK(cuMemMap(at + 2 * g, 2 * g, 0, b, 0));
	IS(INVALID_VALUE, cuMemsetD32(at, 1, 32));
	OK(cuMemSetAccess(at, 4 * g, &all, 1));
	OK(cuMemGetAccess(&flags, &all.location, at + 3 * g));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* across two mappings, and the same memory at two addresses */
	OK(cuMemsetD32(at, 5, 2 * g / 4));
	CHECK(add(at, at + 3 * g, 1));
	OK(cuMemcpyDtoH(&word, at + 124, 4));
	CHECK(word == 6);
	OK(cuMemGetAddressRange(&base, &after, at + g + 4));
	CHECK(base == at + g && after == g);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 4)));
	CHECK(again == a);
	OK(cuMemGetAllocationPropertiesFromHandle(&got, a));
	CHECK(!memcmp(&got, &prop, sizeof(got)));
	OK(cuMemRelease(a));
	OK(cuMemRelease(again));
	IS(INVALID_VALUE, cuMemRelease(a));
	OK(cuMemRelease(b));
	IS(INVALID_VALUE, cuMemFree(at));
	IS(INVALID_VALUE, cuMemFreeAsync(at, NULL));
	IS(INVALID_VALUE, cuMemAddressFree(at, 4 * g));
	IS(INVALID_VALUE, cuMemUnmap(at + 2 * g, g));
	OK(cuMemUnmap(at, 2 * g));
	IS(INVALID_VALUE, cuMemUnmap(at, 2 * g));
	OK(cuMemcpyDtoH(&word, at + 3 * g, 4));
	CHECK(word == 5);
	OK(cuMemUnmap(at + 2 * g, 2 * g));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == left);
	OK(cuMemAddressFree(at, 4 * g));
	IS(INVALID_VALUE, cuMemAddressFree(at, 4 * g));
	return true;
}

static bool sharing(void)
{
	CUmemGenericAllocationHandle a, b;
	const size_t g = (size_t)2 << 20;
	uint32_t word = 0;
	CUdeviceptr at;
	int fd = -1;

	OK(cuMemAddressReserve(&at, 2 * g, 4 * g, 0, 0));
	CHECK(at % (4 * g) == 0);
	OK(cuMemCreate(&a, g, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&b, (void *)(uintptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	OK(cuMemMap(at, g, 0, a, 0));
	OK(cuMemMap(at + g, g, 0, b, 0));
	OK(cuMemSetAccess(at, 2 * g, &all, 1));
	OK(cuMemsetD32(at, 11, 64));
	CHECK(add(at, at + g, 1));
	OK(cuMemcpyDtoH(&word, at + g, 4));
	CHECK(word == 12);
	OK(cuMemUnmap(at, 2 * g));
	OK(cuMemRelease(a));
	OK(cuMemRelease(b));
	OK(cuMemAddressFree(at, 2 * g));
	return true;
}

static bool wrong(void)
{
	CUmemAllocationProp p = prop;
	CUmemGenericAllocationHandle a;
	CUmemAccessDesc d = all;
	const size_t g = (size_t)2 << 20;
	CUdeviceptr at;

	IS(INVALID_VALUE, cuMemAddressReserve(&at, 4096, 0, 0, 0));
	IS(INVALID_VALUE, cuMemCreate(&a, 4096, &prop, 0));
	IS(OUT_OF_MEMORY, cuMemCreate(&a, (size_t)1 << 40, &prop, 0));
	p.location.id = 99;
	IS(INVALID_DEVICE, cuMemCreate(&a, g, &p, 0));
	p = prop;
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	IS(NOT_SUPPORTED, cuMemCreate(&a, g, &p, 0));
	OK(cuMemAddressReserve(&at, g, 0, 0, 0));
	IS(INVALID_VALUE, cuMemMap(at, g, 0, 12345, 0));
	IS(INVALID_VALUE, cuMemSetAccess(at, g, &all, 1));
	OK(cuMemCreate(&a, g, &prop, 0));
	IS(INVALID_VALUE, cuMemMap(at + g, g, 0, a, 0));
	OK(cuMemMap(at, g, 0, a, 0));
	d.location.type = CU_MEM_LOCATION_TYPE_HOST;
	IS(NOT_SUPPORTED, cuMemSetAccess(at, g, &d, 1));
	d = all;
	d.flags = 2;
	IS(INVALID_VALUE, cuMemSetAccess(at, g, &d, 1));
	OK(cuMemUnmap(at, g));
	OK(cuMemRelease(a));
	OK(cuMemAddressFree(at, g));
	return true;
}

void virtual_tests(void)
{
	ok(mapping(), "virtual memory: ranges, memory, mappings, access");
	ok(sharing(), "virtual memory: by a descriptor");
	ok(wrong(), "virtual memory: wrong arguments");
}
