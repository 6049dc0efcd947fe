/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * gsched: several CUDA programs on one GPU, under quotas and priorities.
 *
 * This is the whole ABI between a client (one process on one device) and the arbiter that decides
 * for the device. The arbiter is the kernel module, reached through /dev/gsched, or gschedd's
 * embedded arbiter, reached through a SOCK_SEQPACKET socket that carries the same structures
 * (libgsched/proto.h).
 *
 * Rules of every call
 *  - Each structure begins with `size`, set by the caller to the sizeof it was compiled with. A
 *    shorter structure than the arbiter's is completed with zeroes, a longer one is taken if its
 *    tail is zero.
 *  - Errors: ENOTTY no such call; EFAULT bad pointer; EINVAL size too small, or a number out of
 *    range; E2BIG the unknown tail is not zero; EOPNOTSUPP unknown flag or a reserved field not
 *    zero, or a reserved tier; ENOENT no such device; EBUSY already attached, or the slot is in
 *    use; ENOTCONN not attached; EPERM / EACCES not allowed; EINTR a signal came first; ENOSPC the
 *    device has as many clients as it takes; EDQUOT the user has half of the places that others
 *    leave, or a memory.max would be exceeded; ENODEV the device went away: DEVICE_DEL with
 *    GSCHED_DEVICE_DEL_FORCE, or the daemon ended; ENOMEM no memory, for DEVICE_ADD, ATTACH, and
 *    the first SUBMIT of a slot: nothing has changed. EAGAIN is of read(2) only.
 *  - Times are nanoseconds. Capacity is in 1/1024 CapSM (SMGuard 4.1): GSCHED_CAPSM is the capacity
 *    of one SM.
 *  - Whatever the client or its GPU writes into a page is a hint. It is checked and never used as
 *    an index.
 */
#ifndef _UAPI_LINUX_GSCHED_H
#define _UAPI_LINUX_GSCHED_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GSCHED_DEVICE_NODE	"/dev/gsched"

#define GSCHED_CAPSM		1024	/* capacity units in one CapSM */
#define GSCHED_SLOTS		64	/* task slots of a client */
#define GSCHED_SMS_MAX		1024	/* most SMs of a device */
#define GSCHED_UUID_SIZE	16
#define GSCHED_NAME_SIZE	32

#define GSCHED_IOC_TYPE		0xE7
#define GSCHED_IOC_INFO		_IO(GSCHED_IOC_TYPE, 0x00)	/* struct gsched_info */
/* struct gsched_device_add, CAP_SYS_ADMIN */
#define GSCHED_IOC_DEVICE_ADD	_IO(GSCHED_IOC_TYPE, 0x01)
/* struct gsched_device_del, CAP_SYS_ADMIN */
#define GSCHED_IOC_DEVICE_DEL	_IO(GSCHED_IOC_TYPE, 0x02)
#define GSCHED_IOC_ATTACH	_IO(GSCHED_IOC_TYPE, 0x03)	/* struct gsched_attach */
#define GSCHED_IOC_SUBMIT	_IO(GSCHED_IOC_TYPE, 0x04)	/* struct gsched_submit */
#define GSCHED_IOC_COMPLETE	_IO(GSCHED_IOC_TYPE, 0x05)	/* struct gsched_complete */
#define GSCHED_IOC_REPORT	_IO(GSCHED_IOC_TYPE, 0x06)	/* struct gsched_report */

/* struct gsched_info.features */
#define GSCHED_FEATURE_LEASE	(1ULL << 0)	/* the lease word is used */
#define GSCHED_FEATURE_FORCE	(1ULL << 1)	/* GSCHED_DEVICE_DEL_FORCE */
#define GSCHED_FEATURE_BANDS	(1ULL << 2)	/* channel groups, time slices, turns */
#define GSCHED_FEATURE_MEMORY	(1ULL << 3)	/* memory.max and GSCHED_REPORT_MEMORY */

/**
 * struct gsched_info - what this arbiter can do
 * @size: sizeof(struct gsched_info)
 * @flags: in: must be 0
 * @features: out: GSCHED_FEATURE_*
 * @devices: out: number of devices known
 * @__reserved: must be 0
 */
struct gsched_info {
	__u32 size;
	__u32 flags;
	__aligned_u64 features;
	__u32 devices;
	__u32 __reserved;
};

/**
 * struct gsched_device_add - make a GPU known to the arbiter
 * @size: sizeof(struct gsched_device_add)
 * @flags: must be 0
 * @uuid: the CUDA device's UUID (cuDeviceGetUuid). EEXIST if known already with the same @name and
 *	@sms, or if the name is taken
 * @name: NUL-terminated, [a-z0-9_-]+, the name in configfs and sysfs, e.g. "gpu0"
 * @sms: number of SMs, 1 to GSCHED_SMS_MAX
 * @__reserved: must be 0
 */
struct gsched_device_add {
	__u32 size;
	__u32 flags;
	__u8 uuid[GSCHED_UUID_SIZE];
	char name[GSCHED_NAME_SIZE];
	__u32 sms;
	__u32 __reserved;
};

/* struct gsched_device_del.flags */
#define GSCHED_DEVICE_DEL_FORCE	(1U << 0)	/* clients or not */
#define GSCHED_DEVICE_DEL__ALL	(GSCHED_DEVICE_DEL_FORCE)

/**
 * struct gsched_device_del - forget a GPU
 * @size: sizeof(struct gsched_device_del)
 * @flags: GSCHED_DEVICE_DEL_*
 * @uuid: which one. EBUSY while a client is attached or a group below it exists
 *
 * With GSCHED_DEVICE_DEL_FORCE clients are no obstacle: each is detached and gets EVENT_GONE, its
 * windows are opened to the whole device, and its calls return ENODEV from then on. Groups are:
 * their names are the operator's to remove.
 */
struct gsched_device_del {
	__u32 size;
	__u32 flags;
	__u8 uuid[GSCHED_UUID_SIZE];
};

/* struct gsched_attach.flags */
/* this process runs under MPS: the device can be shared in space */
#define GSCHED_ATTACH_MPS	(1U << 0)
#define GSCHED_ATTACH_SLICE	(1U << 1)	/* it can set the time slice of its channel group */
/* an MPS server: owns a channel group and submits nothing */
#define GSCHED_ATTACH_SERVER	(1U << 2)
#define GSCHED_ATTACH__ALL	(GSCHED_ATTACH_MPS | GSCHED_ATTACH_SLICE | GSCHED_ATTACH_SERVER)

/*
 * How a device is shared: sysfs `mode`, struct gsched_arb_header.mode. A *band* is one hardware
 * channel group: a process, or an MPS server with its clients. Inside a band clients share in
 * space, on SM windows; bands share in time.
 */
/* several bands, one at a time by full eviction (FLEP 4.1): slices cannot be set */
#define GSCHED_MODE_TEMPORAL	0
#define GSCHED_MODE_SPATIAL	1	/* one band */
/* several bands, which the GPU switches by their time slices */
#define GSCHED_MODE_SLICED	2

/**
 * struct gsched_attach - become a client of a device
 * @size: sizeof(struct gsched_attach)
 * @flags: GSCHED_ATTACH_*
 * @uuid: in: the CUDA device's UUID. ENOENT if it was not added, ENOSPC if the device has as many
 *	clients as it takes (sysfs clients_max), EDQUOT if the caller's user has half of what other
 *	users leave, and is no administrator
 * @client_id: out: unique on this arbiter
 * @arb_offset: out: mmap offset of the arbiter's page, to be mapped PROT_READ, MAP_SHARED
 * @arb_size: out: its length in bytes (sizeof(struct gsched_arb_page)), which the mapping's is,
 *	rounded up to whole pages
 * @cl_offset: out: mmap offset of the client's page, to be mapped PROT_READ|PROT_WRITE, MAP_SHARED
 * @cl_size: out: its length in bytes (sizeof(struct gsched_cl_page)), likewise
 * @sms: out: SMs of the device
 * @mode: out: GSCHED_MODE_* at this moment; the header of the arbiter's page has it later
 * @priority: out: gpu.priority of the group, for the choice of stream priorities
 * @__reserved: must be 0
 * @channel_group: in: any number that is the same for processes in one hardware channel group (an
 *	MPS server and its clients) and different for others. The same number of another user is
 *	another group. 0: a group of its own, or not known: with GSCHED_ATTACH_MPS clients of group 0
 *	count as one. A hint: it only decides whom this client shares with in space
 *
 * The group is the deepest one that is bound to the process (procs, also through its ancestors) or
 * to its cgroup; else the root group. Both mappings may be pinned for long (pin_user_pages_fast
 * with FOLL_LONGTERM), as CUDA does.
 */
struct gsched_attach {
	__u32 size;
	__u32 flags;
	__u8 uuid[GSCHED_UUID_SIZE];
	__aligned_u64 client_id;
	__aligned_u64 arb_offset;
	__aligned_u64 arb_size;
	__aligned_u64 cl_offset;
	__aligned_u64 cl_size;
	__u32 sms;
	__u32 mode;
	__u32 priority;
	__u32 __reserved;
	__aligned_u64 channel_group;
};

/* What can be done with a running kernel: gsched_submit.tier */
#define GSCHED_TIER_BLOCK	0	/* rewritten: preemptible at block-task ends */
#define GSCHED_TIER_SLICE	1	/* reserved: opaque, confined to an SM partition */
#define GSCHED_TIER_LAUNCH	2	/* opaque, scheduled whole */

/*
 * What a kernel demands most of the GPU: gsched_submit.intensity, the classes of Slate's table I.
 * Low, medium or high compute intensity; or medium or high memory intensity, which counts more.
 */
#define GSCHED_INTENSITY_UNKNOWN	0
#define GSCHED_INTENSITY_L_C	1
#define GSCHED_INTENSITY_M_C	2
#define GSCHED_INTENSITY_H_C	3
#define GSCHED_INTENSITY_M_M	4
#define GSCHED_INTENSITY_H_M	5
#define GSCHED_INTENSITY__MAX	GSCHED_INTENSITY_H_M

/* What became of a task: struct gsched_submit.state, and GSCHED_A_STATE of netlink */
#define GSCHED_STATE_QUEUED	1	/* it waits for its grant */
#define GSCHED_STATE_GRANTED	2	/* it may launch, or runs */

/* struct gsched_submit.flags */
/* return at once, even if the task has to wait: it is queued then, and EVENT_GRANT follows */
#define GSCHED_SUBMIT_NOWAIT	(1U << 0)
#define GSCHED_SUBMIT__ALL	(GSCHED_SUBMIT_NOWAIT)

/**
 * struct gsched_submit - ask to launch a task, and wait until it may
 * @size: sizeof(struct gsched_submit)
 * @flags: GSCHED_SUBMIT_*
 * @slot: 0 .. GSCHED_SLOTS - 1. EBUSY while another task is in it
 * @seq: the client's number of this task, not 0
 * @tier: GSCHED_TIER_*. EOPNOTSUPP GSCHED_TIER_SLICE
 * @blocks_per_sm: M: how many blocks of this kernel an SM hosts, 1 .. 32 (SMGuard 4.1)
 * @blocks: block-tasks of the grid, not 0
 * @predicted_ns: predicted time alone on the device (T_e of FLEP 5.2.1), 0 unknown
 * @block_ns: predicted time of one block-task: bounds the eviction delay. 0 unknown
 * @stream: any number that is the same for tasks that the client knows to run one after another, in
 *	the order of their SUBMITs (a CUDA stream's), and different for others. 0 unknown
 * @intensity: GSCHED_INTENSITY_*, EINVAL above GSCHED_INTENSITY__MAX. A hint, for policy corun:
 *	which kernels may run side by side
 * @state: out: GSCHED_STATE_GRANTED; with GSCHED_SUBMIT_NOWAIT also GSCHED_STATE_QUEUED
 * @window: out: what was granted, as in struct gsched_arb_slot; 0 while it is queued
 *
 * Returns 0 once the task may launch, with GSCHED_SUBMIT_NOWAIT as soon as it is queued. A signal
 * during the wait: EINTR and the task is withdrawn. After any error there is no task.
 */
struct gsched_submit {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 seq;
	__u32 tier;
	__u32 blocks_per_sm;
	__aligned_u64 blocks;
	__aligned_u64 predicted_ns;
	__aligned_u64 block_ns;
	__aligned_u64 stream;
	__u32 intensity;
	__u32 state;
	__aligned_u64 window;
};

/* struct gsched_complete.flags */
/* the launch failed or was never made: account nothing */
#define GSCHED_COMPLETE_CANCEL	(1U << 0)
#define GSCHED_COMPLETE__ALL	(GSCHED_COMPLETE_CANCEL)

/**
 * struct gsched_complete - a task ended
 * @size: sizeof(struct gsched_complete)
 * @flags: GSCHED_COMPLETE_*
 * @slot: the slot; EINVAL out of range
 * @seq: the task; ENOENT if the slot does not hold it
 * @ran_ns: time it ran by the GPU's clock, 0 unknown. A hint: bounded by the wall time since the
 *	grant
 */
struct gsched_complete {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 seq;
	__aligned_u64 ran_ns;
};

/* struct gsched_report.activity, struct gsched_cl_header.activity */
#define GSCHED_ACTIVITY_IDLE	0	/* nothing on the GPU, and nothing held back */
#define GSCHED_ACTIVITY_WAITING	1	/* nothing on the GPU; launches wait for the band's turn */
/* work is on the GPU, or was within the last milliseconds */
#define GSCHED_ACTIVITY_BUSY	2

/* struct gsched_report.flags: which fields count */
#define GSCHED_REPORT_ACTIVITY	(1U << 0)
#define GSCHED_REPORT_SLICE	(1U << 1)
#define GSCHED_REPORT_STREAMS	(1U << 2)
#define GSCHED_REPORT_BLOCKS	(1U << 3)
#define GSCHED_REPORT_MEMORY	(1U << 4)
/*
 * with GSCHED_REPORT_MEMORY: @memory is what it will hold once it has allocated. EDQUOT if that is
 * more than it holds and more than a memory.max allows; then nothing is reported
 */
#define GSCHED_REPORT_ASKS	(1U << 5)
#define GSCHED_REPORT__ALL	(GSCHED_REPORT_ACTIVITY | GSCHED_REPORT_SLICE | \
				 GSCHED_REPORT_STREAMS | GSCHED_REPORT_BLOCKS | \
				 GSCHED_REPORT_MEMORY | GSCHED_REPORT_ASKS)

#define GSCHED_MEMORY_MAX	(1ULL << 50)	/* bytes, more than any client holds */

/**
 * struct gsched_report - what the client sees of its band, and the memory it holds
 * @size: sizeof(struct gsched_report)
 * @flags: GSCHED_REPORT_*
 * @activity: GSCHED_ACTIVITY_*; to be told at changes while GSCHED_ARB_REPORT is set, at other
 *	times ignored
 * @slice_us: the time slice that is in force by the driver's answer; 0: none could be set,
 *	@slice_error says why
 * @slice_error: positive errno, 0 none. EOPNOTSUPP: no channel group was seen; EIO: the driver
 *	refused
 * @prioritised: 1: its launches lately were all on streams of the greatest priority, 0 not. EINVAL
 *	otherwise
 * @block_us: thread blocks that take longer had at most a 64th of its kernels' time lately; 0 not
 *	known. To be told at changes while GSCHED_ARB_TIMED is set; without it the last one is
 *	forgotten
 * @__reserved: must be 0
 * @memory: bytes of the device's memory that it holds in all its contexts: at most
 *	GSCHED_MEMORY_MAX. To be told at changes; while GSCHED_ARB_LIMITED is set to be asked for
 *	before
 * @memory_max: out: least memory.max of its group and those above; U64_MAX: none
 * @memory_room: out: how much more it may allocate under these limits; U64_MAX: no limit
 *
 * One that ends with @block_us, as of older libraries, is accepted, too.
 */
struct gsched_report {
	__u32 size;
	__u32 flags;
	__u32 activity;
	__u32 slice_us;
	__u32 slice_error;
	__u32 prioritised;
	__u32 block_us;
	__u32 __reserved;
	__aligned_u64 memory;
	__aligned_u64 memory_max;
	__aligned_u64 memory_room;
};

/* struct gsched_event.type */
#define GSCHED_EVENT_GRANT	1	/* a task that waited may launch */
#define GSCHED_EVENT_EVICT	2	/* the window of a running task shrank */
#define GSCHED_EVENT_GROW	3	/* the window of a running task grew: launch a wing */
/* the device was removed, or the arbiter ends: run unmanaged. The last event */
#define GSCHED_EVENT_GONE	4
/* slice_us, flags, share or in_flight_us of the arbiter's page changed; @slot and @seq are 0 */
#define GSCHED_EVENT_BAND	5

#define GSCHED_EVENT_SIZE_MAX	256	/* no event is longer */

/**
 * struct gsched_event - one event
 * @size: of this one, in bytes: a multiple of 8, no less than this structure
 * @type: GSCHED_EVENT_*
 * @slot: whose
 * @seq: task
 * @window: the window now, as in struct gsched_arb_slot
 * @time_ns: CLOCK_MONOTONIC of the decision
 *
 * read(2) returns events one behind the other, each whole; poll(2) says POLLIN when there is one. A
 * later arbiter may have longer events, and types that are not here: a reader goes on by @size,
 * takes the head that it knows of a longer event, and skips one of a type that it does not know.
 *
 * Events of one slot coalesce: only the last state is kept until it is read, so none is ever lost.
 * read(2): EINVAL if the buffer is too small for the first event, which one of
 * GSCHED_EVENT_SIZE_MAX never is; EAGAIN with O_NONBLOCK.
 */
struct gsched_event {
	__u32 size;
	__u32 type;
	__u32 slot;
	__u32 seq;
	__aligned_u64 window;
	__aligned_u64 time_ns;
};

/*
 * Pages
 *
 * A window is how much of the device a task may use, in 1/1024 CapSM: a worker at position p may
 * run while p + weight <= window, where weight is GSCHED_CAPSM / blocks_per_sm, and p is its SM's
 * rank * GSCHED_CAPSM plus its place on that SM * weight. A task gives ranks to the SMs that it is
 * on. A client may have its workers count themselves instead (rewriter/abi.h). It is at most
 * GSCHED_SMS_MAX * GSCHED_CAPSM: the upper half of the word is 0.
 */

/* struct gsched_arb_header.lease */
#define GSCHED_LEASE_NONE	0	/* submit and wait for the grant */
/* submit (NOWAIT) and launch: the only client of its band's highest priority */
#define GSCHED_LEASE_NOTIFY	1
/*
 * launch without submit: the only client of its band, in temporal mode of the device, and without a
 * quota
 */
#define GSCHED_LEASE_FREE	2

/* struct gsched_arb_header.flags */
/* it is another band's turn: launch nothing, report WAITING */
#define GSCHED_ARB_CLOSED	(1U << 0)
/* the arbiter wants to know of activity: other bands may have to wait */
#define GSCHED_ARB_REPORT	(1U << 1)
/* no more than in_flight_us of work on the GPU at a time */
#define GSCHED_ARB_PACED	(1U << 2)
#define GSCHED_ARB_ALONE	(1U << 3)	/* no other client is in its band */
/*
 * all more important clients of its band, one at least, launch on streams of the greatest priority:
 * they get what short blocks leave, without asking
 */
#define GSCHED_ARB_YIELDS	(1U << 4)
/* nor can one come: what competes with it does so in time, by slices */
#define GSCHED_ARB_PRIVATE	(1U << 5)
/*
 * launch kernels of long block-tasks so that these can be left in their middle (block_ns is then
 * the time to leave): it costs less than SMs that are held for somebody more important
 */
#define GSCHED_ARB_RESUMABLE	(1U << 6)
/* tell how long thread blocks take: struct gsched_report.block_us */
#define GSCHED_ARB_TIMED	(1U << 7)
/*
 * for the band's owner: have the GPU switch away at the ends of thread blocks, which all take a
 * short time, not in their middle
 */
#define GSCHED_ARB_BLOCK_END	(1U << 8)
/*
 * launches of tier launch need not be submitted: no other client of its band has windows that could
 * have to make room, and none waits for another: they are equals, or the more important one has
 * streams of the greatest priority
 */
#define GSCHED_ARB_PASS		(1U << 9)
/*
 * what the client's next kernel needs is kept free, and how much that is has been learnt: under
 * GSCHED_LEASE_NOTIFY submit behind the launch, and tell few times
 */
#define GSCHED_ARB_HELD		(1U << 10)
/* its group or one above has a memory.max: ask before device memory is allocated */
#define GSCHED_ARB_LIMITED	(1U << 11)

/* struct gsched_arb_header.share: all of the device's time */
#define GSCHED_SHARE_ALL	(1U << 20)

/**
 * struct gsched_arb_header - first page of the arbiter's mapping, written by the arbiter only
 * @lease: GSCHED_LEASE_*. A client that launches on LEASE_FREE first fills its
 *	line of the slot, @seq last, then a full fence, then reads @lease again. The arbiter stores
 *	@lease, then a full fence, then reads the slots: so a launch is either seen by the arbiter
 *	or submitted by the client.
 * @mode: GSCHED_MODE_*
 * @sms: SMs of the device
 * @priority: gpu.priority of the group now
 * @top_priority: highest gpu.priority among the attached clients
 * @flags: GSCHED_ARB_*
 * @slice_us: the time slice that the band's owner has to set for its channel group; 0: whatever the
 *	driver chose
 * @bands: bands present on the device
 * @share: of the device's time, in 1/GSCHED_SHARE_ALL, for launches that no window can hold;
 *	GSCHED_SHARE_ALL: no limit
 * @in_flight_us: see GSCHED_ARB_PACED
 * @__reserved: 0
 */
struct gsched_arb_header {
	__u32 lease;
	__u32 mode;
	__u32 sms;
	__u32 priority;
	__u32 top_priority;
	__u32 flags;
	__u32 slice_us;
	__u32 bands;
	__u32 share;
	__u32 in_flight_us;
	__u32 __reserved[1014];
};

/**
 * struct gsched_arb_slot - window of one task slot, one cache line; the GPU reads @window
 * @window: of the task in the slot. While the slot is empty: what a leased launch may use
 * @generation: counts changes of @window
 * @__reserved: 0
 */
struct gsched_arb_slot {
	__aligned_u64 window;
	__u32 generation;
	__u32 __reserved[13];
};

struct gsched_arb_page {
	struct gsched_arb_header header;
	struct gsched_arb_slot slot[GSCHED_SLOTS];
};

/**
 * struct gsched_cl_slot - one task slot as the client and its GPU report it, two cache lines: the
 * first is written by the client, the second by the GPU and, before a launch, by the client
 * @seq: the task in the slot, 0 none. Stored last: what else is in the line is of this task then
 * @tier: as in struct gsched_submit, like all up to @stream
 * @blocks_per_sm: likewise. What a launch under a lease states is all that the arbiter learns of it
 * @intensity: likewise
 * @blocks: likewise
 * @predicted_ns: likewise
 * @block_ns: likewise
 * @stream: likewise
 * @launch_ns: CLOCK_MONOTONIC of the launch under a lease: how far the task is when it is found.
 *	0 not known
 * @launched: workers launched for the task, wings included. 0 for a task that is not tier block
 * @__reserved_client: must be 0
 * @start_ns: %globaltimer at the first worker's start, 0 not started
 * @end_ns: %globaltimer when the last block-task was done, 0 not ended
 * @retired: the stream: seq of the last task whose launch ended and whose done gate opened
 * @finished: seq, when the last block-task was done
 * @left: workers that left before the end, because the window excluded them
 * @seen_limit: the window that the running kernel acts on
 * @__reserved_gpu: must be 0
 *
 * Where memory is cached in lines of 128 bytes, or the one beside a line of 64 is fetched with it, a
 * slot shares its line with no other one.
 */
struct gsched_cl_slot {
	__u32 seq;
	__u32 tier;
	__u32 blocks_per_sm;
	__u32 intensity;
	__aligned_u64 blocks;
	__aligned_u64 predicted_ns;
	__aligned_u64 block_ns;
	__aligned_u64 stream;
	__aligned_u64 launch_ns;
	__u32 launched;
	__u32 __reserved_client;
	__aligned_u64 start_ns;
	__aligned_u64 end_ns;
	__u32 retired;
	__u32 finished;
	__u32 left;
	__u32 seen_limit;
	__u32 __reserved_gpu[8];
};

/**
 * struct gsched_cl_header - first page of the client's mapping, written by the client only
 * @managed: launches that gsched managed, by tier
 * @unmanaged: launches forwarded without management
 * @wings: wings launched
 * @why: NUL-terminated: why this client, or its last kernel, is not managed as well as it could be
 * @resumable: of @managed[GSCHED_TIER_BLOCK], launches whose block-tasks can be left in their
 *	middle
 * @leased_tasks: tasks in slots that ended under LEASE_FREE and that the arbiter was never told of
 * @leased_ns: the time they ran by the GPU's clock, or are predicted to have
 * @leased_usage: the same, times the CapSM each would fill: CapSM-ns
 * @slice_us: the time slice in force, 0 unknown
 * @slice_error: as in struct gsched_report
 * @activity: GSCHED_ACTIVITY_*
 * @block_end: 1: the GPU leaves its channel group at the ends of thread blocks
 * @passed: launches that nobody was asked about, in no slot: all of a client whose band is private
 *	and whose window is the whole device, opaque ones of a client that is alone in its band.
 *	They are tasks of gpu.stat, too
 * @held_ns: time that launches were held back, by turns or a share
 * @paced_ns: GPU time of launches that were timed while turns, activity or a share were asked for;
 *	under a share an estimate for all others, too
 * @__reserved: must be 0
 *
 * The leased_* words and paced_ns only grow. The arbiter adds what they grew by to gpu.stat when
 * that is read, before the client's lease or group changes and when it detaches; of the former no
 * more than the time since it last did allows, of paced_ns no more than the time since it attached.
 */
struct gsched_cl_header {
	__aligned_u64 managed[3];
	__aligned_u64 unmanaged;
	__aligned_u64 wings;
	char why[256];
	__aligned_u64 resumable;
	__aligned_u64 leased_tasks;
	__aligned_u64 leased_ns;
	__aligned_u64 leased_usage;
	__u32 slice_us;
	__u32 slice_error;
	__u32 activity;
	__u32 block_end;
	__aligned_u64 passed;
	__aligned_u64 held_ns;
	__aligned_u64 paced_ns;
	__u32 __reserved[932];
};

struct gsched_cl_page {
	struct gsched_cl_header header;
	struct gsched_cl_slot slot[GSCHED_SLOTS];
};

#endif /* _UAPI_LINUX_GSCHED_H */
