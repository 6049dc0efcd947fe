/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is written around the body of a twin: the worker's life (abi.h). The passes of transform/
 * have run; the body is not looked at here.
 */
#ifndef GSR_RUNTIME_H
#define GSR_RUNTIME_H

#include "rewriter/transform/resume.h"

/* What a block leaves behind that must be gone before the next block-task */
struct gsr_cleanup {
	bool cp_async, bulk, mbarriers, alloca, swbarrier;
	const char *warpsync;		/* text that initialises it; NULL: not used */
};

/*
 * loop.c: the worker's life around the body; returns the number of instructions inserted.
 * @resume: of a resumable twin, else NULL
 */
unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites, const struct gsr_cleanup *cleanup,
		      const struct gsr_ids *ids, int id, const struct gsr_resume *resume);

/* own.c: which shared variables of its own a twin needs */
#define GSR_OWN_MAX	6
#define GSR_ALIGNED	1024u	/* shared addresses stay the same modulo this */
struct gsr_own {
	bool mbarriers, ended, swbarrier, warpsync;
	unsigned int own_warpsync;	/* bytes of those that the kernel has for itself */
	bool aligned;			/* alignment matters */
	bool inside;			/* no function names them: the kernel can declare them itself */
};
/* @wide: the module's are aligned */
unsigned int gsr_own_bytes(const struct gsr_pass *p, const struct gsr_own *own, bool wide);
void gsr_own_declare(struct gsr_pass *p, struct gsr_function *f, const struct gsr_own *own);
struct gsr_var **gsr_own_module(struct gsr_pass *p, const struct gsr_own *own, bool wide, unsigned int *n);

/* A refusal or NULL: is there room for static shared memory and @more bytes? */
const char *gsr_shared_room(struct gsr_pass *p, const struct gsr_closure *c, unsigned int more);

/*
 * Polls the window (loop.c), also by other threads than thread 0; goes on behind the text if it excludes this worker, else at label
 * @inside. @tag makes names. Comes with the control block in %#d0, its first two words in %#d1 and %#d2, and the time in %#d5.
 */
unsigned int gsr_look(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, const char *tag, const char *inside);

/*
 * queue.c: how many block-tasks are fetched from the counters, and which; by the thread that
 * fetches
 */
extern const char gsr_queue_rest[], gsr_queue_count[];
unsigned int gsr_queue_take(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at, bool resumable);
unsigned int gsr_queue_seldom(struct gsr_pass *p, struct gsr_function *f, bool resumable);

/*
 * static.c: where block-tasks come from if the grid is cut into ranges; by the thread that fetches
 */
extern const char gsr_static_take[], gsr_static_leave[], gsr_static_waits[];
extern const char gsr_not_first[];	/* sets %#p0 unless thread 0 */

/* suspend.c: each returns the number of instructions inserted */
/* Counting down to the next look */
unsigned int gsr_resume_points(struct gsr_pass *p, struct gsr_function *f, struct gsr_resume *r);
unsigned int gsr_resume_fetch(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at);
unsigned int gsr_resume_arm(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at);
unsigned int gsr_resume_tail(struct gsr_pass *p, struct gsr_function *f, const struct gsr_resume *r);

#endif /* GSR_RUNTIME_H */
