/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* MPS control daemons as processes. Nothing here knows of connections or of the event loop. */
#ifndef GSCHEDD_MPS_PROC_H
#define GSCHEDD_MPS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "libgsched/proto.h"

#define MPS_GROUPS_MAX	64
#define MPS_REASON	256

/* Whose daemon, for which band, and where it keeps its sockets. */
struct mps_id {
	uid_t uid;
	gid_t gid;
	gid_t groups[MPS_GROUPS_MAX];	/* supplementary groups of the first program that asked */
	unsigned int n_groups;
	char band[GSP_BAND_NAME_SIZE];
	char base[GSP_BAND_DIR_SIZE];	/* DIR/UID/BAND */
	char pipe[GSP_BAND_DIR_SIZE], log[GSP_BAND_DIR_SIZE];
};

/* What all daemons have in common, fixed at start. */
struct mps_setup {
	char program[4096];		/* the control daemon's path */
	char library[4096];		/* preloaded into daemon and server; "" not installed */
	char socket[4096];		/* gschedd's, absolute */
	const char *dir;
	const char *backend;		/* value of GSCHED_BACKEND */
};

bool mps_band_valid(const char *name);
unsigned int mps_backoff_s(unsigned int failures);	/* before the next start: 1, 2, 4 ... 30 */

/*
 * @name itself if it has a '/', else the first executable of that name in @path. false: there is
 * none.
 */
bool mps_find_program(const char *name, const char *path, char *buf, size_t size);
/*
 * Makes the directory if need be. -errno with @reason: it must be the caller's, and nobody else may
 * replace it.
 */
int mps_dir_prepare(const char *dir, char *reason, size_t size);
/* Fills base, pipe and log from @dir, uid and band, and makes DIR/UID. -errno with @reason. */
int mps_id_prepare(struct mps_id *id, const char *dir, char *reason, size_t size);

/*
 * Start the control daemon as the user of @id. Returns the pid, a child, or -errno. *@error_fd:
 * non-blocking; has the reason if the child failed before the daemon's program ran, else it is
 * empty.
 */
pid_t mps_spawn(const struct mps_id *id, const struct mps_setup *setup, int *error_fd);
/* Start the program once more to tell the daemon `quit`. Returns the pid, a child, or -errno. */
pid_t mps_spawn_quit(const struct mps_id *id, const struct mps_setup *setup);
/* Does somebody accept connections at the pipe directory's socket? Never blocks. */
bool mps_listening(const struct mps_id *id);
/* The process that serves the directory by its own account, not checked; 0 unknown. */
pid_t mps_pid_file(const struct mps_id *id);
/* The last child of a control daemon: its MPS server, which may have ended just now; 0 none. */
pid_t mps_server(pid_t daemon);
/* The last line that the daemon printed, made printable; "" none. */
void mps_last_line(const struct mps_id *id, char *buf, size_t size);

/*
 * How it ended, with what it said last. @status: of waitpid(2), -1 not known; @error_fd:
 * mps_spawn()'s, or -1.
 */
void mps_describe_end(const struct mps_id *id, int status, int error_fd, char *buf, size_t size);

#endif /* GSCHEDD_MPS_PROC_H */
