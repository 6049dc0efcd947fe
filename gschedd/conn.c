// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connections: packets in, replies and events out, without blocking.
 *
 * A peer that does not read stalls no one. Its replies wait (one, and those of rewrite jobs),
 * nothing more is read from it meanwhile, and events coalesce by slot. So the memory of a
 * connection is bounded.
 *
 * Packets are read one by one from the users in turn, and from each user's connections in turn,
 * however many a user has. After TURN_NS the loop checks for events again: new connections, timers.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gschedd.h"

#define TURN_NS	200000
#define SNDBUF	32768

struct reply {
	struct reply *next;
	size_t len;
	int fd[GSP_MAX_FDS];
	unsigned int n_fds;
	struct packet p;	/* only @len bytes of it are allocated */
};

struct list_head conns = { &conns, &conns };
unsigned int n_conns;
static struct list_head dirty = { &dirty, &dirty };
static struct list_head turns = { &turns, &turns };	/* users with ready connections */

static void conn_kill(struct conn *conn)
{
	conn->dead = true;
	conn_dirty(conn);
}

void conn_dirty(struct conn *conn)
{
	if (list_empty(&conn->dirty))
		list_add_tail(&conn->dirty, &dirty);
}

static int send_packet(struct conn *conn, const void *data, size_t len, const int *fds,
		       unsigned int n_fds)
{
	return send_fds(conn->src.fd, data, len, fds, n_fds, MSG_DONTWAIT);
}

static void block_conn(struct conn *conn)
{
	if (conn->blocked)
		return;
	conn->blocked = true;
	loop_mod(&conn->src, EPOLLOUT | EPOLLRDHUP);
}

void conn_reply(struct conn *conn, const struct gsp_header *req, int err, const void *body,
		size_t len, const int *fds, unsigned int n_fds)
{
	struct reply *r;
	struct packet p;
	int rc;

	if (conn->dead) {
		close_all(fds, n_fds);
		return;
	}
	p.h = (struct gsp_header){ .type = req->type, .cookie = req->cookie,
				   .err = err < 0 ? -err : err };
	if (len)
		memcpy(p.body, body, len);
	len += sizeof(p.h);
	rc = conn->out ? -EAGAIN : send_packet(conn, &p, len, fds, n_fds);
	if (rc == -EAGAIN) {
		r = malloc(offsetof(struct reply, p) + len);
		if (r) {
			r->next = NULL;
			r->len = len;
			r->n_fds = n_fds;
			if (n_fds)
				memcpy(r->fd, fds, sizeof(int) * n_fds);
			memcpy(&r->p, &p, len);
			*conn->out_end = r;
			conn->out_end = &r->next;
			block_conn(conn);
			return;
		}
	}
	close_all(fds, n_fds);
	if (rc)
		conn_kill(conn);
}

void conn_window_sent(struct conn *conn, unsigned int slot, uint32_t window)
{
	conn->sent_limit[slot] = window;
}

/*
 * The event's type must be right relative to the last one that was sent: a grant that was not sent
 * yet stays a grant; a grow followed by an evict that leaves more than the peer knows of is a grow.
 */
void conn_event(struct conn *conn, unsigned int slot, const struct gsched_event *event)
{
	struct gsched_event *e = &conn->event[slot];
	uint32_t before = conn->events & 1ull << slot && e->seq == event->seq ? e->type : 0;

	*e = *event;
	if (before == GSCHED_EVENT_GRANT)
		e->type = GSCHED_EVENT_GRANT;
	else if (before == GSCHED_EVENT_GROW &&
		 event->window > conn->sent_limit[slot])
		e->type = GSCHED_EVENT_GROW;
	conn->events |= 1ull << slot;
	conn_dirty(conn);
}

void conn_band(struct conn *conn)
{
	if (!conn->client)
		return;
	conn->band_due = true;
	conn_dirty(conn);
}

/* The last event. Events that were due before concern tasks that no longer exist. */
void conn_gone(struct conn *conn)
{
	conn->gone = conn->gone_due = true;
	conn_dirty(conn);
}

void conn_answer(struct conn *conn, unsigned int slot, int err)
{
	conn->waiting &= ~(1ull << slot);
	conn->answer |= 1ull << slot;
	conn->wait[slot].err = err;
	conn_dirty(conn);
}

static uint32_t window_of(const struct conn *conn, unsigned int slot)
{
	const struct gsc_task *task = conn->client ? conn->client->core.task[slot] : NULL;

	return task ? task->window : 0;
}

static int send_answer(struct conn *conn, unsigned int slot)
{
	struct packet p = { .h = { .type = GSP_SUBMIT, .cookie = conn->wait[slot].cookie,
				   .err = conn->wait[slot].err } };
	struct gsched_submit req = conn->wait[slot].req;
	size_t len = conn->wait[slot].len;

	if (!conn->wait[slot].err) {
		req.state = GSCHED_STATE_GRANTED;
		req.window = window_of(conn, slot);
	}
	memcpy(p.body, &req, len < sizeof(req) ? len : sizeof(req));
	return send_packet(conn, &p, sizeof(p.h) + len, NULL, 0);
}

static int send_event(struct conn *conn, const struct gsched_event *event)
{
	struct {
		struct gsp_header h;
		struct gsched_event ev;
	} p = { .h = { .type = GSP_EVENT }, .ev = *event };

	return send_packet(conn, &p, sizeof(p), NULL, 0);
}

/* One that concerns no slot */
static int send_event_of_client(struct conn *conn, uint32_t type)
{
	const struct gsched_event ev = { .size = sizeof(ev), .type = type, .time_ns = now_ns() };

	return send_event(conn, &ev);
}

/* Replies first, then grants, then events, so that an event of a slot never overtakes its grant. */
static int conn_flush(struct conn *conn)
{
	int err;

	while (conn->out) {
		struct reply *r = conn->out;

		err = send_packet(conn, &r->p, r->len, r->fd, r->n_fds);
		if (err)
			return err;
		close_all(r->fd, r->n_fds);
		conn->out = r->next;
		if (!conn->out)
			conn->out_end = &conn->out;
		free(r);
	}
	while (conn->answer) {
		unsigned int slot = __builtin_ctzll(conn->answer);

		err = send_answer(conn, slot);
		if (err)
			return err;
		conn_window_sent(conn, slot, window_of(conn, slot));
		conn->answer &= conn->answer - 1;
	}
	while (conn->events) {
		unsigned int slot = __builtin_ctzll(conn->events);

		err = send_event(conn, &conn->event[slot]);
		if (err)
			return err;
		conn_window_sent(conn, slot, (uint32_t)conn->event[slot].window);
		conn->events &= conn->events - 1;
	}
	if (conn->band_due) {
		err = send_event_of_client(conn, GSCHED_EVENT_BAND);
		if (err)
			return err;
		conn->band_due = false;
	}
	if (conn->gone_due) {
		err = send_event_of_client(conn, GSCHED_EVENT_GONE);
		if (err)
			return err;
		conn->gone_due = false;
	}
	if (conn->blocked) {
		conn->blocked = false;
		loop_mod(&conn->src, EPOLLIN | EPOLLRDHUP);
	}
	return 0;
}

static void set_ready(struct conn *conn)
{
	if (list_empty(&conn->ready))
		list_add_tail(&conn->ready, &conn->user->ready);
	if (list_empty(&conn->user->turn))
		list_add_tail(&conn->user->turn, &turns);
}

static void clear_ready(struct conn *conn)
{
	list_del_init(&conn->ready);
	if (list_empty(&conn->user->ready))
		list_del_init(&conn->user->turn);
}

static void conn_free(struct conn *conn)
{
	clear_ready(conn);
	rewrite_conn_gone(conn);
	mps_conn_gone(conn);
	nvml_conn_gone(conn);
	if (conn->client)
		client_detach(conn->client);
	while (conn->out) {
		struct reply *r = conn->out;

		conn->out = r->next;
		close_all(r->fd, r->n_fds);
		free(r);
	}
	list_del_init(&conn->dirty);	/* detaching may have added it again */
	list_del_init(&conn->node);
	n_conns--;
	user_put(conn->user);
	loop_del_later(&conn->src);
	loop_free(&conn->src, conn);
	listen_resume();
}

void conns_flush(void)
{
	while (!list_empty(&dirty)) {
		struct conn *conn = container_of(dirty.next, struct conn, dirty);
		int err = 0;

		list_del_init(&conn->dirty);
		INIT_LIST_HEAD(&conn->dirty);
		if (!conn->dead) {
			err = conn_flush(conn);
			if (err == -EAGAIN)
				block_conn(conn);
			else if (err)
				conn->dead = true;
		}
		/*
		 * its capacity goes to other clients, whose connections are appended to this list
		 */
		if (conn->dead)
			conn_free(conn);
	}
}

void conns_free(void)
{
	while (!list_empty(&conns)) {
		conn_kill(container_of(conns.next, struct conn, node));
		conns_flush();
	}
}

/* Reads one packet. Returns false if there is none, or the connection has ended. */
static bool receive_packet(struct conn *conn)
{
	static struct packet p;
	int fds[GSP_MAX_FDS], flags = MSG_DONTWAIT;
	unsigned int n_fds;
	ssize_t n;

	n = recv_fds(conn->src.fd, &p, sizeof(p), fds, &n_fds, &flags);
	if (n < 0) {
		if (n != -EAGAIN)
			conn_kill(conn);
		return false;
	}
	if (!n) {
		/* end of file, or an empty packet, which is not valid */
		close_foreign(fds, n_fds);
		conn_kill(conn);
		return false;
	}
	if (n < (ssize_t)sizeof(p.h)) {
		struct gsp_header h = { 0 };

		close_foreign(fds, n_fds);
		memcpy(&h, &p, n);
		conn_reply(conn, &h, EINVAL, NULL, 0, NULL, 0);
		return !conn->blocked;
	}
	if (flags & (MSG_TRUNC | MSG_CTRUNC)) {
		close_foreign(fds, n_fds);
		conn_reply(conn, &p.h, flags & MSG_TRUNC ? EMSGSIZE : EINVAL, NULL, 0, NULL, 0);
		return !conn->blocked;
	}
	call_dispatch(conn, &p, n - sizeof(p.h), fds, n_fds);
	return !conn->blocked && !conn->dead;
}

static void conn_ready(struct source *src, uint32_t events)
{
	struct conn *conn = container_of(src, struct conn, src);

	if (conn->dead)
		return;
	if (events & EPOLLOUT)
		conn_dirty(conn);
	if (events & EPOLLIN && !conn->blocked) {
		set_ready(conn);
		loop_message();
	} else if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
		conn_kill(conn);
	}
}

bool conns_turn(void)
{
	uint64_t from = now_ns();

	while (!list_empty(&turns)) {
		struct user *user = container_of(turns.next, struct user, turn);
		struct conn *conn = container_of(user->ready.next, struct conn, ready);

		list_move_tail(&user->turn, &turns);
		clear_ready(conn);
		if (!conn->dead && !conn->blocked && receive_packet(conn))
			set_ready(conn);
		if (now_ns() - from > TURN_NS)
			break;
	}
	conns_flush();
	return !list_empty(&turns);
}

void conns_init(void)
{
	loop_after_turn(conns_turn);
}

int conn_open(int fd, unsigned int max, bool waited)
{
	int sndbuf = SNDBUF, err;
	struct peer peer;
	struct user *user;
	struct conn *conn;

	err = peer_identify(fd, waited, &peer);
	if (err)
		goto close_fd;
	user = user_get(peer.uid);
	if (!user) {
		err = -ENOMEM;
		goto close_fd;
	}
	if (!peer.admin && !gsc_share_has_room(user->n_conns - 1, n_conns, max)) {
		static uint64_t said;

		if (may_say(&said))
			say(LOG_WARN, "uid %u has its share of connections, %u of %u: no more",
			    (unsigned int)peer.uid, user->n_conns - 1, max);
		err = -EDQUOT;
		goto put_user;
	}
	/* unread messages in a peer's queue are charged to gschedd */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	conn = calloc(1, sizeof(*conn));
	if (!conn) {
		err = -ENOMEM;
		goto put_user;
	}
	conn->src.fd = fd;
	conn->src.ready = conn_ready;
	conn->pid = peer.pid;
	conn->uid = peer.uid;
	conn->admin = peer.admin;
	conn->user = user;
	conn->out_end = &conn->out;
	INIT_LIST_HEAD(&conn->dirty);
	INIT_LIST_HEAD(&conn->ready);
	err = loop_add(&conn->src, EPOLLIN | EPOLLRDHUP);
	if (err) {
		free(conn);
		goto put_user;
	}
	list_add_tail(&conn->node, &conns);
	n_conns++;
	return 0;

put_user:
	user_put(user);
close_fd:
	shutdown(fd, SHUT_RDWR);
	close_later(fd);
	return err;
}
