/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The internal interface of libgsched: gsched.c is the public interface, module.c and socket.c are
 * the transports to the two arbiters. Operations return 0, or what their comment says, or -1 with
 * errno.
 */
#ifndef GSCHED_TRANSPORT_H
#define GSCHED_TRANSPORT_H

#include <stdbool.h>
#include <gsched.h>
#include <linux/gsched.h>

enum gsched_admin { GSCHED_ADMIN_CREATE, GSCHED_ADMIN_DELETE, GSCHED_ADMIN_SET, GSCHED_ADMIN_GET,
		    GSCHED_ADMIN_DEVICE,
	GSCHED_ADMIN_CLIENT, GSCHED_ADMIN_CLIENT_GET };	/* for both, @group is the pid */

struct gsched_transport {
	enum gsched_backend backend;
	int (*info)(struct gsched *g, struct gsched_info *req);
	/* Fills @req and maps both pages into the connection. */
	int (*attach)(struct gsched *g, struct gsched_attach *req);
	/*
	 * @async: do not block, with GSCHED_SUBMIT_NOWAIT in @req; what the answer is does not
	 * matter. ENOBUFS: the arbiter has not read for a while, and was not told.
	 */
	int (*submit)(struct gsched *g, struct gsched_submit *req, bool async);
	int (*complete)(struct gsched *g, struct gsched_complete *req);	/* does not block */
	/* @wait: for the answer, which is in @req then. Else it does not block. */
	int (*report)(struct gsched *g, struct gsched_report *req, bool wait);
	/* 1: @event is of a type that is known, 0: none */
	int (*event)(struct gsched *g, struct gsched_event *event);
	int (*check)(struct gsched *g);		/* NULL: it cannot stop answering */
	/* @value is read by SET, DEVICE and CLIENT; @buf is filled by GET and CLIENT_GET. */
	int (*admin)(struct gsched *g, enum gsched_admin what, const char *device,
		     const char *group, const char *file, const char *value, char *buf,
		     size_t size);
	int (*device_del)(struct gsched *g, struct gsched_device_del *req);
	char *(*status)(struct gsched *g);
	int (*monitor)(struct gsched *g, bool tasks);	/* a descriptor; NULL: use netlink */
	void (*close)(struct gsched *g);
};

struct gsched_socket;

struct gsched {
	const struct gsched_transport *ops;
	int fd;				/* /dev/gsched, or the socket */
	int poll_fd;			/* what gsched_fd() returns */
	struct gsched_attach attach;	/* as completed by the arbiter; size 0: not attached */
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	char *socket;			/* the daemon's path, also for the rewrite service */
	struct gsched_socket *sock;	/* socket.c */
};

/* Both fill @g except @g->socket; -1 with errno and @g unchanged. */
int gsched_module_open(struct gsched *g);
int gsched_socket_open(struct gsched *g);

/*
 * For the child of a fork. The parent keeps its connection; the child closes its copies of the
 * descriptors and mappings. No lock is taken and nothing is freed, because another thread of the
 * parent may have held the lock or used the memory.
 */
void gsched_abandon(struct gsched *g);
void gsched_socket_abandon(struct gsched *g);
bool gsched_socket_intact(const struct gsched *g);	/* of what poll(2) needs */

/* descriptor.c: whether a descriptor is still what we opened; the marked one is returned */
int gsched_fd_mark(int fd);
bool gsched_fd_ours(int fd);
void gsched_fd_close(int fd);		/* if it is */
/* Whether the connection has its descriptors. If not, its events end with EPIPE. */
bool gsched_intact(const struct gsched *g);

/*
 * Checks that the arbiter still answers; does not block. A caller that waits for something the
 * arbiter does unasked calls this from time to time. The first call after a silence sends a
 * request; if a later call finds no answer, it returns -1 with ETIMEDOUT, and the connection is
 * lost.
 */
int gsched_check(struct gsched *g);

/*
 * event.c: one event from @len bytes that begin with it. 1: @event has it; 0: of a type that this
 * version does not know, to be skipped; -1, EPROTO: not an event.
 */
int gsched_event_parse(const void *buf, size_t len, struct gsched_event *event);

/* Maps the pages that ATTACH described; the caller still owns @arb_fd and @cl_fd. */
int gsched_map_pages(struct gsched *g, const struct gsched_attach *req, int arb_fd, int cl_fd);

/* How long a peer has been silent while an answer was due */
struct gsched_silence {
	uint64_t since_ns;
	bool probed;
};

/*
 * Returns a connected SOCK_SEQPACKET, close-on-exec; -1 with errno. Neither the connect nor a later
 * send or receive blocks for longer than GSP_PATIENCE_MS: send and receive then fail with EAGAIN,
 * the connect with ETIMEDOUT.
 */
int gsched_socket_connect(const char *path);
void gsched_heard(struct gsched_silence *silence);
/*
 * Called when nothing has come. 0: keep waiting; -1, ETIMEDOUT: the peer was silent for so long
 * that it counts as lost. May send a probe.
 */
int gsched_silent(int fd, struct gsched_silence *silence);
/* For GSP_AVOID_MS, gsched_socket_connect() to this path fails with ETIMEDOUT at once. */
void gsched_socket_avoid(const char *path);
/*
 * One message with at most two descriptors each way. recv returns the length, 0 if closed; *@n_fds
 * in: room, out: received.
 */
int gsched_socket_send(int fd, const void *buf, size_t size, const int *fds, unsigned int n_fds);
/* The reply to the connection's only request; ETIMEDOUT: the peer is stopped. */
long gsched_socket_answer(int fd, void *buf, size_t size, int *fds, unsigned int *n_fds);
long gsched_socket_recv(int fd, void *buf, size_t size, int *fds, unsigned int *n_fds, int flags);
/* The contents of a memfd as text, NUL-terminated; NULL with errno. */
char *gsched_read_fd(int fd, size_t *size);

/*
 * admin.c: the module's configfs and sysfs. Their roots are arguments, so that tests can point
 * elsewhere.
 */
#define GSCHED_CONFIGFS	"/sys/kernel/config/gsched"
#define GSCHED_SYSFS	"/sys/class/gsched"
int gsched_files_admin(const char *configfs, const char *sysfs, enum gsched_admin what,
		       const char *device, const char *group, const char *file, const char *value,
		       char *buf, size_t size);
/* status.c */
char *gsched_files_status(const char *configfs, const char *sysfs);

#endif /* GSCHED_TRANSPORT_H */
