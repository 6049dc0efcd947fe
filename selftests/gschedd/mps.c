// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedd --mps: control daemons (fakemps.c) come, die, come again and end; whom the answer
 * reaches, and what it says.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define WAIT_MS	15000

static char fake[128], mps[96];

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* The test's own copy: the tree may lie where other users cannot look. */
static void copy_fake(void)
{
	char command[4400], self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	*strrchr(self, '/') = '\0';
	test_dir();
	snprintf(fake, sizeof(fake), "%s/fakemps", dir);
	snprintf(mps, sizeof(mps), "%s/mps", dir);
	snprintf(command, sizeof(command), "cp '%s/fakemps' '%s' && chmod 755 '%s'", self,
		 fake, fake);
	ok(!system(command), "a control daemon");
}

static void start(const char *idle, const char *wait)
{
	daemon_start("--device", DEVICE, "--mps", "--mps-program", fake, "--mps-dir", mps,
		     "--mps-idle", idle, "--mps-wait", wait, "--log-level", "error", NULL);
}

static void set_fault(const char *fault)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/FAULT", mps);
	unlink(path);
	f = *fault ? fopen(path, "w") : NULL;
	if (f) {
		fprintf(f, "%s\n", fault);
		fclose(f);
		chmod(path, 0644);
	}
}

/* The last one's answer is in *@req. */
static int ask(struct gsp_band *req, unsigned int flags, const char *path,
	       const char *band, pid_t pid)
{
	struct reply r;
	int s = peer(), err;

	*req = (struct gsp_band){ .size = sizeof(*req), .flags = flags, .pid = (uint32_t)pid };
	strcpy(req->path, path);
	strcpy(req->band, band);
	err = call_fds(s, GSP_BAND, req, sizeof(*req), -1, &r);
	if (err && r.len == sizeof(*req))
		memcpy(req, r.body, sizeof(*req));
	close(s);
	return err;
}

static pid_t program(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* What the control daemons of the band have noted. */
static const char *notes(const char *band, uid_t uid)
{
	static char text[4096];
	char path[160];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%u/%s/log/started", mps, (unsigned int)uid, band);
	f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return text;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* The pid of the daemon of the band by the status, 0 none; its entry is kept for says(). */
static char entry[1024];
static pid_t daemon_of(const char *band)
{
	char *text = status_text(), *from, *to, *pid, key[64];

	snprintf(key, sizeof(key), "{\"band\":\"%s\"", band);
	from = strstr(text, key);
	to = from ? strchr(from, '}') : NULL;
	snprintf(entry, sizeof(entry), "%.*s", to ? (int)(to - from) : 0, from ? from : "");
	free(text);
	pid = strstr(entry, "\"pid\":");
	return pid ? atoi(pid + 6) : 0;
}

static bool wait_for(const char *band, const char *what)
{
	struct timespec ms = { .tv_nsec = 20000000 };
	long long until = now_ms() + WAIT_MS;

	do {
		daemon_of(band);
		if (strstr(entry, what))
			return true;
		nanosleep(&ms, NULL);
	} while (now_ms() < until);
	printf("# %s\n", entry);
	return false;
}

/* One that is not the test's child may stay a zombie until somebody else takes its status. */
static bool runs(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	fclose(f);
	return state != 'Z' && state != 'X';
}

/* Whether the process was started with it as it is by default */
static bool by_default(pid_t pid, int sig)
{
	char path[64], line[128];
	unsigned long long ignored = ~0ull;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "SigIgn:", 7))
			ignored = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return !(ignored >> (sig - 1) & 1);
}

static void refused(void)
{
	struct gsp_band req;
	int s = peer();

	is(ask(&req, 4, "", "", 0), EOPNOTSUPP, "an unknown flag");
	req = (struct gsp_band){ .size = sizeof(req), .__reserved = 1 };
	is(call(s, GSP_BAND, &req, sizeof(req)), EOPNOTSUPP, "a reserved field");
	req = (struct gsp_band){ .size = sizeof(req) };
	memset(req.path, 'x', sizeof(req.path));
	is(call(s, GSP_BAND, &req, sizeof(req)), EINVAL, "a path without an end");
	req = (struct gsp_band){ .size = sizeof(req), .device = "none" };
	is(call(s, GSP_BAND, &req, sizeof(req)), ENODEV, "an unknown device");
	close(s);
	is(ask(&req, 0, "none", "", 0), ENOENT, "an unknown group");
	ok(strstr(req.reason, "group"), "and it says so: %s", req.reason);
	is(ask(&req, GSP_BAND_BY_NAME, "", "Blue", 0), EINVAL, "a name with a capital");
	ok(strstr(req.reason, "31"), "and it says what a name is: %s", req.reason);
	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", 4194304), ESRCH, "a process that there is not");
	is(ask(&req, 0, "", "", 0), 0, "a group without a band");
	ok(!*req.band && !*req.pipe, "has no MPS server");
	is(ask(&req, GSP_BAND_BY_NAME | GSP_BAND_NO_START, "", "blue", 0), 0, "only the name");
	ok(!strcmp(req.band, "blue") && !*req.pipe && !daemon_of("blue") && !*entry,
	   "nothing is started for it");
}

static void life(void)
{
	pid_t a = program(), b = program(), blue, red;
	struct gsp_band req;
	char want[160];
	struct stat st;

	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", a), 0, "the first program of a band");
	snprintf(want, sizeof(want), "%s/%u/blue/pipe", mps, (unsigned int)getuid());
	ok(!strcmp(req.pipe, want) && strstr(req.log, "/blue/log"),
	   "gets the directories: %s", req.pipe);
	ok(!stat(req.pipe, &st) && (st.st_mode & 07777) == 0700 && !stat(req.log, &st) &&
	   (st.st_mode & 07777) == 0700, "which only the user reaches");
	blue = daemon_of("blue");
	ok(blue > 0 && strstr(entry, "\"state\":\"ready\""), "its daemon is ready");
	snprintf(want, sizeof(want), "pid %d uid %u band blue socket %s", (int)blue,
		 (unsigned int)getuid(), sock_path);
	ok(strstr(notes("blue", getuid()), want), "and knows user, band and arbiter");
	ok(by_default(blue, SIGPIPE) && by_default(blue, SIGXFSZ),
	   "and ignores none of the signals that gschedd ignores");
	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", b), 0, "the second program");
	is(daemon_of("blue"), blue, "the same daemon");
	is(ask(&req, GSP_BAND_BY_NAME, "", "red", b), 0, "another band");
	red = daemon_of("red");
	ok(red > 0 && red != blue && strstr(req.pipe, "/red/pipe"), "another daemon, elsewhere");

	kill(blue, SIGKILL);
	ok(wait_for("blue", "killed by signal 9"), "a dead one: the status says how it died");
	ok(strstr(entry, "\"deaths\":1"), "and how often");
	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", a), 0, "who asks meanwhile gets the next one");
	ok(daemon_of("blue") > 0 && daemon_of("blue") != blue && strstr(entry, "\"starts\":2"),
	   "it was started again");
	blue = daemon_of("blue");
	kill(blue, SIGKILL);
	ok(wait_for("blue", "\"starts\":3"),
	   "and once more, with nobody asking, for the programs that are there");
	end(a);
	ok(daemon_of("blue") > 0, "one program ends: the daemon stays");
	end(b);
	ok(wait_for("blue", "stopped") && wait_for("red", "stopped"),
	   "the last one ended: they end after a while");
	is(count(notes("blue", getuid()), "quit"), 1, "in order");
	ok(!runs(red), "and are gone");
	a = program();
	is(ask(&req, GSP_BAND_BY_NAME, "", "red", a), 0, "the next program");
	ok(daemon_of("red") > 0, "has one again");
	end(a);
}

/* A client that is attached in the band keeps its server, whoever started it. */
static void clients(void)
{
	pid_t a = program();
	struct gsp_band req;
	struct peer_client c;
	char self[16];

	snprintf(self, sizeof(self), "%d", (int)getpid());
	is(group_call(GSP_GROUP_CREATE, "kept", NULL, NULL), 0, "a group");
	is(group_call(GSP_GROUP_SET, "kept", "gpu.band", "kept"), 0, "with a band");
	is(group_call(GSP_GROUP_BIND, "kept", "procs", self), 0, "with a process");
	is(ask(&req, 0, "", "", a), 0, "which a child of it is in, too");
	ok(!strcmp(req.band, "kept") && strstr(req.pipe, "/kept/pipe"),
	   "and so it gets the band's server");
	is(ask(&req, GSP_BAND_BY_NAME, "", "other", a), 0, "another band");
	attach(&c, 0);
	is(group_call(GSP_GROUP_SET, "kept", "gpu.band", "new"), EBUSY,
	   "a band with clients keeps its name");
	end(a);
	ok(wait_for("other", "stopped"), "the program ends: the server that nobody uses ends");
	ok(daemon_of("kept") > 0 && strstr(entry, "ready"), "the one with a client stays");
	detach(&c);
	ok(wait_for("kept", "stopped"), "until the client is gone");
	group_call(GSP_GROUP_BIND, "", "procs", self);
	is(group_call(GSP_GROUP_DELETE, "kept", NULL, NULL), 0, "the group goes");
}

static void faults(void)
{
	pid_t a = program();
	struct gsp_band req;
	long long from;

	set_fault("die");
	is(ask(&req, GSP_BAND_BY_NAME, "", "broken", a), EIO, "one that dies at once");
	ok(strstr(req.reason, "status 3") && strstr(req.reason, "no GPU to be found"),
	   "with what it said: %s", req.reason);
	set_fault("");
	is(ask(&req, GSP_BAND_BY_NAME, "", "broken", a), 0, "the next try works");
	set_fault("deaf");
	from = now_ms();
	is(ask(&req, GSP_BAND_BY_NAME, "", "deaf", a), ETIMEDOUT, "one that is never ready");
	ok(now_ms() - from < 6000, "in bounded time: %lld ms", now_ms() - from);
	ok(strstr(req.reason, "does not accept connections"), "and it says so: %s", req.reason);
	ok(wait_for("deaf", "restarting"), "it is ended");
	set_fault("");
	is(ask(&req, GSP_BAND_BY_NAME, "", "deaf", a), 0, "the next one is ready");
	end(a);
}

/* The pid of the server of a band by the status, other than @other. */
static pid_t server_of(const char *band, pid_t other)
{
	long long until = now_ms() + WAIT_MS;
	const char *at;
	pid_t pid;

	do {
		daemon_of(band);
		at = strstr(entry, "\"server\":");
		pid = at ? atoi(at + 9) : 0;
	} while ((!pid || pid == other) && now_ms() < until);
	return pid == other ? 0 : pid;
}

static bool wait_gone(pid_t pid)
{
	struct timespec ms = { .tv_nsec = 20000000 };
	long long until = now_ms() + WAIT_MS;

	while (runs(pid) && now_ms() < until)
		nanosleep(&ms, NULL);
	return !runs(pid);
}

/* A daemon's server dies, and a daemon dies while its server is stopped. */
static void servers(void)
{
	pid_t a = program(), daemon, first, second;
	struct gsp_band req;

	set_fault("server");
	is(ask(&req, GSP_BAND_BY_NAME, "", "served", a), 0, "a daemon with a server");
	daemon = daemon_of("served");
	first = server_of("served", 0);
	ok(first > 0 && first != daemon, "the status says which");
	kill(first, SIGKILL);
	ok(wait_for("served", "\"server_deaths\":1"), "the server dies: the status counts it");
	ok(strstr(entry, "its server, pid") && strstr(entry, "\"deaths\":0"), "and says what died");
	second = server_of("served", first);
	ok(second > 0 && daemon_of("served") == daemon, "the daemon has another one");
	kill(second, SIGSTOP);
	kill(daemon, SIGKILL);
	ok(wait_for("served", "\"starts\":2") && wait_for("served", "\"state\":\"ready\""),
	   "the daemon dies: there is another");
	ok(wait_gone(second), "and no second server of the band, even if it was stopped");
	ok(strstr(entry, "\"server_deaths\":1"), "which is no death of its own");
	first = server_of("served", second);
	ok(first > 0, "the new daemon has its own");
	end(a);
	ok(wait_for("served", "stopped") && wait_gone(first), "the last program ends, and they do");
	ok(strstr(entry, "\"server_deaths\":1"), "in order");
	set_fault("");
}

static void users(void)
{
	struct gsp_band req = { .size = sizeof(req), .flags = GSP_BAND_BY_NAME, .band = "blue" };
	pid_t other, mine = program();
	int s, status;
	struct stat st;
	char path[160];

	if (getuid()) {
		skip("needs root", "two users");
		end(mine);
		return;
	}
	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", mine), 0, "root's");
	other = fork();
	if (!other) {
		if (setgid(65534) || setuid(65534))
			_exit(100);
		s = peer();
		req = (struct gsp_band){ .size = sizeof(req), .flags = GSP_BAND_BY_NAME,
					 .band = "blue", .pid = (uint32_t)mine };
		status = call(s, GSP_BAND, &req, sizeof(req));
		if (status != EPERM)
			_exit(status ? status : 101);
		req = (struct gsp_band){ .size = sizeof(req), .flags = GSP_BAND_BY_NAME,
					 .band = "blue" };
		_exit(call(s, GSP_BAND, &req, sizeof(req)) ? 102 :
		      strstr(req.pipe, "/65534/blue/pipe") ? 0 : 103);
	}
	waitpid(other, &status, 0);
	is(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
	   "another user gets an own one, and none for root's process");
	ok(strstr(notes("blue", 65534), "uid 65534 band blue"), "which runs as that user");
	snprintf(path, sizeof(path), "%s/65534", mps);
	ok(!stat(path, &st) && st.st_uid == 65534 && (st.st_mode & 07777) == 0700,
	   "in a directory of that user's");
	end(mine);
}

#define USER_BANDS	16	/* as many as a user may have */
#define ALL_BANDS	128

/* As @uid: the last error of asking for @n bands. */
static int ask_as(uid_t uid, unsigned int n)
{
	struct gsp_band req;
	char band[16];
	int status;
	pid_t pid = fork();

	if (!pid) {
		int err = 0;

		if (setgid(uid) || setuid(uid))
			_exit(100);
		for (unsigned int i = 0; i < n; i++) {
			snprintf(band, sizeof(band), "b%u", i);
			err = ask(&req, GSP_BAND_BY_NAME, "", band, 0);
		}
		_exit(err);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Users who were there once leave no place taken. */
static void many_users(void)
{
	struct timespec ms = { .tv_nsec = 20000000 };
	long long until;
	int err = EIO;
	uid_t uid;

	if (getuid()) {
		skip("needs root", "many users");
		return;
	}
	set_fault("die");
	for (uid = 60000; uid < 60000 + ALL_BANDS / USER_BANDS && err == EIO; uid++)
		err = ask_as(uid, USER_BANDS);
	ok(err == EIO || err == EBUSY, "many users have bands, whose daemons do not run");
	set_fault("");
	until = now_ms() + WAIT_MS;
	while ((err = ask_as(uid + 1, 1)) == EBUSY && now_ms() < until)
		nanosleep(&ms, NULL);
	is(err, 0, "one more user gets one");
}

static void gschedd_ends(void)
{
	pid_t a = program(), blue;
	struct gsp_band req;
	long long from;

	is(ask(&req, GSP_BAND_BY_NAME, "", "last", a), 0, "a daemon");
	blue = daemon_of("last");
	ok(WIFSIGNALED(daemon_stop(SIGKILL)), "gschedd is killed");
	ok(runs(blue), "the daemon goes on, and so does its program");
	start("60", "10");
	ok(daemon_of("last") == blue && strstr(entry, "ready"), "the next gschedd takes it over");
	is(ask(&req, GSP_BAND_BY_NAME, "", "last", a), 0, "whose programs");
	is(daemon_of("last"), blue, "get it");
	is(daemon_stop(SIGTERM), 0, "gschedd ends");
	ok(!runs(blue), "and ends the daemon first");
	is(count(notes("last", getuid()), "quit"), 1, "in order");

	start("60", "10");
	set_fault("deafquit");
	is(ask(&req, GSP_BAND_BY_NAME, "", "deafquit", a), 0, "one that will not end");
	blue = daemon_of("deafquit");
	from = now_ms();
	is(daemon_stop(SIGTERM), 0, "gschedd ends nevertheless");
	ok(now_ms() - from < 12000, "in bounded time: %lld ms", now_ms() - from);
	ok(!runs(blue), "it was killed");
	set_fault("");
	end(a);
}

/* What a user makes wait on its way to the control daemon has nothing of gschedd's. */
static void waits(void)
{
	char path[160], log[192];
	struct gsp_band req = { .size = sizeof(req), .flags = GSP_BAND_BY_NAME, .band = "fifo" };
	pid_t child;
	int s;

	snprintf(path, sizeof(path), "%s/%u/fifo", mps, (unsigned int)getuid());
	snprintf(log, sizeof(log), "%s/log", path);
	start("60", "60");
	ok(!mkdir(path, 0700) && !mkdir(log, 0700), "a band's directory");
	strcat(log, "/control.out");
	is(mkfifo(log, 0600), 0, "with a pipe for the output, which is not read");
	s = peer();
	send_req(s, GSP_BAND, 0, 1, &req, sizeof(req), -1);
	ok(wait_for("fifo", "\"pid\":"), "a daemon is started");
	child = daemon_of("fifo");
	snprintf(path, sizeof(path), "/proc/%d/fd/4", (int)child);
	for (int i = 0; i < 10000 && !access(path, F_OK); i++)
		usleep(1000);
	daemon_stop(SIGKILL);
	close(s);
	start("60", "10");
	ok(child > 0 && runs(child), "gschedd is killed while it waits: the next one starts");
	if (child > 0)
		kill(child, SIGKILL);
	is(daemon_stop(SIGTERM), 0, "and ends");
	unlink(log);
}

static void cannot_start(void)
{
	char open[96];

	is(daemon_spawn("--mps", "--mps-program", "/nowhere/mps-control", "--mps-dir", mps,
			"--log-level", "error", NULL), 1,
	   "a program that there is not: status 1");
	is(daemon_spawn("--mps", "--mps-program", fake, "--mps-dir", "mps", "--log-level",
			"error", NULL), 1,
	   "a relative directory: status 1");
	snprintf(open, sizeof(open), "%s/open", dir);
	mkdir(open, 0700);
	chmod(open, 0777);
	strcat(open, "/mps");
	is(daemon_spawn("--mps", "--mps-program", fake, "--mps-dir", open, "--log-level",
			"error", NULL), 1,
	   "a directory that others could replace: status 1");
	is(daemon_spawn("--mps-idle", "x", NULL), 2, "--mps-idle x: status 2");
	is(daemon_spawn("--mps-wait", "0", NULL), 2, "--mps-wait 0: status 2");
}

/* Without --mps nobody is sent to a server. */
static void without(void)
{
	struct gsp_band req;

	daemon_start("--device", DEVICE, NULL);
	is(ask(&req, GSP_BAND_BY_NAME, "", "blue", 0), 0, "without --mps");
	ok(!*req.band && !*req.pipe, "there is no band");
	is(daemon_stop(SIGTERM), 0, "ends");
}

int main(void)
{
	copy_fake();
	cannot_start();
	without();
	start("1", "2");
	refused();
	life();
	clients();
	faults();
	servers();
	users();
	many_users();
	gschedd_ends();
	waits();
	return done_testing();
}
