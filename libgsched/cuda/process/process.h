/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What becomes of the process: its first call of the driver, the agents, the ends of code and
 * contexts, fork and exit. Here alone is decided in which order things end: tasks of the client,
 * pacing, twins, memory and streams, functions, the context.
 */
#ifndef GI_PROCESS_H
#define GI_PROCESS_H

#include "launch/launch.h"

/* To begin a managed function with: no driver, no call. */
#define GI_ENTER() do { if (!gi_hot.begun && !gi_begin()) return CUDA_ERROR_NOT_INITIALIZED; } while (0)

bool gi_begin(void);					/* false: there is no driver */

/* agent.c */
int gi_agent_start(struct gi_client *c);
void gi_agent_stop(struct gi_client *c, uint64_t timeout_ns);	/* for good; locks nothing */

/* ending.c */
void gi_unloading(void *handle);			/* before the driver unloads it: tasks end first */
void gi_ctx_ending(CUcontext handle);			/* before it is destroyed: tasks end, streams go */
void gi_primary_retained(CUdevice dev);
bool gi_primary_ending(CUdevice dev, bool reset);	/* true: gi_primary_ended() is to follow */
void gi_primary_ended(CUdevice dev);
void gi_primary_reset(void);				/* after fork */

#endif /* GI_PROCESS_H */
