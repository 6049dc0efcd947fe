// SPDX-License-Identifier: LGPL-2.1-or-later
/* The stand-in arbiter: one thread, poll over its connections. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "arbiter.h"

static void reply(int fd, const struct gsp_header *to, int err, const void *body, size_t size,
		  const int *fds, unsigned int n)
{
	char buf[sizeof(struct gsp_header) + GSP_BODY_MAX];
	struct gsp_header head = { .type = to->type, .cookie = to->cookie, .err = err };

	memcpy(buf, &head, sizeof(head));
	if (size)
		memcpy(buf + sizeof(head), body, size);
	gsched_socket_send(fd, buf, sizeof(head) + size, fds, n);
}

static int page_fd(const char *name, size_t size, bool read_only, void **map)
{
	int fd = memfd_create(name, MFD_CLOEXEC), ro;
	char path[64];

	if (fd < 0 || ftruncate(fd, size))
		abort();
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		abort();
	if (!read_only)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return ro;
}

static int data_fd(const void *data, size_t size)
{
	int fd = memfd_create("data", MFD_CLOEXEC);

	if (write(fd, data, size) < 0)
		abort();
	return fd;
}

static int text_fd(const char *text)
{
	return data_fd(text, strlen(text));
}

static void attach(struct fake *f, int fd, const struct gsp_header *head, struct gsched_attach *req)
{
	int fds[2], i, err = f->attach_err;

	f->attaches++;
	pthread_cond_broadcast(&f->changed);
	while (f->hold_attaches && !f->stop)
		pthread_cond_wait(&f->changed, &f->lock);
	f->last_attach = (struct gsched_attach){ 0 };
	memcpy(&f->last_attach, req, req->size);
	if (err) {
		reply(fd, head, err, NULL, 0, NULL, 0);
		return;
	}
	fds[0] = page_fd("arb", sizeof(*f->arb), true, (void **)&f->arb);
	fds[1] = page_fd("cl", sizeof(*f->cl), false, (void **)&f->cl);
	f->arb->header.sms = f->sms;
	f->arb->header.lease = f->lease;
	f->arb->header.flags = f->flags;
	f->arb->header.mode = f->mode;
	f->arb->header.share = f->share;
	f->arb->header.priority = f->priority;
	f->arb->header.top_priority = f->top_priority;
	/* what a leased launch may use */
	for (i = 0; i < GSCHED_SLOTS; i++)
		f->arb->slot[i].window = f->window ? f->window : f->sms * GSCHED_CAPSM;
	req->client_id = 7;
	req->arb_size = sizeof(*f->arb);
	req->cl_size = sizeof(*f->cl);
	req->sms = f->sms;
	req->mode = GSCHED_MODE_SPATIAL;
	f->conn = fd;
	f->attached_count++;
	reply(fd, head, 0, req, req->size, fds, 2);
	close(fds[0]);
	close(fds[1]);
}

static void grant(struct fake *f, int fd, const struct gsp_header *head, struct gsched_submit *req)
{
	uint64_t window = f->closed ? 0 : f->window ? f->window : f->sms * GSCHED_CAPSM;
	unsigned int i;

	for (i = 0; i < f->events_before_reply; i++) {
		struct {
			struct gsp_header head;
			struct gsched_event ev;
		} msg = {
			.head = { .type = GSP_EVENT },
			.ev = { .size = sizeof(msg.ev), .type = GSCHED_EVENT_EVICT, .slot = i,
				.seq = 100 + i, .window = i },
		};

		gsched_socket_send(fd, &msg, sizeof(msg), NULL, 0);
	}
	req->window = window;
	req->state = GSCHED_STATE_GRANTED;
	if (f->arb && req->slot < GSCHED_SLOTS)
		__atomic_store_n(&f->arb->slot[req->slot].window, window, __ATOMIC_RELEASE);
	reply(fd, head, f->submit_err, req, sizeof(*req), NULL, 0);
}

static void answer_rewrite(struct fake *f, int fd, const struct gsp_header *head,
			   const struct gsp_rewrite *req, int image_fd)
{
	unsigned int n = 0;
	int out[2], err;

	f->last_rewrite = *req;
	f->rewrites++;
	pthread_cond_broadcast(&f->changed);
	while (f->hold_rewrites && !f->stop)
		pthread_cond_wait(&f->changed, &f->lock);
	usleep(f->rewrite_us);
	err = f->rewrite_err;
	if (!err && f->rewriter) {
		err = f->rewriter(req, image_fd, out, &n);
	} else {
		if (!err && !(req->flags & GSP_REWRITE_DESCRIBE))
			out[n++] = text_fd("the twins");
		out[n++] = data_fd(FAKE_DESCRIPTION, sizeof(FAKE_DESCRIPTION));
	}
	reply(fd, head, err, NULL, 0, out, n);
	while (n)
		close(out[--n]);
}

static void serve(struct fake *f, int fd, char *buf, size_t len, int *fds, unsigned int n_fds)
{
	struct gsp_header *head = (void *)buf;
	void *body = head + 1;

	if (len < sizeof(*head))
		return;
	f->last_type = head->type;
	switch (head->type) {
	case GSP_INFO:
		f->infos++;
		reply(fd, head, 0, body, sizeof(struct gsched_info), NULL, 0);
		break;
	case GSP_ATTACH:
		attach(f, fd, head, body);
		break;
	case GSP_SUBMIT:
		f->last_submit = *(struct gsched_submit *)body;
		f->tier[f->last_submit.slot % GSCHED_SLOTS] = f->last_submit.tier;
		if (head->flags & GSP_FLAG_ASYNC) {
			f->async_submits++;
			break;
		}
		f->submits++;
		if (f->hold_grants) {
			f->holding = true;
			f->held_cookie = head->cookie;
			f->held = *(struct gsched_submit *)body;
		} else {
			grant(f, fd, head, body);
		}
		break;
	case GSP_COMPLETE:
		f->last_complete = *(struct gsched_complete *)body;
		f->completes++;
		f->timed_originals += f->last_complete.ran_ns &&
				      f->tier[f->last_complete.slot % GSCHED_SLOTS] ==
				      GSCHED_TIER_LAUNCH;
		f->cancels += f->last_complete.flags == GSCHED_COMPLETE_CANCEL;
		break;
	case GSP_REPORT:
		/* what it says of memory it says unasked */
		if (((struct gsched_report *)body)->flags == GSCHED_REPORT_MEMORY)
			break;
		f->last_report = *(struct gsched_report *)body;
		f->reports++;
		if (f->last_report.flags & GSCHED_REPORT_BLOCKS) {
			f->block_us = f->last_report.block_us;
			f->block_reports++;
		}
		break;
	case GSP_REWRITE:
		if (n_fds)
			answer_rewrite(f, fd, head, body, fds[0]);
		break;
	case GSP_STATUS: {
		int out = text_fd("{\"backend\": \"daemon\"}");

		reply(fd, head, 0, NULL, 0, &out, 1);
		close(out);
		break;
	}
	default:
		f->last_group = *(struct gsp_group *)body;
		if (head->type == GSP_GROUP_DELETE)
			reply(fd, head, EBUSY, NULL, 0, NULL, 0);
		else if (head->type == GSP_GROUP_GET) {
			strcpy(f->last_group.value, "42\n");
			reply(fd, head, 0, &f->last_group, sizeof(f->last_group), NULL, 0);
		} else
			reply(fd, head, 0, body, len - sizeof(*head), NULL, 0);
	}
	while (n_fds)
		close(fds[--n_fds]);
	pthread_cond_broadcast(&f->changed);
}

static void *run(void *arg)
{
	_Alignas(8) char buf[sizeof(struct gsp_header) + GSP_BODY_MAX];
	struct fake *f = arg;
	unsigned int i, n;

	for (;;) {
		struct pollfd p[17] = { { .fd = f->listen_fd, .events = POLLIN } };

		pthread_mutex_lock(&f->lock);
		if (f->stop) {
			pthread_mutex_unlock(&f->lock);
			return NULL;
		}
		n = f->n_conns;
		for (i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){ .fd = f->conns[i], .events = POLLIN };
		pthread_mutex_unlock(&f->lock);
		if (poll(p, n + 1, 20) <= 0)
			continue;
		pthread_mutex_lock(&f->lock);
		if (p[0].revents && f->n_conns < 16)
			f->conns[f->n_conns++] = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		for (i = n; i-- > 0;) {
			unsigned int n_fds = GSP_MAX_FDS;
			int fds[GSP_MAX_FDS];
			long len;

			if (!p[i + 1].revents)
				continue;
			len = gsched_socket_recv(f->conns[i], buf, sizeof(buf), fds, &n_fds,
						 MSG_DONTWAIT);
			if (len > 0) {
				f->messages++;
				serve(f, f->conns[i], buf, len, fds, n_fds);
			} else if (!len || errno != EAGAIN) {
				close(f->conns[i]);
				if (f->conn == f->conns[i]) {
					f->conn = -1;
					f->detached++;
				}
				f->conns[i] = f->conns[--f->n_conns];
				pthread_cond_broadcast(&f->changed);
			}
		}
		pthread_mutex_unlock(&f->lock);
	}
}

static void serve_at(struct fake *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(addr.sun_path, f->path);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(f->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(f->listen_fd, 16) || pthread_create(&f->thread, NULL, run, f))
		abort();
}

void fake_restart(struct fake *f)
{
	struct fake old = *f;

	*f = (struct fake){ .conn = -1, .sms = old.sms, .lease = old.lease, .flags = old.flags,
			    .rewrite_err = old.rewrite_err, .rewriter = old.rewriter };
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	strcpy(f->dir, old.dir);
	strcpy(f->path, old.path);
	if (mkdir(f->dir, 0700))
		abort();
	serve_at(f);
}

void fake_start(struct fake *f)
{
	*f = (struct fake){ .conn = -1, .sms = FAKE_SMS };
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	strcpy(f->dir, "/tmp/gsched-test-XXXXXX");
	if (!mkdtemp(f->dir))
		abort();
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	serve_at(f);
	setenv("GSCHED_SOCKET", f->path, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
}

void fake_stop(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	while (f->n_conns)
		close(f->conns[--f->n_conns]);
	close(f->listen_fd);
	unlink(f->path);
	rmdir(f->dir);
}

void fake_rewrite(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->hold_rewrites = false;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void fake_attach(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->hold_attaches = false;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void fake_grant(struct fake *f)
{
	struct gsp_header head = { .type = GSP_SUBMIT };

	pthread_mutex_lock(&f->lock);
	head.cookie = f->held_cookie;
	f->holding = false;
	grant(f, f->conn, &head, &f->held);
	pthread_mutex_unlock(&f->lock);
}

void fake_event(struct fake *f, uint32_t type, uint32_t slot, uint32_t seq, uint64_t window)
{
	struct gsched_event ev = { .size = sizeof(ev), .type = type, .slot = slot, .seq = seq,
				   .window = window };

	fake_event_of(f, &ev, sizeof(ev));
}

void fake_event_of(struct fake *f, const struct gsched_event *ev, size_t len)
{
	struct {
		struct gsp_header head;
		char ev[GSCHED_EVENT_SIZE_MAX];
	} msg = { .head = { .type = GSP_EVENT } };

	memcpy(msg.ev, ev, len < sizeof(*ev) ? len : sizeof(*ev));
	pthread_mutex_lock(&f->lock);
	gsched_socket_send(f->conn, &msg, sizeof(msg.head) + len, NULL, 0);
	pthread_mutex_unlock(&f->lock);
}

void fake_window(struct fake *f, uint32_t slot, uint64_t window)
{
	__atomic_store_n(&f->arb->slot[slot].window, window, __ATOMIC_RELEASE);
	__atomic_fetch_add(&f->arb->slot[slot].generation, 1, __ATOMIC_RELEASE);
}

bool fake_wait(struct fake *f, const unsigned int *counter, unsigned int n)
{
	struct timespec ts;
	bool there;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 10;
	pthread_mutex_lock(&f->lock);
	while (*counter < n)
		if (pthread_cond_timedwait(&f->changed, &f->lock, &ts))
			break;
	there = *counter >= n;
	pthread_mutex_unlock(&f->lock);
	return there;
}
