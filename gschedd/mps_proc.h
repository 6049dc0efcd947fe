/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* MPS control daemons as processes, independent of connections and of the event loop. */
#ifndef GSCHEDD_MPS_PROC_H
#define GSCHEDD_MPS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "libgsched/proto.h"

#define MPS_GROUPS_MAX	64
#define MPS_REASON	256

/* The user of a daemon, its band, and the directories of its sockets */
struct mps_id {
	uid_t uid;
	gid_t gid;
	gid_t groups[MPS_GROUPS_MAX];	/* supplementary groups of the first program that asked */
	unsigned int n_groups;
	char band[GSP_BAND_NAME_SIZE];
	char base[GSP_BAND_DIR_SIZE];	/* DIR/UID/BAND */
	char pipe[GSP_BAND_DIR_SIZE], log[GSP_BAND_DIR_SIZE];
};

/* What all daemons share; fixed at start */
struct mps_setup {
	char program[4096];		/* the control daemon's path */
	char library[4096];		/* preloaded into daemon and server; "": not installed */
	char socket[4096];		/* gschedd's, absolute */
	const char *dir;
	const char *backend;		/* value of GSCHED_BACKEND */
};

bool mps_band_valid(const char *name);
/* Delay of the next start: 1, 2, 4 ... 30. */
unsigned int mps_backoff_s(unsigned int failures);

/*
 * @name itself if it contains a '/', else the first executable of that name in @path. false: there
 * is none.
 */
bool mps_find_program(const char *name, const char *path, char *buf, size_t size);
/*
 * Creates the directory if needed. -errno with @reason: it must belong to the caller, and no other
 * user may be able to replace it.
 */
int mps_dir_prepare(const char *dir, char *reason, size_t size);
/* Fills base, pipe and log from @dir, uid and band, and creates DIR/UID. -errno with @reason. */
int mps_id_prepare(struct mps_id *id, const char *dir, char *reason, size_t size);

/*
 * Starts the control daemon as the user of @id. Returns the pid, a child, or -errno. *@error_fd is
 * non-blocking; it has the reason if the child failed before it ran the daemon's program, else it
 * is empty.
 */
pid_t mps_spawn(const struct mps_id *id, const struct mps_setup *setup, int *error_fd);
/* Runs the program again to send `quit` to the daemon. Returns the pid, a child, or -errno. */
pid_t mps_spawn_quit(const struct mps_id *id, const struct mps_setup *setup);
/* Whether a process accepts connections at the pipe directory's socket. Never blocks. */
bool mps_listening(const struct mps_id *id);
/* The process that claims to serve the directory, not verified; 0: unknown. */
pid_t mps_pid_file(const struct mps_id *id);
/* The last child of a control daemon: its MPS server, which may just have ended; 0: none. */
pid_t mps_server(pid_t daemon);
/* The last line that the daemon printed, made printable; "": none. */
void mps_last_line(const struct mps_id *id, char *buf, size_t size);

/*
 * Describes how the daemon ended, including its last message. @status: of waitpid(2), -1: unknown;
 * @error_fd: of mps_spawn(), or -1.
 */
void mps_describe_end(const struct mps_id *id, int status, int error_fd, char *buf, size_t size);

#endif /* GSCHEDD_MPS_PROC_H */
