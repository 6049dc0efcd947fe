/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MPS control daemons: mps.c handles requests and status, mps_daemon.c decides when a daemon runs,
 * mps_proc.c does the system's part: directories, processes, the probe. Calls go down this list;
 * mps_proc.c does not know connections or the event loop.
 */
#ifndef GSCHEDD_MPS_H
#define GSCHEDD_MPS_H

#include "gschedd.h"
#include "mps_proc.h"

/* ---- mps_daemon.c ---- */
enum mps_state { MPS_STOPPED, MPS_STARTING, MPS_READY, MPS_ENDING, MPS_BACKOFF };

struct mps_program {
	struct list_head node;
	struct source src;		/* pidfd */
	struct mps_daemon *daemon;
	pid_t pid;
};

struct mps_waiter {
	struct list_head node;
	struct conn *conn;
	struct gsp_header h;
	struct gsp_band req;
	uint64_t deadline;
};

struct mps_daemon {
	struct list_head node;
	struct mps_id id;
	enum mps_state state;
	pid_t pid;
	bool adopted;			/* started by an earlier gschedd, so not our child */
	bool failed;			/* MPS_ENDING because it never became ready */
	struct source process;		/* pidfd */
	struct source server;		/* pidfd of the MPS server that it has started */
	pid_t server_pid;		/* 0: none is known */
	int error_fd;			/* delivers the reason if the child fails before exec */
	struct source quit;		/* pidfd of the process that sends `quit` */
	pid_t quit_pid;
	bool sigterm_sent;			/* MPS_ENDING: SIGTERM was sent */
	struct source timer;
	uint64_t due;			/* the state's deadline; 0: none */
	uint64_t ready_at;
	unsigned int failures;		/* consecutive ones, which determine the back-off */
	unsigned int starts, deaths, server_deaths;
	char reason[MPS_REASON];	/* why it does not run, or died last */
	struct list_head programs, waiters;
};

extern struct list_head mps_daemons;
/* Whether a program that is not among @programs may still use it. */
extern bool (*mps_has_clients)(const struct mps_daemon *d);
extern struct mps_setup mps_setup;

/*
 * The user's daemon for the band; the caller fills in the groups of a new one. NULL: *@err, EBUSY:
 * too many.
 */
struct mps_daemon *mps_daemon_get(uid_t uid, const char *band, int *err);
/* A process serves its directory: watches it, and ends it when it is idle. */
void mps_daemon_adopt(struct mps_daemon *d);
/* Keeps the daemon as long as the process @pid lives. -errno. */
int mps_program_add(struct mps_daemon *d, pid_t pid);
/*
 * Starts the daemon if needed, and answers @req when it is ready or has failed. -errno: not
 * started.
 */
int mps_daemon_wait(struct mps_daemon *d, struct conn *conn, const struct gsp_header *h,
		    const struct gsp_band *req);
/* The daemon may have started its server: watch it. */
void mps_daemon_look(struct mps_daemon *d);
/* The same for the process @pid, if the daemon started it. */
void mps_daemon_server(struct mps_daemon *d, pid_t pid);
void mps_daemons_end(void);		/* takes some seconds at most */

#endif /* GSCHEDD_MPS_H */
