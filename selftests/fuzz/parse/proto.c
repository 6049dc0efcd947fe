// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedd's protocol: what four peers send, to all of the daemon but its options and its rewrite
 * worker, through sockets. The input is a list of steps. Each begins with a byte: 2 bits which
 * peer, 3 bits what it does, 1 bit asynchronous, 2 bits how many descriptors go along; so that a
 * few bytes make a packet whose sizes are right, and the rest of the input is raw.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gschedd/gschedd.h"
#include "fuzz.h"

#define PEERS	4
#define STEPS	64

/* what gschedd/options.c and gschedd/rewrite.c have */
struct options opt = { .mode = -1, .policy = "hpf", .image_max = 1 << 20, .nvml = "",
		       .log_level = -1 };
struct rewrite_stats rewrite_stats;

int rewrite_request(struct conn *conn, const struct gsp_header *h,
		    const struct gsp_rewrite *req, int fd)
{
	return -ENOSYS;
}

void rewrite_conn_gone(struct conn *conn)
{
}

void listen_resume(void)
{
}

struct guest {
	int fd;
	struct conn *conn;
	struct gsched_cl_page *page;
};

static struct guest peers[PEERS];

static void peer_open(struct guest *p)
{
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
	     "socketpair");
	p->fd = pair[0];
	p->page = NULL;
	MUST(!conn_open(pair[1], 1000, false), "conn_open");
	p->conn = container_of(conns.prev, struct conn, node);
}

static void peer_close(struct guest *p)
{
	close(p->fd);
	if (p->page)
		munmap(p->page, sizeof(*p->page));
}

/*
 * What came for the peer; descriptors are those of ATTACH, whose second is the client's page, or of
 * STATUS
 */
static void peer_read(struct guest *p)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * GSP_MAX_FDS)];
	} control;
	static struct packet in;

	for (;;) {
		struct iovec iov = { .iov_base = &in, .iov_len = sizeof(in) };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
				      .msg_controllen = sizeof(control.buf) };
		struct cmsghdr *cm;
		int fds[GSP_MAX_FDS];
		unsigned int n;

		if (recvmsg(p->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
			return;
		cm = CMSG_FIRSTHDR(&msg);
		if (!cm)
			continue;
		n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cm), n * sizeof(int));
		if (n == 2 && in.h.type == GSP_ATTACH && !p->page) {
			void *map = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE,
					 MAP_SHARED, fds[1], 0);

			p->page = map == MAP_FAILED ? NULL : map;
		}
		close_all(fds, n);
	}
}

/* The daemon's turn, for each of its connections */
static void turn(void)
{
	struct device *dev;
	int i;

	for (i = 0; i < PEERS; i++) {
		struct conn *conn, *next;

		for (conn = container_of(conns.next, struct conn, node); &conn->node != &conns;
		     conn = next) {
			next = container_of(conn->node.next, struct conn, node);
			if (conn == peers[i].conn)
				conn->src.ready(&conn->src, EPOLLIN);
		}
	}
	while (conns_turn())
		;
	loop_run();	/* is told to stop: frees what is dead */
	list_for_each_entry(dev, &devices, node)
		MUST(!gsc_check(&dev->core), "invariant %d", gsc_check(&dev->core));
}

static bool alive(const struct guest *p)
{
	const struct list_head *l;

	for (l = conns.next; l != &conns; l = l->next)
		if (l == &p->conn->node)
			return true;
	return false;
}

/* "path\0file\0value" */
static void group_body(struct gsp_group *g, const uint8_t *text, size_t n)
{
	char *to[] = { g->path, g->file, g->value };
	const size_t room[] = { sizeof(g->path), sizeof(g->file), sizeof(g->value) };
	size_t at = 0, k = 0;

	for (; n && k < 3; text++, n--) {
		if (!*text || at >= room[k]) {
			k++;
			at = 0;
		} else {
			to[k][at++] = (char)*text;
		}
	}
}

static size_t body_size(uint32_t type)
{
	switch (type) {
	case GSP_INFO: return sizeof(struct gsched_info);
	case 1: return sizeof(struct gsched_device_add);
	case 2: return sizeof(struct gsched_device_del);
	case GSP_ATTACH: return sizeof(struct gsched_attach);
	case GSP_SUBMIT: return sizeof(struct gsched_submit);
	case GSP_COMPLETE: return sizeof(struct gsched_complete);
	case GSP_REWRITE: return sizeof(struct gsp_rewrite);
	case GSP_STATUS: return 0;
	default: return sizeof(struct gsp_group);
	}
}

static void send_packet(struct guest *p, uint8_t op, const uint8_t *data, size_t n)
{
	static struct packet out;
	int fds[GSP_MAX_FDS] = { 0, 0 };
	unsigned int n_fds = op >> 6 > GSP_MAX_FDS ? GSP_MAX_FDS : op >> 6;
	size_t len;

	memset(&out, 0, sizeof(out));
	if ((op >> 2 & 7) == 0) {
		len = n < sizeof(out) ? n : sizeof(out);
		memcpy(&out, data, len);
	} else {
		out.h.type = n ? data[0] % (GSP_DEVICE_SET + 2) : 0;
		out.h.flags = op >> 5 & 1;
		out.h.cookie = op;
		len = body_size(out.h.type);
		if (len == sizeof(struct gsp_group))
			group_body((struct gsp_group *)out.body, data + 1, n - 1);
		else if (n > 1 && len > 4)
			memcpy(out.body + 4, data + 1, n - 1 < len - 4 ? n - 1 : len - 4);
		if (len)
			memcpy(out.body, &(uint32_t){ (uint32_t)len }, 4);
		len += sizeof(out.h);
	}
	send_fds(p->fd, &out, len, fds, n_fds, MSG_DONTWAIT);
}

static void step(const uint8_t **data, size_t *size)
{
	uint8_t op = *(*data)++;
	struct guest *p = &peers[op & 3];
	size_t n;

	--*size;
	switch (op >> 2 & 7) {
	case 6:
		if (*size < 6)
			break;
		if (p->page)
			memcpy((uint32_t *)&p->page->slot[(*data)[0] % GSCHED_SLOTS] +
			       (*data)[1] % 16, *data + 2, 4);
		*data += 6;
		*size -= 6;
		return;
	case 7:
		peer_close(p);
		turn();
		if (alive(p))
			p->conn->src.ready(&p->conn->src, EPOLLRDHUP);
		conns_flush();
		peer_open(p);
		return;
	default:
		if (!*size)
			return;
		n = *(*data)++;
		--*size;
		n = n < *size ? n : *size;
		send_packet(p, op, *data, n);
		*data += n;
		*size -= n;
		turn();
		/* the first reads only now and then */
		if (p != peers || op & 32)
			peer_read(p);
		if (!alive(p)) {
			peer_close(p);
			peer_open(p);
		}
		return;
	}
	*size = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct device_decl decl = { .name = "gpu0", .sms = 16 };
	static bool started;
	unsigned int i;

	if (!started) {
		MUST(!loop_init(), "epoll");
		loop_stop();
		conns_init();
		started = true;
	}
	MUST(!device_add(&decl), "device");
	for (i = 0; i < PEERS; i++)
		peer_open(&peers[i]);
	for (i = 0; size && i < STEPS; i++)
		step(&data, &size);
	for (i = 0; i < PEERS; i++)
		peer_close(&peers[i]);
	conns_free();
	devices_free();
	loop_run();
	MUST(!n_conns && !n_devices, "%u connections, %u devices left", n_conns, n_devices);
	return 0;
}
