// SPDX-License-Identifier: LGPL-2.1-or-later
/* What survives gschedd: groups, quotas, bindings; and files that somebody damaged. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define OTHER	"gpu1:10010203-0405-0607-0809-0a0b0c0d0e0f:8"
#define LINE	512

static char state[96], file[128], aside[160], messages[128];

static char *text_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = calloc(1, 1 << 20);

	if (fd >= 0) {
		if (read(fd, text, (1 << 20) - 1) < 0)
			exit(1);
		close(fd);
	}
	return text;
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(1);
}

/* Start it with its messages in a file; what it said */
static char *start_said(void)
{
	int err = dup(2), fd = open(messages, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (err < 0 || fd < 0)
		exit(1);
	dup2(fd, 2);
	daemon_start("--device", DEVICE, "--state", state, "--log-level", "info", NULL);
	dup2(err, 2);
	close(err);
	close(fd);
	return text_of(messages);
}

static void start(void)
{
	free(start_said());
}

static bool reads(const char *path, const char *name, const char *want)
{
	const char *got = group_file(path, name);

	if (strcmp(got, want))
		printf("# %s of %s: %s", name, path, got);
	return !strcmp(got, want);
}

static bool all_there(void)
{
	return reads("", "capsm.max", "12\n") && reads("a", "capsm.max", "4.5\n") &&
	       reads("a", "gpu.band", "red\n") && reads("a", "gpu.priority", "7\n") &&
	       reads("a", "memory.max", "3221225472\n") && reads("c", "memory.max", "max\n") &&
	       reads("a", "owner", "1234\n") && reads("a/b", "cgroup", "/no such/one\n") &&
	       reads("a/b", "gpu.weight", "300\n") && reads("c", "capsm.max", "max\n");
}

static bool in_group(const char *group)
{
	struct peer_client c;
	char want[128], *text;
	bool found;

	attach(&c, 0);
	text = status_text();
	snprintf(want, sizeof(want), "\"group\":\"%s\",\"lease\"", group);
	found = strstr(text, want);
	free(text);
	detach(&c);
	return found;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

static void restarts(void)
{
	char pid[16], want[32];
	pid_t gone = sleeper();
	struct stat st;

	start();
	is(group_call(GSP_GROUP_CREATE, "a", NULL, NULL), 0, "a group");
	ok(!stat(state, &st) && (st.st_mode & 0777) == 0700 && !stat(file, &st) &&
	   (st.st_mode & 0777) == 0600,
	   "is in a file that others cannot read");
	group_call(GSP_GROUP_CREATE, "a/b", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "c", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "d", NULL, NULL);
	group_call(GSP_GROUP_SET, "", "capsm.max", "12");
	group_call(GSP_GROUP_SET, "a", "capsm.max", "4.5");
	group_call(GSP_GROUP_SET, "a", "gpu.band", "red");
	group_call(GSP_GROUP_SET, "a", "gpu.priority", "7");
	group_call(GSP_GROUP_SET, "a", "memory.max", "3G");
	group_call(GSP_GROUP_SET, "a", "owner", "1234");
	group_call(GSP_GROUP_SET, "a/b", "cgroup", "/no such/one");
	group_call(GSP_GROUP_SET, "a/b", "gpu.weight", "300");
	snprintf(pid, sizeof(pid), "%d", gone);
	is(group_call(GSP_GROUP_BIND, "c", "procs", pid), 0, "a process is bound");
	is(group_call(GSP_GROUP_BIND, "a/b", "procs", "0"), 0, "and this one");
	is(group_call(GSP_GROUP_DELETE, "d", NULL, NULL), 0, "a group goes");

	ok(WIFSIGNALED(daemon_stop(SIGKILL)), "gschedd is killed");
	kill(gone, SIGKILL);
	waitpid(gone, NULL, 0);
	start();
	ok(all_there(), "the next one has the groups, with their files");
	ok(!*group_file("d", "owner"), "but for the one that went");
	snprintf(want, sizeof(want), "%d\n", getpid());
	ok(reads("a/b", "procs", want), "who was bound is bound");
	ok(reads("c", "procs", ""), "but for who has ended");
	ok(in_group("a/b"), "a client finds its group again");
	is(daemon_stop(SIGTERM), 0, "it ends");
	start();
	ok(all_there() && in_group("a/b"), "and the next one has them, too");
}

static void replace(const char *path, const char *from, const char *to)
{
	char *text = text_of(path), *at = strstr(text, from);

	if (!at || strlen(from) != strlen(to))
		exit(1);
	memcpy(at, to, strlen(to));
	put(path, text);
	free(text);
}

/* As gschedd wrote the file before it numbered the changes */
static void without_number(const char *path)
{
	char *text = text_of(path), *at = strstr(text, "boot "), *end = at ? strchr(at, '\n') : NULL;
	struct timespec times[2];
	struct stat st;

	at = at ? strchr(at + 5, ' ') : NULL;
	if (!end || !at || at > end || stat(path, &st))
		exit(1);
	memmove(at, end, strlen(end) + 1);
	put(path, text);
	free(text);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	utimensat(AT_FDCWD, path, times, 0);
}

/*
 * They are not synced: so they are beside the file that was, since a crash of the machine may leave
 * nothing of what was not.
 */
static void bindings(void)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char boot[64] = "", now[160], *text;
	struct stat before, after;

	snprintf(now, sizeof(now), "%s.now", file);
	text = text_of(file);
	sscanf(strstr(text, "boot "), "boot %63s", boot);
	free(text);
	stat(file, &before);
	is(group_call(GSP_GROUP_BIND, "a/b", "procs", "0"), 0, "a process is bound");
	is(group_call(GSP_GROUP_SET, "c", "procs", "0"), 0, "and by its file");
	ok(!stat(file, &after) && before.st_ino == after.st_ino && !access(now, F_OK),
	   "the synced file is still there");
	daemon_stop(SIGKILL);
	start();
	ok(in_group("c") && access(now, F_OK), "the next gschedd has both in one file");

	group_call(GSP_GROUP_BIND, "a/b", "procs", "0");
	daemon_stop(SIGKILL);
	text = strdup(boot);
	text[0] = text[0] == '0' ? '1' : '0';
	replace(now, boot, text);
	free(text);
	start();
	ok(all_there() && in_group("c"), "bindings of an earlier life of the machine do not count");

	group_call(GSP_GROUP_BIND, "a/b", "procs", "0");
	daemon_stop(SIGKILL);
	without_number(file);
	without_number(now);
	start();
	ok(in_group("a/b"), "files of a gschedd that did not number them: the newer one counts");
	group_call(GSP_GROUP_BIND, "c", "procs", "0");

	group_call(GSP_GROUP_BIND, "a/b", "procs", "0");
	daemon_stop(SIGKILL);
	replace(file, "gpu.weight 300", "gpu.weight 301");
	clock_gettime(CLOCK_REALTIME, &times[1]);
	times[1].tv_sec++;
	utimensat(AT_FDCWD, file, times, 0);
	start();
	ok(reads("a/b", "gpu.weight", "301\n"), "what somebody has written since does");
	group_call(GSP_GROUP_SET, "a/b", "gpu.weight", "300");
	group_call(GSP_GROUP_BIND, "a/b", "procs", "0");
	daemon_stop(SIGTERM);
	ok(access(now, F_OK), "after an end in order there is one file");
	start();
	ok(all_there() && in_group("a/b"), "with all");
}

#ifdef __SANITIZE_ADDRESS__
static void busy_disk(void)
{
	skip("its runtime has to be loaded first", "a disk that is busy");
}

static void clock_set_back(void)
{
	skip("its runtime has to be loaded first", "a clock that is set back");
}
#else
static void start_fake(const char *name, const char *value)
{
	char preload[4096];
	ssize_t n = readlink("/proc/self/exe", preload, sizeof(preload) - 32);

	preload[n > 0 ? n : 0] = '\0';
	strcpy(strrchr(preload, '/') + 1, "fakedisk.so");
	setenv(name, value, 1);
	setenv("LD_PRELOAD", preload, 1);
	start();
	unsetenv("LD_PRELOAD");
}

/* A binding after the clock was set back is not older than what was before. */
static void clock_set_back(void)
{
	char fast[160];

	daemon_stop(SIGTERM);
	snprintf(fast, sizeof(fast), "%s/fast", dir);
	put(fast, "");
	start_fake("FAKEDISK_FAST", fast);
	ok(in_group("a/b"), "a gschedd whose clock is fast");
	unlink(fast);
	is(group_call(GSP_GROUP_BIND, "c", "procs", "0"), 0, "it is set right, a process is bound");
	daemon_stop(SIGKILL);
	start();
	ok(in_group("c"), "the next gschedd knows it");
	is(group_call(GSP_GROUP_BIND, "a/b", "procs", "0"), 0, "it is bound again");
	daemon_stop(SIGKILL);
	start();
	ok(in_group("a/b"), "which the one after that knows, too");
}

/* gschedd does not wait for the disk: its clients would take it for dead. */
static void busy_disk(void)
{
	char hangs[160], *text = NULL;
	bool there = false;

	snprintf(hangs, sizeof(hangs), "%s/hangs", dir);
	daemon_stop(SIGTERM);
	start_fake("FAKEDISK_HANGS", hangs);
	put(hangs, "");
	is(group_call(GSP_GROUP_CREATE, "busy", NULL, NULL), 0,
	   "a change while the disk is busy is answered");
	is(group_call(GSP_GROUP_CREATE, "busy/too", NULL, NULL), 0, "and another one");
	usleep(100000);
	text = text_of(file);
	ok(!strstr(text, "group /busy"), "before it is on the disk");
	free(text);
	unlink(hangs);
	for (int i = 0; i < 10000 && !there; i++) {
		text = text_of(file);
		there = strstr(text, "group /busy/too\n");
		free(text);
		usleep(1000);
	}
	ok(there, "then both are");
	put(hangs, "");
	group_call(GSP_GROUP_DELETE, "busy/too", NULL, NULL);
	daemon_stop(SIGKILL);
	unlink(hangs);
	start();
	ok(*group_file("busy", "owner") && !*group_file("busy/too", "owner"),
	   "killed meanwhile: the next one has what was answered");
	group_call(GSP_GROUP_DELETE, "busy", NULL, NULL);
}
#endif

/* A limit of files' sizes is like a full disk: it is said, and nobody loses the arbiter. */
static void small_files(void)
{
	struct rlimit none = { 0, 0 }, before;

	prlimit(daemon_pid, RLIMIT_FSIZE, NULL, &before);
	none.rlim_max = before.rlim_max;
	is(prlimit(daemon_pid, RLIMIT_FSIZE, &none, NULL), 0, "files may not grow");
	is(group_call(GSP_GROUP_CREATE, "small", NULL, NULL), 0, "a change is made nevertheless");
	is(kill(daemon_pid, 0), 0, "by a gschedd that lives");
	prlimit(daemon_pid, RLIMIT_FSIZE, &before, NULL);
	is(group_call(GSP_GROUP_CREATE, "small/too", NULL, NULL), 0, "they may again");
	daemon_stop(SIGKILL);
	start();
	ok(*group_file("small", "owner") && *group_file("small/too", "owner"),
	   "the next gschedd has both");
	group_call(GSP_GROUP_DELETE, "small/too", NULL, NULL);
	group_call(GSP_GROUP_DELETE, "small", NULL, NULL);
}

static bool device_reads(const char *part)
{
	char *text = status_text();
	bool found = strstr(text, part);

	if (!found)
		printf("# no %s in %.300s\n", part, text);
	free(text);
	return found;
}

/* What was set of the device, unless an option says otherwise */
static void settings(void)
{
	is(device_set("policy", "ffs"), 0, "the device's policy is set");
	is(device_set("max_overhead", "70"), 0, "and a parameter");
	is(device_set("max_overhead", "80"), 0, "twice");
	ok(device_set("max_overhead", "x") && device_set("nothing", "1"), "two that are wrong");
	daemon_stop(SIGKILL);
	start();
	ok(device_reads("\"policy\":\"ffs\"") && device_reads("\"max_overhead\":80"),
	   "the next gschedd has them");
	daemon_stop(SIGTERM);
	daemon_start("--device", DEVICE, "--state", state, "--policy", "hpf", NULL);
	ok(device_reads("\"policy\":\"hpf\"") && device_reads("\"max_overhead\":80"),
	   "with --policy: that, and the parameter");
	is(device_set("policy", "hpf"), 0, "set again");
	ok(all_there(), "and the groups are there");
}

static void absent_device(void)
{
	daemon_stop(SIGTERM);
	daemon_start("--device", OTHER, "--state", state, NULL);
	is(group_call(GSP_GROUP_CREATE, "other", NULL, NULL), 0,
	   "without that device: a group of another one");
	ok(!*group_file("a", "owner"), "which has none of the groups");
	daemon_stop(SIGKILL);
	start();
	ok(all_there(), "the device is back: so are its groups");
	daemon_stop(SIGTERM);
	daemon_start("--device", OTHER, "--state", state, NULL);
	ok(*group_file("other", "owner"), "and those of the other one");
	daemon_stop(SIGTERM);
}

/* pids of an earlier life of the machine are other processes' */
static void other_boot(void)
{
	char *text = text_of(file), *at = strstr(text, "boot ");

	at[5] = at[5] == '0' ? '1' : '0';
	put(file, text);
	free(text);
	start();
	ok(all_there() && reads("a/b", "procs", ""),
	   "after a boot: the groups, and nobody in them");
	daemon_stop(SIGTERM);
}

static void damage(void)
{
	char *good = text_of(file), *bad = strdup(good), *said, *text, *at;
	char want[LINE];
	unsigned int lines = 1;

	/* cut short */
	at = strstr(bad, "\nend\n");
	for (char *p = bad; p < at; p++)
		lines += *p == '\n';
	at[1] = '\0';
	put(file, bad);
	said = start_said();
	snprintf(want, sizeof(want), "%s:%u: \"end\" is missing", file, lines + 1);
	ok(strstr(said, want), "cut short: file and line are named");
	printf("# %s", said);
	free(said);
	ok(!*group_file("a", "owner"), "none of it is used");
	text = text_of(aside);
	ok(!strcmp(text, bad), "and it is kept aside");
	free(text);
	group_call(GSP_GROUP_CREATE, "new", NULL, NULL);
	daemon_stop(SIGKILL);
	start();
	ok(*group_file("new", "owner"), "gschedd goes on with a new one");
	daemon_stop(SIGTERM);

	/* one line */
	strcpy(bad, good);
	memcpy(strstr(bad, "capsm.max 4.5"), "capsm.max x.5", 13);
	lines = 1;
	for (char *p = bad; p < strstr(bad, "capsm.max x"); p++)
		lines += *p == '\n';
	put(file, bad);
	said = start_said();
	snprintf(want, sizeof(want), "%s:%u: Invalid argument: capsm.max x.5", file, lines);
	ok(strstr(said, want), "a bad value: file and line are named");
	free(said);
	ok(reads("a", "capsm.max", "max\n") && reads("a", "gpu.priority", "7\n") &&
	   reads("a/b", "gpu.weight", "300\n"), "the rest is used");
	strcat(aside, ".1");
	text = text_of(aside);
	ok(!strcmp(text, bad), "and it is kept aside, beside the first");
	free(text);
	daemon_stop(SIGTERM);

	/* a group that cannot be made, and a setting of the device that is refused */
	put(file, "gschedd groups 1\nboot none\ndevice 000102030405060708090a0b0c0d0e0f gpu0\n"
	    "policy nope\nmax_overhead 70\ngroup /.bad\nmax_overhead 80\ngroup /a\n"
	    "gpu.weight 8\ngroup\nmax_overhead 90\nend\n");
	said = start_said();
	ok(!strstr(said, "policy nope, as it was set") &&
	   strstr(said, "max_overhead 70, as it was set"),
	   "only a setting that is taken is \"as it was set\"");
	ok(strstr(said, ":7: group /.bad was not made: max_overhead 80") &&
	   !strstr(said, "max_overhead 80, as") && !strstr(said, "max_overhead 90, as") &&
	   device_reads("\"max_overhead\":70"),
	   "the file of a group that could not be made is not the device's");
	printf("# %s", said);
	free(said);
	ok(reads("a", "gpu.weight", "8\n"), "the next group is there");
	daemon_stop(SIGTERM);

	put(file, "no such thing\n");
	said = start_said();
	snprintf(want, sizeof(want), "%s:1: is not \"gschedd groups 1\"", file);
	ok(strstr(said, want), "something else: file and line are named");
	free(said);
	free(good);
	free(bad);
}

static void make_dir(void)
{
	if (mkdir(file, 0700))
		exit(1);
}

static void make_pipe(void)
{
	if (mkfifo(file, 0600))
		exit(1);
}

static void make_link(void)
{
	if (symlink("/dev/null", file))
		exit(1);
}

static void make_huge(void)
{
	put(file, "");
	if (truncate(file, (64 << 20) + 1))
		exit(1);
}

/* Whether that file is there as groups.damaged, or with a number behind it */
static bool is_aside(ino_t ino)
{
	char path[160];
	struct stat st;

	snprintf(path, sizeof(path), "%s.damaged", file);
	for (int i = 1; !lstat(path, &st); i++) {
		if (st.st_ino == ino)
			return true;
		snprintf(path, sizeof(path), "%s.damaged.%d", file, i);
	}
	return false;
}

/* What is no file of groups at all is kept aside, too. */
static void no_file(void)
{
	static void (*const make[])(void) = { make_dir, make_pipe, make_link, make_huge };
	struct stat before, st;
	char *said;

	for (size_t i = 0; i < sizeof(make) / sizeof(make[0]); i++) {
		daemon_stop(SIGTERM);
		unlink(file);
		make[i]();
		lstat(file, &before);
		said = start_said();
		ok(strstr(said, "is not a file, or larger than 64 MiB"),
		   "something else (%zu): it says so", i);
		free(said);
		ok(is_aside(before.st_ino), "it is kept aside");
		ok(!lstat(file, &st) && S_ISREG(st.st_mode), "and there is a new file");
	}
}

/* Pipes that nobody reads or writes, where gschedd has its files */
static void pipes(void)
{
	static const char *const name[] = { "lock", "groups.new", "groups.now.new" };
	char path[128];

	daemon_stop(SIGTERM);
	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", state, name[i]);
		unlink(path);
		if (mkfifo(path, 0600))
			exit(1);
	}
	start();
	is(group_call(GSP_GROUP_CREATE, "pipes", NULL, NULL), 0, "pipes in its place: it serves");
	is(daemon_spawn("--socket", "other-sock", "--state", state, "--log-level", "error", NULL),
	   1, "and is the only one");
	daemon_stop(SIGKILL);
	start();
	ok(*group_file("pipes", "owner"), "the next one has the groups");
	snprintf(path, sizeof(path), "%s/lock", state);
	unlink(path);
	daemon_stop(SIGTERM);
	start();
}

static void directories(void)
{
	int locked;

	is(daemon_spawn("--socket", "other-sock", "--state", state, "--log-level", "error", NULL),
	   1, "a directory that another gschedd uses: status 1");
	daemon_stop(SIGTERM);
	chmod(state, 0777);
	is(daemon_spawn("--state", state, "--log-level", "error", NULL), 1,
	   "one that others may write to: status 1");
	chmod(state, 0700);
	is(daemon_spawn("--state", file, "--log-level", "error", NULL), 1, "a file: status 1");
	is(daemon_spawn("--state", "/nowhere/at/all", "--log-level", "error", NULL), 1,
	   "one that cannot be made: status 1");

	unlink(file);
	chmod(state, 0755);
	locked = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(locked >= 0 && !flock(locked, LOCK_SH),
	   "one that others may read, and somebody has locked: gschedd starts");
	setenv("STATE_DIRECTORY", state, 1);
	daemon_start("--device", DEVICE, NULL);
	close(locked);
	group_call(GSP_GROUP_CREATE, "e", NULL, NULL);
	daemon_stop(SIGKILL);
	daemon_start("--device", DEVICE, NULL);
	ok(*group_file("e", "owner"), "$STATE_DIRECTORY");
	daemon_stop(SIGTERM);
	daemon_start("--device", DEVICE, "--state", "", NULL);
	ok(!*group_file("e", "owner"), "--state \"\": none");
}

int main(void)
{
	test_dir();
	snprintf(state, sizeof(state), "%s/state", dir);
	snprintf(file, sizeof(file), "%s/groups", state);
	snprintf(aside, sizeof(aside), "%s.damaged", file);
	snprintf(messages, sizeof(messages), "%s/messages", dir);
	restarts();
	bindings();
	busy_disk();
	clock_set_back();
	small_files();
	settings();
	absent_device();
	other_boot();
	damage();
	no_file();
	pipes();
	directories();
	return done_testing();
}
