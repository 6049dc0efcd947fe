// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What compute-sanitizer's tools are wrong about, with the pattern of race-patterns.c that shows
 * that it is the tool: a program that is not rewritten, correct, of the same shape, and reported.
 */
#include <string.h>
#include "gpu.h"

static const char counted[] = "loses track where warps come to different numbers of barriers with "
			      "a count: race-patterns counted-pair";
static const char remade[] = "does not see bulk copies end by an mbarrier that is made again in "
			     "its place: race-patterns bulk-again";
static const char words[] = "does not know threads that wait for words in shared memory: "
			    "race-patterns count";

static const char original[] = "reports the original, of which a lane is on its way to return "
			       "while its warp is at a barrier";

static const char places[] = "takes threads that wait for each other at two barrier instructions "
			     "for divergent: race-patterns two-places";

static const struct {
	const char *tool, *file, *kernel, *why;
} left_out[] = {
	{ "racecheck", "barriers", "counted_early", counted },
	{ "racecheck", "barriers", "arrive_early", counted },
	{ "racecheck", "barriers", "register_counted", counted },
	{ "racecheck", "barriers", "counted_between", counted },
	{ "racecheck", "mbarriers", "bulk", remade },
	{ "racecheck", "phases", "dives", words },
	{ "racecheck", "phases", "returns_first", words },
	{ "racecheck", "phases", "chosen", words },
	{ "racecheck", "phases", "whole", words },
	{ "racecheck", "phases", "votes_too", words },
	{ "racecheck", "tables", "through_barriers", words },
	{ "racecheck", "ends", "lanes_through_pointer", words },
	{ "racecheck", "ends", "both_ways", words },
	{ "racecheck", "lanes", "partial", words },
	{ "racecheck", "lanes", "reduces", words },
	{ "racecheck", "warps", "half_votes", words },
	{ "racecheck", "gathers", "halves", words },
	{ "racecheck", "gathers", "tiles", words },
	{ "racecheck", "gathers", "names_ended", words },
	{ "racecheck", "gathers", "two_places", words },
	{ "racecheck", "gathers", "waits_elsewhere", words },
	{ "racecheck", "gathers", "same_mask_twice", words },
	{ "racecheck", "gathers", "deepens", words },
	{ "racecheck", "gathers", "by_pointer", words },
	{ "racecheck", "gathers", "takes_part", words },
	{ "racecheck", "gathers", "meets_too", words },
	{ "racecheck", "gathers", "phases_too", words },
	{ "racecheck", "gathers", "rows", words },
	{ "racecheck", "gathers", "bounded", words },
	{ "racecheck", "gathers", "were_there", words },
	{ "synccheck", "returns.clang", "divergent", original },
	{ "synccheck", "barriers", "skewed", places },
};

bool gpu_tool_known(const char *tool)
{
	return !strcmp(tool, "racecheck") || !strcmp(tool, "synccheck");
}

const char *gpu_tool_leaves_out(const char *tool, const char *path, const char *kernel)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t i;

	for (i = 0; tool && i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		size_t n = strlen(left_out[i].file);

		if (!strcmp(left_out[i].tool, tool) && !strncmp(left_out[i].file, base, n) &&
		    base[n] == '.' && !strcmp(left_out[i].kernel, kernel))
			return left_out[i].why;
	}
	return NULL;
}
