// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pages of a client: what the core stores in the arbiter's, and what it takes from the other
 * one, which the client and its GPU write.
 *
 * A client that is alone in its band has a free lease: it launches without a call and only notes
 * the launch in its page. When the lease ends, because someone came or a quota was set, the core
 * looks at the page and adopts what runs there. An adopted task ends when its client says so, or
 * its page.
 *
 * All that is read here is a hint: read once, bounded, and only ever counted against the client
 * that wrote it. Without pages, as in the simulator, nothing here does anything.
 */
#include "decide.h"

#define HINT_NS_MAX	(3600ULL * 1000000000)
#define HINT_BLOCKS_MAX	1000000000000ULL
#define POLL_NS		1000000ULL	/* between looks at the pages of adopted tasks */
#define LOOK_NS		4000ULL		/* of many, for each: they take some per cent of the time */

static void store_window(struct gsc_client *client, u32 slot, u32 window)
{
	struct gsched_arb_slot *to = &client->arb_page->slot[slot];

	if (to->window == window)
		return;
	/* one 64-bit store, as the GPU reads it at any time */
	smp_store_release(&to->window, window);
	/* who reads the new generation sees the new window */
	smp_store_release(&to->generation, to->generation + 1);
}

/* What a launch under the lease may use: everything up to the smallest max above the client */
static u32 leased_window(const struct gsc_client *client)
{
	const struct gsc_group *group;
	u32 limit = client->dev->sms * GSCHED_CAPSM;

	if (client->lease == GSCHED_LEASE_NONE)
		return 0;
	for (group = client->group; group; group = group->parent)
		limit = min(limit, group->max);
	return limit;
}

static void store_leased(struct gsc_client *client)
{
	u32 window = leased_window(client);
	u32 slot;

	client->leased_window = window;
	client->stale = false;
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		if (!gsc_task_in(client, slot))
			store_window(client, slot, window);
}

void gsc_page_attach(struct gsc_client *client)
{
	client->stale = false;
	client->scan = false;
	client->leased_window = 0;
	if (client->arb_page)
		WRITE_ONCE(client->arb_page->header.sms, client->dev->sms);
}

/* @window: what a GPU that still runs kernels of the client may use */
void gsc_page_detach(struct gsc_client *client, u32 window)
{
	struct gsched_arb_page *page = client->arb_page;
	u32 slot;

	if (!page)
		return;
	WRITE_ONCE(page->header.lease, GSCHED_LEASE_NONE);
	/* nobody will open its gate or restore its slice later */
	WRITE_ONCE(page->header.slice_us, 0);
	WRITE_ONCE(page->header.share, GSCHED_SHARE_ALL);
	WRITE_ONCE(page->header.flags, 0);
	for (slot = 0; slot < GSCHED_SLOTS; slot++)
		store_window(client, slot, window);
}

void gsc_page_window(struct gsc_task *task)
{
	if (task->client->arb_page)
		store_window(task->client, task->slot, task->window);
}

void gsc_page_empty(struct gsc_client *client, u32 slot)
{
	/* a new window for all empty slots comes when the launches under the old one are known */
	if (client->arb_page)
		store_window(client, slot, client->leased_window);
}

void gsc_page_waits(struct gsc_task *task)
{
	struct gsc_client *client = task->client;

	if (!client->arb_page || !client->arb_page->slot[task->slot].window)
		return;
	store_window(client, task->slot, 0);
	/* it was launched in the window of the lease, and its workers leave */
	if (task->adopted && client->dev->ops->set_window)
		client->dev->ops->set_window(task, GSC_EVICT);
}

void gsc_page_lease(struct gsc_client *client)
{
	struct gsched_arb_header *header;
	struct gsc_device *dev = client->dev;
	u32 old;

	if (!client->arb_page)
		return;
	header = &client->arb_page->header;
	old = header->lease;
	WRITE_ONCE(header->mode, dev->mode);
	WRITE_ONCE(header->priority, client->group->priority);
	WRITE_ONCE(header->top_priority, dev->top_priority);
	if (client->lease == old)
		return;
	/* who reads the new lease sees what was stored before it */
	smp_store_release(&header->lease, client->lease);
	/*
	 * A full fence against the client's: either the scan sees a launch under the old lease, or
	 * its client sees the new one and submits.
	 */
	smp_mb();
	client->scan |= old == GSCHED_LEASE_FREE;
	dev->scan |= client->scan;
}

void gsc_page_quota(struct gsc_client *client)
{
	if (!client->arb_page || client->leased_window == leased_window(client))
		return;
	client->stale = true;
	client->dev->stale = true;
}

void gsc_page_band(struct gsc_client *client)
{
	const struct gsc_arb *arb = &client->arb;
	struct gsched_arb_header *header;

	if (!client->arb_page)
		return;
	header = &client->arb_page->header;
	WRITE_ONCE(header->slice_us, arb->slice_us);
	WRITE_ONCE(header->bands, arb->bands);
	WRITE_ONCE(header->share, arb->share);
	WRITE_ONCE(header->in_flight_us, arb->in_flight_us);
	/* who reads the new flags sees the words that belong to them */
	smp_store_release(&header->flags, arb->flags);
}

bool gsc_page_leased(const struct gsc_client *client, u32 slot)
{
	const struct gsc_task *task = client->task[slot];
	const struct gsched_cl_slot *hint;
	u32 seq;

	if (!client->cl_page || gsc_task_in(client, slot))
		return false;
	hint = &client->cl_page->slot[slot];
	/*
	 * the client stores it last: what else is read of the slot is of this task or a later one
	 */
	seq = smp_load_acquire(&hint->seq);
	return seq && (!task || seq != task->seq) && READ_ONCE(hint->retired) != seq &&
	       READ_ONCE(hint->finished) != seq;
}

static void adopt(struct gsc_client *client, u32 slot)
{
	const struct gsched_cl_slot *hint = &client->cl_page->slot[slot];
	struct gsched_submit req = {
		.size = sizeof(req),
		.flags = GSCHED_SUBMIT_NOWAIT,
		.slot = slot,
	};
	u32 blocks_per_sm;

	if (!gsc_page_leased(client, slot))
		return;
	/* before the words that describe it, as in gsc_page_leased() */
	req.seq = smp_load_acquire(&hint->seq);
	req.tier = READ_ONCE(hint->tier) == GSCHED_TIER_BLOCK ? GSCHED_TIER_BLOCK :
								GSCHED_TIER_LAUNCH;
	blocks_per_sm = min_t(u32, READ_ONCE(hint->blocks_per_sm), GSC_BLOCKS_PER_SM_MAX);
	req.blocks_per_sm = max_t(u32, blocks_per_sm, 1);
	req.intensity = READ_ONCE(hint->intensity);
	if (req.intensity > GSCHED_INTENSITY__MAX)
		req.intensity = GSCHED_INTENSITY_UNKNOWN;
	req.blocks = min_t(u64, READ_ONCE(hint->blocks), HINT_BLOCKS_MAX);
	req.blocks = max_t(u64, req.blocks, 1);
	req.predicted_ns = min_t(u64, READ_ONCE(hint->predicted_ns), HINT_NS_MAX);
	req.block_ns = min_t(u64, READ_ONCE(hint->block_ns), HINT_NS_MAX);
	req.stream = READ_ONCE(hint->stream);
	if (gsc_adopt(client, &req, READ_ONCE(hint->launch_ns), client->dev->now) != -ENOMEM)
		return;
	/* the timer brings the next attempt; until then the slot keeps its window */
	client->scan = true;
	client->dev->scan = true;
}

bool gsc_page_is_over(const struct gsc_task *task)
{
	const struct gsched_cl_page *page = task->client->cl_page;
	const struct gsched_cl_slot *hint;

	if (!page)
		return false;
	hint = &page->slot[task->slot];
	if (READ_ONCE(hint->seq) != task->seq)
		return true;
	/* its stamps are older than this word */
	if (smp_load_acquire(&hint->retired) == task->seq)
		return true;
	/* and than this one */
	return smp_load_acquire(&hint->finished) == task->seq;
}

bool gsc_page_workers(const struct gsc_task *task, u32 *present, u32 *left)
{
	const struct gsched_cl_page *page = task->client->cl_page;
	const struct gsched_cl_slot *hint;
	u32 launched;

	if (gsc_page_is_over(task))
		return false;
	hint = &page->slot[task->slot];
	if (!READ_ONCE(hint->start_ns))
		return false;
	launched = READ_ONCE(hint->launched);
	*left = READ_ONCE(hint->left);
	*present = launched - min(launched, *left);
	return true;
}

bool gsc_page_has_left(const struct gsc_task *task, u32 before, u32 n)
{
	const struct gsched_cl_slot *hint = &task->client->cl_page->slot[task->slot];

	return READ_ONCE(hint->seen_limit) == task->window && READ_ONCE(hint->left) - before >= n;
}

static void complete(struct gsc_task *task, u64 now)
{
	struct gsched_complete req = {
		.size = sizeof(req),
		.slot = task->slot,
		.seq = task->seq,
	};
	const struct gsched_cl_slot *hint;
	u64 start_ns, end_ns;

	if (task->client->cl_page) {
		hint = &task->client->cl_page->slot[task->slot];
		start_ns = READ_ONCE(hint->start_ns);
		end_ns = READ_ONCE(hint->end_ns);
		if (READ_ONCE(hint->seq) == task->seq && start_ns && end_ns > start_ns)
			req.ran_ns = min_t(u64, end_ns - start_ns, HINT_NS_MAX);
	}
	gsc_complete(task->client, &req, now);
}

void gsc_page_submit(struct gsc_task *task, u32 seq, u64 now)
{
	struct gsched_complete cancel = {
		.size = sizeof(cancel),
		.flags = GSCHED_COMPLETE_CANCEL,
		.slot = task->slot,
		.seq = seq,
	};

	if (task->state == GSC_TASK_NONE || !task->adopted)
		return;
	/* adopted before the client's call came, which says more of it than the page */
	if (task->seq == seq)
		gsc_complete(task->client, &cancel, now);
	else if (gsc_page_is_over(task))
		complete(task, now);
}

static void reap(struct gsc_device *dev, bool (*ended)(const struct gsc_task *task))
{
	struct gsc_client *client;
	struct gsc_task *task, *next;
	struct gsc_band *band;

	list_for_each_entry(band, &dev->busy, busy)
		list_for_each_entry(client, &band->active, active)
			list_for_each_entry_safe(task, next, &client->tasks, peer)
				if (ended(task))
					complete(task, dev->now);
}

static bool adopted_is_over(const struct gsc_task *task)
{
	return task->adopted && gsc_page_is_over(task);
}

void gsc_page_reap(struct gsc_device *dev)
{
	reap(dev, adopted_is_over);
}

static bool is_gone(const struct gsc_client *client)
{
	return client->dev->ops->is_gone && client->dev->ops->is_gone(client);
}

/* Its end is in the page, and retired, too, so that nothing of it is left on its stream */
static bool is_retired(const struct gsc_task *task)
{
	const struct gsched_cl_page *page = task->client->cl_page;

	/* its stamps are older than this word */
	return page && smp_load_acquire(&page->slot[task->slot].retired) == task->seq;
}

static bool old_is_over(const struct gsc_task *task)
{
	return gsc_is_old(task, task->client->dev->now) &&
	       (is_retired(task) || is_gone(task->client));
}

void gsc_page_reap_old(struct gsc_device *dev)
{
	reap(dev, old_is_over);
}

void gsc_page_scan(struct gsc_device *dev)
{
	struct gsc_client *client;
	u32 slot;

	dev->scan = false;
	list_for_each_entry(client, &dev->clients, node) {
		if (!client->scan)
			continue;
		client->scan = false;
		gsc_client_count(client, dev->now);
		for (slot = 0; slot < GSCHED_SLOTS && client->cl_page; slot++)
			adopt(client, slot);
	}
}

void gsc_page_refresh(struct gsc_device *dev)
{
	struct gsc_client *client;

	dev->stale = false;
	list_for_each_entry(client, &dev->clients, node) {
		if (client->stale && !client->scan)
			store_leased(client);
		dev->stale |= client->stale;
	}
}

u64 gsc_page_poll(struct gsc_device *dev)
{
	if (!dev->n_adopted && !dev->scan)
		dev->poll_at = 0;
	else if (dev->poll_at <= dev->now)
		dev->poll_at = dev->now + max(POLL_NS, dev->n_adopted * LOOK_NS);
	return dev->poll_at;
}

void gsc_client_count(struct gsc_client *client, u64 now)
{
	const struct gsched_cl_header *header;
	struct gsc_leased says;

	gsc_client_flush(client);
	if (!client->cl_page)
		return;
	header = &client->cl_page->header;
	says = (struct gsc_leased) {
		.tasks = READ_ONCE(header->leased_tasks) + READ_ONCE(header->passed),
		.ns = READ_ONCE(header->leased_ns),
		.usage = READ_ONCE(header->leased_usage),
		.paced_ns = READ_ONCE(header->paced_ns),
	};
	gsc_client_leased(client, &says, now);
}

void gsc_device_count(struct gsc_device *dev, u64 now)
{
	struct gsc_client *client;

	list_for_each_entry(client, &dev->clients, node)
		gsc_client_count(client, now);
	gsc_promise_settle(dev);
}
