// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness.h"

#define WAIT_MS	10000

const uint8_t uuid[GSCHED_UUID_SIZE] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
char dir[64], sock_path[96];
pid_t daemon_pid;
unsigned int daemon_files, daemon_cpus;

static int n_tests, n_failed;
static int notify_fd = -1;
static pid_t main_pid;

/* ---- TAP ---- */

static void result(bool good, const char *fmt, va_list ap)
{
	printf("%sok %d - ", good ? "" : "not ", ++n_tests);
	vprintf(fmt, ap);
	n_failed += !good;
}

void ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	result(good, fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void is(long long got, long long want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	result(got == want, fmt, ap);
	va_end(ap);
	if (got != want)
		printf(": got %lld, want %lld", got, want);
	putchar('\n');
	fflush(stdout);
}

void skip(const char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	result(true, fmt, ap);
	va_end(ap);
	printf(" # SKIP %s\n", why);
}

int done_testing(void)
{
	if (daemon_pid > 0)
		is(daemon_stop(SIGTERM), 0, "gschedd ends cleanly at the end");
	printf("1..%d\n", n_tests);
	return n_failed ? 1 : 0;
}

static _Noreturn void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the daemon ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clean_up(void)
{
	if (getpid() != main_pid)
		return;
	if (daemon_pid > 0) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
	}
	if (*dir)
		nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void test_dir(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (*dir)
		return;
	main_pid = getpid();
	strcpy(dir, "/tmp/gschedd-test-XXXXXX");
	if (!mkdtemp(dir))
		die("mkdtemp");
	chmod(dir, 0755);
	atexit(clean_up);
	snprintf(sock_path, sizeof(sock_path), "%s/sock", dir);
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/notify", dir);
	if (bind(notify_fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("bind");
	setenv("NOTIFY_SOCKET", addr.sun_path, 1);
}

/* $GSCHEDD, else bin/gschedd of the tree that this test was built in. */
static const char *program(void)
{
	static char path[4096];
	const char *env = getenv("GSCHEDD");
	ssize_t n;

	if (env)
		return env;
	n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	if (n < 0)
		die("readlink");
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	return strcat(path, "/bin/gschedd");
}

static void limit_cpus(void)
{
	cpu_set_t may, use;

	CPU_ZERO(&use);
	if (sched_getaffinity(0, sizeof(may), &may))
		return;
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&use) < (int)daemon_cpus; i++)
		if (CPU_ISSET(i, &may))
			CPU_SET(i, &use);
	sched_setaffinity(0, sizeof(use), &use);
}

static pid_t spawn(const char *option, va_list ap)
{
	const char *argv[32] = { "gschedd", "--socket", sock_path, "--driver", "" };
	char cache[96];
	int n = 5;
	pid_t pid;

	test_dir();
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	argv[n++] = "--cache";
	argv[n++] = cache;
	argv[n++] = "--embedded";
	argv[n++] = "--log-level";
	argv[n++] = "warn";
	for (; option && n < 31; option = va_arg(ap, const char *))
		argv[n++] = option;
	argv[n] = NULL;
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		/* a test that crashes leaves nothing behind */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(2, 1);	/* TAP is ours */
		if (daemon_cpus)
			limit_cpus();
		if (daemon_files)
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){ daemon_files, daemon_files });
		execv(program(), (char **)argv);
		_exit(127);
	}
	return pid;
}

void daemon_begin(const char *option, ...)
{
	va_list ap;

	va_start(ap, option);
	daemon_pid = spawn(option, ap);
	va_end(ap);
}

void daemon_start(const char *option, ...)
{
	struct pollfd pfd;
	char text[64];
	va_list ap;
	ssize_t n;

	va_start(ap, option);
	daemon_pid = spawn(option, ap);
	va_end(ap);
	pfd = (struct pollfd){ .fd = notify_fd, .events = POLLIN };
	do {
		if (poll(&pfd, 1, WAIT_MS) != 1)
			die("gschedd does not say READY=1");
		n = recv(notify_fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
	} while (strcmp(text, "READY=1"));
}

bool daemon_ready(void)
{
	struct pollfd pfd = { .fd = notify_fd, .events = POLLIN };
	siginfo_t si;
	char text[64];
	ssize_t n;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		if (poll(&pfd, 1, 10) == 1) {
			n = recv(notify_fd, text, sizeof(text) - 1, 0);
			text[n > 0 ? n : 0] = '\0';
			if (!strcmp(text, "READY=1"))
				return true;
			continue;
		}
		si.si_pid = 0;
		if (!waitid(P_PID, (id_t)daemon_pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid)
			return false;
	}
	die("gschedd neither ends nor says READY=1");
}

int daemon_spawn(const char *option, ...)
{
	va_list ap;
	int status;
	pid_t pid;

	va_start(ap, option);
	pid = spawn(option, ap);
	va_end(ap);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int daemon_stop(int sig)
{
	int status;

	kill(daemon_pid, sig);
	waitpid(daemon_pid, &status, 0);
	daemon_pid = 0;
	return status;
}

/* ---- a connection ---- */

int peer(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, sock_path);
	if (s < 0 || connect(s, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect");
	return s;
}

int send_raw(int s, const void *data, size_t len, const int *fds, unsigned int n_fds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 8)];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *cm;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		cm = CMSG_FIRSTHDR(&msg);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * n_fds);
	}
	return sendmsg(s, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int send_req(int s, unsigned int type, unsigned int flags, unsigned int cookie, const void *body,
	     size_t len, int fd)
{
	struct {
		struct gsp_header h;
		uint8_t body[GSP_BODY_MAX + 1024];
	} p = { .h = { .type = type, .cookie = cookie, .flags = flags } };

	if (len)
		memcpy(p.body, body, len);
	return send_raw(s, &p, sizeof(p.h) + len, &fd, fd >= 0);
}

bool receive(int s, struct reply *r, int timeout_ms)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 4)];
	} control;
	struct iovec iov = { .iov_base = r, .iov_len = sizeof(r->h) + sizeof(r->body) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct pollfd pfd = { .fd = s, .events = POLLIN };
	struct cmsghdr *cm;
	ssize_t n;

	r->n_fds = 0;
	if (poll(&pfd, 1, timeout_ms) != 1)
		return false;
	n = recvmsg(s, &msg, MSG_CMSG_CLOEXEC);
	if (n < (ssize_t)sizeof(r->h))
		return false;
	r->len = n - sizeof(r->h);
	for (cm = CMSG_FIRSTHDR(&msg); cm; cm = CMSG_NXTHDR(&msg, cm)) {
		r->n_fds = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(r->fd, CMSG_DATA(cm), r->n_fds * sizeof(int));
	}
	return true;
}

void reply_free(struct reply *r)
{
	while (r->n_fds)
		close(r->fd[--r->n_fds]);
}

/* Events that came while a reply was waited for, oldest first. */
static struct {
	int s;
	struct gsched_event ev;
} kept[256];
static unsigned int n_kept;

static void keep(int s, const struct reply *r)
{
	if (n_kept == 256 || r->len != sizeof(kept[0].ev))
		die("an event that cannot be");
	kept[n_kept].s = s;
	memcpy(&kept[n_kept++].ev, r->body, sizeof(kept[0].ev));
}

int call_fds(int s, unsigned int type, void *body, size_t len, int fd, struct reply *r)
{
	static unsigned int cookie;
	int err = send_req(s, type, 0, ++cookie, body, len, fd);

	r->n_fds = 0;
	if (err)
		return -err;
	while (receive(s, r, WAIT_MS)) {
		if (r->h.type == GSP_EVENT) {
			keep(s, r);
			continue;
		}
		if (r->h.type != type || r->h.cookie != cookie || r->h.flags) {
			printf("# a reply of type %u, cookie %u, flags %u\n", r->h.type,
			       r->h.cookie, r->h.flags);
			return EPROTO;
		}
		if (body && !r->h.err)
			memcpy(body, r->body, r->len < len ? r->len : len);
		return r->h.err;
	}
	return ETIME;
}

int call(int s, unsigned int type, void *body, size_t len)
{
	struct reply r;
	int err = call_fds(s, type, body, len, -1, &r);

	reply_free(&r);
	return err;
}

void attach(struct peer_client *c, uint32_t flags)
{
	attach_to(c, flags, 0);
}

void attach_to(struct peer_client *c, uint32_t flags, uint64_t channel_group)
{
	struct reply r;
	int err;

	c->s = peer();
	c->info = (struct gsched_attach){ .size = sizeof(c->info), .flags = flags,
					  .channel_group = channel_group };
	memcpy(c->info.uuid, uuid, sizeof(uuid));
	err = call_fds(c->s, GSP_ATTACH, &c->info, sizeof(c->info), -1, &r);
	if (err || r.n_fds != 2) {
		errno = err;
		die("attach");
	}
	c->arb = mmap(NULL, c->info.arb_size, PROT_READ, MAP_SHARED, r.fd[0], c->info.arb_offset);
	c->cl = mmap(NULL, c->info.cl_size, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd[1],
		     c->info.cl_offset);
	if (c->arb == MAP_FAILED || c->cl == MAP_FAILED)
		die("mmap");
	reply_free(&r);
}

void detach(struct peer_client *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < n_kept; i++)
		if (kept[i].s != c->s)
			kept[n++] = kept[i];
	n_kept = n;
	close(c->s);
	munmap((void *)c->arb, c->info.arb_size);
	munmap(c->cl, c->info.cl_size);
}

struct gsched_submit task(unsigned int slot, unsigned int seq, uint64_t blocks)
{
	return (struct gsched_submit){ .size = sizeof(struct gsched_submit), .slot = slot,
				       .seq = seq, .blocks_per_sm = 1,
				       .blocks = blocks, .predicted_ns = 1000000,
				       .block_ns = 10000 };
}

int submit(struct peer_client *c, struct gsched_submit *req)
{
	int err = call(c->s, GSP_SUBMIT, req, sizeof(*req));

	return !err && req->state == GSCHED_STATE_QUEUED ? QUEUED : err;
}

int complete(struct peer_client *c, unsigned int slot, unsigned int seq, unsigned int flags)
{
	struct gsched_complete req = { .size = sizeof(req), .flags = flags, .slot = slot,
				       .seq = seq, .ran_ns = 1000 };

	return call(c->s, GSP_COMPLETE, &req, sizeof(req));
}

bool next_event(struct peer_client *c, struct gsched_event *ev, int timeout_ms)
{
	struct reply r;

	for (unsigned int i = 0; i < n_kept; i++) {
		if (kept[i].s != c->s)
			continue;
		*ev = kept[i].ev;
		memmove(&kept[i], &kept[i + 1], (--n_kept - i) * sizeof(kept[0]));
		return true;
	}
	if (!receive(c->s, &r, timeout_ms) || r.h.type != GSP_EVENT || r.len != sizeof(*ev))
		return false;
	memcpy(ev, r.body, sizeof(*ev));
	return ev->size == sizeof(*ev);
}

uint32_t page_limit(const struct peer_client *c, unsigned int slot)
{
	return __atomic_load_n(&c->arb->slot[slot].window, __ATOMIC_ACQUIRE);
}

bool wait_limit(const struct peer_client *c, unsigned int slot, uint32_t limit)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < WAIT_MS && page_limit(c, slot) != limit; i++)
		nanosleep(&ms, NULL);
	return page_limit(c, slot) == limit;
}

/* ---- administration ---- */

static int group_request(unsigned int type, const char *path, const char *file, const char *value,
			 struct gsp_group *req)
{
	int s = peer(), err;

	*req = (struct gsp_group){ .size = sizeof(*req) };
	strcpy(req->path, path);
	strcpy(req->file, file ? file : "");
	strcpy(req->value, value ? value : "");
	err = call(s, type, req, sizeof(*req));
	close(s);
	return err;
}

int group_call(unsigned int type, const char *path, const char *file, const char *value)
{
	struct gsp_group req;

	return group_request(type, path, file, value, &req);
}

const char *group_file(const char *path, const char *file)
{
	static struct gsp_group req;

	return group_request(GSP_GROUP_GET, path, file, NULL, &req) ? "" : req.value;
}

int device_set(const char *file, const char *value)
{
	return group_call(GSP_DEVICE_SET, "", file, value);
}

char *status_text(void)
{
	int s = peer(), err;
	struct reply r;
	struct stat st;
	char *text;

	err = call_fds(s, GSP_STATUS, NULL, 0, -1, &r);
	close(s);
	if (err || r.n_fds != 1 || fstat(r.fd[0], &st)) {
		errno = err;
		die("status");
	}
	text = calloc(1, st.st_size + 1);
	if (!text || pread(r.fd[0], text, st.st_size, 0) != st.st_size)
		die("status");
	reply_free(&r);
	return text;
}
