// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: devices. The machine has $VGPU_DEVICES of them (shm.h); a process sees those of
 * $CUDA_VISIBLE_DEVICES, in that order: indices on the machine, or the beginnings of UUIDs with
 * their "GPU-". As with CUDA the first entry that names none ends the list, and a device that
 * stands there twice leaves none. Without $VGPU_DEVICES it is not looked at, as on a machine with
 * GPUs it is about those. The machine's own order is the PCI bus's backwards, so that
 * CUDA_DEVICE_ORDER=PCI_BUS_ID matters. VGPU_MIG=1: each is a MIG device, with a UUID of its own
 * beside its GPU's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

/* The same for every process on the device, another for every name of a device */
void vg_uuid(unsigned int index, unsigned char uuid[16])
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	char name[256];

	for (const char *s = vg_shm_name(index, name, sizeof(name)); *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
	memcpy(uuid, "vgpu-sim", 8);
	memcpy(uuid + 8, &hash, 8);
}

void vg_uuid_text(unsigned int index, char text[41])
{
	unsigned char u[16];

	vg_uuid(index, u);
	snprintf(text, 41,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
}

static unsigned int ordered(unsigned int i, unsigned int count)
{
	const char *order = getenv("VGPU_DEVICES") ? getenv("CUDA_DEVICE_ORDER") : NULL;

	return order && !strcmp(order, "PCI_BUS_ID") ? count - 1 - i : i;
}

/* The device that @s names, -1 none or more than one */
static int named(const char *s, size_t n, unsigned int count)
{
	char word[64], text[41], *end;
	unsigned long index;
	int found = -1;

	if (!n || n >= sizeof(word))
		return -1;
	memcpy(word, s, n);
	word[n] = '\0';
	if (strncmp(word, "GPU-", 4)) {
		index = strtoul(word, &end, 10);
		return *word == '-' || *end || index >= count ? -1 : (int)ordered(index, count);
	}
	for (unsigned int i = 0; i < count; i++) {
		vg_uuid_text(i, text);
		if (strncasecmp(text, word, n))
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

static unsigned int visible(unsigned int count, unsigned int *list)
{
	const char *s = getenv("VGPU_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
	unsigned int n = 0;

	for (; !s && n < count; n++)
		list[n] = ordered(n, count);
	while (s && n < count) {
		size_t len = strcspn(s, ",");
		int index = named(s, len, count);

		if (index < 0)
			break;
		for (unsigned int i = 0; i < n; i++)
			if (list[i] == (unsigned int)index)
				return 0;
		list[n++] = (unsigned int)index;
		s = s[len] ? s + len + 1 : NULL;
	}
	return n;
}

bool vg_devices_init(void)
{
	unsigned int count, n, list[VG_GPUS_MAX];
	struct vg_config config;
	char err[512], name[256];

	if (!vg_config_from_env(&config, err, sizeof(err)) ||
	    !vg_devices_from_env(&count, VG_GPUS_MAX, err, sizeof(err))) {
		vg_say("%s", err);
		return false;
	}
	n = visible(count, list);
	if (!n)
		vg_say("$CUDA_VISIBLE_DEVICES is \"%s\": this process sees no device",
		       getenv("CUDA_VISIBLE_DEVICES"));
	for (unsigned int i = 0; i < n; i++) {
		struct vg_gpu *g = &vg.gpu[i];

		*g = (struct vg_gpu){ .number = i, .index = list[i], .proc = VG_NOBODY };
		g->device = vg_shm_map(vg_shm_name(g->index, name, sizeof(name)), &config, err,
				       sizeof(err));
		if (!g->device) {
			vg_say("%s", err);
			while (i--)
				vg_shm_unmap(vg.gpu[i].device);
			return false;
		}
		g->config = g->device->config;
	}
	vg.n_gpus = n;
	return n;
}

struct vg_gpu *vg_gpu_at(unsigned int index)
{
	for (unsigned int i = 0; i < vg.n_gpus; i++)
		if (vg.gpu[i].index == index)
			return &vg.gpu[i];
	return NULL;
}

CUresult vg_check_device(const void *out, CUdevice dev)
{
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = vg_enter_device();
	if (r)
		return r;
	return vg_leave(dev < 0 || (unsigned int)dev >= vg.n_gpus ? CUDA_ERROR_INVALID_DEVICE :
			CUDA_SUCCESS);
}

CUDADRV_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult r = vg_check_device(device, ordinal);

	if (!r)
		*device = ordinal;
	return r;
}

CUDADRV_API CUresult cuDeviceGetCount(int *count)
{
	CUresult r = vg_check_device(count, 0);

	if (!r)
		*count = (int)vg.n_gpus;
	return r;
}

CUDADRV_API CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult r = vg_check_device(name, dev);

	if (!r && len < 1)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		snprintf(name, (size_t)len, "gsched vgpu (simulated)");
	return r;
}

CUDADRV_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	CUresult r = vg_check_device(uuid, dev);

	if (!r)
		vg_uuid(vg.gpu[dev].index, (unsigned char *)uuid->bytes);
	return r;
}

CUDADRV_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult r = cuDeviceGetUuid(uuid, dev);
	const char *mig = getenv("VGPU_MIG");

	if (!r && mig && !strcmp(mig, "1"))
		uuid->bytes[0] ^= 0x40;
	return r;
}

CUDADRV_API CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice dev)
{
	return CUDA_ERROR_NOT_SUPPORTED;	/* as on every system but Windows */
}

CUDADRV_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult r = vg_check_device(bytes, dev);

	if (!r)
		*bytes = vg.gpu[dev].config.mem;
	return r;
}

static int max_block(CUdevice dev)
{
	return vg.gpu[dev].config.sm_threads < 1024 ? (int)vg.gpu[dev].config.sm_threads : 1024;
}

#define BUS_ID "0000:FF:00.0"

static unsigned int bus(const struct vg_gpu *gpu)
{
	return 0xff - gpu->index;
}

CUDADRV_API CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	static const struct { CUdevice_attribute attrib; int value; } fixed[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
		{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, VG_STATIC_DYNAMIC_SHARED },
		{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff },
		{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
		{ CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
		{ CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512 },
		{ CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000 },
		{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64 },
		{ CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20 },
		{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
		{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
		{ CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
		{ CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1 },
		{ CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2 },
		{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
		{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
	};
	CUresult r = vg_check_device(pi, dev);

	if (r)
		return r;
	switch ((int)attrib) {
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*pi = (int)bus(&vg.gpu[dev]);
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		*pi = max_block(dev);
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*pi = (int)vg.gpu[dev].config.sms;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*pi = (int)vg.gpu[dev].config.sm_threads;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*pi = (int)vg.gpu[dev].config.sm_blocks;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*pi = (int)vg.gpu[dev].config.sm_regs;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*pi = (int)vg.gpu[dev].config.sm_smem;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*pi = (int)vg.gpu[dev].config.cc / 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*pi = (int)vg.gpu[dev].config.cc % 10;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
		*pi = vg.key != VG_NO_MPS;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].attrib == attrib) {
			*pi = fixed[i].value;
			return CUDA_SUCCESS;
		}
	if (attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;	/* what it does not do */
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	CUresult r = major && minor ? vg_check_device(major, dev) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*major = (int)vg.gpu[dev].config.cc / 10;
	*minor = (int)vg.gpu[dev].config.cc % 10;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice dev)
{
	CUresult r = vg_check_device(p, dev);

	if (r)
		return r;
	*p = (CUdevprop) {
		.maxThreadsPerBlock = max_block(dev),
			.maxThreadsDim = { max_block(dev), max_block(dev), 64 },
		.maxGridSize = { 0x7fffffff, 65535, 65535 },
			.sharedMemPerBlock = VG_STATIC_DYNAMIC_SHARED,
		.totalConstantMemory = 65536, .SIMDWidth = 32, .memPitch = 0x7fffffff,
		.regsPerBlock = (int)vg.gpu[dev].config.sm_regs, .clockRate = 1000000,
			.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	CUresult r = vg_check_device(id, dev);

	if (!r && len < (int)sizeof(BUS_ID))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		snprintf(id, (size_t)len, "0000:%02X:00.0", bus(&vg.gpu[dev]));
	return r;
}

CUDADRV_API CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
	CUresult r = id ? vg_check_device(dev, 0) : CUDA_ERROR_INVALID_VALUE;
	char own[sizeof(BUS_ID)];

	for (unsigned int i = 0; !r && i < vg.n_gpus; i++) {
		snprintf(own, sizeof(own), "0000:%02X:00.0", bus(&vg.gpu[i]));
		if (!strcmp(id, own)) {
			*dev = (CUdevice)i;
			return CUDA_SUCCESS;
		}
	}
	return r ? r : CUDA_ERROR_INVALID_DEVICE;
}

/* No device reaches another one's memory. Copies go all the same */
CUDADRV_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult r = vg_check_device(can, dev);

	if (!r)
		r = vg_check_device(can, peer);
	if (!r)
		*can = 0;
	return r;
}

CUDADRV_API CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	CUresult r = vg_check_device(pi, dev);

	if (!r)
		*pi = 0;
	return r;
}
