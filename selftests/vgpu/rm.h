/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control calls of NVIDIA's kernel driver as far as vgpu answers them: ioctls on /dev/nvidiactl
 * that allocate objects of the resource manager (RM), control and free them. Numbers and layouts:
 * NVIDIA's open GPU kernel modules, nv_escape.h, nvos.h, ctrla06c.h, ctrl2080gpu.h.
 *
 * libvgpu-rm.so, preloaded, is the kernel's side: its ioctl() and fstat() answer for the one
 * descriptor that vgpu's libcuda registers and hand everything else on. libcuda makes its calls
 * through the symbol ioctl(), so a library that is preloaded before libvgpu-rm.so sees them as it
 * would see those of the real one. Without libvgpu-rm.so no calls are made.
 *
 * A process has a client object, and below it a device with a subdevice for each GPU that it uses.
 * They stay until it exits. Below the device are the channel group of each context, and memory. All
 * groups of a process are one to the scheduler, which has the slice that was set last. A client of
 * an MPS server has no group: its server's process ($VGPU_MPS_SERVER=1) has the one that they run
 * in. $VGPU_RM_REFUSE=1: slices other than libcuda's own are refused.
 *
 * Device memory is an object from its allocation to its free: one for each allocation, array, piece
 * of a pool, memory of cuMemCreate() and memory of a graph, with the size rounded up to 2 MiB. A
 * context has one of VG_CONTEXT_MEMORY bytes, which cuMemGetInfo() does not count. Managed memory,
 * host memory and imported memory have none, nor have variables of modules. If the call is refused,
 * also by a preloaded library, it is made once more if pools had unused memory to give back; then
 * the CUDA call returns CUDA_ERROR_OUT_OF_MEMORY.
 */
#ifndef VGPU_RM_H
#define VGPU_RM_H

#include <stddef.h>
#include <stdint.h>

#define NV_IOCTL_MAGIC		'F'
#define NV_ESC_RM_FREE		0x29
#define NV_ESC_RM_CONTROL	0x2a
#define NV_ESC_RM_ALLOC		0x2b

#define NV01_ROOT_CLIENT	0x0041u
#define NV01_MEMORY_LOCAL_USER	0x0040u
#define NV01_DEVICE_0		0x0080u
#define NV20_SUBDEVICE_0	0x2080u
#define KEPLER_CHANNEL_GROUP_A	0xa06cu

#define NVA06C_CTRL_CMD_SET_TIMESLICE	0xa06c0103u
#define NVA06C_CTRL_CMD_GET_TIMESLICE	0xa06c0104u
#define NVA06C_CTRL_CMD_PREEMPT		0xa06c0105u
#define NV2080_CTRL_CMD_GPU_GET_GID_INFO 0x2080014au
#define NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE 0x20801210u
#define NV2080_SET_CILP			1u	/* of the flags: the compute mode counts */
#define NV2080_COMPUTE_CTA		1u
#define NV2080_COMPUTE_CILP		2u
#define NV2080_GPU_GID_FORMAT		3u	/* of the flags */
#define NV2080_GPU_GID_ASCII		0u
#define NV2080_GPU_GID_BINARY		2u
#define NVA06C_PREEMPT_MAX_US		1000000u

#define NV_OK				0x00u
#define NV_ERR_INSUFFICIENT_PERMISSIONS	0x1bu
#define NV_ERR_INSUFFICIENT_RESOURCES	0x1au
#define NV_ERR_INVALID_ARGUMENT		0x1fu
#define NV_ERR_INVALID_OBJECT_HANDLE	0x33u
#define NV_ERR_NO_MEMORY		0x51u
#define NV_ERR_NOT_SUPPORTED		0x56u

#define VG_MEMORY_GRANULE	((uint64_t)2 << 20)
#define VG_CONTEXT_MEMORY	((uint64_t)8 << 20)

struct nv_free {			/* NVOS00 */
	uint32_t root, parent, object, status;
};

struct nv_alloc {			/* NVOS21 */
	uint32_t root, parent, object, class;
	uint64_t params;
	uint32_t params_size, status;
};

struct nv_alloc_rights {		/* NVOS64 */
	uint32_t root, parent, object, class;
	uint64_t params, rights;
	uint32_t params_size, flags, status, __pad;
};

struct nv_control {			/* NVOS54 */
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t params_size, status;
};

struct nv_preemption {			/* NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS */
	uint32_t flags, group, graphics, compute;
	uint64_t route[2];
};

struct nv_device_params {		/* NV0080_ALLOC_PARAMETERS */
	uint32_t device, client_share, target_client, target_device, flags, __pad;
	uint64_t va_space_size, va_start, va_limit;
	uint32_t va_mode, __pad2;
};

struct nv_subdevice_params {
	uint32_t subdevice;
};

struct nv_group_params {		/* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS */
	uint32_t error, ecc_error, va_space, engine;
	uint8_t plugin, __pad[3];
};

struct nv_memory_params {		/* NV_MEMORY_ALLOCATION_PARAMS; params_size is 0 */
	uint32_t owner, type, flags, width, height;
	int32_t pitch;
	uint32_t attr, attr2, format, compr_covg, zcull_covg, __pad;
	uint64_t range_lo, range_hi, size, alignment, offset, limit, address;
	uint32_t ctag_offset, va_space, internal_flags, tag;
	int32_t numa_node;
	uint32_t __pad2;
};

struct nv_preempt {
	uint8_t wait, manual_timeout, __pad[2];
	uint32_t timeout_us;
};

struct nv_gid_info {
	uint32_t index, flags, length;
	uint8_t data[256];
};

#define NV_IOCTL_FREE		_IOWR(NV_IOCTL_MAGIC, NV_ESC_RM_FREE, struct nv_free)
#define NV_IOCTL_ALLOC		_IOWR(NV_IOCTL_MAGIC, NV_ESC_RM_ALLOC, struct nv_alloc)
#define NV_IOCTL_ALLOC_RIGHTS	_IOWR(NV_IOCTL_MAGIC, NV_ESC_RM_ALLOC, struct nv_alloc_rights)
#define NV_IOCTL_CONTROL	_IOWR(NV_IOCTL_MAGIC, NV_ESC_RM_CONTROL, struct nv_control)
_Static_assert(sizeof(struct nv_alloc) == 32 && sizeof(struct nv_alloc_rights) == 48,
	       "as the driver has them");
_Static_assert(sizeof(struct nv_control) == 32 && sizeof(struct nv_device_params) == 56,
	       "as the driver has them");
_Static_assert(sizeof(struct nv_memory_params) == 128 &&
	       offsetof(struct nv_memory_params, size) == 64, "as the driver has them");
_Static_assert(sizeof(struct nv_gid_info) == 268 && sizeof(struct nv_preempt) == 8,
	       "as the driver has them");

/* An ioctl on the registered descriptor: 0, or -1 with errno */
typedef int (*vgpu_rm_handler)(unsigned long request, void *arg);
/* In libvgpu-rm.so: from now on @handler answers for @fd; -1: nobody answers */
void vgpu_rm_register(int fd, vgpu_rm_handler handler);

#endif /* VGPU_RM_H */
