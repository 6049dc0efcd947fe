/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GI_RAISE_H
#define GI_RAISE_H

#include "launch/launch.h"

/* A launch whose priority is not the program's */
struct gi_raised {
	struct gi_launch l;
	CUlaunchConfig config;
	CUlaunchAttribute attr[16];	/* launches with more keep what they ask for */
};

/*
 * @l with the priority that it is to have, in *@to; or @l itself if that is what it has already.
 * Not for launches that are captured.
 */
const struct gi_launch *gi_raise(const struct gi_launch *l, const struct gi_ctx *cx,
				 struct gi_raised *to);
/* For those: with what the program gave them, so that it finds that in the nodes. */
const struct gi_launch *gi_unraise(const struct gi_launch *l, struct gi_raised *to);

#endif /* GI_RAISE_H */
