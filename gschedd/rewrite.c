// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rewrite service in the daemon: checks requests, queues them, hands one after another to the worker process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gschedd.h"

#define JOBS_MAX	256
#define JOBS_CONN_MAX	8
#define DEADLINE_S	120
#define ARCH_MAX	9999

struct job {
	struct list_head node;
	struct conn *conn;		/* NULL: the asker went away */
	struct gsp_header h;
	struct gsp_rewrite req;
	uid_t uid;
	int fd;
	uint64_t id;
};

struct rewrite_stats rewrite_stats;
static struct list_head jobs = { &jobs, &jobs };	/* the first is with the worker if `busy` */
static unsigned int n_jobs;
static bool busy, late;
static uint64_t last_id;
static pid_t worker_pid;
static struct source worker = { .fd = -1 }, deadline = { .fd = -1 };

static void start_next(void);

static void job_end(struct job *job, int err, const int *fds, unsigned int n_fds)
{
	if (job->conn) {
		job->conn->rewrites--;
		conn_reply(job->conn, &job->h, err, &job->req, sizeof(job->req), fds, n_fds);
	} else {
		close_all(fds, n_fds);
	}
	if (job->fd >= 0)
		close(job->fd);
	list_del_init(&job->node);
	n_jobs--;
	free(job);
}

static struct job *first_job(void)
{
	return container_of(jobs.next, struct job, node);
}

static void worker_stop(void)
{
	loop_del(&worker);
	if (worker_pid > 0) {
		kill(worker_pid, SIGKILL);
		waitpid(worker_pid, NULL, 0);
	}
	worker_pid = 0;
}

static void set_deadline(unsigned int seconds)
{
	struct itimerspec its = { .it_value.tv_sec = seconds };

	timerfd_settime(deadline.fd, 0, &its, NULL);
}

static void worker_lost(void)
{
	bool was_busy = busy;

	worker_stop();
	set_deadline(0);
	busy = false;
	if (was_busy) {
		say(LOG_ERROR, "the rewriter %s on an image of %llu bytes: its program runs with the original kernels",
		    late ? "took too long" : "died", (unsigned long long)first_job()->req.image_size);
		rewrite_stats.failed++;
		job_end(first_job(), late ? ETIMEDOUT : EIO, NULL, 0);
	}
	late = false;
	start_next();
}

static void deadline_ready(struct source *src, uint32_t events)
{
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n) || !busy)
		return;
	late = true;
	worker_lost();
}

/* A program that starts again says nothing new. */
static void keep_note(const struct note *note, uid_t uid)
{
	struct note *ring;
	uint64_t *n;

	if (note->kind >= NOTE_KINDS)
		return;
	ring = rewrite_stats.note[note->kind];
	n = &rewrite_stats.n_notes[note->kind];
	for (uint64_t i = 0; i < *n && i < NOTES_MAX; i++)
		if (rewrite_stats.uid[note->kind][i] == uid && !memcmp(&ring[i], note, sizeof(*note)))
			return;
	rewrite_stats.uid[note->kind][*n % NOTES_MAX] = uid;
	ring[(*n)++ % NOTES_MAX] = *note;
}

static void worker_ready(struct source *src, uint32_t events)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int) * 2)];
	} control;
	static struct worker_reply reply;
	struct iovec iov = { .iov_base = &reply, .iov_len = sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	unsigned int n_fds = 0;
	struct cmsghdr *cm;
	int fds[2];
	ssize_t n;

	n = recvmsg(src->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	for (cm = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; cm; cm = CMSG_NXTHDR(&msg, cm)) {
		n_fds = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(cm), n_fds * sizeof(int));
	}
	if (n != sizeof(reply) || !busy || reply.id != first_job()->id || reply.n_notes > WORKER_NOTES ||
	    n_fds != (!reply.err ? 2 : reply.err == ENOEXEC ? 1 : 0)) {
		close_all(fds, n_fds);
		worker_lost();
		return;
	}
	busy = false;
	set_deadline(0);
	if (reply.err && reply.err != ENOEXEC)
		rewrite_stats.failed++;
	else
		rewrite_stats.served++;
	rewrite_stats.hits += reply.hit;
	for (unsigned int i = 0; i < reply.n_notes; i++)
		keep_note(&reply.note[i], first_job()->uid);
	job_end(first_job(), reply.err, fds, n_fds);
	start_next();
}

/* The same program again: the name it was started by may by now be another one. */
static void worker_exec(int sock)
{
	char fd[16], size[32], level[16];
	const char *argv[16];
	int n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(sock, F_SETFD, 0);
	signal(SIGPIPE, SIG_DFL);
	snprintf(fd, sizeof(fd), "%d", sock);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)opt.cache_size);
	snprintf(level, sizeof(level), "%d", opt.log_level);
	argv[n++] = "gschedd";
	argv[n++] = "--worker";
	argv[n++] = fd;
	argv[n++] = "--cache-size";
	argv[n++] = size;
	argv[n++] = "--log-level";
	argv[n++] = level;
	if (opt.cache_dir) {
		argv[n++] = "--cache";
		argv[n++] = opt.cache_dir;
	}
	argv[n] = NULL;
	execv("/proc/self/exe", (char **)argv);
	_exit(127);
}

static int worker_start(void)
{
	int sv[2], err;
	sigset_t none;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	worker_pid = fork();
	if (worker_pid < 0) {
		err = -errno;
		close(sv[0]);
		close(sv[1]);
		return err;
	}
	if (!worker_pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		worker_exec(sv[1]);
	}
	close(sv[1]);
	worker.fd = sv[0];
	worker.ready = worker_ready;
	err = loop_add(&worker, EPOLLIN);
	if (err)
		worker_stop();
	return err;
}

static int hand_over(struct job *job)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct worker_request req = { .id = job->id, .size = job->req.image_size, .arch = job->req.arch,
				      .flags = job->req.flags };
	struct iovec iov = { .iov_base = &req, .iov_len = sizeof(req) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &job->fd, sizeof(int));
	return sendmsg(worker.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void start_next(void)
{
	while (!busy && !list_empty(&jobs)) {
		struct job *job = first_job();
		int err = worker.fd < 0 ? worker_start() : 0;

		if (!err)
			err = hand_over(job);
		if (err) {
			say(LOG_WARN, "the rewriter cannot be started: %s", strerror(-err));
			worker_stop();
			rewrite_stats.failed++;
			job_end(job, err, NULL, 0);
			continue;
		}
		close(job->fd);
		job->fd = -1;
		busy = true;
		set_deadline(DEADLINE_S);
	}
}

int rewrite_request(struct conn *conn, const struct gsp_header *h, const struct gsp_rewrite *req, int fd)
{
	struct job *job;
	struct stat st;
	int mode;

	if (!req->image_size || !req->arch || req->arch > ARCH_MAX)
		return -EINVAL;
	if (req->image_size > opt.image_max)
		return -EFBIG;
	/* only memory: reading it cannot block */
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || fcntl(fd, F_GET_SEALS) < 0)
		return -EINVAL;
	if (mode & O_PATH || (mode & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if ((uint64_t)st.st_size < req->image_size)
		return -EINVAL;
	if (conn->rewrites >= JOBS_CONN_MAX || n_jobs >= JOBS_MAX)
		return -EBUSY;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->conn = conn;
	job->h = *h;
	job->req = *req;
	job->uid = conn->uid;
	job->fd = fd;
	job->id = ++last_id;
	conn->rewrites++;
	n_jobs++;
	list_add_tail(&job->node, &jobs);
	start_next();
	return 0;
}

void rewrite_conn_gone(struct conn *conn)
{
	struct job *job, *next;

	if (!conn->rewrites)
		return;
	list_for_each_entry_safe(job, next, &jobs, node) {
		if (job->conn != conn)
			continue;
		job->conn = NULL;
		/* the one under way is finished: its result goes to the cache */
		if (job->fd >= 0)
			job_end(job, 0, NULL, 0);
	}
}

int rewrite_init(void)
{
	deadline.ready = deadline_ready;
	deadline.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (deadline.fd < 0)
		return -errno;
	return loop_add(&deadline, EPOLLIN);
}

void rewrite_exit(void)
{
	worker_stop();
	while (!list_empty(&jobs))
		job_end(first_job(), 0, NULL, 0);
	loop_del(&deadline);
}
