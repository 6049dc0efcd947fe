// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Groups of a device: a tree by path; their files (those of the core, and procs, cgroup, owner);
 * which group a process belongs to.
 *
 * Administrators (peer.c) may do everything. A group's owner, or an owner of an ancestor, may bind
 * own processes to it and nothing else: a quota that its subjects can change is worthless. As in
 * cgroup v2, a process may only be moved within a common ancestor of the same owner; kmod/bind.c
 * has the same rule.
 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "gschedd.h"

#define GROUPS_MAX	1024	/* per device */
#define PROCS_MAX	4096	/* per group: each has a descriptor */
#define NAME_LEN	63
#define ANCESTORS_MAX	256

bool group_owned(const struct group *group, uid_t uid)
{
	for (; group->parent; group = group->parent)
		if (group->owner == uid)
			return true;
	return false;
}

struct group *group_find(struct device *dev, const char *path)
{
	struct group *g;

	if (!*path)
		return &dev->root;
	list_for_each_entry(g, &dev->groups, node)
		if (!strcmp(g->path, path))
			return g;
	return NULL;
}

static bool path_valid(const char *path)
{
	while (1) {
		size_t len = strcspn(path, "/");

		if (!len || len > NAME_LEN || path[0] == '.')
			return false;
		for (size_t i = 0; i < len; i++)
			if (!isalnum((unsigned char)path[i]) && !strchr("_-.", path[i]))
				return false;
		if (len < NAME_LEN) {
			char name[NAME_LEN + 1];

			/*
			 * files and subgroups share one namespace, since configfs shows both side
			 * by side
			 */
			memcpy(name, path, len);
			name[len] = '\0';
			if (gsc_file_find(name) >= 0 || !strcmp(name, "procs") ||
			    !strcmp(name, "cgroup") || !strcmp(name, "owner"))
				return false;
		}
		if (!path[len])
			return true;
		path += len + 1;
	}
}

int group_create(struct device *dev, const char *path, uid_t owner)
{
	struct group *g, *parent = &dev->root;
	char *slash;
	int err;

	if (!path_valid(path))
		return -EINVAL;
	if (group_find(dev, path))
		return -EEXIST;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the callers have checked dev */
	if (dev->n_groups >= GROUPS_MAX)
		return -ENOSPC;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->path = strdup(path);
	if (!g->path) {
		err = -ENOMEM;
		goto free_group;
	}
	slash = strrchr(g->path, '/');
	if (slash) {
		*slash = '\0';
		parent = group_find(dev, g->path);
		*slash = '/';
		if (!parent) {
			err = -ENOENT;
			goto free_path;
		}
	}
	g->core = &g->own;
	g->own.delays = &g->delays;
	err = gsc_group_init(g->core, parent->core);
	if (err)
		goto free_path;
	g->dev = dev;
	g->parent = parent;
	g->depth = parent->depth + 1;
	g->owner = owner;
	INIT_LIST_HEAD(&g->procs);
	list_add_tail(&g->node, &dev->groups);
	dev->n_groups++;
	monitor_group(g, "group-add");
	return 0;

free_path:
	free(g->path);
free_group:
	free(g);
	return err;
}

static void unbind_process(struct bound_pid *b)
{
	list_del_init(&b->node);
	b->group->n_procs--;
	loop_free(&b->src, b);
}

static void group_free(struct group *g)
{
	struct bound_pid *b, *next;

	monitor_group(g, "group-delete");
	list_for_each_entry_safe(b, next, &g->procs, node)
		unbind_process(b);
	free(g->cgroup);
	list_del_init(&g->node);
	g->dev->n_groups--;
	free(g->path);
	free(g);
}

/* One that has ended stays bound until its descriptor's turn in the event loop. */
static bool has_processes(const struct group *g)
{
	struct bound_pid *b;

	list_for_each_entry(b, &g->procs, node) {
		struct pollfd ended = { .fd = b->src.fd, .events = POLLIN };

		if (!poll(&ended, 1, 0))
			return true;
	}
	return false;
}

/* Its processes would go on without its limits. */
int group_delete(struct group *g)
{
	int err;

	if (!g->parent || has_processes(g))
		return -EBUSY;
	err = gsc_group_exit(g->core);
	if (!err)
		group_free(g);
	return err;
}

void groups_free(struct device *dev)
{
	while (!list_empty(&dev->groups)) {
		struct group *g = container_of(dev->groups.prev, struct group, node);

		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): freed groups are off the list */
		gsc_group_exit(g->core);
		group_free(g);
	}
}

static bool in_cgroup(const char *path, const char *top)
{
	size_t len = strlen(top);

	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

static struct group *bound_to(struct device *dev, pid_t pid, uint64_t start)
{
	struct bound_pid *b;
	struct group *g;

	list_for_each_entry(g, &dev->groups, node)
		list_for_each_entry(b, &g->procs, node)
			if (b->pid == pid && b->start == start)
				return g;
	return NULL;
}

/* The longest path wins */
static struct group *group_of_cgroup(struct device *dev, const char *cgroup)
{
	struct group *best = &dev->root, *g;

	list_for_each_entry(g, &dev->groups, node)
		if (g->cgroup && in_cgroup(cgroup, g->cgroup) &&
		    (!best->cgroup || strlen(g->cgroup) > strlen(best->cgroup)))
			best = g;
	return best;
}

/*
 * As in the module (kmod/bind.c): the group of the process or of its nearest bound ancestor, else
 * that of the leader of its session, while that lives: only its descendants are in it; else that of
 * its cgroup.
 */
struct group *group_of_pid(struct device *dev, pid_t pid)
{
	uint64_t child_start = UINT64_MAX;
	char cgroup[4096] = "";
	struct group *g = NULL;
	struct proc_stat st;
	pid_t session = 0;

	for (int hops = 0; pid > 0 && hops < ANCESTORS_MAX && !g; hops++) {
		/* a parent that started after its child is another process with a reused pid */
		if (proc_stat(pid, &st) || st.start > child_start)
			break;
		if (!hops && proc_cgroup(pid, cgroup, sizeof(cgroup)))
			cgroup[0] = '\0';
		if (!hops)
			session = st.session;
		g = bound_to(dev, pid, st.start);
		child_start = st.start;
		pid = st.ppid;
	}
	if (!g && session > 0 && !proc_stat(session, &st))
		g = bound_to(dev, session, st.start);
	return g ? g : group_of_cgroup(dev, cgroup);
}

static void regroup_all(struct device *dev)
{
	struct gsc_client *c, *next;

	list_for_each_entry_safe(c, next, &dev->core.clients, node)
		client_regroup(container_of(c, struct client, core));
	device_settle(dev);
}

/*
 * A bound process has ended. Its children keep the group that they attached with; a child that it
 * leaves behind is no longer bound through it.
 */
static void bound_ready(struct source *src, uint32_t events)
{
	unbind_process(container_of(src, struct bound_pid, src));
}

/* @start identifies the process, since the pid may have been reused. */
int group_rebind(struct group *group, pid_t pid, uint64_t start)
{
	struct device *dev = group->dev;
	struct bound_pid *b = NULL, *old = NULL, *i;
	struct proc_stat st;
	struct group *g;
	int err;

	list_for_each_entry(g, &dev->groups, node)
		list_for_each_entry(i, &g->procs, node)
			if (i->pid == pid)
				old = i;
	if (old && old->group == group && old->start == start)
		return 0;
	if (group->parent) {
		if (group->n_procs >= PROCS_MAX)
			return -ENOSPC;
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->pid = pid;
		b->group = group;
		b->src.ready = bound_ready;
		b->src.fd = syscall(SYS_pidfd_open, pid, 0);
		if (b->src.fd < 0) {
			/* EINVAL: a thread, not a process */
			err = errno == EINVAL ? -ESRCH : -errno;
			free(b);
			return err;
		}
		/*
		 * the descriptor's process is the one that @start identifies, or that one has ended
		 */
		b->start = start;
		err = proc_stat(pid, &st);
		if (!err && st.start != start)
			err = -ESRCH;
		if (!err)
			err = loop_add(&b->src, EPOLLIN);
		if (err) {
			close(b->src.fd);
			free(b);
			return err;
		}
		list_add_tail(&b->node, &group->procs);
		group->n_procs++;
	}
	if (old)
		unbind_process(old);
	regroup_all(dev);
	return 0;
}

static const struct group *common_ancestor(const struct group *a, const struct group *b)
{
	while (a != b) {
		if (a->depth >= b->depth)
			a = a->parent;
		else
			b = b->parent;
	}
	return a;
}

int group_bind(struct group *group, pid_t pid, const struct conn *by)
{
	struct proc_stat st;
	int err = proc_stat(pid, &st);

	if (err)
		return err;
	if (!by->admin) {
		struct group *now = group_of_pid(group->dev, pid);

		if (st.uid != by->uid || !group_owned(group, by->uid))
			return -EPERM;
		/* a process must not escape its quota: cgroup v2's rule of the common ancestor */
		if (now->parent && now != group &&
		    !group_owned(common_ancestor(now, group), by->uid))
			return -EACCES;
	}
	return group_rebind(group, pid, st.start);
}

static int set_cgroup(struct group *group, const char *value)
{
	static const char mount[] = "/sys/fs/cgroup";
	char *path = NULL;
	size_t len = strcspn(value, "\n");

	if (value[len] && value[len + 1])
		return -EINVAL;
	if (len) {
		if (len >= sizeof(mount) - 1 && !strncmp(value, mount, sizeof(mount) - 1) &&
		    (len == sizeof(mount) - 1 || value[sizeof(mount) - 1] == '/')) {
			value += sizeof(mount) - 1;
			len -= sizeof(mount) - 1;
		} else if (value[0] != '/') {
			return -EINVAL;
		}
		while (len && value[len - 1] == '/')
			len--;
		path = strndup(value, len);
		if (!path)
			return -ENOMEM;
		for (char *p = path; *p; p++)
			if ((p[0] == '/' && p[1] == '/') || (unsigned char)*p < 0x20 ||
			    (p[0] == '/' && p[1] == '.' && p[2] == '.' && (!p[3] || p[3] == '/'))) {
				free(path);
				return -EINVAL;
			}
		if (strlen(path) > 2048) {
			free(path);
			return -EINVAL;
		}
	}
	free(group->cgroup);
	group->cgroup = path;
	regroup_all(group->dev);
	return 0;
}

/* A decimal number that fits, optionally followed by a newline. */
static int parse_u32(const char *text, uint32_t *out)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end == '\n')
		end++;
	if (*end || errno || n >= UINT32_MAX)
		return -EINVAL;
	*out = n;
	return 0;
}

int group_set(struct group *group, const char *file, const char *value)
{
	uint32_t n;
	int f, err;

	if (!strcmp(file, "cgroup"))
		return group->parent ? set_cgroup(group, value) : -EINVAL;
	if (!strcmp(file, "owner")) {
		err = group->parent ? parse_u32(value, &n) : -EINVAL;
		if (!err)
			group->owner = n;
		return err;
	}
	f = gsc_file_find(file);
	if (f < 0)
		return f;
	if (!gsc_file_writable(f))
		return -EACCES;
	err = gsc_group_store(group->core, f, value, now_ns());
	device_settle(group->dev);
	return err;
}

int group_get(struct group *group, const char *file, char *buf, size_t size)
{
	struct bound_pid *b;
	size_t used = 0;
	int f;

	buf[0] = '\0';
	if (!strcmp(file, "procs")) {
		list_for_each_entry(b, &group->procs, node) {
			if (size - used < 16)
				return -EFBIG;
			used += snprintf(buf + used, size - used, "%d\n", (int)b->pid);
		}
		return 0;
	}
	if (!strcmp(file, "cgroup")) {
		if (group->cgroup)
			snprintf(buf, size, "%s\n", *group->cgroup ? group->cgroup : "/");
		return 0;
	}
	if (!strcmp(file, "owner")) {
		snprintf(buf, size, "%u\n", (unsigned int)group->owner);
		return 0;
	}
	f = gsc_file_find(file);
	if (f < 0)
		return f;
	gsc_tick(&group->dev->core, now_ns());	/* brings statistics up to date */
	device_settle(group->dev);
	gsc_device_count(&group->dev->core, now_ns());
	return gsc_group_show(group->core, f, buf, size) < 0 ? -EIO : 0;
}
