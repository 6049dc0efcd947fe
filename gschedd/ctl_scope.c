// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl run: keeps what a program starts in its group, even after a double fork.
 *
 * Children inherit a binding by pid only while the chain of their parents is intact, but a cgroup
 * lasts. So systemd is asked for a scope, and the group is bound to the slice that contains the
 * scopes of all its programs, since a group has one cgroup. Nested groups are nested slices, which
 * is what "-" in a slice's name means.
 *
 * Where no systemd can be reached, as in a container, the program goes into a cgroup below the one
 * that it is in, gsched-GROUP: what limits its old cgroup limits the new one as well.
 *
 * libsystemd is optional. Its declarations here follow sd-bus(3).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ctl_files.h"
#include "ctl_scope.h"
#include "proc.h"

#define PATIENCE_US	5000000
#define NAP_US		2000
#define UNIT_MAX	256
#define SYSTEMD		"org.freedesktop.systemd1"

struct bus_error {
	const char *name, *message;
	int need_free;
};

typedef int reply_fn(void *message, void *data, struct bus_error *error);

/* SYMBOL(result, name, parameters): the functions of libsystemd that are used */
#define SD_BUS(SYMBOL) \
	SYMBOL(int, sd_bus_open_system, (void **bus)) \
	SYMBOL(int, sd_bus_open_user, (void **bus)) \
	SYMBOL(int, sd_bus_message_new_method_call, (void *bus, void **message, \
	       const char *destination, const char *path, const char *interface, \
	       const char *member)) \
	SYMBOL(int, sd_bus_message_append, (void *message, const char *types, ...)) \
	SYMBOL(const struct bus_error *, sd_bus_message_get_error, (void *message)) \
	SYMBOL(int, sd_bus_call_async, (void *bus, void **slot, void *message, reply_fn *reply, \
	       void *data, uint64_t us)) \
	SYMBOL(int, sd_bus_process, (void *bus, void **message)) \
	SYMBOL(int, sd_bus_wait, (void *bus, uint64_t us)) \
	SYMBOL(void *, sd_bus_message_unref, (void *message)) \
	SYMBOL(void, sd_bus_close, (void *bus)) \
	SYMBOL(void *, sd_bus_unref, (void *bus))

struct sd_bus {
#define MEMBER(result, name, parameters) result (*name) parameters;
	SD_BUS(MEMBER)
#undef MEMBER
};

struct request {
	const char *group;
	char slice[UNIT_MAX], scope[UNIT_MAX], cgroup[UNIT_MAX];
	struct sd_bus sd;
	void *bus;
	bool answered;
	bool unreachable;		/* there is no systemd to ask */
	char why[256];			/* why it was not done */
};

static void __attribute__((format(printf, 2, 3)))
set_reason(struct request *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Like systemd-escape(1), as far as names of groups need it. -1: too long. */
static int escape_name(const char *group, char *buf, size_t size)
{
	size_t used = 0;

	for (; *group && used + 5 <= size; group++) {
		if (*group == '-')
			used += (size_t)sprintf(buf + used, "\\x2d");
		else
			buf[used++] = *group == '/' ? '-' : *group;
	}
	buf[used] = '\0';
	return *group ? -1 : 0;
}

static bool name_units(struct request *r)
{
	char name[UNIT_MAX - 40];

	if (escape_name(r->group, name, sizeof(name))) {
		set_reason(r, "its name is too long");
		return false;
	}
	snprintf(r->slice, sizeof(r->slice), "gsched-%s.slice", name);
	snprintf(r->scope, sizeof(r->scope), "gsched-%s-%d.scope", name, (int)getpid());
	snprintf(r->cgroup, sizeof(r->cgroup), "gsched-%s", name);
	return true;
}

static const char *last_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool ctl_scope_made(const char *group, const char *path)
{
	struct request r = { .group = group };

	return name_units(&r) &&
	       (!strcmp(last_of(path), r.slice) || !strcmp(last_of(path), r.cgroup));
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

/* The group's cgroup on a device; "": none, or the file does not exist. */
static void bound_to(struct gsched *g, const char *device, const char *group, char *path,
		     size_t size)
{
	if (gsched_group_get(g, device, group, "cgroup", path, size))
		*path = '\0';
	path[strcspn(path, "\n")] = '\0';
}

/*
 * Processes of a service, a batch system or a container are not moved: limits and accounting depend
 * on their cgroups. Neither are those of a group that the user has bound to another cgroup.
 */
static bool may_move(struct request *r, struct gsched *g, const struct ctl_devices *devices)
{
	char path[CTL_VALUE_MAX];

	if (proc_cgroup(getpid(), path, sizeof(path))) {
		set_reason(r, "there are no cgroups of version 2");
		return false;
	}
	if (strcmp(path, "/") && !ends_with(path, ".scope")) {
		set_reason(r, "%s is no scope: whoever made it wants the program there", path);
		return false;
	}
	for (unsigned int i = 0; i < devices->n; i++) {
		bound_to(g, devices->name[i], r->group, path, sizeof(path));
		if (*path && strcmp(last_of(path), r->slice)) {
			set_reason(r, "the group is bound to cgroup %s", path);
			return false;
		}
	}
	return true;
}

static bool load_libsystemd(struct request *r)
{
	void *lib = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		set_reason(r, "there is no libsystemd");
		r->unreachable = true;
		return false;
	}
#define LOAD(result, name, parameters) \
	*(void **)&r->sd.name = dlsym(lib, #name); \
	if (!r->sd.name) { \
		set_reason(r, "libsystemd has no " #name); \
		return false; \
	}
	SD_BUS(LOAD)
#undef LOAD
	return true;
}

static int on_reply(void *message, void *data, struct bus_error *error)
{
	struct request *r = data;
	const struct bus_error *e = r->sd.sd_bus_message_get_error(message);

	r->answered = true;
	if (e)
		set_reason(r, "systemd: %s", e->message ? e->message : e->name);
	return 0;
}

static bool connect_bus(struct request *r)
{
	int rc;

	if (!load_libsystemd(r))
		return false;
	rc = geteuid() ? r->sd.sd_bus_open_user(&r->bus) : r->sd.sd_bus_open_system(&r->bus);
	if (rc < 0) {
		set_reason(r, "systemd's bus: %s", strerror(-rc));
		r->unreachable = true;
	}
	return rc >= 0;
}

static void close_bus(struct request *r)
{
	if (!r->bus)
		return;
	r->sd.sd_bus_close(r->bus);
	r->sd.sd_bus_unref(r->bus);
}

static int send_request(struct request *r)
{
	char text[UNIT_MAX + 64];
	void *message = NULL;
	int rc;

	snprintf(text, sizeof(text), "CUDA program of gsched's group %s", r->group);
	rc = r->sd.sd_bus_message_new_method_call(r->bus, &message, SYSTEMD,
						  "/org/freedesktop/systemd1", SYSTEMD ".Manager",
						  "StartTransientUnit");
	if (rc >= 0)
		/* process 0 is the caller, whatever its pid is in systemd's namespace */
		rc = r->sd.sd_bus_message_append(message, "ssa(sv)a(sa(sv))", r->scope, "fail", 4,
						 "Description", "s", text, "Slice", "s", r->slice,
						 "CollectMode", "s", "inactive-or-failed",
						 "PIDs", "au", 1, (uint32_t)0, 0);
	if (rc >= 0)
		rc = r->sd.sd_bus_call_async(r->bus, NULL, message, on_reply, r,
					     PATIENCE_US);
	r->sd.sd_bus_message_unref(message);
	return rc;
}

/* Each step waits until @until at most: connecting ends in the first one. */
static bool start_scope(struct request *r, uint64_t until)
{
	int rc = send_request(r);
	uint64_t now;

	while (rc >= 0 && !r->answered && (now = now_us()) < until) {
		rc = r->sd.sd_bus_process(r->bus, NULL);
		if (!rc)
			rc = r->sd.sd_bus_wait(r->bus, until - now);
	}
	if (rc < 0 && !r->answered)
		set_reason(r, "systemd's bus: %s", strerror(-rc));
	else if (!r->answered)
		set_reason(r, "systemd does not answer");
	return !*r->why;
}

/*
 * Waits for the job that moves the process, which ends after the call. @path: the slice's cgroup.
 */
static bool await_move(struct request *r, uint64_t until, char *path, size_t size)
{
	while (proc_cgroup(getpid(), path, size) || strcmp(last_of(path), r->scope)) {
		if (now_us() >= until) {
			set_reason(r, "systemd did not move it");
			return false;
		}
		usleep(NAP_US);
	}
	*strrchr(path, '/') = '\0';
	return true;
}

/*
 * Always writes the file, even if it has the value: the module lets go of a cgroup of that path
 * that was removed.
 */
static void bind_slice(struct request *r, struct gsched *g, const struct ctl_devices *devices,
		       const char *path)
{
	char bound[CTL_VALUE_MAX];

	for (unsigned int i = 0; i < devices->n; i++) {
		bound_to(g, devices->name[i], r->group, bound, sizeof(bound));
		if (*bound && strcmp(bound, path))
			set_reason(r, "it is bound to %s", bound);
		else if (gsched_group_set(g, devices->name[i], r->group, "cgroup", path))
			set_reason(r, "%s: %s", path, strerror(errno));
	}
}

/*
 * The directory of cgroup @path of version 2, which may be seen through a mount of a part of the
 * hierarchy. Mounts have the form "ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS ... - TYPE ...".
 */
static bool find_directory(const char *path, char *dir, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *root, *point;
	size_t room = 0, len;
	bool found = false;

	while (mounts && !found && getline(&line, &room, mounts) > 0) {
		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*s %*s %*s %ms %ms", &root, &point) != 2)
			continue;
		len = strcmp(root, "/") ? strlen(root) : 0;
		if (!strncmp(path, root, len) && (path[len] == '/' || !path[len]))
			found = snprintf(dir, size, "%s%s", point, path + len) < (int)size;
		free(root);
		free(point);
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

static bool move_into(const char *dir)
{
	char file[PATH_MAX];
	bool moved = false;
	int fd;

	if (snprintf(file, sizeof(file), "%s/cgroup.procs", dir) >= (int)sizeof(file))
		return false;
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		moved = write(fd, "0", 1) == 1;
		close(fd);
	}
	return moved;
}

/*
 * Bound first, then moved: so that the program is never in a cgroup of the name that is not the
 * group's. Called again from within, it is there already. @path: the cgroup.
 */
static bool enter_cgroup(struct request *r, struct gsched *g, const struct ctl_devices *devices,
			 char *path, size_t size)
{
	char bound[CTL_VALUE_MAX], dir[PATH_MAX];
	size_t len;
	bool made;

	*r->why = '\0';
	if (proc_cgroup(getpid(), path, size)) {
		set_reason(r, "there are no cgroups of version 2");
		return false;
	}
	len = strcmp(path, "/") ? strlen(path) : 0;
	if (strcmp(last_of(path), r->cgroup))
		snprintf(path + len, size - len, "/%s", r->cgroup);
	if (!find_directory(path, dir, sizeof(dir))) {
		set_reason(r, "cgroup %s is not mounted", path);
		return false;
	}
	for (unsigned int i = 0; i < devices->n; i++) {
		bound_to(g, devices->name[i], r->group, bound, sizeof(bound));
		if (*bound && strcmp(bound, path)) {
			set_reason(r, "the group is bound to cgroup %s", bound);
			return false;
		}
	}
	made = !mkdir(dir, 0755);
	if (!made && errno != EEXIST) {
		set_reason(r, "%s: %s", dir, strerror(errno));
		return false;
	}
	bind_slice(r, g, devices, path);
	if (!*r->why && !move_into(dir))
		set_reason(r, "%s: %s", dir, strerror(errno));
	if (*r->why && made) {
		for (unsigned int i = 0; i < devices->n; i++)
			gsched_group_set(g, devices->name[i], r->group, "cgroup", "");
		rmdir(dir);
	}
	return !*r->why;
}

void ctl_scope(struct gsched *g, const struct ctl_devices *devices, const char *group, bool verbose)
{
	struct request r = { .group = group };
	uint64_t until = now_us() + PATIENCE_US;
	char path[CTL_VALUE_MAX];

	if (name_units(&r) && connect_bus(&r) && may_move(&r, g, devices) &&
	    start_scope(&r, until) && await_move(&r, until, path, sizeof(path))) {
		bind_slice(&r, g, devices, path);
		if (verbose && *r.why)
			ctl_error("group %s: in %s/%s, which is not the group's cgroup: %s", group,
				  path, r.scope, r.why);
		else if (verbose)
			ctl_error("group %s: in %s/%s", group, path, r.scope);
	} else if (r.unreachable && enter_cgroup(&r, g, devices, path, sizeof(path))) {
		if (verbose)
			ctl_error("group %s: in %s", group, path);
	} else if (verbose) {
		ctl_error("group %s: no %s of its own: %s", group,
			  r.unreachable ? "cgroup" : "scope", r.why);
	}
	close_bus(&r);
}
