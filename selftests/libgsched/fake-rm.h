/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the fake resource manager does and has seen: fake-rm.c. */
#ifndef FAKE_RM_H
#define FAKE_RM_H

#include <stdbool.h>

struct fake_rm {
	bool control[64];		/* by descriptor: it is the control node */
	unsigned int calls, sets, gids;
	unsigned int refuse;		/* NV_STATUS for slices other than libcuda's own; 0: none */
	unsigned int refuse_mode;	/* NV_STATUS for preemption modes other than libcuda's
					 * own */
	unsigned int last_group;
	/* calls for the mode, and the last one's */
	unsigned int modes, last_mode, mode_group, mode_object;
	unsigned long long last_us;
};

extern struct fake_rm fake_rm;

#endif
