/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime API over vgpu's driver API, or whichever libcuda.so.1 the linker gives. Our own
 * declarations of what programs built by nvcc 13 with -cudart shared call; layouts and values are
 * CUDA 13's.
 */
#ifndef VGPU_CUDART_H
#define VGPU_CUDART_H

#include <stdbool.h>
#include "libgsched/cuda/base/cudadrv.h"

#define RT_API __attribute__((visibility("default")))

/* Runtime errors are the driver's numbers, but for a few: X(name, value) */
#define RT_ERRORS(X) \
	X(cudaSuccess, 0) X(cudaErrorInvalidValue, 1) X(cudaErrorMemoryAllocation, 2) \
	X(cudaErrorInitializationError, 3) X(cudaErrorCudartUnloading, 4) \
	X(cudaErrorProfilerDisabled, 5) \
	X(cudaErrorProfilerNotInitialized, 6) X(cudaErrorProfilerAlreadyStarted, 7) \
	X(cudaErrorProfilerAlreadyStopped, 8) X(cudaErrorInvalidConfiguration, 9) \
	X(cudaErrorInvalidPitchValue, 12) \
	X(cudaErrorInvalidSymbol, 13) X(cudaErrorInvalidHostPointer, 16) \
	X(cudaErrorInvalidDevicePointer, 17) \
	X(cudaErrorInvalidTexture, 18) X(cudaErrorInvalidTextureBinding, 19) \
	X(cudaErrorInvalidChannelDescriptor, 20) X(cudaErrorInvalidMemcpyDirection, 21) \
	X(cudaErrorAddressOfConstant, 22) X(cudaErrorTextureFetchFailed, 23) \
	X(cudaErrorTextureNotBound, 24) \
	X(cudaErrorSynchronizationError, 25) X(cudaErrorInvalidFilterSetting, 26) \
	X(cudaErrorInvalidNormSetting, 27) X(cudaErrorMixedDeviceExecution, 28) \
	X(cudaErrorNotYetImplemented, 31) \
	X(cudaErrorMemoryValueTooLarge, 32) X(cudaErrorStubLibrary, 34) \
	X(cudaErrorInsufficientDriver, 35) \
	X(cudaErrorCallRequiresNewerDriver, 36) X(cudaErrorInvalidSurface, 37) \
	X(cudaErrorDuplicateVariableName, 43) X(cudaErrorDuplicateTextureName, 44) \
	X(cudaErrorDuplicateSurfaceName, 45) X(cudaErrorDevicesUnavailable, 46) \
	X(cudaErrorIncompatibleDriverContext, 49) X(cudaErrorMissingConfiguration, 52) \
	X(cudaErrorPriorLaunchFailure, 53) X(cudaErrorLaunchMaxDepthExceeded, 65) \
	X(cudaErrorLaunchFileScopedTex, 66) X(cudaErrorLaunchFileScopedSurf, 67) \
	X(cudaErrorSyncDepthExceeded, 68) \
	X(cudaErrorLaunchPendingCountExceeded, 69) X(cudaErrorInvalidDeviceFunction, 98) \
	X(cudaErrorNoDevice, 100) \
	X(cudaErrorInvalidDevice, 101) X(cudaErrorDeviceNotLicensed, 102) \
	X(cudaErrorSoftwareValidityNotEstablished, 103) X(cudaErrorStartupFailure, 127) \
	X(cudaErrorInvalidKernelImage, 200) X(cudaErrorDeviceUninitialized, 201) \
	X(cudaErrorMapBufferObjectFailed, 205) X(cudaErrorUnmapBufferObjectFailed, 206) \
	X(cudaErrorArrayIsMapped, 207) X(cudaErrorAlreadyMapped, 208) \
	X(cudaErrorNoKernelImageForDevice, 209) \
	X(cudaErrorAlreadyAcquired, 210) X(cudaErrorNotMapped, 211) \
	X(cudaErrorNotMappedAsArray, 212) \
	X(cudaErrorNotMappedAsPointer, 213) X(cudaErrorECCUncorrectable, 214) \
	X(cudaErrorUnsupportedLimit, 215) \
	X(cudaErrorDeviceAlreadyInUse, 216) X(cudaErrorPeerAccessUnsupported, 217) \
	X(cudaErrorInvalidPtx, 218) \
	X(cudaErrorInvalidGraphicsContext, 219) X(cudaErrorNvlinkUncorrectable, 220) \
	X(cudaErrorJitCompilerNotFound, 221) X(cudaErrorUnsupportedPtxVersion, 222) \
	X(cudaErrorJitCompilationDisabled, 223) X(cudaErrorUnsupportedExecAffinity, 224) \
	X(cudaErrorUnsupportedDevSideSync, 225) X(cudaErrorContained, 226) \
	X(cudaErrorInvalidSource, 300) \
	X(cudaErrorFileNotFound, 301) X(cudaErrorSharedObjectSymbolNotFound, 302) \
	X(cudaErrorSharedObjectInitFailed, 303) X(cudaErrorOperatingSystem, 304) \
	X(cudaErrorInvalidResourceHandle, 400) X(cudaErrorIllegalState, 401) \
	X(cudaErrorLossyQuery, 402) \
	X(cudaErrorSymbolNotFound, 500) X(cudaErrorNotReady, 600) X(cudaErrorIllegalAddress, 700) \
	X(cudaErrorLaunchOutOfResources, 701) X(cudaErrorLaunchTimeout, 702) \
	X(cudaErrorLaunchIncompatibleTexturing, 703) X(cudaErrorPeerAccessAlreadyEnabled, 704) \
	X(cudaErrorPeerAccessNotEnabled, 705) X(cudaErrorSetOnActiveProcess, 708) \
	X(cudaErrorContextIsDestroyed, 709) X(cudaErrorAssert, 710) X(cudaErrorTooManyPeers, 711) \
	X(cudaErrorHostMemoryAlreadyRegistered, 712) X(cudaErrorHostMemoryNotRegistered, 713) \
	X(cudaErrorHardwareStackError, 714) X(cudaErrorIllegalInstruction, 715) \
	X(cudaErrorMisalignedAddress, 716) \
	X(cudaErrorInvalidAddressSpace, 717) X(cudaErrorInvalidPc, 718) \
	X(cudaErrorLaunchFailure, 719) \
	X(cudaErrorCooperativeLaunchTooLarge, 720) X(cudaErrorTensorMemoryLeak, 721) \
	X(cudaErrorNotPermitted, 800) \
	X(cudaErrorNotSupported, 801) X(cudaErrorSystemNotReady, 802) \
	X(cudaErrorSystemDriverMismatch, 803) \
	X(cudaErrorCompatNotSupportedOnDevice, 804) X(cudaErrorMpsConnectionFailed, 805) \
	X(cudaErrorMpsRpcFailure, 806) X(cudaErrorMpsServerNotReady, 807) \
	X(cudaErrorMpsMaxClientsReached, 808) \
	X(cudaErrorMpsMaxConnectionsReached, 809) X(cudaErrorMpsClientTerminated, 810) \
	X(cudaErrorCdpNotSupported, 811) X(cudaErrorCdpVersionMismatch, 812) \
	X(cudaErrorStreamCaptureUnsupported, 900) X(cudaErrorStreamCaptureInvalidated, 901) \
	X(cudaErrorStreamCaptureMerge, 902) X(cudaErrorStreamCaptureUnmatched, 903) \
	X(cudaErrorStreamCaptureUnjoined, 904) X(cudaErrorStreamCaptureIsolation, 905) \
	X(cudaErrorStreamCaptureImplicit, 906) X(cudaErrorCapturedEvent, 907) \
	X(cudaErrorStreamCaptureWrongThread, 908) X(cudaErrorTimeout, 909) \
	X(cudaErrorGraphExecUpdateFailure, 910) \
	X(cudaErrorExternalDevice, 911) X(cudaErrorInvalidClusterSize, 912) \
	X(cudaErrorFunctionNotLoaded, 913) \
	X(cudaErrorInvalidResourceType, 914) X(cudaErrorInvalidResourceConfiguration, 915) \
	X(cudaErrorUnknown, 999) \
	X(cudaErrorApiFailureBase, 10000)

typedef enum cudaError {
#define X(name, value) name = value,
	RT_ERRORS(X)
#undef X
} cudaError_t;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUkernel cudaKernel_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef struct cudaArray *cudaArray_t;

typedef struct dim3 {
	unsigned int x, y, z;
} dim3;

enum cudaMemcpyKind {
	cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice, cudaMemcpyDefault,
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice,
		      cudaMemoryTypeManaged };

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct cudaExtent {
	size_t width, height, depth;
};
struct cudaPos {
	size_t x, y, z;
};
struct cudaMemcpy3DParms {
	cudaArray_t srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	cudaArray_t dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
};
struct cudaMemsetParams {
	void *dst;
	size_t pitch;
	unsigned int value, elementSize;
	size_t width, height;
};
struct cudaHostNodeParams {
	CUhostFn fn;
	void *userData;
};

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer, *hostPointer;
	long reserved[8];
};

struct cudaFuncAttributes {
	size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
	int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
		maxDynamicSharedSizeBytes;
	int preferredShmemCarveout, clusterDimMustBeSet;
	int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
	int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
	int reserved[16];
};

typedef struct cudaLaunchConfig_st {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	CUlaunchAttribute *attrs;	/* the same as the driver's */
	unsigned int numAttrs;
} cudaLaunchConfig_t;

struct cudaDeviceProp {
	char name[256];
	CUuuid uuid;
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int multiProcessorCount, integrated, canMapHostMemory;
	int maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2],
		maxTexture2DLinear[3];
	int maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap,
		maxTexture1DLayered[2];
	int maxTexture2DLayered[3], maxTextureCubemapLayered[2];
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2],
		maxSurface2DLayered[3];
	int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
		asyncEngineCount;
	int unifiedAddressing, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
		maxThreadsPerMultiProcessor;
	int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
		hostNativeAtomicSupported;
	int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
	int canUseHostPointerForRegisteredMem, cooperativeLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
		maxBlocksPerMultiProcessor;
	int accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned int gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned int memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch,
		unifiedFunctionPointers;
	int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
	unsigned int gpuPciDeviceID, gpuPciSubsystemID;
	int hostNumaMultinodeIpcSupported;
	int reserved[56];
};

/*
 * The driver's functions, by cuGetProcAddress: X(name, symbol that has the type). Asked for as of
 * CUDA 12.8: in 13.0 some names, cuCtxSynchronize for one, got a version with other parameters.
 */
#define RT_DRIVER_VERSION 12080
#define RT_DRIVER(X) \
	X(cuInit, cuInit) X(cuDriverGetVersion, cuDriverGetVersion) \
	X(cuDeviceGetCount, cuDeviceGetCount) \
	X(cuDeviceGetName, cuDeviceGetName) X(cuDeviceGetUuid, cuDeviceGetUuid_v2) \
	X(cuDeviceTotalMem, cuDeviceTotalMem_v2) X(cuDeviceGetAttribute, cuDeviceGetAttribute) \
	X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId) \
	X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId) \
	X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer) \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain) \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2) \
	X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2) \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState) \
	X(cuCtxGetDevice, cuCtxGetDevice) X(cuStreamGetDevice, cuStreamGetDevice) \
	X(cuMemcpyPeer, cuMemcpyPeer) X(cuMemcpyPeerAsync, cuMemcpyPeerAsync) \
	X(cuCtxGetCurrent, cuCtxGetCurrent) X(cuCtxSetCurrent, cuCtxSetCurrent) \
	X(cuCtxSynchronize, cuCtxSynchronize) X(cuCtxSetLimit, cuCtxSetLimit) \
	X(cuCtxGetLimit, cuCtxGetLimit) \
	X(cuCtxGetCacheConfig, cuCtxGetCacheConfig) X(cuCtxSetCacheConfig, cuCtxSetCacheConfig) \
	X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig) \
	X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig) \
	X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange) \
	X(cuLibraryLoadData, cuLibraryLoadData) X(cuLibraryUnload, cuLibraryUnload) \
	X(cuLibraryGetKernel, cuLibraryGetKernel) X(cuLibraryGetGlobal, cuLibraryGetGlobal) \
	X(cuLibraryGetManaged, cuLibraryGetManaged) \
	X(cuKernelGetAttribute, cuKernelGetAttribute) \
	X(cuKernelSetAttribute, cuKernelSetAttribute) \
	X(cuKernelSetCacheConfig, cuKernelSetCacheConfig) \
	X(cuKernelGetFunction, cuKernelGetFunction) \
	X(cuKernelGetName, cuKernelGetName) X(cuKernelGetParamInfo, cuKernelGetParamInfo) \
	X(cuLaunchKernel, cuLaunchKernel) X(cuLaunchKernelEx, cuLaunchKernelEx) \
	X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel) \
	X(cuLaunchHostFunc, cuLaunchHostFunc) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, \
	  cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock) \
	X(cuMemGetInfo, cuMemGetInfo_v2) X(cuMemAlloc, cuMemAlloc_v2) \
	X(cuMemAllocPitch, cuMemAllocPitch_v2) \
	X(cuMemFree, cuMemFree_v2) X(cuMemHostAlloc, cuMemHostAlloc) \
	X(cuMemFreeHost, cuMemFreeHost) \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2) \
	X(cuMemHostGetFlags, cuMemHostGetFlags) \
	X(cuMemHostRegister, cuMemHostRegister_v2) X(cuMemHostUnregister, cuMemHostUnregister) \
	X(cuMemAllocManaged, cuMemAllocManaged) X(cuMemAdvise, cuMemAdvise_v2) \
	X(cuMemAllocAsync, cuMemAllocAsync) X(cuMemFreeAsync, cuMemFreeAsync) \
	X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool) \
	X(cuDeviceGetMemPool, cuDeviceGetMemPool) \
	X(cuDeviceSetMemPool, cuDeviceSetMemPool) \
	X(cuMemPoolCreate, cuMemPoolCreate) \
	X(cuMemPoolDestroy, cuMemPoolDestroy) \
	X(cuMemPoolTrimTo, cuMemPoolTrimTo) \
	X(cuMemPoolSetAttribute, cuMemPoolSetAttribute) \
	X(cuMemPoolGetAttribute, cuMemPoolGetAttribute) \
	X(cuMemPoolSetAccess, cuMemPoolSetAccess) \
	X(cuMemPoolGetAccess, cuMemPoolGetAccess) \
	X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync) \
	X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode) \
	X(cuGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams) \
	X(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode) \
	X(cuGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams) \
	X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim) \
	X(cuDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute) \
	X(cuDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute) \
	X(cuMemPrefetchAsync, cuMemPrefetchAsync_v2) \
	X(cuPointerGetAttributes, cuPointerGetAttributes) \
	X(cuMemcpy, cuMemcpy) X(cuMemcpyAsync, cuMemcpyAsync) \
	X(cuMemcpyHtoD, cuMemcpyHtoD_v2) X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2) \
	X(cuMemcpyDtoH, cuMemcpyDtoH_v2) X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2) \
	X(cuMemcpyDtoD, cuMemcpyDtoD_v2) X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2) \
	X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2) X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2) \
	X(cuMemcpy3D, cuMemcpy3D_v2) X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2) \
	X(cuMemsetD8, cuMemsetD8_v2) X(cuMemsetD8Async, cuMemsetD8Async) \
	X(cuMemsetD2D8, cuMemsetD2D8_v2) X(cuMemsetD2D8Async, cuMemsetD2D8Async) \
	X(cuStreamCreateWithPriority, cuStreamCreateWithPriority) \
	X(cuStreamDestroy, cuStreamDestroy_v2) \
	X(cuStreamGetPriority, cuStreamGetPriority) X(cuStreamGetFlags, cuStreamGetFlags) \
	X(cuStreamGetId, cuStreamGetId) X(cuStreamWaitEvent, cuStreamWaitEvent) \
	X(cuStreamAddCallback, cuStreamAddCallback) X(cuStreamQuery, cuStreamQuery) \
	X(cuStreamSynchronize, cuStreamSynchronize) X(cuStreamIsCapturing, cuStreamIsCapturing) \
	X(cuStreamAttachMemAsync, cuStreamAttachMemAsync) \
	X(cuStreamCopyAttributes, cuStreamCopyAttributes) \
	X(cuStreamGetAttribute, cuStreamGetAttribute) \
	X(cuStreamSetAttribute, cuStreamSetAttribute) \
	X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode) \
	X(cuStreamBeginCapture, cuStreamBeginCapture_v2) \
	X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph) \
	X(cuStreamEndCapture, cuStreamEndCapture) \
	X(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3) \
	X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2) \
	X(cuGraphCreate, cuGraphCreate) X(cuGraphDestroy, cuGraphDestroy) \
	X(cuGraphClone, cuGraphClone) \
	X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2) \
	X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode) \
	X(cuGraphAddMemsetNode, cuGraphAddMemsetNode) X(cuGraphAddHostNode, cuGraphAddHostNode) \
	X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode) \
	X(cuGraphAddEmptyNode, cuGraphAddEmptyNode) \
	X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode) \
	X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode) \
	X(cuGraphAddDependencies, cuGraphAddDependencies_v2) \
	X(cuGraphDestroyNode, cuGraphDestroyNode) \
	X(cuGraphNodeGetType, cuGraphNodeGetType) X(cuGraphGetNodes, cuGraphGetNodes) \
	X(cuGraphGetRootNodes, cuGraphGetRootNodes) X(cuGraphGetEdges, cuGraphGetEdges_v2) \
	X(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams_v2) \
	X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags) \
	X(cuGraphUpload, cuGraphUpload) \
	X(cuGraphLaunch, cuGraphLaunch) X(cuGraphExecDestroy, cuGraphExecDestroy) \
	X(cuGraphExecUpdate, cuGraphExecUpdate_v2) \
	X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2) \
	X(cuGraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams) \
	X(cuGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams) \
	X(cuGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams) \
	X(cuEventCreate, cuEventCreate) X(cuEventRecord, cuEventRecord) \
	X(cuEventRecordWithFlags, cuEventRecordWithFlags) X(cuEventQuery, cuEventQuery) \
	X(cuEventSynchronize, cuEventSynchronize) X(cuEventDestroy, cuEventDestroy_v2) \
	X(cuEventElapsedTime, cuEventElapsedTime_v2) X(cuProfilerStart, cuProfilerStart) \
	X(cuProfilerStop, cuProfilerStop)

struct rt_driver {
#define X(name, symbol) __typeof__(symbol) *p_##name;
	RT_DRIVER(X)
#undef X
};
/* [0] for the legacy default stream, [1] for the per-thread one */
extern struct rt_driver rt_driver[2];

cudaError_t rt_ready(void);		/* driver loaded and initialized */
cudaError_t rt_context(void);		/* and a context current in this thread */
#define RT_DEVICES 8
cudaError_t rt_set_device(int dev);	/* its primary context is current in this thread */
/* of the current context, or the one that rt_context() would make current */
int rt_device(void);
CUresult rt_primary(int dev, CUcontext *ctx);	/* retained until the device is reset */
cudaError_t rt_error(CUresult r);	/* remembers it for cudaGetLastError */
void rt_remember(cudaError_t e);
static inline cudaError_t rt_fail(cudaError_t e)
{
	rt_remember(e);
	return e;
}
cudaError_t rt_kernel(const void *host, CUkernel *kernel);
cudaError_t rt_variable(const void *host, CUdeviceptr *ptr, size_t *size);
/* the driver's parameters of it */
cudaError_t rt_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *c);
/* the device is reset. Libraries outlive it: programs keep kernel handles */
void rt_forget_context(int dev);

/* Call the driver once there is a context */
#define RT_CALL(own, name, ...) \
	({ cudaError_t _e = rt_context(); \
	   _e ? _e : rt_error(rt_driver[own].p_##name(__VA_ARGS__)); })

/* A call and its twin for the per-thread default stream */
#define RT_BOTH(name, suffix, params, call) \
	RT_API cudaError_t name params; \
	RT_API cudaError_t name##suffix params; \
	RT_API cudaError_t name params \
	{ \
		const bool own = false; \
		return call; \
	} \
	RT_API cudaError_t name##suffix params \
	{ \
		const bool own = true; \
		return call; \
	}
#define RT_FN(name, params) \
	RT_API cudaError_t name params; \
	RT_API cudaError_t name params

#endif /* VGPU_CUDART_H */
