/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QoS planner (C-Laius 5 to 8): computes the plans that the core's policy "plan" applies. Its
 * input is the arbiter's events, its output the text for a device's file "plan", so it works with
 * both arbiters and the simulator. qos_model.c predicts durations, qos_request.c detects requests
 * among the kernels of a client, qos_groups.c assigns clients to groups, qos_divide.c divides the
 * device, and qos_plan.c makes the plan. None of them reads a clock, prints, or does I/O.
 *
 * A group with gpu.latency_target_us is user-facing, the others are batch. Quotas are whole SMs.
 */
#ifndef GSCHED_QOS_H
#define GSCHED_QOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- qos_model.c: durations by quota ---- */
#define QOS_POINTS	16	/* quotas for which durations are kept */
#define QOS_SAMPLES	32
#define QOS_KNOWN	4	/* samples that a point needs to count */

struct qos_point {
	uint32_t sms, n, next;
	uint64_t stamp;			/* of the last sample */
	double us[QOS_SAMPLES];		/* ring buffer */
	double typical;			/* quantile of the samples */
};

struct qos_model {
	double quantile;
	uint64_t stamp;			/* samples so far */
	uint32_t n;
	struct qos_point point[QOS_POINTS];	/* in ascending order of SMs */
};

void qos_model_add(struct qos_model *m, uint32_t sms, double us);
bool qos_model_known(const struct qos_model *m);
double qos_model_us(const struct qos_model *m, uint32_t sms);	/* NAN: nothing is known */
/* The smallest quota of at most @most SMs with which it takes no longer than @us; 0: none does. */
uint32_t qos_model_enough(const struct qos_model *m, double us, uint32_t most);
/* Throughput with @sms SMs as a fraction of that with @whole */
double qos_model_rate(const struct qos_model *m, uint32_t sms, uint32_t whole);

/* ---- qos_request.c: requests ---- */
#define QOS_SLOTS	64
#define QOS_OCTAVES	40

struct qos_request {
	uint64_t begin, end;
	uint64_t ns;			/* its latency */
	uint32_t tasks;
};

struct qos_flow {
	uint64_t submitted[QOS_SLOTS], granted[QOS_SLOTS];
	uint64_t active;		/* slots with a task */
	uint64_t resized;		/* ... whose window changed, or is more than its group's quota */
	bool open;			/* a request is in progress */
	bool chained;			/* ... and was idle in between */
	uint32_t done;			/* its completed tasks */
	uint64_t begin, last_end;
	uint64_t longest;		/* time of its longest task, from submit to end */
	/* histogram of idle times in octaves of ns; the longest that does not end a request */
	uint32_t gaps[QOS_OCTAVES], n_gaps;
	uint64_t pause;
	uint32_t tasks;			/* of a typical request; 0: not known yet */
};

/* These three return true if a request has ended, with the request in @ended. */
bool qos_flow_submit(struct qos_flow *f, unsigned int slot, uint64_t submitted, uint64_t granted,
		     struct qos_request *ended);
/* @most_ns: a request that takes longer is split. */
bool qos_flow_done(struct qos_flow *f, unsigned int slot, uint64_t now, uint64_t most_ns,
		   struct qos_request *ended);
bool qos_flow_idle(struct qos_flow *f, uint64_t now, struct qos_request *ended);
/* After events were lost: forgets tasks in progress. */
void qos_flow_reset(struct qos_flow *f);

/* ---- qos_divide.c: quotas ---- */
#define QOS_SHARES	64

struct qos_share {
	const struct qos_model *model;
	bool facing;
	uint32_t need;			/* user-facing: SMs that suffice for the target */
	double behind_us;		/* ... and the lag of the request in progress */
	uint32_t least, most;		/* bounds in SMs; least is not 0 */
	uint32_t weight;		/* batch */
	double bandwidth;		/* fraction of the memory bandwidth that it uses alone */
	uint32_t sms;			/* out: its quota */
};

/* @sms: of the device, not below the sum of all @least. @n is at most QOS_SHARES. */
void qos_divide(struct qos_share *share, size_t n, uint32_t sms);

/* ---- qos_groups.c: groups, clients and tasks; qos_plan.c: the plan ---- */
#define QOS_PATH	256
#define QOS_GROUPS	256	/* programs in further groups count as in the root group */
#define QOS_CLIENTS	256
#define QOS_TEXT	4000	/* a file in sysfs takes a page */

enum qos_role {
	QOS_UNUSED,			/* no clients, or they belong to an ancestor's share */
	QOS_REST,			/* its own clients share the remainder */
	QOS_BATCH,
	QOS_FACING,
};

enum qos_state {
	QOS_LEARNING,			/* no durations are known yet */
	QOS_MET,
	QOS_MISSED,			/* even the whole device is not enough */
	QOS_SHORT,			/* other targets were served first */
};

struct qos_group {
	char path[QOS_PATH];		/* "" the root group */
	uint32_t target_us, weight, least, most;
	double budget_us;		/* the target without the reserve */
	bool listed;			/* in the last qos_groups_end() */
	enum qos_role role;
	enum qos_state state;
	uint32_t clients;		/* of the group itself */
	struct qos_model model;		/* of requests (user-facing) or tasks (batch) */
	double lag;			/* ratio of measured to predicted duration, at least 1 */
	double tail;			/* ratio of the 99th percentile to a typical duration */
	double bandwidth;
	uint32_t sms;			/* SMs it may use in any case; 0: the plan does not name it */
	uint32_t alone;			/* batch: it may use so many while no request is served */
	uint64_t changed;		/* when @sms did */
	/* user-facing only */
	bool kept;			/* it has a quota; else it comes first, and has none */
	uint32_t stay, stay_next;	/* requests until that may change, this time and the next */
	uint32_t trial, late;		/* requests since it did; those that missed the target */
	uint64_t n, first;		/* requests in all; when the first one began */
	double duty;			/* fraction of the time in which requests are served */
	uint64_t last_end;		/* of a request */
	bool missed;			/* the last request missed the target */
	uint32_t base;			/* quota for its requests, which is lowered slowly */
	uint32_t requests;		/* completed since @base changed */
	uint64_t since;			/* when @base changed */
};

struct qos_client {
	uint64_t id;
	uint32_t pid;
	int group;			/* index; -1: not known */
	struct qos_flow flow;
};

struct qos_options {
	double margin;			/* fraction of a target kept as a reserve */
	uint32_t ttl_ms, interval_ms;
};

struct qos {
	struct qos_options opt;
	uint32_t sms;
	bool space;			/* all clients share one band */
	struct qos_group group[QOS_GROUPS];
	size_t n_groups;
	struct qos_client client[QOS_CLIENTS];
	size_t n_clients;
	size_t n_untracked;		/* clients beyond QOS_CLIENTS */
	bool urgent;			/* do not wait for the interval */
	bool regrouped;			/* the set of groups with a share has changed */
	bool active;			/* our plan is in force */
	/* times of the last computation, the last new division, the last text */
	uint64_t planned, divided, written;
	char text[QOS_TEXT];
	const char *why;		/* why there is no plan; NULL: there is one */
};

#define QOS_STAY	4096		/* requests for which a group has a quota, the first time */
#define QOS_STAY_MAX	65536

#define QOS_OPTIONS_DEFAULT	{ .margin = 0.1, .ttl_ms = 1000, .interval_ms = 100 }

void qos_init(struct qos *q, const struct qos_options *opt, uint32_t sms);
/* The device's groups: begin, one call for each, end. Clients keep their groups. */
void qos_groups_begin(struct qos *q, bool space);
/* @max, @min: capsm.max and capsm.min in SMs; 0: none */
void qos_group(struct qos *q, const char *path, uint32_t target_us, uint32_t weight, double max,
	       double min);
void qos_groups_end(struct qos *q);
void qos_client_add(struct qos *q, uint64_t id, uint32_t pid, const char *path);
void qos_client_del(struct qos *q, uint64_t id);
/*
 * A task was granted @window, in 1/1024 CapSM, at @now, @wait_ns after its submit. @intensity:
 * GSCHED_INTENSITY_*
 */
void qos_granted(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t wait_ns,
		 uint32_t window, uint32_t intensity);
void qos_resized(struct qos *q, uint64_t id, unsigned int slot);	/* its window changed */
void qos_done(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t run_ns);
void qos_lost(struct qos *q);		/* events were lost */
/* The group whose quota the client uses; NULL: it shares the remainder */
struct qos_group *qos_owner(struct qos *q, const struct qos_client *c);
/* A request of a user-facing group has ended. */
void qos_measured(struct qos_group *g, const struct qos_request *r);
/* It has no quota, and the target is missed, or others get too little */
bool qos_needs_quota(const struct qos_group *g);
/* By how many us the client's request is behind the prediction; 0: it is not */
double qos_behind_us(const struct qos_group *g, const struct qos_flow *f, uint64_t now);
/* When qos_plan() should be called next */
uint64_t qos_next(struct qos *q);
/* The text to write to the file plan, new or to renew the plan in force; NULL: write nothing */
const char *qos_plan(struct qos *q, uint64_t now);
void qos_refused(struct qos *q);	/* the arbiter has refused the text */
/* Predicted latency of a user-facing group with its quota, us; NAN: not known */
double qos_latency_us(const struct qos_group *g);

#endif /* GSCHED_QOS_H */
