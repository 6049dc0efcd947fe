// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The state machine of an MPS control daemon, driven by requests, the end of its process, and its
 * timer. None of them blocks. The daemon is started for the first program, restarted when it dies,
 * and ended some time after the last program has ended. A control daemon starts the MPS server
 * itself, for its first client, and again for the first client after the server's death. The server
 * is watched in order to report its death, and to end it with its daemon.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mps.h"

#define DAEMONS_MAX	128
#define DAEMONS_UID_MAX	16
#define PROGRAMS_MAX	128		/* per daemon; each holds a descriptor */
#define SEC		1000000000ull
#define PROBE_NS	5000000ull	/* poll interval of a daemon that starts */
#define STABLE_NS	(30 * SEC)	/* a daemon that lived this long resets the back-off */
#define STEP_NS		(5 * SEC)	/* from quit to SIGTERM, and from SIGTERM to SIGKILL */
#define EXIT_STEP_MS	3000		/* the same, when gschedd exits */

bool (*mps_has_clients)(const struct mps_daemon *d);
struct mps_setup mps_setup;
struct list_head mps_daemons = { &mps_daemons, &mps_daemons };
static unsigned int n_daemons;

static void daemon_start(struct mps_daemon *d);

static void daemon_say(int level, const struct mps_daemon *d, const char *text)
{
	say(level, "MPS control daemon of band %s, uid %u: %s", d->id.band,
	    (unsigned int)d->id.uid, text);
}

static bool has_ended(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static bool has_programs(const struct mps_daemon *d)
{
	return !list_empty(&d->programs) || !list_empty(&d->waiters);
}

static void arm_timer(struct mps_daemon *d)
{
	struct itimerspec its = { 0 };
	uint64_t next = d->due;
	struct mps_waiter *w;

	if (d->state == MPS_STARTING)
		next = now_ns() + PROBE_NS;
	list_for_each_entry(w, &d->waiters, node)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed waiters are off the list */
		next = !next || w->deadline < next ? w->deadline : next;
	its.it_value.tv_sec = (time_t)(next / SEC);
	its.it_value.tv_nsec = (long)(next % SEC);
	timerfd_settime(d->timer.fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void answer_waiter(struct mps_waiter *w, const struct mps_daemon *d, int err,
			  const char *reason)
{
	if (!err) {
		memcpy(w->req.pipe, d->id.pipe, sizeof(w->req.pipe));
		memcpy(w->req.log, d->id.log, sizeof(w->req.log));
	} else {
		snprintf(w->req.reason, sizeof(w->req.reason), "%s", reason);
	}
	conn_reply(w->conn, &w->h, err, &w->req, sizeof(w->req), NULL, 0);
	list_del_init(&w->node);
	free(w);
}

static void answer_waiters(struct mps_daemon *d, int err)
{
	struct mps_waiter *w, *next;

	list_for_each_entry_safe(w, next, &d->waiters, node)
		answer_waiter(w, d, err, d->reason);
}

static void set_state(struct mps_daemon *d, enum mps_state state, uint64_t due)
{
	d->state = state;
	d->due = due;
	arm_timer(d);
}

/*
 * It could not be started, or died. Current waiters get the error now, later ones wait for the next
 * attempt.
 */
static void daemon_failed(struct mps_daemon *d, int err)
{
	unsigned int seconds;
	char text[MPS_REASON + 64];

	d->failures++;
	d->deaths++;
	seconds = mps_backoff_s(d->failures);
	answer_waiters(d, err);
	snprintf(text, sizeof(text), "%s; the next start is in %u s at the earliest",
		 d->reason, seconds);
	daemon_say(LOG_WARN, d, text);
	set_state(d, MPS_BACKOFF, now_ns() + seconds * SEC);
}

void mps_daemon_server(struct mps_daemon *d, pid_t pid)
{
	struct proc_stat st;

	if (d->state != MPS_READY || d->server_pid || pid <= 0)
		return;
	d->server.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	/*
	 * If the process is the daemon's child, the descriptor refers to it. A server that has
	 * ended stays a child until the daemon reaps it, and must not count as a new server.
	 */
	if (d->server.fd >= 0 && !has_ended(d->server.fd) && !proc_stat(pid, &st) &&
	    st.ppid == d->pid && !loop_add(&d->server, EPOLLIN))
		d->server_pid = pid;
	else
		loop_del(&d->server);
}

void mps_daemon_look(struct mps_daemon *d)
{
	if (d->state == MPS_READY && !d->server_pid)
		mps_daemon_server(d, mps_server(d->pid));
}

static void server_gone(struct mps_daemon *d)
{
	loop_del(&d->server);
	d->server_pid = 0;
}

/*
 * Ends the server after its daemon. It ends by itself, unless it is stopped; then the next daemon's
 * server would be a second one in the band.
 */
static void server_end(struct mps_daemon *d)
{
	if (d->server_pid)
		syscall(SYS_pidfd_send_signal, d->server.fd, SIGKILL, NULL, 0);
	server_gone(d);
}

static void server_ready(struct source *src, uint32_t events)
{
	struct mps_daemon *d = container_of(src, struct mps_daemon, server);
	char text[MPS_REASON];

	/*
	 * an event of this turn may refer to the previous server; a daemon's end is reported as
	 * such
	 */
	if (!has_ended(src->fd) || has_ended(d->process.fd))
		return;
	snprintf(text, sizeof(text), "its server, pid %d, ended", (int)d->server_pid);
	server_gone(d);
	mps_daemon_look(d);
	if (d->state != MPS_READY)
		return;
	d->server_deaths++;
	memcpy(d->reason, text, sizeof(text));
	daemon_say(LOG_WARN, d,
		   "its server ended: programs in it have lost their CUDA contexts, "
		   "later ones get a new server");
}

static void daemon_ready(struct mps_daemon *d)
{
	d->ready_at = now_ns();
	daemon_say(LOG_INFO, d, d->adopted ? "serves already, taken over" : "ready");
	answer_waiters(d, 0);
	set_state(d, MPS_READY, list_empty(&d->programs) ? d->ready_at + opt.mps_idle_s * SEC : 0);
	mps_daemon_look(d);
}

static void quit_ready(struct source *src, uint32_t events)
{
	struct mps_daemon *d = container_of(src, struct mps_daemon, quit);

	if (d->quit_pid <= 0 || waitpid(d->quit_pid, NULL, WNOHANG) != d->quit_pid)
		return;
	d->quit_pid = 0;
	loop_del(src);
}

/* Sends `quit` with the daemon's own program, as a user would. */
static void send_quit(struct mps_daemon *d)
{
	pid_t pid = d->quit_pid ? -EBUSY : mps_spawn_quit(&d->id, &mps_setup);

	if (pid < 0)
		return;		/* SIGTERM will follow */
	d->quit_pid = pid;
	d->quit.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (d->quit.fd >= 0 && loop_add(&d->quit, EPOLLIN))
		loop_del(&d->quit);
}

static void daemon_end(struct mps_daemon *d, bool failed)
{
	d->failed = failed;
	d->sigterm_sent = failed;
	if (failed)
		kill(d->pid, SIGTERM);
	else
		send_quit(d);
	set_state(d, MPS_ENDING, now_ns() + STEP_NS);
}

static void process_ready(struct source *src, uint32_t events)
{
	struct mps_daemon *d = container_of(src, struct mps_daemon, process);
	enum mps_state was = d->state;
	int status = 0;

	/* an event of this turn may refer to the previous process */
	if (!has_ended(src->fd))
		return;
	if (!d->adopted)
		waitpid(d->pid, &status, WNOHANG);
	loop_del(src);
	if (d->quit_pid > 0)
		kill(d->quit_pid, SIGKILL);	/* no daemon is left to answer it */
	server_end(d);
	if (was != MPS_ENDING || !d->failed)
		mps_describe_end(&d->id, d->adopted ? -1 : status, d->error_fd, d->reason,
				 sizeof(d->reason));
	if (d->error_fd >= 0)
		close(d->error_fd);
	d->error_fd = -1;
	d->pid = 0;
	if (was == MPS_READY && now_ns() - d->ready_at > STABLE_NS)
		d->failures = 0;
	if (was != MPS_ENDING || d->failed) {
		daemon_failed(d, EIO);
		return;
	}
	daemon_say(LOG_INFO, d, "ended");
	d->reason[0] = '\0';
	d->failures = 0;
	set_state(d, MPS_STOPPED, 0);
	if (has_programs(d))
		daemon_start(d);
}

static void start_failed(struct mps_daemon *d, int err)
{
	d->pid = 0;
	daemon_failed(d, err < 0 ? -err : err);
}

/* Finds a daemon that an earlier gschedd started and could not end; its programs still use it. */
static pid_t find_running_daemon(const struct mps_daemon *d, int *pidfd)
{
	pid_t pid = mps_pid_file(&d->id);
	struct proc_stat st;

	*pidfd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (*pidfd < 0)
		return 0;
	/* never signal another user's process, whatever the pid file contains */
	if (!proc_stat(pid, &st) && st.uid == d->id.uid)
		return pid;
	close(*pidfd);
	return 0;
}

static void daemon_start(struct mps_daemon *d)
{
	int err = mps_id_prepare(&d->id, mps_setup.dir, d->reason, sizeof(d->reason));

	if (err) {
		start_failed(d, err);
		return;
	}
	d->adopted = mps_listening(&d->id);
	d->starts++;
	if (d->adopted) {
		d->pid = find_running_daemon(d, &d->process.fd);
		if (!d->pid) {
			snprintf(d->reason, sizeof(d->reason),
				 "gschedd did not start the one that serves %s; tell it to quit",
				 d->id.pipe);
			start_failed(d, EBUSY);
			return;
		}
	} else {
		d->pid = mps_spawn(&d->id, &mps_setup, &d->error_fd);
		if (d->pid < 0) {
			snprintf(d->reason, sizeof(d->reason), "cannot be started: %s",
				 strerror(-d->pid));
			start_failed(d, d->pid);
			return;
		}
		d->process.fd = (int)syscall(SYS_pidfd_open, d->pid, 0);
	}
	err = d->process.fd < 0 ? -errno : loop_add(&d->process, EPOLLIN);
	if (err) {
		snprintf(d->reason, sizeof(d->reason), "cannot be watched: %s", strerror(-err));
		if (!d->adopted) {
			kill(d->pid, SIGKILL);
			waitpid(d->pid, NULL, 0);
		}
		loop_del(&d->process);
		start_failed(d, err);
		return;
	}
	if (d->adopted)
		daemon_ready(d);
	else
		set_state(d, MPS_STARTING, now_ns() + opt.mps_wait_s * SEC);
}

static void tell_deaf(struct mps_daemon *d)
{
	snprintf(d->reason, sizeof(d->reason),
		 "does not accept connections at %s/control after %u s", d->id.pipe,
		 opt.mps_wait_s);
}

static void timer_ready(struct source *src, uint32_t events)
{
	struct mps_daemon *d = container_of(src, struct mps_daemon, timer);
	uint64_t now = now_ns(), n;
	struct mps_waiter *w, *next;
	bool due = d->due && now >= d->due;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n))
		return;
	if (d->state == MPS_STARTING && mps_listening(&d->id)) {
		daemon_ready(d);
		return;
	}
	/* a waiter's time may be up just before the daemon's own */
	if (d->state == MPS_STARTING)
		list_for_each_entry(w, &d->waiters, node)
			due |= w->deadline <= now && w->deadline + PROBE_NS >= d->due;
	if (d->state == MPS_STARTING && due) {
		tell_deaf(d);
		answer_waiters(d, ETIMEDOUT);
		daemon_end(d, true);
	} else if (d->state == MPS_READY && due) {
		if (mps_has_clients(d))
			set_state(d, MPS_READY, now + opt.mps_idle_s * SEC);
		else
			daemon_end(d, false);
	} else if (d->state == MPS_ENDING && due && !d->sigterm_sent && mps_server(d->pid) > 0) {
		/*
		 * it refuses new clients, and ends with its last client, which is none of the
		 * programs
		 */
		snprintf(d->reason, sizeof(d->reason),
			 "waits for clients that gschedd did not start to end");
		set_state(d, MPS_ENDING, now + STEP_NS);
	} else if (d->state == MPS_ENDING && due) {
		kill(d->pid, d->sigterm_sent ? SIGKILL : SIGTERM);
		d->sigterm_sent = true;
		set_state(d, MPS_ENDING, now + STEP_NS);
	} else if (d->state == MPS_BACKOFF && due) {
		set_state(d, MPS_STOPPED, 0);
		if (has_programs(d))
			daemon_start(d);
	}
	list_for_each_entry_safe(w, next, &d->waiters, node) {
		if (w->deadline > now)
			continue;
		/* its time began before the daemon's, as that took long to start */
		if (d->state == MPS_STARTING)
			tell_deaf(d);
		answer_waiter(w, d, ETIMEDOUT, *d->reason ? d->reason :
			      "the one before it takes too long to end");
	}
	arm_timer(d);
}

static void program_end(struct mps_program *p)
{
	struct mps_daemon *d = p->daemon;

	list_del_init(&p->node);
	loop_free(&p->src, p);
	mps_daemon_look(d);
	if (d->state == MPS_READY && list_empty(&d->programs))
		set_state(d, MPS_READY, now_ns() + opt.mps_idle_s * SEC);
}

static void program_ready(struct source *src, uint32_t events)
{
	program_end(container_of(src, struct mps_program, src));
}

int mps_program_add(struct mps_daemon *d, pid_t pid)
{
	unsigned int n = 0;
	struct mps_program *p;
	int err;

	list_for_each_entry(p, &d->programs, node) {
		/*
		 * if that process has ended and its pid was reused, the entry is removed in this
		 * turn of the loop
		 */
		if (p->pid == pid && !has_ended(p->src.fd))
			return 0;
		n++;
	}
	if (n >= PROGRAMS_MAX)
		return -EBUSY;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->daemon = d;
	p->src.ready = program_ready;
	p->src.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	err = p->src.fd < 0 ? errno == EINVAL ? -ESRCH : -errno : loop_add(&p->src, EPOLLIN);
	if (err) {
		if (p->src.fd >= 0)
			close(p->src.fd);
		free(p);
		return err;
	}
	list_add_tail(&p->node, &d->programs);
	mps_daemon_look(d);
	if (d->state == MPS_READY)
		set_state(d, MPS_READY, 0);
	return 0;
}

static void daemon_free(struct mps_daemon *d)
{
	struct mps_program *p, *next;

	list_for_each_entry_safe(p, next, &d->programs, node) {
		list_del_init(&p->node);
		loop_free(&p->src, p);
	}
	if (d->quit_pid > 0) {
		kill(d->quit_pid, SIGKILL);
		waitpid(d->quit_pid, NULL, 0);
	}
	loop_del(&d->quit);
	loop_del(&d->server);
	list_del_init(&d->node);
	n_daemons--;
	loop_free(&d->timer, d);
}

struct mps_daemon *mps_daemon_get(uid_t uid, const char *band, int *err)
{
	struct mps_daemon *d, *own = NULL, *other = NULL;
	unsigned int n = 0;

	/* one that does not run has its place, and its counts in the status, until that is needed */
	list_for_each_entry(d, &mps_daemons, node) {
		bool idle = d->state == MPS_STOPPED && !has_programs(d);

		if (d->id.uid != uid) {
			other = idle ? d : other;
			continue;
		}
		if (!strcmp(d->id.band, band))
			return d;
		own = idle ? d : own;
		n++;
	}
	if (own && (n >= DAEMONS_UID_MAX || n_daemons >= DAEMONS_MAX)) {
		daemon_free(own);
		n--;
	} else if (other && n_daemons >= DAEMONS_MAX) {
		daemon_free(other);
	}
	*err = n >= DAEMONS_UID_MAX || n_daemons >= DAEMONS_MAX ? -EBUSY : -ENOMEM;
	d = *err == -EBUSY ? NULL : calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->id.uid = uid;
	strcpy(d->id.band, band);
	INIT_LIST_HEAD(&d->programs);
	INIT_LIST_HEAD(&d->waiters);
	d->process.fd = d->server.fd = d->quit.fd = d->error_fd = -1;
	d->process.ready = process_ready;
	d->server.ready = server_ready;
	d->quit.ready = quit_ready;
	d->timer.ready = timer_ready;
	d->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	*err = d->timer.fd < 0 ? -errno : loop_add(&d->timer, EPOLLIN);
	if (*err) {
		loop_del(&d->timer);
		free(d);
		return NULL;
	}
	list_add_tail(&d->node, &mps_daemons);
	n_daemons++;
	return d;
}

void mps_daemon_adopt(struct mps_daemon *d)
{
	if (d->state == MPS_STOPPED)
		daemon_start(d);
}

int mps_daemon_wait(struct mps_daemon *d, struct conn *conn, const struct gsp_header *h,
		    const struct gsp_band *req)
{
	struct mps_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->conn = conn;
	w->h = *h;
	w->req = *req;
	w->deadline = now_ns() + opt.mps_wait_s * SEC;
	list_add_tail(&w->node, &d->waiters);
	if (d->state == MPS_STOPPED)
		daemon_start(d);
	else
		arm_timer(d);
	return 0;
}

/* Ends all at once: `quit` first, then signals, each step for a bounded time. */
static void wait_ended(const struct mps_daemon *const *list, unsigned int n, int timeout_ms)
{
	uint64_t until = now_ns() + timeout_ms * 1000000ull;

	for (unsigned int i = 0; i < n; i++) {
		struct pollfd pfd = { .fd = list[i]->process.fd, .events = POLLIN };
		uint64_t now = now_ns();

		poll(&pfd, 1, now < until ? (int)((until - now) / 1000000) + 1 : 0);
	}
}

void mps_daemons_end(void)
{
	struct mps_daemon *list[DAEMONS_MAX] = { NULL }, *d;
	unsigned int n = 0;

	list_for_each_entry(d, &mps_daemons, node)
		if (d->process.fd >= 0)
			list[n++] = d;
	for (unsigned int i = 0; i < n; i++)
		if (list[i]->state == MPS_READY)
			send_quit(list[i]);
		else
			kill(list[i]->pid, SIGTERM);
	wait_ended((const struct mps_daemon *const *)list, n, EXIT_STEP_MS);
	for (int sig = SIGTERM; n && sig; sig = sig == SIGTERM ? SIGKILL : 0) {
		for (unsigned int i = 0; i < n; i++)
			if (!has_ended(list[i]->process.fd)) {
				daemon_say(LOG_WARN, list[i], sig == SIGTERM ?
					   "does not quit: SIGTERM" : "does not end: SIGKILL");
				kill(list[i]->pid, sig);
			}
		wait_ended((const struct mps_daemon *const *)list, n, EXIT_STEP_MS);
	}
	while (!list_empty(&mps_daemons)) {
		d = container_of(mps_daemons.next, struct mps_daemon, node);
		if (d->pid > 0 && !d->adopted)
			waitpid(d->pid, NULL, WNOHANG);
		if (d->error_fd >= 0)
			close(d->error_fd);
		loop_del(&d->process);
		server_end(d);
		daemon_free(d);
	}
}
