/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbols of the driver API (CUDA 13) that vgpu has only to say that it does not simulate them:
 * X(symbol)
 */
#ifndef VGPU_UNSIMULATED_H
#define VGPU_UNSIMULATED_H

/* declared in cudadrv.h, as others use them */
#define VG_UNSIMULATED_DECLARED(X) \
	X(cuCtxDisablePeerAccess) X(cuCtxEnablePeerAccess) \
	X(cuCtxGetExecAffinity) \
	X(cuDeviceGetP2PAttribute) \
	X(cuLibraryGetUnifiedFunction) \
	X(cuMipmappedArrayDestroy) X(cuOccupancyMaxActiveClusters) \
	X(cuOccupancyMaxPotentialClusterSize)

#define VG_UNSIMULATED(X) \
	X(cuArray3DCreate) X(cuArray3DGetDescriptor) X(cuArrayCreate) X(cuArrayGetDescriptor) \
	X(cuArrayGetMemoryRequirements) X(cuArrayGetPlane) X(cuArrayGetSparseProperties) \
	X(cuCheckpointProcessCheckpoint) X(cuCheckpointProcessGetRestoreThreadId) \
	X(cuCheckpointProcessGetState) X(cuCheckpointProcessLock) X(cuCheckpointProcessRestore) \
	X(cuCheckpointProcessUnlock) X(cuCoredumpGetAttribute) X(cuCoredumpGetAttributeGlobal) \
	X(cuCoredumpSetAttribute) X(cuCoredumpSetAttributeGlobal) \
	X(cuCtxGetDevResource) \
	X(cuCtxRecordEvent) X(cuDestroyExternalMemory) \
	X(cuDestroyExternalSemaphore) \
	X(cuDevResourceGenerateDesc) X(cuDevSmResourceSplitByCount) X(cuDeviceGetDevResource) \
	X(cuDeviceGetHostAtomicCapabilities) \
	X(cuDeviceGetNvSciSyncAttributes) \
	X(cuDeviceGetP2PAtomicCapabilities) X(cuDeviceGetTexture1DLinearMaxWidth) \
	X(cuDeviceRegisterAsyncNotification) X(cuDeviceTotalMem) \
	X(cuDeviceUnregisterAsyncNotification) X(cuEGLStreamConsumerDisconnect) \
	X(cuEGLStreamProducerConnect) X(cuEGLStreamProducerDisconnect) \
	X(cuEGLStreamProducerPresentFrame) X(cuEGLStreamProducerReturnFrame) \
	X(cuExternalMemoryGetMappedBuffer) \
	X(cuExternalMemoryGetMappedMipmappedArray) X(cuFlushGPUDirectRDMAWrites) \
	X(cuGraphAddExternalSemaphoresSignalNode) \
	X(cuGraphAddExternalSemaphoresWaitNode) \
	X(cuGraphBatchMemOpNodeGetParams) X(cuGraphBatchMemOpNodeSetParams) \
	X(cuGraphConditionalHandleCreate) \
	X(cuGraphDebugDotPrint) X(cuGraphEventRecordNodeGetEvent) \
	X(cuGraphEventRecordNodeSetEvent) \
	X(cuGraphEventWaitNodeGetEvent) X(cuGraphEventWaitNodeSetEvent) \
	X(cuGraphExecBatchMemOpNodeSetParams) \
	X(cuGraphExecChildGraphNodeSetParams) X(cuGraphExecEventRecordNodeSetEvent) \
	X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(cuGraphExecExternalSemaphoresWaitNodeSetParams) \
	X(cuGraphExternalSemaphoresSignalNodeGetParams) \
	X(cuGraphExternalSemaphoresSignalNodeSetParams) \
	X(cuGraphExternalSemaphoresWaitNodeGetParams) \
	X(cuGraphExternalSemaphoresWaitNodeSetParams) \
	X(cuGraphKernelNodeCopyAttributes) \
	X(cuGraphNodeGetEnabled) \
	X(cuGraphNodeSetEnabled) X(cuGraphNodeSetParams) X(cuGLGetDevices_v2) \
	X(cuGraphicsGLRegisterBuffer) X(cuGraphicsGLRegisterImage) X(cuGraphicsMapResources) \
	X(cuGraphicsMapResources_ptsz) X(cuGraphicsResourceGetMappedMipmappedArray) \
	X(cuGraphicsResourceGetMappedPointer) X(cuGraphicsResourceGetMappedPointer_v2) \
	X(cuGraphicsResourceSetMapFlags) X(cuGraphicsResourceSetMapFlags_v2) \
	X(cuGraphicsSubResourceGetMappedArray) X(cuGraphicsUnmapResources) \
	X(cuGraphicsUnmapResources_ptsz) \
	X(cuGraphicsUnregisterResource) \
	X(cuGreenCtxGetDevResource) \
	X(cuGreenCtxGetId) X(cuGreenCtxRecordEvent) \
	X(cuGreenCtxWaitEvent) \
	X(cuImportExternalMemory) X(cuImportExternalSemaphore) X(cuIpcCloseMemHandle) \
	X(cuIpcGetEventHandle) \
	X(cuIpcGetMemHandle) X(cuIpcOpenEventHandle) X(cuIpcOpenMemHandle) \
	X(cuIpcOpenMemHandle_v2) \
	X(cuLinkAddData) X(cuLinkAddFile) X(cuLinkCreate) \
	X(cuLogsCurrent) X(cuLogsDumpToFile) X(cuLogsDumpToMemory) X(cuLogsRegisterCallback) \
	X(cuLogsUnregisterCallback) X(cuMemAlloc) \
	X(cuMemAllocHost) \
	X(cuMemAllocPitch) X(cuMemBatchDecompressAsync) X(cuMemBatchDecompressAsync_ptsz) \
	X(cuMemDiscardAndPrefetchBatchAsync) X(cuMemDiscardAndPrefetchBatchAsync_ptsz) \
	X(cuMemDiscardBatchAsync) X(cuMemDiscardBatchAsync_ptsz) \
	X(cuMemFree) \
	X(cuMemGetAddressRange) \
	X(cuMemGetHandleForAddressRange) \
	X(cuMemGetInfo) X(cuMemHostGetDevicePointer) X(cuMemHostRegister) \
	X(cuMemMapArrayAsync) \
	X(cuMemMapArrayAsync_ptsz) \
	X(cuMemPoolExportPointer) \
	X(cuMemPoolExportToShareableHandle) \
	X(cuMemPoolImportFromShareableHandle) X(cuMemPoolImportPointer) \
	X(cuMemPrefetchBatchAsync) X(cuMemPrefetchBatchAsync_ptsz) \
	X(cuMemRangeGetAttribute) X(cuMemRangeGetAttributes) \
	X(cuMemcpy2D) X(cuMemcpy2DAsync) \
	X(cuMemcpy2DUnaligned) X(cuMemcpy3D) X(cuMemcpy3DAsync) \
	X(cuMemcpyAtoA) X(cuMemcpyAtoD) X(cuMemcpyAtoH) X(cuMemcpyAtoHAsync) X(cuMemcpyDtoA) \
	X(cuMemcpyDtoD) X(cuMemcpyDtoDAsync) X(cuMemcpyDtoH) X(cuMemcpyDtoHAsync) X(cuMemcpyHtoA) \
	X(cuMemcpyHtoAAsync) X(cuMemcpyHtoD) X(cuMemcpyHtoDAsync) X(cuMemsetD16) X(cuMemsetD2D16) \
	X(cuMemsetD2D32) X(cuMemsetD2D8) X(cuMemsetD32) X(cuMemsetD8) X(cuMipmappedArrayCreate) \
	X(cuMipmappedArrayGetLevel) X(cuMipmappedArrayGetMemoryRequirements) \
	X(cuMipmappedArrayGetSparseProperties) X(cuModuleGetGlobal) X(cuMulticastAddDevice) \
	X(cuMulticastBindAddr) X(cuMulticastBindMem) X(cuMulticastCreate) \
	X(cuMulticastGetGranularity) \
	X(cuMulticastUnbind) X(cuParamSetTexRef) \
	X(cuProfilerInitialize) X(cuSignalExternalSemaphoresAsync) \
	X(cuSignalExternalSemaphoresAsync_ptsz) \
	X(cuStreamGetGreenCtx) X(cuSurfRefGetArray) X(cuTensorMapEncodeIm2col) \
	X(cuTensorMapEncodeIm2colWide) \
	X(cuTensorMapEncodeTiled) X(cuTensorMapReplaceAddress) X(cuTexObjectGetResourceViewDesc) \
	X(cuTexRefCreate) X(cuTexRefDestroy) X(cuTexRefGetAddress) X(cuTexRefGetArray) \
	X(cuTexRefGetMipmappedArray) X(cuTexRefSetAddress) X(cuTexRefSetAddress2D) \
	X(cuWaitExternalSemaphoresAsync) X(cuWaitExternalSemaphoresAsync_ptsz)

#endif /* VGPU_UNSIMULATED_H */
