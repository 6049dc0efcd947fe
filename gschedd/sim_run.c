// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl simulate: programs, the arbiter and the clock. As in gschedd's arbiter.c, each call of
 * a program is an event of the core and a commit. The core's actions change what the device sees,
 * after the delays that they have on a GPU. A program's launches are in one stream: they are
 * submitted as they arrive, and run one after the other.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "qos.h"
#include "sim_gpu.h"
#include "sim_stat.h"

#define EPOCH_NS	1000000000ULL	/* the core's time at the start, since 0 means none */
#define TIME_MAX_NS	10000000000000ULL
#define IDLE_NS		1000000ULL	/* an agent reports idleness after this time without work */
#define STUCK_NS	10000000000ULL	/* a run with only timer events for this time is stuck */

struct sim;

struct program {
	struct gsc_client core;
	struct gsc_task task[GSCHED_SLOTS];
	struct gsc_group group;		/* if it has its own */
	struct sim *sim;
	const struct sim_client *spec;
	uint32_t index;
	uint64_t coming;		/* launches to come or arrived */
	uint64_t launched, random;
	struct sim_launch *first, *last;	/* not ended, by arrival */
	struct sim_launch *slot[GSCHED_SLOTS];
	uint64_t slots;			/* mask of slots in use */
	uint32_t seq;
	bool on_device;			/* the first launch is on the device */
	/* with time slices, launches are not submitted, but may have to wait for a turn */
	uint32_t reported;		/* GSCHED_ACTIVITY_* */
	uint64_t idle_since;
	struct sim_samples latencies;
	uint64_t evictions;
	uint64_t done;
};

struct sim {
	struct gsc_device core;
	const struct sim_scenario *spec;
	const struct sim_policy *policy;
	bool managed;			/* by the core; false: a baseline */
	bool sliced;			/* programs share by time slices */
	struct sim_queue queue;
	struct sim_gpu gpu;
	struct gsc_group *groups;
	struct program *programs;
	size_t n;
	uint64_t now, last_end;
	uint64_t last_change;		/* time of the last event other than a timer */
	size_t timers;			/* timer events in the queue */
	struct qos *qos;		/* NULL: no planner */
	uint64_t qos_at;		/* time of its event in the queue, 0 none */
	uint64_t launches;		/* of all programs */
	size_t n_done;			/* programs with no further launches */
	const char *failed;
};

static struct sim *sim_of(const struct gsc_device *core)
{
	return container_of(core, struct sim, core);
}

static uint64_t core_now(const struct sim *sim)
{
	return EPOCH_NS + sim->now;
}

static void fail_run(struct sim *sim, const char *why)
{
	if (!sim->failed)
		sim->failed = why;
}

/* ---- the core's actions ---- */

static void send_window(struct sim *sim, struct sim_launch *launch, uint64_t window, uint64_t delay)
{
	const struct sim_event ev = {
		.time = sim->now + delay,
		.type = SIM_EV_WINDOW,
		.what = launch,
		.n = ++launch->sent,
		.value = window,
	};

	launch->events++;
	sim_queue_add(&sim->queue, &ev);
}

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
	struct program *p = container_of(task->client, struct program, core);

	p->evictions += why == GSC_EVICT;
	if (why == GSC_GRANT && p->sim->qos)
		qos_granted(p->sim->qos, p->index, task->slot, task->granted,
			    task->granted - task->submitted, task->window, task->intensity);
	else if (p->sim->qos)
		qos_resized(p->sim->qos, p->index, task->slot);
	send_window(p->sim, p->slot[task->slot], task->window,
		    why == GSC_EVICT ? p->sim->spec->evict : p->sim->spec->launch);
}

static void op_done(struct gsc_task *task)
{
	struct program *p = container_of(task->client, struct program, core);

	if (p->sim->qos)
		qos_done(p->sim->qos, p->index, task->slot, core_now(p->sim), task->ran);
}

static void op_arm_timer(struct gsc_device *core, u64 when)
{
	struct sim *sim = sim_of(core);
	const struct sim_event ev = {
		.time = when > EPOCH_NS + sim->now ? when - EPOCH_NS : sim->now,
		.type = SIM_EV_TIMER,
		.value = when,
	};

	if (!when)
		return;
	sim->timers++;
	sim_queue_add(&sim->queue, &ev);
}

static void op_set_band(struct gsc_client *core, const struct gsc_arb *old)
{
	struct program *p = container_of(core, struct program, core);
	const struct sim_event ev = { .time = p->sim->now, .type = SIM_EV_BAND, .who = p->index };

	if (p->sim->sliced)
		sim_queue_add(&p->sim->queue, &ev);
}

static void op_policy_changed(struct gsc_device *core)
{
	if (core->faulty)
		fail_run(sim_of(core),
			 "the policy broke its contract with the core: please report it "
			 "with the scenario");
}

static struct gsc_task *op_new_task(struct gsc_client *core, u32 slot)
{
	return &container_of(core, struct program, core)->task[slot];
}

static const struct gsc_ops ops = {
	.new_task = op_new_task,
	.set_window = op_set_window,
	.done = op_done,
	.arm_timer = op_arm_timer,
	.set_band = op_set_band,
	.policy_changed = op_policy_changed,
};

static void commit_core(struct sim *sim)
{
	gsc_commit(&sim->core, core_now(sim));
#ifdef __SANITIZE_ADDRESS__	/* test builds */
	if (gsc_check(&sim->core))
		fail_run(sim, "an invariant of the core does not hold");
#endif
}

/* ---- programs ---- */

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/*
 * Exponentially distributed with mean @mean. Uses comparisons only (von Neumann 1951), so the
 * result is the same with every C library.
 */
static uint64_t random_gap(uint64_t *state, uint64_t mean)
{
	uint64_t whole = 0, first, last, next;
	unsigned int n;

	for (;; whole++) {
		first = random64(state);
		last = first;
		for (n = 1; (next = random64(state)) < last; n++)
			last = next;
		if (n % 2)
			return whole * mean + (uint64_t)((double)first * 0x1p-64 * (double)mean);
	}
}

/* Schedules the next launch, if there is one. */
static void next_arrival(struct sim *sim, struct program *p, uint64_t when)
{
	const struct sim_event ev = { .time = when, .type = SIM_EV_ARRIVE, .who = p->index };

	if (p->coming == p->spec->count)
		return;
	p->coming++;
	sim_queue_add(&sim->queue, &ev);
}

static void submit_launch(struct sim *sim, struct program *p, struct sim_launch *launch)
{
	double predicted = (double)launch->block_ns * p->spec->predicted *
			   ceil((double)launch->kernel->blocks /
				((double)launch->kernel->per_sm * sim->spec->sms));
	struct gsched_submit req = {
		.size = sizeof(req),
		.tier = launch->opaque ? GSCHED_TIER_LAUNCH : GSCHED_TIER_BLOCK,
		.stream = 1,
		.blocks_per_sm = launch->kernel->per_sm,
		.blocks = launch->kernel->blocks,
		.block_ns = launch->block_ns,
		.intensity = launch->kernel->intensity,
		.predicted_ns = (uint64_t)predicted,
	};

	if (!sim->managed || sim->sliced) {
		send_window(sim, launch, 0, sim->spec->launch);
		return;
	}
	if (p->slots == UINT64_MAX)
		return;
	req.slot = __builtin_ctzll(~p->slots);
	req.seq = ++p->seq;
	p->slots |= 1ULL << req.slot;
	p->slot[req.slot] = launch;
	launch->slot = req.slot;
	launch->seq = req.seq;
	if (gsc_submit(&p->core, &req, core_now(sim)))
		fail_run(sim, "the core refuses a launch");
	commit_core(sim);
}

static void handle_arrival(struct sim *sim, struct program *p)
{
	const struct sim_kernel *k = p->spec->kernels[p->launched % p->spec->n_kernels];
	struct sim_launch *launch = calloc(1, sizeof(*launch));

	if (!launch || sim->launches++ == SIM_LAUNCHES_MAX) {
		fail_run(sim,
			 launch ?
				 "more than 1000000 launches: write a shorter duration_us, smaller "
				 "counts or longer times" : "out of memory");
		free(launch);
		return;
	}
	launch->kernel = k;
	launch->owner = p->index;
	launch->arrived = sim->now;
	launch->opaque = k->opaque || !sim->managed || sim->sliced;
	launch->block_ns = k->block_ns;
	if (!launch->opaque)
		launch->block_ns += (uint64_t)((double)k->block_ns * sim->spec->overhead);
	launch->left = k->blocks;
	launch->slot = GSCHED_SLOTS;
	if (p->last)
		p->last->next = launch;
	else
		p->first = launch;
	p->last = launch;
	p->launched++;
	if (p->spec->pace == SIM_PERIOD)
		next_arrival(sim, p, p->spec->start + p->launched * p->spec->interval);
	else if (p->spec->pace == SIM_POISSON)
		next_arrival(sim, p, sim->now + random_gap(&p->random, p->spec->interval));
	submit_launch(sim, p, launch);
}

static void send_report(struct sim *sim, struct program *p, uint32_t activity)
{
	struct gsched_report req = {
		.size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY, .activity = activity,
	};

	p->reported = activity;
	if (gsc_client_report(&p->core, &req, core_now(sim)))
		fail_run(sim, "the core refuses a report");
	commit_core(sim);
}

/* A lower band's agent reports work at once, and idleness after a while. */
static void report_activity(struct sim *sim, struct program *p)
{
	const struct sim_event ev = {
		.time = sim->now + IDLE_NS, .type = SIM_EV_IDLE, .who = p->index,
	};
	uint32_t activity = GSCHED_ACTIVITY_IDLE;

	if (!sim->sliced || !sim->managed)
		return;
	if (!(p->core.arb.flags & GSCHED_ARB_REPORT)) {
		p->reported = GSCHED_ACTIVITY_IDLE;
		return;
	}
	if (p->first)
		activity = p->on_device ? GSCHED_ACTIVITY_BUSY : GSCHED_ACTIVITY_WAITING;
	if (p->reported == activity)
		return;
	if (activity != GSCHED_ACTIVITY_IDLE || sim->now >= p->idle_since + IDLE_NS)
		send_report(sim, p, activity);
	else
		sim_queue_add(&sim->queue, &ev);
}

static void launch_first(struct sim *sim, struct program *p)
{
	if (!p->first || p->on_device || !p->first->granted)
		return;
	/* it is another lower band's turn */
	if (sim->sliced && p->core.arb.flags & GSCHED_ARB_CLOSED)
		return;
	p->on_device = true;
	if (sim_gpu_launch(&sim->gpu, p->first))
		fail_run(sim, "out of memory");
}

static void handle_window(struct sim *sim, struct sim_launch *launch, const struct sim_event *ev)
{
	struct program *p = &sim->programs[launch->owner];

	launch->events--;
	if (launch->over)
		return;
	/* the first window is the grant */
	launch->granted |= ev->n == 1;
	/* changes have different delays, so an older one may arrive later */
	if (ev->n > launch->seen) {
		launch->seen = ev->n;
		sim_gpu_window(&sim->gpu, launch, (uint32_t)ev->value);
	}
	launch_first(sim, p);
	report_activity(sim, p);
}

static struct sim_launch *first_unsubmitted(const struct program *p)
{
	struct sim_launch *launch = p->first;

	while (launch && launch->slot != GSCHED_SLOTS)
		launch = launch->next;
	return launch;
}

static void complete_launch(struct sim *sim, struct program *p, struct sim_launch *launch)
{
	const struct gsched_complete req = {
		.size = sizeof(req), .slot = launch->slot, .seq = launch->seq,
		.ran_ns = sim->now - launch->started,
	};
	bool full = p->slots == UINT64_MAX;
	struct sim_launch *waits;

	if (gsc_complete(&p->core, &req, core_now(sim)))
		fail_run(sim, "the core does not know a launch that ended");
	p->slots &= ~(1ULL << launch->slot);
	commit_core(sim);
	waits = full ? first_unsubmitted(p) : NULL;
	if (waits)
		submit_launch(sim, p, waits);
}

static void free_if_over(struct sim_launch *launch)
{
	if (launch->over && !launch->events)
		free(launch);
}

static void end_launch(struct sim *sim, struct sim_launch *launch)
{
	struct program *p = &sim->programs[launch->owner];

	if (sim_samples_add(&p->latencies, sim->now - launch->arrived))
		fail_run(sim, "out of memory");
	sim->last_end = sim->now;
	launch->over = true;
	p->first = launch->next;
	if (!p->first)
		p->last = NULL;
	p->on_device = false;
	p->idle_since = sim->now;
	launch_first(sim, p);
	if (sim->managed && !sim->sliced)
		complete_launch(sim, p, launch);
	report_activity(sim, p);
	if (++p->done == p->spec->count)
		sim->n_done++;
	else if (p->spec->pace == SIM_CLOSED)
		next_arrival(sim, p, sim->now + p->spec->interval);
}

/* ---- a run ---- */

static const char too_deep[] = "groups are nested too deeply: write fewer levels";

static int open_groups(struct sim *sim)
{
	const struct sim_scenario *s = sim->spec;
	struct gsc_group *g, *parent;
	const cJSON *file;

	for (size_t i = 0; i < s->n_groups; i++) {
		parent = s->groups[i].parent < 0 ? &sim->core.root :
						   &sim->groups[s->groups[i].parent];
		g = strcmp(s->groups[i].name, "/") ? &sim->groups[i] : &sim->core.root;
		if (g != &sim->core.root && gsc_group_init(g, parent)) {
			fail_run(sim, too_deep);
			return -1;
		}
		cJSON_ArrayForEach(file, s->groups[i].files)
			if (gsc_group_store(g, gsc_file_find(file->string), file->valuestring,
					    core_now(sim))) {
				fail_run(sim, "the core refuses a file of a group");
				return -1;
			}
	}
	return 0;
}

/* ---- plans ---- */

static struct gsc_group *find_group(void *arg, const char *path, size_t len)
{
	struct sim *sim = arg;

	if (len == 1 && *path == '/')
		return &sim->core.root;
	for (size_t i = 0; i < sim->spec->n_groups; i++)
		if (strlen(sim->spec->groups[i].name) == len &&
		    !memcmp(sim->spec->groups[i].name, path, len))
			return &sim->groups[i];
	return NULL;
}

static void set_plan(struct sim *sim, const char *text)
{
	if (gsc_device_plan(&sim->core, text, find_group, sim, core_now(sim)))
		fail_run(sim, "the plan is refused: write a time up to 60000 ms and "
			 "GROUP=CAPSM pairs, together not above the device");
	commit_core(sim);
}

static void describe_group(struct sim *sim, const char *name, const struct gsc_group *g)
{
	double max = g->max == GSC_MAX_UNLIMITED ? 0 : (double)g->max / GSCHED_CAPSM;

	qos_group(sim->qos, strcmp(name, "/") ? name : "", g->latency_us, g->weight, max,
		  (double)g->min / GSCHED_CAPSM);
}

/* As gschedctl qos does with the status; in a simulation groups do not change. */
static int open_qos(struct sim *sim)
{
	static const struct qos_options opt = QOS_OPTIONS_DEFAULT;
	const struct sim_scenario *s = sim->spec;

	if (strcmp(sim->policy->policy, SIM_QOS))
		return 0;
	sim->qos = calloc(1, sizeof(*sim->qos));
	if (!sim->qos) {
		fail_run(sim, "out of memory");
		return -1;
	}
	qos_init(sim->qos, &opt, s->sms);
	qos_groups_begin(sim->qos, sim->core.mode == GSCHED_MODE_SPATIAL);
	describe_group(sim, "/", &sim->core.root);
	for (size_t i = 0; i < s->n_groups; i++)
		if (strcmp(s->groups[i].name, "/"))
			describe_group(sim, s->groups[i].name, &sim->groups[i]);
	qos_groups_end(sim->qos);
	for (size_t i = 0; i < sim->n; i++) {
		int group = sim->programs[i].spec->group;
		const char *name = group < 0 ? "/" : s->groups[group].name;

		qos_client_add(sim->qos, i, (uint32_t)i + 1, strcmp(name, "/") ? name : "");
	}
	return 0;
}

/* After all events of a point in time: makes a plan if one is due, and schedules the next */
static void run_qos(struct sim *sim)
{
	struct sim_event ev = { .type = SIM_EV_QOS };
	const char *text;

	if (!sim->qos)
		return;
	if (core_now(sim) >= qos_next(sim->qos)) {
		text = qos_plan(sim->qos, core_now(sim));
		if (text)
			set_plan(sim, text);
	}
	ev.time = qos_next(sim->qos) - EPOCH_NS;
	if (sim->qos_at && sim->qos_at <= ev.time)
		return;
	sim->qos_at = ev.time;
	sim->timers++;
	sim_queue_add(&sim->queue, &ev);
}

/* The header of the program's band has changed: its slice, or its turn. */
static void handle_band(struct sim *sim, struct program *p)
{
	uint32_t us = p->core.arb.slice_us ? p->core.arb.slice_us : SIM_DRIVER_SLICE_US;

	sim->gpu.slice[p->index] = us * 1000ULL;
	sim->gpu.changed = true;
	launch_first(sim, p);
	report_activity(sim, p);
}

/* Groups with the same gpu.band have one MPS server, and so one channel group. */
static uint64_t channel_group(const struct sim *sim, const struct gsc_group *group)
{
	const char *band = gsc_group_band(group);

	for (size_t i = 0; *band && i < sim->spec->n_groups; i++)
		if (!strcmp(band, gsc_group_band(&sim->groups[i])))
			return i + 1;
	return 0;
}

static int open_core(struct sim *sim)
{
	const struct sim_scenario *s = sim->spec;
	struct gsc_group *group;
	struct program *p;

	bool plans = !strcmp(sim->policy->policy, SIM_QOS);

	if (gsc_device_init(&sim->core, &ops, s->sms) ||
	    gsc_device_set_policy(&sim->core, plans ? "hpf" : sim->policy->policy, core_now(sim)) ||
	    gsc_device_set_mode(&sim->core, sim->policy->mode, core_now(sim))) {
		fail_run(sim, "the core refuses the device");
		return -1;
	}
	for (int i = 0; i < GSC_PARAM_COUNT; i++)
		if (sim->policy->param[i])
			gsc_device_set_param(&sim->core, i, sim->policy->param[i], core_now(sim));
	if (open_groups(sim))
		return -1;
	for (size_t i = 0; i < sim->n; i++) {
		p = &sim->programs[i];
		group = p->spec->group < 0 || !strcmp(s->groups[p->spec->group].name, "/") ?
				&sim->core.root :
				&sim->groups[p->spec->group];
		if (p->spec->own_group) {
			if (gsc_group_init(&p->group, group)) {
				fail_run(sim, too_deep);
				return -1;
			}
			group = &p->group;
		}
		p->core.pid = p->index + 1;
		if (gsc_client_attach(&p->core, group,
				      s->mps ? GSCHED_ATTACH_MPS : GSCHED_ATTACH_SLICE,
				      s->mps ? channel_group(sim, group) : 0, core_now(sim))) {
			fail_run(sim, "the core refuses a client");
			return -1;
		}
	}
	commit_core(sim);
	if (s->mps && sim->policy->mode < 0 && sim->core.mode != GSCHED_MODE_SPATIAL) {
		fail_run(sim, "several MPS servers are not simulated: write one gpu.band, or "
			 "\"mps\": false, or \"mode\": \"temporal\" in the run (one "
			 "program at a time)");
		return -1;
	}
	for (size_t i = 0; i < sim->n && sim->sliced; i++)
		if (sim->programs[i].core.arb.share < GSCHED_SHARE_ALL) {
			fail_run(sim, "capsm.max is a share of time without MPS, which is not "
				 "simulated: leave it out, or write \"mode\": "
				 "\"temporal\" in the run");
			return -1;
		}
	if (sim->policy->plan)
		set_plan(sim, sim->policy->plan);
	if (!s->mps && sim->policy->mode == GSCHED_MODE_SPATIAL && sim->n > 1) {
		fail_run(sim,
			 "without MPS programs cannot run at the same time: write \"mode\": "
			 "\"temporal\" in the run, or \"mps\": true");
		return -1;
	}
	return 0;
}

static int open_sim(struct sim *sim, int only)
{
	sim->n = only < 0 ? sim->spec->n_clients : 1;
	sim->programs = calloc(sim->n, sizeof(*sim->programs));
	sim->groups = calloc(sim->spec->n_groups + 1, sizeof(*sim->groups));
	if (!sim->programs || !sim->groups ||
	    sim_gpu_init(&sim->gpu, &sim->queue, sim->spec->sms, (uint32_t)sim->n)) {
		fail_run(sim, "out of memory");
		return -1;
	}
	/* the runs alone and the baseline "mps" use MPS in any case */
	sim->sliced = only < 0 && (sim->managed ? !sim->spec->mps && sim->policy->mode < 0 :
				   !strcmp(sim->policy->policy, SIM_TIME_SLICING));
	sim->gpu.exclusive = sim->sliced || (sim->managed && !sim->spec->mps);
	sim->gpu.sliced = sim->sliced;
	sim->gpu.switch_ns = sim->spec->switched;
	for (size_t i = 0; i < sim->n; i++) {
		struct program *p = &sim->programs[i];

		p->sim = sim;
		p->spec = &sim->spec->clients[only < 0 ? i : (size_t)only];
		p->index = (uint32_t)i;
		p->random = p->spec->seed;
		sim->gpu.slice[i] = SIM_DRIVER_SLICE_US * 1000ULL;
	}
	if (sim->managed && (open_core(sim) || open_qos(sim)))
		return -1;
	run_qos(sim);
	for (size_t i = 0; i < sim->n; i++)
		for (uint64_t k = 0; k < sim->programs[i].spec->in_flight; k++)
			next_arrival(sim, &sim->programs[i], sim->programs[i].spec->start);
	return 0;
}

static void close_sim(struct sim *sim)
{
	struct sim_launch *launch, *next;
	struct sim_event ev;

	sim_gpu_free(&sim->gpu);
	/* an ended launch lives until its last event; the others are in their programs' lists */
	while (sim_queue_first(&sim->queue)) {
		ev = sim_queue_take(&sim->queue);
		if (!ev.what)
			continue;
		launch = ev.what;
		launch->events--;
		free_if_over(launch);
	}
	sim_queue_free(&sim->queue);
	for (size_t i = 0; sim->programs && i < sim->n; i++) {
		for (launch = sim->programs[i].first; launch; launch = next) {
			next = launch->next;
			free(launch);
		}
		sim_samples_free(&sim->programs[i].latencies);
	}
	free(sim->programs);
	free(sim->groups);
	free(sim->qos);
}

static void handle_event(struct sim *sim, const struct sim_event *ev)
{
	struct sim_launch *launch = ev->what;

	if (ev->type != SIM_EV_TIMER && ev->type != SIM_EV_QOS)
		sim->last_change = sim->now;
	switch (ev->type) {
	case SIM_EV_ARRIVE:
		handle_arrival(sim, &sim->programs[ev->who]);
		break;
	case SIM_EV_WINDOW:
		handle_window(sim, launch, ev);
		free_if_over(launch);
		break;
	case SIM_EV_BLOCKS:
		if (sim_gpu_blocks_end(&sim->gpu, launch, ev->who, ev->n, sim->now)) {
			end_launch(sim, launch);
			free_if_over(launch);
		}
		break;
	case SIM_EV_TIMER:
		sim->timers--;
		if (sim->core.timer != ev->value)
			break;
		gsc_tick(&sim->core, core_now(sim));
		commit_core(sim);
		break;
	case SIM_EV_QOS:
		sim->timers--;
		if (sim->qos_at == ev->time)
			sim->qos_at = 0;
		break;
	case SIM_EV_SLICE:
		sim_gpu_slice(&sim->gpu, ev->value);
		break;
	case SIM_EV_BAND:
		handle_band(sim, &sim->programs[ev->who]);
		break;
	case SIM_EV_IDLE:
		report_activity(sim, &sim->programs[ev->who]);
		break;
	case SIM_EV_SWITCHED:
		sim->gpu.changed = true;
		break;
	}
}

/* Only timers of the core have come for a long time. */
static bool is_stuck(const struct sim *sim, const struct sim_event *first)
{
	return sim->timers == sim->queue.n && first->time > sim->last_change + STUCK_NS;
}

/* Runs until the end; returns its time. */
static uint64_t run_loop(struct sim *sim)
{
	const struct sim_event *first;
	struct sim_event ev;
	uint64_t events = 0;

	while (sim->n_done < sim->n && !sim->failed) {
		first = sim_queue_first(&sim->queue);
		if (sim->spec->duration && (!first || first->time >= sim->spec->duration))
			return sim->spec->duration;
		if (!first || is_stuck(sim, first)) {
			fail_run(sim, "launches wait for ever: with less than one block's "
				 "part of an SM as capsm.max a kernel cannot run; write "
				 "a larger one, or duration_us");
			break;
		}
		sim->now = first->time;
		if (sim->now > TIME_MAX_NS)
			fail_run(sim,
				 "it takes more than 10000 seconds: write fewer launches or "
				 "a duration_us");
		while (first && first->time == sim->now && !sim->failed) {
			ev = sim_queue_take(&sim->queue);
			handle_event(sim, &ev);
			if (++events > SIM_EVENTS_MAX)
				fail_run(sim,
					 "it has more than 50000000 events: write "
					 "fewer launches, a shorter duration_us or "
					 "longer block-tasks");
			first = sim_queue_first(&sim->queue);
		}
		run_qos(sim);
		sim_gpu_fill(&sim->gpu, sim->now);
		if (sim->queue.failed)
			fail_run(sim, "out of memory");
	}
	return sim->now;
}

static void cut_events(struct sim *sim, uint64_t end)
{
	for (size_t i = 0; i < sim->queue.n; i++)
		if (sim->queue.heap[i].type == SIM_EV_BLOCKS && sim->queue.heap[i].time > end)
			sim_gpu_cut(&sim->gpu, &sim->queue.heap[i], end);
}

static void take_results(struct sim *sim, uint64_t end, const struct sim_samples *alone,
			 struct sim_result *result)
{
	double whole = (double)sim->spec->sms * (double)(end ? end : 1);

	cut_events(sim, end);
	for (size_t i = 0; i < sim->n; i++) {
		struct sim_client_result *c = &result->clients[i];
		struct program *p = &sim->programs[i];

		c->ntt = sim_stat_ntt(&p->latencies, &alone[i]);
		sim_samples_take(&p->latencies, c);
		c->share = sim->gpu.used[i] / whole;
		c->evictions = p->evictions;
		result->utilisation += c->share;
	}
	result->makespan_us = (double)sim->last_end / 1000;
	result->decisions = sim->managed ? sim->core.decisions : 0;
	sim_stat_system(result);
}

/* Simulates client @only by itself, and stores its latencies in @alone. -1 with the reason. */
static int simulate_alone(const struct sim_scenario *s, int only, struct sim_samples *alone,
			  const char **why)
{
	static const struct sim_policy baseline = {
		.name = SIM_BASELINE, .policy = SIM_BASELINE, .mode = -1,
	};
	struct sim *sim = calloc(1, sizeof(*sim));

	*why = "out of memory";
	if (!sim)
		return -1;
	sim->spec = s;
	sim->policy = &baseline;
	if (!open_sim(sim, only)) {
		run_loop(sim);
		*alone = sim->programs[0].latencies;
		sim->programs[0].latencies = (struct sim_samples){ 0 };
	}
	*why = sim->failed;
	close_sim(sim);
	free(sim);
	return *why ? -1 : 0;
}

static int simulate_run(const struct sim_scenario *s, const struct sim_policy *policy,
			const struct sim_samples *alone, struct sim_result *result,
			const char **why)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	uint64_t end = 0;

	*result = (struct sim_result){ 0 };
	*why = "out of memory";
	if (!sim)
		return -1;
	sim->spec = s;
	sim->policy = policy;
	sim->managed = strcmp(policy->policy, SIM_BASELINE) &&
		       strcmp(policy->policy, SIM_TIME_SLICING);
	if (!open_sim(sim, -1))
		end = run_loop(sim);
	result->n_clients = s->n_clients;
	result->clients = calloc(s->n_clients, sizeof(*result->clients));
	if (!result->clients)
		fail_run(sim, "out of memory");
	else if (!sim->failed)
		take_results(sim, end, alone, result);
	*why = sim->failed;
	close_sim(sim);
	free(sim);
	return *why ? -1 : 0;
}

static void explain_failure(char error[SIM_ERROR_SIZE], const char *file, const char *run,
			    const char *why)
{
	snprintf(error, SIM_ERROR_SIZE, "%.200s: run %.60s: %s", file, run, why);
}

static int copy_samples(struct sim_samples *to, const struct sim_samples *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (sim_samples_add(to, from->ns[i]))
			return -1;
	return 0;
}

int sim_alone(const struct sim_scenario *s, const char *file, struct sim_samples *alone,
	      char error[SIM_ERROR_SIZE])
{
	const char *why = "out of memory";
	int err = 0;

	for (size_t i = 0; i < s->n_clients && !err; i++) {
		/* copies differ only in the random numbers that they draw */
		if (i && s->clients[i].copy > 1 && s->clients[i].pace != SIM_POISSON)
			err = copy_samples(&alone[i], &alone[i - 1]);
		else
			err = simulate_alone(s, (int)i, &alone[i], &why);
	}
	if (err)
		explain_failure(error, file, "of a client alone", why ? why : "out of memory");
	return err;
}

int sim_run(const struct sim_scenario *s, const struct sim_policy *run, const char *file,
	    const struct sim_samples *alone, struct sim_result *result, char error[SIM_ERROR_SIZE])
{
	const char *why;
	int err = simulate_run(s, run, alone, result, &why);

	if (err)
		explain_failure(error, file, run->name, why);
	return err;
}

void sim_result_free(struct sim_result *result)
{
	free(result->clients);
	*result = (struct sim_result){ 0 };
}
