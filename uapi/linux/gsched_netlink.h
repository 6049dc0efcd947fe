/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Generic netlink family "gsched", version 1: what the module knows, as dumps, and events as they
 * happen. For one reader of everything, a monitor or an exporter; configfs and sysfs have the same
 * numbers by the object.
 *
 * A dump shows an administrator (CAP_SYS_ADMIN in the initial user namespace) everything. It shows
 * another user, by the effective user id, the own clients and their tasks, and the devices, bands
 * and groups that they are in; what tells when the kernels of others run is left out (marked *).
 * By a socket that somebody else made it is EPERM. Events take CAP_SYS_ADMIN (EPERM). The family
 * is in the initial network namespace only. Nothing can be changed here.
 *
 * Dumps (NLM_F_DUMP; without it EOPNOTSUPP). The answers have the command of the request. A
 * request may have GSCHED_A_DEVICE: of this device only, ENODEV if there is none of that name. Any
 * other attribute is EINVAL. A dump in several parts between which an object came or went has
 * NLM_F_DUMP_INTR: make it again. In brackets: not always there.
 *
 *	DEVICE_GET	DEVICE UUID SMS MODE POLICY [FAULT] CLIENTS* DECISIONS*
 *	GROUP_GET	DEVICE GROUP [CAPSM_MAX] CAPSM_MIN CAPSM_CURRENT* WEIGHT PRIORITY
 *			LATENCY_US [BAND] [MEMORY_MAX] MEMORY* CLIENTS* STAT* PREEMPTION*
 *	CLIENT_GET	DEVICE CLIENT PID UID GROUP BAND LEASE PRIORITY CAPSM_CURRENT MEMORY
 *			ARB_FLAGS SLICE_US SHARE STAT PREEMPTION
 *	TASK_GET	DEVICE CLIENT PID SLOT SEQ STATE TIER BLOCKS LIMIT WAIT_NS RUN_NS USED_NS
 *			EVICTIONS STREAM SEEN LAUNCHED LEFT START_NS
 *			of a launch under a lease, of which only the client's page tells: the same
 *			without STATE, WAIT_NS to STREAM
 *	BAND_GET	DEVICE BAND [PID] PRIORITY BAND_WEIGHT SLICE_US APPLIED_US SLICE_ERROR
 *			BLOCK_END ACTIVITY TURN WHY
 *
 * Events: messages of GSCHED_CMD_EVENT with EVENT, TIME_NS and DEVICE to one of two multicast
 * groups, and what else is beside their names in enum gsched_nl_event. A reader that is too slow
 * gets ENOBUFS from its socket, as with any netlink, and has to dump anew. Launches under a lease
 * of which the arbiter is not told are no events.
 */
#ifndef _UAPI_LINUX_GSCHED_NETLINK_H
#define _UAPI_LINUX_GSCHED_NETLINK_H

#define GSCHED_GENL_NAME	"gsched"
#define GSCHED_GENL_VERSION	1

#define GSCHED_MCGRP_EVENTS	"events"	/* objects that come, go and change */
#define GSCHED_MCGRP_TASKS	"tasks"		/* decisions for tasks: several per launch */

enum gsched_nl_cmd {
	GSCHED_CMD_UNSPEC,
	GSCHED_CMD_DEVICE_GET,
	GSCHED_CMD_GROUP_GET,
	GSCHED_CMD_CLIENT_GET,
	GSCHED_CMD_TASK_GET,
	GSCHED_CMD_BAND_GET,
	GSCHED_CMD_EVENT,		/* only ever sent by the module */
	__GSCHED_CMD_MAX,
	GSCHED_CMD_MAX = __GSCHED_CMD_MAX - 1
};

enum gsched_nl_attr {
	GSCHED_A_UNSPEC,
	GSCHED_A_PAD,
	GSCHED_A_DEVICE,	/* string: "gpu0" */
	GSCHED_A_UUID,		/* 16 bytes: the CUDA device's */
	GSCHED_A_SMS,		/* u32 */
	GSCHED_A_MODE,		/* u32: GSCHED_MODE_* in force */
	GSCHED_A_POLICY,	/* string: in force */
	GSCHED_A_FAULT,		/* string: which policy hpf has replaced, and why */
	GSCHED_A_CLIENTS,	/* u32: attached to the device; of a group, in itself */
	GSCHED_A_DECISIONS,	/* u64: since the device was added */
	GSCHED_A_GROUP,		/* string: "a/b", "/" the root group */
	GSCHED_A_CAPSM_MAX,	/* u32, 1/1024 CapSM; not there: no limit */
	GSCHED_A_CAPSM_MIN,	/* u32, likewise */
	GSCHED_A_CAPSM_CURRENT,	/* u32, likewise: granted at this moment */
	GSCHED_A_WEIGHT,	/* u32: gpu.weight */
	GSCHED_A_PRIORITY,	/* u32: gpu.priority; of a client, in force */
	GSCHED_A_LATENCY_US,	/* u32: gpu.latency_target_us, 0 none */
	GSCHED_A_BAND,		/* string: gpu.band in force; not there: none. Else its name */
	GSCHED_A_STAT,		/* nested: enum gsched_nl_stat */
	GSCHED_A_CLIENT,	/* u64: struct gsched_attach.client_id */
	GSCHED_A_PID,		/* u32, in the initial namespace; of a band, its MPS server's */
	GSCHED_A_UID,		/* u32, likewise: effective when it attached */
	GSCHED_A_LEASE,		/* u32: GSCHED_LEASE_* */
	GSCHED_A_ARB_FLAGS,	/* u32: GSCHED_ARB_* of its page */
	GSCHED_A_SLICE_US,	/* u32: its channel group's time slice, 0 the driver's */
	GSCHED_A_SHARE,		/* u32: of the device's time, in 1/GSCHED_SHARE_ALL */
	GSCHED_A_SLOT,		/* u32 */
	GSCHED_A_SEQ,		/* u32 */
	GSCHED_A_STATE,		/* u32: GSCHED_STATE_* */
	GSCHED_A_TIER,		/* u32: GSCHED_TIER_* */
	GSCHED_A_BLOCKS,	/* u64 */
	GSCHED_A_LIMIT,		/* u32: its window, 1/1024 CapSM */
	GSCHED_A_WAIT_NS,	/* u64: from submit to grant, or until now */
	GSCHED_A_RUN_NS,	/* u64: since the grant; after the end, by the GPU's clock */
	GSCHED_A_EVENT,		/* u32: enum gsched_nl_event */
	GSCHED_A_TIME_NS,	/* u64: CLOCK_MONOTONIC */
	GSCHED_A_INTENSITY,	/* u32: GSCHED_INTENSITY_*; not there: unknown */
	GSCHED_A_PREEMPTION,	/* nested: enum gsched_nl_preemption */
	GSCHED_A_USED_NS,	/* u64: CapSM times time; what tasks use together is one's only */
	GSCHED_A_EVICTIONS,	/* u32: times its window shrank */
	GSCHED_A_STREAM,	/* u64: as submitted */
	GSCHED_A_SEEN,		/* u32: window that the GPU acts on, as its page says; so these: */
	GSCHED_A_LAUNCHED,	/* u32: workers */
	GSCHED_A_LEFT,		/* u32: workers that have left */
	GSCHED_A_START_NS,	/* u64: GPU time of the start */
	GSCHED_A_BAND_WEIGHT,	/* u64: in 1/1000 */
	GSCHED_A_APPLIED_US,	/* u32: time slice in force, 0 the driver's or unknown */
	GSCHED_A_SLICE_ERROR,	/* u32: errno of the driver's refusal, 0 none */
	GSCHED_A_BLOCK_END,	/* u32: 1 the GPU leaves it at the ends of thread blocks only */
	GSCHED_A_ACTIVITY,	/* u32: GSCHED_ACTIVITY_* */
	GSCHED_A_TURN,		/* u32: 1 it has the turn of its equals */
	GSCHED_A_WHY,		/* string: what protects or limits it, in words */
	GSCHED_A_MEMORY_MAX,	/* u64, bytes: memory.max; not there: no limit */
	GSCHED_A_MEMORY,	/* u64, bytes of the device's memory that are held */
	__GSCHED_A_MAX,
	GSCHED_A_MAX = __GSCHED_A_MAX - 1
};

/* u64 each: the lines of gpu.stat, with groups below included */
enum gsched_nl_stat {
	GSCHED_STAT_UNSPEC,
	GSCHED_STAT_PAD,
	GSCHED_STAT_USAGE_USEC,
	GSCHED_STAT_CAPSM_USEC,
	GSCHED_STAT_RAN_USEC,
	GSCHED_STAT_PACED_USEC,
	GSCHED_STAT_TASKS,
	GSCHED_STAT_GRANTS,
	GSCHED_STAT_EVICTIONS,
	GSCHED_STAT_GROWTHS,
	GSCHED_STAT_WAIT_USEC,
	GSCHED_STAT_CANCELLED,
	GSCHED_STAT_DEMANDED_USEC,
	GSCHED_STAT_PROMISED_USEC,	/* of a client 0 */
	__GSCHED_STAT_MAX,
	GSCHED_STAT_MAX = __GSCHED_STAT_MAX - 1
};

/*
 * How long evictions of running tasks took that were measured, with groups below included: what
 * gpu.preemption shows. Bucket i counts those that took at most GSCHED_PREEMPTION_FIRST_US << i and
 * longer than what the bucket before counts, the last one all others. Their number is that of the
 * evictions.
 */
enum gsched_nl_preemption {
	GSCHED_PREEMPTION_UNSPEC,
	GSCHED_PREEMPTION_PAD,
	GSCHED_PREEMPTION_USEC,		/* u64: sum of their times */
	GSCHED_PREEMPTION_BUCKETS,	/* array of u64 */
	__GSCHED_PREEMPTION_MAX,
	GSCHED_PREEMPTION_MAX = __GSCHED_PREEMPTION_MAX - 1
};

#define GSCHED_PREEMPTION_FIRST_US	16

enum gsched_nl_event {
	GSCHED_NL_UNSPEC,
	/* group "events" */
	GSCHED_NL_DEVICE_ADD,	/* UUID SMS */
	GSCHED_NL_DEVICE_DEL,
	GSCHED_NL_GROUP_ADD,	/* GROUP */
	GSCHED_NL_GROUP_DEL,	/* GROUP */
	GSCHED_NL_CLIENT_ADD,	/* CLIENT PID UID GROUP ARB_FLAGS SLICE_US SHARE */
	/* CLIENT PID UID STAT PREEMPTION; behind DONE of each of its tasks */
	GSCHED_NL_CLIENT_DEL,
	GSCHED_NL_BAND,		/* CLIENT PID ARB_FLAGS SLICE_US SHARE: slice or flags changed */
	GSCHED_NL_POLICY,	/* POLICY [FAULT]: set, by a plan, or hpf after a fault */
	/* group "tasks": CLIENT PID SLOT SEQ LIMIT each */
	GSCHED_NL_GRANT,	/* WAIT_NS [INTENSITY]: it may launch */
	GSCHED_NL_EVICT,	/* its window shrank */
	GSCHED_NL_GROW,
	GSCHED_NL_DONE,		/* RUN_NS USED_NS EVICTIONS */
	__GSCHED_NL_MAX,
	GSCHED_NL_MAX = __GSCHED_NL_MAX - 1
};

#endif /* _UAPI_LINUX_GSCHED_NETLINK_H */
