// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport to gschedd's embedded arbiter. One socket carries replies and events. A thread that
 * waits for a reply reads the socket, one thread at a time, and dispatches what it reads: replies
 * to the threads that wait for them, events to the queue. The descriptor given to poll(2) is an
 * epoll set of the socket and an eventfd, which is raised while the queue is not empty. So an event
 * that a waiting submit took off the socket still wakes the reader of events. What needs no reply
 * is sent without blocking (outbox.h), as the caller may hold locks that launches need.
 *
 * A stopped gschedd must not stop its clients: every wait is bounded (GSP_PATIENCE_MS). A wait for
 * a grant may take long, so it is bounded by asking whether gschedd still answers. After a timeout
 * the connection is lost for good and shut down, so that gschedd, when it continues, finds the
 * client gone, and its late answers reach nobody.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "outbox.h"
#include "transport.h"
#include "proto.h"

struct waiter {
	struct waiter *next;
	uint32_t cookie;
	bool done;
	struct gsp_header head;
	char *body;			/* room for the reply's body */
	size_t size;			/* in: room, out: length */
	int fds[GSP_MAX_FDS];
	unsigned int n_fds;
};

struct gsched_socket {
	pthread_mutex_t lock;
	pthread_cond_t wake;		/* a reply was dispatched, or no thread is reading */
	struct gsched_outbox out;	/* its lock is never taken with @lock held */
	bool reading;			/* lock: a thread is in recvmsg() */
	int dead;			/* lock: permanent errno, once the peer is gone */
	struct gsched_silence silence;	/* lock: the peer's, while there are waiters */
	struct waiter *waiters;		/* lock */
	uint32_t cookie;		/* lock */
	int event_fd;
	bool raised;			/* lock: the eventfd is raised */
	struct gsched_event event[GSCHED_SLOTS];	/* lock: last state of each slot */
	uint64_t pending;		/* lock: slots with an unread event */
	uint8_t order[GSCHED_SLOTS];	/* lock: slots of @pending in order of arrival */
	unsigned int n_order;
	bool band;			/* lock: an unread GSCHED_EVENT_BAND */
	struct gsched_event band_event;
	bool gone, gone_read;		/* lock: GSCHED_EVENT_GONE has come; was delivered */
	struct gsched_event gone_event;
};

static void raise_events(struct gsched_socket *s)
{
	uint64_t one = 1;

	if (!s->raised && gsched_fd_ours(s->event_fd) &&
	    write(s->event_fd, &one, sizeof(one)) == sizeof(one))
		s->raised = true;
}

static void lower_events(struct gsched_socket *s)
{
	uint64_t n;

	if (s->raised && gsched_fd_ours(s->event_fd) &&
	    read(s->event_fd, &n, sizeof(n)) == sizeof(n))
		s->raised = false;
}

static void queue_event(struct gsched_socket *s, const struct gsched_event *ev)
{
	if (ev->type == GSCHED_EVENT_GONE) {
		s->gone = true;
		s->gone_event = *ev;
	} else if (ev->type == GSCHED_EVENT_BAND) {
		s->band = true;
		s->band_event = *ev;
	} else if (ev->slot < GSCHED_SLOTS) {
		if (!(s->pending & (1ULL << ev->slot))) {
			s->pending |= 1ULL << ev->slot;
			s->order[s->n_order++] = ev->slot;
		}
		s->event[ev->slot] = *ev;
	} else {
		return;
	}
	raise_events(s);
}

static int next_event(struct gsched_socket *s, struct gsched_event *ev)
{
	if (s->n_order) {
		unsigned int slot = s->order[0];

		*ev = s->event[slot];
		s->pending &= ~(1ULL << slot);
		memmove(s->order, s->order + 1, --s->n_order);
	} else if (s->band) {
		*ev = s->band_event;
		s->band = false;
	} else if (s->gone && !s->gone_read) {
		*ev = s->gone_event;
		s->gone_read = true;
	} else {
		return 0;
	}
	if (!s->n_order && !s->band && !(s->gone && !s->gone_read) && !s->dead)
		lower_events(s);
	return 1;
}

static void mark_dead(struct gsched_socket *s, int err)
{
	if (!s->dead)
		s->dead = err;
	raise_events(s);
	pthread_cond_broadcast(&s->wake);
}

/* The peer has been silent for too long. */
static void give_up_peer(struct gsched *g, struct gsched_socket *s)
{
	if (gsched_fd_ours(g->fd))
		shutdown(g->fd, SHUT_RDWR);
	gsched_socket_avoid(g->socket);
	mark_dead(s, ETIMEDOUT);
}

static void dispatch_packet(struct gsched_socket *s, const char *buf, size_t len, int *fds,
			    unsigned int n_fds)
{
	const struct gsp_header *head = (const void *)buf;
	struct waiter **p, *w;

	if (len >= sizeof(*head) && head->type == GSP_EVENT) {
		struct gsched_event ev;

		if (gsched_event_parse(buf + sizeof(*head), len - sizeof(*head), &ev) > 0)
			queue_event(s, &ev);
	} else if (len >= sizeof(*head)) {
		for (p = &s->waiters; (w = *p); p = &w->next) {
			if (w->cookie != head->cookie)
				continue;
			*p = w->next;
			w->head = *head;
			if (w->size > len - sizeof(*head))
				w->size = len - sizeof(*head);
			memcpy(w->body, buf + sizeof(*head), w->size);
			memcpy(w->fds, fds, n_fds * sizeof(*fds));
			w->n_fds = n_fds;
			w->done = true;
			pthread_cond_broadcast(&s->wake);
			return;
		}
	}
	while (n_fds)
		close(fds[--n_fds]);
}

/*
 * Reads one packet; drops the lock meanwhile. Returns 1: read, 0: none (MSG_DONTWAIT, or a
 * timeout), -1: EINTR or dead.
 */
static int read_one(struct gsched *g, struct gsched_socket *s, int flags)
{
	_Alignas(8) char buf[sizeof(struct gsp_header) + GSP_BODY_MAX];
	unsigned int n_fds = GSP_MAX_FDS;
	int fds[GSP_MAX_FDS];
	long n;
	int err;

	s->reading = true;
	pthread_mutex_unlock(&s->lock);
	n = gsched_fd_ours(g->fd) ?
		gsched_socket_recv(g->fd, buf, sizeof(buf), fds, &n_fds, flags) : 0;
	err = errno;
	pthread_mutex_lock(&s->lock);
	s->reading = false;
	if (n > 0) {
		gsched_heard(&s->silence);
		dispatch_packet(s, buf, n, fds, n_fds);
		return 1;
	}
	if (n < 0 && err == EAGAIN)
		return 0;
	if (n < 0 && err == EINTR) {
		errno = EINTR;
		return -1;
	}
	mark_dead(s, EPIPE);
	errno = EPIPE;
	return -1;
}

/* Nothing was read: check whether the peer is lost. The lock is held. */
static void check_silence(struct gsched *g, struct gsched_socket *s)
{
	/* if this process was stopped itself, an answer may be there */
	if (!s->dead && !s->reading && gsched_silent(g->fd, &s->silence) &&
	    !read_one(g, s, MSG_DONTWAIT))
		give_up_peer(g, s);
}

/* @wait: for room in the socket's buffer. Else packets are kept, and sent later. */
static int send_packet(struct gsched *g, const struct gsp_header *head, const void *body,
		       size_t size, bool wait)
{
	struct gsched_outbox *o = &g->sock->out;
	int rc = wait ? gsched_outbox_send(o, head, body, size) :
			gsched_outbox_post(o, head, body, size);

	if (!rc || errno != ETIMEDOUT)
		return rc;
	pthread_mutex_lock(&g->sock->lock);
	give_up_peer(g, g->sock);
	pthread_mutex_unlock(&g->sock->lock);
	errno = ETIMEDOUT;
	return -1;
}

/*
 * Sends and waits for the reply, whose body replaces @body. If @interruptible, a signal ends the
 * wait with EINTR, but only that of the reading thread: the others sleep on the condition.
 */
static int send_and_wait(struct gsched *g, unsigned int type, void *body, size_t size, size_t room,
			 struct waiter *w, bool interruptible)
{
	struct gsched_socket *s = g->sock;
	struct gsp_header head = { .type = type };
	struct waiter **p;
	int err = 0;

	*w = (struct waiter){ .body = body, .size = room };
	pthread_mutex_lock(&s->lock);
	if (s->dead) {
		err = s->dead;
		goto out;
	}
	w->cookie = head.cookie = ++s->cookie ? s->cookie : ++s->cookie;
	if (!s->waiters)
		gsched_heard(&s->silence);
	w->next = s->waiters;
	s->waiters = w;
	pthread_mutex_unlock(&s->lock);
	if (send_packet(g, &head, body, size, true))
		err = errno == EPIPE || errno == ECONNRESET ? EPIPE : errno;
	pthread_mutex_lock(&s->lock);
	while (!w->done && !err) {
		if (s->dead) {
			err = s->dead;
		} else if (s->reading) {
			pthread_cond_wait(&s->wake, &s->lock);
		} else {
			int rc = read_one(g, s, 0);

			if (rc < 0 && errno == EINTR && interruptible)
				err = EINTR;
			else if (rc <= 0)
				check_silence(g, s);
			/* no thread is reading now: another waiter may have to */
			pthread_cond_broadcast(&s->wake);
		}
	}
	if (w->done) {
		err = w->head.err;
	} else {
		for (p = &s->waiters; *p && *p != w; p = &(*p)->next)
			;
		if (*p)
			*p = w->next;
	}
out:
	pthread_mutex_unlock(&s->lock);
	if (!err)
		return 0;
	while (w->n_fds)
		close(w->fds[--w->n_fds]);
	errno = err;
	return -1;
}

/* The reply is as long as the request, and has no descriptors. */
static int exchange(struct gsched *g, unsigned int type, void *req, size_t size)
{
	struct waiter w;

	if (send_and_wait(g, type, req, size, size, &w, false))
		return -1;
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	if (w.size == size)
		return 0;
	errno = EPROTO;
	return -1;
}

static int socket_info(struct gsched *g, struct gsched_info *req)
{
	return exchange(g, GSP_INFO, req, sizeof(*req));
}

static int socket_attach(struct gsched *g, struct gsched_attach *req)
{
	size_t size = req->size;
	struct waiter w;
	int rc = -1, err;

	if (send_and_wait(g, GSP_ATTACH, req, size, sizeof(*req), &w, false))
		return -1;
	if (w.n_fds == 2 && w.size >= size)
		rc = gsched_map_pages(g, req, w.fds[0], w.fds[1]);
	else
		errno = EPROTO;
	err = errno;
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	errno = err;
	return rc;
}

static int send_async(struct gsched *g, unsigned int type, const void *body, size_t size)
{
	struct gsp_header head = { .type = type, .flags = GSP_FLAG_ASYNC };

	if (!send_packet(g, &head, body, size, false))
		return 0;
	if (errno == ECONNRESET || errno == ENOTCONN)
		errno = EPIPE;
	return -1;
}

static int socket_complete(struct gsched *g, struct gsched_complete *req)
{
	return send_async(g, GSP_COMPLETE, req, sizeof(*req));
}

static int socket_report(struct gsched *g, struct gsched_report *req, bool wait)
{
	return wait ? exchange(g, GSP_REPORT, req, sizeof(*req)) :
		      send_async(g, GSP_REPORT, req, sizeof(*req));
}

static int socket_submit(struct gsched *g, struct gsched_submit *req, bool async)
{
	struct waiter w;

	if (async)
		return send_async(g, GSP_SUBMIT, req, sizeof(*req));
	if (!send_and_wait(g, GSP_SUBMIT, req, sizeof(*req), sizeof(*req), &w, true)) {
		while (w.n_fds)
			close(w.fds[--w.n_fds]);
		return 0;
	}
	if (errno == EINTR) {
		struct gsched_complete cancel = {
			.size = sizeof(cancel), .flags = GSCHED_COMPLETE_CANCEL, .slot = req->slot,
			.seq = req->seq,
		};

		socket_complete(g, &cancel);
		errno = EINTR;
	}
	return -1;
}

static int socket_event(struct gsched *g, struct gsched_event *ev)
{
	struct gsched_socket *s = g->sock;
	int rc;

	/* the descriptor is readable also when the peer has begun to read again */
	gsched_outbox_flush(&s->out);
	pthread_mutex_lock(&s->lock);
	for (;;) {
		rc = next_event(s, ev);
		if (rc)
			break;
		if (s->dead) {
			errno = s->dead;
			rc = -1;
			break;
		}
		if (s->reading)
			break;
		rc = read_one(g, s, MSG_DONTWAIT);
		if (rc < 0 && errno == EINTR)
			continue;
		if (!rc)
			break;
	}
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static int socket_check(struct gsched *g)
{
	struct gsched_socket *s = g->sock;
	int err;

	pthread_mutex_lock(&s->lock);
	check_silence(g, s);
	err = s->dead;
	pthread_mutex_unlock(&s->lock);
	errno = err;
	return err ? -1 : 0;
}

static int socket_admin(struct gsched *g, enum gsched_admin what, const char *device,
			const char *group, const char *file, const char *value, char *buf,
			size_t size)
{
	static const unsigned int type[] = {
		[GSCHED_ADMIN_CREATE] = GSP_GROUP_CREATE, [GSCHED_ADMIN_DELETE] = GSP_GROUP_DELETE,
		[GSCHED_ADMIN_SET] = GSP_GROUP_SET, [GSCHED_ADMIN_GET] = GSP_GROUP_GET,
		[GSCHED_ADMIN_DEVICE] = GSP_DEVICE_SET, [GSCHED_ADMIN_CLIENT] = GSP_CLIENT_SET,
		[GSCHED_ADMIN_CLIENT_GET] = GSP_CLIENT_GET,
	};
	struct gsp_group req = { .size = sizeof(req) };
	unsigned int t = type[what];
	struct waiter w;

	if ((device && strlen(device) >= sizeof(req.device)) || strlen(group) >= sizeof(req.path) ||
	    (file && strlen(file) >= sizeof(req.file)) ||
	    (value && strlen(value) >= sizeof(req.value))) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(req.device, device ? device : "");
	strcpy(req.path, group);
	strcpy(req.file, file ? file : "");
	strcpy(req.value, value ? value : "");
	if (what == GSCHED_ADMIN_SET && !strcmp(req.file, "procs"))
		t = GSP_GROUP_BIND;
	if (send_and_wait(g, t, &req, sizeof(req), sizeof(req), &w, false))
		return -1;
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	if (what != GSCHED_ADMIN_GET && what != GSCHED_ADMIN_CLIENT_GET)
		return 0;
	req.value[sizeof(req.value) - 1] = 0;
	if (w.size < offsetof(struct gsp_group, value)) {
		errno = EPROTO;
		return -1;
	}
	if (strlen(req.value) >= size) {
		errno = ERANGE;
		return -1;
	}
	strcpy(buf, req.value);
	return 0;
}

static int socket_device_del(struct gsched *g, struct gsched_device_del *req)
{
	struct waiter w;

	if (send_and_wait(g, GSP_DEVICE_DEL, req, sizeof(*req), sizeof(*req), &w, false))
		return -1;
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	return 0;
}

static char *socket_status(struct gsched *g)
{
	struct waiter w;
	char *text = NULL;
	char body[8];
	int err;

	if (send_and_wait(g, GSP_STATUS, body, 0, sizeof(body), &w, false))
		return NULL;
	if (w.n_fds == 1)
		text = gsched_read_fd(w.fds[0], NULL);
	else
		errno = EPROTO;
	err = errno;
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	errno = err;
	return text;
}

static int socket_monitor(struct gsched *g, bool tasks)
{
	struct gsp_monitor req = { .size = sizeof(req), .flags = tasks ? GSP_MONITOR_TASKS : 0 };
	struct waiter w;

	if (send_and_wait(g, GSP_MONITOR, &req, sizeof(req), sizeof(req), &w, false))
		return -1;
	if (w.n_fds == 1)
		return w.fds[0];
	while (w.n_fds)
		close(w.fds[--w.n_fds]);
	errno = EPROTO;
	return -1;
}

static void socket_close(struct gsched *g)
{
	struct gsched_socket *s = g->sock;

	gsched_fd_close(g->poll_fd);
	gsched_fd_close(g->fd);
	gsched_fd_close(s->event_fd);
	pthread_cond_destroy(&s->wake);
	gsched_outbox_destroy(&s->out);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

bool gsched_socket_intact(const struct gsched *g)
{
	return gsched_fd_ours(g->poll_fd) && gsched_fd_ours(g->sock->event_fd);
}

void gsched_socket_abandon(struct gsched *g)
{
	gsched_fd_close(g->poll_fd);
	gsched_fd_close(g->fd);
	gsched_fd_close(g->sock->event_fd);
}

static const struct gsched_transport socket_transport = {
	.backend = GSCHED_BACKEND_DAEMON,
	.info = socket_info,
	.attach = socket_attach,
	.submit = socket_submit,
	.complete = socket_complete,
	.report = socket_report,
	.event = socket_event,
	.check = socket_check,
	.admin = socket_admin,
	.device_del = socket_device_del,
	.status = socket_status,
	.monitor = socket_monitor,
	.close = socket_close,
};

int gsched_socket_open(struct gsched *g)
{
	struct epoll_event on = { .events = EPOLLIN };
	struct gsched_socket *s = calloc(1, sizeof(*s));
	int fd, epoll, err;

	if (!s)
		return -1;
	fd = gsched_fd_mark(gsched_socket_connect(g->socket));
	if (fd < 0)
		goto free_s;
	s->event_fd = gsched_fd_mark(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (s->event_fd < 0)
		goto close_fd;
	epoll = gsched_fd_mark(epoll_create1(EPOLL_CLOEXEC));
	if (epoll < 0)
		goto close_event;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &on) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, s->event_fd, &on))
		goto close_epoll;
	pthread_mutex_init(&s->lock, NULL);
	gsched_outbox_init(&s->out, fd, epoll);
	pthread_cond_init(&s->wake, NULL);
	g->ops = &socket_transport;
	g->fd = fd;
	g->poll_fd = epoll;
	g->sock = s;
	return 0;

close_epoll:
	err = errno;
	close(epoll);
	errno = err;
close_event:
	err = errno;
	close(s->event_fd);
	errno = err;
close_fd:
	err = errno;
	close(fd);
	errno = err;
free_s:
	err = errno;
	free(s);
	errno = err;
	return -1;
}
