/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The QoS planner (C-Laius 5 to 8): computes the plans that the core's policy "plan" applies. What
 * it knows comes from the arbiter's events, and what it decides is the text for a device's file
 * "plan", so it serves both arbiters and the simulator. qos_model.c predicts durations,
 * qos_request.c finds requests among the kernels of a client, qos_divide.c divides the device, and
 * qos_plan.c puts them together. None of them reads a clock, prints, or does I/O.
 *
 * A group with gpu.latency_target_us is user-facing, the others are batch. Quotas are whole SMs.
 */
#ifndef GSCHED_QOS_H
#define GSCHED_QOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- qos_model.c: durations by quota ---- */
#define QOS_POINTS	16	/* quotas of which durations are kept */
#define QOS_SAMPLES	32
#define QOS_KNOWN	4	/* samples that a point needs to count */

struct qos_point {
	uint32_t sms, n, next;
	uint64_t stamp;			/* of the last sample */
	double us[QOS_SAMPLES];		/* a ring */
	double typical;			/* their quantile */
};

struct qos_model {
	double quantile;
	uint64_t stamp;			/* samples so far */
	uint32_t n;
	struct qos_point point[QOS_POINTS];	/* by rising number of SMs */
};

void qos_model_add(struct qos_model *m, uint32_t sms, double us);
bool qos_model_known(const struct qos_model *m);
double qos_model_us(const struct qos_model *m, uint32_t sms);	/* NAN: nothing is known */
/* The smallest quota of at most @most SMs with which it takes no longer than @us; 0: none does. */
uint32_t qos_model_enough(const struct qos_model *m, double us, uint32_t most);
/* Throughput with @sms as a part of that with @whole */
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
	bool open;			/* a request is under way */
	bool chained;			/* ... with idle moments in it */
	uint32_t done;			/* its tasks that have ended */
	uint64_t begin, last_end;
	uint64_t longest;		/* of its tasks, from submit to end */
	/* idle times by octaves of ns, and the longest that does not end a request */
	uint32_t gaps[QOS_OCTAVES], n_gaps;
	uint64_t pause;
	uint32_t tasks;			/* of a typical request, 0 not known yet */
};

/* True: a request has ended, and is in @ended. */
bool qos_flow_submit(struct qos_flow *f, unsigned int slot, uint64_t submitted, uint64_t granted,
		     struct qos_request *ended);
/* @most_ns: a request that takes longer is cut. */
bool qos_flow_done(struct qos_flow *f, unsigned int slot, uint64_t now, uint64_t most_ns,
		   struct qos_request *ended);
bool qos_flow_idle(struct qos_flow *f, uint64_t now, struct qos_request *ended);
/* Events were lost: forgets what runs. */
void qos_flow_reset(struct qos_flow *f);

/* ---- qos_divide.c: who gets how much ---- */
#define QOS_SHARES	64

struct qos_share {
	const struct qos_model *model;
	bool facing;
	uint32_t need;			/* user-facing: just enough for the target */
	double behind_us;		/* ... and how far the request under way is behind */
	uint32_t least, most;		/* SMs; least at least 1 */
	uint32_t weight;		/* batch */
	double bandwidth;		/* part of the memory bandwidth that it uses alone */
	uint32_t sms;			/* out */
};

/* @sms: of the device, at least the sum of what all must have at least. At most QOS_SHARES. */
void qos_divide(struct qos_share *share, size_t n, uint32_t sms);

/* ---- qos_groups.c: what there is on the device; qos_plan.c: what to write ---- */
#define QOS_PATH	256
#define QOS_GROUPS	256	/* programs in others count as in the root group */
#define QOS_CLIENTS	256
#define QOS_TEXT	4000	/* a file in sysfs takes a page */

enum qos_role {
	QOS_UNUSED,			/* no clients, or its clients are part of a group above */
	QOS_REST,			/* its own clients share what the plan leaves */
	QOS_BATCH,
	QOS_FACING,
};

enum qos_state {
	QOS_LEARNING,			/* no durations known yet */
	QOS_MET,
	QOS_MISSED,			/* even the whole device is not enough */
	QOS_SHORT,			/* other targets were served first */
};

struct qos_group {
	char path[QOS_PATH];		/* "" the root group */
	uint32_t target_us, weight, least, most;
	bool listed;			/* in the last qos_groups_end() */
	enum qos_role role;
	enum qos_state state;
	uint32_t clients;		/* directly in it */
	struct qos_model model;		/* of its requests, or of its tasks */
	double lag;			/* measured to predicted duration, 1 or more */
	double tail;			/* more than typical, for the slowest per cent, 1 or more */
	double bandwidth;
	uint32_t sms;			/* in the plan, 0: it does not name the group */
	uint32_t base;			/* what its requests need, as far as it was lowered */
	bool lent;			/* it is idle, and others have most of what it needs */
	uint32_t requests;		/* ended since @base changed */
	/* when @sms changed; when @base did, or it was back; the end of the last request */
	uint64_t changed, since, last_request;
};

struct qos_client {
	uint64_t id;
	uint32_t pid;
	int group;			/* index; -1: not known */
	struct qos_flow flow;
};

struct qos_options {
	double margin;			/* of a target that is left for what is not predicted */
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
	size_t n_untracked;		/* clients that there is no room for */
	bool urgent;			/* do not wait for the interval */
	bool regrouped;			/* who takes part has changed */
	bool active;			/* a plan of ours is in force */
	/* times of the last computation, of the last new division, of the last text */
	uint64_t planned, divided, written;
	char text[QOS_TEXT];
	const char *why;		/* there is no plan: a reason, or NULL */
};

#define QOS_OPTIONS_DEFAULT	{ .margin = 0.1, .ttl_ms = 1000, .interval_ms = 100 }

void qos_init(struct qos *q, const struct qos_options *opt, uint32_t sms);
/* The device's groups: begin, one call for each, end. Clients keep their groups. */
void qos_groups_begin(struct qos *q, bool space);
/* @max, @min: capsm.max and capsm.min in SMs, 0: none */
void qos_group(struct qos *q, const char *path, uint32_t target_us, uint32_t weight, double max,
	       double min);
void qos_groups_end(struct qos *q);
void qos_client_add(struct qos *q, uint64_t id, uint32_t pid, const char *path);
void qos_client_del(struct qos *q, uint64_t id);
/* A task was granted at @now, @wait_ns after its submit. @intensity: GSCHED_INTENSITY_* */
void qos_granted(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t wait_ns,
		 uint32_t intensity);
void qos_done(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t run_ns);
void qos_lost(struct qos *q);		/* events were lost */
/* The group whose quota the client uses; NULL: it shares what is left */
struct qos_group *qos_owner(struct qos *q, const struct qos_client *c);
/* A request of a user-facing group has ended. */
void qos_measured(struct qos_group *g, const struct qos_request *r);
/* How far the client's request is behind what was predicted, us; 0: it is not */
double qos_behind_us(const struct qos_group *g, const struct qos_flow *f, uint64_t now);
/* When qos_plan() should be called next */
uint64_t qos_next(struct qos *q);
/* What to write to the file plan, NULL: nothing. Another text than before, or the same renewed */
const char *qos_plan(struct qos *q, uint64_t now);
void qos_refused(struct qos *q);	/* the text was not accepted */
/* Predicted latency of a user-facing group with what it has, us; NAN: not known */
double qos_latency_us(const struct qos_group *g);

#endif /* GSCHED_QOS_H */
