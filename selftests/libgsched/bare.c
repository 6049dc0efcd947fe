// SPDX-License-Identifier: LGPL-2.1-or-later
/* A driver that has cuInit and nothing else. */
#include "libgsched/cuda/base/cudadrv.h"

__attribute__((visibility("default"))) CUresult cuInit(unsigned int flags)
{
	return CUDA_SUCCESS;
}
