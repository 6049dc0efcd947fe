/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A gschedd of the test's own, and a client written on the protocol alone. */
#ifndef GSCHEDD_HARNESS_H
#define GSCHEDD_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "libgsched/proto.h"

/* ---- TAP ---- */
void ok(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void skip(const char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int done_testing(void);
/* Says both numbers if they differ. */
void is(long long got, long long want, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- the daemon ---- */
#define SMS	16
#define DEVICE	"gpu0:00010203-0405-0607-0809-0a0b0c0d0e0f:16"
extern const uint8_t uuid[GSCHED_UUID_SIZE];
extern char dir[64];			/* of this test, removed at exit */
void test_dir(void);			/* makes it before a gschedd is started */
extern char sock_path[96];
extern pid_t daemon_pid;
extern unsigned int daemon_cpus;	/* the next ones use no more CPUs; 0: as it is */
extern unsigned int daemon_files;	/* the next one's limit of open files; 0: as it is */

/*
 * With --socket, --driver "" and a cache in @dir; NULL-terminated further options. Returns when it
 * says READY=1.
 */
void daemon_start(const char *option, ...);
/* the same, but returns at once */
void daemon_begin(const char *option, ...);
/* the same, expected to end by itself: its exit status */
int daemon_spawn(const char *option, ...);
bool daemon_ready(void);	/* after daemon_begin(): READY=1; false: it has ended instead */
int daemon_stop(int sig);			/* wait status */

/* ---- a connection ---- */
struct reply {
	struct gsp_header h;
	uint8_t body[GSP_BODY_MAX];
	size_t len;		/* of the body */
	int fd[4];
	unsigned int n_fds;
};

int peer(void);							/* connected, or exits */
int send_raw(int s, const void *data, size_t len, const int *fds, unsigned int n_fds);	/* -errno */
int send_req(int s, unsigned int type, unsigned int flags, unsigned int cookie, const void *body,
	     size_t len, int fd);
/* any packet; false: none came, or the end */
bool receive(int s, struct reply *r, int timeout_ms);
void reply_free(struct reply *r);				/* closes its descriptors */
/*
 * Send, wait for its reply (events before it are kept for next_event), copy the body back; the
 * reply's err.
 */
int call(int s, unsigned int type, void *body, size_t len);
int call_fds(int s, unsigned int type, void *body, size_t len, int fd, struct reply *r);

struct peer_client {
	int s;
	const struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
	struct gsched_attach info;
};
void attach(struct peer_client *c, uint32_t flags);
void attach_to(struct peer_client *c, uint32_t flags, uint64_t channel_group);
void detach(struct peer_client *c);
struct gsched_submit task(unsigned int slot, unsigned int seq, uint64_t blocks);
/* 0: granted; QUEUED: with GSCHED_SUBMIT_NOWAIT; else the error */
#define QUEUED	-1
int submit(struct peer_client *c, struct gsched_submit *req);
int complete(struct peer_client *c, unsigned int slot, unsigned int seq, unsigned int flags);
bool next_event(struct peer_client *c, struct gsched_event *ev, int timeout_ms);
uint32_t page_limit(const struct peer_client *c, unsigned int slot);
/* Wait until the page shows it: true, or false after ten seconds */
bool wait_limit(const struct peer_client *c, unsigned int slot, uint32_t limit);

/* ---- administration ---- */
/* err */
int group_call(unsigned int type, const char *path, const char *file, const char *value);
const char *group_file(const char *path, const char *file);	/* its text, "" on an error */
int device_set(const char *file, const char *value);		/* err */
char *status_text(void);					/* caller frees */

#endif /* GSCHEDD_HARNESS_H */
