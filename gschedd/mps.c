// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * --mps: which band a program is in, its answer about the MPS server, and the servers' part of the
 * status.
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mps.h"

#ifndef GSCHED_LIBDIR
#define GSCHED_LIBDIR	"/usr/local/lib"
#endif
#define LIBRARY		"gsched/libgsched-mps.so"
#define WAITERS_CONN	4

/*
 * Beside this program (a build tree, an installation that was moved), else where it was installed.
 * "": there is none.
 */
static void find_library(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - sizeof("/lib/" LIBRARY));
	char *slash;

	for (int up = 0; n > 0 && up < 2; up++) {
		buf[n] = '\0';
		slash = strrchr(buf, '/');
		n = slash ? slash - buf : 0;
	}
	if (n > 0) {
		strcpy(buf + n, "/lib/" LIBRARY);
		if (!access(buf, R_OK))
			return;
	}
	snprintf(buf, size, "%s", GSCHED_LIBDIR "/" LIBRARY);
	if (access(buf, R_OK))
		buf[0] = '\0';
}

/*
 * Attached clients count too, because children that outlive the program that gschedctl started are
 * not among the programs.
 */
static bool has_clients(const struct mps_daemon *d)
{
	char band[GSP_BAND_NAME_SIZE];
	struct conn *conn;

	list_for_each_entry(conn, &conns, node) {
		if (!conn->client || conn->uid != d->id.uid || mps_owns(conn->pid))
			continue;
		group_band(conn->client->group, band);
		if (!strcmp(band, d->id.band))
			return true;
	}
	return false;
}

static void adopt_user(uid_t uid, gid_t gid, const char *path)
{
	DIR *dir = opendir(path);
	struct mps_daemon *d;
	struct dirent *e;
	int err;

	while (dir && (e = readdir(dir))) {
		struct mps_id id = { .uid = uid };
		char reason[MPS_REASON];

		if (!mps_band_valid(e->d_name))
			continue;
		strcpy(id.band, e->d_name);
		if (mps_id_prepare(&id, opt.mps_dir, reason, sizeof(reason)) || !mps_listening(&id))
			continue;
		d = mps_daemon_get(uid, id.band, &err);
		if (!d)
			continue;
		d->id.gid = gid;	/* until a program asks */
		mps_daemon_adopt(d);
	}
	if (dir)
		closedir(dir);
}

/* Adopts daemons of a gschedd that was killed: they continue to serve. */
static void adopt_all(void)
{
	DIR *dir = opendir(opt.mps_dir);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char path[PATH_MAX];
		unsigned long uid;
		struct stat st;
		char *end = "";

		uid = isdigit((unsigned char)e->d_name[0]) ? strtoul(e->d_name, &end, 10) :
		      (unsigned long)-1;
		if (uid >= UINT32_MAX || *end || (geteuid() && uid != geteuid()) ||
		    snprintf(path, sizeof(path), "%s/%s", opt.mps_dir,
			     e->d_name) >= (int)sizeof(path) ||
		    lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != uid)
			continue;
		adopt_user((uid_t)uid, st.st_gid, path);
	}
	if (dir)
		closedir(dir);
}

int mps_init(void)
{
	char reason[MPS_REASON], cwd[PATH_MAX] = "";
	int err;

	if (!opt.mps)
		return 0;
	if (!mps_find_program(opt.mps_program, getenv("PATH"), mps_setup.program,
			      sizeof(mps_setup.program))) {
		say(LOG_ERROR, "--mps: %s: there is no such program%s; install NVIDIA's MPS (it "
		    "comes with the driver), name its control daemon with --mps-program, or "
		    "leave out --mps", opt.mps_program, strchr(opt.mps_program, '/') ? "" :
		    " in $PATH");
		return -ENOENT;
	}
	err = mps_dir_prepare(opt.mps_dir, reason, sizeof(reason));
	if (err) {
		say(LOG_ERROR, "--mps: %s", reason);
		return err;
	}
	find_library(mps_setup.library, sizeof(mps_setup.library));
	if (!*mps_setup.library)
		say(LOG_WARN, "--mps: " LIBRARY " is not installed: MPS servers run with the "
		    "driver's time slice");
	if (*opt.socket != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	if (snprintf(mps_setup.socket, sizeof(mps_setup.socket), "%s%s%s", cwd, *cwd ? "/" : "",
		     opt.socket) >=
	    (int)sizeof(mps_setup.socket))
		return -ENAMETOOLONG;
	mps_setup.dir = opt.mps_dir;
	mps_setup.backend = opt.arbiter == ARBITER_MODULE ? "module" : "daemon";
	mps_has_clients = has_clients;
	adopt_all();
	return 0;
}

void mps_exit(void)
{
	mps_daemons_end();
}

/*
 * The band of a group is its own, or that of the nearest ancestor with one. It is read through the
 * group's file, so that only the core knows its representation; a core without that file has no
 * bands.
 */
void group_band(const struct group *group, char *band)
{
	int file = gsc_file_find("gpu.band");
	char text[64];

	*band = '\0';
	for (; file >= 0 && group; group = group->parent) {
		if (gsc_group_show(group->core, file, text, sizeof(text)) < 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (!mps_band_valid(text))
			continue;
		strcpy(band, text);
		return;
	}
}

static int resolve_band(const struct conn *conn, struct gsp_band *req, pid_t pid)
{
	struct device *dev;
	struct group *group;

	if (req->flags & GSP_BAND_BY_NAME)
		return !*req->band || mps_band_valid(req->band) ? 0 : -EINVAL;
	dev = device_find(req->device);
	if (!dev)
		return -ENODEV;
	group = *req->path ? group_find(dev, req->path) : group_of_pid(dev, pid);
	if (!group)
		return -ENOENT;
	group_band(group, req->band);
	return 0;
}

static int refuse_program(struct gsp_band *req, int err, const char *reason)
{
	snprintf(req->reason, sizeof(req->reason), "%s", reason);
	return err;
}

static bool waits_too_often(const struct conn *conn)
{
	struct mps_daemon *d;
	struct mps_waiter *w;
	unsigned int n = 0;

	list_for_each_entry(d, &mps_daemons, node)
		list_for_each_entry(w, &d->waiters, node)
			n += w->conn == conn;
	return n >= WAITERS_CONN;
}

/* The server needs the program's groups to open the device files. */
static void take_groups(struct mps_daemon *d, const struct conn *conn)
{
	socklen_t len = sizeof(d->id.groups), cred_len = sizeof(struct ucred);
	struct ucred cred;

	if (!getsockopt(conn->src.fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len))
		d->id.gid = cred.gid;
	d->id.n_groups = 0;
	if (!getsockopt(conn->src.fd, SOL_SOCKET, SO_PEERGROUPS, d->id.groups, &len))
		d->id.n_groups = len / sizeof(gid_t);
}

int mps_request(struct conn *conn, const struct gsp_header *h, struct gsp_band *req)
{
	pid_t pid = req->pid ? (pid_t)req->pid : conn->pid;
	struct mps_daemon *d;
	struct proc_stat st;
	int err;

	memset(req->pipe, 0, sizeof(req->pipe));
	memset(req->log, 0, sizeof(req->log));
	memset(req->reason, 0, sizeof(req->reason));
	err = resolve_band(conn, req, pid);
	if (err)
		return refuse_program(req, err, err == -ENODEV ? "there is no such device" :
				      err == -ENOENT ? "there is no such group" :
				      "a band's name is at most 31 of a-z, 0-9, \"_\" and \"-\"");
	if (!opt.mps)
		memset(req->band, 0, sizeof(req->band));
	if (!*req->band || req->flags & GSP_BAND_NO_START)
		return 0;
	err = proc_stat(pid, &st);
	if (!err && st.uid != conn->uid && !conn->admin)
		err = -EPERM;
	if (err)
		return refuse_program(req, err, err == -EPERM ? "the process is another user's" :
				      "gschedd does not see such a process");
	if (geteuid() && conn->uid != geteuid())
		return refuse_program(req, -EPERM,
				      "gschedd does not run as root and starts MPS servers for its "
				      "own user only");
	if (waits_too_often(conn))
		return -EBUSY;
	d = mps_daemon_get(conn->uid, req->band, &err);
	if (!d)
		return refuse_program(req, err, err == -EBUSY ? "this user, or all together, have "
				      "as many MPS servers as gschedd takes; end programs "
				      "of other bands" : strerror(-err));
	take_groups(d, conn);
	err = mps_program_add(d, pid);
	if (err)
		return refuse_program(req, err, err == -EBUSY ? "the band has too many programs" :
				      strerror(-err));
	if (d->state == MPS_READY) {
		memcpy(req->pipe, d->id.pipe, sizeof(req->pipe));
		memcpy(req->log, d->id.log, sizeof(req->log));
		return 0;
	}
	err = mps_daemon_wait(d, conn, h, req);
	return err ? err : -EINPROGRESS;
}

void mps_conn_gone(struct conn *conn)
{
	struct mps_waiter *w, *next;
	struct mps_daemon *d;

	list_for_each_entry(d, &mps_daemons, node)
		list_for_each_entry_safe(w, next, &d->waiters, node)
			if (w->conn == conn) {
				list_del_init(&w->node);
				free(w);
			}
}

void mps_server_attached(const struct conn *conn)
{
	struct mps_daemon *d;

	list_for_each_entry(d, &mps_daemons, node)
		if (d->id.uid == conn->uid)
			mps_daemon_server(d, conn->pid);
}

/* A control daemon that gschedd runs, or a process that it started. */
bool mps_owns(pid_t pid)
{
	struct proc_stat st;
	struct mps_daemon *d;

	if (list_empty(&mps_daemons) || proc_stat(pid, &st))
		return false;
	list_for_each_entry(d, &mps_daemons, node)
		if (d->pid > 0 && (d->pid == pid || d->pid == st.ppid))
			return true;
	return false;
}

void mps_status(struct cJSON *root, const struct conn *to)
{
	static const char *const state[] = { "stopped", "starting", "ready", "ending",
					     "restarting" };
	const struct mps_program *p;
	struct mps_daemon *d;
	cJSON *mps, *list, *o, *pids;

	if (!opt.mps)
		return;
	mps = cJSON_AddObjectToObject(root, "mps");
	cJSON_AddStringToObject(mps, "program", mps_setup.program);
	cJSON_AddStringToObject(mps, "library", mps_setup.library);
	list = cJSON_AddArrayToObject(mps, "servers");
	list_for_each_entry(d, &mps_daemons, node) {
		if (!status_shows(to, d->id.uid))
			continue;
		o = cJSON_CreateObject();
		cJSON_AddItemToArray(list, o);
		cJSON_AddStringToObject(o, "band", d->id.band);
		cJSON_AddNumberToObject(o, "uid", d->id.uid);
		cJSON_AddStringToObject(o, "state", state[d->state]);
		if (d->pid > 0)
			cJSON_AddNumberToObject(o, "pid", d->pid);
		mps_daemon_look(d);
		if (d->server_pid)
			cJSON_AddNumberToObject(o, "server", d->server_pid);
		cJSON_AddStringToObject(o, "pipe", d->id.pipe);
		pids = cJSON_AddArrayToObject(o, "programs");
		list_for_each_entry(p, &d->programs, node)
			cJSON_AddItemToArray(pids, cJSON_CreateNumber(p->pid));
		cJSON_AddNumberToObject(o, "starts", d->starts);
		cJSON_AddNumberToObject(o, "deaths", d->deaths);
		cJSON_AddNumberToObject(o, "server_deaths", d->server_deaths);
		cJSON_AddStringToObject(o, "reason", d->reason);
	}
}
