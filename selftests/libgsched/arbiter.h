/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A stand-in arbiter for tests: a thread behind a SOCK_SEQPACKET in a temporary directory. It
 * speaks libgsched/proto.h, does what the test tells it, and keeps what it was asked.
 */
#ifndef SELFTESTS_LIBGSCHED_ARBITER_H
#define SELFTESTS_LIBGSCHED_ARBITER_H

#include <pthread.h>
#include <stdbool.h>
#include <linux/gsched.h>
#include "libgsched/proto.h"

#define FAKE_SMS	8
#define FAKE_DESCRIPTION	"a\0description"	/* of twins: none, but not text either */

/* Answers REWRITE: an errno, and @n descriptors, which the caller closes */
typedef int fake_rewriter(const struct gsp_rewrite *req, int image_fd, int *out, unsigned int *n);

struct fake {
	char dir[64], path[96];
	int listen_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int conn;			/* the attached connection, -1 */
	struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	uint32_t sms, lease, flags, mode, share, priority, top_priority;
	/* what to do */
	bool hold_grants;		/* keep replies to SUBMIT back until fake_grant() */
	bool hold_rewrites;		/* until fake_rewrite(): nothing is answered */
	unsigned int rewrite_us;	/* each one takes so long */
	/* NULL: always FAKE_DESCRIPTION. @rewrite_err comes first. */
	fake_rewriter *rewriter;
	bool hold_attaches;		/* likewise, until fake_attach() */
	int attach_err, submit_err, rewrite_err;
	uint64_t window;		/* granted; 0: the whole device */
	bool closed;			/* ... or nothing */
	unsigned int events_before_reply;	/* events to send before the reply to a SUBMIT */
	/* what was seen */
	unsigned int messages;		/* of any kind */
	uint32_t tier[GSCHED_SLOTS];	/* of the last submit, by slot */
	unsigned int infos, submits, async_submits, completes, timed_originals, cancels, rewrites,
		attached_count, detached;
	struct gsched_submit last_submit;
	struct gsched_complete last_complete;
	struct gsched_attach last_attach;
	unsigned int attaches, reports, block_reports;
	unsigned int block_us;		/* of the last report of thread blocks */
	struct gsched_report last_report;
	struct gsp_rewrite last_rewrite;
	struct gsp_group last_group;
	uint32_t last_type;
	uint32_t held_cookie;
	struct gsched_submit held;
	bool holding;
	bool stop;
	int conns[16];
	unsigned int n_conns;
};

/* rewriter.c: a rewriter that does rewrite */
fake_rewriter real_rewriter;

void fake_start(struct fake *f);
void fake_restart(struct fake *f);	/* another one where the one that was stopped had been */
void fake_stop(struct fake *f);		/* all connections close: the arbiter died */
void fake_grant(struct fake *f);	/* the held SUBMIT is granted */
void fake_rewrite(struct fake *f);	/* the held REWRITE is answered, later ones at once */
void fake_attach(struct fake *f);	/* the held ATTACH is answered, later ones at once */
void fake_event(struct fake *f, uint32_t type, uint32_t slot, uint32_t seq, uint64_t window);
/* In a packet of @len bytes: what stands behind the structure is zero */
void fake_event_of(struct fake *f, const struct gsched_event *ev, size_t len);
void fake_window(struct fake *f, uint32_t slot, uint64_t window);	/* page only */
/* Wait until *@counter is at least @n; false after ten seconds. */
bool fake_wait(struct fake *f, const unsigned int *counter, unsigned int n);

#endif
