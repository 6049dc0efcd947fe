// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded arbiter: the core's devices and its actions, which here are stores to pages and
 * messages.
 *
 * A client's page is written by the client and its GPU at any time. Every word is read once, and
 * its value is bounded by the core or here. The page is sealed against shrinking, so reading it
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

#define WATCH_NS	1000000
#define CLIENTS_MAX	256	/* as in the module: changes of bands visit each client */
/*
 * In a slot, the words that were stored before a seq must be read after it, also by processors that
 * reorder loads.
 */
#define load(p)		__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)

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

static void set_timer(struct source *timer, uint64_t when, uint64_t interval)
{
	struct itimerspec its = {
		.it_value = { .tv_sec = when / 1000000000, .tv_nsec = when % 1000000000 },
		.it_interval = { .tv_nsec = interval },
	};

	timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static void page_window(struct client *c, unsigned int slot, uint64_t window)
{
	struct gsched_arb_slot *s = &c->arb->slot[slot];

	if (s->window == window)
		return;
	store(&s->window, window);
	store(&s->generation, s->generation + 1);
}

/* The window of launches under a lease: all that the group and its ancestors allow. */
static uint64_t leased_window(const struct client *c)
{
	uint32_t limit = c->dev->core.sms * GSCHED_CAPSM;

	if (c->arb->header.lease == GSCHED_LEASE_NONE)
		return 0;
	for (const struct gsc_group *g = c->core.group; g; g = g->parent)
		if (g->max < limit)
			limit = g->max;
	return GSCHED_WINDOW(0, limit);
}

static void page_leased(struct client *c)
{
	for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++)
		if (c->core.task[slot].state == GSC_TASK_NONE)
			page_window(c, slot, leased_window(c));
}

/* ---- the core's actions ---- */

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	static const char *const name[] = { [GSC_GRANT] = "grant", [GSC_EVICT] = "evict", [GSC_GROW] = "grow" };
	static const uint32_t type[] = { [GSC_GRANT] = GSCHED_EVENT_GRANT, [GSC_EVICT] = GSCHED_EVENT_EVICT,
					 [GSC_GROW] = GSCHED_EVENT_GROW };
	struct client *c = client_of(task->client);
	struct gsched_event ev = { .type = type[why], .slot = task->slot, .seq = task->seq, .window = task->window,
				   .time_ns = c->dev->core.now };

	page_window(c, task->slot, task->window);
	trace_event(name[why], task, c->dev->core.now);
	monitor_task(task, name[why], c->dev->core.now);
	if (task == submitting)
		return;
	if (why == GSC_GRANT && c->conn->waiting & 1ull << task->slot)
		conn_answer(c->conn, task->slot, c->conn->gone ? ENODEV : 0);
	else
		conn_event(c->conn, task->slot, &ev);
}

/* Also called when only other fields of the header have changed. */
static void op_set_lease(struct gsc_client *core, u32 lease)
{
	struct client *c = client_of(core);
	struct gsched_arb_header *h = &c->arb->header;
	uint32_t old = h->lease;

	store(&h->contended, core->contended);
	store(&h->mode, c->dev->core.mode);
	store(&h->priority, core->group->priority);
	store(&h->top_priority, c->dev->core.top_priority);
	if (lease == old)
		return;
	__atomic_store_n(&h->lease, lease, __ATOMIC_SEQ_CST);
	/* launches under the old lease keep their window until the core has accounted for them */
	if (old == GSCHED_LEASE_FREE)
		c->scan_page = true;
	else
		page_leased(c);
}

static void op_arm_timer(struct gsc_device *core, u64 when)
{
	set_timer(&device_of(core)->timer, when, 0);
}

void adopted_forget(struct device *dev)
{
	if (!--dev->n_adopted)
		set_timer(&dev->watch, 0, 0);
}

static void op_done(struct gsc_task *task)
{
	struct client *c = client_of(task->client);

	if (c->adopted & 1ull << task->slot) {
		c->adopted &= ~(1ull << task->slot);
		adopted_forget(c->dev);
	}
	trace_event("done", task, c->dev->core.now);
	monitor_task(task, "done", c->dev->core.now);
	page_window(c, task->slot, leased_window(c));
	c->conn->events &= ~(1ull << task->slot);
	if (c->conn->waiting & 1ull << task->slot)
		conn_answer(c->conn, task->slot, c->conn->gone ? ENODEV : EINTR);
}

static void op_set_band(struct gsc_client *core)
{
	struct client *c = client_of(core);
	struct gsched_arb_header *h = &c->arb->header;

	/* a new client's first values come with its attach reply */
	if (c->conn->client && (h->slice_us != core->arb.slice_us || h->flags != core->arb.flags))
		monitor_band(c);
	store(&h->slice_us, core->arb.slice_us);
	store(&h->bands, core->arb.bands);
	store(&h->share, core->arb.share);
	store(&h->in_flight_us, core->arb.in_flight_us);
	store(&h->flags, core->arb.flags);
	conn_band(c->conn);
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

static const struct gsc_ops ops = {
	.set_window = op_set_window,
	.set_lease = op_set_lease,
	.arm_timer = op_arm_timer,
	.done = op_done,
	.set_band = op_set_band,
	.policy_changed = op_policy_changed,
};

/* ---- launches made under a lease ---- */

static bool slot_over(const struct gsched_cl_slot *s, uint32_t seq)
{
	return load(&s->seq) != seq || load(&s->retired) == seq || load(&s->finished) == seq;
}

/*
 * The page does not tell how many blocks an SM hosts. It follows from the number of workers
 * launched for the window of the whole device, unless the grid was smaller than that.
 */
static uint32_t guess_blocks_per_sm(const struct client *c, uint32_t launched)
{
	uint32_t m = (launched + c->dev->core.sms - 1) / c->dev->core.sms;

	return m < 1 ? 1 : m > 32 ? 32 : m;
}

static void adopt_from_page(struct client *c, unsigned int slot, uint64_t now)
{
	const struct gsched_cl_slot *s = &c->cl->slot[slot];
	struct gsched_submit req = { .size = sizeof(req), .flags = GSCHED_SUBMIT_NOWAIT, .slot = slot };

	if (c->core.task[slot].state != GSC_TASK_NONE)
		return;
	req.seq = load(&s->seq);
	/* known: it was submitted or adopted before, and has ended by now */
	if (!req.seq || req.seq == c->last_seq[slot] || slot_over(s, req.seq))
		return;
	req.tier = load(&s->tier);
	req.blocks = load(&s->blocks);
	req.predicted_ns = load(&s->predicted_ns);
	req.blocks_per_sm = guess_blocks_per_sm(c, load(&s->launched));
	if (req.tier > GSCHED_TIER_LAUNCH)
		req.tier = GSCHED_TIER_LAUNCH;
	if (!req.blocks)
		req.blocks = 1;
	if (gsc_adopt(&c->core, &req, now))
		return;
	c->last_seq[slot] = req.seq;
	c->adopted |= 1ull << slot;
	if (!c->dev->n_adopted++)
		set_timer(&c->dev->watch, now + WATCH_NS, WATCH_NS);
}

/* Evicts launches under a lease that now have to wait. */
static void empty_waiting(struct client *c)
{
	for (uint64_t left = c->adopted; left; left &= left - 1) {
		unsigned int slot = __builtin_ctzll(left);
		const struct gsc_task *task = &c->core.task[slot];
		struct gsched_event ev = {
			.type = GSCHED_EVENT_EVICT, .slot = slot, .seq = task->seq,
			.time_ns = c->dev->core.now,
		};

		if (!gsc_answer(task) || !c->arb->slot[slot].window)
			continue;
		page_window(c, slot, 0);
		conn_event(c->conn, slot, &ev);
	}
}

static void complete_by_page(struct client *c, unsigned int slot, uint64_t now)
{
	const struct gsched_cl_slot *s = &c->cl->slot[slot];
	const struct gsc_task *task = &c->core.task[slot];
	struct gsched_complete req = { .size = sizeof(req), .slot = slot, .seq = task->seq };
	uint64_t start, end;

	start = load(&s->start_ns);
	end = load(&s->end_ns);
	if (load(&s->seq) == task->seq && end > start)
		req.ran_ns = end - start;
	gsc_complete(&c->core, &req, now);
}

static void complete_leased(struct client *c, unsigned int slot, uint64_t now)
{
	if (c->adopted & 1ull << slot && slot_over(&c->cl->slot[slot], c->core.task[slot].seq))
		complete_by_page(c, slot, now);
}

/*
 * Completes tasks that have ended according to the page, but were not completed by the client: its
 * agent hangs, or its COMPLETE is in flight and will find nothing. Called by the core's timer, so
 * that no other task waits for one that has ended.
 */
static void complete_ended(struct device *dev, uint64_t now)
{
	struct gsc_task *task, *next;
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node)
		list_for_each_entry_safe(task, next, &core->tasks, peer)
			if (gsc_is_old(task, now) &&
			    load(&client_of(core)->cl->slot[task->slot].retired) == task->seq)
				complete_by_page(client_of(core), task->slot, now);
}

void client_count_leased(struct client *c)
{
	const struct gsched_cl_header *h = &c->cl->header;
	const struct gsc_leased says = {
		.tasks = load(&h->leased_tasks) + load(&h->passed), .ns = load(&h->leased_ns), .usage = load(&h->leased_usage),
		.paced_ns = load(&h->paced_ns),
	};

	gsc_client_leased(&c->core, &says, now_ns());
}

void count_leased(struct device *dev)
{
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node)
		client_count_leased(client_of(core));
}

/*
 * After events of the core: commits one decision for all of them. Then adopts launches of clients
 * whose lease it withdrew, decides for those, and so on. After a change of quotas, it updates the
 * windows of empty slots.
 */
void device_settle(struct device *dev)
{
	struct gsc_client *core;
	bool again;

	gsc_commit(&dev->core, now_ns());
	do {
		again = false;
		list_for_each_entry(core, &dev->core.clients, node) {
			struct client *c = client_of(core);

			if (!c->scan_page)
				continue;
			c->scan_page = false;
			again = true;
			atomic_thread_fence(memory_order_seq_cst);
			client_count_leased(c);
			for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++)
				adopt_from_page(c, slot, now_ns());
			page_leased(c);
		}
		gsc_commit(&dev->core, now_ns());
		list_for_each_entry(core, &dev->core.clients, node)
			empty_waiting(client_of(core));
	} while (again);

	if (dev->quotas_changed) {
		dev->quotas_changed = false;
		list_for_each_entry(core, &dev->core.clients, node)
			page_leased(client_of(core));
	}
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
	complete_ended(dev, now_ns());
	gsc_tick(&dev->core, now_ns());
	device_settle(dev);
}

static void watch_ready(struct source *src, uint32_t events)
{
	struct device *dev = container_of(src, struct device, watch);
	struct gsc_client *core;
	uint64_t n, now = now_ns();

	if (read(src->fd, &n, sizeof(n)) != sizeof(n))
		return;
	list_for_each_entry(core, &dev->core.clients, node)
		for (unsigned int slot = 0; slot < GSCHED_SLOTS && client_of(core)->adopted; slot++)
			complete_leased(client_of(core), slot, now);
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
	task = &c->core.task[req->slot];
	complete_leased(c, req->slot, now);
	/*
	 * adopted from the page between the client's store and this call: the client knows more
	 * about the task
	 */
	if (c->adopted & 1ull << req->slot && task->seq == req->seq) {
		struct gsched_complete cancel = { .size = sizeof(cancel), .flags = GSCHED_COMPLETE_CANCEL,
						  .slot = req->slot, .seq = req->seq };

		gsc_complete(&c->core, &cancel, now);
	}
	before = c->arb->slot[req->slot].window;
	err = gsc_submit(&c->core, req, now);
	submitting = err ? NULL : task;
	gsc_commit(&c->dev->core, now);
	submitting = NULL;
	if (!err)
		err = gsc_answer(task);
	if (!err || err == -EAGAIN) {
		c->last_seq[req->slot] = req->seq;
		req->window = err ? 0 : task->window;
		page_window(c, req->slot, req->window);
		conn_told(c->conn, req->slot, req->window);
	}
	/*
	 * the client does not read a reply, so send an event if the window is not the one it used
	 */
	if (launched && (!err || err == -EAGAIN) && req->window != before) {
		struct gsched_event ev = {
			.type = err ? GSCHED_EVENT_EVICT : GSCHED_EVENT_GRANT,
			.slot = req->slot, .seq = req->seq, .window = req->window, .time_ns = now,
		};

		conn_event(c->conn, req->slot, &ev);
	}
	return err;
}

int client_complete(struct client *c, const struct gsched_complete *req)
{
	uint64_t now = now_ns();
	int err = gsc_complete(&c->core, req, now);

	gsc_commit(&c->dev->core, now);
	return err;
}

int client_report(struct client *c, const struct gsched_report *req)
{
	int err = gsc_client_report(&c->core, req, now_ns());

	device_settle(c->dev);
	return err;
}

/* Leaves final values for a GPU that still reads the pages of a client that is gone. */
void client_pages_end(struct client *c, uint64_t window)
{
	store(&c->arb->header.lease, GSCHED_LEASE_NONE);
	/* no arbiter could let it launch again, or restore its slice */
	store(&c->arb->header.slice_us, 0);
	store(&c->arb->header.flags, 0);
	store(&c->arb->header.share, GSCHED_SHARE_ALL);
	for (unsigned int slot = 0; slot < GSCHED_SLOTS; slot++)
		page_window(c, slot, window);
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

int device_add(const struct device_decl *decl)
{
	struct device *dev;
	int err;

	if (!name_valid(decl->name) || !decl->sms || decl->sms > GSCHED_SMS_MAX)
		return -EINVAL;
	list_for_each_entry(dev, &devices, node)
		if (!strcmp(dev->decl.name, decl->name) || !memcmp(dev->decl.uuid, decl->uuid, GSCHED_UUID_SIZE))
			return -EEXIST;
	if (n_devices >= DECLS_MAX)
		return -ENOSPC;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->decl = *decl;
	dev->clients_max = CLIENTS_MAX;
	err = timer_open(&dev->timer, timer_ready);
	if (err)
		goto free_dev;
	err = timer_open(&dev->watch, watch_ready);
	if (err)
		goto close_timer;
	err = gsc_device_init(&dev->core, &ops, decl->sms);
	if (err)
		goto close_watch;
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
	n_devices++;
	monitor_device(dev, "device-add");
	state_restore(dev);
	device_settle(dev);
	return 0;

close_watch:
	loop_del(&dev->watch);
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
	loop_del(&dev->timer);
	loop_free(&dev->watch, dev);
}

/* Detaches all clients before the next commit, so that none gets the capacity of another. */
static void device_gone(struct device *dev)
{
	struct gsc_client *core;

	list_for_each_entry(core, &dev->core.clients, node)
		conn_gone(client_of(core)->conn);
	while (!list_empty(&dev->core.clients))
		client_detach(client_of(list_first_entry(&dev->core.clients, struct gsc_client, node)));
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

/* A plan is not saved, because after a restart nobody would renew it. */
static int device_plan(struct device *dev, const char *text)
{
	int err = gsc_device_plan(&dev->core, text, find_planned, dev, now_ns());

	dev->quotas_changed = true;
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

bool arbiter_contended(void)
{
	struct device *dev;

	list_for_each_entry(dev, &devices, node)
		if (dev->core.n_clients > 1)
			return true;
	return false;
}
