// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rewrite service in the daemon: checks requests, queues them by user, and passes them to
 * worker processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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

#define WORKERS_MAX	4	/* and at most one per CPU */
#define JOBS_MAX	256
#define JOBS_CONN_MAX	8
#define DEADLINE_S	120
#define ARCH_MAX	9999

struct job {
	struct list_head node;		/* user->jobs while it is queued */
	struct conn *conn;		/* NULL: the requester has gone */
	struct gsp_header h;
	struct gsp_rewrite req;
	uid_t uid;
	int fd;
	uint64_t id;
};

struct worker {
	struct source src;		/* its socket; fd -1: not started */
	struct source deadline;
	pid_t pid;
	struct job *job;		/* NULL: it is idle */
	bool late;
};

struct rewrite_stats rewrite_stats;
static struct list_head turns = { &turns, &turns };	/* users with queued jobs */
static unsigned int n_waiting;
static uint64_t last_id;
static struct worker workers[WORKERS_MAX];
static unsigned int n_workers;

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
	free(job);
}

/* Removes the job from the queue. */
static void dequeue_job(struct job *job, struct user *user)
{
	list_del_init(&job->node);
	n_waiting--;
	if (!--user->n_jobs)
		list_del_init(&user->job_turn);
}

static void request_failed(const struct job *job, const char *what)
{
	static uint64_t said;

	rewrite_stats.failed++;
	if (may_say(&said))
		say(LOG_ERROR,
		    "rewriting an image of %llu bytes for uid %u: %s: "
		    "its program runs with the original kernels",
		    (unsigned long long)job->req.image_size, (unsigned int)job->uid, what);
}

static void worker_stop(struct worker *w)
{
	loop_del(&w->src);
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	w->pid = 0;
}

static void set_deadline(struct worker *w, unsigned int seconds)
{
	struct itimerspec its = { .it_value.tv_sec = seconds };

	timerfd_settime(w->deadline.fd, 0, &its, NULL);
}

static void worker_lost(struct worker *w)
{
	struct job *job = w->job;

	worker_stop(w);
	set_deadline(w, 0);
	w->job = NULL;
	if (job) {
		request_failed(job, w->late ? "it took too long" : "the worker died");
		job_end(job, w->late ? ETIMEDOUT : EIO, NULL, 0);
	}
	w->late = false;
	start_next();
}

static void deadline_ready(struct source *src, uint32_t events)
{
	struct worker *w = container_of(src, struct worker, deadline);
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n) || !w->job)
		return;
	w->late = true;
	worker_lost(w);
}

/* A program that runs again adds no new note. */
static void keep_note(const struct note *note, uid_t uid)
{
	struct note *ring;
	uint64_t *n;

	if (note->kind >= NOTE_KINDS)
		return;
	ring = rewrite_stats.note[note->kind];
	n = &rewrite_stats.n_notes[note->kind];
	for (uint64_t i = 0; i < *n && i < NOTES_MAX; i++)
		if (rewrite_stats.uid[note->kind][i] == uid &&
		    !memcmp(&ring[i], note, sizeof(*note)))
			return;
	rewrite_stats.uid[note->kind][*n % NOTES_MAX] = uid;
	ring[(*n)++ % NOTES_MAX] = *note;
}

/* How many descriptors come with a worker's reply */
static unsigned int reply_fds(const struct job *job, uint32_t err)
{
	if (err)
		return err == ENOEXEC;
	return job->req.flags & GSP_REWRITE_DESCRIBE ? 1 : 2;
}

static void worker_ready(struct source *src, uint32_t events)
{
	static struct worker_reply reply;
	struct worker *w = container_of(src, struct worker, src);
	struct job *job = w->job;
	int fds[GSP_MAX_FDS], flags = MSG_DONTWAIT;
	unsigned int n_fds;
	ssize_t n;

	n = recv_fds(src->fd, &reply, sizeof(reply), fds, &n_fds, &flags);
	if (n == -EAGAIN)
		return;
	if (n != sizeof(reply) || !job || reply.id != job->id || reply.n_notes > WORKER_NOTES ||
	    n_fds != reply_fds(job, reply.err)) {
		close_all(fds, n_fds);
		worker_lost(w);
		return;
	}
	w->job = NULL;
	set_deadline(w, 0);
	if (reply.err && reply.err != ENOEXEC)
		request_failed(job, reply.err == EIO ? "the rewriter crashed" :
						       strerror((int)reply.err));
	else
		rewrite_stats.served++;
	rewrite_stats.hits += reply.hit;
	for (unsigned int i = 0; i < reply.n_notes; i++)
		keep_note(&reply.note[i], job->uid);
	job_end(job, (int)reply.err, fds, n_fds);
	start_next();
}

/* Executes the same program through /proc/self/exe: its name may now refer to another file. */
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

static int worker_start(struct worker *w)
{
	int sv[2], err;
	sigset_t none;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	w->pid = fork();
	if (w->pid < 0) {
		err = -errno;
		close(sv[0]);
		close(sv[1]);
		return err;
	}
	if (!w->pid) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		worker_exec(sv[1]);
	}
	close(sv[1]);
	w->src.fd = sv[0];
	w->src.ready = worker_ready;
	err = loop_add(&w->src, EPOLLIN);
	if (err)
		worker_stop(w);
	return err;
}

static int hand_over(struct worker *w, struct job *job)
{
	struct worker_request req = { .id = job->id, .size = job->req.image_size,
				      .arch = job->req.arch, .flags = job->req.flags,
				      .name_size = job->req.name_size };

	return send_fds(w->src.fd, &req, sizeof(req), &job->fd, 1, MSG_DONTWAIT);
}

/* An idle worker; one that runs already is preferred. */
static struct worker *idle_worker(void)
{
	struct worker *idle = NULL;

	for (unsigned int i = 0; i < n_workers; i++)
		if (!workers[i].job && (!idle || (idle->src.fd < 0 && workers[i].src.fd >= 0)))
			idle = &workers[i];
	return idle;
}

/* Users take turns. If there are several workers, a user gets at most all but one. */
static struct job *next_job(struct user **user)
{
	unsigned int most = n_workers > 1 ? n_workers - 1 : 1;

	list_for_each_entry(*user, &turns, job_turn) {
		unsigned int running = 0;

		for (unsigned int i = 0; i < n_workers; i++)
			running += workers[i].job && workers[i].job->uid == (*user)->uid;
		if (running < most)
			return container_of((*user)->jobs.next, struct job, node);
	}
	return NULL;
}

static void start_next(void)
{
	struct worker *w;
	struct user *user;
	struct job *job;

	while ((w = idle_worker()) && (job = next_job(&user))) {
		int err = w->src.fd < 0 ? worker_start(w) : 0;

		list_move_tail(&user->job_turn, &turns);
		dequeue_job(job, user);
		if (!err)
			err = hand_over(w, job);
		if (err) {
			worker_stop(w);
			request_failed(job, "the worker cannot be started");
			job_end(job, err, NULL, 0);
			continue;
		}
		close(job->fd);
		job->fd = -1;
		w->job = job;
		set_deadline(w, DEADLINE_S);
	}
}

int rewrite_request(struct conn *conn, const struct gsp_header *h, const struct gsp_rewrite *req,
		    int fd)
{
	struct job *job;
	struct stat st;
	int mode;

	if (!req->image_size || !req->arch || req->arch > ARCH_MAX)
		return -EINVAL;
	if (req->image_size > opt.image_max || req->name_size > GSP_KERNEL_NAME_MAX)
		return -EFBIG;
	/* only memory files: fstat(2), reading and close(2) cannot block */
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (mode & O_PATH || (mode & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if ((uint64_t)st.st_size < req->image_size + req->name_size)
		return -EINVAL;
	if (conn->rewrites >= JOBS_CONN_MAX || n_waiting >= JOBS_MAX)
		return -EBUSY;
	if (!conn->admin && !gsc_share_has_room(conn->user->n_jobs, n_waiting, JOBS_MAX))
		return -EDQUOT;
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
	list_add_tail(&job->node, &conn->user->jobs);
	if (!conn->user->n_jobs++)
		list_add_tail(&conn->user->job_turn, &turns);
	n_waiting++;
	start_next();
	return 0;
}

void rewrite_conn_gone(struct conn *conn)
{
	struct job *job, *next;

	if (!conn->rewrites)
		return;
	list_for_each_entry_safe(job, next, &conn->user->jobs, node) {
		if (job->conn != conn)
			continue;
		dequeue_job(job, conn->user);
		job->conn = NULL;
		job_end(job, 0, NULL, 0);
	}
	/* jobs that run are completed: their results go to the cache */
	for (unsigned int i = 0; i < n_workers; i++)
		if (workers[i].job && workers[i].job->conn == conn)
			workers[i].job->conn = NULL;
}

int rewrite_init(void)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : CPU_COUNT(&cpus);

	n_workers = n < 1 ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (unsigned int)n;
	for (unsigned int i = 0; i < n_workers; i++) {
		struct worker *w = &workers[i];
		int err;

		w->src.fd = -1;
		w->deadline.ready = deadline_ready;
		w->deadline.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		err = w->deadline.fd < 0 ? -errno : loop_add(&w->deadline, EPOLLIN);
		if (err)
			return err;
	}
	return 0;
}

/* Called after the connections are freed, so no request waits any more. */
void rewrite_exit(void)
{
	for (unsigned int i = 0; i < n_workers; i++) {
		worker_stop(&workers[i]);
		if (workers[i].job)
			job_end(workers[i].job, 0, NULL, 0);
		loop_del(&workers[i].deadline);
	}
}
