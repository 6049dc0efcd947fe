/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Policies: the table of operations, and what each keeps of devices, bands, groups and clients.
 * Part of core.h. The core looks into none of it.
 */
#ifndef GSCHED_CORE_POLICY_H
#define GSCHED_CORE_POLICY_H

/*
 * How the capacity is shared out among active tasks: chosen per device at run time, like a
 * block-layer elevator. All operations are called under the caller's lock of the device and return
 * at once; but for those of an event they run in gsc_commit(). They change what their comment names
 * and the policy's own data: gsc_client.data, gsc_band.data and gsc_device.data, zero as the
 * policy starts, as the client attaches and as the band begins; gsc_group.data, which begins with a
 * stamp by which a policy knows its own, since it is zero only as the group begins.
 *
 * The core does not trust a policy: what an operation returns is checked, and a policy that breaks
 * its contract is replaced by hpf in the same commit (gsc_device.faulty).
 */
struct gsc_policy {
	const char *name;
	/*
	 * In each decision, for every band with active clients. Give every active task of @band its
	 * wish (task->want, units) out of what it demands, the part of it that it takes from lower
	 * ranks (task->need; the rest only where it would be idle), and its rank, the same for all
	 * tasks of a client: clients of equal rank share by gpu.weight, a higher rank takes all it
	 * wants first. need <= want <= demand. The allocator has applied no limits yet;
	 * gsc_allocate() clips by every group's max, honours min and never goes above the device.
	 * Called with all active tasks in band->tasks; leaves that list sorted by falling rank,
	 * first come first among equals. May set band->again, not before @now + 1, and band->late.
	 * Required.
	 */
	void (*order)(struct gsc_band *band, u64 now);
	/*
	 * A task ended, in gsc_commit() or as the client's next one begins: how long its capacity
	 * should stay free for that (ns, 0 no; gsc_hold_ns_max() at most). The task's fields are
	 * those that it ended with. Default 0.
	 */
	u64 (*hold)(struct gsc_device *dev, const struct gsc_task *task, u64 now);
	/*
	 * When bands have changed: sum of the time slices of the @n bands that are not lower, in
	 * us; each has a part of it by its weight. Default: @n slices of the driver's, so that no
	 * band of mean weight waits longer than on an unmanaged GPU.
	 */
	u64 (*epoch_us)(const struct gsc_device *dev, u32 n);
	/*
	 * @client used @unit_ns of capacity times time since the last call: in many events, always
	 * before what it has or its group changes. Default: nothing.
	 */
	void (*charge)(struct gsc_client *client, u64 unit_ns);
	/* @client has another band or group, in the event that says so. Default: nothing. */
	void (*moved)(struct gsc_client *client);
	/*
	 * @task ended, in the event that says so; its client was charged for it. @ran: it was
	 * granted and is not cancelled. Not called for what a client leaves. Default: nothing.
	 */
	void (*ended)(struct gsc_task *task, bool ran);
	/*
	 * At the end of each decision, for every band with active clients: each has what it was
	 * given. May set band->again. Default: nothing.
	 */
	void (*granted)(struct gsc_band *band, u64 now);
	/*
	 * Temporal mode, in each decision, after order(): the band that has the device, one with a
	 * task that wants something; NULL there is none. What a max lets have nothing has no
	 * task->want any more. May set its band->again. Default: the one of the highest rank; of
	 * equals the one that has something running, until it has no task that came before those of
	 * others.
	 */
	struct gsc_band *(*turn)(struct gsc_device *dev, u64 now);
	/*
	 * How the policy treats @client, in words, without a newline, as gsc_client_why(); any
	 * time. Default: nothing
	 */
	int (*why)(const struct gsc_client *client, char *buf, size_t size);
	bool idles;		/* may leave capacity unused while tasks wait */
	bool no_leases;		/* every launch is submitted first */
	/* launches without a window may go unseen where nobody depends on them: pass.c */
	bool passes;
	/* gpu.priority means nothing: no band is lower, no client protected from another */
	bool equals;
};

extern const struct gsc_policy gsc_policy_hpf;
extern const struct gsc_policy gsc_policy_ffs;
extern const struct gsc_policy gsc_policy_wfq;
extern const struct gsc_policy gsc_policy_srt;
extern const struct gsc_policy gsc_policy_corun;
extern const struct gsc_policy gsc_policy_plan;		/* by gsc_device_plan() only */
/* for tests, in userspace only: the module has no such policy */
extern const struct gsc_policy gsc_policy_chaos;
extern const struct gsc_policy *const gsc_policies[];	/* all of them, up to NULL */
const struct gsc_policy *gsc_policy_find(const char *name);	/* NULL unknown */

/*
 * A group as a queue of one band, and what policy wfq notes of its clients there. Virtual times are
 * in ns, see wfq.c
 */
struct gsc_wfq_queue {
	u64 seen;			/* stamp of the decision that @next to @fresh are of */
	struct gsc_group *next, *prev;	/* queues of the band, by turn */
	u64 sum;			/* weights of what is active directly below */
	/* virtual to real time while it has the device, 16 bits behind the point */
	u64 pace;
	u64 want, share;		/* units */
	/* one with a smaller virtual time overtakes it; the largest from there to the front */
	u64 bar, top_bar;
	u32 n;				/* active clients, directly */
	u32 rank;
	/* wants no more than its share, or all can have what they want */
	bool content;
	/* a max above it leaves it less than its share of the device */
	bool bounded;
	bool fresh;			/* was not active at the last decision */
	u64 band;			/* gsc_wfq_band.id of the band that the rest is of */
	u64 vtime, ended;		/* and when its last task ended, 0 never */
};

struct gsc_wfq_client {
	u64 used;			/* unit-ns since the last decision */
	u64 round;			/* the band's last decision in which it had tasks, 0 none */
	u64 vtime, pace;		/* its queue's, as of @round */
	bool content;
};

struct gsc_wfq_band {
	u64 id, round;			/* stamps: of its first decision, of the last one */
	u64 vtime;			/* where a queue that becomes active begins */
	u64 quantum;			/* ns */
	/* of the band itself, for turns */
	u64 used, turn_round, turn_vtime, pace;
	bool fresh;
};

struct gsc_wfq_device {
	u64 round, vtime;		/* likewise, of turns */
	u64 at;				/* time of the last decision */
};

struct gsc_corun_band {
	u64 round;			/* stamp of the last decision */
};

struct gsc_corun_client {
	u64 round;			/* of the last decision in which it had tasks */
	u64 place;			/* in the line: a smaller one is before it */
	u64 since;			/* when its turn began, 0 it has none */
	bool chosen;			/* it runs first, or beside the first */
};

struct gsc_srt_client {
	struct gsc_client *next, *prev;
	u64 left, overhead;		/* T_r of its first task; what its preemption would cost */
	/* an equal with less left overtakes it; the largest of its equals up to the first */
	u64 bar, top_bar;
	u32 rank;
	bool runs;
	u64 overrun_ns;			/* time that its last task took beyond its word */
};

struct gsc_plan_group {
	u64 round;			/* of which plan the rest is */
	u32 min, max;			/* units */
	bool keeps;
};

struct gsc_plan_device {
	u64 round, until;		/* stamp of the plan in force; its end */
	u32 n;				/* groups that it names */
};

/* Of the policy in force each */
union gsc_device_data {
	struct gsc_wfq_device wfq;
	struct gsc_plan_device plan;
};

union gsc_band_data {
	struct gsc_wfq_band wfq;
	struct gsc_corun_band corun;
};

/* the last one of those that use it */
union gsc_group_data {
	struct gsc_wfq_queue wfq;
	struct gsc_plan_group plan;
};

union gsc_client_data {
	u64 whim;			/* chaos: its last draw */
	struct gsc_wfq_client wfq;
	struct gsc_srt_client srt;
	struct gsc_corun_client corun;
};

#endif /* GSCHED_CORE_POLICY_H */
