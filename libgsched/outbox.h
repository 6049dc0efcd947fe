/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets to a peer that may not be reading. A thread that holds locks must not wait for the peer:
 * what does not fit the socket's buffer is kept and sent later, in order. No lock is held while a
 * thread waits.
 */
#ifndef GSCHED_OUTBOX_H
#define GSCHED_OUTBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <linux/gsched.h>
#include "proto.h"

/*
 * A COMPLETE must not be lost. There is room for it: it follows the SUBMIT of a task, which is kept
 * here too, or of one of at most GSCHED_SLOTS tasks that the peer knows of.
 */
#define GSCHED_OUTBOX_SUBMITS	64
#define GSCHED_OUTBOX_SIZE	(2 * GSCHED_OUTBOX_SUBMITS + GSCHED_SLOTS)

struct gsched_kept {
	struct gsp_header head;
	union {
		struct gsched_submit submit;
		struct gsched_complete complete;
		struct gsched_report report;
	} body;
	size_t size;			/* of the body */
};

struct gsched_outbox {
	pthread_mutex_t lock;		/* innermost; protects all that follows */
	int fd;
	int epoll;			/* has @fd; becomes readable when kept packets can be sent */
	struct gsched_kept kept[GSCHED_OUTBOX_SIZE];	/* a ring */
	unsigned int first, n;
	/* values that were reported, and not sent yet; a newer one replaces an older one */
	struct gsched_report report;
	_Atomic bool any;		/* something is kept; may be read without the lock */
	uint64_t full_since;		/* ns, 0: it was not full at the last attempt */
};

/* @fd is in the set @epoll for EPOLLIN. */
void gsched_outbox_init(struct gsched_outbox *o, int fd, int epoll);
void gsched_outbox_destroy(struct gsched_outbox *o);
/*
 * Sends a packet now or keeps it: a SUBMIT, a COMPLETE or a REPORT. Does not block. ENOBUFS: no
 * room for a SUBMIT; ETIMEDOUT: the peer has not read anything for GSP_PATIENCE_MS, or there is no
 * room for a COMPLETE.
 */
int gsched_outbox_post(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
		       size_t size);
/* Sends any packet, behind those that are kept. Blocks for GSP_PATIENCE_MS at most: ETIMEDOUT. */
int gsched_outbox_send(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
		       size_t size);
/* Sends what is kept, as far as possible without blocking. */
void gsched_outbox_flush(struct gsched_outbox *o);

#endif /* GSCHED_OUTBOX_H */
