// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPS control daemons as processes: their directories, how they are started, whether they accept
 * connections.
 *
 * DIR belongs to gschedd, DIR/UID to the user. Everything below DIR/UID is created by the child
 * once it runs as that user, because a user may place symbolic links there that gschedd must not
 * follow as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mps_proc.h"

#define BACKOFF_MAX_S	30
#define OUTPUT		"control.out"	/* in the log directory: what the daemon prints */
#define PID_FILE	"nvidia-cuda-mps-control.pid"
/* The longest name of a socket in the pipe directory, which must fit into a socket address */
#define LONGEST_SOCKET	"/control_privileged"

bool mps_band_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return len && len < GSP_BAND_NAME_SIZE && !name[len];
}

unsigned int mps_backoff_s(unsigned int failures)
{
	if (!failures)
		return 0;
	return failures > 5 ? BACKOFF_MAX_S : 1u << (failures - 1);
}

static bool is_executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

bool mps_find_program(const char *name, const char *path, char *buf, size_t size)
{
	if (strchr(name, '/')) {
		char *full = realpath(name, NULL);
		bool good = full && is_executable(full) && strlen(full) < size;

		if (good)
			strcpy(buf, full);
		free(full);
		return good;
	}
	while (path && *path) {
		size_t len = strcspn(path, ":");

		if (*path == '/' &&
		    snprintf(buf, size, "%.*s/%s", (int)len, path, name) < (int)size &&
		    is_executable(buf))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static int fail_with(char *reason, size_t size, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static int fail_with(char *reason, size_t size, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, size, fmt, ap);
	va_end(ap);
	return err;
}

int mps_dir_prepare(const char *dir, char *reason, size_t size)
{
	char parent[GSP_BAND_DIR_SIZE];
	uid_t me = geteuid();
	struct stat st;
	char *slash;
	int fd, err;

	if (*dir != '/' || !dir[1])
		return fail_with(reason, size, -EINVAL, "%s: give a directory by its absolute path",
				 dir);
	if (strlen(dir) >= sizeof(parent))
		return fail_with(reason, size, -ENAMETOOLONG, "%s: too long; use a shorter path",
				 dir);
	strcpy(parent, dir);
	slash = strrchr(parent, '/');
	if (!slash[1])
		return fail_with(reason, size, -EINVAL, "%s: leave out the last \"/\"", dir);
	*slash = '\0';
	if (*parent)
		mkdir(parent, 0755);
	if (stat(*parent ? parent : "/", &st))
		return fail_with(reason, size, -errno,
				 "%s: %s; make it first or name another directory with --mps-dir",
				 parent, strerror(errno));
	if (st.st_uid && st.st_uid != me)
		return fail_with(reason, size, -EPERM,
				 "%s: belongs to uid %u, who could replace what is in it; name "
				 "another directory with --mps-dir", parent,
				 (unsigned int)st.st_uid);
	if (st.st_mode & 022 && !(st.st_mode & S_ISVTX))
		return fail_with(reason, size, -EPERM,
				 "%s: others may write to it and it has no sticky bit, so they "
				 "could replace what is in it; chmod go-w it or name another "
				 "directory with --mps-dir", parent);
	if (mkdir(dir, 0711) && errno != EEXIST)
		return fail_with(reason, size, -errno,
				 "%s: %s; name another directory with --mps-dir", dir,
				 strerror(errno));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		return lstat(dir, &st) ? fail_with(reason, size, err, "%s: %s", dir,
						   strerror(-err)) :
		       S_ISLNK(st.st_mode) ? fail_with(reason, size, -ELOOP,
						       "%s: is a symbolic link; remove it or name "
						       "another directory with --mps-dir", dir) :
		       !S_ISDIR(st.st_mode) ? fail_with(reason, size, -ENOTDIR,
							"%s: exists and is not a directory; remove "
							"it or name another one with --mps-dir",
							dir) :
		       fail_with(reason, size, err, "%s: %s", dir, strerror(-err));
	}
	err = 0;
	if (fstat(fd, &st))
		err = fail_with(reason, size, -errno, "%s: %s", dir, strerror(errno));
	else if (st.st_uid != me)
		err = fail_with(reason, size, -EPERM,
				"%s: belongs to uid %u and not to gschedd's user; remove it or "
				"name another directory with --mps-dir", dir,
				(unsigned int)st.st_uid);
	else if (st.st_mode & 022)
		err = fail_with(reason, size, -EPERM, "%s: others may write to it; chmod go-w it",
				dir);
	else if (fchmod(fd, 0711))	/* mkdir() applies the umask */
		err = fail_with(reason, size, -errno, "%s: %s", dir, strerror(errno));
	close(fd);
	return err;
}

int mps_id_prepare(struct mps_id *id, const char *dir, char *reason, size_t size)
{
	char user[GSP_BAND_DIR_SIZE];
	struct stat st;
	int n;

	n = snprintf(user, sizeof(user), "%s/%u", dir, (unsigned int)id->uid);
	if (n >= (int)sizeof(user))
		return fail_with(reason, size, -ENAMETOOLONG,
				 "%s: too long; choose a shorter --mps-dir", dir);
	n = snprintf(id->base, sizeof(id->base), "%s/%s", user, id->band);
	if (n + sizeof("/pipe" LONGEST_SOCKET) > sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return fail_with(reason, size, -ENAMETOOLONG,
				 "%s: too long for the address of a socket below it; choose a "
				 "shorter --mps-dir", id->base);
	snprintf(id->pipe, sizeof(id->pipe), "%.*s/pipe", n, id->base);
	snprintf(id->log, sizeof(id->log), "%.*s/log", n, id->base);
	/* only gschedd's user can write to DIR, so the checked state cannot change */
	if (mkdir(user, 0700) && errno != EEXIST)
		return fail_with(reason, size, -errno, "%s: %s", user, strerror(errno));
	if (lstat(user, &st))
		return fail_with(reason, size, -errno, "%s: %s", user, strerror(errno));
	if (!S_ISDIR(st.st_mode) || (st.st_uid != id->uid && st.st_uid != geteuid()))
		return fail_with(reason, size, -EPERM,
				 "%s: is not a directory of that user; remove it", user);
	if (st.st_uid != id->uid && lchown(user, id->uid, id->gid))
		return fail_with(reason, size, -errno, "%s: %s", user, strerror(errno));
	if (st.st_mode & 077 && chmod(user, 0700))
		return fail_with(reason, size, -errno, "%s: %s", user, strerror(errno));
	return 0;
}

/* In the child: sends the reason to the parent through a pipe, and exits. */
static _Noreturn void give_up(int error_fd, const char *what)
{
	if (error_fd >= 0)
		dprintf(error_fd, "%s: %s", what, strerror(errno));
	_exit(126);
}

/*
 * Once the child runs as the user, the user can stop it, or make it wait for a file. If gschedd
 * ended meanwhile, its listening socket and locks would be held, and the next one could not start.
 */
static void keep_only(int *in, int *error_fd)
{
	if (dup2(*in, 0) < 0)
		give_up(*error_fd, "its standard streams");
	*in = 0;
	if (*error_fd >= 0 && *error_fd != 3 && dup3(*error_fd, 3, O_CLOEXEC) < 0)
		give_up(*error_fd, "its standard streams");
	*error_fd = *error_fd >= 0 ? 3 : -1;
	if (close_range(*error_fd >= 0 ? 4 : 3, ~0u, 0))
		give_up(*error_fd, "its descriptors");
}

static void change_user(const struct mps_id *id, int error_fd)
{
	if (geteuid() == id->uid)
		return;
	if (setgroups(id->n_groups, id->groups) || setresgid(id->gid, id->gid, id->gid) ||
	    setresuid(id->uid, id->uid, id->uid))
		give_up(error_fd, "taking the user's identity");
	unsetenv("HOME");
	unsetenv("XDG_RUNTIME_DIR");
}

static void make_own_dir(const char *path, int error_fd)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		give_up(error_fd, path);
	if (lstat(path, &st))
		give_up(error_fd, path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
		errno = ENOTDIR;
		give_up(error_fd, path);
	}
}

static void set_environment(const struct mps_id *id, const struct mps_setup *setup)
{
	setenv("CUDA_MPS_PIPE_DIRECTORY", id->pipe, 1);
	setenv("CUDA_MPS_LOG_DIRECTORY", id->log, 1);
	setenv("GSCHED_SOCKET", setup->socket, 1);
	setenv("GSCHED_BACKEND", setup->backend, 1);
	setenv("GSCHED_BAND", id->band, 1);
	unsetenv("NOTIFY_SOCKET");
	/* a server renumbers its devices, so the programs' numbers would mean other ones */
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("LD_PRELOAD");
}

static _Noreturn void run_child(const struct mps_id *id, const struct mps_setup *setup, int in,
				int error_fd, bool quit)
{
	char path[GSP_BAND_DIR_SIZE + 32];
	int out;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	/* SIGINT from a terminal must only reach gschedd, which ends this in order */
	setsid();
	umask(077);
	keep_only(&in, &error_fd);
	change_user(id, error_fd);
	set_environment(id, setup);
	if (quit) {
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	} else {
		make_own_dir(id->base, error_fd);
		make_own_dir(id->pipe, error_fd);
		make_own_dir(id->log, error_fd);
		/*
		 * a socket left by a killed daemon would look like that of a daemon that is not
		 * ready yet
		 */
		snprintf(path, sizeof(path), "%s/control", id->pipe);
		unlink(path);
		snprintf(path, sizeof(path), "%s/" OUTPUT, id->log);
		out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW |
			   O_CLOEXEC, 0600);
		if (out < 0)
			give_up(error_fd, path);
		/* the dynamic linker would only warn about a library that this user cannot read */
		if (*setup->library && access(setup->library, R_OK))
			dprintf(out, "gschedd: %s: %s: the server runs without it\n",
				setup->library, strerror(errno));
		else if (*setup->library)
			setenv("LD_PRELOAD", setup->library, 1);
	}
	if (chdir("/") || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		give_up(error_fd, "its standard streams");
	execl(setup->program, setup->program, quit ? NULL : "-f", NULL);
	give_up(error_fd, setup->program);
}

pid_t mps_spawn(const struct mps_id *id, const struct mps_setup *setup, int *error_fd)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), error[2], err;
	pid_t pid;

	if (in < 0)
		return -errno;
	if (pipe2(error, O_CLOEXEC | O_NONBLOCK)) {
		err = errno;
		close(in);
		return -err;
	}
	pid = fork();
	if (!pid)
		run_child(id, setup, in, error[1], false);
	err = errno;
	close(in);
	close(error[1]);
	if (pid < 0) {
		close(error[0]);
		return -err;
	}
	*error_fd = error[0];
	return pid;
}

pid_t mps_spawn_quit(const struct mps_id *id, const struct mps_setup *setup)
{
	static const char command[] = "quit\n";
	int in[2], err;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC))
		return -errno;
	/* it fits into the pipe, so this does not block */
	err = write(in[1], command, sizeof(command) - 1) == sizeof(command) - 1 ? 0 : EIO;
	close(in[1]);
	pid = err ? -1 : fork();
	if (!pid)
		run_child(id, setup, in[0], -1, true);
	if (!err)
		err = errno;
	close(in[0]);
	return pid < 0 ? -err : pid;
}

static int try_connect(const struct sockaddr_un *addr, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return errno;
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
	close(fd);
	return err;
}

/*
 * The socket's file exists before the daemon listens, and remains after it was killed: only a
 * connection shows that it is ready.
 */
bool mps_listening(const struct mps_id *id)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int err;

	if (snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control",
		     id->pipe) >= (int)sizeof(addr.sun_path) ||
	    lstat(addr.sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	err = try_connect(&addr, SOCK_SEQPACKET);
	if (err == EPROTOTYPE)
		err = try_connect(&addr, SOCK_STREAM);
	return !err || err == EAGAIN;	/* EAGAIN: its backlog is full */
}

/* Reads the end of a file that the user of @id has written. Returns the bytes read, or -1. */
static ssize_t read_tail(const struct mps_id *id, const char *dir, const char *name, char *buf,
			 size_t size)
{
	char path[GSP_BAND_DIR_SIZE + 64];
	struct stat st;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == id->uid)
		n = pread(fd, buf, size - 1, st.st_size > (off_t)size - 1 ?
			  st.st_size - ((off_t)size - 1) : 0);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

pid_t mps_pid_file(const struct mps_id *id)
{
	char buf[32];
	long pid;

	if (read_tail(id, id->pipe, PID_FILE, buf, sizeof(buf)) <= 0)
		return 0;
	pid = strtol(buf, NULL, 10);
	return pid > 1 && pid <= INT32_MAX ? pid : 0;
}

pid_t mps_server(pid_t daemon)
{
	char path[64], text[128], *at = text, *end;
	pid_t pid = 0;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)daemon, (int)daemon);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	/* take the last one: a server that has ended may be listed before it */
	for (long child = strtol(at, &end, 10); end != at; child = strtol(at, &end, 10)) {
		pid = (pid_t)child;
		at = end;
	}
	return pid;
}

void mps_last_line(const struct mps_id *id, char *buf, size_t size)
{
	char text[1024], *line;
	ssize_t n = read_tail(id, id->log, OUTPUT, text, sizeof(text));
	size_t len = 0;

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
	line = n > 0 ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text;
	for (; n > 0 && *line && len + 1 < size; line++)
		buf[len++] = *line < 0x20 || *line > 0x7e ? '?' : *line;
	if (size)
		buf[len] = '\0';
}

void mps_describe_end(const struct mps_id *id, int status, int error_fd, char *buf, size_t size)
{
	char text[MPS_REASON / 2] = "";
	ssize_t got = error_fd >= 0 ? read(error_fd, text, sizeof(text) - 1) : 0;
	int n;

	if (got > 0) {
		text[got] = '\0';
		snprintf(buf, size, "cannot be started: %s", text);
		return;
	}
	if (status == -1)
		n = snprintf(buf, size, "ended");
	else if (WIFSIGNALED(status))
		n = snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		n = snprintf(buf, size, "ended with status %d", WEXITSTATUS(status));
	mps_last_line(id, text, sizeof(text));
	if (*text && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "; it said: %s", text);
}
