/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision core: events in, actions out. No clock, no allocation, no locks, no I/O: the caller
 * gives the time with every event, owns every object, brings memory for tasks as slots are first
 * used (new_task()), and holds one lock per device around every call. Same events, same actions,
 * always.
 *
 * Events change what is known and only mark the device. gsc_commit() takes one decision for all
 * events since the last one and publishes it by the actions; without a mark it does nothing. The
 * caller commits before it releases the lock, and earlier where it needs the outcome of an event.
 *
 * Compiled into the module, into gschedd (the embedded arbiter) and into the tests. shim.h is the
 * one file through which it takes list_head, u32, snprintf and so on from either world. The actions
 * are called with the caller's lock held and must not call back into the core for the same device.
 *
 * Capacity is in units of 1/1024 CapSM throughout, time in ns, priorities 0..99 with the higher one
 * more important.
 *
 * Two levels. A band is one hardware channel group: a process, or an MPS server with its clients.
 * The GPU switches between bands by their time slices, which band.c, slice.c and turn.c decide.
 * Inside a band clients share in space, on SM windows, and each band has the whole device to share
 * out.
 */
#ifndef GSCHED_CORE_H
#define GSCHED_CORE_H

#include "shim.h"
#include <linux/gsched.h>

struct gsc_device;
struct gsc_group;
struct gsc_band;
struct gsc_client;
struct gsc_task;
struct gsc_arb;

/* Why a window changed, for events and tracepoints */
enum gsc_change { GSC_GRANT, GSC_EVICT, GSC_GROW, GSC_CHANGES };

/*
 * Actions, for the client to be told, and for traces: what its page says is there already. done()
 * in the event that ends a task, policy_changed() in whichever call changes it, the others in
 * gsc_commit(). Without one nothing is done.
 */
struct gsc_ops {
	/*
	 * The task may launch (GSC_GRANT: once) or its window changed (task->window). Tasks of one
	 * client share their window: each is told every change of it. GSC_EVICT of a task that
	 * waits: it was launched under a lease.
	 */
	void (*set_window)(struct gsc_task *task, enum gsc_change why);
	/* The client's lease (GSCHED_LEASE_*) changed. @old: its lease before */
	void (*set_lease)(struct gsc_client *client, u32 old);
	/* Call gsc_tick at @when at the latest; 0: no need. Replaces the one before. */
	void (*arm_timer)(struct gsc_device *dev, u64 when);
	/*
	 * A task is over and its capacity back (complete, detach): for tracepoints and statistics.
	 */
	void (*done)(struct gsc_task *task);
	/* client->arb changed: queue GSCHED_EVENT_BAND. Called once in every attach */
	void (*set_band)(struct gsc_client *client, const struct gsc_arb *old);
	/*
	 * dev->policy is another one: it was set, a plan begins or ends, or, if dev->faulty, hpf
	 * has replaced that: to be logged, in the words of gsc_policy_why().
	 */
	void (*policy_changed)(struct gsc_device *dev);
	/* Its process is gone, although it has not detached: somebody else has its descriptor */
	bool (*is_gone)(const struct gsc_client *client);
	/*
	 * Zeroed memory for the tasks of @slot, which @client uses for the first time: in
	 * gsc_submit(), and in gsc_commit() for what was launched under a lease. NULL: there is
	 * none now. The caller frees what is in client->task after the client has detached.
	 */
	struct gsc_task *(*new_task)(struct gsc_client *client, u32 slot);
};

#include "policy.h"
#include "alloc.h"

/*
 * A sum of times, or of times multiplied by capacity. In nanoseconds such sums would wrap: 16384
 * tasks that wait side by side add 2^64 ns in two weeks, 256 bands that each use 1024 SMs in a day.
 */
struct gsc_sum {
	u64 us;
	u32 rest;		/* 1/GSCHED_CAPSM ns */
};

/* What gpu.events counts besides evictions */
enum gsc_event {
	GSC_EVENT_THROTTLED,	/* a launch had to wait for capacity */
	GSC_EVENT_GATED,	/* a client has to wait for its band's turn */
	/* watch.c: an opaque kernel is not completed while others wait for its end */
	GSC_EVENT_OVERDUE,
	/* late.c: a kernel took far longer than usual, and others made way */
	GSC_EVENT_LATE,
	GSC_EVENT_REFUSED,	/* a program found no place among the device's clients */
	GSC_EVENT_MEMORY,	/* memory.c: memory.max did not allow an allocation */
	GSC_EVENT_COUNT
};

struct gsc_counts {
	u64 tasks;			/* that ended */
	u64 cancelled;
	u64 changes[GSC_CHANGES];	/* of windows, by enum gsc_change */
};

struct gsc_stats {
	struct gsc_sum capsm;	/* capacity granted and used, by time */
	struct gsc_sum demanded;	/* demand.c: by its largest task; what capsm.min promised */
	struct gsc_sum promised;	/* not of users and clients */
	struct gsc_sum granted;	/* client time with a limit above 0, by the wall clock */
	struct gsc_sum ran;	/* task time by the GPU's clock */
	struct gsc_sum paced;	/* the same of paced launches, in a slot or not */
	struct gsc_sum wait;	/* submit to grant */
	struct gsc_counts counts;
	u64 events[GSC_EVENT_COUNT];
};

/*
 * delay.c: how long evictions took that were measured. Bucket i is of those of at most
 * GSC_DELAY_FIRST_US << i, which took longer than those of the bucket before; the last one is of
 * all others.
 */
#define GSC_DELAY_FIRST_US	16ULL
#define GSC_DELAY_BUCKETS	18

struct gsc_delays {
	struct gsc_sum sum;
	u64 n[GSC_DELAY_BUCKETS];
};

enum { GSC_PRESSURE_SOME, GSC_PRESSURE_FULL, GSC_PRESSURE_KINDS };
#define GSC_PRESSURE_WINDOWS	3

/* memory.c: device memory, in bytes */
struct gsc_memory {
	u64 max;			/* memory.max, GSC_MEMORY_UNLIMITED */
	u64 current_bytes, peak;	/* held with everything below, now and at most */
};

#define GSC_MEMORY_UNLIMITED	U64_MAX

/* pressure.c: the time up to @since, and the clients whose state counts from then on */
struct gsc_pressure {
	u32 waiting, running;		/* clients, of which one may be both */
	u64 since, period_end;
	u64 total_ns[GSC_PRESSURE_KINDS];
	u64 part_ns[GSC_PRESSURE_KINDS];	/* of the averages' period that is under way */
	u32 average[GSC_PRESSURE_KINDS][GSC_PRESSURE_WINDOWS];
};

/*
 * A quota holder. Those that gsc_group_init() makes are the operator's. Below them the core has one
 * for each client (gsc_client.own) and, where a user has several clients in a group, one for the
 * user (gsc_client.sharing of one of them): a user has one share of a group, however many
 * descriptors are open. Groups of clients and users are reached by @parent only and have no name.
 */
struct gsc_group {
	struct gsc_device *dev;
	struct gsc_group *parent;	/* NULL: the root group */
	struct list_head sibling, children;	/* by parent */
	u32 max, min;			/* units; max GSC_MAX_UNLIMITED */
	u32 standby;			/* capsm.reserve, units, or GSC_STANDBY_AUTO */
	u64 plan_checked;		/* plan.c: by which plan it was named last, good or not */
	u32 weight, priority;
	u32 latency_us;			/* gpu.latency_target_us, 0 none */
	char band[32];			/* gpu.band, "" the parent's */
	u32 clients;			/* attached directly; of users and clients 0 */
	/* granted now in all bands, with everything below; not of users and clients */
	u32 current_units;
	/* clients with tasks, likewise; not of users and clients */
	u32 n_demanding;
	struct gsc_stats stats;		/* with everything below */
	/* likewise, where whoever owns the group has memory for it, which it sets; else NULL */
	struct gsc_delays *delays;
	/* demand.c: what those directly below it promise together; since when it promises that */
	u64 promised_below, promised_since;
	struct gsc_pressure pressure;	/* likewise; not of users and clients */
	struct gsc_memory memory;	/* not of users and clients */
	u32 promise;			/* demand.c: of capacity, now */
	u32 depth;			/* 0: the root group */
	struct gsc_group_tally tally;
	struct gsc_group_run run;
	union gsc_group_data data;
};

#define GSC_MAX_UNLIMITED	U32_MAX
#define GSC_STANDBY_AUTO	U32_MAX

enum gsc_task_state { GSC_TASK_NONE, GSC_TASK_WAITING, GSC_TASK_RUNNING };

struct gsc_task {
	struct gsc_client *client;
	struct list_head node;		/* band->tasks */
	struct list_head peer;		/* client->tasks */
	enum gsc_task_state state;
	u32 slot, seq, tier, blocks_per_sm;
	u32 intensity;			/* GSCHED_INTENSITY_* */
	u64 blocks, predicted_ns, block_ns;
	/* tasks of a client with the same one run in order; 0 unknown */
	u64 stream;
	u32 window;			/* units: what it may use now */
	u64 submitted, granted, ran;	/* T_w, T_e, T_r of FLEP 5.2.1 derive from these */
	u64 usage;			/* unit-ns, of what its client was charged; stops at 2^64 */
	u32 evictions;			/* of its window */
	u32 id;				/* order of arrival */
	/* SMs it could use, if it was granted when it was submitted, else 0 */
	u32 room;
	bool is_new;			/* submitted since the last commit */
	bool adopted;			/* launched under a lease, as its page told */
	u64 before_ns;			/* how long before, on all that it could fill */
	/* in the resumable form: its block-tasks can be left in their middle */
	bool midway;
	bool overdue;			/* opaque, and equals no longer wait for its end */
	/* opaque, and may wait for its client's later tasks: these wait no longer */
	bool chained;
	bool late;			/* others have made way for it */
	/* delay.c: workers that are to leave since its eviction; in dev->leaving while there are */
	u32 leavers;
	struct list_head leaving;
	u32 evicted_from;		/* its window before */
	u32 left_before;		/* workers that had left then, by its page */
	u64 evicted_at;			/* when that was */
	/* when its page was last looked at; when the timer is to do so */
	u64 looked_at, look_at;
	u64 late_again;			/* when they do so again; 0 it is not late yet */
	/* late.c: it is not late before that, whoever could make way; 0 not yet known */
	u64 late_from;
	u32 demand;			/* units, as if alone */
	/* the least that holds all its blocks at once; U32_MAX: more than there is */
	u32 packed;
	/* the policy's order() of it; of @want, what less important tasks are evicted for */
	u32 rank, want, need;
	u32 alloc;			/* units, by the allocator */
};

#define GSC_SIZE_CLASSES	16
#define GSC_SIZE_SAMPLES	7

struct gsc_size_samples {
	u32 ns[GSC_SIZE_SAMPLES];	/* the last ones, in a ring */
	u8 n, next;
};

/*
 * How long a client's recurring kernels take on a 2^(k/3)-th of @whole SMs, at least one: see
 * size.c
 */
struct gsc_sizes {
	struct gsc_size_samples samples[GSC_SIZE_CLASSES];
	u32 ns[GSC_SIZE_CLASSES];	/* what the samples say, 0 unknown */
	u32 best_ns;			/* smallest of @ns, 0 none is known */
	u64 blocks;			/* of its largest kernels lately: only such are measured */
	u32 whole;			/* SMs that they can fill */
	u32 last;			/* smallest class that is tried */
	/* SMs on which all blocks fit at once: @last is for that and @whole; 0 not known */
	u32 least;
	u32 chosen;			/* smallest class that is fast enough */
	/* class for the next request: @chosen, or a smaller one that is unknown */
	u32 tried;
	u32 retried;			/* class that was too slow and has another chance, 0 none */
	u32 n_requests, n_measured;
	u64 since;			/* when @busy was last looked at */
	bool busy;			/* the client keeps the device busy */
};

/* What a block-task of a client's last kernels took, unit-ns: [1] in the resumable form */
struct gsc_forms {
	u64 blocks, usage[2];
	u32 n[2];
};

/*
 * What a client says of launches that nobody was told of: the words of its page (struct
 * gsched_cl_header), read once
 */
struct gsc_leased {
	u64 tasks, ns, usage;
	u64 paced_ns;			/* of launches that ended, however long they took */
};

/* What the header of a client's page says of its band: struct gsched_arb_header */
struct gsc_arb {
	u32 flags;			/* GSCHED_ARB_* */
	u32 slice_us, bands, share, in_flight_us;
};

/*
 * One hardware channel group. It lives in one of its members (gsc_client.own_band) and moves to
 * another one when that one detaches. A band without clients, of an MPS server that nobody uses,
 * takes no part in time sharing.
 */
/* Others make way for a kernel that is late: who has no target, is less important, or is equal */
enum gsc_help_kind { GSC_HELP_TARGET, GSC_HELP_RANK, GSC_HELP_EQUAL };

struct gsc_help {
	u32 id;				/* of the task */
	enum gsc_help_kind kind;
	u64 since, until;		/* 0: nobody is helped */
};

struct gsc_band {
	struct list_head node;		/* dev->bands */
	struct list_head busy;		/* dev->busy, while @active is not empty */
	u64 nr;				/* order of arrival */
	struct list_head members;	/* gsc_client.member, by arrival: the MPS server, too */
	struct list_head active;	/* gsc_client.active, by arrival */
	struct list_head tasks;		/* active ones, sorted by the policy */
	u32 n_clients;			/* members that are not servers */
	u32 n_active;			/* members with tasks */
	u32 n_tasks, n_running, n_opaque;	/* in @tasks; of these granted; not of tier block */
	u32 n_holds;			/* clients with hold_units */
	u32 n_windows;			/* clients with has_windows */
	const struct gsc_task *late;	/* others make way for it, until the next order() */
	struct gsc_help help;
	u64 equals_again;		/* before that equals do not make way */
	/* when the policy wants to decide anew, 0 never; its order() sets it */
	u64 again;
	u64 watch;			/* when an opaque task is overdue, 0 never */
	/* of the allocator's last run: the scratch of groups that carry it is of this band */
	u64 stamp;
	bool fractional;		/* the last run met a max that is no whole number of SMs */
	bool guarantees;		/* the last run met a min, or a claim */
	bool claims;			/* a capsm.reserve stands against some task: standby.c */
	u32 kept_free;			/* SMs that claims keep free and nobody is lent */
	/* whoever can be evicted in that time is lent what is claimed */
	u64 lend_ns;
	bool evicts;			/* the last run takes something from a task */
	bool standby;			/* a group of its clients has a capsm.reserve */
	/* attributes, from its clients and their groups */
	u32 priority, n_top;		/* highest gpu.priority; clients that have it */
	u32 latency_us;			/* smallest gpu.latency_target_us, 0 none */
	u32 promised;			/* sum of capsm.min, units */
	u32 activity;			/* GSCHED_ACTIVITY_* */
	/*
	 * in 1/GSC_BAND_WEIGHT_SCALE: a group's is divided among its users, except the root's,
	 * which each of its users has; a user's among the clients
	 */
	u64 weight;
	bool mps;			/* a client said so */
	bool lower;			/* some band is more important, and the policy cares */
	/* decided */
	u32 slice_us;			/* for its channel group, 0 the driver's */
	u32 flags;			/* GSCHED_ARB_* for all its clients */
	u64 served;			/* dev->turns when it last got a turn */
	/* of turns: what it had of them by its weight, in sliced mode */
	u64 vtime;
	union gsc_band_data data;
};

struct gsc_client {
	struct gsc_device *dev;
	struct gsc_group *home;		/* the operator's group that it is in */
	struct gsc_group *group;	/* @own, below @home or below that of its user there */
	/*
	 * where the allocator has it: @group, or, if that says nothing since the user has no other
	 * client there and @own no limits, @home
	 */
	struct gsc_group *seat;
	struct gsc_group own, sharing;
	/* ring of the clients of its user in @home, servers left out */
	struct list_head peers;
	/* while the group of its user is in @sharing: who has its weight */
	u32 n_heaviest;
	u32 priority_max;		/* its own gpu.priority, U32_MAX: its group's */
	struct list_head node;		/* dev->clients */
	u32 flags;			/* GSCHED_ATTACH_* */
	u64 channel_group;		/* as in struct gsched_attach */
	u32 pid;			/* for the names of bands; the caller sets it */
	u32 user;			/* whose it is: the caller sets it before it attaches */
	struct gsc_band *band, own_band;
	struct list_head member;	/* band->members */
	/* band->active: has tasks, capacity or a hold. Others cost a decision nothing */
	struct list_head active;
	u64 nr;				/* order of arrival */
	struct gsc_arb arb;		/* as at the last set_band */
	/* GSCHED_ACTIVITY_*, IDLE while it is not asked to report */
	u32 activity;
	u32 block_us;			/* as it reported, while GSCHED_ARB_TIMED is set */
	bool prioritised;		/* as it reported: its streams have the greatest priority */
	u32 slice_us, slice_error;	/* as it reported them; 0 nothing */
	u64 memory;			/* as it reported: bytes that it holds */
	struct gsc_leased leased;	/* as its page said when it was last counted */
	u64 leased_at;			/* time of that */
	u64 attached_at;
	u64 paced_ns;			/* counted so far */
	u32 lease;
	/* page.c: the caller sets the pages before it attaches, or leaves them NULL */
	struct gsched_arb_page *arb_page;
	const struct gsched_cl_page *cl_page;
	u32 leased_window;		/* what empty slots have */
	bool scan;			/* its free lease ended: look for launches made under it */
	bool stale;			/* empty slots are to have another window */
	bool has_windows;		/* pass.c: it has tasks with windows, or had lately */
	u64 window_seen;		/* when the last of them began or ended */
	struct gsc_task *task[GSCHED_SLOTS];	/* by new_task(); NULL: never used */
	/* the active ones by arrival: they are granted in this order */
	struct list_head tasks;
	u32 window;			/* of all its running tasks of tier block; 0 without one */
	u32 current_units;		/* what it counts for in the groups above it */
	u64 charged;			/* time up to which usage and demand are charged */
	/* that its groups have not been charged yet: unit-ns, and time with capacity; counts */
	u64 demanded, used, granted_ns;
	struct gsc_counts counts;
	bool waits, runs;		/* as counted in gsc_group.pressure */
	/* capacity kept free for its next task (the hold): what it has is made up to this */
	u32 hold_units;
	u64 hold_until;
	u64 last_submit, interval;	/* smoothed time between submits, 0 not yet known */
	bool has_paused;		/* the first such time, which does not count, is over */
	u64 last_end;
	/* longest such time lately that a hold can bridge; it fades */
	u64 gap;
	u32 burst, burst_before;	/* submits since the last gap, and between the two before */
	u32 hold_rank;			/* of the task that ended */
	u32 hold_got;			/* what the allocator keeps free for it now, units */
	bool held;			/* its last kernel found it, and its size is known */
	u32 size_recent, size_before;	/* largest of the tasks that ended lately, units */
	u64 blocks_recent, blocks_before;	/* likewise */
	u32 n_recent;			/* how many are in size_recent */
	struct gsc_sizes sizes;
	u64 hold_block_ns;		/* longest block-tasks below when the last hold began */
	const struct gsc_task *ended;	/* since the last commit, may begin a hold; or NULL */
	/* protect.c: as one whose kernels block-tasks below are left in their middle for */
	bool resumes;
	struct list_head resuming;	/* dev->resuming */
	/* last change, 0 none; when it ends without another kernel */
	u64 resumes_since, resumes_until;
	u32 hold_cost, resume_cost;	/* per mille of the others' throughput, 0 not yet known */
	/* and as one of those below */
	u64 block_ns;			/* of its last task in the plain form */
	struct gsc_forms forms;
	u32 n_tasks, n_opaque;		/* waiting and running; of these, not of tier block */
	u32 demand;			/* of the largest of them, units */
	struct gsc_client_run run;
	u32 alloc;			/* units: what the allocator gave it */
	struct gsc_delays delays;	/* of its own evictions */
	/*
	 * what they took beside a block-task, smoothed, 0 not yet known: [1] in the resumable form
	 */
	u32 evict_ns[2];
	union gsc_client_data data;
};

/*
 * Numbers of a device that the administrator may set: one table of names and ranges for sysfs and
 * the socket
 */
enum gsc_param {
	GSC_PARAM_SWITCH_US, GSC_PARAM_MAX_OVERHEAD, GSC_PARAM_MAX_SLOWDOWN, GSC_PARAM_COUNT
};

struct gsc_device {
	const struct gsc_ops *ops;
	const struct gsc_policy *policy;
	/*
	 * a policy that broke its contract, and how: hpf is in its place until a policy is set;
	 * NULL
	 */
	const struct gsc_policy *faulty;
	const char *fault;
	/* while policy plan is in force: what comes then; the last plan came to that by its time */
	const struct gsc_policy *plan_before;
	bool plan_expired;
	u32 sms;
	u32 mode;			/* GSCHED_MODE_* in force */
	/*
	 * Forced mode. -1 automatic, by the bands there are. Spatial: all clients count as one
	 * band. Temporal: each is a band of its own and slices are not used.
	 */
	s32 mode_set;
	struct gsc_group root;
	struct gsc_delays delays;	/* the root group's */
	struct list_head clients, bands;
	struct list_head busy;		/* bands with active clients, by arrival */
	struct list_head resuming;	/* clients that have @resumes set */
	u32 n_clients;			/* servers included */
	u32 n_programs;			/* servers excluded */
	u32 n_active;			/* clients with tasks */
	u32 n_bands, n_lower;		/* bands with clients; those of them that are lower */
	bool unmanaged_busy;			/* gsc_device_set_unmanaged() */
	u32 param[GSC_PARAM_COUNT];
	bool bands_stale;		/* attributes, slices and turns have to be decided anew */
	bool marked;			/* events since the last commit */
	bool submitted, ended;		/* tasks among them that began; that may begin a hold */
	u64 now;			/* time of the last event: never goes back */
	u64 timer;			/* when there is something to decide, 0 never */
	u64 armed;			/* what arm_timer() was told */
	/*
	 * page.c: tasks that were adopted, when to look at their pages; some client has @scan,
	 * @stale set
	 */
	u32 n_adopted;
	u64 poll_at;
	bool scan, stale;
	struct list_head leaving;	/* delay.c: tasks whose evictions are measured */
	/* what policy chaos draws from; the caller may set it before the policy */
	u64 seed;
	u32 next_id;
	u64 next_nr;
	u64 decisions;			/* commits that had something to decide */
	/* grows with each event of gpu.events: for who watches them */
	u64 n_events;
	/*
	 * Whose turn it is. Temporal mode: the band whose tasks may run. Sliced mode: the lower
	 * band whose gate is open, or NULL. @drain had the turn before and may still have work on
	 * the GPU, until @drain_until at the latest.
	 */
	struct gsc_band *turn, *drain;
	u64 turn_end, drain_until;
	u64 turn_timer;			/* when turns have to be decided anew, 0 never */
	u32 n_standby;			/* groups whose capsm.reserve is a number above 0 */
	/* capsm.max, capsm.min and numbers of capsm.reserve above 0, of groups and clients */
	u32 n_limits;
	u32 n_windows;			/* clients with has_windows */
	u64 pass_timer;			/* when a client may have had no window for long, 0 never */
	u64 turns;			/* given so far */
	u64 vtime;			/* of the band that has the turn, when that began */
	u32 top_priority, n_top;	/* among the attached clients, and how many have it */
	union gsc_device_data data;
	u64 stamp;
};

#define GSC_BLOCKS_PER_SM_MAX	32	/* of a kernel, on any GPU */
#define GSC_GROUP_DEPTH_MAX	8	/* levels of the operator's groups, the root's included */
#define GSC_DEPTH_MAX		(GSC_GROUP_DEPTH_MAX + 2)	/* with users and clients */
#define GSC_WEIGHT_DEFAULT	100
#define GSC_WEIGHT_MAX		10000
#define GSC_PRIORITY_MAX	99
#define GSC_BAND_WEIGHT_SCALE	1024
#define GSC_LATENCY_US_MAX	10000000
#define GSC_SWITCH_US_DEFAULT	190	/* from one channel group to another, measured on an H200 */
/* per mille of the time that may go into switching */
#define GSC_MAX_OVERHEAD_DEFAULT	50
/* per cent of its best time that a recurring kernel may take on what is held for it */
#define GSC_MAX_SLOWDOWN_DEFAULT	200

/*
 * How many clients a device takes unless somebody says otherwise: as many as fit into 1/1024 of
 * @memory with @each bytes, within these bounds. With the upper one a single user, who has half of
 * the places at most, has no more than 256 * GSCHED_SLOTS tasks adopted under one lock.
 */
#define GSC_CLIENTS_LEAST	64
#define GSC_CLIENTS_MOST	512
u32 gsc_clients_default(u64 memory, u32 each);
/*
 * Half of what the others leave at most: one user never has all there is, and neither do two or
 * three together. @mine of @all that are taken, of @max.
 */
bool gsc_share_has_room(u32 mine, u32 all, u32 max);
/*
 * May one more of @user come to @group, of @max on its device? -ENOSPC; -EDQUOT it has its share:
 * an event of the group. @all: it may have all
 */
int gsc_group_room(struct gsc_group *group, u32 user, bool all, u32 max);

/*
 * Lifetime. The caller zeroes the objects first. exit and detach may be called in any state and
 * give everything back.
 */
/* -EINVAL */
int gsc_device_init(struct gsc_device *dev, const struct gsc_ops *ops, u32 sms);
/* -EINVAL nested too deep */
int gsc_group_init(struct gsc_group *group, struct gsc_group *parent);
int gsc_group_exit(struct gsc_group *group);		/* -EBUSY with children or clients */
/* -EINVAL unknown flags. @channel_group: as in struct gsched_attach */
int gsc_client_attach(struct gsc_client *client, struct gsc_group *group, u32 flags,
		      u64 channel_group, u64 now);
/* In the client's page the windows are 0: a GPU that still runs kernels of a dead process stops */
void gsc_client_detach(struct gsc_client *client, u64 now);
/* The same as the device is taken away: the windows are the whole device, for its kernels to end */
void gsc_client_expel(struct gsc_client *client, u64 now);
void gsc_client_move(struct gsc_client *client, struct gsc_group *group, u64 now);

/*
 * A task wants to run; gsc_task_state() says after the commit whether it may. -EBUSY slot taken,
 * -EINVAL numbers out of range, or an MPS server's, -ENOMEM. The errors leave no trace.
 */
int gsc_submit(struct gsc_client *client, const struct gsched_submit *req, u64 now);
/* The task that waits or runs in @slot, NULL none */
static inline struct gsc_task *gsc_task_in(const struct gsc_client *client, u32 slot)
{
	struct gsc_task *task = client->task[slot];

	return task && task->state != GSC_TASK_NONE ? task : NULL;
}

/* GSCHED_STATE_*, of one that waits or runs. QUEUED: set_window(GSC_GRANT) follows */
static inline u32 gsc_task_state(const struct gsc_task *task)
{
	return task->state == GSC_TASK_RUNNING ? GSCHED_STATE_GRANTED : GSCHED_STATE_QUEUED;
}

#define GSC_PATIENCE_NS	500000000ULL	/* for so long an equal waits for the end of what runs */

/* It has run for so long that a look at its client's page is worth it: others may wait for it */
static inline bool gsc_is_old(const struct gsc_task *task, u64 now)
{
	return task->state == GSC_TASK_RUNNING && now >= task->granted + GSC_PATIENCE_NS;
}

/*
 * -EINVAL slot out of range, -ENOENT the slot does not hold seq. A task that no commit has granted
 * did not run.
 */
int gsc_complete(struct gsc_client *client, const struct gsched_complete *req, u64 now);
/*
 * Count what @now_says grew by since the last call, as far as the time since then allows: one task
 * a microsecond, and no longer than that on the whole device.
 */
void gsc_client_leased(struct gsc_client *client, const struct gsc_leased *now_says, u64 now);
/*
 * The same by what is in the client's page, or in those of all, and brings what was demanded and
 * promised to the groups: after gsc_tick(), before statistics are read
 */
void gsc_client_count(struct gsc_client *client, u64 now);
void gsc_device_count(struct gsc_device *dev, u64 now);
/* How many evictions were measured */
u64 gsc_delay_count(const struct gsc_delays *delays);
/* The slot has a launch under the lease, of which only the page tells */
bool gsc_page_leased(const struct gsc_client *client, u32 slot);
/*
 * What a client sees of its band. -EINVAL numbers out of range. Activity is ignored unless
 * GSCHED_ARB_REPORT is set. A slice that the driver refused (any error but EOPNOTSUPP) counts as
 * refused until one that was asked for is reported set. -EDQUOT: GSCHED_REPORT_ASKS. Fills in what
 * the answer has.
 */
int gsc_client_report(struct gsc_client *client, struct gsched_report *req, u64 now);
/* The member that sets the slice of its band; NULL: an MPS server that is not attached */
struct gsc_client *gsc_band_owner(const struct gsc_band *band);
bool gsc_band_can_slice(const struct gsc_band *band);
/*
 * gpu.band of its clients' groups, else after the MPS server or the process whose channel group it
 * is; length
 */
#define GSC_BAND_NAME_SIZE	48
int gsc_band_name(const struct gsc_band *band, char *buf, size_t size);
/* How long launches of the group waited up to @now, as gpu.pressure counts it; GSC_PRESSURE_* */
u64 gsc_pressure_ns(const struct gsc_group *group, int kind, u64 now);
/* What of it is in the last @size ns; looked at a few times in each such time, or late */
struct gsc_window {
	u64 begin, begin_ns;		/* of the window under way, and what had been waited then */
	u64 before_ns;			/* what was waited in the one before */
};

u64 gsc_window_grown(struct gsc_window *window, u64 size, u64 waited, u64 now);
/* Which mechanism protects or limits it, in words, without a newline; length */
int gsc_band_why(const struct gsc_band *band, char *buf, size_t size);
/*
 * What is kept free or taken from others for its recurring kernels, and why, in words; length, 0
 * nothing
 */
int gsc_client_why(const struct gsc_client *client, char *buf, size_t size);
/* Decides for all events since the last commit: what it grants is had from @now on */
void gsc_commit(struct gsc_device *dev, u64 now);
/*
 * The timer came. Also charges every running task up to @now: call it before statistics are read.
 * Any time is fine.
 */
void gsc_tick(struct gsc_device *dev, u64 now);

/*
 * @busy: programs that no client stands for keep the device busy. Commit after it. Where nobody
 * looks they count as idle
 */
void gsc_device_set_unmanaged(struct gsc_device *dev, bool busy, u64 now);
int gsc_device_set_mode(struct gsc_device *dev, s32 mode, u64 now);		/* -1 automatic */
/* -EINVAL unknown */
int gsc_device_set_policy(struct gsc_device *dev, const char *name, u64 now);
/*
 * Install an allocation, as policy plan: "TIME PATH=MIN-MAX ..." with the time to live in ms, at
 * most a minute, and groups by their paths, which @find knows, in CapSM; "PATH=CAPSM" is both; or
 * "none", which ends the one in force. "!" behind the numbers: not even lent while it has nothing
 * to run (plan.c). -EINVAL, also for a group twice, below another one, the root, and for minima
 * that are more than the device; -ENOENT no such group. The errors leave the old plan.
 */
int gsc_device_plan(struct gsc_device *dev, const char *text,
		    struct gsc_group *(*find)(void *arg, const char *path, size_t len), void *arg,
		    u64 now);
/* The plan in force, or what became of the last one, in words, without a newline; length */
int gsc_plan_show(const struct gsc_device *dev, char *buf, size_t size);
/* Which policy was replaced by hpf and why, in words, without a newline; length, 0 none was */
int gsc_policy_why(const struct gsc_device *dev, char *buf, size_t size);

extern const char *const gsc_param_name[GSC_PARAM_COUNT];	/* "switch_us" … */
int gsc_param_find(const char *name);			/* -ENOENT */
/* -EINVAL */
int gsc_device_set_param(struct gsc_device *dev, enum gsc_param param, const char *text, u64 now);
int gsc_device_show_param(const struct gsc_device *dev, enum gsc_param param, char *buf,
			  size_t size);

/*
 * The files of a group: one implementation of names and formats for configfs, the socket and
 * gschedctl. store: NUL-terminated text, a trailing newline allowed; -EINVAL leaves the old value.
 * A quota is "max" (capsm.max) or "auto" (capsm.reserve) or a decimal number of CapSM, as fine as
 * 1/1024 ("1.5"); max not 0, nothing
 * above the device. memory.max is "max" or bytes, with K, M, G or T behind them for 1024 and so on.
 * show: text with a newline; length. gpu.band: [a-z0-9_-]{1,31}, or empty for the
 * parent's, which is what show then gives; -EBUSY while a client is attached in the group or below
 * it, since a process cannot change its channel group.
 */
enum gsc_file {
	GSC_FILE_CAPSM_MAX, GSC_FILE_CAPSM_MIN, GSC_FILE_CAPSM_RESERVE, GSC_FILE_GPU_WEIGHT,
	GSC_FILE_GPU_PRIORITY, GSC_FILE_GPU_BAND, GSC_FILE_GPU_LATENCY, GSC_FILE_MEMORY_MAX,
	/* to be read only */
	GSC_FILE_CAPSM_CURRENT, GSC_FILE_CAPSM_PLAN, GSC_FILE_GPU_STAT, GSC_FILE_GPU_PRESSURE,
	GSC_FILE_GPU_EVENTS, GSC_FILE_GPU_PREEMPTION, GSC_FILE_MEMORY_CURRENT, GSC_FILE_MEMORY_PEAK,
	GSC_FILE_COUNT
};

extern const char *const gsc_file_name[GSC_FILE_COUNT];	/* "capsm.max" … */
bool gsc_file_writable(enum gsc_file file);
int gsc_file_find(const char *name);			/* -ENOENT */
int gsc_group_store(struct gsc_group *group, enum gsc_file file, const char *text, u64 now);
int gsc_group_show(const struct gsc_group *group, enum gsc_file file, char *buf, size_t size);
/*
 * The same for one client: capsm.max, gpu.weight and gpu.priority, inside its group's. What is
 * written may be above the group's, and counts for no more than that then; gpu.priority also takes
 * "max", the group's and the default. @raise: the caller may also give it more than it has; else
 * -EPERM for that. -ENOENT no such file of a client. They end with the client.
 */
bool gsc_client_has(enum gsc_file file);
int gsc_client_store(struct gsc_client *client, enum gsc_file file, const char *text, bool raise,
		     u64 now);
int gsc_client_show(const struct gsc_client *client, enum gsc_file file, char *buf, size_t size);
/* its band's name or the nearest ancestor's, "" none */
const char *gsc_group_band(const struct gsc_group *group);

/*
 * For tests and WARN_ON in debug builds: 0 if every invariant holds, else the number of the first
 * that does not.
 */
int gsc_check(const struct gsc_device *dev);

#endif /* GSCHED_CORE_H */
