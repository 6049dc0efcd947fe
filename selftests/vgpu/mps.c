// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * nvidia-cuda-mps-control and nvidia-cuda-mps-server for the simulated GPU, by the name that the
 * program is called by.
 *
 * The control daemon (-d, or -f in the foreground) listens on the socket "control" in
 * $CUDA_MPS_PIPE_DIRECTORY, has its process id in nvidia-cuda-mps-control.pid there, and starts the
 * server at once; after the server's death, with the next client or on "start_server". Without an
 * option the program sends the commands on its standard input: get_server_list, start_server, quit.
 *
 * The server opens a context with $VGPU_MPS_SERVER=1: so it is the process that has the channel
 * group of the pipe directory in the control calls (rm.h), and what is preloaded into the daemon
 * sees them there. Work does not go through it, but clients look whether it is there: whose server
 * dies loses its contexts, and its calls return CUDA_ERROR_MPS_RPC_FAILURE.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "shm.h"

#define PID_FILE	"nvidia-cuda-mps-control.pid"
#define SERVER		"nvidia-cuda-mps-server"
/* with a client that says nothing, with a server that does not end */
#define PATIENCE_MS	5000

static void note(const char *file, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(const char *file, const char *fmt, ...)
{
	const char *directory = getenv("CUDA_MPS_LOG_DIRECTORY");
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	if (!directory || !*directory)
		return;
	mkdir(directory, 0755);
	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "ae");
	if (!f)
		return;
	fprintf(f, "[%lld %d] ", (long long)time(NULL), (int)getpid());
	va_start(ap, fmt);
	vfprintf(f, fmt, ap);
	va_end(ap);
	fputc('\n', f);
	fclose(f);
}

/* The server */

/* The file @name beside this program */
static void beside(const char *name, char *path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(path, size, "%s/%s", dirname(self), name);
}

/* The libcuda.so.1 that is preloaded, or the one beside this program: never one of the system */
static void *load_cuda(void)
{
	char path[PATH_MAX + 32];
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	beside("libcuda.so.1", path, sizeof(path));
	return cuda ?: dlopen(path, RTLD_NOW);
}

static int server(void)
{
	void *cuda = load_cuda();
	int (*init)(unsigned int), (*retain)(void **, int), (*release)(int);
	sigset_t set;
	void *ctx;
	int r, sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!cuda) {
		note("server.log", "cannot load libcuda.so.1: %s", dlerror());
		return 1;
	}
	init = (int (*)(unsigned int))dlsym(cuda, "cuInit");
	retain = (int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
	release = (int (*)(int))dlsym(cuda, "cuDevicePrimaryCtxRelease_v2");
	if (!init || !retain || !release) {
		note("server.log", "libcuda.so.1 lacks cuInit or primary contexts");
		return 1;
	}
	r = init(0);
	if (!r)
		r = retain(&ctx, 0);
	if (r) {
		note("server.log", "no context: CUDA error %d", r);
		return 1;
	}
	note("server.log", "Active");
	sigwait(&set, &sig);
	release(0);
	note("server.log", "Exiting");
	return 0;
}

/* The daemon */

struct daemon {
	const char *directory;
	int dir, listener, signals;
	sigset_t old_mask;
	pid_t server;		/* 0: none */
};

static void start_server(struct daemon *d)
{
	char path[PATH_MAX + 32];
	pid_t parent = getpid();

	if (d->server)
		return;
	beside(SERVER, path, sizeof(path));
	d->server = fork();
	if (d->server < 0) {
		note("control.log", "no server: %s", strerror(errno));
		d->server = 0;
	}
	if (d->server) {
		note("control.log", "Starting new server %d", (int)d->server);
		return;
	}
	sigprocmask(SIG_SETMASK, &d->old_mask, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	setenv("VGPU_MPS", "1", 1);
	setenv("VGPU_MPS_SERVER", "1", 1);
	execl(path, SERVER, (char *)NULL);
	note("control.log", "cannot start %s: %s", path, strerror(errno));
	_exit(127);
}

static void reap(struct daemon *d)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != d->server)
			continue;
		note("control.log", "Server %d exited with status %d", (int)pid, status);
		d->server = 0;
	}
}

static void stop_server(struct daemon *d)
{
	if (d->server)
		kill(d->server, SIGTERM);
	for (int ms = 0; d->server && ms < PATIENCE_MS; ms += 10) {
		reap(d);
		if (d->server)
			poll(NULL, 0, 10);
	}
	if (d->server) {
		kill(d->server, SIGKILL);
		waitpid(d->server, NULL, 0);
		d->server = 0;
	}
}

static void answer(int fd, const char *text)
{
	size_t n = strlen(text);

	while (n) {
		ssize_t r = send(fd, text, n, MSG_NOSIGNAL);

		if (r <= 0)
			return;
		text += r;
		n -= (size_t)r;
	}
}

/* One connection, one command. false: quit */
static bool serve(struct daemon *d, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char line[256] = "", reply[sizeof(line) + 64] = "";
	size_t n = 0;
	ssize_t r;

	while (n < sizeof(line) - 1 && !memchr(line, '\n', n) && poll(&p, 1, PATIENCE_MS) > 0) {
		r = read(fd, line + n, sizeof(line) - 1 - n);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	reap(d);
	if (!*line) {
		start_server(d);	/* a client is coming */
	} else if (!strncmp(line, "quit", 4)) {
		note("control.log", "User requested shutdown");
		stop_server(d);
		return false;
	} else if (!strcmp(line, "get_server_list")) {
		if (d->server)
			snprintf(reply, sizeof(reply), "%d\n", (int)d->server);
	} else if (!strncmp(line, "start_server", 12)) {
		start_server(d);
	} else {
		snprintf(reply, sizeof(reply),
			 "%s: not a command of the simulated control daemon\n", line);
	}
	answer(fd, reply);
	return true;
}

static void run(struct daemon *d)
{
	struct pollfd p[2] = { { .fd = d->listener, .events = POLLIN },
			       { .fd = d->signals, .events = POLLIN } };

	for (;;) {
		struct signalfd_siginfo info;
		bool go_on;
		int fd;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && read(d->signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGCHLD) {
				stop_server(d);
				return;
			}
			reap(d);
		}
		if (!p[0].revents)
			continue;
		fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		go_on = serve(d, fd);
		if (!go_on) {	/* whoever asked reads the end when nothing is left */
			unlinkat(d->dir, "control", 0);
			unlinkat(d->dir, PID_FILE, 0);
		}
		close(fd);
		if (!go_on)
			return;
	}
}

static bool open_directory(struct daemon *d)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int lock_fd, pid_fd;

	if (mkdir(d->directory, 0755) && errno != EEXIST) {
		fprintf(stderr, "cannot make $CUDA_MPS_PIPE_DIRECTORY %s: %s\n", d->directory,
			strerror(errno));
		return false;
	}
	d->dir = open(d->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lock_fd = d->dir < 0 ? -1 : openat(d->dir, "control_lock",
					   O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock_fd < 0) {
		fprintf(stderr, "cannot write to $CUDA_MPS_PIPE_DIRECTORY %s: %s\n", d->directory,
			strerror(errno));
		return false;
	}
	if (flock(lock_fd, LOCK_EX | LOCK_NB)) {
		fprintf(stderr, "An instance of this daemon is already running\n");
		close(lock_fd);
		return false;
	}
	unlinkat(d->dir, "control", 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control", d->dir);
	d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->listener < 0 || bind(d->listener, (const struct sockaddr *)&a, sizeof(a)) ||
	    listen(d->listener, 64)) {
		fprintf(stderr, "cannot listen in %s: %s\n", d->directory, strerror(errno));
		return false;
	}
	pid_fd = openat(d->dir, PID_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (pid_fd < 0 || dprintf(pid_fd, "%d\n", (int)getpid()) < 0) {
		fprintf(stderr, "cannot write %s: %s\n", PID_FILE, strerror(errno));
		return false;
	}
	close(pid_fd);
	return true;	/* the lock is held for as long as the process lives */
}

/* @ready: the write end of a pipe that is told, or -1 */
static int control_daemon(int ready)
{
	struct daemon d = { .directory = vg_mps_directory() };
	sigset_t set;

	if (!open_directory(&d))
		return 1;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &d.old_mask);
	d.signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (d.signals < 0)
		return 1;
	note("control.log", "Starting control daemon");
	if (ready >= 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int fd = 0; fd < 3 && null >= 0; fd++)
			dup2(null, fd);
	}
	start_server(&d);
	if (ready >= 0) {
		if (write(ready, "", 1) != 1)
			note("control.log", "nobody waited for the start");
		close(ready);
	}
	run(&d);
	unlinkat(d.dir, "control", 0);
	unlinkat(d.dir, PID_FILE, 0);
	unlinkat(d.dir, "control_lock", 0);
	note("control.log", "Exit");
	return 0;
}

static int in_background(void)
{
	int fd[2];
	char c;
	bool started;
	pid_t pid;
	int status;

	if (pipe2(fd, O_CLOEXEC))
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	if (!pid) {
		close(fd[0]);
		setsid();
		return control_daemon(fd[1]);
	}
	close(fd[1]);
	started = read(fd[0], &c, 1) == 1;
	close(fd[0]);
	if (!started)
		waitpid(pid, &status, 0);
	return !started;
}

/* Commands from standard input to the daemon */
static int control(void)
{
	char line[256], buf[512];
	ssize_t n;

	while (fgets(line, sizeof(line), stdin)) {
		int fd;

		if (*line == '\n')
			continue;
		fd = vg_mps_connect(vg_mps_directory());
		if (fd < 0) {
			fprintf(stderr, "Cannot find MPS control daemon process\n");
			return 1;
		}
		answer(fd, line);
		shutdown(fd, SHUT_WR);
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			fwrite(buf, 1, (size_t)n, stdout);
		close(fd);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (!strcmp(basename(argv[0]), SERVER))
		return server();
	if (argc == 1)
		return control();
	if (argc == 2 && !strcmp(argv[1], "-d"))
		return in_background();
	if (argc == 2 && !strcmp(argv[1], "-f"))
		return control_daemon(-1);
	fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f]\n");
	return 2;
}
