// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A client is a connection that has attached to a device. Its pages are sealed memfds, whose size
 * cannot change.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "gschedd.h"

static uint64_t last_id;

static int page_create(const char *name, size_t size, void **map)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	*map = NULL;
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, size))
		goto fail;
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map == MAP_FAILED)
		goto fail;
	return fd;
fail:
	err = errno;
	close(fd);
	*map = NULL;
	return -err;
}

/*
 * Opens the arbiter's page for the client: a read-only descriptor. The file is sealed, so no later
 * mapping of it can be writable, however the client opens it again.
 */
static int read_only(int fd)
{
	char path[64];
	int ro;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

static void client_free(struct client *c)
{
	if (c->arb)
		munmap(c->arb, sizeof(*c->arb));
	if (c->cl)
		munmap(c->cl, sizeof(*c->cl));
	for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++)
		free(c->core.task[slot]);
	free(c);
}

int client_attach(struct conn *conn, struct gsched_attach *req, int *fds)
{
	struct device *dev;
	struct group *group;
	struct client *c;
	int arb_fd, cl_fd, ro_fd, err;
	void *map;

	if (conn->client)
		return -EBUSY;
	list_for_each_entry(dev, &devices, node)
		if (!memcmp(dev->decl.uuid, req->uuid, GSCHED_UUID_SIZE))
			goto found;
	return -ENOENT;
found:
	group = group_of_pid(dev, conn->pid);
	/* or a connection that its process leaves to others would be in no group, or a stranger's */
	err = peer_gone(conn->src.fd, conn->pid);
	if (err)
		return err;
	err = gsc_group_room(group->core, conn->uid, conn->admin, dev->clients_max);
	if (err) {
		static uint64_t said;

		if (err == -EDQUOT && may_say(&said))
			say(LOG_WARN, "%s: uid %u has its share of clients, half of what others "
			    "leave of %u: no more", dev->decl.name, (unsigned int)conn->uid,
			    dev->clients_max);
		return err;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	arb_fd = page_create("gsched-arbiter", sizeof(*c->arb), &map);
	c->arb = map;
	if (!map) {
		err = arb_fd;
		goto free_client;
	}
	ro_fd = read_only(arb_fd);
	close(arb_fd);
	if (ro_fd < 0) {
		err = ro_fd;
		goto free_client;
	}
	cl_fd = page_create("gsched-client", sizeof(*c->cl), &map);
	c->cl = map;
	if (!map) {
		err = cl_fd;
		goto close_arb;
	}
	if (fcntl(cl_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		goto close_cl;
	}

	c->conn = conn;
	c->dev = dev;
	c->group = group;
	c->id = ++last_id;
	c->core.arb_page = c->arb;
	c->core.cl_page = c->cl;
	c->core.pid = (uint32_t)conn->pid;
	c->core.user = conn->uid;
	err = gsc_client_attach(&c->core, c->group->core, req->flags, req->channel_group, now_ns());
	if (err)
		goto close_cl;
	/* no event is sent for this band: the caller reads the page once it has mapped it */
	gsc_commit(&dev->core, now_ns());
	conn->client = c;
	monitor_client(c, "client-add");
	device_settle(dev);

	req->client_id = c->id;
	req->arb_offset = 0;
	req->arb_size = sizeof(*c->arb);
	req->cl_offset = 0;
	req->cl_size = sizeof(*c->cl);
	req->sms = dev->core.sms;
	req->mode = dev->core.mode;
	req->priority = c->group->core->priority;
	fds[0] = ro_fd;
	fds[1] = cl_fd;
	say(LOG_DEBUG, "client %llu: pid %d on %s in group \"%s\"", (unsigned long long)c->id,
	    (int)conn->pid, dev->decl.name, c->group->path);
	return 0;

close_cl:
	close(cl_fd);
close_arb:
	close(ro_fd);
free_client:
	client_free(c);
	return err;
}

void client_detach(struct client *c)
{
	struct device *dev = c->dev;

	say(LOG_DEBUG, "client %llu: pid %d left %s", (unsigned long long)c->id, (int)c->conn->pid,
	    dev->decl.name);
	/*
	 * A client that was detached and now has no arbiter may use the whole device; a dead
	 * process uses nothing.
	 */
	if (c->conn->gone)
		gsc_client_expel(&c->core, now_ns());
	else
		gsc_client_detach(&c->core, now_ns());
	monitor_client(c, "client-delete");
	c->conn->band_due = false;
	c->conn->client = NULL;
	client_free(c);
	device_settle(dev);
}

void client_regroup(struct client *c)
{
	struct group *group = group_of_pid(c->dev, c->conn->pid);

	/* a client that outlives its process stays where it was */
	if (group == c->group || peer_gone(c->conn->src.fd, c->conn->pid))
		return;
	c->group = group;
	gsc_client_move(&c->core, group->core, now_ns());
}

/* The next client of the process after @after; NULL: none. */
static struct client *client_of_pid(struct device *dev, pid_t pid, const struct client *after)
{
	bool found = !after;
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node) {
		struct client *c = container_of(core, struct client, core);

		if (found && c->conn->pid == pid)
			return c;
		found |= c == after;
	}
	return NULL;
}

static int client_file(const char *file)
{
	int f = gsc_file_find(file);

	return f >= 0 && gsc_client_has(f) ? f : -ENOENT;
}

/* A user who is not an administrator may only lower values of own processes, as with nice. */
int clients_set(struct device *dev, pid_t pid, const char *file, const char *value,
		const struct conn *by)
{
	struct client *c = client_of_pid(dev, pid, NULL);
	int f = client_file(file), err = 0;

	if (!c)
		return -ESRCH;
	if (!by->admin && c->conn->uid != by->uid)
		return -EPERM;
	if (f < 0)
		return f;
	for (; c && !err; c = client_of_pid(dev, pid, c))
		err = gsc_client_store(&c->core, f, value, by->admin, now_ns());
	device_settle(dev);
	return err;
}

int clients_get(struct device *dev, pid_t pid, const char *file, char *buf, size_t size,
		const struct conn *by)
{
	struct client *c = client_of_pid(dev, pid, NULL);
	int f = client_file(file);

	if (!c)
		return -ESRCH;
	if (!status_shows(by, c->conn->uid))
		return -EPERM;
	if (f < 0)
		return f;
	return gsc_client_show(&c->core, f, buf, size) < 0 ? -EIO : 0;
}
