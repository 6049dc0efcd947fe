// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What survives a restart: groups with their files, owners and cgroups, the processes bound to
 * them, and settings of devices. Text, one statement per line (gschedd(8)), which is replaced as a
 * whole.
 *
 * DIR/groups.now has it after each change, before the change is acknowledged, for the gschedd that
 * comes after one that was killed. A crash of the machine may leave nothing of a file that was not
 * synced, so that one does not replace DIR/groups, which has it for the time after such a crash. It
 * is written by a child: a disk that is busy keeps fdatasync(2) for seconds, and clients take a
 * gschedd that is silent for two for a dead one. Bindings are void after a crash of the machine: a
 * change of these alone is not worth a sync.
 *
 * State is restored when a device is added. So the state of an absent device (another driver, a
 * removed GPU) stays in the file unchanged until the device returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gschedd.h"

#define FILE_NAME	"groups"
#define NOW_NAME	FILE_NAME ".now"
#define LOCK_NAME	"lock"
#define HEADER		"gschedd groups 1"
#define SIZE_MAX_FILE	(64u << 20)
#define ASIDE_MAX	100

/* The part of a device in the file that was read, kept until the device is added */
struct part {
	struct list_head node;
	uint8_t uuid[GSCHED_UUID_SIZE];
	char *text;			/* its lines; the first one is "device ..." */
	unsigned int line;		/* number of the first line */
};

static struct list_head parts = { &parts, &parts };
static int dir_fd = -1, lock_fd = -1;
/* now, and when the file was written: saved pids are valid only if these are equal */
static char boot[40], saved_boot[40];
static const char *source = FILE_NAME;	/* the file that was read */
static bool damaged, failing, failing_sync;
/*
 * The number of the last change, which only grows, also over restarts; that in FILE_NAME, and that
 * which the child writes there. stamp: the time of the change, which the file names and has as
 * mtime. So the newer file is known, whatever was done to the clock, and one that was edited, too.
 */
static uint64_t changes, synced, syncing;
static time_t stamp;
static bool sync_due;
static struct source child = { .fd = -1 };
static pid_t child_pid;

/* A file that could not be read is never overwritten: it is renamed, once. */
static void keep_aside(void)
{
	char name[64] = FILE_NAME ".damaged";

	if (damaged)
		return;
	damaged = true;
	for (int i = 1; renameat2(dir_fd, source, dir_fd, name, RENAME_NOREPLACE); i++) {
		if (errno != EEXIST || i > ASIDE_MAX) {
			say(LOG_ERROR, "%s/%s cannot be kept aside: %m", opt.state_dir, source);
			return;
		}
		snprintf(name, sizeof(name), FILE_NAME ".damaged.%d", i);
	}
	say(LOG_ERROR, "%s/%s is kept as %s", opt.state_dir, source, name);
}

static void report_line(unsigned int line, const char *what, const char *text)
{
	say(LOG_ERROR, "%s/%s:%u: %s: %.200s", opt.state_dir, source, line, what, text);
	keep_aside();
}

/* ---- writing ---- */

static void write_group(FILE *f, const struct group *g)
{
	struct bound_pid *b;
	char value[256];

	fprintf(f, "group /%s\n", g->path);
	for (int i = 0; i < GSC_FILE_COUNT; i++) {
		if (!gsc_file_writable(i))
			continue;
		/* the group's file would show an inherited value */
		if (i == GSC_FILE_GPU_BAND)
			snprintf(value, sizeof(value), "%s\n", g->core->band);
		else if (gsc_group_show(g->core, i, value, sizeof(value)) < 0)
			continue;
		fprintf(f, "%s %s", gsc_file_name[i], value);
	}
	if (!g->parent)
		return;
	fprintf(f, "owner %u\n", (unsigned int)g->owner);
	if (g->cgroup)
		fprintf(f, "cgroup %s\n", *g->cgroup ? g->cgroup : "/");
	list_for_each_entry(b, &g->procs, node)
		fprintf(f, "proc %d %llu\n", (int)b->pid, (unsigned long long)b->start);
}

static void write_all(FILE *f)
{
	char uuid[UUID_TEXT];
	struct device *dev;
	struct part *part;
	struct group *g;

	fprintf(f, HEADER "\nboot %s %llu %lld\n", boot, (unsigned long long)changes,
		(long long)stamp);
	list_for_each_entry(dev, &devices, node) {
		uuid_text(dev->decl.uuid, uuid);
		fprintf(f, "device %s %s\n", uuid, dev->decl.name);
		for (unsigned int i = 0; i < dev->n_settings; i++)
			fprintf(f, "%s %s\n", dev->setting[i].file, dev->setting[i].value);
		write_group(f, &dev->root);
		list_for_each_entry(g, &dev->groups, node)
			write_group(f, g);
	}
	list_for_each_entry(part, &parts, node)
		fputs(part->text, f);
	fputs("end\n", f);
}

static int write_file(const char *name, bool durable)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = stamp } };
	char new[64];
	int fd, err = 0;
	FILE *f;

	snprintf(new, sizeof(new), "%s.new", name);
	/* left by one that was killed; or a pipe, which open(2) would wait for */
	unlinkat(dir_fd, new, 0);
	fd = openat(dir_fd, new, flags, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	write_all(f);
	if (fflush(f) || ferror(f) || futimens(fd, times) || (durable && fdatasync(fd)))
		err = -(errno ? errno : EIO);
	fclose(f);
	if (!err && renameat(dir_fd, new, dir_fd, name))
		err = -errno;
	if (err)
		unlinkat(dir_fd, new, 0);
	return err;
}

/* FILE_NAME has the changes up to @upto, or could not be written. */
static void sync_ended(uint64_t upto, int err)
{
	if (err && !failing_sync)
		say(LOG_ERROR, "%s/" FILE_NAME ": %s: changes are lost if the machine crashes now",
		    opt.state_dir, strerror(-err));
	failing_sync = err;
	if (err)
		return;
	synced = upto;
	if (synced == changes)
		unlinkat(dir_fd, NOW_NAME, 0);
}

static void start_child(void);

static void child_ready(struct source *src, uint32_t events)
{
	int status = 0;

	waitpid(child_pid, &status, 0);
	child_pid = 0;
	loop_del(src);
	sync_ended(syncing, WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO);
	if (sync_due)
		start_child();
}

/* Its memory is as it was at the fork, whatever changes while it writes. */
static void start_child(void)
{
	const pid_t parent = getpid();

	sync_due = false;
	syncing = changes;
	child_pid = fork();
	if (!child_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* it must not keep others' connections open */
		if (getppid() != parent || dup2(dir_fd, 3) != 3 || close_range(4, ~0u, 0))
			_exit(EIO);
		dir_fd = 3;
		_exit(-write_file(FILE_NAME, true));
	}
	child.ready = child_ready;
	child.fd = child_pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, child_pid, 0);
	if (child.fd < 0 || loop_add(&child, EPOLLIN))
		state_sync();
}

void state_save(bool durable)
{
	int err;

	if (dir_fd < 0)
		return;
	changes++;
	stamp = time(NULL);
	err = write_file(NOW_NAME, false);
	if (err && !failing)
		say(LOG_ERROR, "%s/" NOW_NAME ": %s: groups are lost if gschedd ends now",
		    opt.state_dir, strerror(-err));
	failing = err;
	sync_due |= durable;
	if (sync_due && child_pid <= 0)
		start_child();
}

void state_sync(void)
{
	if (dir_fd < 0)
		return;
	if (child_pid > 0) {
		kill(child_pid, SIGKILL);
		waitpid(child_pid, NULL, 0);
	}
	child_pid = 0;
	loop_del(&child);
	sync_due = false;
	changes++;
	stamp = time(NULL);
	sync_ended(changes, write_file(FILE_NAME, true));
	source = FILE_NAME;
}

/* ---- reading ---- */

/* The next line of *@at, NUL-terminated in place; NULL: there is none. */
static char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return line;
}

static int parse_number(const char *text, unsigned long long most, unsigned long long *to,
			const char **end)
{
	char *stop;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*to = strtoull(text, &stop, 10);
	*end = stop;
	return errno || *to > most ? -EINVAL : 0;
}

static int restore_process(struct group *group, const char *value)
{
	unsigned long long pid, start;
	const char *end;

	if (parse_number(value, INT32_MAX, &pid, &end) || *end != ' ' ||
	    parse_number(end + 1, UINT64_MAX, &start, &end) || *end)
		return -EINVAL;
	/* a process that has ended meanwhile, or before a reboot, is no error */
	if (!strcmp(boot, saved_boot))
		group_rebind(group, (pid_t)pid, start);
	return 0;
}

/* Command-line options override saved settings. */
static int restore_setting(struct device *dev, const char *file, const char *value)
{
	int err;

	if ((opt.policy_given && !strcmp(file, "policy")) ||
	    (opt.mode_given && !strcmp(file, "mode")))
		return 0;
	err = device_set(dev, file, value);
	if (!err)
		say(LOG_INFO, "device %s: %s %s, as it was set", dev->decl.name, file, value);
	return err;
}

/* What statements are about. */
struct subject {
	struct group *group;	/* NULL: the device */
	const char *lost;	/* a group that could not be made; NULL: none */
};

static int restore_group(struct device *dev, struct subject *subject, const char *path)
{
	int err = -EINVAL;

	*subject = (struct subject){ .lost = path };
	if (*path++ != '/')
		return err;
	err = *path ? group_create(dev, path, 0) : 0;
	if (!err)
		*subject = (struct subject){ .group = group_find(dev, path) };
	return err;
}

static int restore_line(struct device *dev, struct subject *subject, const char *line)
{
	struct group *group;
	const char *value = strchr(line, ' ');
	char key[64];

	if (!strcmp(line, "group"))
		return restore_group(dev, subject, "");
	if (!value || value - line >= (long)sizeof(key))
		return -EINVAL;
	memcpy(key, line, value - line);
	key[value++ - line] = '\0';
	if (!strcmp(key, "group"))
		return restore_group(dev, subject, value);
	if (subject->lost)
		return -ENOENT;
	group = subject->group;
	if (!group)
		return restore_setting(dev, key, value);
	if (!strcmp(key, "proc"))
		return group->parent ? restore_process(group, value) : -EINVAL;
	return group_set(group, key, value);
}

void state_restore(struct device *dev)
{
	struct part *part;
	struct subject subject = { .group = NULL };
	char *at, *line, why[160];

	list_for_each_entry(part, &parts, node)
		if (!memcmp(part->uuid, dev->decl.uuid, sizeof(part->uuid)))
			goto found;
	return;
found:
	at = part->text;
	next_line(&at);
	for (unsigned int n = part->line + 1; (line = next_line(&at)); n++) {
		int err = restore_line(dev, &subject, line);

		if (err == -ENOENT && subject.lost && strncmp(line, "group ", 6)) {
			snprintf(why, sizeof(why), "group %.120s was not made", subject.lost);
			report_line(n, why, line);
		} else if (err) {
			report_line(n, strerror(-err), line);
		}
	}
	say(LOG_INFO, "device %s: %u groups as they were", dev->decl.name, dev->n_groups);
	list_del_init(&part->node);
	free(part->text);
	free(part);
}

static int add_part(const char *text, size_t size, unsigned int line)
{
	struct part *part = calloc(1, sizeof(*part));
	const char *uuid = text + strlen("device ");

	if (!part)
		return -ENOMEM;
	part->line = line;
	part->text = strndup(text, size);
	if (!part->text || parse_uuid(uuid, strcspn(uuid, " \n"), part->uuid)) {
		int err = part->text ? -EINVAL : -ENOMEM;

		free(part->text);
		free(part);
		return err;
	}
	list_add_tail(&part->node, &parts);
	return 0;
}

static void drop_parts(void)
{
	struct list_head *l, *next;

	for (l = parts.next; l != &parts; l = next) {
		struct part *part = container_of(l, struct part, node);

		next = l->next;
		free(part->text);
		free(part);
	}
	INIT_LIST_HEAD(&parts);
}

/* Splits the text into the devices' parts. NULL, or the error in line *@line. */
static const char *split_parts(char *text, size_t size, unsigned int *line)
{
	const char *from = NULL, *p = text, *next;
	unsigned int from_line = 0;

	if (strlen(text) != size)
		return "holds a NUL";
	for (*line = 1; (next = strchr(p, '\n')); p = next + 1, ++*line) {
		bool end = !strncmp(p, "end\n", 4), device = !strncmp(p, "device ", 7);

		if (*line == 1 && strncmp(p, HEADER "\n", sizeof(HEADER)))
			return "is not \"" HEADER "\"";
		if (*line == 2 && sscanf(p, "boot %39s", saved_boot) != 1)
			return "is not \"boot\" and a number";
		if (*line <= 2)
			continue;
		if (!end && !device && !from)
			return "is of no device";
		if ((end || device) && from && add_part(from, (size_t)(p - from), from_line)) {
			*line = from_line;
			return "is not \"device\" and a UUID";
		}
		if (end)
			return next[1] ? "is not the last" : NULL;
		if (device) {
			from = p;
			from_line = *line;
		}
	}
	return "\"end\" is missing: the file was cut short";
}

/* NULL: @*err; -EBADF: it is something else than a file of text */
static char *read_text(int fd, size_t *size, int *err)
{
	struct stat st;
	char *text;
	ssize_t n;

	*err = -EBADF;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > SIZE_MAX_FILE)
		return NULL;
	*err = -ENOMEM;
	text = malloc(st.st_size + 1);
	if (!text)
		return NULL;
	n = pread(fd, text, st.st_size, 0);
	if (n < 0) {
		*err = -EIO;
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*size = n;
	return text;
}

static int open_file(const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static int read_file(void)
{
	unsigned int line = 0;
	const char *wrong;
	size_t size = 0;
	char *text;
	int fd = open_file(FILE_NAME), err;

	/* ELOOP: a symbolic link, ENXIO: a socket */
	if (fd < 0)
		err = errno == ELOOP || errno == ENXIO ? -EBADF : -errno;
	text = fd < 0 ? NULL : read_text(fd, &size, &err);
	if (fd >= 0)
		close(fd);
	if (!text && err == -EBADF) {
		say(LOG_ERROR, "%s/" FILE_NAME ": is not a file, or larger than %u MiB: not used",
		    opt.state_dir, SIZE_MAX_FILE >> 20);
		keep_aside();
		return 0;
	}
	if (!text)
		return err == -ENOENT ? 0 : err;
	wrong = split_parts(text, size, &line);
	if (wrong) {
		drop_parts();
		report_line(line, wrong, "none of it is used");
	}
	free(text);
	return 0;
}

/* How new a file is */
struct age {
	struct timespec mtime;
	unsigned long long change;	/* 0: it is of a gschedd that did not write it */
	bool edited;
};

/* False: there is no such file. */
static bool read_age(const char *name, struct age *age)
{
	char text[sizeof(HEADER) + 128] = "";
	int fd = open_file(name);
	long long when = 0;
	struct stat st;
	bool there;

	if (fd < 0)
		return false;
	there = !fstat(fd, &st) && S_ISREG(st.st_mode) &&
		pread(fd, text, sizeof(text) - 1, 0) >= 0;
	close(fd);
	if (!there)
		return false;
	*age = (struct age){ .mtime = st.st_mtim };
	if (sscanf(text, HEADER "\nboot %*39s%*[ ]%20llu%*[ ]%20lld", &age->change, &when) == 2)
		age->edited = st.st_mtim.tv_sec != when || st.st_mtim.tv_nsec;
	else
		age->change = 0;
	if (age->change < UINT64_MAX / 2 && age->change > changes)
		changes = age->change;
	return true;
}

/* Whether it is at least as new as the other one; sets the number of the last change. */
static bool now_is_newer(void)
{
	struct age now, other;
	bool there = read_age(NOW_NAME, &now);

	if (!read_age(FILE_NAME, &other))
		return there;
	if (!there)
		return false;
	if (!now.change || !other.change)
		return now.mtime.tv_sec > other.mtime.tv_sec ||
		       (now.mtime.tv_sec == other.mtime.tv_sec &&
			now.mtime.tv_nsec >= other.mtime.tv_nsec);
	if (now.edited != other.edited)
		return now.edited;
	return now.change >= other.change;
}

/* False: there is none, or it is of an earlier life of the machine, or the other one is newer. */
static bool read_now(void)
{
	unsigned int line = 0;
	bool good = false;
	char *text;
	size_t size = 0;
	int fd, err;

	fd = now_is_newer() ? open_file(NOW_NAME) : -1;
	if (fd < 0)
		return false;
	text = read_text(fd, &size, &err);
	close(fd);
	if (text)
		good = !split_parts(text, size, &line) && !strcmp(boot, saved_boot);
	free(text);
	if (good)
		source = NOW_NAME;
	else
		drop_parts();
	return good;
}

/*
 * The groups decide who may use what, so no one else may write there. Others may be able to read
 * the directory, and so to lock it: what is locked is a file of ours.
 */
static int open_dir(void)
{
	const int flags = O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;
	int err = 0, tries = 50;

	if (mkdir(opt.state_dir, 0700) && errno != EEXIST)
		return -errno;
	dir_fd = open(opt.state_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || fstat(dir_fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & 022)
		err = -EACCES;
	if (!err)
		lock_fd = openat(dir_fd, LOCK_NAME, flags, 0600);
	if (lock_fd >= 0 && (fstat(lock_fd, &st) || !S_ISREG(st.st_mode))) {
		close(lock_fd);
		lock_fd = -1;
	}
	/* a full disk, one that is only read, or something of that name that is no file */
	if (!err && lock_fd < 0)
		lock_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && lock_fd < 0)
		err = -errno;
	/* a child of a killed gschedd may still hold the lock for a moment */
	while (!err && flock(lock_fd, LOCK_EX | LOCK_NB)) {
		if (!--tries)
			err = -EBUSY;
		usleep(100000);
	}
	return err;
}

int state_open(void)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	int err;

	if (!f || fscanf(f, "%39s", boot) != 1)
		strcpy(boot, "unknown");
	if (f)
		fclose(f);
	err = open_dir();
	if (err) {
		say(LOG_ERROR, "--state %s: %s", opt.state_dir,
		    err == -EACCES ?
		    "it must belong to gschedd's user, and nobody else may write to it" :
		    err == -EBUSY ? "another gschedd keeps its groups there" : strerror(-err));
		return err;
	}
	if (read_now())
		return 0;
	err = read_file();
	if (err)
		say(LOG_ERROR, "%s/" FILE_NAME ": %s", opt.state_dir, strerror(-err));
	return err;
}

void state_close(void)
{
	drop_parts();
	if (dir_fd >= 0)
		close(dir_fd);
	if (lock_fd >= 0)
		close(lock_fd);
	dir_fd = lock_fd = -1;
}
