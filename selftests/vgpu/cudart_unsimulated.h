/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbols of the runtime API (CUDA 13) that have only to say that they are not simulated: X(symbol)
 */
#ifndef VGPU_CUDART_UNSIMULATED_H
#define VGPU_CUDART_UNSIMULATED_H

#define RT_UNSIMULATED(X) \
	X(__cudaGetProcAddress) X(__cudaRegisterHostVar) X(__cudaRegisterUnifiedTable) \
	X(cudaArrayGetInfo) \
	X(cudaArrayGetMemoryRequirements) X(cudaArrayGetPlane) X(cudaArrayGetSparseProperties) \
	X(cudaCreateChannelDesc) \
	X(cudaCreateSurfaceObject) X(cudaCreateTextureObject) X(cudaCtxResetPersistingL2Cache) \
	X(cudaDestroyExternalMemory) X(cudaDestroyExternalSemaphore) X(cudaDestroySurfaceObject) \
	X(cudaDestroyTextureObject) X(cudaDeviceDisablePeerAccess) X(cudaDeviceEnablePeerAccess) \
	X(cudaDeviceFlushGPUDirectRDMAWrites) \
	X(cudaDeviceGetHostAtomicCapabilities) \
	X(cudaDeviceGetNvSciSyncAttributes) \
	X(cudaDeviceGetP2PAtomicCapabilities) X(cudaDeviceGetP2PAttribute) \
	X(cudaDeviceGetTexture1DLinearMaxWidth) \
	X(cudaDeviceRegisterAsyncNotification) \
	X(cudaDeviceUnregisterAsyncNotification) X(cudaEGLStreamConsumerAcquireFrame) \
	X(cudaEGLStreamConsumerConnect) \
	X(cudaEGLStreamConsumerConnectWithFlags) X(cudaEGLStreamConsumerDisconnect) \
	X(cudaEGLStreamConsumerReleaseFrame) X(cudaEGLStreamProducerConnect) \
	X(cudaEGLStreamProducerDisconnect) \
	X(cudaEGLStreamProducerPresentFrame) X(cudaEGLStreamProducerReturnFrame) \
	X(cudaEventCreateFromEGLSync) \
	X(cudaExternalMemoryGetMappedBuffer) X(cudaExternalMemoryGetMappedMipmappedArray) \
	X(cudaFreeArray) \
	X(cudaFreeMipmappedArray) X(cudaGLGetDevices) \
	X(cudaGLMapBufferObject) \
	X(cudaGLMapBufferObjectAsync) X(cudaGLRegisterBufferObject) \
	X(cudaGLSetBufferObjectMapFlags) \
	X(cudaGLSetGLDevice) X(cudaGLUnmapBufferObject) X(cudaGLUnmapBufferObjectAsync) \
	X(cudaGLUnregisterBufferObject) \
	X(cudaGetChannelDesc) X(cudaGetExportTable) \
	X(cudaGetMipmappedArrayLevel) X(cudaGetSurfaceObjectResourceDesc) \
	X(cudaGetTextureObjectResourceDesc) \
	X(cudaGetTextureObjectResourceViewDesc) X(cudaGetTextureObjectTextureDesc) \
	X(cudaGraphAddExternalSemaphoresSignalNode) X(cudaGraphAddExternalSemaphoresWaitNode) \
	X(cudaGraphAddMemcpyNodeFromSymbol) \
	X(cudaGraphAddMemcpyNodeToSymbol) X(cudaGraphAddNode) X(cudaGraphChildGraphNodeGetGraph) \
	X(cudaGraphConditionalHandleCreate) X(cudaGraphDebugDotPrint) \
	X(cudaGraphEventRecordNodeGetEvent) \
	X(cudaGraphEventRecordNodeSetEvent) X(cudaGraphEventWaitNodeGetEvent) \
	X(cudaGraphEventWaitNodeSetEvent) \
	X(cudaGraphExecChildGraphNodeSetParams) X(cudaGraphExecEventRecordNodeSetEvent) \
	X(cudaGraphExecEventWaitNodeSetEvent) \
	X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExecExternalSemaphoresWaitNodeSetParams) X(cudaGraphExecGetFlags) \
	X(cudaGraphExecMemcpyNodeSetParamsFromSymbol) X(cudaGraphExecMemcpyNodeSetParamsToSymbol) \
	X(cudaGraphExecNodeSetParams) X(cudaGraphExternalSemaphoresSignalNodeGetParams) \
	X(cudaGraphExternalSemaphoresSignalNodeSetParams) \
	X(cudaGraphExternalSemaphoresWaitNodeGetParams) \
	X(cudaGraphExternalSemaphoresWaitNodeSetParams) X(cudaGraphHostNodeGetParams) \
	X(cudaGraphHostNodeSetParams) \
	X(cudaGraphInstantiateWithParams) X(cudaGraphInstantiateWithParams_ptsz) \
	X(cudaGraphKernelNodeCopyAttributes) \
	X(cudaGraphKernelNodeGetAttribute) X(cudaGraphKernelNodeGetParams) \
	X(cudaGraphKernelNodeSetAttribute) \
	X(cudaGraphMemcpyNodeGetParams) \
	X(cudaGraphMemcpyNodeSetParams) X(cudaGraphMemcpyNodeSetParams1D) \
	X(cudaGraphMemcpyNodeSetParamsFromSymbol) \
	X(cudaGraphMemcpyNodeSetParamsToSymbol) X(cudaGraphMemsetNodeGetParams) \
	X(cudaGraphMemsetNodeSetParams) \
	X(cudaGraphNodeFindInClone) X(cudaGraphNodeGetDependencies) \
	X(cudaGraphNodeGetDependentNodes) \
	X(cudaGraphNodeGetEnabled) X(cudaGraphNodeSetEnabled) X(cudaGraphNodeSetParams) \
	X(cudaGraphReleaseUserObject) \
	X(cudaGraphRemoveDependencies) X(cudaGraphRetainUserObject) \
	X(cudaGraphicsEGLRegisterImage) \
	X(cudaGraphicsGLRegisterBuffer) X(cudaGraphicsGLRegisterImage) X(cudaGraphicsMapResources) \
	X(cudaGraphicsResourceGetMappedEglFrame) X(cudaGraphicsResourceGetMappedMipmappedArray) \
	X(cudaGraphicsResourceGetMappedPointer) X(cudaGraphicsResourceSetMapFlags) \
	X(cudaGraphicsSubResourceGetMappedArray) X(cudaGraphicsUnmapResources) \
	X(cudaGraphicsUnregisterResource) \
	X(cudaGraphicsVDPAURegisterOutputSurface) X(cudaGraphicsVDPAURegisterVideoSurface) \
	X(cudaImportExternalMemory) \
	X(cudaImportExternalSemaphore) X(cudaIpcCloseMemHandle) X(cudaIpcGetEventHandle) \
	X(cudaIpcGetMemHandle) \
	X(cudaIpcOpenEventHandle) X(cudaIpcOpenMemHandle) X(cudaKernelSetAttributeForDevice) \
	X(cudaLibraryEnumerateKernels) X(cudaLibraryGetGlobal) X(cudaLibraryGetKernel) \
	X(cudaLibraryGetKernelCount) \
	X(cudaLibraryGetManaged) X(cudaLibraryGetUnifiedFunction) X(cudaLibraryLoadData) \
	X(cudaLibraryLoadFromFile) \
	X(cudaLibraryUnload) X(cudaLogsCurrent) X(cudaLogsDumpToFile) X(cudaLogsDumpToMemory) \
	X(cudaLogsRegisterCallback) X(cudaLogsUnregisterCallback) X(cudaMalloc3DArray) \
	X(cudaMallocArray) \
	X(cudaMallocMipmappedArray) \
	X(cudaMemDiscardAndPrefetchBatchAsync) X(cudaMemDiscardAndPrefetchBatchAsync_ptsz) \
	X(cudaMemDiscardBatchAsync) \
	X(cudaMemDiscardBatchAsync_ptsz) \
	X(cudaMemGetDefaultMemPool) X(cudaMemGetMemPool) X(cudaMemSetMemPool) \
	X(cudaMemPoolExportPointer) X(cudaMemPoolExportToShareableHandle) \
	X(cudaMemPoolImportFromShareableHandle) \
	X(cudaMemPoolImportPointer) \
	X(cudaMemPrefetchBatchAsync) \
	X(cudaMemPrefetchBatchAsync_ptsz) X(cudaMemRangeGetAttribute) X(cudaMemRangeGetAttributes) \
	X(cudaMemcpy2DArrayToArray) X(cudaMemcpy2DArrayToArray_ptds) X(cudaMemcpy2DFromArray) \
	X(cudaMemcpy2DFromArrayAsync) X(cudaMemcpy2DFromArrayAsync_ptsz) \
	X(cudaMemcpy2DFromArray_ptds) \
	X(cudaMemcpy2DToArray) X(cudaMemcpy2DToArrayAsync) X(cudaMemcpy2DToArrayAsync_ptsz) \
	X(cudaMemcpy2DToArray_ptds) \
	X(cudaMemcpy3DBatchAsync) X(cudaMemcpy3DBatchAsync_ptsz) X(cudaMemcpy3DPeer) \
	X(cudaMemcpy3DPeerAsync) \
	X(cudaMemcpy3DPeerAsync_ptsz) X(cudaMemcpy3DPeer_ptds) X(cudaMemcpyArrayToArray) \
	X(cudaMemcpyArrayToArray_ptds) \
	X(cudaMemcpyBatchAsync) X(cudaMemcpyBatchAsync_ptsz) X(cudaMemcpyFromArray) \
	X(cudaMemcpyFromArrayAsync) \
	X(cudaMemcpyFromArrayAsync_ptsz) X(cudaMemcpyFromArray_ptds) X(cudaMemcpyToArray) \
	X(cudaMemcpyToArrayAsync) \
	X(cudaMemcpyToArrayAsync_ptsz) X(cudaMemcpyToArray_ptds) X(cudaMemset3D) \
	X(cudaMemset3DAsync) \
	X(cudaMemset3DAsync_ptsz) X(cudaMemset3D_ptds) X(cudaMipmappedArrayGetMemoryRequirements) \
	X(cudaMipmappedArrayGetSparseProperties) X(cudaOccupancyMaxActiveClusters) \
	X(cudaOccupancyMaxPotentialClusterSize) X(cudaSignalExternalSemaphoresAsync) \
	X(cudaSignalExternalSemaphoresAsync_ptsz) X(cudaUserObjectCreate) X(cudaUserObjectRelease) \
	X(cudaUserObjectRetain) X(cudaVDPAUGetDevice) X(cudaVDPAUSetVDPAUDevice) \
	X(cudaWaitExternalSemaphoresAsync) \
	X(cudaWaitExternalSemaphoresAsync_ptsz)

#endif /* VGPU_CUDART_UNSIMULATED_H */
