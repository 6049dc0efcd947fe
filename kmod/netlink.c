// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink family "gsched": dumps of devices, groups, clients, tasks and bands; events. What
 * there is and who may have it: uapi/linux/gsched_netlink.h.
 *
 * Events are sent from where things happen, mostly with a device's lock held, and cost one test of
 * a bit while nobody listens. Locks: the dumps run under genetlink's mutex, which is outside of
 * gsched_devices_mutex.
 */
#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/pid.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/uidgid.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include <linux/gsched_netlink.h>

#include "compat.h"
#include "internal.h"

enum { MCGRP_EVENTS, MCGRP_TASKS };

static struct genl_family family;

/* Grows with every object that comes or goes: a dump in several parts may have missed one */
static atomic_t generation = ATOMIC_INIT(1);

/* What is put into a message, all of it with the device's lock held. -EMSGSIZE: no more room */

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, GSCHED_A_PAD);
}

static int put_group(struct sk_buff *skb, const struct gsched_device *dev,
		     const struct gsc_group *group)
{
	size_t size = gsched_group_path_size(group);
	struct nlattr *attr = nla_reserve(skb, GSCHED_A_GROUP, size);

	if (!attr)
		return -EMSGSIZE;
	gsched_group_path(dev, group, nla_data(attr), size);
	return 0;
}

static int put_stat(struct sk_buff *skb, const struct gsc_stats *stats)
{
	const u64 value[__GSCHED_STAT_MAX] = {
		[GSCHED_STAT_USAGE_USEC] = stats->granted.us,
		[GSCHED_STAT_CAPSM_USEC] = stats->capsm.us,
		[GSCHED_STAT_RAN_USEC] = stats->ran.us,
		[GSCHED_STAT_PACED_USEC] = stats->paced.us,
		[GSCHED_STAT_TASKS] = stats->counts.tasks,
		[GSCHED_STAT_GRANTS] = stats->counts.changes[GSC_GRANT],
		[GSCHED_STAT_EVICTIONS] = stats->counts.changes[GSC_EVICT],
		[GSCHED_STAT_GROWTHS] = stats->counts.changes[GSC_GROW],
		[GSCHED_STAT_WAIT_USEC] = stats->wait.us,
		[GSCHED_STAT_CANCELLED] = stats->counts.cancelled,
		[GSCHED_STAT_DEMANDED_USEC] = stats->demanded.us,
		[GSCHED_STAT_PROMISED_USEC] = stats->promised.us,
	};
	struct nlattr *nest = nla_nest_start(skb, GSCHED_A_STAT);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = GSCHED_STAT_PAD + 1; i < __GSCHED_STAT_MAX; i++)
		if (nla_put_u64_64bit(skb, i, value[i], GSCHED_STAT_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_preemption(struct sk_buff *skb, const struct gsc_delays *delays)
{
	struct nlattr *nest = nla_nest_start(skb, GSCHED_A_PREEMPTION);

	BUILD_BUG_ON(GSCHED_PREEMPTION_FIRST_US != GSC_DELAY_FIRST_US);
	if (!nest ||
	    nla_put_u64_64bit(skb, GSCHED_PREEMPTION_USEC, delays->sum.us,
			      GSCHED_PREEMPTION_PAD) ||
	    nla_put_64bit(skb, GSCHED_PREEMPTION_BUCKETS, sizeof(delays->n), delays->n,
			  GSCHED_PREEMPTION_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_fault(struct sk_buff *skb, const struct gsc_device *core)
{
	char why[160];

	gsc_policy_why(core, why, sizeof(why));
	return nla_put_string(skb, GSCHED_A_FAULT, why);
}

/* @all: also what tells of other users' programs; likewise below */
static int put_numbers(struct sk_buff *skb, const struct gsched_device *dev, bool all)
{
	const struct gsc_device *core = &dev->core;

	if (nla_put(skb, GSCHED_A_UUID, sizeof(dev->uuid), dev->uuid) ||
	    nla_put_u32(skb, GSCHED_A_SMS, core->sms) ||
	    nla_put_u32(skb, GSCHED_A_MODE, core->mode) ||
	    nla_put_string(skb, GSCHED_A_POLICY, core->policy->name) ||
	    (all && (nla_put_u32(skb, GSCHED_A_CLIENTS, core->n_clients) ||
		     put_u64(skb, GSCHED_A_DECISIONS, core->decisions))))
		return -EMSGSIZE;
	return core->faulty ? put_fault(skb, core) : 0;
}

static int put_quotas(struct sk_buff *skb, const struct gsched_group *group, bool all)
{
	const struct gsc_group *core = group->core;
	const char *band = gsc_group_band(core);

	if (put_group(skb, group->dev, core) ||
	    (core->max != GSC_MAX_UNLIMITED && nla_put_u32(skb, GSCHED_A_CAPSM_MAX, core->max)) ||
	    nla_put_u32(skb, GSCHED_A_CAPSM_MIN, core->min) ||
	    nla_put_u32(skb, GSCHED_A_WEIGHT, core->weight) ||
	    nla_put_u32(skb, GSCHED_A_PRIORITY, core->priority) ||
	    nla_put_u32(skb, GSCHED_A_LATENCY_US, core->latency_us) ||
	    (core->memory.max != GSC_MEMORY_UNLIMITED &&
	     put_u64(skb, GSCHED_A_MEMORY_MAX, core->memory.max)) ||
	    (*band && nla_put_string(skb, GSCHED_A_BAND, band)))
		return -EMSGSIZE;
	if (!all)
		return 0;
	if (nla_put_u32(skb, GSCHED_A_CAPSM_CURRENT, core->current_units) ||
	    put_u64(skb, GSCHED_A_MEMORY, core->memory.current_bytes) ||
	    nla_put_u32(skb, GSCHED_A_CLIENTS, core->clients) ||
	    put_stat(skb, &core->stats))
		return -EMSGSIZE;
	return put_preemption(skb, core->delays);
}

/* Which one it is, in every message about a client or a task of it */
static int put_client(struct sk_buff *skb, const struct gsched_client *client)
{
	if (put_u64(skb, GSCHED_A_CLIENT, client->id) ||
	    nla_put_u32(skb, GSCHED_A_PID, client->core.pid))
		return -EMSGSIZE;
	return 0;
}

static int put_owner(struct sk_buff *skb, const struct gsched_client *client)
{
	if (put_client(skb, client) ||
	    nla_put_u32(skb, GSCHED_A_UID, from_kuid(&init_user_ns, client->uid)))
		return -EMSGSIZE;
	return 0;
}

static int put_band(struct sk_buff *skb, const struct gsched_client *client)
{
	const struct gsc_arb *arb = &client->core.arb;

	if (nla_put_u32(skb, GSCHED_A_ARB_FLAGS, arb->flags) ||
	    nla_put_u32(skb, GSCHED_A_SLICE_US, arb->slice_us) ||
	    nla_put_u32(skb, GSCHED_A_SHARE, arb->share))
		return -EMSGSIZE;
	return 0;
}

static int put_band_name(struct sk_buff *skb, const struct gsc_band *band)
{
	char name[GSC_BAND_NAME_SIZE];

	gsc_band_name(band, name, sizeof(name));
	return nla_put_string(skb, GSCHED_A_BAND, name);
}

static int put_whole_band(struct sk_buff *skb, const struct gsched_device *dev,
			  const struct gsc_band *band)
{
	struct gsc_client *owner = gsc_band_owner(band);
	u64 weight = div_u64(band->weight * 1000, GSC_BAND_WEIGHT_SCALE);
	char why[384];

	gsc_band_why(band, why, sizeof(why));
	if (put_band_name(skb, band) ||
	    (owner && owner->flags & GSCHED_ATTACH_SERVER &&
	     nla_put_u32(skb, GSCHED_A_PID, owner->pid)) ||
	    nla_put_u32(skb, GSCHED_A_PRIORITY, band->priority) ||
	    put_u64(skb, GSCHED_A_BAND_WEIGHT, weight) ||
	    nla_put_u32(skb, GSCHED_A_SLICE_US, band->slice_us) ||
	    nla_put_u32(skb, GSCHED_A_APPLIED_US, owner ? owner->slice_us : 0) ||
	    nla_put_u32(skb, GSCHED_A_SLICE_ERROR, owner ? owner->slice_error : 0) ||
	    nla_put_u32(skb, GSCHED_A_BLOCK_END, gsched_band_block_end(owner)) ||
	    nla_put_u32(skb, GSCHED_A_ACTIVITY, gsched_band_activity(band)) ||
	    nla_put_u32(skb, GSCHED_A_TURN, band == dev->core.turn) ||
	    nla_put_string(skb, GSCHED_A_WHY, why))
		return -EMSGSIZE;
	return 0;
}

static int put_usage(struct sk_buff *skb, const struct gsched_client *client)
{
	const struct gsc_client *core = &client->core;

	if (put_owner(skb, client) ||
	    put_group(skb, client->dev, core->home) ||
	    put_band_name(skb, core->band) ||
	    nla_put_u32(skb, GSCHED_A_LEASE, core->lease) ||
	    nla_put_u32(skb, GSCHED_A_PRIORITY, core->group->priority) ||
	    nla_put_u32(skb, GSCHED_A_CAPSM_CURRENT, core->current_units) ||
	    put_u64(skb, GSCHED_A_MEMORY, core->memory) ||
	    put_band(skb, client) ||
	    put_stat(skb, &core->own.stats))
		return -EMSGSIZE;
	return put_preemption(skb, &core->delays);
}

static int put_window(struct sk_buff *skb, const struct gsc_task *task)
{
	if (put_client(skb, gsched_client_of(task->client)) ||
	    nla_put_u32(skb, GSCHED_A_SLOT, task->slot) ||
	    nla_put_u32(skb, GSCHED_A_SEQ, task->seq) ||
	    nla_put_u32(skb, GSCHED_A_LIMIT, task->window))
		return -EMSGSIZE;
	return 0;
}

static int put_grant(struct sk_buff *skb, const struct gsc_task *task)
{
	if (put_u64(skb, GSCHED_A_WAIT_NS, task->granted - task->submitted) ||
	    (task->intensity && nla_put_u32(skb, GSCHED_A_INTENSITY, task->intensity)))
		return -EMSGSIZE;
	return 0;
}

/* What is known of it when it is over, for whoever accounts by the task */
static int put_end(struct sk_buff *skb, const struct gsc_task *task)
{
	if (put_u64(skb, GSCHED_A_RUN_NS, task->ran) ||
	    put_u64(skb, GSCHED_A_USED_NS, task->usage / GSCHED_CAPSM) ||
	    nla_put_u32(skb, GSCHED_A_EVICTIONS, task->evictions))
		return -EMSGSIZE;
	return 0;
}

/* What client and GPU write into the page */
static int put_hint(struct sk_buff *skb, const struct gsched_cl_slot *hint)
{
	if (nla_put_u32(skb, GSCHED_A_SEEN, READ_ONCE(hint->seen_limit)) ||
	    nla_put_u32(skb, GSCHED_A_LAUNCHED, READ_ONCE(hint->launched)) ||
	    nla_put_u32(skb, GSCHED_A_LEFT, READ_ONCE(hint->left)) ||
	    put_u64(skb, GSCHED_A_START_NS, READ_ONCE(hint->start_ns)))
		return -EMSGSIZE;
	return 0;
}

/* A launch under the lease, of which only the page tells. It has the window of the lease */
static int put_leased(struct sk_buff *skb, const struct gsched_client *client, u32 slot)
{
	const struct gsched_cl_slot *hint = &client->cl->slot[slot];
	u32 tier = min_t(u32, READ_ONCE(hint->tier), GSCHED_TIER_LAUNCH);

	if (put_client(skb, client) ||
	    nla_put_u32(skb, GSCHED_A_SLOT, slot) ||
	    nla_put_u32(skb, GSCHED_A_SEQ, READ_ONCE(hint->seq)) ||
	    nla_put_u32(skb, GSCHED_A_LIMIT, client->arb->slot[slot].window) ||
	    nla_put_u32(skb, GSCHED_A_TIER, tier) ||
	    put_u64(skb, GSCHED_A_BLOCKS, READ_ONCE(hint->blocks)))
		return -EMSGSIZE;
	return put_hint(skb, hint);
}

static int put_task(struct sk_buff *skb, const struct gsc_task *task, u64 now)
{
	bool runs = task->state == GSC_TASK_RUNNING;

	if (put_window(skb, task) ||
	    nla_put_u32(skb, GSCHED_A_STATE, runs ? GSCHED_STATE_GRANTED : GSCHED_STATE_QUEUED) ||
	    nla_put_u32(skb, GSCHED_A_TIER, task->tier) ||
	    put_u64(skb, GSCHED_A_BLOCKS, task->blocks) ||
	    put_u64(skb, GSCHED_A_WAIT_NS, (runs ? task->granted : now) - task->submitted) ||
	    put_u64(skb, GSCHED_A_RUN_NS, runs ? now - task->granted : 0) ||
	    put_u64(skb, GSCHED_A_USED_NS, task->usage / GSCHED_CAPSM) ||
	    nla_put_u32(skb, GSCHED_A_EVICTIONS, task->evictions) ||
	    put_u64(skb, GSCHED_A_STREAM, task->stream))
		return -EMSGSIZE;
	return put_hint(skb, &gsched_client_of(task->client)->cl->slot[task->slot]);
}

/*
 * Dumps. Where one stands is kept as positions in lists, which is right as long as nothing comes or
 * goes; @generation tells the reader when it did.
 */
struct walk {
	char only[GSCHED_NAME_SIZE];	/* this device; "" all */
	kuid_t uid;			/* whose objects are shown; INVALID_UID everybody's */
	u32 device, object, slot;	/* the next one */
};

static bool shows_all(const struct walk *walk)
{
	return !uid_valid(walk->uid);
}

static bool shows_client(const struct walk *walk, struct gsc_client *core)
{
	return shows_all(walk) || uid_eq(gsched_client_of(core)->uid, walk->uid);
}

static bool shows_band(const struct walk *walk, const struct gsc_band *band)
{
	struct gsc_client *client;

	list_for_each_entry(client, &band->members, member)
		if (shows_client(walk, client))
			return true;
	return false;
}

static struct gsched_group *group_of(struct gsc_group *core)
{
	return core->parent ? container_of(core, struct gsched_group, own) :
			      &container_of(core->dev, struct gsched_device, core)->root;
}

/* Those with a client of the user in them or below, in one pass over clients */
static void mark_groups(const struct walk *walk, struct gsched_device *dev)
{
	struct gsched_group *group;
	struct gsc_client *client;
	struct gsc_group *up;

	list_for_each_entry(group, &dev->groups, node)
		group->shown = shows_all(walk);
	list_for_each_entry(client, &dev->core.clients, node) {
		if (!shows_client(walk, client))
			continue;
		for (up = client->home; up && !group_of(up)->shown; up = up->parent)
			group_of(up)->shown = true;
	}
}

/* One answer of a dump: @put adds what is below the device's name */
static void *begin(struct sk_buff *skb, struct netlink_callback *cb,
		   const struct gsched_device *dev, u8 cmd)
{
	void *head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				 NLM_F_MULTI, cmd);

	if (!head)
		return NULL;
	genl_dump_check_consistent(cb, head);
	if (nla_put_string(skb, GSCHED_A_DEVICE, dev_name(&dev->dev))) {
		genlmsg_cancel(skb, head);
		return NULL;
	}
	return head;
}

static int end(struct sk_buff *skb, void *head, int ret)
{
	if (ret)
		genlmsg_cancel(skb, head);
	else
		genlmsg_end(skb, head);
	return ret;
}

static int dump_device(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev,
		       u64 now)
{
	const struct walk *walk = (struct walk *)cb->ctx;
	void *head = begin(skb, cb, dev, GSCHED_CMD_DEVICE_GET);

	return head ? end(skb, head, put_numbers(skb, dev, shows_all(walk))) : -EMSGSIZE;
}

static int dump_groups(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev,
		       u64 now)
{
	struct walk *walk = (struct walk *)cb->ctx;
	struct gsched_group *group;
	u32 nr = 0;
	void *head;

	mark_groups(walk, dev);
	list_for_each_entry(group, &dev->groups, node) {
		if (nr++ < walk->object)
			continue;
		if (group->shown) {
			head = begin(skb, cb, dev, GSCHED_CMD_GROUP_GET);
			if (!head || end(skb, head, put_quotas(skb, group, shows_all(walk))))
				return -EMSGSIZE;
		}
		walk->object++;
	}
	return 0;
}

static int dump_clients(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev,
			u64 now)
{
	struct walk *walk = (struct walk *)cb->ctx;
	struct gsc_client *client;
	u32 nr = 0;
	void *head;

	list_for_each_entry(client, &dev->core.clients, node) {
		if (nr++ < walk->object)
			continue;
		if (shows_client(walk, client)) {
			head = begin(skb, cb, dev, GSCHED_CMD_CLIENT_GET);
			if (!head || end(skb, head, put_usage(skb, gsched_client_of(client))))
				return -EMSGSIZE;
		}
		walk->object++;
	}
	return 0;
}

static int dump_slot(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev,
		     struct gsc_client *client, u32 slot, u64 now)
{
	const struct gsc_task *task = gsc_task_in(client, slot);
	void *head;

	if (!task && !gsc_page_leased(client, slot))
		return 0;
	head = begin(skb, cb, dev, GSCHED_CMD_TASK_GET);
	if (!head)
		return -EMSGSIZE;
	return end(skb, head, task ? put_task(skb, task, now) :
				     put_leased(skb, gsched_client_of(client), slot));
}

static int dump_tasks(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev,
		      u64 now)
{
	struct walk *walk = (struct walk *)cb->ctx;
	struct gsc_client *client;
	u32 nr = 0;

	list_for_each_entry(client, &dev->core.clients, node) {
		if (nr++ < walk->object)
			continue;
		for (; walk->slot < GSCHED_SLOTS && shows_client(walk, client); walk->slot++)
			if (dump_slot(skb, cb, dev, client, walk->slot, now))
				return -EMSGSIZE;
		walk->object++;
		walk->slot = 0;
	}
	return 0;
}

static int dump_bands(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev)
{
	struct walk *walk = (struct walk *)cb->ctx;
	const struct gsc_band *band;
	u32 nr = 0;
	void *head;

	list_for_each_entry(band, &dev->core.bands, node) {
		if (nr++ < walk->object)
			continue;
		if (shows_band(walk, band)) {
			head = begin(skb, cb, dev, GSCHED_CMD_BAND_GET);
			if (!head || end(skb, head, put_whole_band(skb, dev, band)))
				return -EMSGSIZE;
		}
		walk->object++;
	}
	return 0;
}

static int dump_one(struct sk_buff *skb, struct netlink_callback *cb, struct gsched_device *dev)
{
	u64 now = gsched_lock(dev);
	int ret;

	/* charges what runs, so that the numbers are of this moment */
	gsc_tick(&dev->core, now);
	gsc_commit(&dev->core, now);
	gsc_device_count(&dev->core, now);
	switch (((const struct genlmsghdr *)nlmsg_data(cb->nlh))->cmd) {
	case GSCHED_CMD_DEVICE_GET:
		ret = dump_device(skb, cb, dev, now);
		break;
	case GSCHED_CMD_GROUP_GET:
		ret = dump_groups(skb, cb, dev, now);
		break;
	case GSCHED_CMD_CLIENT_GET:
		ret = dump_clients(skb, cb, dev, now);
		break;
	case GSCHED_CMD_BAND_GET:
		ret = dump_bands(skb, cb, dev);
		break;
	default:
		ret = dump_tasks(skb, cb, dev, now);
	}
	gsched_unlock(dev, now);
	return ret;
}

static int dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct walk *walk = (struct walk *)cb->ctx;
	struct gsched_device *dev;
	int ret = 0;

	cb->seq = atomic_read(&generation);
	while (!ret && (dev = gsched_device_nth(walk->device))) {
		if (!*walk->only || !strcmp(walk->only, dev_name(&dev->dev)))
			ret = dump_one(skb, cb, dev);
		gsched_device_put(dev);
		if (!ret) {
			walk->device++;
			walk->object = 0;
		}
	}
	/* not even one object fits: the reader's buffer is too small */
	return ret && !skb->len ? ret : skb->len;
}

static const struct nla_policy request_policy[GSCHED_A_DEVICE + 1] = {
	[GSCHED_A_DEVICE] = { .type = NLA_NUL_STRING, .len = GSCHED_NAME_SIZE - 1 },
};

static int start(struct netlink_callback *cb)
{
	struct walk *walk = (struct walk *)cb->ctx;
	struct nlattr *attr[GSCHED_A_DEVICE + 1];
	struct gsched_device *dev;
	u32 nr = 0;
	bool all;
	int ret;

	BUILD_BUG_ON(sizeof(*walk) > sizeof(cb->ctx));
	/* a socket that another user has made: neither's objects */
	all = netlink_capable(cb->skb, CAP_SYS_ADMIN);
	if (!all && !uid_eq(current_euid(), NETLINK_CB(cb->skb).sk->sk_uid))
		return -EPERM;
	ret = genlmsg_parse(cb->nlh, &family, attr, GSCHED_A_DEVICE, request_policy, cb->extack);
	if (ret)
		return ret;
	memset(walk, 0, sizeof(*walk));
	walk->uid = all ? INVALID_UID : current_euid();
	if (!attr[GSCHED_A_DEVICE])
		return 0;
	strscpy(walk->only, nla_data(attr[GSCHED_A_DEVICE]), sizeof(walk->only));
	for (; (dev = gsched_device_nth(nr)); nr++) {
		bool same = !strcmp(walk->only, dev_name(&dev->dev));

		gsched_device_put(dev);
		if (same)
			return 0;
	}
	NL_SET_ERR_MSG_ATTR(cb->extack, attr[GSCHED_A_DEVICE], "no device of that name");
	return -ENODEV;
}

#define DUMP(_cmd) { \
		.cmd = _cmd, \
		.start = start, \
		.dumpit = dump, \
		.policy = request_policy, \
		.maxattr = GSCHED_A_DEVICE, \
	}

static const struct genl_ops ops[] = {
	DUMP(GSCHED_CMD_DEVICE_GET),
	DUMP(GSCHED_CMD_GROUP_GET),
	DUMP(GSCHED_CMD_CLIENT_GET),
	DUMP(GSCHED_CMD_TASK_GET),
	DUMP(GSCHED_CMD_BAND_GET),
};

static const struct genl_multicast_group mcgrps[] = {
	[MCGRP_EVENTS] = { .name = GSCHED_MCGRP_EVENTS, .flags = GSCHED_MCAST_FLAGS },
	[MCGRP_TASKS] = { .name = GSCHED_MCGRP_TASKS, .flags = GSCHED_MCAST_FLAGS },
};

static struct genl_family family = {
	.name = GSCHED_GENL_NAME,
	.version = GSCHED_GENL_VERSION,
	.maxattr = GSCHED_A_MAX,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.mcgrps = mcgrps,
	.n_mcgrps = GSCHED_HAS_MCAST ? ARRAY_SIZE(mcgrps) : 0,
};

/* Events. Each begins one message, adds to it and sends it; without memory for it, it is lost */

struct message {
	struct sk_buff *skb;
	void *head;
};

static unsigned int mcgrp_of(enum gsched_nl_event event)
{
	return event < GSCHED_NL_GRANT ? MCGRP_EVENTS : MCGRP_TASKS;
}

/* As if the socket's buffer had been full: whoever listens gets ENOBUFS */
static void lost(enum gsched_nl_event event)
{
	genl_set_err(&family, &init_net, 0, mcgrp_of(event), -ENOBUFS);
}

/* False: nobody listens, or there is no memory */
static bool event_begin(struct message *msg, const struct gsched_device *dev,
			enum gsched_nl_event event)
{
	if (!GSCHED_HAS_MCAST || !genl_has_listeners(&family, &init_net, mcgrp_of(event)))
		return false;
	msg->skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_ATOMIC);
	if (!msg->skb) {
		lost(event);
		return false;
	}
	msg->head = genlmsg_put(msg->skb, 0, 0, &family, 0, GSCHED_CMD_EVENT);
	if (msg->head && !nla_put_u32(msg->skb, GSCHED_A_EVENT, event) &&
	    !put_u64(msg->skb, GSCHED_A_TIME_NS, ktime_get_ns()) &&
	    !nla_put_string(msg->skb, GSCHED_A_DEVICE, dev_name(&dev->dev)))
		return true;
	nlmsg_free(msg->skb);
	lost(event);
	return false;
}

static void event_end(struct message *msg, enum gsched_nl_event event, int ret)
{
	/* a page holds more than the longest path and all numbers */
	if (WARN_ON_ONCE(ret)) {
		nlmsg_free(msg->skb);
		return;
	}
	genlmsg_end(msg->skb, msg->head);
	genlmsg_multicast(&family, msg->skb, 0, mcgrp_of(event), GFP_ATOMIC);
}

/* A client is gone of which no event told, since its attach failed: a dump may have met it */
void gsched_nl_changed(void)
{
	atomic_inc(&generation);
}

void gsched_nl_device(const struct gsched_device *dev, enum gsched_nl_event event)
{
	struct message msg;
	int ret = 0;

	if (event != GSCHED_NL_POLICY)
		atomic_inc(&generation);
	if (!event_begin(&msg, dev, event))
		return;
	if (event == GSCHED_NL_DEVICE_ADD)
		ret = nla_put(msg.skb, GSCHED_A_UUID, sizeof(dev->uuid), dev->uuid) ?:
		      nla_put_u32(msg.skb, GSCHED_A_SMS, dev->core.sms);
	else if (event == GSCHED_NL_POLICY)
		ret = nla_put_string(msg.skb, GSCHED_A_POLICY, dev->core.policy->name) ?:
		      (dev->core.faulty ? put_fault(msg.skb, &dev->core) : 0);
	event_end(&msg, event, ret);
}

void gsched_nl_group(const struct gsched_group *group, enum gsched_nl_event event)
{
	struct message msg;

	lockdep_assert_held(&group->dev->lock);
	atomic_inc(&generation);
	if (event_begin(&msg, group->dev, event))
		event_end(&msg, event, put_group(msg.skb, group->dev, group->core));
}

void gsched_nl_client(const struct gsched_client *client, enum gsched_nl_event event)
{
	struct message msg;
	int ret;

	lockdep_assert_held(&client->dev->lock);
	if (event != GSCHED_NL_BAND)
		atomic_inc(&generation);
	if (!event_begin(&msg, client->dev, event))
		return;
	if (event == GSCHED_NL_BAND)
		ret = put_client(msg.skb, client) ?: put_band(msg.skb, client);
	else
		ret = put_owner(msg.skb, client);
	if (!ret && event == GSCHED_NL_CLIENT_ADD)
		ret = put_group(msg.skb, client->dev, client->core.home) ?:
		      put_band(msg.skb, client);
	else if (!ret && event == GSCHED_NL_CLIENT_DEL)
		ret = put_stat(msg.skb, &client->core.own.stats) ?:
		      put_preemption(msg.skb, &client->core.delays);
	event_end(&msg, event, ret);
}

void gsched_nl_task(const struct gsc_task *task, enum gsched_nl_event event)
{
	const struct gsched_device *dev = gsched_client_of(task->client)->dev;
	struct message msg;
	int ret;

	lockdep_assert_held(&dev->lock);
	if (!event_begin(&msg, dev, event))
		return;
	ret = put_window(msg.skb, task);
	if (!ret && event == GSCHED_NL_GRANT)
		ret = put_grant(msg.skb, task);
	else if (!ret && event == GSCHED_NL_DONE)
		ret = put_end(msg.skb, task);
	event_end(&msg, event, ret);
}

int gsched_netlink_init(void)
{
	return genl_register_family(&family);
}

void gsched_netlink_exit(void)
{
	genl_unregister_family(&family);
}

MODULE_ALIAS_GENL_FAMILY(GSCHED_GENL_NAME);
