/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints gsched:*: who comes and asks, and what is decided. limit is in 1/1024 CapSM, times
 * are in ns. All but gsched_submit come with the device's lock held.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM gsched

#if !defined(GSCHED_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define GSCHED_TRACE_H

#include <linux/tracepoint.h>

#include "internal.h"

DECLARE_EVENT_CLASS(gsched_task,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task),
	TP_ARGS(client, task),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(pid_t, pid)
		__field(u32, slot)
		__field(u32, seq)
		__field(u32, limit)
		__field(u64, wait_ns)
		__field(u64, ran_ns)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->slot = task->slot;
		__entry->seq = task->seq;
		__entry->limit = task->window;
		__entry->wait_ns = task->granted > task->submitted ?
					   task->granted - task->submitted : 0;
		__entry->ran_ns = task->ran;
	),
	TP_printk("device=%s pid=%d slot=%u seq=%u limit=%u wait_ns=%llu ran_ns=%llu",
		  __entry->device, __entry->pid, __entry->slot, __entry->seq, __entry->limit,
		  __entry->wait_ns, __entry->ran_ns)
);

DEFINE_EVENT(gsched_task, gsched_grant,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task),
	TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_evict,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task),
	TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_grow,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task),
	TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_done,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task),
	TP_ARGS(client, task));

/*
 * The slice that a client has to set, or its gate, changed. @flags: GSCHED_ARB_*, @share: in
 * 1/GSCHED_SHARE_ALL
 */
TRACE_EVENT(gsched_band,
	TP_PROTO(const struct gsched_client *client),
	TP_ARGS(client),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(pid_t, pid)
		__field(u32, flags)
		__field(u32, slice_us)
		__field(u32, bands)
		__field(u32, share)
		__field(u32, in_flight_us)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->flags = client->core.arb.flags;
		__entry->slice_us = client->core.arb.slice_us;
		__entry->bands = client->core.arb.bands;
		__entry->share = client->core.arb.share;
		__entry->in_flight_us = client->core.arb.in_flight_us;
	),
	TP_printk("device=%s pid=%d slice_us=%u flags=%s bands=%u share=%u in_flight_us=%u",
		  __entry->device, __entry->pid, __entry->slice_us,
		  __print_flags(__entry->flags, "|",
				{ GSCHED_ARB_CLOSED, "closed" },
				{ GSCHED_ARB_REPORT, "report" },
				{ GSCHED_ARB_PACED, "paced" },
				{ GSCHED_ARB_ALONE, "alone" },
				{ GSCHED_ARB_YIELDS, "yields" },
				{ GSCHED_ARB_PRIVATE, "private" },
				{ GSCHED_ARB_RESUMABLE, "resumable" },
				{ GSCHED_ARB_TIMED, "timed" },
				{ GSCHED_ARB_BLOCK_END, "block-end" },
				{ GSCHED_ARB_PASS, "pass" },
				{ GSCHED_ARB_HELD, "held" }),
		  __entry->bands, __entry->share, __entry->in_flight_us)
);

DECLARE_EVENT_CLASS(gsched_client,
	TP_PROTO(const struct gsched_client *client),
	TP_ARGS(client),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(pid_t, pid)
		__field(u64, id)
		__field(u32, flags)
		__field(u32, clients)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->id = client->id;
		__entry->flags = client->core.flags;
		__entry->clients = client->dev->core.n_clients;
	),
	TP_printk("device=%s pid=%d id=%llu flags=%s clients=%u",
		  __entry->device, __entry->pid, __entry->id,
		  __print_flags(__entry->flags, "|",
				{ GSCHED_ATTACH_MPS, "mps" },
				{ GSCHED_ATTACH_SLICE, "slice" },
				{ GSCHED_ATTACH_SERVER, "server" }),
		  __entry->clients)
);

DEFINE_EVENT(gsched_client, gsched_attach,
	TP_PROTO(const struct gsched_client *client),
	TP_ARGS(client));
DEFINE_EVENT(gsched_client, gsched_detach,
	TP_PROTO(const struct gsched_client *client),
	TP_ARGS(client));

/* The answer to a submit: whether it waits (gsched_grant follows), or an error */
TRACE_EVENT(gsched_submit,
	TP_PROTO(const struct gsched_client *client, const struct gsched_submit *req, int ret),
	TP_ARGS(client, req, ret),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(pid_t, pid)
		__field(u32, slot)
		__field(u32, seq)
		__field(u32, tier)
		__field(u32, blocks_per_sm)
		__field(u64, blocks)
		__field(u64, predicted_ns)
		__field(u32, state)
		__field(int, ret)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->slot = req->slot;
		__entry->seq = req->seq;
		__entry->tier = req->tier;
		__entry->blocks_per_sm = req->blocks_per_sm;
		__entry->blocks = req->blocks;
		__entry->predicted_ns = req->predicted_ns;
		__entry->state = ret ? 0 : req->state;
		__entry->ret = ret;
	),
	TP_printk("device=%s pid=%d slot=%u seq=%u tier=%u blocks=%llu blocks_per_sm=%u predicted_ns=%llu state=%s ret=%d",
		  __entry->device, __entry->pid, __entry->slot, __entry->seq, __entry->tier,
		  __entry->blocks, __entry->blocks_per_sm, __entry->predicted_ns,
		  __print_symbolic(__entry->state, { 0, "none" },
				   { GSCHED_STATE_QUEUED, "queued" },
				   { GSCHED_STATE_GRANTED, "granted" }), __entry->ret)
);

/* @old, @lease: GSCHED_LEASE_* */
TRACE_EVENT(gsched_lease,
	TP_PROTO(const struct gsched_client *client, u32 old, u32 lease),
	TP_ARGS(client, old, lease),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(pid_t, pid)
		__field(u32, old)
		__field(u32, lease)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->old = old;
		__entry->lease = lease;
	),
	TP_printk("device=%s pid=%d old=%s lease=%s", __entry->device, __entry->pid,
		  __print_symbolic(__entry->old, { GSCHED_LEASE_NONE, "none" },
				   { GSCHED_LEASE_NOTIFY, "notify" },
				   { GSCHED_LEASE_FREE, "free" }),
		  __print_symbolic(__entry->lease, { GSCHED_LEASE_NONE, "none" },
				   { GSCHED_LEASE_NOTIFY, "notify" },
				   { GSCHED_LEASE_FREE, "free" }))
);

/* One hold of the device's lock in which the core decided, and how long it lasted up to here */
TRACE_EVENT(gsched_decision,
	TP_PROTO(const struct gsched_device *dev, u64 ns),
	TP_ARGS(dev, ns),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__field(u64, decisions)
		__field(u32, clients)
		__field(u32, active)
		__field(u64, ns)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&dev->dev), GSCHED_NAME_SIZE);
		__entry->decisions = dev->core.decisions;
		__entry->clients = dev->core.n_clients;
		__entry->active = dev->core.n_active;
		__entry->ns = ns;
	),
	TP_printk("device=%s decisions=%llu clients=%u active=%u ns=%llu",
		  __entry->device, __entry->decisions, __entry->clients, __entry->active,
		  __entry->ns)
);

/* @why: that hpf has replaced one that broke its contract; else empty */
TRACE_EVENT(gsched_policy,
	TP_PROTO(const struct gsched_device *dev, const char *why),
	TP_ARGS(dev, why),
	TP_STRUCT__entry(
		__array(char, device, GSCHED_NAME_SIZE)
		__array(char, policy, GSCHED_NAME_SIZE)
		__array(char, why, 160)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&dev->dev), GSCHED_NAME_SIZE);
		strscpy(__entry->policy, dev->core.policy->name, GSCHED_NAME_SIZE);
		strscpy(__entry->why, why, sizeof(__entry->why));
	),
	TP_printk("device=%s policy=%s why=\"%s\"", __entry->device, __entry->policy, __entry->why)
);

#endif /* GSCHED_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
