// SPDX-License-Identifier: LGPL-2.1-or-later
/* Start and end: sockets left behind, sockets in use, options, devices that a driver names. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

/* What has happened to the socket's name, IN_CREATE and so on. */
static uint32_t seen(int watch)
{
	const char *name = strrchr(sock_path, '/') + 1;
	_Alignas(struct inotify_event) char text[4096];
	const struct inotify_event *e;
	uint32_t all = 0;
	ssize_t n, at;

	while ((n = read(watch, text, sizeof(text))) > 0)
		for (at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const struct inotify_event *)(text + at);
			if (e->len && !strcmp(e->name, name))
				all |= e->mask;
		}
	return all;
}

static void sockets(void)
{
	struct stat st;
	char lock[128];
	int fd, locked;

	test_dir();
	locked = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok(locked >= 0 && !flock(locked, LOCK_EX),
	   "somebody locks the socket's directory, as who may read it can: gschedd starts");
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	inotify_add_watch(fd, dir, IN_CREATE | IN_MOVED_TO);
	daemon_start("--device", DEVICE, NULL);
	ok(!stat(sock_path, &st) && S_ISSOCK(st.st_mode), "ready: the socket is there");
	is(seen(fd), IN_MOVED_TO, "and was not before it could be connected to");
	close(fd);
	close(locked);
	snprintf(lock, sizeof(lock), "%s.lock", sock_path);
	ok(access(lock, F_OK) && errno == ENOENT, "its own lock is not left behind");
	is(daemon_spawn("--log-level", "error", NULL), 1, "a second one on the same socket fails");
	close(peer());
	ok(true, "and the first one still serves");
	is(daemon_stop(SIGTERM), 0, "SIGTERM: a clean end");
	ok(stat(sock_path, &st) && errno == ENOENT, "the socket is gone");

	daemon_start("--device", DEVICE, NULL);
	ok(WIFSIGNALED(daemon_stop(SIGKILL)), "killed");
	ok(!stat(sock_path, &st), "the socket is left behind");
	daemon_start("--device", DEVICE, NULL);
	close(peer());
	ok(true, "the next one replaces it");
	unlink(sock_path);
	fd = open(sock_path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	is(daemon_stop(SIGINT), 0, "SIGINT: a clean end");
	ok(!stat(sock_path, &st) && S_ISREG(st.st_mode),
	   "what somebody else put in its place stays");
	is(daemon_spawn("--log-level", "error", NULL), 1, "a file in the way is an error");
	unlink(sock_path);
}

/* Whoever is there is told before the end, and what is on the page is in the statistics. */
static void clients(void)
{
	struct gsched_submit req = task(0, 1, 4);
	struct peer_client c;
	struct gsched_event ev;

	daemon_start("--device", DEVICE, NULL);
	attach(&c, 0);
	usleep(1000);
	c.cl->header.leased_tasks = 7;
	c.cl->header.leased_ns = 500000;
	c.cl->header.leased_usage = 2000000;
	ok(strstr(group_file("", "gpu.stat"), "tasks 7\n") &&
	   strstr(group_file("", "gpu.stat"), "ran_usec 500\n") &&
	   strstr(group_file("", "gpu.stat"), "capsm_usec 2000\n"),
	   "launches that only the page tells of are counted");
	c.cl->header.leased_ns = UINT64_MAX;
	ok(strtoull(strstr(group_file("", "gpu.stat"), "ran_usec") + 9, NULL, 10) < 100000000,
	   "a lie is bounded by the time there was");
	c.cl->header.paced_ns = 300000;
	ok(strstr(group_file("", "gpu.stat"), "\npaced_usec 300\n"),
	   "the time of paced launches is counted");
	c.cl->header.paced_ns = 400000;
	close(c.s);
	for (int i = 0; i < 5000 && !strstr(group_file("", "gpu.stat"), "\npaced_usec 400\n"); i++)
		usleep(1000);
	ok(strstr(group_file("", "gpu.stat"), "\npaced_usec 400\n"),
	   "and stays when the client has gone");
	attach(&c, 0);
	ok(strstr(group_file("", "gpu.stat"), "\npaced_usec 400\n"), "and when another one comes");
	is(submit(&c, &req), 0, "a task");
	is(daemon_stop(SIGTERM), 0, "SIGTERM with a client");
	ok(next_event(&c, &ev, 10000) && ev.type == GSCHED_EVENT_GONE, "which is told");
	is(page_limit(&c, 0), SMS * GSCHED_CAPSM, "and may use what there is");
	close(c.s);
}

/* Reads what is in the pipe; NUL-terminated */
static void drain(int fd, char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;

	while (n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
}

/* Whoever reads the log has stopped, and the pipe is full. */
static void full_log(void)
{
	int log[2], err = dup(STDERR_FILENO), i, lost = 0;
	struct peer_client c;
	char text[1 << 17], *status;

	if (pipe2(log, O_NONBLOCK | O_CLOEXEC) || err < 0)
		exit(1);
	while (write(log[1], "full\n", 5) == 5)
		;
	fcntl(log[1], F_SETFL, 0);
	dup2(log[1], STDERR_FILENO);
	daemon_start("--device", DEVICE, "--log-level", "debug", NULL);
	dup2(err, STDERR_FILENO);
	for (i = 0; i < 20; i++) {
		attach(&c, 0);
		detach(&c);
	}
	status = status_text();
	ok(status && *status, "the log's pipe is full: gschedd serves");
	free(status);
	drain(log[0], text, sizeof(text));
	ok(!strstr(text, "gschedd"), "nothing could be written");
	attach(&c, 0);
	detach(&c);
	is(daemon_stop(SIGTERM), 0, "and ends");
	drain(log[0], text, sizeof(text));
	ok(sscanf(text, "gschedd: warning: %d messages were lost", &lost) == 1 && lost > 0,
	   "once it is read again, the log says how many messages were lost");
	ok(strstr(text, "\ngschedd: "), "and has later ones");
	close(log[0]);
	close(log[1]);
	close(err);
}

/* Its exit status; -1: by a signal, or it has not ended after ten seconds and is killed */
static int status_of_end(void)
{
	int status = 0;

	for (int i = 0; i < 10000; i++) {
		if (waitpid(daemon_pid, &status, WNOHANG) == daemon_pid) {
			daemon_pid = 0;
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		}
		usleep(1000);
	}
	daemon_stop(SIGKILL);
	return -1;
}

/* Whether each line is one; *@lost: as they say */
static bool trace_lines(char *text, unsigned int *lost)
{
	char *line, *at = NULL;
	bool good = true;
	unsigned int n;

	for (line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
		if (sscanf(line, "{\"event\":\"lost\",\"lines\":%u}", &n) == 1)
			*lost += n;
		else if (strncmp(line, "{\"time_ns\":", 11) || line[strlen(line) - 1] != '}')
			good = false;
	}
	return good;
}

/* The trace is a pipe, and who reads it has stopped. */
static void full_trace(void)
{
	static char text[1 << 18];
	char path[128], *status;
	unsigned int lost = 0;
	struct gsched_submit req;
	struct peer_client c;
	int fd;

	snprintf(path, sizeof(path), "%s/trace", dir);
	if (mkfifo(path, 0600))
		exit(1);
	daemon_begin("--device", DEVICE, "--trace", path, "--log-level", "error", NULL);
	is(status_of_end(), 1, "a trace that is a pipe, which nobody reads: status 1");
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	daemon_start("--device", DEVICE, "--trace", path, NULL);
	attach(&c, 0);
	for (unsigned int i = 1; i <= 1000; i++) {
		req = task(0, i, 4);
		if (submit(&c, &req) || complete(&c, 0, i, 0))
			break;
	}
	status = status_text();
	ok(status && *status, "the trace's pipe is full: gschedd serves");
	free(status);
	drain(fd, text, sizeof(text) / 2);
	for (unsigned int i = 1001; i <= 1002; i++) {
		req = task(0, i, 4);
		submit(&c, &req);
		complete(&c, 0, i, 0);
		drain(fd, text + strlen(text), sizeof(text) - strlen(text));
	}
	detach(&c);
	is(daemon_stop(SIGTERM), 0, "and ends");
	drain(fd, text + strlen(text), sizeof(text) - strlen(text));
	ok(strstr(text, "\"seq\":1,") && strstr(text, "\"seq\":1002,"),
	   "it is read again: the first lines are there, and the last ones");
	ok(trace_lines(text, &lost), "no line is cut");
	ok(lost > 0, "and %u are lost, as one says", lost);
	close(fd);
	unlink(path);
}

static void signals(void)
{
	struct gsched_info info = { .size = sizeof(info) };
	struct stat st;
	int s;

	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	daemon_start("--device", DEVICE, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	kill(daemon_pid, SIGINT);
	kill(daemon_pid, SIGHUP);
	s = peer();
	is(call(s, GSP_INFO, &info, sizeof(info)), 0,
	   "started to ignore SIGINT and SIGHUP, as by nohup, it does");
	close(s);
	is(daemon_stop(SIGTERM), 0, "and ends by SIGTERM");
	daemon_start("--device", DEVICE, NULL);
	is(daemon_stop(SIGHUP), 0, "SIGHUP, as when its terminal is closed: a clean end");
	ok(stat(sock_path, &st) && errno == ENOENT, "the socket is gone");
}

/* Whether the file has the text */
static bool has(const char *path, const char *what)
{
	FILE *f = fopen(path, "re");
	char text[4096];
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		fclose(f);
	return strstr(text, what);
}

/* The same, after ten seconds at most */
static bool comes(const char *path, const char *what)
{
	for (int i = 0; i < 10000; i++) {
		if (has(path, what))
			return true;
		usleep(1000);
	}
	return false;
}

/* Somebody connects while it has no descriptors to spare, though nobody else is connected. */
static void no_descriptors(void)
{
	struct gsched_info info = { .size = sizeof(info) };
	struct rlimit few, before;
	char messages[128];
	int s, fd, err = dup(2);

	snprintf(messages, sizeof(messages), "%s/messages", dir);
	fd = open(messages, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	dup2(fd, 2);
	daemon_start("--device", DEVICE, NULL);
	dup2(err, 2);
	close(err);
	close(fd);
	prlimit(daemon_pid, RLIMIT_NOFILE, NULL, &before);
	few = (struct rlimit){ 3, before.rlim_max };
	is(prlimit(daemon_pid, RLIMIT_NOFILE, &few, NULL), 0, "a gschedd without descriptors");
	s = peer();
	ok(comes(messages, "no more connections for now"), "takes no connection, and says so");
	is(prlimit(daemon_pid, RLIMIT_NOFILE, &before, NULL), 0, "it may have some again");
	is(call(s, GSP_INFO, &info, sizeof(info)), 0, "who has waited is served");
	close(s);
	is(daemon_stop(SIGTERM), 0, "it ends cleanly");
}

/* Too few descriptors even to start: whatever it lacks first, it says so and leaves nothing. */
static void few_descriptors(void)
{
	char messages[128];
	unsigned int n, failed = 0;
	bool said = true, gone = true;
	int fd, err = dup(2);

	snprintf(messages, sizeof(messages), "%s/messages", dir);
	for (n = 3; n < 64; n++) {
		fd = open(messages, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		dup2(fd, 2);
		daemon_files = n;
		daemon_begin("--device", DEVICE, NULL);
		dup2(err, 2);
		close(fd);
		if (daemon_ready())
			break;
		/* with another status it has not come as far as main() */
		if (status_of_end() != 1)
			continue;
		failed++;
		if (!has(messages, "gschedd: error: ")) {
			printf("# silent with %u descriptors\n", n);
			said = false;
		}
		if (!access(sock_path, F_OK)) {
			printf("# the socket is there after %u descriptors\n", n);
			gone = false;
		}
	}
	daemon_files = 0;
	close(err);
	is(daemon_stop(SIGTERM), 0, "it starts with %u descriptors", n);
	ok(failed && said, "with fewer of them it says what is wrong");
	ok(gone, "and leaves no socket");
}

static void bad_options(void)
{
	static const char *const bad[][2] = {
		{ "--device", "gpu0" }, { "--device", "gpu0:00:16" },
		{ "--device", "gpu0:000102030405060708090a0b0c0d0e0f" },
		{ "--device", "gpu0:000102030405060708090a0b0c0d0e0f:0" },
		{ "--device", "gpu0:000102030405060708090a0b0c0d0e0f:1025" },
		{ "--device", ":000102030405060708090a0b0c0d0e0f:16" },
		{ "--device", "gpu0:000102030405060708090a0b0c0d0e0g:16" },
		{ "--device", "gpu0:000102030405060708090a0b0c0d0e0f10:16" }, { "--mode", "x" },
		{ "--policy", "x" }, { "--policy", "plan" }, { "--seed", "x" },
		{ "--cache-size", "x" }, { "--cache-size", "1T" },
		{ "--cache-size", "99999999999G" }, { "--image-max", "0" },
		{ "--poll-us", "-1" }, { "--log-level", "loud" }, { "--colour", NULL },
		{ "file", NULL },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(daemon_spawn(bad[i][0], bad[i][1], NULL), 2, "%s %s: status 2", bad[i][0],
		   bad[i][1] ? bad[i][1] : "");
	is(daemon_spawn("--device", "GPU0:000102030405060708090a0b0c0d0e0f:16", "--log-level",
			"error", NULL), 1,
	   "a device name with capitals: status 1");
	is(daemon_spawn("--device", DEVICE, "--device", DEVICE, "--log-level", "error", NULL), 1,
	   "a device twice: status 1");
	is(daemon_spawn("--trace", "/nowhere/at/all", "--log-level", "error", NULL), 1,
	   "a trace that cannot be written: status 1");
	is(daemon_spawn("--module", "--policy", "chaos", "--log-level", "error", NULL), 1,
	   "--policy chaos with the module: status 1");
	if (access("/dev/gsched", F_OK))
		is(daemon_spawn("--module", "--log-level", "error", NULL), 1,
		   "--module without the module: status 1");
}

/* Killed while the driver is asked for its devices: the next one starts at once. */
static void killed_at_start(const char *driver)
{
	char hangs[128], state[128];

	snprintf(hangs, sizeof(hangs), "%s/hangs", dir);
	snprintf(state, sizeof(state), "%s/state", dir);
	setenv("FAKECUDA_HANGS", hangs, 1);
	daemon_begin("--driver", driver, "--state", state, NULL);
	unsetenv("FAKECUDA_HANGS");
	for (int i = 0; i < 10000 && access(hangs, F_OK); i++)
		usleep(1000);
	ok(!access(hangs, F_OK), "a driver that hangs");
	ok(WIFSIGNALED(daemon_stop(SIGKILL)), "killed meanwhile");
	daemon_start("--driver", "", "--device", DEVICE, "--state", state, NULL);
	ok(true, "the next one gets the state");
	is(daemon_stop(SIGTERM), 0, "ends cleanly");
	unlink(hangs);
}

/* It is told to end while the driver does not answer. */
static void ended_at_start(const char *driver)
{
	char hangs[128];

	snprintf(hangs, sizeof(hangs), "%s/hangs", dir);
	setenv("FAKECUDA_HANGS", hangs, 1);
	daemon_begin("--driver", driver, NULL);
	unsetenv("FAKECUDA_HANGS");
	for (int i = 0; i < 10000 && access(hangs, F_OK); i++)
		usleep(1000);
	kill(daemon_pid, SIGTERM);
	is(status_of_end(), 0, "SIGTERM while a driver hangs: a clean end, at once");
	ok(access(sock_path, F_OK), "without a socket");
	unlink(hangs);
}

/* A driver that cannot tell is not one without devices. */
static void failing_driver(const char *driver, const char *fails, const char *want, bool none)
{
	char messages[128];
	int fd, err = dup(2);

	snprintf(messages, sizeof(messages), "%s/messages", dir);
	fd = open(messages, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	setenv("FAKECUDA_FAILS", fails, 1);
	dup2(fd, 2);
	daemon_start("--driver", driver, NULL);
	dup2(err, 2);
	close(err);
	unsetenv("FAKECUDA_FAILS");
	is(daemon_stop(SIGTERM), 0, "FAKECUDA_FAILS=%s: it serves", fails);
	close(fd);
	ok(has(messages, want), "and says: %s", want);
	ok(has(messages, "no device found") == none, "%s", none ? "that is, no device" :
	   "and not that there is no device");
}

static void drivers(void)
{
	char driver[4096], *text;
	ssize_t n = readlink("/proc/self/exe", driver, sizeof(driver) - 32);

	driver[n] = '\0';
	strcpy(strrchr(driver, '/') + 1, "fakecuda.so");
	killed_at_start(driver);
	ended_at_start(driver);
	failing_driver(driver, "-6", "it was ended by signal 6 (Aborted)", false);
	failing_driver(driver, "999", "not known: error 999", false);
	failing_driver(driver, "100", "no device found", true);
	daemon_start("--driver", driver, "--device", "mine:a1a2a3a4-0000-0000-0000-000000000001:7",
		     NULL);
	text = status_text();
	ok(strstr(text, "\"name\":\"gpu0\","
		  "\"uuid\":\"a1a2a3a4-0000-0000-0000-000000000000\",\"sms\":100"),
	   "a device that the driver names");
	ok(strstr(text, "\"name\":\"mine\","
		  "\"uuid\":\"a1a2a3a4-0000-0000-0000-000000000001\",\"sms\":7") &&
	   !strstr(text, "\"name\":\"gpu1\""), "a device that both name is as the user says");
	ok(strstr(text, "\"name\":\"gpu2\","
		  "\"uuid\":\"a1a2a3a4-0000-0000-0000-000000000002\",\"sms\":102"),
	   "the next one");
	free(text);
	is(daemon_stop(SIGTERM), 0, "ends cleanly");
	setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
	daemon_start("--driver", driver, "--device",
		     "mig:MIG-b1a2a3a4-0000-0000-0000-000000000001:7", NULL);
	unsetenv("CUDA_DEVICE_ORDER");
	text = status_text();
	ok(strstr(text, "\"gpu0\",\"uuid\":\"a1a2a3a4-0000-0000-0000-000000000000\",\"sms\":100") &&
	   strstr(text, "\"gpu2\",\"uuid\":\"a1a2a3a4-0000-0000-0000-000000000002\",\"sms\":102"),
	   "names follow the PCI bus, whatever CUDA_DEVICE_ORDER says");
	ok(strstr(text, "\"mig\",\"uuid\":\"b1a2a3a4-0000-0000-0000-000000000001\",\"sms\":7"),
	   "a MIG device by its UUID");
	free(text);
	is(daemon_stop(SIGTERM), 0, "ends cleanly");
	daemon_start("--driver", "/nowhere/libcuda.so.1", "--log-level", "error", NULL);
	text = status_text();
	ok(strstr(text, "\"devices\":[]"), "no driver, no devices: serves nevertheless");
	free(text);
}

int main(void)
{
	/* in the background of a script it is ignored */
	signal(SIGINT, SIG_DFL);
	sockets();
	clients();
	full_log();
	full_trace();
	signals();
	no_descriptors();
	few_descriptors();
	bad_options();
	drivers();
	return done_testing();
}
