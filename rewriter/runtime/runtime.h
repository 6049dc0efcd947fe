/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime of a twin: the code around its body that makes a thread block a worker (abi.h). It is
 * written as fragments of PTX, X.ptx beside X.c, which says when each is inserted.
 * The passes of transform/ have run; nothing here looks at the body.
 */
#ifndef GSR_RUNTIME_H
#define GSR_RUNTIME_H

#include "rewriter/transform/resume.h"

/* What a block-task leaves behind that must be cleaned up before the next one */
struct gsr_cleanup {
	bool cp_async, bulk, mbarriers, alloca, swbarrier;
	const char *warpsync;		/* variable of software warp syncs; NULL: none */
};

/* loop.c: inserts the worker's loop. @resume: NULL unless the twin is resumable */
unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites,
		      const struct gsr_cleanup *cleanup, const struct gsr_ids *ids, int id,
		      const struct gsr_resume *resume);

/*
 * position.c: claims the worker's position, and initialises its state; releases the position.
 * @shared: functions read the grid from there
 */
unsigned int gsr_position_claim(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
				bool resumable, bool shared);
unsigned int gsr_position_release(struct gsr_pass *p, struct gsr_function *f);

/* own.c: the shared variables that a twin needs for itself */
#define GSR_OWN_MAX	6
#define GSR_ALIGNED	1024u	/* shared addresses of the kernel stay the same modulo this */
struct gsr_own {
	bool mbarriers, ended, swbarrier, warpsync;
	unsigned int own_warpsync;	/* bytes for software warp syncs of the kernel alone */
	bool aligned;			/* the kernel relies on the alignment of shared memory */
	bool inside;			/* functions do not name them: the kernel has them */
	bool behind;			/* likewise, behind dynamic shared memory */
};
/* @wide: those of the module are aligned to GSR_ALIGNED. Of .behind: of dynamic memory */
unsigned int gsr_own_bytes(const struct gsr_pass *p, const struct gsr_own *own, bool wide);
void gsr_own_declare(struct gsr_pass *p, struct gsr_function *f, const struct gsr_own *own);
struct gsr_var **gsr_own_module(struct gsr_pass *p, const struct gsr_own *own, bool wide,
				unsigned int *n);
struct gsr_var *gsr_own_dynamic(struct gsr_pass *p);	/* for .behind: names dynamic memory */

/*
 * Is there room for the static shared memory of the kernel and of the twin with @more bytes? With
 * @behind the twin needs none. A refusal or NULL
 */
const char *gsr_shared_room(struct gsr_pass *p, const struct gsr_closure *c, unsigned int more,
			    bool behind);

/*
 * queue.c: how many block-tasks to fetch from the counters, and which. Executed by the thread or
 * warp that fetches; gsr_queue_seldom() has the cold paths. @ids: how many ids are needed.
 */
extern const char gsr_queue_rest[], gsr_queue_count[];
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    bool resumable, unsigned int ids);
unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable,
			      unsigned int ids);

/* loop.ptx */
extern const char gsr_not_first[];	/* sets %#p0 unless the thread is thread 0 */
extern const char gsr_converge_and_sync[];	/* a format: %d is the barrier */
extern const char gsr_find_me[], gsr_find_part[];	/* formats for own.c */

/*
 * suspend.c, for resumable twins: what a thread knows at the start of the body; the checks at
 * resume points; taking a suspended block-task; the record of a new one; and the meeting with
 * saving and restoring
 */
unsigned int gsr_resume_start(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			      const struct gsr_resume *r);
unsigned int gsr_resume_points(struct gsr_pass *p, struct gsr_function *f, struct gsr_resume *r);
unsigned int gsr_resume_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at);
unsigned int gsr_resume_fetch(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			      const struct gsr_resume *r);
unsigned int gsr_resume_arm(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			    const struct gsr_resume *r);
unsigned int gsr_resume_tail(struct gsr_pass *p, struct gsr_function *f,
			     const struct gsr_resume *r);

#endif /* GSR_RUNTIME_H */
