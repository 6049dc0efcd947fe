/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the entry functions share. */
#ifndef GI_ENTRY_H
#define GI_ENTRY_H

#include "process/process.h"

/*
 * Stream 0 of the _ptsz flavours is the thread's own: as CU_STREAM_PER_THREAD it means the same
 * to the plain flavours.
 */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

#endif /* GI_ENTRY_H */
