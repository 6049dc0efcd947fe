/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One launch, independent of the API call that requested it. */
#ifndef GI_LAUNCH_H
#define GI_LAUNCH_H

#include "launch/pace.h"
#include "task/task.h"

struct gi_launch {
	CUfunction fn;			/* NULL: not a kernel */
	CUgraphExec graph;		/* NULL: not a graph */
	unsigned int grid[3], block[3], shared;
	CUstream stream;		/* CU_STREAM_PER_THREAD for the _ptsz calls' stream 0 */
	void **params, **extra;
	/* of cuLaunchKernelEx(); its attributes apply to the twin too */
	const CUlaunchConfig *config;
	bool opaque;			/* never use a twin */
	bool cooperative;		/* by cuLaunchCooperativeKernel() */
	bool raised;			/* it has another priority than the program gave it */
	bool lowered;			/* it has what the program gave it, its stream another */
	bool follows;			/* may overlap the launch before it on the stream */
	/* its start may overlap the end of its predecessor: enqueue nothing between the two */
	bool dependent;
	/* the driver's call, as the program made it */
	CUresult (*forward)(const struct gi_launch *l);
	const void *call;		/* further arguments for @forward */
};

CUresult gi_launch(const struct gi_launch *l);

/* ---- request.c ---- */

/* Sets @opaque, @follows and @dependent as the attributes of @l->config require. */
void gi_launch_attributes(struct gi_launch *l);
/* Called before @stream waits for an event: tasks may need its hardware queue (task/gate.c). */
void gi_launch_event_wait(CUstream stream);

/*
 * band.c: sets the time slice that the arbiter asks for, and reports activity. Called by the agent
 * with the client's lock held.
 */
void gi_band_update(struct gi_client *c);

#endif /* GI_LAUNCH_H */
