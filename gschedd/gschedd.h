/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of gschedd and what they share. One thread runs all of it but closer.c: an epoll loop
 * whose sources are the listening socket, the connections, timers, and the rewrite workers, which
 * are separate processes. So no field here needs a lock.
 *
 * Ownership: a device owns its groups and the core's device; a connection owns its client; a
 * client's group outlives it (a group with clients cannot be deleted). Sources are freed at the end
 * of a turn of the loop, never within it.
 */
#ifndef GSCHEDD_H
#define GSCHEDD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "kmod/core/core.h"
#include "libgsched/proto.h"
#include "proc.h"

struct cJSON;
struct conn;

/* ---- options.c ---- */
enum arbiter_kind { ARBITER_AUTO, ARBITER_EMBEDDED, ARBITER_MODULE };

struct device_decl {
	char name[GSCHED_NAME_SIZE];
	uint8_t uuid[GSCHED_UUID_SIZE];
	unsigned int sms;
};

#define DECLS_MAX	64

struct options {
	const char *socket;
	const char *cache_dir;		/* NULL: no cache */
	const char *state_dir;		/* NULL: groups end with gschedd */
	uint64_t cache_size;
	uint64_t image_max;		/* largest image the rewrite service takes */
	const char *driver;
	const char *policy;
	bool policy_given, mode_given;	/* given as options, which override the saved state */
	bool driver_given, nvml_given;	/* named by the user, who wants to know if it is missing */
	uint64_t seed;			/* of policy chaos */
	int mode;			/* GSCHED_MODE_* or -1 */
	const char *trace;
	enum arbiter_kind arbiter;
	uint64_t poll_ns;
	int log_level;
	bool qos;
	bool mps;
	const char *mps_program, *mps_dir;
	const char *nvml;		/* library that lists the processes on the GPUs, "": none */
	unsigned int mps_idle_s;	/* a server without programs is ended after this time */
	unsigned int mps_wait_s;	/* a server that is not ready after this time is given up */
	struct device_decl decl[DECLS_MAX];
	unsigned int n_decl;
	int worker_fd;			/* this process is a worker of the rewrite service; -1: not */
};
extern struct options opt;
void options_parse(int argc, char **argv);	/* exits if they are wrong */

/* ---- uuid.c ---- */
#define UUID_TEXT	(2 * GSCHED_UUID_SIZE + 5)
/* Hex digits, with "-" between them, and perhaps "GPU-" before; -1: malformed. */
int parse_uuid(const char *text, size_t len, uint8_t *uuid);
void uuid_text(const uint8_t *uuid, char *text);	/* UUID_TEXT bytes */

/* ---- log.c ---- */
enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
void say(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Rate limit for messages that a user can cause: true once a second. The caller keeps *@last. */
bool may_say(uint64_t *last);

/* ---- loop.c ---- */
struct source {
	int fd;
	void (*ready)(struct source *src, uint32_t events);
	struct source *next_dead;
	void *mem;
};

int loop_init(void);
int loop_add(struct source *src, uint32_t events);	/* -errno */
void loop_mod(struct source *src, uint32_t events);
void loop_del(struct source *src);		/* also closes src->fd */
/* The same of a socket that clients send to: by close_later(). */
void loop_del_later(struct source *src);
/* loop_del(), and frees @mem, which contains @src, once no event can refer to it. */
void loop_free(struct source *src, void *mem);
void loop_run(void);				/* until loop_stop() */
void loop_stop(void);
/*
 * @fn is called after the events of each turn. It returns true if there is more to do: then the
 * next turn does not wait for events.
 */
void loop_after_turn(bool (*fn)(void));
void loop_before_sleep(void (*fn)(void));	/* @fn is called before the loop waits for events */
/* After loop_message(), poll for the next one instead of sleeping, @ns at most and while @fn(). */
void loop_poll_while(uint64_t ns, bool (*fn)(void));
void loop_message(void);			/* a client's message has come */
uint64_t now_ns(void);

/* ---- user.c ---- */
struct user {
	struct list_head node;		/* users */
	uid_t uid;
	unsigned int n_conns;		/* also a reference to the user */
	struct list_head ready;		/* connections with unread packets */
	struct list_head turn;		/* node among the users with ready connections */
	struct list_head jobs;		/* queued jobs of the rewrite service */
	struct list_head job_turn;	/* node among the users with such jobs */
	unsigned int n_jobs;
};

struct user *user_get(uid_t uid);	/* for one more connection; NULL: no memory */
void user_put(struct user *u);

/* ---- peer.c ---- */
struct peer {
	pid_t pid;
	uid_t uid;
	bool admin;			/* may change groups and devices */
};

/* @waited: the peer may have connected long ago. -errno. */
int peer_identify(int fd, bool waited, struct peer *peer);
/*
 * -ESRCH: the process that connected has ended, and @pid is nobody's or somebody else's by now.
 * What was learnt of @pid before holds only if this is 0. 0 also if it is in no namespace of ours.
 */
int peer_gone(int fd, pid_t pid);

/* ---- closer.c: closes descriptors of which a client decides how long that takes ---- */
void close_later(int fd);

/* ---- fds.c: at most GSP_MAX_FDS with each packet ---- */
void close_all(const int *fds, unsigned int n);
void close_foreign(const int *fds, unsigned int n);	/* that a client has passed */
/* -errno. */
int send_fds(int sock, const void *data, size_t len, const int *fds, unsigned int n_fds, int flags);
/*
 * The packet's length, 0: end of file, -errno. @fds: room for GSP_MAX_FDS. *@flags: in:
 * MSG_DONTWAIT or 0; out: MSG_TRUNC, MSG_CTRUNC.
 */
ssize_t recv_fds(int sock, void *data, size_t len, int *fds, unsigned int *n_fds, int *flags);

/* ---- listen.c ---- */
int listen_open(const char *path);		/* -errno, logged */
void listen_close(void);
void listen_resume(void);			/* descriptors are available again */

/* ---- groups.c ---- */
struct bound_pid {
	struct list_head node;		/* group->procs */
	struct source src;		/* a pidfd, readable when the process has ended */
	struct group *group;
	pid_t pid;
	/* starttime of /proc/PID/stat, which detects a reused pid */
	uint64_t start;
};

struct group {
	struct gsc_group *core;		/* &own; for the root group, the device's */
	struct gsc_group own;
	struct gsc_delays delays;	/* of @own */
	struct group *parent;		/* NULL: the root group */
	struct device *dev;
	struct list_head node;		/* dev->groups, parents before children */
	char *path;			/* "": the root group */
	unsigned int depth;
	uid_t owner;			/* may bind its own processes */
	char *cgroup;			/* path below the cgroup v2 mount; NULL: not bound */
	struct list_head procs;		/* struct bound_pid */
	unsigned int n_procs;
};

struct group *group_find(struct device *dev, const char *path);
struct group *group_of_pid(struct device *dev, pid_t pid);
int group_create(struct device *dev, const char *path, uid_t owner);
int group_delete(struct group *group);
int group_set(struct group *group, const char *file, const char *value);
int group_get(struct group *group, const char *file, char *buf, size_t size);
int group_bind(struct group *group, pid_t pid, const struct conn *by);
bool group_owned(const struct group *group, uid_t uid);	/* it or an ancestor is owned by @uid */
/* Binds a process as before a restart; -ESRCH. */
int group_rebind(struct group *group, pid_t pid, uint64_t start);
void groups_free(struct device *dev);

/* ---- state.c: what survives a restart ---- */
int state_open(void);			/* -errno, logged */
void state_restore(struct device *dev);	/* groups and settings of a device that was added */
/* After a change; @durable: soon also across a machine crash. Does not wait for the disk. */
void state_save(bool durable);
void state_sync(void);			/* waits; at start, and at exit while the groups are there */
void state_close(void);

/* ---- arbiter.c ---- */
#define DEVICE_SETTINGS	8

/* A file of a device that was set explicitly, which state.c saves */
struct device_setting {
	char file[32], value[64];
};

struct device {
	struct gsc_device core;
	struct list_head node;		/* devices */
	struct device_decl decl;
	struct group root;
	struct list_head groups;	/* all except the root */
	unsigned int n_groups;
	struct source timer;		/* the core's arm_timer */
	unsigned int clients_max;
	struct device_setting setting[DEVICE_SETTINGS];
	unsigned int n_settings;
};

struct client {
	struct gsc_client core;
	struct conn *conn;
	struct device *dev;
	struct group *group;
	uint64_t id;
	struct gsched_arb_page *arb;
	struct gsched_cl_page *cl;
};

extern struct list_head devices;
extern unsigned int n_devices;

int device_add(const struct device_decl *decl);		/* -EEXIST, -EINVAL, -ENOSPC */
int device_del(const uint8_t *uuid, bool force);
struct device *device_find(const char *name);		/* "": the first; NULL: none */
int device_set(struct device *dev, const char *file, const char *value);
/* At exit: tells all clients and detaches them. */
void devices_gone(void);
void devices_free(void);

/* req->state says whether it has to wait. -errno. */
int client_submit(struct client *c, struct gsched_submit *req, bool launched);
int client_complete(struct client *c, const struct gsched_complete *req);
int client_report(struct client *c, struct gsched_report *req);
/* After events: commits the core's decision. */
void device_settle(struct device *dev);

/* ---- client.c ---- */
/* @fds: both pages, for the reply. */
int client_attach(struct conn *conn, struct gsched_attach *req, int *fds);
void client_detach(struct client *c);
/* Files of a process's clients: -ESRCH, -EPERM, -EACCES: read-only, -ENOENT: no such file. */
int clients_set(struct device *dev, pid_t pid, const char *file, const char *value,
		const struct conn *by);
int clients_get(struct device *dev, pid_t pid, const char *file, char *buf, size_t size,
		const struct conn *by);
void client_regroup(struct client *c);			/* its bindings have changed */

/* ---- conn.c ---- */
struct packet {
	struct gsp_header h;
	uint8_t body[GSP_BODY_MAX];
};

struct conn {
	struct source src;
	struct list_head node;		/* conns */
	struct list_head dirty;		/* node among connections with something to send */
	struct list_head ready;		/* node in user->ready */
	pid_t pid;
	uid_t uid;
	bool admin;
	struct user *user;
	struct client *client;
	bool gone;			/* its client was detached from the device */
	bool gone_due;			/* ... and the event for that must be sent */
	/* EVENT_BAND must be sent: its client's header has changed */
	bool band_due;
	/* blocked: the peer does not read, so nothing is read from it */
	bool dead, blocked;
	struct reply *out, **out_end;	/* unsent replies: at most 1, and those of rewrite jobs */
	/* masks of slots: SUBMITs that wait, and those whose reply must be sent */
	uint64_t waiting, answer;
	struct {
		uint32_t cookie, err, len;
		struct gsched_submit req;
	} wait[GSCHED_SLOTS];
	/*
	 * events to be sent, by slot; a later event replaces an earlier one. sent_limit: the limit
	 * that the peer knows
	 */
	uint64_t events;
	uint32_t sent_limit[GSCHED_SLOTS];
	struct gsched_event event[GSCHED_SLOTS];
	unsigned int rewrites;		/* jobs in progress */
};

extern struct list_head conns;
extern unsigned int n_conns;

void conns_init(void);
/* Serves ready connections, users in turn, for a while; true: there are more. */
bool conns_turn(void);
/*
 * Takes @fd over. -errno; EDQUOT: its user has a share of @max already. @waited: the peer may have
 * connected long ago.
 */
int conn_open(int fd, unsigned int max, bool waited);
/* Takes the descriptors over. */
void conn_reply(struct conn *conn, const struct gsp_header *req, int err, const void *body,
		size_t len, const int *fds, unsigned int n_fds);
void conn_event(struct conn *conn, unsigned int slot, const struct gsched_event *event);
void conn_band(struct conn *conn);	/* GSCHED_EVENT_BAND */
void conn_gone(struct conn *conn);	/* before its client is detached */
void conn_window_sent(struct conn *conn, unsigned int slot, uint32_t window);
void conn_answer(struct conn *conn, unsigned int slot, int err);	/* to a waiting SUBMIT */
void conn_dirty(struct conn *conn);
void conns_flush(void);			/* sends what is due, frees dead connections */
void conns_free(void);

/* ---- calls.c ---- */
void call_dispatch(struct conn *conn, struct packet *p, size_t len, int *fds, unsigned int n_fds);

/* ---- status.c ---- */
bool status_shows(const struct conn *to, uid_t uid);	/* whether @to may see @uid's objects */
/* A group's activity is shown to its members and its owner, its settings to everybody. */
bool status_shows_file(const struct conn *to, const struct group *group, const char *file);
void status_reply(struct conn *conn, const struct gsp_header *h);
int memfd_from(const char *name, const void *data, size_t size);	/* -errno */

/* ---- trace.c ---- */
int trace_open(const char *path);	/* -errno */
void trace_event(const char *what, const struct gsc_task *task, uint64_t now);
void trace_close(void);

/* ---- monitor.c: events for readers; they cost nothing while there are none ---- */
/* a descriptor to read lines from; -errno, -EBUSY: too many readers */
int monitor_add(bool tasks);
void monitor_device(const struct device *dev, const char *event);
void monitor_group(const struct group *group, const char *event);
void monitor_client(const struct client *c, const char *event);
void monitor_band(const struct client *c);
void monitor_task(const struct gsc_task *task, const char *event, uint64_t now);
void monitors_close(void);

/* ---- planner.c ---- */
int planner_init(void);			/* -errno, logged */
void planner_stop(void);		/* asks it to end; before the arbiter stops */
void planner_exit(void);		/* waits for its end, for some seconds at most */

/* ---- driver.c ---- */
/*
 * The number of devices; 0: no driver, or it has none. -errno: that is not known, and logged, but
 * for EINTR: @stop_fd can be read, so there is no time for this.
 */
int driver_enumerate(const char *path, struct device_decl *out, unsigned int max, int stop_fd);
int module_add(const struct device_decl *decl);	/* -errno */

/* ---- rewrite.c: the service's side in the daemon ---- */
#define NOTES_MAX	64
enum note_kind { NOTE_REFUSED, NOTE_RESUMABLE, NOTE_KINDS };
struct note {
	uint32_t kind;			/* enum note_kind */
	uint32_t points;		/* RESUMABLE: suspension points; 0: none, see reason */
	char kernel[128];
	char reason[120];
};
struct rewrite_stats {
	uint64_t served, hits, failed;
	struct note note[NOTE_KINDS][NOTES_MAX];	/* rings; each kernel of a user once */
	uid_t uid[NOTE_KINDS][NOTES_MAX];		/* the user of the kernel */
	uint64_t n_notes[NOTE_KINDS];
};
extern struct rewrite_stats rewrite_stats;

int rewrite_init(void);
/* Takes @fd over unless it fails. */
int rewrite_request(struct conn *conn, const struct gsp_header *h,
		    const struct gsp_rewrite *req, int fd);
void rewrite_conn_gone(struct conn *conn);
void rewrite_exit(void);

/* ---- mps.c ---- */
int mps_init(void);			/* -errno, logged */
void mps_exit(void);			/* takes some seconds at most */
/* 0: @req is filled; -EINPROGRESS: the reply follows later; -errno with @req->reason. */
int mps_request(struct conn *conn, const struct gsp_header *h, struct gsp_band *req);
void mps_conn_gone(struct conn *conn);
void group_band(const struct group *group, char *band);	/* GSP_BAND_NAME_SIZE; "": none */
void mps_server_attached(const struct conn *conn);
bool mps_owns(pid_t pid);		/* a control daemon or its server */
void mps_status(struct cJSON *root, const struct conn *to);

/* ---- nvml.c ---- */
/*
 * True: the status has to wait for the list of processes on the GPUs; status_reply() is called
 * then.
 */
bool nvml_wait(struct conn *conn, const struct gsp_header *h);
void nvml_conn_gone(struct conn *conn);
void nvml_status_device(struct cJSON *o, const struct device *dev, const struct conn *to);
void nvml_status(struct cJSON *root, const struct conn *to);	/* of the module's devices */
/*
 * Bands may have changed: while some give way at once, the arbiter is told each second whether
 * programs that are not managed keep a device busy.
 */
void nvml_watch(void);
void nvml_exit(void);

/* ---- worker.c: a process that rewrites ---- */
#define WORKER_NOTES	16
struct worker_request {
	uint64_t id, size;		/* size: of the image, which the name follows */
	uint32_t arch, flags;		/* flags: GSP_REWRITE_* */
	uint32_t name_size, pad;
};
struct worker_reply {
	uint64_t id;
	/* err: positive errno; with 0 or ENOEXEC, descriptors follow */
	uint32_t err, hit;
	uint32_t n_notes, pad;
	struct note note[WORKER_NOTES];
};
int worker_main(int fd);		/* exit status */

#endif /* GSCHEDD_H */
