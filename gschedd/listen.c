// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The listening socket. One gschedd per path: it refuses to replace a live one, but not a dead one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>
#include "gschedd.h"

#define RETRY_S		1
#define FDS_A_CONN	4	/* the socket, an image, and two of a reply */
#define UNREADY		".new"	/* added to a socket's name until it listens */
#define LOCK		".lock"	/* added to it, for the file that is locked meanwhile */

static struct source listener = { .fd = -1 };
static struct source retry = { .fd = -1 };	/* a timer: descriptors or memory may be there again */
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static struct stat made;
/* waited: connections may have been in the backlog for a long time */
static bool paused, waited;
static unsigned int conns_max;

static void pause_listening(void)
{
	if (paused)
		return;
	paused = waited = true;
	loop_mod(&listener, 0);
}

void listen_resume(void)
{
	if (!paused || n_conns >= conns_max)
		return;
	paused = false;
	loop_mod(&listener, EPOLLIN);
}

/* What is missing need not come from a connection that ends: all may be long, or none be there. */
static void pause_for_a_while(void)
{
	const struct itimerspec its = { .it_value.tv_sec = RETRY_S };
	static uint64_t said;

	if (may_say(&said))
		say(LOG_WARN, "no more connections for now: %m");
	pause_listening();
	timerfd_settime(retry.fd, 0, &its, NULL);
}

static void retry_ready(struct source *src, uint32_t events)
{
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) == sizeof(n))
		listen_resume();
}

static void listener_ready(struct source *src, uint32_t events)
{
	for (int i = 0; i < 16; i++) {
		int fd, err;

		if (n_conns >= conns_max) {
			pause_listening();
			return;
		}
		fd = accept4(src->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			    errno == ENOBUFS)
				pause_for_a_while();
			else if (errno == EAGAIN)
				waited = false;
			return;
		}
		err = conn_open(fd, conns_max, waited);
		if (err && err != -EDQUOT)
			say(LOG_WARN, "a connection was dropped: %s", strerror(-err));
	}
}

static void set_limits(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		rl.rlim_cur = 1024;
	else if (rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max < 65536 ? rl.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	conns_max = rl.rlim_cur > 64 + 4 * FDS_A_CONN ? (rl.rlim_cur - 64) / FDS_A_CONN : 4;
}

/* -errno, logged */
static int failed(const char *path, const char *what)
{
	int err = errno;

	say(LOG_ERROR, "%s: %s: %s", path, what, strerror(err));
	return -err;
}

/* Whether a process listens there. -errno, logged. */
static int is_listening(const char *path)
{
	struct stat st;
	int fd, rc;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : failed(path, "stat");
	if (!S_ISSOCK(st.st_mode)) {
		say(LOG_ERROR, "%s: exists and is not a socket; name another one with --socket",
		    path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failed(path, "socket");
	rc = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno : 0;
	close(fd);
	if (rc != ECONNREFUSED) {
		say(LOG_ERROR, "%s: another gschedd serves it; stop that one or name another "
		    "socket with --socket", path);
		return -EADDRINUSE;
	}
	say(LOG_INFO, "%s: left by a gschedd that was killed, replaced", path);
	return unlink(path) ? failed(path, "unlink") : 0;
}

/*
 * Held until our socket exists, or two that start at once could both replace a dead one. It is a
 * file of ours and not the directory: everybody who can open that can lock it, for as long as they
 * like.
 * -errno, logged.
 */
static int lock_name(const char *lock)
{
	struct stat ours, there;
	int fd, err;

	for (;;) {
		err = 0;
		fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (fd < 0 || fstat(fd, &ours)) {
			err = -errno;
			break;
		}
		if (ours.st_uid != geteuid() || ours.st_mode & 077)
			err = -EPERM;
		else if (flock(fd, LOCK_EX))
			err = -errno;
		if (err)
			break;
		/* whoever had it has removed it */
		if (!lstat(lock, &there) && there.st_ino == ours.st_ino &&
		    there.st_dev == ours.st_dev)
			return fd;
		close(fd);
	}
	if (fd >= 0)
		close(fd);
	say(LOG_ERROR, "%s: %s%s", lock, strerror(-err), err == -EPERM ?
	    ": it is not of gschedd's user; remove it or name another socket with --socket" :
	    "; make the directory or name another socket with --socket");
	return err;
}

/* Unless it is another one that was created after ours was removed */
static void unlink_ours(void)
{
	struct stat st;

	if (!lstat(addr.sun_path, &st) && st.st_ino == made.st_ino && st.st_dev == made.st_dev)
		unlink(addr.sun_path);
}

/* -errno, logged */
int listen_open(const char *path)
{
	struct sockaddr_un unready = { .sun_family = AF_UNIX };
	char dir[sizeof(addr.sun_path)], lock[sizeof(addr.sun_path) + sizeof(LOCK)];
	int lock_fd, err = 0, fd;
	mode_t mask;

	if (strlen(path) + strlen(UNREADY) >= sizeof(addr.sun_path)) {
		say(LOG_ERROR, "%s: longer than %zu bytes, which is all a socket's address can "
		    "hold; choose a shorter path", path,
		    sizeof(addr.sun_path) - sizeof(UNREADY));
		return -ENAMETOOLONG;
	}
	strcpy(addr.sun_path, path);
	stpcpy(stpcpy(unready.sun_path, path), UNREADY);
	stpcpy(stpcpy(lock, path), LOCK);
	set_limits();

	strcpy(dir, path);
	if (strrchr(dir, '/'))
		*strrchr(dir, '/') = '\0';
	else
		*dir = '\0';
	if (*dir)
		mkdir(dir, 0755);	/* only the last component of the default is created */
	lock_fd = lock_name(lock);
	if (lock_fd < 0)
		return lock_fd;
	err = is_listening(path);
	if (err)
		goto unlock;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		err = failed(path, "socket");
		goto unlock;
	}
	/*
	 * permissions depend on the peer's identity, not on the file's mode; under its name only once
	 * it listens: who waits for the name may connect then
	 */
	mask = umask(0111);
	unlink(unready.sun_path);
	if (bind(fd, (struct sockaddr *)&unready, sizeof(unready)) || listen(fd, 128) ||
	    rename(unready.sun_path, path) || lstat(path, &made)) {
		err = -errno;
		say(LOG_ERROR, "%s: %m", path);
		unlink(unready.sun_path);
	}
	umask(mask);
	listener.fd = fd;
	listener.ready = listener_ready;
	retry.ready = retry_ready;
	if (!err) {
		retry.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (retry.fd < 0)
			err = failed(path, "timerfd_create");
	}
	if (!err && ((err = loop_add(&retry, EPOLLIN)) || (err = loop_add(&listener, EPOLLIN))))
		say(LOG_ERROR, "%s: epoll_ctl: %s", path, strerror(-err));
	if (err) {
		unlink_ours();
		loop_del(&retry);
		close(fd);
		listener.fd = -1;
	}
unlock:
	unlink(lock);
	close(lock_fd);
	return err;
}

void listen_close(void)
{
	if (listener.fd < 0)
		return;
	unlink_ours();
	loop_del_later(&listener);
	loop_del(&retry);
}
