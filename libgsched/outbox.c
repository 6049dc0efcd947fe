// SPDX-License-Identifier: LGPL-2.1-or-later
/* See outbox.h */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include "outbox.h"

/*
 * A stream socket counts as writable only when most of its buffer is free, but a packet fits much
 * earlier.
 */
#define AGAIN_MS	5

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void gsched_outbox_init(struct gsched_outbox *o, int fd, int epoll)
{
	pthread_mutex_init(&o->lock, NULL);
	o->fd = fd;
	o->epoll = epoll;
}

void gsched_outbox_destroy(struct gsched_outbox *o)
{
	pthread_mutex_destroy(&o->lock);
}

/* Lock held. EAGAIN: the buffer is full. */
static int put(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
	       size_t size)
{
	char buf[sizeof(*head) + GSP_BODY_MAX];
	ssize_t n;

	memcpy(buf, head, sizeof(*head));
	memcpy(buf + sizeof(*head), body, size);
	do
		n = send(o->fd, buf, sizeof(*head) + size, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		o->full_since = 0;
	else if (errno == EAGAIN && !o->full_since)
		o->full_since = now_ns();
	return n < 0 ? -1 : 0;
}

/* Lock held. */
static void set_any(struct gsched_outbox *o)
{
	bool any = o->n || o->report.flags;
	struct epoll_event on = { .events = any ? EPOLLIN | EPOLLOUT : EPOLLIN };

	if (any == atomic_load(&o->any))
		return;
	atomic_store(&o->any, any);
	epoll_ctl(o->epoll, EPOLL_CTL_MOD, o->fd, &on);
}

/* Lock held. 0: nothing is kept any more. */
static int put_kept(struct gsched_outbox *o)
{
	const struct gsp_header report = { .type = GSP_REPORT, .flags = GSP_FLAG_ASYNC };
	int rc = 0;

	while (o->n) {
		const struct gsched_kept *k = &o->kept[o->first];

		rc = put(o, &k->head, &k->body, k->size);
		if (rc)
			break;
		o->first = (o->first + 1) % GSCHED_OUTBOX_SIZE;
		o->n--;
	}
	if (!rc && o->report.flags) {
		rc = put(o, &report, &o->report, sizeof(o->report));
		if (!rc)
			o->report.flags = 0;
	}
	set_any(o);
	return rc;
}

/* Lock held. */
static void keep_report(struct gsched_outbox *o, const struct gsched_report *r)
{
	struct gsched_report *to = &o->report;

	to->size = r->size;
	if (r->flags & GSCHED_REPORT_ACTIVITY)
		to->activity = r->activity;
	if (r->flags & GSCHED_REPORT_SLICE) {
		to->slice_us = r->slice_us;
		to->slice_error = r->slice_error;
	}
	if (r->flags & GSCHED_REPORT_STREAMS)
		to->prioritised = r->prioritised;
	if (r->flags & GSCHED_REPORT_BLOCKS)
		to->block_us = r->block_us;
	if (r->flags & GSCHED_REPORT_MEMORY)
		to->memory = r->memory;
	to->flags |= r->flags;
}

/* Lock held. */
static int keep(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
		size_t size)
{
	struct gsched_kept *k = &o->kept[(o->first + o->n) % GSCHED_OUTBOX_SIZE];

	if (now_ns() - o->full_since > GSP_PATIENCE_MS * 1000000ull) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (head->type == GSP_REPORT) {
		keep_report(o, body);
		return 0;
	}
	if (head->type == GSP_SUBMIT && o->n >= GSCHED_OUTBOX_SUBMITS) {
		errno = ENOBUFS;
		return -1;
	}
	/* a COMPLETE without a task: such a client is not worth waiting for the peer */
	if (o->n == GSCHED_OUTBOX_SIZE || size > sizeof(k->body)) {
		errno = ETIMEDOUT;
		return -1;
	}
	k->head = *head;
	memcpy(&k->body, body, size);
	k->size = size;
	o->n++;
	return 0;
}

int gsched_outbox_post(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
		       size_t size)
{
	int rc, err;

	pthread_mutex_lock(&o->lock);
	rc = put_kept(o);
	rc = rc ? rc : put(o, head, body, size);
	if (rc && errno == EAGAIN) {
		rc = keep(o, head, body, size);
		err = errno;
		set_any(o);
		errno = err;
	}
	pthread_mutex_unlock(&o->lock);
	return rc;
}

int gsched_outbox_send(struct gsched_outbox *o, const struct gsp_header *head, const void *body,
		       size_t size)
{
	struct pollfd writable = { .fd = o->fd, .events = POLLOUT };
	uint64_t until = now_ns() + GSP_PATIENCE_MS * 1000000ull;
	int rc;

	for (;;) {
		pthread_mutex_lock(&o->lock);
		rc = put_kept(o);
		rc = rc ? rc : put(o, head, body, size);
		pthread_mutex_unlock(&o->lock);
		if (!rc || errno != EAGAIN)
			return rc;
		if (now_ns() >= until) {
			errno = ETIMEDOUT;
			return -1;
		}
		poll(&writable, 1, AGAIN_MS);
	}
}

void gsched_outbox_flush(struct gsched_outbox *o)
{
	if (!atomic_load(&o->any))
		return;
	pthread_mutex_lock(&o->lock);
	put_kept(o);
	pthread_mutex_unlock(&o->lock);
}
