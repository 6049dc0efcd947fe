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
		__entry->pid = client->nr;
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

#endif /* GSCHED_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
