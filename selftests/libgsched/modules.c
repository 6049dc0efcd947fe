// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Twins of kernels that use more of their module than their code: variables, tables of functions,
 * textures; and the modules of a program of the runtime API. On vgpu, with the stand-in arbiter.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "managed.h"

static const char *checksum(const struct run *r)
{
	const char *at = strstr(r->text, "checksum");

	return !r->status && at ? at : NULL;
}

/*
 * Twins share the original's variables with it and with the host. What the driver does not find by
 * name is copied where nobody can change it; otherwise the kernel has no twin.
 */
static void variables(void)
{
	static char *const what[] = { BUILD "/test/libgsched/variables",
				      "selftests/libgsched/variables.ptx", NULL };
	struct run alone, r;

	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	run(true, what, &r);
	stir_end();
	same(&r, &alone, "variables of a module");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20 &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] >= 10, "original and twin take turns");
	fake_stop(&f);

	setenv("VGPU_HIDE", "$str,$str$1,$str$2", 1);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, what, &r);
	same(&r, &alone, "literals that the driver does not find");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20, "have a copy: %s",
	   f.cl ? f.cl->header.why : "");
	fake_stop(&f);

	setenv("VGPU_HIDE", "quiet", 1);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, what, &r);
	same(&r, &alone, "a variable that the driver does not find");
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   !strcmp(f.cl->header.why, "step: tier launch: the driver does not find its "
		   "variable quiet"), "has none: %s",
	   f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	unsetenv("VGPU_HIDE");
}

/*
 * Functions by pointers from the program's tables, which it has changed before a twin was there.
 * Where it got at them by a way that is not followed, and where kernels change them, there is no
 * twin.
 */
static void tables(void)
{
	static char *const what[] = { BUILD "/test/libgsched/tables",
				      "selftests/libgsched/tables.ptx", NULL };
	static char *const aside[] = { BUILD "/test/libgsched/tables",
				       "selftests/libgsched/tables.ptx", "aside", NULL };
	static char *const early[] = { BUILD "/test/libgsched/tables",
				       "selftests/libgsched/tables.ptx", "early", NULL };
	struct run alone, r;
	int i;

	run(false, what, &alone);
	for (i = 0; i < 2; i++) {
		fake_begin(GSCHED_LEASE_NONE);
		stir_begin();
		run(true, i ? early : what, &r);
		stir_end();
		same(&r, &alone, i ? "asked for early" : "tables of functions");
		ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] == 12,
		   "step has a twin: %llu launches",
		   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0));
		if (!i)
			fake_stop(&f);
	}
	ok(f.cl && strstr(f.cl->header.why, "turns: tier launch: indirect call of functions that "
			  "kernels may have replaced in steps"),
	   "turns has none: %s", f.cl ? f.cl->header.why : "");
	fake_stop(&f);

	run(false, aside, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	run(true, aside, &r);
	same(&r, &alone, "tables that it got at by another way");
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] == 15, "no twin");
	fake_stop(&f);
}

/*
 * Texture and surface references: a wing of a task reads what was bound when the task was launched.
 * Where that is not known the original is launched.
 */
static void textures(void)
{
	static char *const what[] = { BUILD "/test/libgsched/textures",
				      "selftests/libgsched/textures.ptx", NULL };
	static char *const proc[] = { BUILD "/test/libgsched/textures",
				      "selftests/libgsched/textures.ptx", "proc", NULL };
	static char *const unbound[] = { BUILD "/test/libgsched/textures",
					 "selftests/libgsched/textures.ptx", "unbound", NULL };
	static char *const objects[] = { BUILD "/test/libgsched/textures",
					 "selftests/libgsched/textures.ptx", "objects", NULL };
	static char *const odd[] = { BUILD "/test/libgsched/textures",
				     "selftests/libgsched/textures.ptx", "odd", NULL };
	struct run alone, r;
	int i;

	run(false, what, &alone);
	for (i = 0; i < 4; i++) {
		setenv("GSCHED_RESUMABLE_ALWAYS", i == 3 ? "1" : "0", 1);
		fake_begin(GSCHED_LEASE_NONE);
		stir_begin();
		run(true, i == 2 ? proc : what, &r);
		stir_end();
		same(&r, &alone, i == 2 ? "references, by cuGetProcAddress" :
		     i == 3 ? "references, resumable" : "references");
		ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 20 && f.cl->header.wings,
		   "by twins (%llu launches) and wings (%llu): %s",
		   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
		   (unsigned long long)(f.cl ? f.cl->header.wings : 0),
		   f.cl ? f.cl->header.why : "");
		fake_stop(&f);
	}
	unsetenv("GSCHED_RESUMABLE_ALWAYS");
	/* destroyed while wings are to come: the driver keeps them for the gate in the stream */
	run(false, objects, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	run(true, objects, &r);
	stir_end();
	same(&r, &alone, "objects");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 10 && f.cl->header.wings,
	   "by twins (%llu launches) and wings (%llu): %s",
	   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_BLOCK] : 0),
	   (unsigned long long)(f.cl ? f.cl->header.wings : 0), f.cl ? f.cl->header.why : "");
	fake_stop(&f);
	for (i = 0; i < 2; i++) {
		run(false, i ? odd : unbound, &alone);
		fake_begin(GSCHED_LEASE_NONE);
		run(true, i ? odd : unbound, &r);
		same(&r, &alone, i ? "a format that is not the array's" :
		     "references that are not bound");
		ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
		   f.cl->header.managed[GSCHED_TIER_LAUNCH] >= 4, "the original: %llu launches",
		   (unsigned long long)(f.cl ? f.cl->header.managed[GSCHED_TIER_LAUNCH] : 0));
		fake_stop(&f);
	}
}

/* A program of the runtime API. */
static void runtime(void)
{
	static char *const what[] = {
		/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one path */
		BUILD "/programs/batch-rt", "--blocks", "256", "--threads", "64", "--iters", "300",
		"--kernels", "3", NULL,
	};
	struct run alone, r;

	if (access(what[0], X_OK) || access(BUILD "/vgpu/libcudart.so.13", R_OK)) {
		skip("a program of the runtime API", "not built: no nvcc");
		return;
	}
	run(false, what, &alone);
	fake_begin(GSCHED_LEASE_NONE);
	stir_begin();
	run(true, what, &r);
	stir_end();
	ok(checksum(&alone) && checksum(&r) && !strcmp(checksum(&alone), checksum(&r)),
	   "a program of the runtime API: results as alone");
	ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 3,
	   "and its launches are of tier block");
	fake_stop(&f);
}

int main(void)
{
	device_begin("modules");
	variables();
	tables();
	textures();
	runtime();
	device_end();
	return done();
}
