/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Information about processes from /proc */
#ifndef GSCHEDD_PROC_H
#define GSCHEDD_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
	char comm[64];
	pid_t ppid, session;
	uint64_t start;
	uid_t uid;
};
int proc_stat(pid_t pid, struct proc_stat *st);			/* -errno */
/* path of the v2 hierarchy; -errno */
int proc_cgroup(pid_t pid, char *buf, size_t size);

#endif /* GSCHEDD_PROC_H */
