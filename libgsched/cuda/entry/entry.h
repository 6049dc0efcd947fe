/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the entry functions. */
#ifndef GI_ENTRY_H
#define GI_ENTRY_H

#include "process/process.h"

/*
 * Stream 0 of the _ptsz variants is the thread's own default stream, which the plain functions call
 * CU_STREAM_PER_THREAD.
 */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

#endif /* GI_ENTRY_H */
