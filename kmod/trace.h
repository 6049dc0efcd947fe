/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints gsched:*: what was decided for which task. base and limit are in 1/1024 CapSM. */
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
		__field(u32, base)
		__field(u32, limit)
	),
	TP_fast_assign(
		strscpy(__entry->device, dev_name(&client->dev->dev), GSCHED_NAME_SIZE);
		__entry->pid = client->core.pid;
		__entry->slot = task->slot;
		__entry->seq = task->seq;
		__entry->base = GSCHED_WINDOW_BASE(task->window);
		__entry->limit = GSCHED_WINDOW_LIMIT(task->window);
	),
	TP_printk("device=%s pid=%d slot=%u seq=%u base=%u limit=%u",
		  __entry->device, __entry->pid, __entry->slot, __entry->seq, __entry->base, __entry->limit)
);

DEFINE_EVENT(gsched_task, gsched_grant,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task), TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_evict,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task), TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_grow,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task), TP_ARGS(client, task));
DEFINE_EVENT(gsched_task, gsched_done,
	TP_PROTO(const struct gsched_client *client, const struct gsc_task *task), TP_ARGS(client, task));

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
				{ GSCHED_ARB_PASS, "pass" }),
		  __entry->bands, __entry->share, __entry->in_flight_us)
);

#endif /* GSCHED_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
