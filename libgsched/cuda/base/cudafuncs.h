/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver API's functions, one per line: CUFN(name, suffix, since, stream, parameters). The
 * symbol is name##suffix. @since is the CUDA version from which cuGetProcAddress() returns it for
 * @name. @stream tells whether there is a second symbol for the per-thread default stream: PTSZ:
 * name##suffix##_ptsz, PTDS: name##suffix##_ptds, PLAIN: none. Versions of a name are in ascending
 * order. The variants with 32-bit device pointers are left out. Include this after cudadrv.h (or,
 * in its check, after the toolkit's cuda.h), with CUFN defined.
 */
CUFN(cuInit, , 2000, PLAIN, (unsigned int))
CUFN(cuDriverGetVersion, , 2020, PLAIN, (int *))
CUFN(cuGetProcAddress, , 11030, PLAIN, (const char *, void **, int, cuuint64_t))
CUFN(cuGetProcAddress, _v2, 12000, PLAIN,
     (const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))
CUFN(cuGetExportTable, , 3000, PLAIN, (const void **, const CUuuid *))
CUFN(cuGetErrorString, , 6000, PLAIN, (CUresult, const char **))
CUFN(cuGetErrorName, , 6000, PLAIN, (CUresult, const char **))

/* Devices */
CUFN(cuDeviceGet, , 2000, PLAIN, (CUdevice *, int))
CUFN(cuDeviceGetCount, , 2000, PLAIN, (int *))
CUFN(cuDeviceGetName, , 2000, PLAIN, (char *, int, CUdevice))
CUFN(cuDeviceGetUuid, , 9020, PLAIN, (CUuuid *, CUdevice))
CUFN(cuDeviceGetUuid, _v2, 11040, PLAIN, (CUuuid *, CUdevice))
CUFN(cuDeviceGetLuid, , 10000, PLAIN, (char *, unsigned int *, CUdevice))
CUFN(cuDeviceTotalMem, _v2, 3020, PLAIN, (size_t *, CUdevice))
CUFN(cuDeviceGetAttribute, , 2000, PLAIN, (int *, CUdevice_attribute, CUdevice))
CUFN(cuDeviceComputeCapability, , 2000, PLAIN, (int *, int *, CUdevice))
CUFN(cuDeviceGetProperties, , 2000, PLAIN, (CUdevprop *, CUdevice))
CUFN(cuDeviceGetPCIBusId, , 4010, PLAIN, (char *, int, CUdevice))
CUFN(cuDeviceGetByPCIBusId, , 4010, PLAIN, (CUdevice *, const char *))
CUFN(cuDeviceCanAccessPeer, , 4000, PLAIN, (int *, CUdevice, CUdevice))
CUFN(cuDeviceGetP2PAttribute, , 8000, PLAIN, (int *, CUdevice_P2PAttribute, CUdevice, CUdevice))
CUFN(cuDeviceGetExecAffinitySupport, , 11040, PLAIN, (int *, CUexecAffinityType, CUdevice))
CUFN(cuDeviceGetDefaultMemPool, , 11020, PLAIN, (CUmemoryPool *, CUdevice))
CUFN(cuDeviceGetMemPool, , 11020, PLAIN, (CUmemoryPool *, CUdevice))
CUFN(cuDeviceSetMemPool, , 11020, PLAIN, (CUdevice, CUmemoryPool))
CUFN(cuDevicePrimaryCtxRetain, , 7000, PLAIN, (CUcontext *, CUdevice))
CUFN(cuDevicePrimaryCtxRelease, , 7000, PLAIN, (CUdevice))
CUFN(cuDevicePrimaryCtxRelease, _v2, 11000, PLAIN, (CUdevice))
CUFN(cuDevicePrimaryCtxSetFlags, , 7000, PLAIN, (CUdevice, unsigned int))
CUFN(cuDevicePrimaryCtxSetFlags, _v2, 11000, PLAIN, (CUdevice, unsigned int))
CUFN(cuDevicePrimaryCtxGetState, , 7000, PLAIN, (CUdevice, unsigned int *, int *))
CUFN(cuDevicePrimaryCtxReset, , 7000, PLAIN, (CUdevice))
CUFN(cuDevicePrimaryCtxReset, _v2, 11000, PLAIN, (CUdevice))

/* Contexts */
CUFN(cuCtxCreate, , 2000, PLAIN, (CUcontext *, unsigned int, CUdevice))
CUFN(cuCtxCreate, _v2, 3020, PLAIN, (CUcontext *, unsigned int, CUdevice))
CUFN(cuCtxCreate, _v3, 11040, PLAIN,
     (CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice))
CUFN(cuCtxCreate, _v4, 12050, PLAIN, (CUcontext *, CUctxCreateParams *, unsigned int, CUdevice))
CUFN(cuCtxDestroy, , 2000, PLAIN, (CUcontext))
CUFN(cuCtxDestroy, _v2, 4000, PLAIN, (CUcontext))
CUFN(cuCtxPushCurrent, , 2000, PLAIN, (CUcontext))
CUFN(cuCtxPushCurrent, _v2, 4000, PLAIN, (CUcontext))
CUFN(cuCtxPopCurrent, , 2000, PLAIN, (CUcontext *))
CUFN(cuCtxPopCurrent, _v2, 4000, PLAIN, (CUcontext *))
CUFN(cuCtxSetCurrent, , 4000, PLAIN, (CUcontext))
CUFN(cuCtxGetCurrent, , 4000, PLAIN, (CUcontext *))
CUFN(cuCtxGetDevice, , 2000, PLAIN, (CUdevice *))
CUFN(cuCtxGetDevice, _v2, 13000, PLAIN, (CUdevice *, CUcontext))
CUFN(cuCtxGetFlags, , 7000, PLAIN, (unsigned int *))
CUFN(cuCtxSetFlags, , 12010, PLAIN, (unsigned int))
CUFN(cuCtxGetId, , 12000, PLAIN, (CUcontext, unsigned long long *))
CUFN(cuCtxWaitEvent, , 12050, PLAIN, (CUcontext, CUevent))
CUFN(cuCtxSynchronize, , 2000, PLAIN, (void))
CUFN(cuCtxSynchronize, _v2, 13000, PLAIN, (CUcontext))
CUFN(cuCtxSetLimit, , 3010, PLAIN, (CUlimit, size_t))
CUFN(cuCtxGetLimit, , 3010, PLAIN, (size_t *, CUlimit))
CUFN(cuCtxGetCacheConfig, , 3020, PLAIN, (CUfunc_cache *))
CUFN(cuCtxSetCacheConfig, , 3020, PLAIN, (CUfunc_cache))
CUFN(cuCtxGetSharedMemConfig, , 4020, PLAIN, (CUsharedconfig *))
CUFN(cuCtxSetSharedMemConfig, , 4020, PLAIN, (CUsharedconfig))
CUFN(cuCtxGetApiVersion, , 3020, PLAIN, (CUcontext, unsigned int *))
CUFN(cuCtxGetStreamPriorityRange, , 5050, PLAIN, (int *, int *))
CUFN(cuCtxResetPersistingL2Cache, , 11000, PLAIN, (void))
CUFN(cuCtxGetExecAffinity, , 11040, PLAIN, (CUexecAffinityParam *, CUexecAffinityType))
CUFN(cuCtxEnablePeerAccess, , 4000, PLAIN, (CUcontext, unsigned int))
CUFN(cuCtxDisablePeerAccess, , 4000, PLAIN, (CUcontext))
CUFN(cuCtxAttach, , 2000, PLAIN, (CUcontext *, unsigned int))
CUFN(cuCtxDetach, , 2000, PLAIN, (CUcontext))
CUFN(cuGreenCtxCreate, , 12040, PLAIN,
     (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned int))
CUFN(cuGreenCtxDestroy, , 12040, PLAIN, (CUgreenCtx))
CUFN(cuGreenCtxStreamCreate, , 12050, PLAIN, (CUstream *, CUgreenCtx, unsigned int, int))
CUFN(cuCtxFromGreenCtx, , 12040, PLAIN, (CUcontext *, CUgreenCtx))

/* Modules and libraries */
CUFN(cuModuleLoad, , 2000, PLAIN, (CUmodule *, const char *))
CUFN(cuModuleLoadData, , 2000, PLAIN, (CUmodule *, const void *))
CUFN(cuModuleLoadDataEx, , 2010, PLAIN,
     (CUmodule *, const void *, unsigned int, CUjit_option *, void **))
CUFN(cuModuleLoadFatBinary, , 2000, PLAIN, (CUmodule *, const void *))
CUFN(cuModuleUnload, , 2000, PLAIN, (CUmodule))
CUFN(cuModuleGetLoadingMode, , 11070, PLAIN, (CUmoduleLoadingMode *))
CUFN(cuModuleGetFunction, , 2000, PLAIN, (CUfunction *, CUmodule, const char *))
CUFN(cuModuleGetGlobal, _v2, 3020, PLAIN, (CUdeviceptr *, size_t *, CUmodule, const char *))
CUFN(cuModuleGetFunctionCount, , 12040, PLAIN, (unsigned int *, CUmodule))
CUFN(cuModuleEnumerateFunctions, , 12040, PLAIN, (CUfunction *, unsigned int, CUmodule))
CUFN(cuLinkCreate, _v2, 6050, PLAIN, (unsigned int, CUjit_option *, void **, CUlinkState *))
CUFN(cuLinkAddData, _v2, 6050, PLAIN,
     (CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned int, CUjit_option *,
      void **))
CUFN(cuLinkAddFile, _v2, 6050, PLAIN,
     (CUlinkState, CUjitInputType, const char *, unsigned int, CUjit_option *, void **))
CUFN(cuLinkComplete, , 5050, PLAIN, (CUlinkState, void **, size_t *))
CUFN(cuLinkDestroy, , 5050, PLAIN, (CUlinkState))
CUFN(cuLibraryLoadData, , 12000, PLAIN,
     (CUlibrary *, const void *, CUjit_option *, void **, unsigned int, CUlibraryOption *, void **,
      unsigned int))
CUFN(cuLibraryLoadFromFile, , 12000, PLAIN,
     (CUlibrary *, const char *, CUjit_option *, void **, unsigned int, CUlibraryOption *, void **,
      unsigned int))
CUFN(cuLibraryUnload, , 12000, PLAIN, (CUlibrary))
CUFN(cuLibraryGetKernel, , 12000, PLAIN, (CUkernel *, CUlibrary, const char *))
CUFN(cuLibraryGetKernelCount, , 12040, PLAIN, (unsigned int *, CUlibrary))
CUFN(cuLibraryEnumerateKernels, , 12040, PLAIN, (CUkernel *, unsigned int, CUlibrary))
CUFN(cuLibraryGetModule, , 12000, PLAIN, (CUmodule *, CUlibrary))
CUFN(cuLibraryGetGlobal, , 12000, PLAIN, (CUdeviceptr *, size_t *, CUlibrary, const char *))
CUFN(cuLibraryGetManaged, , 12000, PLAIN, (CUdeviceptr *, size_t *, CUlibrary, const char *))
CUFN(cuLibraryGetUnifiedFunction, , 12000, PLAIN, (void **, CUlibrary, const char *))
CUFN(cuKernelGetFunction, , 12000, PLAIN, (CUfunction *, CUkernel))
CUFN(cuKernelGetLibrary, , 12050, PLAIN, (CUlibrary *, CUkernel))
CUFN(cuKernelGetAttribute, , 12000, PLAIN, (int *, CUfunction_attribute, CUkernel, CUdevice))
CUFN(cuKernelSetAttribute, , 12000, PLAIN, (CUfunction_attribute, int, CUkernel, CUdevice))
CUFN(cuKernelSetCacheConfig, , 12000, PLAIN, (CUkernel, CUfunc_cache, CUdevice))
CUFN(cuKernelGetName, , 12030, PLAIN, (const char **, CUkernel))
CUFN(cuKernelGetParamInfo, , 12040, PLAIN, (CUkernel, size_t, size_t *, size_t *))
CUFN(cuFuncGetAttribute, , 2020, PLAIN, (int *, CUfunction_attribute, CUfunction))
CUFN(cuFuncSetAttribute, , 9000, PLAIN, (CUfunction, CUfunction_attribute, int))
CUFN(cuFuncSetCacheConfig, , 3000, PLAIN, (CUfunction, CUfunc_cache))
CUFN(cuFuncSetSharedMemConfig, , 4020, PLAIN, (CUfunction, CUsharedconfig))
CUFN(cuFuncGetModule, , 11000, PLAIN, (CUmodule *, CUfunction))
CUFN(cuFuncGetName, , 12030, PLAIN, (const char **, CUfunction))
CUFN(cuFuncGetParamInfo, , 12040, PLAIN, (CUfunction, size_t, size_t *, size_t *))
CUFN(cuFuncIsLoaded, , 12040, PLAIN, (CUfunctionLoadingState *, CUfunction))
CUFN(cuFuncLoad, , 12040, PLAIN, (CUfunction))

/* Launches and occupancy */
CUFN(cuLaunchKernel, , 4000, PTSZ,
     (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
      unsigned int, unsigned int, CUstream, void **, void **))
CUFN(cuLaunchKernelEx, , 11060, PTSZ, (const CUlaunchConfig *, CUfunction, void **, void **))
CUFN(cuLaunchCooperativeKernel, , 9000, PTSZ,
     (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
      unsigned int, unsigned int, CUstream, void **))
CUFN(cuLaunchHostFunc, , 10000, PTSZ, (CUstream, CUhostFn, void *))
CUFN(cuLaunchCooperativeKernelMultiDevice, , 9000, PLAIN,
     (CUDA_LAUNCH_PARAMS *, unsigned int, unsigned int))
CUFN(cuFuncSetBlockShape, , 2000, PLAIN, (CUfunction, int, int, int))
CUFN(cuFuncSetSharedSize, , 2000, PLAIN, (CUfunction, unsigned int))
CUFN(cuParamSetSize, , 2000, PLAIN, (CUfunction, unsigned int))
CUFN(cuParamSeti, , 2000, PLAIN, (CUfunction, int, unsigned int))
CUFN(cuParamSetf, , 2000, PLAIN, (CUfunction, int, float))
CUFN(cuParamSetv, , 2000, PLAIN, (CUfunction, int, void *, unsigned int))
CUFN(cuLaunch, , 2000, PLAIN, (CUfunction))
CUFN(cuLaunchGrid, , 2000, PLAIN, (CUfunction, int, int))
CUFN(cuLaunchGridAsync, , 2000, PLAIN, (CUfunction, int, int, CUstream))
CUFN(cuOccupancyMaxActiveBlocksPerMultiprocessor, , 6050, PLAIN, (int *, CUfunction, int, size_t))
CUFN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, , 7000, PLAIN,
     (int *, CUfunction, int, size_t, unsigned int))
CUFN(cuOccupancyMaxPotentialBlockSize, , 6050, PLAIN,
     (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int))
CUFN(cuOccupancyMaxPotentialBlockSizeWithFlags, , 7000, PLAIN,
     (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int, unsigned int))
CUFN(cuOccupancyAvailableDynamicSMemPerBlock, , 10020, PLAIN, (size_t *, CUfunction, int, int))
CUFN(cuOccupancyMaxPotentialClusterSize, , 11070, PLAIN,
     (int *, CUfunction, const CUlaunchConfig *))
CUFN(cuOccupancyMaxActiveClusters, , 11070, PLAIN, (int *, CUfunction, const CUlaunchConfig *))

/* Memory */
CUFN(cuMemGetInfo, _v2, 3020, PLAIN, (size_t *, size_t *))
CUFN(cuMemAlloc, _v2, 3020, PLAIN, (CUdeviceptr *, size_t))
CUFN(cuMemAllocPitch, _v2, 3020, PLAIN, (CUdeviceptr *, size_t *, size_t, size_t, unsigned int))
CUFN(cuMemFree, _v2, 3020, PLAIN, (CUdeviceptr))
CUFN(cuMemGetAddressRange, _v2, 3020, PLAIN, (CUdeviceptr *, size_t *, CUdeviceptr))
CUFN(cuMemAllocHost, _v2, 3020, PLAIN, (void **, size_t))
CUFN(cuMemFreeHost, , 2000, PLAIN, (void *))
CUFN(cuMemHostAlloc, , 2020, PLAIN, (void **, size_t, unsigned int))
CUFN(cuMemHostGetDevicePointer, _v2, 3020, PLAIN, (CUdeviceptr *, void *, unsigned int))
CUFN(cuMemHostGetFlags, , 2030, PLAIN, (unsigned int *, void *))
CUFN(cuMemAllocManaged, , 6000, PLAIN, (CUdeviceptr *, size_t, unsigned int))
CUFN(cuMemHostRegister, _v2, 6050, PLAIN, (void *, size_t, unsigned int))
CUFN(cuMemHostUnregister, , 4000, PLAIN, (void *))
CUFN(cuMemAllocAsync, , 11020, PTSZ, (CUdeviceptr *, size_t, CUstream))
CUFN(cuMemFreeAsync, , 11020, PTSZ, (CUdeviceptr, CUstream))
CUFN(cuMemAllocFromPoolAsync, , 11020, PTSZ, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))
CUFN(cuMemPoolTrimTo, , 11020, PLAIN, (CUmemoryPool, size_t))
CUFN(cuMemPoolSetAttribute, , 11020, PLAIN, (CUmemoryPool, CUmemPool_attribute, void *))
CUFN(cuMemPoolGetAttribute, , 11020, PLAIN, (CUmemoryPool, CUmemPool_attribute, void *))
CUFN(cuMemPoolCreate, , 11020, PLAIN, (CUmemoryPool *, const CUmemPoolProps *))
CUFN(cuMemPoolDestroy, , 11020, PLAIN, (CUmemoryPool))
CUFN(cuMemPoolSetAccess, , 11020, PLAIN, (CUmemoryPool, const CUmemAccessDesc *, size_t))
CUFN(cuMemPoolGetAccess, , 11020, PLAIN, (CUmemAccess_flags *, CUmemoryPool, CUmemLocation *))
CUFN(cuMemGetDefaultMemPool, , 13000, PLAIN,
     (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))
CUFN(cuMemGetMemPool, , 13000, PLAIN, (CUmemoryPool *, CUmemLocation *, CUmemAllocationType))
CUFN(cuMemSetMemPool, , 13000, PLAIN, (CUmemLocation *, CUmemAllocationType, CUmemoryPool))
CUFN(cuDeviceGetGraphMemAttribute, , 11040, PLAIN, (CUdevice, CUgraphMem_attribute, void *))
CUFN(cuDeviceSetGraphMemAttribute, , 11040, PLAIN, (CUdevice, CUgraphMem_attribute, void *))
CUFN(cuDeviceGraphMemTrim, , 11040, PLAIN, (CUdevice))
CUFN(cuMemAddressReserve, , 10020, PLAIN,
     (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))
CUFN(cuMemAddressFree, , 10020, PLAIN, (CUdeviceptr, size_t))
CUFN(cuMemCreate, , 10020, PLAIN, (CUmemGenericAllocationHandle *, size_t,
				   const CUmemAllocationProp *, unsigned long long))
CUFN(cuMemRelease, , 10020, PLAIN, (CUmemGenericAllocationHandle))
CUFN(cuMemMap, , 10020, PLAIN,
     (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))
CUFN(cuMemUnmap, , 10020, PLAIN, (CUdeviceptr, size_t))
CUFN(cuMemSetAccess, , 10020, PLAIN, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))
CUFN(cuMemGetAccess, , 10020, PLAIN, (unsigned long long *, const CUmemLocation *, CUdeviceptr))
CUFN(cuMemExportToShareableHandle, , 10020, PLAIN,
     (void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long))
CUFN(cuMemImportFromShareableHandle, , 10020, PLAIN,
     (CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType))
CUFN(cuMemGetAllocationGranularity, , 10020, PLAIN,
     (size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags))
CUFN(cuMemGetAllocationPropertiesFromHandle, , 10020, PLAIN,
     (CUmemAllocationProp *, CUmemGenericAllocationHandle))
CUFN(cuMemRetainAllocationHandle, , 11000, PLAIN, (CUmemGenericAllocationHandle *, void *))
CUFN(cuMemPrefetchAsync, , 8000, PTSZ, (CUdeviceptr, size_t, CUdevice, CUstream))
CUFN(cuMemPrefetchAsync, _v2, 12020, PTSZ,
     (CUdeviceptr, size_t, CUmemLocation, unsigned int, CUstream))
CUFN(cuMemAdvise, , 8000, PLAIN, (CUdeviceptr, size_t, CUmem_advise, CUdevice))
CUFN(cuMemAdvise, _v2, 12020, PLAIN, (CUdeviceptr, size_t, CUmem_advise, CUmemLocation))
CUFN(cuPointerGetAttribute, , 4000, PLAIN, (void *, CUpointer_attribute, CUdeviceptr))
CUFN(cuPointerGetAttributes, , 7000, PLAIN,
     (unsigned int, CUpointer_attribute *, void **, CUdeviceptr))
CUFN(cuPointerSetAttribute, , 6000, PLAIN, (const void *, CUpointer_attribute, CUdeviceptr))
CUFN(cuMemcpy, , 4000, PTDS, (CUdeviceptr, CUdeviceptr, size_t))
CUFN(cuMemcpyPeer, , 4000, PTDS, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))
CUFN(cuMemcpyHtoD, _v2, 3020, PTDS, (CUdeviceptr, const void *, size_t))
CUFN(cuMemcpyDtoH, _v2, 3020, PTDS, (void *, CUdeviceptr, size_t))
CUFN(cuMemcpyDtoD, _v2, 3020, PTDS, (CUdeviceptr, CUdeviceptr, size_t))
CUFN(cuMemcpy2D, _v2, 3020, PTDS, (const CUDA_MEMCPY2D *))
CUFN(cuMemcpy2DUnaligned, _v2, 3020, PTDS, (const CUDA_MEMCPY2D *))
CUFN(cuMemcpyAsync, , 4000, PTSZ, (CUdeviceptr, CUdeviceptr, size_t, CUstream))
CUFN(cuMemcpyPeerAsync, , 4000, PTSZ,
     (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))
CUFN(cuMemcpyHtoDAsync, _v2, 3020, PTSZ, (CUdeviceptr, const void *, size_t, CUstream))
CUFN(cuMemcpyDtoHAsync, _v2, 3020, PTSZ, (void *, CUdeviceptr, size_t, CUstream))
CUFN(cuMemcpyDtoDAsync, _v2, 3020, PTSZ, (CUdeviceptr, CUdeviceptr, size_t, CUstream))
CUFN(cuMemcpy2DAsync, _v2, 3020, PTSZ, (const CUDA_MEMCPY2D *, CUstream))
CUFN(cuMemcpy3D, _v2, 3020, PTDS, (const CUDA_MEMCPY3D *))
CUFN(cuMemcpy3DAsync, _v2, 3020, PTSZ, (const CUDA_MEMCPY3D *, CUstream))
CUFN(cuMemcpy3DPeer, , 4000, PTDS, (const CUDA_MEMCPY3D_PEER *))
CUFN(cuMemcpy3DPeerAsync, , 4000, PTSZ, (const CUDA_MEMCPY3D_PEER *, CUstream))
CUFN(cuMemcpyBatchAsync, , 12080, PTSZ, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
	CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream))
CUFN(cuMemcpyBatchAsync, _v2, 13000, PTSZ, (CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
	CUmemcpyAttributes *, size_t *, size_t, CUstream))
CUFN(cuMemcpy3DBatchAsync, , 12080, PTSZ, (size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *,
	unsigned long long, CUstream))
CUFN(cuMemcpy3DBatchAsync, _v2, 13000, PTSZ, (size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long,
	CUstream))

/* Arrays, textures, surfaces */
CUFN(cuArrayCreate, _v2, 3020, PLAIN, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))
CUFN(cuArrayGetDescriptor, _v2, 3020, PLAIN, (CUDA_ARRAY_DESCRIPTOR *, CUarray))
CUFN(cuArray3DCreate, _v2, 3020, PLAIN, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))
CUFN(cuArray3DGetDescriptor, _v2, 3020, PLAIN, (CUDA_ARRAY3D_DESCRIPTOR *, CUarray))
CUFN(cuArrayDestroy, , 2000, PLAIN, (CUarray))
CUFN(cuMemcpyHtoA, _v2, 3020, PTDS, (CUarray, size_t, const void *, size_t))
CUFN(cuMemcpyAtoH, _v2, 3020, PTDS, (void *, CUarray, size_t, size_t))
CUFN(cuMemcpyDtoA, _v2, 3020, PTDS, (CUarray, size_t, CUdeviceptr, size_t))
CUFN(cuMemcpyAtoD, _v2, 3020, PTDS, (CUdeviceptr, CUarray, size_t, size_t))
CUFN(cuMemcpyAtoA, _v2, 3020, PTDS, (CUarray, size_t, CUarray, size_t, size_t))
CUFN(cuMemcpyHtoAAsync, _v2, 3020, PTSZ, (CUarray, size_t, const void *, size_t, CUstream))
CUFN(cuMemcpyAtoHAsync, _v2, 3020, PTSZ, (void *, CUarray, size_t, size_t, CUstream))
CUFN(cuTexObjectCreate, , 5000, PLAIN,
     (CUtexObject *, const CUDA_RESOURCE_DESC *, const CUDA_TEXTURE_DESC *,
      const CUDA_RESOURCE_VIEW_DESC *))
CUFN(cuTexObjectDestroy, , 5000, PLAIN, (CUtexObject))
CUFN(cuTexObjectGetResourceDesc, , 5000, PLAIN, (CUDA_RESOURCE_DESC *, CUtexObject))
CUFN(cuTexObjectGetTextureDesc, , 5000, PLAIN, (CUDA_TEXTURE_DESC *, CUtexObject))
CUFN(cuSurfObjectCreate, , 5000, PLAIN, (CUsurfObject *, const CUDA_RESOURCE_DESC *))
CUFN(cuSurfObjectDestroy, , 5000, PLAIN, (CUsurfObject))
CUFN(cuSurfObjectGetResourceDesc, , 5000, PLAIN, (CUDA_RESOURCE_DESC *, CUsurfObject))
CUFN(cuMipmappedArrayDestroy, , 5000, PLAIN, (CUmipmappedArray))

/* Texture and surface references */
CUFN(cuModuleGetTexRef, , 2000, PLAIN, (CUtexref *, CUmodule, const char *))
CUFN(cuModuleGetSurfRef, , 3000, PLAIN, (CUsurfref *, CUmodule, const char *))
CUFN(cuTexRefSetArray, , 2000, PLAIN, (CUtexref, CUarray, unsigned int))
CUFN(cuTexRefSetMipmappedArray, , 5000, PLAIN, (CUtexref, CUmipmappedArray, unsigned int))
CUFN(cuTexRefSetAddress, _v2, 3020, PLAIN, (size_t *, CUtexref, CUdeviceptr, size_t))
CUFN(cuTexRefSetAddress2D, _v2, 3020, PLAIN,
     (CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr, size_t))
CUFN(cuTexRefSetAddress2D, _v3, 4010, PLAIN,
     (CUtexref, const CUDA_ARRAY_DESCRIPTOR *, CUdeviceptr, size_t))
CUFN(cuTexRefSetFormat, , 2000, PLAIN, (CUtexref, CUarray_format, int))
CUFN(cuTexRefSetAddressMode, , 2000, PLAIN, (CUtexref, int, CUaddress_mode))
CUFN(cuTexRefSetFilterMode, , 2000, PLAIN, (CUtexref, CUfilter_mode))
CUFN(cuTexRefSetMipmapFilterMode, , 5000, PLAIN, (CUtexref, CUfilter_mode))
CUFN(cuTexRefSetMipmapLevelBias, , 5000, PLAIN, (CUtexref, float))
CUFN(cuTexRefSetMipmapLevelClamp, , 5000, PLAIN, (CUtexref, float, float))
CUFN(cuTexRefSetMaxAnisotropy, , 5000, PLAIN, (CUtexref, unsigned int))
CUFN(cuTexRefSetBorderColor, , 8000, PLAIN, (CUtexref, float *))
CUFN(cuTexRefSetFlags, , 2000, PLAIN, (CUtexref, unsigned int))
CUFN(cuTexRefGetAddress, _v2, 3020, PLAIN, (CUdeviceptr *, CUtexref))
CUFN(cuTexRefGetAddressMode, , 2000, PLAIN, (CUaddress_mode *, CUtexref, int))
CUFN(cuTexRefGetFilterMode, , 2000, PLAIN, (CUfilter_mode *, CUtexref))
CUFN(cuTexRefGetFormat, , 2000, PLAIN, (CUarray_format *, int *, CUtexref))
CUFN(cuTexRefGetMipmapFilterMode, , 5000, PLAIN, (CUfilter_mode *, CUtexref))
CUFN(cuTexRefGetMipmapLevelBias, , 5000, PLAIN, (float *, CUtexref))
CUFN(cuTexRefGetMipmapLevelClamp, , 5000, PLAIN, (float *, float *, CUtexref))
CUFN(cuTexRefGetMaxAnisotropy, , 5000, PLAIN, (int *, CUtexref))
CUFN(cuTexRefGetBorderColor, , 8000, PLAIN, (float *, CUtexref))
CUFN(cuTexRefGetFlags, , 2000, PLAIN, (unsigned int *, CUtexref))
CUFN(cuSurfRefSetArray, , 3000, PLAIN, (CUsurfref, CUarray, unsigned int))

CUFN(cuMemsetD8, _v2, 3020, PTDS, (CUdeviceptr, unsigned char, size_t))
CUFN(cuMemsetD16, _v2, 3020, PTDS, (CUdeviceptr, unsigned short, size_t))
CUFN(cuMemsetD32, _v2, 3020, PTDS, (CUdeviceptr, unsigned int, size_t))
CUFN(cuMemsetD2D8, _v2, 3020, PTDS, (CUdeviceptr, size_t, unsigned char, size_t, size_t))
CUFN(cuMemsetD2D16, _v2, 3020, PTDS, (CUdeviceptr, size_t, unsigned short, size_t, size_t))
CUFN(cuMemsetD2D32, _v2, 3020, PTDS, (CUdeviceptr, size_t, unsigned int, size_t, size_t))
CUFN(cuMemsetD8Async, , 3020, PTSZ, (CUdeviceptr, unsigned char, size_t, CUstream))
CUFN(cuMemsetD16Async, , 3020, PTSZ, (CUdeviceptr, unsigned short, size_t, CUstream))
CUFN(cuMemsetD32Async, , 3020, PTSZ, (CUdeviceptr, unsigned int, size_t, CUstream))
CUFN(cuMemsetD2D8Async, , 3020, PTSZ,
     (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream))
CUFN(cuMemsetD2D16Async, , 3020, PTSZ,
     (CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream))
CUFN(cuMemsetD2D32Async, , 3020, PTSZ,
     (CUdeviceptr, size_t, unsigned int, size_t, size_t, CUstream))

/* Streams */
CUFN(cuStreamCreate, , 2000, PLAIN, (CUstream *, unsigned int))
CUFN(cuStreamCreateWithPriority, , 5050, PLAIN, (CUstream *, unsigned int, int))
CUFN(cuStreamGetPriority, , 5050, PTSZ, (CUstream, int *))
CUFN(cuStreamGetFlags, , 5050, PTSZ, (CUstream, unsigned int *))
CUFN(cuStreamGetId, , 12000, PTSZ, (CUstream, unsigned long long *))
CUFN(cuStreamGetCtx, , 9020, PTSZ, (CUstream, CUcontext *))
CUFN(cuStreamGetCtx, _v2, 12050, PTSZ, (CUstream, CUcontext *, CUgreenCtx *))
CUFN(cuStreamGetDevice, , 12080, PTSZ, (CUstream, CUdevice *))
CUFN(cuStreamWaitEvent, , 3020, PTSZ, (CUstream, CUevent, unsigned int))
CUFN(cuStreamAddCallback, , 5000, PTSZ, (CUstream, CUstreamCallback, void *, unsigned int))
CUFN(cuStreamQuery, , 2000, PTSZ, (CUstream))
CUFN(cuStreamSynchronize, , 2000, PTSZ, (CUstream))
CUFN(cuStreamDestroy, , 2000, PLAIN, (CUstream))
CUFN(cuStreamDestroy, _v2, 4000, PLAIN, (CUstream))
CUFN(cuStreamCopyAttributes, , 11000, PTSZ, (CUstream, CUstream))
CUFN(cuStreamGetAttribute, , 11000, PTSZ, (CUstream, CUstreamAttrID, CUstreamAttrValue *))
CUFN(cuStreamSetAttribute, , 11000, PTSZ, (CUstream, CUstreamAttrID, const CUstreamAttrValue *))
CUFN(cuStreamAttachMemAsync, , 6000, PTSZ, (CUstream, CUdeviceptr, size_t, unsigned int))
CUFN(cuStreamBeginCapture, , 10000, PTSZ, (CUstream))
CUFN(cuStreamBeginCapture, _v2, 10010, PTSZ, (CUstream, CUstreamCaptureMode))
CUFN(cuStreamEndCapture, , 10000, PTSZ, (CUstream, CUgraph *))
CUFN(cuStreamIsCapturing, , 10000, PTSZ, (CUstream, CUstreamCaptureStatus *))
CUFN(cuStreamGetCaptureInfo, , 10010, PTSZ, (CUstream, CUstreamCaptureStatus *, cuuint64_t *))
CUFN(cuStreamGetCaptureInfo, _v2, 11030, PTSZ,
     (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *))
CUFN(cuStreamGetCaptureInfo, _v3, 12030, PTSZ,
     (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,
      const CUgraphEdgeData **, size_t *))
CUFN(cuThreadExchangeStreamCaptureMode, , 10010, PLAIN, (CUstreamCaptureMode *))
CUFN(cuStreamWaitValue32, , 8000, PTSZ, (CUstream, CUdeviceptr, cuuint32_t, unsigned int))
CUFN(cuStreamWaitValue32, _v2, 11070, PTSZ, (CUstream, CUdeviceptr, cuuint32_t, unsigned int))
CUFN(cuStreamWaitValue64, , 9000, PTSZ, (CUstream, CUdeviceptr, cuuint64_t, unsigned int))
CUFN(cuStreamWaitValue64, _v2, 11070, PTSZ, (CUstream, CUdeviceptr, cuuint64_t, unsigned int))
CUFN(cuStreamWriteValue32, , 8000, PTSZ, (CUstream, CUdeviceptr, cuuint32_t, unsigned int))
CUFN(cuStreamWriteValue32, _v2, 11070, PTSZ, (CUstream, CUdeviceptr, cuuint32_t, unsigned int))
CUFN(cuStreamWriteValue64, , 9000, PTSZ, (CUstream, CUdeviceptr, cuuint64_t, unsigned int))
CUFN(cuStreamWriteValue64, _v2, 11070, PTSZ, (CUstream, CUdeviceptr, cuuint64_t, unsigned int))
CUFN(cuStreamBatchMemOp, , 8000, PTSZ,
     (CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int))
CUFN(cuStreamBatchMemOp, _v2, 11070, PTSZ,
     (CUstream, unsigned int, CUstreamBatchMemOpParams *, unsigned int))

/* Events */
CUFN(cuEventCreate, , 2000, PLAIN, (CUevent *, unsigned int))
CUFN(cuEventRecord, , 2000, PTSZ, (CUevent, CUstream))
CUFN(cuEventRecordWithFlags, , 11010, PTSZ, (CUevent, CUstream, unsigned int))
CUFN(cuEventQuery, , 2000, PLAIN, (CUevent))
CUFN(cuEventSynchronize, , 2000, PLAIN, (CUevent))
CUFN(cuEventDestroy, , 2000, PLAIN, (CUevent))
CUFN(cuEventDestroy, _v2, 4000, PLAIN, (CUevent))
CUFN(cuEventElapsedTime, , 2000, PLAIN, (float *, CUevent, CUevent))
CUFN(cuEventElapsedTime, _v2, 12080, PLAIN, (float *, CUevent, CUevent))

/* Graphs */
CUFN(cuStreamBeginCaptureToGraph, , 12030, PTSZ,
     (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUstreamCaptureMode))
CUFN(cuStreamUpdateCaptureDependencies, , 11030, PTSZ,
     (CUstream, CUgraphNode *, size_t, unsigned int))
CUFN(cuStreamUpdateCaptureDependencies, _v2, 12030, PTSZ,
     (CUstream, CUgraphNode *, const CUgraphEdgeData *, size_t, unsigned int))
CUFN(cuGraphCreate, , 10000, PLAIN, (CUgraph *, unsigned int))
CUFN(cuGraphDestroy, , 10000, PLAIN, (CUgraph))
CUFN(cuGraphClone, , 10000, PLAIN, (CUgraph *, CUgraph))
CUFN(cuGraphNodeFindInClone, , 10000, PLAIN, (CUgraphNode *, CUgraphNode, CUgraph))
CUFN(cuGraphAddKernelNode, , 10000, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS_v1 *))
CUFN(cuGraphAddKernelNode, _v2, 12000, PLAIN, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
	const CUDA_KERNEL_NODE_PARAMS_v2 *))
CUFN(cuGraphAddMemcpyNode, , 10000, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext))
CUFN(cuGraphAddMemsetNode, , 10000, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,
      CUcontext))
CUFN(cuGraphAddHostNode, , 10000, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *))
CUFN(cuGraphAddChildGraphNode, , 10000, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph))
CUFN(cuGraphAddEmptyNode, , 10000, PLAIN, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t))
CUFN(cuGraphAddEventRecordNode, , 11010, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent))
CUFN(cuGraphAddEventWaitNode, , 11010, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent))
CUFN(cuGraphAddMemAllocNode, , 11040, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *))
CUFN(cuGraphMemAllocNodeGetParams, , 11040, PLAIN, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS *))
CUFN(cuGraphAddMemFreeNode, , 11040, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr))
CUFN(cuGraphMemFreeNodeGetParams, , 11040, PLAIN, (CUgraphNode, CUdeviceptr *))
CUFN(cuGraphAddBatchMemOpNode, , 11070, PLAIN, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *))
CUFN(cuGraphAddNode, , 12020, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *))
CUFN(cuGraphAddNode, _v2, 12030, PLAIN,
     (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
      CUgraphNodeParams *))
CUFN(cuGraphDestroyNode, , 10000, PLAIN, (CUgraphNode))
CUFN(cuGraphNodeGetType, , 10000, PLAIN, (CUgraphNode, CUgraphNodeType *))
CUFN(cuGraphKernelNodeGetParams, , 10000, PLAIN, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *))
CUFN(cuGraphKernelNodeGetParams, _v2, 12000, PLAIN, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *))
CUFN(cuGraphKernelNodeSetParams, , 10000, PLAIN, (CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *))
CUFN(cuGraphKernelNodeSetParams, _v2, 12000, PLAIN,
     (CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2 *))
CUFN(cuGraphKernelNodeGetAttribute, , 11000, PLAIN,
     (CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue *))
CUFN(cuGraphKernelNodeSetAttribute, , 11000, PLAIN,
     (CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue *))
CUFN(cuGraphMemcpyNodeGetParams, , 10000, PLAIN, (CUgraphNode, CUDA_MEMCPY3D *))
CUFN(cuGraphMemcpyNodeSetParams, , 10000, PLAIN, (CUgraphNode, const CUDA_MEMCPY3D *))
CUFN(cuGraphMemsetNodeGetParams, , 10000, PLAIN, (CUgraphNode, CUDA_MEMSET_NODE_PARAMS *))
CUFN(cuGraphMemsetNodeSetParams, , 10000, PLAIN, (CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *))
CUFN(cuGraphHostNodeGetParams, , 10000, PLAIN, (CUgraphNode, CUDA_HOST_NODE_PARAMS *))
CUFN(cuGraphHostNodeSetParams, , 10000, PLAIN, (CUgraphNode, const CUDA_HOST_NODE_PARAMS *))
CUFN(cuGraphChildGraphNodeGetGraph, , 10000, PLAIN, (CUgraphNode, CUgraph *))
CUFN(cuGraphGetNodes, , 10000, PLAIN, (CUgraph, CUgraphNode *, size_t *))
CUFN(cuGraphGetRootNodes, , 10000, PLAIN, (CUgraph, CUgraphNode *, size_t *))
CUFN(cuGraphGetEdges, , 10000, PLAIN, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *))
CUFN(cuGraphGetEdges, _v2, 12030, PLAIN,
     (CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *))
CUFN(cuGraphNodeGetDependencies, , 10000, PLAIN, (CUgraphNode, CUgraphNode *, size_t *))
CUFN(cuGraphNodeGetDependencies, _v2, 12030, PLAIN,
     (CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *))
CUFN(cuGraphNodeGetDependentNodes, , 10000, PLAIN, (CUgraphNode, CUgraphNode *, size_t *))
CUFN(cuGraphNodeGetDependentNodes, _v2, 12030, PLAIN,
     (CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *))
CUFN(cuGraphAddDependencies, , 10000, PLAIN,
     (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))
CUFN(cuGraphAddDependencies, _v2, 12030, PLAIN,
     (CUgraph, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t))
CUFN(cuGraphRemoveDependencies, , 10000, PLAIN,
     (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))
CUFN(cuGraphRemoveDependencies, _v2, 12030, PLAIN,
     (CUgraph, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t))
CUFN(cuGraphInstantiate, , 10000, PLAIN, (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))
CUFN(cuGraphInstantiate, _v2, 11000, PLAIN, (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))
CUFN(cuGraphInstantiateWithFlags, , 11040, PLAIN, (CUgraphExec *, CUgraph, unsigned long long))
CUFN(cuGraphInstantiateWithParams, , 12000, PTSZ,
     (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *))
CUFN(cuGraphUpload, , 11010, PTSZ, (CUgraphExec, CUstream))
CUFN(cuGraphLaunch, , 10000, PTSZ, (CUgraphExec, CUstream))
CUFN(cuGraphExecDestroy, , 10000, PLAIN, (CUgraphExec))
CUFN(cuGraphExecGetFlags, , 12000, PLAIN, (CUgraphExec, cuuint64_t *))
CUFN(cuGraphExecUpdate, , 10020, PLAIN,
     (CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *))
CUFN(cuGraphExecUpdate, _v2, 12000, PLAIN, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *))
CUFN(cuGraphExecKernelNodeSetParams, , 10010, PLAIN,
     (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *))
CUFN(cuGraphExecKernelNodeSetParams, _v2, 12000, PLAIN,
     (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v2 *))
CUFN(cuGraphExecNodeSetParams, , 12020, PLAIN, (CUgraphExec, CUgraphNode, CUgraphNodeParams *))
CUFN(cuGraphExecMemcpyNodeSetParams, , 10020, PLAIN,
     (CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D *, CUcontext))
CUFN(cuGraphExecMemsetNodeSetParams, , 10020, PLAIN,
     (CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *, CUcontext))
CUFN(cuGraphExecHostNodeSetParams, , 10020, PLAIN,
     (CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS *))
CUFN(cuUserObjectCreate, , 11030, PLAIN,
     (CUuserObject *, void *, CUhostFn, unsigned int, unsigned int))
CUFN(cuUserObjectRetain, , 11030, PLAIN, (CUuserObject, unsigned int))
CUFN(cuUserObjectRelease, , 11030, PLAIN, (CUuserObject, unsigned int))
CUFN(cuGraphRetainUserObject, , 11030, PLAIN, (CUgraph, CUuserObject, unsigned int, unsigned int))
CUFN(cuGraphReleaseUserObject, , 11030, PLAIN, (CUgraph, CUuserObject, unsigned int))

/* Profiler */
CUFN(cuProfilerStart, , 4000, PLAIN, (void))
CUFN(cuProfilerStop, , 4000, PLAIN, (void))
