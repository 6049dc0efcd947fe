/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life cycle of the process: its first call of the driver, the agents, the unloading of code
 * and contexts, fork and exit. The order of teardown is decided only here: tasks of the client,
 * pacing, twins, memory and streams, functions, the context.
 */
#ifndef GI_PROCESS_H
#define GI_PROCESS_H

#include "launch/launch.h"

/* Managed functions begin with this: without a driver they fail. */
#define GI_ENTER() do {						\
	if (!gi_hot.begun && !gi_begin())			\
		return CUDA_ERROR_NOT_INITIALIZED;		\
} while (0)

bool gi_begin(void);					/* opens the driver; false: there is none */

/* agent.c */
int gi_agent_start(struct gi_client *c);
void gi_agent_replace(struct gi_client *c);		/* one that nothing wakes any more */
void gi_agent_stop(struct gi_client *c, uint64_t timeout_ns);	/* for good; takes no lock */

/* ending.c */
void gi_unloading(void *handle);	/* before the driver unloads it: its tasks end first */
void gi_ctx_ending(CUcontext handle);	/* before it is destroyed: its tasks end, streams go */
void gi_primary_retained(CUdevice dev, CUcontext handle);
bool gi_primary_ending(CUdevice dev, bool reset);	/* true: gi_primary_ended() must follow */
void gi_primary_ended(CUdevice dev);
void gi_primary_reset(void);				/* after fork */

#endif /* GI_PROCESS_H */
