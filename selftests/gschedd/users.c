// SPDX-License-Identifier: LGPL-2.1-or-later
/* Users among each other: shares of what there is, and whose requests come first. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define NOBODY	65534
#define SOMEONE	65533

static char messages[128];

static bool said(const char *what)
{
	int fd = open(messages, O_RDONLY | O_CLOEXEC);
	char text[8192] = "";
	bool found;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		exit(1);
	close(fd);
	found = strstr(text, what);
	if (!found)
		printf("# %s", text);
	return found;
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		_exit(99);
}

/* In a child that is @uid: fn, which gets one end of a pair to talk over */
static pid_t as(uid_t uid, void (*fn)(int talk), int *talk)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		exit(1);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		become(uid);
		fn(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	*talk = pair[0];
	return pid;
}

static void tell(int talk, int n)
{
	if (write(talk, &n, sizeof(n)) != sizeof(n))
		exit(1);
}

static int hear(int talk)
{
	int n;

	return read(talk, &n, sizeof(n)) == sizeof(n) ? n : -1;
}

/* ---- clients of a device ---- */

static int try_attach(int *s)
{
	struct gsched_attach req = { .size = sizeof(req) };
	struct reply r;
	int err;

	memcpy(req.uuid, uuid, sizeof(uuid));
	*s = peer();
	err = call_fds(*s, GSP_ATTACH, &req, sizeof(req), -1, &r);
	reply_free(&r);
	return err;
}

/* As many clients as it gets; says how many, and the error that ended it. Ends when told. */
static void hog_clients(int talk)
{
	int n = 0, err, s;

	while (!(err = try_attach(&s)))
		n++;
	tell(talk, n);
	tell(talk, err);
	hear(talk);
}

static void client_shares(void)
{
	struct gsp_group max = { .size = sizeof(max), .file = "clients_max", .value = "8" };
	int s = peer(), talk[2], n, own[8];
	pid_t pid[2];

	is(call(s, GSP_DEVICE_SET, &max, sizeof(max)), 0, "a device for 8 clients");
	close(s);
	pid[0] = as(NOBODY, hog_clients, &talk[0]);
	n = hear(talk[0]);
	is(n, 4, "a user gets half of the places");
	is(hear(talk[0]), EDQUOT, "and then EDQUOT");
	ok(said("uid 65534 has its share of clients, half of what others leave of 8"),
	   "and the log says so");
	pid[1] = as(SOMEONE, hog_clients, &talk[1]);
	n = hear(talk[1]);
	is(n, 2, "the next one half of the rest");
	is(hear(talk[1]), EDQUOT, "and then EDQUOT");
	is(try_attach(&own[0]), 0, "the administrator has no share");
	is(try_attach(&own[1]), 0, "and takes the last place");
	is(try_attach(&s), ENOSPC, "after which there is none: ENOSPC");
	close(s);
	for (int i = 0; i < 2; i++) {
		tell(talk[i], 0);
		waitpid(pid[i], NULL, 0);
		close(talk[i]);
		close(own[i]);
	}
}

/* ---- quotas of one client ---- */

static char own_pid[16];

static int client_set(const char *file, const char *value)
{
	return group_call(GSP_CLIENT_SET, own_pid, file, value);
}

static const char *client_file(const char *file)
{
	static struct gsp_group req;
	struct reply r;
	int s = peer();

	req = (struct gsp_group){ .size = sizeof(req) };
	snprintf(req.path, sizeof(req.path), "%s", own_pid);
	snprintf(req.file, sizeof(req.file), "%s", file);
	if (call_fds(s, GSP_CLIENT_GET, &req, sizeof(req), -1, &r))
		req.value[0] = '\0';
	else
		memcpy(&req, r.body, sizeof(req));
	reply_free(&r);
	close(s);
	return req.value;
}

/* Attaches, says its pid, then what its own attempts come to, each when it is told to */
static void owner(int talk)
{
	int s;

	if (try_attach(&s))
		_exit(1);
	tell(talk, getpid());
	snprintf(own_pid, sizeof(own_pid), "%d", getpid());
	hear(talk);
	tell(talk, client_set("capsm.max", "5"));
	tell(talk, client_set("capsm.max", "3"));
	tell(talk, client_set("capsm.max", "4"));
	tell(talk, client_set("gpu.priority", "0"));
	tell(talk, client_set("gpu.priority", "max"));
	tell(talk, client_set("gpu.weight", "101"));
	tell(talk, client_set("gpu.weight", "50"));
	hear(talk);
}

static void somebody_else(int talk)
{
	tell(talk, client_set("capsm.max", "1"));
	tell(talk, *client_file("capsm.max") != 0);
}

static void client_quotas(void)
{
	static const int answers[] = { EPERM, 0, EPERM, 0, EPERM, EPERM, 0 };
	pid_t pid, other;
	int talk, talk2;
	char *text;

	pid = as(NOBODY, owner, &talk);
	snprintf(own_pid, sizeof(own_pid), "%d", hear(talk));
	ok(!strcmp(client_file("capsm.max"), "max\n") &&
	   !strcmp(client_file("gpu.weight"), "100\n") &&
	   !strcmp(client_file("gpu.priority"), "max\n"),
	   "a client begins with what its group has");
	is(client_set("capsm.max", "4"), 0, "root limits it");
	for (unsigned int i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (!i)
			tell(talk, 0);
		is(hear(talk), answers[i], "the owner may lower what it has (%u)", i);
	}
	ok(!strcmp(client_file("capsm.max"), "3\n") && !strcmp(client_file("gpu.weight"), "50\n") &&
	   !strcmp(client_file("gpu.priority"), "0\n"), "which is what it has then");
	text = status_text();
	ok(strstr(text, "\"capsm.max\":\"3\",\"gpu.weight\":\"50\",\"gpu.priority\":\"0\""),
	   "the status shows it");
	free(text);
	other = as(SOMEONE, somebody_else, &talk2);
	is(hear(talk2), EPERM, "nobody else may");
	is(hear(talk2), 0, "nor look");
	is(client_set("capsm.max", "17"), EINVAL, "above the device: EINVAL");
	is(client_set("capsm.max", "max"), 0, "root raises it");
	is(client_set("capsm.min", "1"), ENOENT, "a file that only groups have: ENOENT");
	is(group_call(GSP_CLIENT_SET, "1", "capsm.max", "1"), ESRCH,
	   "a process that is no client: ESRCH");
	is(group_call(GSP_CLIENT_SET, "x", "capsm.max", "1"), EINVAL, "what is no process: EINVAL");
	is(group_call(GSP_CLIENT_SET, "", "capsm.max", "1"), EINVAL, "nor nothing: EINVAL");
	tell(talk, 0);
	waitpid(pid, NULL, 0);
	waitpid(other, NULL, 0);
	close(talk);
	close(talk2);
}

/* ---- connections ---- */

static void hog_connections(int talk)
{
	struct gsched_info info = { .size = sizeof(info) };
	int n = 0;

	while (n < 1000 && !call(peer(), GSP_INFO, &info, sizeof(info)))
		n++;
	tell(talk, n);
	hear(talk);
}

static void connection_shares(void)
{
	struct gsched_info info = { .size = sizeof(info) };
	int s, talk, n;
	pid_t pid;

	daemon_stop(SIGTERM);
	daemon_files = 200;
	daemon_start("--device", DEVICE, NULL);
	daemon_files = 0;
	pid = as(NOBODY, hog_connections, &talk);
	n = hear(talk);
	ok(n == 17, "of room for 34 connections a user gets half: %d", n);
	ok(said("uid 65534 has its share of connections, 17 of 34"), "and the log says so");
	s = peer();
	is(call(s, GSP_INFO, &info, sizeof(info)), 0, "others are served");
	close(s);
	tell(talk, 0);
	waitpid(pid, NULL, 0);
	close(talk);
	daemon_stop(SIGTERM);
	daemon_start("--device", DEVICE, NULL);
}

/* ---- turns ---- */

#define FLOOD_CONNS	60
#define FLOOD_REQUESTS	50	/* on each */

/*
 * Requests are queued while gschedd is stopped. Says how many were answered before the group "mark"
 * was there.
 */
static void flood(int talk)
{
	struct gsp_group req = { .size = sizeof(req), .path = "mark", .file = "capsm.max" };
	unsigned int answers = 0, before = 0, want = 0;
	struct pollfd p[FLOOD_CONNS];
	struct reply r;

	for (int i = 0; i < FLOOD_CONNS; i++) {
		p[i] = (struct pollfd){ .fd = peer(), .events = POLLIN };
		fcntl(p[i].fd, F_SETFL, O_NONBLOCK);
		for (int k = 0; k < FLOOD_REQUESTS && !send_req(p[i].fd, GSP_GROUP_GET, 0, k, &req,
								sizeof(req), -1); k++)
			want++;
	}
	tell(talk, (int)want);
	while (answers < want && poll(p, FLOOD_CONNS, 60000) > 0)
		for (int i = 0; i < FLOOD_CONNS; i++) {
			while (p[i].revents & POLLIN && receive(p[i].fd, &r, 0)) {
				answers++;
				before += r.h.err == ENOENT;
			}
			if (p[i].revents & (POLLHUP | POLLERR))
				p[i].fd = -1;
		}
	tell(talk, answers == want ? (int)before : -1);
}

static void turns(void)
{
	struct gsp_group req = { .size = sizeof(req), .path = "mark" };
	int talk, want, before, s, status;
	struct reply r;
	pid_t pid;

	kill(daemon_pid, SIGSTOP);
	waitpid(daemon_pid, &status, WUNTRACED);
	pid = as(NOBODY, flood, &talk);
	want = hear(talk);
	/* behind all of them */
	s = peer();
	send_req(s, GSP_GROUP_CREATE, 0, 1, &req, sizeof(req), -1);
	kill(daemon_pid, SIGCONT);
	ok(receive(s, &r, 60000) && !r.h.err, "a request behind %d of another user's", want);
	before = hear(talk);
	waitpid(pid, NULL, 0);
	ok(before >= 0 && before < want / 2, "is served before most of them: %d were first",
	   before);
	close(s);
	close(talk);
}

/* ---- administrators, and who sees what ---- */

/* Uid 0 in a user namespace of its own, in which uid 0 is the host's */
static void contained(int talk)
{
	struct gsched_device_add add = { .size = sizeof(add), .uuid = { 9 }, .name = "gpu9",
					.sms = 8 };
	struct gsp_group mode = { .size = sizeof(mode), .file = "mode", .value = "auto" };
	int s;

	if (unshare(CLONE_NEWUSER)) {
		tell(talk, -1);
		return;
	}
	tell(talk, 0);
	hear(talk);	/* the map is written */
	s = peer();
	tell(talk, getuid() ? 1 : call(s, 0x01, &add, sizeof(add)) != EPERM ? 2 :
		   call(s, GSP_DEVICE_SET, &mode, sizeof(mode)) != EPERM ? 3 :
		   group_call(GSP_GROUP_CREATE, "mine", NULL, NULL) != EPERM ? 4 :
		   group_call(GSP_GROUP_SET, "roots", "capsm.max", "max") != EPERM ? 5 :
		   group_call(GSP_GROUP_SET, "", "capsm.max", "max") != EPERM ? 6 :
		   group_call(GSP_GROUP_BIND, "roots", "procs", "0") != EPERM ? 7 :
		   group_call(GSP_GROUP_DELETE, "roots", NULL, NULL) != EPERM ? 8 : 0);
}

static void put_map(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0 0 1", 5) != 5)
		exit(1);
	close(fd);
}

static void containers(void)
{
	int talk, failed;
	pid_t pid;

	is(group_call(GSP_GROUP_CREATE, "roots", NULL, NULL), 0, "a group of root's");
	pid = as(0, contained, &talk);
	if (hear(talk)) {
		skip("no user namespaces", "uid 0 of a container");
	} else {
		put_map(pid, "uid_map");
		put_map(pid, "gid_map");
		tell(talk, 0);
		failed = hear(talk);
		is(failed, 0, "uid 0 of a container does not administrate (number of what failed)");
	}
	waitpid(pid, NULL, 0);
	close(talk);
	is(group_call(GSP_GROUP_DELETE, "roots", NULL, NULL), 0, "root does");
}

static void with_client(int talk)
{
	int s, err = try_attach(&s);

	tell(talk, err);
	hear(talk);
}

static bool shows(const char *text, const char *fmt, int n)
{
	char want[64];

	snprintf(want, sizeof(want), fmt, n);
	return strstr(text, want);
}

static int others;	/* pid of somebody else's client */

static void looker(int talk)
{
	char *text;
	int s;

	if (try_attach(&s)) {
		tell(talk, 1);
		return;
	}
	text = status_text();
	tell(talk, !shows(text, "\"pid\":%d,", getpid()) ? 2 :
		   shows(text, "\"pid\":%d,", others) ? 3 :
		   shows(text, "pid-%d", others) ? 4 : !strstr(text, "\"path\":\"\"") ? 5 :
		   !strstr(text, "\"path\":\"own\"") ||
		   !strstr(text, "\"path\":\"own/below\"") ? 6 :
		   strstr(text, "\"path\":\"roots\"") ? 7 : 0);
	free(text);
}

static void watcher(int talk)
{
	struct gsp_monitor req = { .size = sizeof(req) };
	int s = peer();

	tell(talk, call(s, GSP_MONITOR, &req, sizeof(req)));
}

static void views(void)
{
	int talk[3], n;
	pid_t pid[3];
	char *text;

	group_call(GSP_GROUP_CREATE, "roots", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "own", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "own/below", NULL, NULL);
	group_call(GSP_GROUP_SET, "own", "owner", "65533");
	pid[0] = as(NOBODY, with_client, &talk[0]);
	is(hear(talk[0]), 0, "a user's client");
	others = pid[0];
	pid[1] = as(SOMEONE, looker, &talk[1]);
	n = hear(talk[1]);
	is(n, 0, "another user sees what is theirs and no more (number of what failed)");
	pid[2] = as(SOMEONE, watcher, &talk[2]);
	is(hear(talk[2]), EPERM, "and may not watch what happens: EPERM");
	text = status_text();
	ok(shows(text, "\"pid\":%d,", others) && strstr(text, "\"path\":\"roots\""),
	   "root sees everything");
	free(text);
	tell(talk[0], 0);
	for (int i = 0; i < 3; i++) {
		waitpid(pid[i], NULL, 0);
		close(talk[i]);
	}
}

int main(void)
{
	int err, fd;

	test_dir();
	if (getuid()) {
		skip("needs root", "users among each other");
		return done_testing();
	}
	snprintf(messages, sizeof(messages), "%s/messages", dir);
	err = dup(2);
	fd = open(messages, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (err < 0 || fd < 0)
		exit(1);
	dup2(fd, 2);
	daemon_start("--device", DEVICE, NULL);
	client_quotas();
	client_shares();
	connection_shares();
	turns();
	containers();
	views();
	dup2(err, 2);
	return done_testing();
}
