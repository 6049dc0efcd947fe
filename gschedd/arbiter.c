// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded arbiter: the core's devices and its actions, which here are messages.
 *
 * The core reads and writes the clients' pages. They are sealed against shrinking, so reading one
 * cannot fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "gschedd.h"

struct list_head devices = { &devices, &devices };
unsigned int n_devices;
/* the current call returns its grant, so no message */
static const struct gsc_task *submitting;

static struct client *client_of(const struct gsc_client *c)
{
	return container_of(c, struct client, core);
}

static struct device *device_of(const struct gsc_device *d)
{
	return container_of(d, struct device, core);
}

/* ---- the core's actions ---- */

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	static const char *const name[] = { [GSC_GRANT] = "grant", [GSC_EVICT] = "evict",
					    [GSC_GROW] = "grow" };
	static const uint32_t type[] = { [GSC_GRANT] = GSCHED_EVENT_GRANT,
					 [GSC_EVICT] = GSCHED_EVENT_EVICT,
					 [GSC_GROW] = GSCHED_EVENT_GROW };
	struct client *c = client_of(task->client);
	struct gsched_event ev = { .size = sizeof(ev), .type = type[why], .slot = task->slot,
				   .seq = task->seq, .window = task->window,
				   .time_ns = c->dev->core.now };

	trace_event(name[why], task, c->dev->core.now);
	monitor_task(task, name[why], c->dev->core.now);
	if (task == submitting)
		return;
	if (why == GSC_GRANT && c->conn->waiting & 1ull << task->slot)
		conn_answer(c->conn, task->slot, c->conn->gone ? ENODEV : 0);
	else
		conn_event(c->conn, task->slot, &ev);
}

static void op_arm_timer(struct gsc_device *core, u64 when)
{
	struct itimerspec its = {
		.it_value = { .tv_sec = when / 1000000000, .tv_nsec = when % 1000000000 },
	};

	timerfd_settime(device_of(core)->timer.fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void op_done(struct gsc_task *task)
{
	struct client *c = client_of(task->client);

	trace_event("done", task, c->dev->core.now);
	monitor_task(task, "done", c->dev->core.now);
	c->conn->events &= ~(1ull << task->slot);
	if (c->conn->waiting & 1ull << task->slot)
		conn_answer(c->conn, task->slot, c->conn->gone ? ENODEV : EINTR);
}

static void op_set_band(struct gsc_client *core, const struct gsc_arb *old)
{
	struct client *c = client_of(core);

	/* a new client's first values come with its attach reply */
	if (c->conn->client && (old->slice_us != core->arb.slice_us ||
				old->flags != core->arb.flags))
		monitor_band(c);
	conn_band(c->conn);
	nvml_watch();
}

static void op_policy_changed(struct gsc_device *core)
{
	const struct device *dev = container_of(core, struct device, core);
	char why[160];

	if (core->faulty) {
		gsc_policy_why(core, why, sizeof(why));
		say(LOG_ERROR, "%s: policy %s", dev->decl.name, why);
	}
	/* a device that is not yet in the list comes with its policy */
	if (dev->node.next)
		monitor_device(dev, "policy");
}

static struct gsc_task *op_new_task(struct gsc_client *client, u32 slot)
{
	return calloc(1, sizeof(struct gsc_task));
}

static const struct gsc_ops ops = {
	.new_task = op_new_task,
	.set_window = op_set_window,
	.arm_timer = op_arm_timer,
	.done = op_done,
	.set_band = op_set_band,
	.policy_changed = op_policy_changed,
};

/* After events of the core: commits one decision for all of them. */
void device_settle(struct device *dev)
{
	gsc_commit(&dev->core, now_ns());
#ifdef __SANITIZE_ADDRESS__	/* test builds */
	if (gsc_check(&dev->core)) {
		say(LOG_ERROR, "the core's invariant %d does not hold", gsc_check(&dev->core));
		abort();
	}
#endif
}

static void timer_ready(struct source *src, uint32_t events)
{
	struct device *dev = container_of(src, struct device, timer);
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n))
		return;
	gsc_tick(&dev->core, now_ns());
	device_settle(dev);
}

/* ---- calls ---- */

/* @launched: under LEASE_NOTIFY, in the window that the slot showed while it was empty. */
int client_submit(struct client *c, struct gsched_submit *req, bool launched)
{
	uint64_t now = now_ns(), before;
	const struct gsc_task *task;
	int err;

	if (req->slot >= GSCHED_SLOTS)
		return -EINVAL;
	before = c->arb->slot[req->slot].window;
	err = gsc_submit(&c->core, req, now);
	task = c->core.task[req->slot];
	submitting = err ? NULL : task;
	gsc_commit(&c->dev->core, now);
	submitting = NULL;
	if (err)
		return err;
	req->state = gsc_task_state(task);
	req->window = task->window;
	conn_window_sent(c->conn, req->slot, task->window);
	/* the client reads no reply: send an event if the window is not the one that it used */
	if (launched && req->window != before) {
		struct gsched_event ev = {
			.size = sizeof(ev),
			.type = req->state == GSCHED_STATE_QUEUED ? GSCHED_EVENT_EVICT :
								    GSCHED_EVENT_GRANT,
			.slot = req->slot, .seq = req->seq, .window = req->window, .time_ns = now,
		};

		conn_event(c->conn, req->slot, &ev);
	}
	return 0;
}

int client_complete(struct client *c, const struct gsched_complete *req)
{
	uint64_t now = now_ns();
	int err = gsc_complete(&c->core, req, now);

	gsc_commit(&c->dev->core, now);
	return err;
}

int client_report(struct client *c, struct gsched_report *req)
{
	int err = gsc_client_report(&c->core, req, now_ns());

	device_settle(c->dev);
	return err;
}

/* ---- devices ---- */

static bool name_valid(const char *name)
{
	if (!*name || strnlen(name, GSCHED_NAME_SIZE) == GSCHED_NAME_SIZE)
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static int timer_open(struct source *src, void (*ready)(struct source *, uint32_t))
{
	int err;

	src->ready = ready;
	src->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (src->fd < 0)
		return -errno;
	err = loop_add(src, EPOLLIN);
	if (err) {
		close(src->fd);
		src->fd = -1;
	}
	return err;
}

/* By the machine's memory and that of a client which has used all its slots. */
static u32 clients_default(void)
{
	uint64_t pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);

	return gsc_clients_default(pages * page_size,
				   sizeof(struct conn) + sizeof(struct client) +
				   sizeof(struct gsched_arb_page) + sizeof(struct gsched_cl_page) +
				   GSCHED_SLOTS * sizeof(struct gsc_task));
}

/* The next message may be one that a client waits for. */
static bool is_contended(void)
{
	struct device *dev;

	list_for_each_entry(dev, &devices, node)
		if (dev->core.n_clients > 1)
			return true;
	return false;
}

int device_add(const struct device_decl *decl)
{
	struct device *dev;
	int err;

	if (!name_valid(decl->name) || !decl->sms || decl->sms > GSCHED_SMS_MAX)
		return -EINVAL;
	list_for_each_entry(dev, &devices, node)
		if (!strcmp(dev->decl.name, decl->name) ||
		    !memcmp(dev->decl.uuid, decl->uuid, GSCHED_UUID_SIZE))
			return -EEXIST;
	if (n_devices >= DECLS_MAX)
		return -ENOSPC;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->decl = *decl;
	dev->clients_max = clients_default();
	err = timer_open(&dev->timer, timer_ready);
	if (err)
		goto free_dev;
	err = gsc_device_init(&dev->core, &ops, decl->sms);
	if (err)
		goto close_timer;
	INIT_LIST_HEAD(&dev->groups);
	INIT_LIST_HEAD(&dev->root.procs);
	dev->root.core = &dev->core.root;
	dev->root.dev = dev;
	dev->root.path = (char *)"";
	dev->core.seed = opt.seed;
	gsc_device_set_policy(&dev->core, opt.policy, now_ns());
	if (opt.mode >= 0)
		gsc_device_set_mode(&dev->core, opt.mode, now_ns());
	list_add_tail(&dev->node, &devices);
	if (!n_devices++)
		loop_poll_while(opt.poll_ns, is_contended);
	monitor_device(dev, "device-add");
	state_restore(dev);
	device_settle(dev);
	return 0;

close_timer:
	loop_del(&dev->timer);
free_dev:
	free(dev);
	return err;
}

static void device_free(struct device *dev)
{
	groups_free(dev);
	monitor_device(dev, "device-delete");
	list_del_init(&dev->node);
	n_devices--;
	loop_free(&dev->timer, dev);
}

/* Detaches all clients before the next commit, so that none gets the capacity of another. */
static void device_gone(struct device *dev)
{
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node)
		conn_gone(client_of(core)->conn);
	while (!list_empty(&dev->core.clients))
		client_detach(client_of(list_first_entry(&dev->core.clients,
							 struct gsc_client, node)));
}

void devices_gone(void)
{
	struct device *dev;

	list_for_each_entry(dev, &devices, node)
		device_gone(dev);
}

int device_del(const uint8_t *uuid, bool force)
{
	struct device *dev;

	list_for_each_entry(dev, &devices, node) {
		if (memcmp(dev->decl.uuid, uuid, GSCHED_UUID_SIZE))
			continue;
		if ((dev->core.n_clients && !force) || dev->n_groups)
			return -EBUSY;
		device_gone(dev);
		device_free(dev);
		return 0;
	}
	return -ENOENT;
}

struct device *device_find(const char *name)
{
	struct device *dev;

	list_for_each_entry(dev, &devices, node)
		if (!*name || !strcmp(dev->decl.name, name))
			return dev;
	return NULL;
}

static int parse_number(const char *text, unsigned int *to)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > UINT32_MAX)
		return -EINVAL;
	*to = n;
	return 0;
}

static int apply_param(struct device *dev, const char *file, const char *text)
{
	int err, mode;

	if (!strcmp(file, "policy")) {
		/* chaos only if the daemon was started with it */
		if (!strcmp(text, "chaos") && strcmp(opt.policy, "chaos"))
			return -EINVAL;
		err = gsc_device_set_policy(&dev->core, text, now_ns());
	} else if (!strcmp(file, "mode")) {
		if (!strcmp(text, "auto"))
			mode = -1;
		else if (!strcmp(text, "spatial"))
			mode = GSCHED_MODE_SPATIAL;
		else if (!strcmp(text, "temporal"))
			mode = GSCHED_MODE_TEMPORAL;
		else
			return -EINVAL;
		err = gsc_device_set_mode(&dev->core, mode, now_ns());
	} else if (gsc_param_find(file) >= 0) {
		err = gsc_device_set_param(&dev->core, gsc_param_find(file), text, now_ns());
	} else if (!strcmp(file, "clients_max")) {
		return parse_number(text, &dev->clients_max);
	} else {
		return -ENOENT;
	}
	device_settle(dev);
	return err;
}

/* A setting that is changed keeps its place in the list. */
static void note_setting(struct device *dev, const char *file, const char *text)
{
	struct device_setting *s = dev->setting;

	while (s < dev->setting + dev->n_settings && strcmp(s->file, file))
		s++;
	if (s == dev->setting + DEVICE_SETTINGS)
		return;
	if (s == dev->setting + dev->n_settings)
		dev->n_settings++;
	snprintf(s->file, sizeof(s->file), "%s", file);
	snprintf(s->value, sizeof(s->value), "%s", text);
}

static struct gsc_group *find_planned(void *arg, const char *path, size_t len)
{
	struct device *dev = arg;
	struct group *g;

	list_for_each_entry(g, &dev->groups, node)
		if (strlen(g->path) == len && !memcmp(g->path, path, len))
			return g->core;
	return len == 1 && *path == '/' ? dev->root.core : NULL;
}

/* A plan is not saved, because its planner does not survive a restart. */
static int device_plan(struct device *dev, const char *text)
{
	int err = gsc_device_plan(&dev->core, text, find_planned, dev, now_ns());

	device_settle(dev);
	/* ENOENT would mean that there is no such setting */
	return err == -ENOENT ? -ESRCH : err;
}

int device_set(struct device *dev, const char *file, const char *value)
{
	char text[sizeof(dev->setting[0].value)];
	size_t len = strcspn(value, "\n");
	int err;

	if (!strcmp(file, "plan"))
		return device_plan(dev, value);
	if ((value[len] && value[len + 1]) || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, value, len);
	text[len] = '\0';
	err = apply_param(dev, file, text);
	if (!err)
		note_setting(dev, file, text);
	return err;
}

void devices_free(void)
{
	while (!list_empty(&devices))
		device_free(container_of(devices.next, struct device, node));
}
