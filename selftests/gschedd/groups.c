// SPDX-License-Identifier: LGPL-2.1-or-later
/* Groups: their names and files, who is in which, and who may change what. */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define NOBODY	65534

static void names(void)
{
	static const char *const bad[] = { "", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a b",
					   "a\nb", "capsm.max", "x/memory.max", "x/procs" };
	char path[256];
	int err = 0, depth = 0;

	is(group_call(GSP_GROUP_CREATE, "a", NULL, NULL), 0, "create a");
	is(group_call(GSP_GROUP_CREATE, "a", NULL, NULL), EEXIST, "create a again: EEXIST");
	is(group_call(GSP_GROUP_CREATE, "b/c", NULL, NULL), ENOENT, "create below nothing: ENOENT");
	is(group_call(GSP_GROUP_CREATE, "a/b", NULL, NULL), 0, "create a/b");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(group_call(GSP_GROUP_CREATE, bad[i], NULL, NULL), EINVAL,
		   "create a bad name (%zu): EINVAL", i);
	memset(path, 'x', 64);
	path[64] = '\0';
	is(group_call(GSP_GROUP_CREATE, path, NULL, NULL), EINVAL, "a name of 64 letters: EINVAL");
	is(group_call(GSP_GROUP_DELETE, "a", NULL, NULL), EBUSY, "delete a above a/b: EBUSY");
	is(group_call(GSP_GROUP_DELETE, "", NULL, NULL), EBUSY, "delete the root group: EBUSY");
	is(group_call(GSP_GROUP_DELETE, "c", NULL, NULL), ENOENT,
	   "delete what is not there: ENOENT");
	is(group_call(GSP_GROUP_DELETE, "a/b", NULL, NULL), 0, "delete a/b");

	strcpy(path, "d");
	for (; !err && depth < 120; depth++) {
		err = group_call(GSP_GROUP_CREATE, path, NULL, NULL);
		if (!err)
			strcat(path, "/d");
	}
	ok(err == EINVAL || depth == 120, "nesting ends in EINVAL at the most (%d levels)", depth);
	for (; *path; *(strrchr(path, '/') ? strrchr(path, '/') : path) = '\0')
		group_call(GSP_GROUP_DELETE, path, NULL, NULL);
	is(group_call(GSP_GROUP_DELETE, "d", NULL, NULL), ENOENT, "and all of them go again");
}

static void files(void)
{
	static const char *const bad[] = { "", "-1", "x", "0", "17", "1e3", "4 5",
					   "99999999999999999999", "0x4" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(group_call(GSP_GROUP_SET, "a", "capsm.max", bad[i]), EINVAL,
		   "capsm.max = \"%s\": EINVAL", bad[i]);
	ok(!strcmp(group_file("a", "capsm.max"), "max\n"), "the old value stays");
	is(group_call(GSP_GROUP_SET, "a", "capsm.max", "4"), 0, "capsm.max = 4");
	ok(!strcmp(group_file("a", "capsm.max"), "4\n"), "reads back");
	is(group_call(GSP_GROUP_SET, "a", "capsm.max", "1.5\n"), 0,
	   "capsm.max = 1.5, with a newline");
	ok(!strcmp(group_file("a", "capsm.max"), "1.5\n"), "reads back");
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "100"), EINVAL,
	   "gpu.priority = 100: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "gpu.priority", "99"), 0, "gpu.priority = 99");
	is(group_call(GSP_GROUP_SET, "a", "gpu.colour", "1"), ENOENT,
	   "a file that is not there: ENOENT");
	is(group_call(GSP_GROUP_GET, "a", "gpu.colour", NULL), ENOENT, "nor to be read: ENOENT");
	is(group_call(GSP_GROUP_SET, "z", "capsm.max", "4"), ENOENT,
	   "a group that is not there: ENOENT");
	is(group_call(GSP_GROUP_SET, "a", "capsm.current", "4"), EACCES,
	   "capsm.current is not to be written: EACCES");
	ok(*group_file("a", "gpu.stat"), "gpu.stat");
	is(group_call(GSP_GROUP_SET, "a", "capsm.reserve", "2.5"), 0, "capsm.reserve = 2.5");
	ok(!strcmp(group_file("a", "capsm.reserve"), "2.5\n"), "reads back");
	is(group_call(GSP_GROUP_SET, "a", "capsm.reserve", "max"), EINVAL,
	   "capsm.reserve = max: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "capsm.reserve", "auto"), 0, "capsm.reserve = auto");
	ok(!strncmp(group_file("a", "gpu.pressure"),
		    "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull ", 52),
	   "gpu.pressure");
	ok(!strncmp(group_file("a", "gpu.events"), "evictions 0\nthrottled 0\n", 24), "gpu.events");
	is(group_call(GSP_GROUP_SET, "a", "gpu.pressure", "some"), EACCES,
	   "neither is to be written: EACCES");
	is(group_call(GSP_GROUP_SET, "a", "owner", "12"), 0, "owner = 12");
	ok(!strcmp(group_file("a", "owner"), "12\n"), "reads back");
	is(group_call(GSP_GROUP_SET, "a", "owner", "-1"), EINVAL, "owner = -1: EINVAL");
	is(group_call(GSP_GROUP_SET, "", "owner", "12"), EINVAL,
	   "the root group has no owner: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "cgroup", "x"), EINVAL, "cgroup = x: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "cgroup", "/x/../y"), EINVAL, "cgroup with ..: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "cgroup", "/sys/fs/cgroup/none/such/"), 0,
	   "cgroup by its path in the file system");
	ok(!strcmp(group_file("a", "cgroup"), "/none/such\n"), "reads back as the cgroup's");
	is(group_call(GSP_GROUP_SET, "a", "cgroup", "\n"), 0, "and is taken back");
	ok(!*group_file("a", "cgroup"), "for nothing");
	is(group_call(GSP_GROUP_SET, "a", "procs", "x"), EINVAL, "procs = x: EINVAL");
	is(group_call(GSP_GROUP_SET, "a", "procs", "-1"), EINVAL, "procs = -1: EINVAL");
	is(group_call(GSP_GROUP_BIND, "a", "procs", "4194305"), ESRCH, "a pid nobody has: ESRCH");
	is(group_call(GSP_GROUP_BIND, "a", "cgroup", "1"), EINVAL, "BIND of another file: EINVAL");
}

/* Is there a client of this group? */
static bool client_in(const char *group)
{
	char want[128], *text = status_text();
	bool found;

	snprintf(want, sizeof(want), "\"group\":\"%s\",\"lease\"", group);
	found = strstr(text, want);
	free(text);
	return found;
}

static pid_t child(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	return pid;
}

static int wait_child(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void attached_grandchild(void)
{
	pid_t pid = fork();

	if (!pid) {
		struct peer_client c;

		attach(&c, 0);
		_exit(!client_in("a"));
	}
	_exit(wait_child(pid));
}

/* Writes whether it is in the group, once its parent has ended */
static void orphan(pid_t parent, int to)
{
	struct peer_client c;
	char in;

	for (int i = 0; i < 10000 && getppid() == parent; i++)
		usleep(1000);
	attach(&c, 0);
	in = client_in("b") ? 'y' : 'n';
	_exit(write(to, &in, 1) != 1);
}

/* The leader of a session, which is bound, and a process of it that forked twice */
static void session_leader(void)
{
	char in = 0;
	pid_t pid;
	int fd[2];

	if (setsid() < 0 || pipe(fd) || group_call(GSP_GROUP_BIND, "b", "procs", "0"))
		_exit(1);
	pid = fork();
	if (!pid) {
		pid = getpid();
		if (!fork())
			orphan(pid, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (wait_child(pid) || read(fd[0], &in, 1) != 1)
		_exit(2);
	_exit(in != 'y');
}

/*
 * A connection that a child has made before it ended. @attached: as a client of the group that the
 * child is bound to.
 */
static int left_behind(const char *attached)
{
	struct gsp_group bind = { .size = sizeof(bind), .file = "procs", .value = "0" };
	struct gsched_attach req = { .size = sizeof(req) };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), err;
	pid_t pid = fork();

	if (!pid) {
		strcpy(addr.sun_path, sock_path);
		err = connect(s, (struct sockaddr *)&addr, sizeof(addr));
		if (attached) {
			strcpy(bind.path, attached);
			memcpy(req.uuid, uuid, sizeof(uuid));
			err = err || call(s, GSP_GROUP_BIND, &bind, sizeof(bind)) ||
			      call(s, GSP_ATTACH, &req, sizeof(req));
		}
		_exit(err != 0);
	}
	is(wait_child(pid), 0, "a process connects and ends");
	return s;
}

static void connections(void)
{
	struct gsp_group bind = { .size = sizeof(bind), .path = "b", .file = "procs", .value = "0" };
	struct gsched_attach req = { .size = sizeof(req) };
	int s = left_behind(NULL);

	memcpy(req.uuid, uuid, sizeof(uuid));
	is(call(s, GSP_ATTACH, &req, sizeof(req)), ESRCH,
	   "who has its connection is no client of the root group");
	is(call(s, GSP_GROUP_BIND, &bind, sizeof(bind)), ESRCH, "nor is anybody bound by it");
	close(s);
	s = left_behind("a");
	for (int i = 0; i < 10000 && *group_file("a", "procs"); i++)
		usleep(1000);
	is(group_call(GSP_GROUP_BIND, "b", "procs", "0"), 0, "bindings change");
	ok(client_in("a"), "a client that outlives its process stays in its group");
	group_call(GSP_GROUP_BIND, "", "procs", "0");
	close(s);
	for (int i = 0; i < 10000 && client_in("a"); i++)
		usleep(1000);
}

static void nothing(void)
{
	pause();
}

/* More than a group could have once. */
#define MANY	300

static void many_processes(void)
{
	pid_t kids[MANY];
	int err = group_call(GSP_GROUP_CREATE, "many", NULL, NULL);
	char pid[16];

	for (int i = 0; i < MANY; i++) {
		kids[i] = child(nothing);
		snprintf(pid, sizeof(pid), "%d", (int)kids[i]);
		err = err ? err : group_call(GSP_GROUP_BIND, "many", "procs", pid);
	}
	is(err, 0, "%d processes in a group", MANY);
	is(group_call(GSP_GROUP_DELETE, "many", NULL, NULL), EBUSY,
	   "delete a group with processes: EBUSY");
	for (int i = 0; i < MANY; i++)
		kill(kids[i], SIGKILL);
	for (int i = 0; i < MANY; i++)
		wait_child(kids[i]);
	is(group_call(GSP_GROUP_DELETE, "many", NULL, NULL), 0, "once they have ended it goes");
}

static void binding(void)
{
	struct peer_client c;
	char pid[16], want[32];
	pid_t kid;

	snprintf(pid, sizeof(pid), "%d", getpid());
	is(group_call(GSP_GROUP_CREATE, "b", NULL, NULL), 0, "create b");
	attach(&c, 0);
	ok(client_in(""), "a process of no group is in the root group");
	is(group_call(GSP_GROUP_BIND, "a", "procs", pid), 0, "bind");
	ok(client_in("a"), "a client that is there moves");
	is(group_call(GSP_GROUP_DELETE, "a", NULL, NULL), EBUSY,
	   "delete a group with a client: EBUSY");
	is(group_call(GSP_GROUP_BIND, "a", "procs", pid), 0, "bind again to the same");
	snprintf(want, sizeof(want), "%s\n", pid);
	ok(!strcmp(group_file("a", "procs"), want), "procs lists it once");
	is(wait_child(child(attached_grandchild)), 0, "a child's child is in the group too");
	is(wait_child(child(session_leader)), 0,
	   "a process that forked twice is in the group of its session's leader");
	is(group_call(GSP_GROUP_BIND, "b", "procs", "0"), 0, "bind 0: the caller");
	ok(client_in("b") && !client_in("a") && !*group_file("a", "procs"),
	   "a process is in one group: the last");
	is(group_call(GSP_GROUP_BIND, "", "procs", pid), 0, "bind to the root group");
	ok(client_in("") && !*group_file("b", "procs"), "takes it out of its group");

	kid = child(nothing);
	snprintf(pid, sizeof(pid), "%d", kid);
	is(group_call(GSP_GROUP_BIND, "b", "procs", pid), 0, "bind another process");
	kill(kid, SIGKILL);
	wait_child(kid);
	for (int i = 0; i < 10000 && *group_file("b", "procs"); i++)
		usleep(1000);
	ok(!*group_file("b", "procs"), "it ends: it is dropped");
	detach(&c);
}

/* Of one that is bound to a group that is deeper than its own */
static void bound_above(void)
{
	struct peer_client c;

	if (group_call(GSP_GROUP_BIND, "a", "procs", "0"))
		_exit(1);
	attach(&c, 0);
	_exit(client_in("a") ? 0 : 2);
}

static void cgroups(void)
{
	struct peer_client c;
	char line[4096], *path = NULL;
	FILE *f = fopen("/proc/self/cgroup", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::", 3)) {
			path = line + 3;
			path[strcspn(path, "\n")] = '\0';
			break;
		}
	if (f)
		fclose(f);
	if (!path) {
		skip("no cgroup v2 here", "a cgroup's processes are in its group");
		return;
	}
	attach(&c, 0);
	is(group_call(GSP_GROUP_SET, "b", "cgroup", path), 0, "cgroup = %s", path);
	ok(client_in("b"), "a cgroup's processes are in its group");
	is(group_call(GSP_GROUP_CREATE, "b/deep", NULL, NULL), 0, "a group below");
	is(group_call(GSP_GROUP_BIND, "b/deep", "procs", "0"), 0, "that the process is bound to");
	ok(client_in("b/deep"), "which wins");
	is(wait_child(child(bound_above)), 0,
	   "the nearest bound process wins, not the deepest group");
	is(group_call(GSP_GROUP_BIND, "", "procs", "0"), 0, "unbound");
	is(group_call(GSP_GROUP_SET, "b", "cgroup", "/none"), 0, "another cgroup");
	ok(client_in(""), "is not this process's");
	group_call(GSP_GROUP_SET, "b", "cgroup", "");
	group_call(GSP_GROUP_DELETE, "b/deep", NULL, NULL);
	detach(&c);
}

/* As another user: the number of the first expectation that does not hold. */
static void other_user(void)
{
	struct gsched_device_add add = { .size = sizeof(add), .uuid = { 9 },
					 .name = "gpu9", .sms = 8 };
	struct gsp_group mode = { .size = sizeof(mode), .file = "mode", .value = "auto" };
	char parent[16];
	int s;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	snprintf(parent, sizeof(parent), "%d", getppid());
	s = peer();
	if (call(s, 0x01, &add, sizeof(add)) != EPERM)
		_exit(2);
	if (call(s, GSP_DEVICE_SET, &mode, sizeof(mode)) != EPERM)
		_exit(3);
	close(s);
	if (group_call(GSP_GROUP_CREATE, "mine", NULL, NULL) != EPERM)
		_exit(4);
	if (group_call(GSP_GROUP_DELETE, "b", NULL, NULL) != EPERM)
		_exit(5);
	if (group_call(GSP_GROUP_SET, "b", "capsm.max", "max") != EPERM)
		_exit(6);
	if (group_call(GSP_GROUP_SET, "own", "capsm.max", "max") != EPERM)
		_exit(7);	/* the owner may not lift the quota either */
	if (group_call(GSP_GROUP_SET, "own", "owner", "0") != EPERM)
		_exit(8);
	if (group_call(GSP_GROUP_SET, "own", "cgroup", "/") != EPERM)
		_exit(9);
	if (group_call(GSP_GROUP_BIND, "b", "procs", "0") != EPERM)
		_exit(10);
	if (group_call(GSP_GROUP_BIND, "own", "procs", parent) != EPERM)
		_exit(11);
	if (group_call(GSP_GROUP_BIND, "own", "procs", "0"))
		_exit(12);
	if (group_call(GSP_GROUP_BIND, "own/below", "procs", "0"))
		_exit(13);
	if (group_call(GSP_GROUP_BIND, "", "procs", "0") != EPERM)
		_exit(14);
	/* both are its own, but not what is above them */
	if (group_call(GSP_GROUP_BIND, "own2", "procs", "0") != EACCES)
		_exit(16);
	if (group_call(GSP_GROUP_BIND, "own", "procs", "0"))
		_exit(17);
	if (strcmp(group_file("b", "capsm.max"), "max\n"))
		_exit(15);	/* settings are for everybody to read */
	if (group_call(GSP_GROUP_GET, "b", "gpu.stat", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "", "gpu.stat", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "b", "gpu.pressure", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "b", "gpu.events", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "b", "capsm.current", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "b", "memory.current", NULL) != EPERM ||
	    group_call(GSP_GROUP_GET, "", "memory.peak", NULL) != EPERM)
		_exit(18);	/* what others do now is not */
	if (group_call(GSP_GROUP_GET, "own", "gpu.stat", NULL) ||
	    group_call(GSP_GROUP_GET, "own", "memory.current", NULL))
		_exit(19);
	if (group_call(GSP_GROUP_SET, "own", "memory.max", "max") != EPERM)
		_exit(20);
}

static void bound_user(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		_exit(1);
	_exit(group_call(GSP_GROUP_BIND, "own", "procs", "0") != EACCES);
}

static void permissions(void)
{
	char uid[16];

	if (getuid()) {
		skip("needs root", "another user");
		return;
	}
	snprintf(uid, sizeof(uid), "%d", NOBODY);
	group_call(GSP_GROUP_CREATE, "own", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "own/below", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "own2", NULL, NULL);
	group_call(GSP_GROUP_SET, "own2", "owner", uid);
	is(group_call(GSP_GROUP_SET, "own", "owner", uid), 0, "give a group to another user");
	is(wait_child(child(other_user)), 0,
	   "who may do what is allowed and nothing else (number of what failed)");
	is(group_call(GSP_GROUP_BIND, "b", "procs", "0"), 0,
	   "root binds a process and what it forks");
	is(wait_child(child(bound_user)), 0, "whose child cannot leave for a group of its own");
	group_call(GSP_GROUP_BIND, "", "procs", "0");
}

int main(void)
{
	daemon_start("--device", DEVICE, NULL);
	names();
	files();
	many_processes();
	binding();
	connections();
	cgroups();
	permissions();
	return done_testing();
}
