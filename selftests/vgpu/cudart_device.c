// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runtime API: the device, functions, streams, events */
#include <stdio.h>
#include <string.h>
#include "cudart.h"
#include "cudart_unsimulated.h"

RT_FN(cudaDriverGetVersion, (int *version))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDriverGetVersion(version));
}

RT_FN(cudaRuntimeGetVersion, (int *version))
{
	if (!version)
		return rt_fail(cudaErrorInvalidValue);
	*version = CUDA_VERSION;
	return cudaSuccess;
}

RT_FN(cudaGetDeviceCount, (int *n))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDeviceGetCount(n));
}

RT_FN(cudaGetDevice, (int *device))
{
	cudaError_t e = device ? rt_ready() : rt_fail(cudaErrorInvalidValue);

	if (!e)
		*device = rt_device();
	return e;
}

RT_FN(cudaSetDevice, (int device))
{
	return rt_set_device(device);
}

RT_FN(cudaInitDevice, (int device, unsigned int device_flags, unsigned int flags))
{
	cudaError_t e = rt_ready();
	CUcontext ctx;

	/* it does not become the current one */
	return e ? e : rt_error(rt_primary(device, &ctx));
}

RT_FN(cudaChooseDevice, (int *device, const struct cudaDeviceProp *prop))
{
	return cudaGetDevice(device);
}

RT_FN(cudaSetValidDevices, (int *list, int n))
{
	return list && n > 0 && *list >= 0 ? cudaSuccess : rt_fail(cudaErrorInvalidDevice);
}

RT_FN(cudaSetDeviceFlags, (unsigned int flags))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDevicePrimaryCtxSetFlags(rt_device(), flags));
}

RT_FN(cudaGetDeviceFlags, (unsigned int *flags))
{
	cudaError_t e = rt_ready();
	int active;

	return e ? e : rt_error(rt_driver[0].p_cuDevicePrimaryCtxGetState(rt_device(),
									  flags, &active));
}

RT_FN(cudaDeviceSynchronize, (void))
{
	return RT_CALL(0, cuCtxSynchronize);
}

RT_FN(cudaDeviceReset, (void))
{
	cudaError_t e = rt_ready();
	int dev;

	if (e)
		return e;
	dev = rt_device();
	rt_forget_context(dev);
	rt_driver[0].p_cuCtxSetCurrent(NULL);
	return rt_error(rt_driver[0].p_cuDevicePrimaryCtxReset(dev));
}

RT_FN(cudaDeviceGetAttribute, (int *value, CUdevice_attribute which, int device))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDeviceGetAttribute(value, which, device));
}

RT_FN(cudaDeviceGetPCIBusId, (char *id, int len, int device))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDeviceGetPCIBusId(id, len, device));
}

RT_FN(cudaDeviceGetByPCIBusId, (int *device, const char *id))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDeviceGetByPCIBusId(device, id));
}

RT_FN(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
	cudaError_t e = rt_ready();

	return e ? e : rt_error(rt_driver[0].p_cuDeviceCanAccessPeer(can, device, peer));
}

RT_FN(cudaDeviceSetLimit, (CUlimit limit, size_t value))
{
	return RT_CALL(0, cuCtxSetLimit, limit, value);
}

RT_FN(cudaDeviceGetLimit, (size_t *value, CUlimit limit))
{
	return RT_CALL(0, cuCtxGetLimit, value, limit);
}

RT_FN(cudaDeviceGetCacheConfig, (CUfunc_cache *config))
{
	return RT_CALL(0, cuCtxGetCacheConfig, config);
}

RT_FN(cudaDeviceSetCacheConfig, (CUfunc_cache config))
{
	return RT_CALL(0, cuCtxSetCacheConfig, config);
}

RT_FN(cudaDeviceGetSharedMemConfig, (CUsharedconfig *config))
{
	return RT_CALL(0, cuCtxGetSharedMemConfig, config);
}

RT_FN(cudaDeviceSetSharedMemConfig, (CUsharedconfig config))
{
	return RT_CALL(0, cuCtxSetSharedMemConfig, config);
}

RT_FN(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
	return RT_CALL(0, cuCtxGetStreamPriorityRange, least, greatest);
}

RT_FN(cudaProfilerStart, (void))
{
	return RT_CALL(0, cuProfilerStart);
}

RT_FN(cudaProfilerStop, (void))
{
	return RT_CALL(0, cuProfilerStop);
}

/* What has an attribute of the driver; the rest of the structure is zero */
static const struct { size_t offset; CUdevice_attribute which; bool wide; } props[] = {
#define INT(field, which) { offsetof(struct cudaDeviceProp, field), \
			    CU_DEVICE_ATTRIBUTE_##which, false },
#define SIZE(field, which) { offsetof(struct cudaDeviceProp, field), \
			     CU_DEVICE_ATTRIBUTE_##which, true },
	SIZE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
	INT(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
	INT(warpSize, WARP_SIZE) SIZE(memPitch, MAX_PITCH)
	INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
	INT(maxThreadsDim[0], MAX_BLOCK_DIM_X) INT(maxThreadsDim[1], MAX_BLOCK_DIM_Y)
	INT(maxThreadsDim[2], MAX_BLOCK_DIM_Z)
	INT(maxGridSize[0], MAX_GRID_DIM_X) INT(maxGridSize[1], MAX_GRID_DIM_Y)
	INT(maxGridSize[2], MAX_GRID_DIM_Z)
	SIZE(totalConstMem, TOTAL_CONSTANT_MEMORY) INT(major, COMPUTE_CAPABILITY_MAJOR)
	INT(minor, COMPUTE_CAPABILITY_MINOR)
	SIZE(textureAlignment, TEXTURE_ALIGNMENT)
	SIZE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)
	INT(multiProcessorCount, MULTIPROCESSOR_COUNT) INT(integrated, INTEGRATED)
	INT(canMapHostMemory, CAN_MAP_HOST_MEMORY)
	SIZE(surfaceAlignment, SURFACE_ALIGNMENT) INT(concurrentKernels, CONCURRENT_KERNELS)
	INT(ECCEnabled, ECC_ENABLED)
	INT(pciBusID, PCI_BUS_ID) INT(pciDeviceID, PCI_DEVICE_ID) INT(pciDomainID, PCI_DOMAIN_ID)
	INT(tccDriver, TCC_DRIVER)
	INT(asyncEngineCount, ASYNC_ENGINE_COUNT) INT(unifiedAddressing, UNIFIED_ADDRESSING)
	INT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH) INT(l2CacheSize, L2_CACHE_SIZE)
	INT(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)
	INT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)
	INT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)
	INT(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)
	INT(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)
	SIZE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
	INT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)
	INT(managedMemory, MANAGED_MEMORY)
	INT(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)
	INT(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)
	INT(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)
	INT(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
	INT(cooperativeLaunch, COOPERATIVE_LAUNCH)
	SIZE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
	INT(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)
	INT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)
	SIZE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
	INT(hostRegisterSupported, HOST_REGISTER_SUPPORTED)
	INT(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)
	INT(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)
	INT(clusterLaunch, CLUSTER_LAUNCH) INT(mpsEnabled, MPS_ENABLED)
#undef INT
#undef SIZE
};

RT_FN(cudaGetDeviceProperties, (struct cudaDeviceProp *p, int device))
{
	cudaError_t e = rt_ready();
	CUresult r;

	if (e)
		return e;
	if (!p)
		return rt_fail(cudaErrorInvalidValue);
	memset(p, 0, sizeof(*p));
	r = rt_driver[0].p_cuDeviceGetName(p->name, sizeof(p->name), device);
	if (!r)
		r = rt_driver[0].p_cuDeviceGetUuid(&p->uuid, device);
	if (!r)
		r = rt_driver[0].p_cuDeviceTotalMem(&p->totalGlobalMem, device);
	for (size_t i = 0; !r && i < sizeof(props) / sizeof(props[0]); i++) {
		int value = 0;

		r = rt_driver[0].p_cuDeviceGetAttribute(&value, props[i].which, device);
		if (props[i].wide)
			*(size_t *)((char *)p + props[i].offset) = (size_t)value;
		else
			*(int *)((char *)p + props[i].offset) = value;
	}
	return rt_error(r);
}

/* Functions */

static cudaError_t get_attribute(CUkernel k, CUfunction_attribute which, int *value)
{
	return rt_error(rt_driver[0].p_cuKernelGetAttribute(value, which, k, rt_device()));
}

RT_FN(cudaFuncGetAttributes, (struct cudaFuncAttributes *a, const void *f))
{
	CUkernel k;
	cudaError_t e = a ? rt_kernel(f, &k) : rt_fail(cudaErrorInvalidValue);
	int shared, constant, local;

	if (e)
		return e;
	memset(a, 0, sizeof(*a));
	if ((e = get_attribute(k, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
			       &a->maxThreadsPerBlock)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_NUM_REGS, &a->numRegs)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_PTX_VERSION, &a->ptxVersion)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_BINARY_VERSION, &a->binaryVersion)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			       &a->maxDynamicSharedSizeBytes)) ||
	    (e = get_attribute(k, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			       &a->preferredShmemCarveout)))
		return e;
	a->sharedSizeBytes = (size_t)shared;
	a->constSizeBytes = (size_t)constant;
	a->localSizeBytes = (size_t)local;
	return cudaSuccess;
}

RT_FN(cudaFuncSetAttribute, (const void *f, CUfunction_attribute which, int value))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e : rt_error(rt_driver[0].p_cuKernelSetAttribute(which, value, k, rt_device()));
}

RT_FN(cudaFuncSetCacheConfig, (const void *f, CUfunc_cache config))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e : rt_error(rt_driver[0].p_cuKernelSetCacheConfig(k, config, rt_device()));
}

/* No effect since Volta */
RT_FN(cudaFuncSetSharedMemConfig, (const void *f, CUsharedconfig config))
{
	CUkernel k;

	(void)config;
	return rt_kernel(f, &k);
}

RT_FN(cudaFuncGetName, (const char **name, const void *f))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e : rt_error(rt_driver[0].p_cuKernelGetName(name, k));
}

RT_FN(cudaFuncGetParamInfo, (const void *f, size_t i, size_t *offset, size_t *size))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e : rt_error(rt_driver[0].p_cuKernelGetParamInfo(k, i, offset, size));
}

RT_FN(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
      (int *n, const void *f, int threads, size_t dynamic, unsigned int flags))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e :
	       rt_error(rt_driver[0].p_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
				n, (CUfunction)k, threads, dynamic, flags));
}

RT_FN(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
      (int *n, const void *f, int threads, size_t dynamic))
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, f, threads, dynamic, 0);
}

RT_FN(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t *dynamic, const void *f, int blocks,
						  int threads))
{
	CUkernel k;
	cudaError_t e = rt_kernel(f, &k);

	return e ? e :
	       rt_error(rt_driver[0].p_cuOccupancyAvailableDynamicSMemPerBlock(
				dynamic, (CUfunction)k, blocks, threads));
}

/* Streams */

RT_FN(cudaStreamCreateWithPriority, (cudaStream_t *stream, unsigned int flags, int priority))
{
	return RT_CALL(0, cuStreamCreateWithPriority, stream, flags, priority);
}

RT_FN(cudaStreamCreateWithFlags, (cudaStream_t *stream, unsigned int flags))
{
	return RT_CALL(0, cuStreamCreateWithPriority, stream, flags, 0);
}

RT_FN(cudaStreamCreate, (cudaStream_t *stream))
{
	return RT_CALL(0, cuStreamCreateWithPriority, stream, 0, 0);
}

RT_FN(cudaStreamDestroy, (cudaStream_t stream))
{
	return RT_CALL(0, cuStreamDestroy, stream);
}

RT_FN(cudaThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode))
{
	return RT_CALL(0, cuThreadExchangeStreamCaptureMode, mode);
}
RT_BOTH(cudaStreamGetPriority, _ptsz, (cudaStream_t s, int *out),
	RT_CALL(own, cuStreamGetPriority, s, out))
RT_BOTH(cudaStreamGetFlags, _ptsz, (cudaStream_t s, unsigned int *out),
	RT_CALL(own, cuStreamGetFlags, s, out))
RT_BOTH(cudaStreamGetId, _ptsz, (cudaStream_t s, unsigned long long *out),
	RT_CALL(own, cuStreamGetId, s, out))
RT_BOTH(cudaStreamGetDevice, _ptsz, (cudaStream_t s, int *out),
	RT_CALL(own, cuStreamGetDevice, s, out))
RT_BOTH(cudaStreamSynchronize, _ptsz, (cudaStream_t s), RT_CALL(own, cuStreamSynchronize, s))
RT_BOTH(cudaStreamQuery, _ptsz, (cudaStream_t s), RT_CALL(own, cuStreamQuery, s))
RT_BOTH(cudaStreamWaitEvent, _ptsz, (cudaStream_t s, cudaEvent_t event, unsigned int flags),
	RT_CALL(own, cuStreamWaitEvent, s, event, flags))
RT_BOTH(cudaStreamAddCallback, _ptsz, (cudaStream_t s, CUstreamCallback fn, void *user,
				       unsigned int flags),
	RT_CALL(own, cuStreamAddCallback, s, fn, user, flags))
RT_BOTH(cudaLaunchHostFunc, _ptsz, (cudaStream_t s, CUhostFn fn, void *user),
	RT_CALL(own, cuLaunchHostFunc, s, fn, user))
RT_BOTH(cudaStreamIsCapturing, _ptsz, (cudaStream_t s, CUstreamCaptureStatus *status),
	RT_CALL(own, cuStreamIsCapturing, s, status))
RT_BOTH(cudaStreamAttachMemAsync, _ptsz, (cudaStream_t s, void *p, size_t size, unsigned int flags),
	RT_CALL(own, cuStreamAttachMemAsync, s, (CUdeviceptr)(uintptr_t)p, size, flags))
RT_BOTH(cudaStreamCopyAttributes, _ptsz, (cudaStream_t dst, cudaStream_t src),
	RT_CALL(own, cuStreamCopyAttributes, dst, src))
RT_BOTH(cudaStreamGetAttribute, _ptsz, (cudaStream_t s, CUstreamAttrID id, CUstreamAttrValue *v),
	RT_CALL(own, cuStreamGetAttribute, s, id, v))
RT_BOTH(cudaStreamSetAttribute, _ptsz,
	(cudaStream_t s, CUstreamAttrID id, const CUstreamAttrValue *v),
	RT_CALL(own, cuStreamSetAttribute, s, id, v))

/* Events */

RT_FN(cudaEventCreateWithFlags, (cudaEvent_t *event, unsigned int flags))
{
	return RT_CALL(0, cuEventCreate, event, flags);
}

RT_FN(cudaEventCreate, (cudaEvent_t *event))
{
	return RT_CALL(0, cuEventCreate, event, 0);
}

RT_FN(cudaEventDestroy, (cudaEvent_t event))
{
	return RT_CALL(0, cuEventDestroy, event);
}

RT_FN(cudaEventQuery, (cudaEvent_t event))
{
	return RT_CALL(0, cuEventQuery, event);
}

RT_FN(cudaEventSynchronize, (cudaEvent_t event))
{
	return RT_CALL(0, cuEventSynchronize, event);
}

RT_FN(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end))
{
	return RT_CALL(0, cuEventElapsedTime, ms, start, end);
}
RT_BOTH(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t s),
	RT_CALL(own, cuEventRecord, event, s))
RT_BOTH(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t event, cudaStream_t s, unsigned int flags),
	RT_CALL(own, cuEventRecordWithFlags, event, s, flags))

/* The rest of the runtime API: none of the arguments is looked at */
static cudaError_t unsimulated(const char *name)
{
	fprintf(stderr, "vgpu runtime: %s is not simulated; it returns cudaErrorNotSupported\n",
		name);
	return rt_fail(cudaErrorNotSupported);
}

#define STUB(name) \
	RT_FN(name, (void)) \
	{ \
		return unsimulated(#name); \
	}
RT_UNSIMULATED(STUB)
