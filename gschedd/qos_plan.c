// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QoS planner: what each user-facing group needs now, and the text of the plan.
 *
 * A group whose requests come seldom enough comes first (policy plan) and has no quota: it takes
 * what it wants, and between requests batch programs have the whole device. Where the target is not
 * met so, because what they run does not leave in time, or where they would get too little, the
 * group is given a quota of its own (C-Laius), which is raised at once and lowered slowly: after
 * some requests, by half of the apparent excess. After thousands of requests it is tried again
 * whether it needs that.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "qos.h"

#define SETTLE		8		/* requests to measure before a quota is lowered */
#define LAG_MAX		2.0
#define TAIL_STEP	0.1
#define LAG_RISES	4		/* requests in which the lag rises to most of its value */
#define LAG_FADES	16		/* ... and in which it decays */
#define RATE_NS		2000000ULL	/* least interval of computations */
#define REDIVIDE_NS	1000000000ULL	/* least interval of changes of batch quotas */
#define WARM_UP		32		/* a group's first requests, which tell little, and */
#define WARM_UP_NS	1000000000ULL	/* all in that time: kernels from before are not evicted */
#define TRIAL		32		/* requests to judge by how often they come */
#define HOPELESS	128		/* with a quota of the whole device */
#define TRIAL_MAX	1024		/* at so many, they are halved, so that old ones fade */
#define LATE_MIN	4		/* the target is missed: so many are late */
#define LATE_PART	100		/* ... and more than one of so many */
#define DUTY_MAX	0.6		/* with more batch programs get too little without a quota */
#define DUTY_FADES	16

static void raise_lag(struct qos_group *g, double ratio)
{
	if (ratio > g->lag)
		g->lag += (fmin(ratio, LAG_MAX) - g->lag) / LAG_RISES;
}

/*
 * Targets are for the 99th percentile (9.1), which no model predicts, above all if requests arrive
 * at random and queue. So the factor is found by feedback: it is stable if 1% of the requests miss
 * their target. Several in a row are one event, which the model learns from, too.
 */
static void adapt_tail(struct qos_group *g, double us)
{
	bool missed = us > g->target_us;

	if (!missed)
		g->tail -= TAIL_STEP * 0.01;
	else if (!g->missed)
		g->tail += TAIL_STEP * 0.99;
	g->tail = fmin(fmax(g->tail, 1), LAG_MAX);
	g->missed = missed;
}

static void count_request(struct qos_group *g, const struct qos_request *r, double us)
{
	if (g->last_end && r->end > g->last_end)
		g->duty += (fmin((double)r->ns / (double)(r->end - g->last_end), 1) - g->duty) /
			   DUTY_FADES;
	g->last_end = r->end;
	g->stay -= !!g->stay;
	if (!g->first)
		g->first = r->begin;
	if (++g->n <= WARM_UP || r->end < g->first + WARM_UP_NS)
		return;
	if (++g->trial == TRIAL_MAX) {
		g->trial /= 2;
		g->late /= 2;
	}
	g->late += us > g->budget_us;
}

/* Section 7: compares predicted and actual duration; they differ mostly by contention. */
void qos_measured(struct qos_group *g, const struct qos_request *r)
{
	double us = (double)r->ns / 1000, predicted = qos_model_us(&g->model, g->sms ? g->sms : 1);

	g->requests++;
	count_request(g, r, us);
	if (!g->sms || r->begin < g->since)
		return;
	adapt_tail(g, us);
	/*
	 * A request during which the quota changed is no sample for either quota, but a lower bound
	 * for the smaller one, its base.
	 */
	if (r->begin < g->changed) {
		if (us > qos_model_us(&g->model, g->base)) {
			raise_lag(g, us / qos_model_us(&g->model, g->base));
			qos_model_add(&g->model, g->base, us);
		}
		return;
	}
	g->lag -= (g->lag - 1) / LAG_FADES;
	raise_lag(g, us / predicted);
	qos_model_add(&g->model, g->sms, us);
}

/* The fraction of a request's work that remains when its current task, mostly done, is late */
static double remaining_work(const struct qos_flow *f)
{
	return f->done < f->tasks ? (f->tasks - f->done - 0.75) / f->tasks : 0.25 / f->tasks;
}

/*
 * Section 7, equations 6 and 7: the time since its begin from which on a request is behind: slower
 * than predicted, and late even if the rest takes the predicted time. NAN: not known
 */
static double due_us(const struct qos_group *g, const struct qos_flow *f)
{
	double whole = qos_model_us(&g->model, g->sms ? g->sms : 1), rest;

	if (!f->open || !f->tasks || !g->sms)
		return NAN;
	rest = remaining_work(f);
	return fmax(whole * fmin(1, 1 - rest + 0.25 / f->tasks), g->target_us - whole * rest);
}

double qos_behind_us(const struct qos_group *g, const struct qos_flow *f, uint64_t now)
{
	double late = (double)(now - f->begin) / 1000 - due_us(g, f);

	return now > f->begin && late > 0 ? late : 0;
}

/* The quota with which the request still meets its target if it goes on at its pace so far */
static uint32_t need_of_rest(const struct qos_group *g, const struct qos_flow *f, uint32_t most,
			     uint64_t now)
{
	double elapsed = (double)(now - f->begin) / 1000, rest = remaining_work(f);
	double pace = elapsed / (qos_model_us(&g->model, g->sms) * fmax(1 - rest, 0.25));
	double left_us = g->target_us - elapsed;
	uint32_t sms = qos_model_enough(&g->model, left_us / (rest * fmax(pace, 1)), most);

	return sms ? sms : most;
}

/* Section 6.1: just enough SMs, with margin and lag. 0: all of them are not enough */
static uint32_t just_enough(const struct qos_group *g, uint32_t most)
{
	return qos_model_enough(&g->model, g->budget_us / (g->lag * g->tail), most);
}

static uint32_t lower_slowly(const struct qos_group *g, uint32_t need)
{
	if (!g->base || need >= g->base)
		return need;
	return g->requests < SETTLE ? g->base : g->base - (g->base - need + 1) / 2;
}

static void set_base(struct qos_group *g, uint32_t need, uint64_t now)
{
	if (g->base == need)
		return;
	g->base = need;
	g->since = now;
	g->requests = 0;
}

static bool is_missed(const struct qos_group *g)
{
	return g->late >= LATE_MIN && g->late * LATE_PART > g->trial;
}

bool qos_needs_quota(const struct qos_group *g)
{
	return !g->kept && !g->stay &&
	       (is_missed(g) || (g->trial >= TRIAL && g->duty > DUTY_MAX));
}

/* What was learned without a quota says nothing of how long requests take with one. */
static void set_kept(struct qos *q, struct qos_group *g, bool kept, uint64_t now)
{
	g->kept = kept;
	g->model = (struct qos_model){ .quantile = g->model.quantile };
	g->lag = g->tail = 1;
	g->trial = g->late = 0;
	g->duty = 0;
	g->base = 0;
	g->requests = 0;
	g->since = now;
	q->regrouped = true;
}

static void stay_long(struct qos_group *g)
{
	g->stay = g->stay_next;
	g->stay_next = g->stay * 2 < QOS_STAY_MAX ? g->stay * 2 : QOS_STAY_MAX;
}

static void choose_kept(struct qos *q, struct qos_group *g, uint64_t now)
{
	bool hopeless = g->kept && g->state == QOS_MISSED && g->requests >= HOPELESS;

	if (g->kept && (hopeless || !g->stay)) {
		set_kept(q, g, false, now);
		if (hopeless)
			stay_long(g);
	} else if (qos_needs_quota(g)) {
		set_kept(q, g, true, now);
		stay_long(g);
	}
}

/* Sets what a group with a quota needs: its base, or more while a request is behind. */
static void set_need(struct qos *q, struct qos_group *g, struct qos_share *share, uint64_t now)
{
	uint32_t need = just_enough(g, share->most), rest;
	double late;

	g->state = !qos_model_known(&g->model) ? QOS_LEARNING : need ? QOS_MET : QOS_MISSED;
	set_base(g, lower_slowly(g, need ? need : share->most), now);
	share->need = g->base;
	for (size_t i = 0; i < q->n_clients; i++) {
		const struct qos_flow *f = &q->client[i].flow;

		late = qos_owner(q, &q->client[i]) == g ? qos_behind_us(g, f, now) : 0;
		if (late <= 0)
			continue;
		share->behind_us = fmax(share->behind_us, late);
		rest = need_of_rest(g, f, share->most, now);
		share->need = rest > share->need ? rest : share->need;
	}
}

/* A group that has none */
static void set_first(struct qos_group *g, uint64_t now)
{
	g->state = is_missed(g) ? QOS_MISSED :
		   qos_model_known(&g->model) ? QOS_MET : QOS_LEARNING;
	if (g->sms == g->most)
		return;
	g->sms = g->most;
	g->changed = now;
}

static bool takes_part(const struct qos_group *g)
{
	return g->role == QOS_BATCH || g->role == QOS_FACING;
}

/* Ends requests after which no task has followed for longer than a pause. */
static void end_requests(struct qos *q, uint64_t now)
{
	for (size_t i = 0; i < q->n_clients; i++) {
		struct qos_group *g = qos_owner(q, &q->client[i]);
		struct qos_request ended;

		if (g && g->role == QOS_FACING && qos_flow_idle(&q->client[i].flow, now, &ended))
			qos_measured(g, &ended);
	}
}

/* Are there programs whose groups the plan does not name, which share the remainder? */
static bool has_rest(const struct qos *q)
{
	for (size_t i = 0; i < q->n_groups; i++)
		if (q->group[i].role == QOS_REST)
			return true;
	for (size_t i = 0; i < q->n_clients; i++)
		if (q->client[i].group < 0)
			return true;
	return false;
}

/* Why no plan can be made; NULL: it can */
static const char *why_no_plan(const struct qos *q)
{
	size_t n = has_rest(q), facing = 0;

	for (size_t i = 0; i < q->n_groups; i++) {
		facing += q->group[i].role == QOS_FACING;
		n += takes_part(&q->group[i]);
	}
	if (!facing)
		return "no group with a latency target has a program";
	if (n < 2)
		return "no other group has a program";
	if (!q->space)
		return "the programs share the GPU in time: a plan divides SMs inside one band";
	if (n > q->sms)
		return "there are more groups with programs than SMs";
	if (n > QOS_SHARES || q->n_untracked)
		return "there are too many programs, or groups with programs";
	return NULL;
}

/*
 * Resets all lower bounds to 1 if their sum exceeds the device. What they leave is the most that
 * anybody can have
 */
static void set_bounds(struct qos_share *share, size_t n, uint32_t sms)
{
	uint32_t sum = 0, left;

	for (size_t i = 0; i < n; i++)
		sum += share[i].least;
	for (size_t i = 0; i < n && sum > sms; i++)
		share[i].least = 1;
	for (size_t i = sum = 0; i < n; i++)
		sum += share[i].least;
	for (size_t i = 0; i < n; i++) {
		left = sms - sum + share[i].least;
		share[i].most = share[i].most < left ? share[i].most : left;
	}
}

/*
 * Fills in a share for each group in @of[] that is to have a quota, then one for the remainder if
 * any program is in it
 */
static size_t make_shares(struct qos *q, struct qos_share *share, struct qos_group **of,
			  uint64_t now)
{
	static const struct qos_model nothing;
	size_t n = 0;

	for (size_t i = 0; i < q->n_groups; i++) {
		struct qos_group *g = &q->group[i];

		if (!takes_part(g))
			continue;
		if (g->role == QOS_FACING)
			choose_kept(q, g, now);
		if (g->role == QOS_FACING && !g->kept) {
			set_first(g, now);
			continue;
		}
		share[n] = (struct qos_share){
			.model = &g->model, .facing = g->role == QOS_FACING, .least = g->least,
			.most = g->most, .weight = g->weight, .bandwidth = g->bandwidth,
		};
		of[n++] = g;
	}
	if (has_rest(q))
		share[n++] = (struct qos_share){
			.model = &nothing, .least = 1, .most = q->sms, .weight = 100,
		};
	set_bounds(share, n, q->sms);
	for (size_t i = 0; i < n; i++)
		if (of[i] && share[i].facing)
			set_need(q, of[i], &share[i], now);
	return n;
}

static bool needs_change(const struct qos *q, const struct qos_share *share, size_t n,
			 struct qos_group *const *of)
{
	if (q->regrouped || !q->active)
		return true;
	for (size_t i = 0; i < n; i++)
		if (of[i] && share[i].facing && share[i].need != of[i]->sms)
			return true;
	return false;
}

/* Ignores small changes, as of the batch groups' models, which are not worth evictions. */
static bool differs_much(const struct qos_share *share, size_t n, struct qos_group *const *of)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t old = of[i] ? of[i]->sms : share[i].sms;
		uint32_t by = share[i].sms > old ? share[i].sms - old : old - share[i].sms;

		if (by > 1 + old / 8)
			return true;
	}
	return false;
}

/* What batch groups get while no request is served: only the memory bandwidth limits it */
static void divide_alone(const struct qos *q, const struct qos_share *share, size_t n,
			 struct qos_group *const *of)
{
	struct qos_share idle[QOS_SHARES] = { 0 };
	size_t n_batch = 0, at;

	for (size_t i = 0; i < n; i++)
		if (!share[i].facing)
			idle[n_batch++] = share[i];
	qos_divide(idle, n_batch, q->sms);
	for (size_t i = at = 0; i < n; i++) {
		struct qos_group *g = of[i];

		if (share[i].facing)
			continue;
		if (g)
			g->alone = g->bandwidth > 0 ? idle[at].sms : g->most;
		at++;
	}
}

/* Computes new quotas in @share; false: those in force are kept */
static bool divide_device(struct qos *q, struct qos_share *share, size_t n,
			  struct qos_group *const *of, uint64_t now)
{
	bool needed = needs_change(q, share, n, of);

	if (!needed && now < q->divided + REDIVIDE_NS)
		return false;
	q->divided = now;
	qos_divide(share, n, q->sms);
	if (!needed && !differs_much(share, n, of))
		return false;
	divide_alone(q, share, n, of);
	return true;
}

static void take_shares(struct qos *q, const struct qos_share *share, size_t n,
			struct qos_group **of, uint64_t now)
{
	for (size_t i = 0; i < n; i++) {
		struct qos_group *g = of[i];

		if (!g)
			continue;
		if (share[i].facing && share[i].sms < share[i].need && g->state == QOS_MET)
			g->state = QOS_SHORT;
		if (g->sms == share[i].sms)
			continue;
		if (share[i].behind_us > 0 && share[i].sms > g->sms)
			raise_lag(g, 1 + share[i].behind_us / qos_model_us(&g->model, g->sms));
		g->sms = share[i].sms;
		g->changed = now;
	}
	q->regrouped = false;
}

__attribute__((format(printf, 3, 4)))
static bool append_text(char *text, size_t *used, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text + *used, QOS_TEXT - *used, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= QOS_TEXT - *used) {
		text[*used] = '\0';
		return false;
	}
	*used += (size_t)n;
	return true;
}

static bool has_quotas(const struct qos *q)
{
	for (size_t i = 0; i < q->n_groups; i++)
		if (q->group[i].role == QOS_FACING && q->group[i].kept)
			return true;
	return false;
}

static void print_group(const struct qos *q, const struct qos_group *g, char *text, size_t *used)
{
	uint32_t least = has_quotas(q) ? g->sms : 0;

	if (g->role == QOS_FACING && g->kept)
		append_text(text, used, " %s=%u!", g->path, g->sms);
	else if (g->role == QOS_FACING)
		append_text(text, used, " %s=0-%u", g->path, g->sms);
	else if (least < g->alone)
		append_text(text, used, " %s=%u-%u", g->path, least, g->alone);
	else
		append_text(text, used, " %s=%u", g->path, least);
}

/* User-facing groups come first. Batch groups for which there is no room share the remainder. */
static void print_plan(const struct qos *q, char *text)
{
	size_t used = 0;

	append_text(text, &used, "%u", q->opt.ttl_ms);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < q->n_groups; i++) {
			const struct qos_group *g = &q->group[i];

			if (g->role == (pass ? QOS_BATCH : QOS_FACING) && g->sms)
				print_group(q, g, text, &used);
		}
}

static const char *end_plan(struct qos *q)
{
	bool was = q->active;

	q->active = false;
	for (size_t i = 0; i < q->n_groups; i++)
		q->group[i].sms = q->group[i].base = 0;
	snprintf(q->text, sizeof(q->text), "none");
	return was ? q->text : NULL;
}

uint64_t qos_next(struct qos *q)
{
	uint64_t soon = q->planned + RATE_NS, next = q->planned + q->opt.interval_ms * 1000000ULL;

	if (q->urgent)
		return soon;
	/* wake up when a request in progress would be behind */
	for (size_t i = 0; i < q->n_clients && q->active; i++) {
		const struct qos_flow *f = &q->client[i].flow;
		const struct qos_group *g = qos_owner(q, &q->client[i]);
		double due = g && g->role == QOS_FACING ? due_us(g, f) : NAN;
		uint64_t at = f->begin + (due < 1e9 ? (uint64_t)(due * 1000) + 1 : 0);

		if (due < 1e9 && at > q->planned && at < next)
			next = at > soon ? at : soon;
	}
	return next;
}

const char *qos_plan(struct qos *q, uint64_t now)
{
	struct qos_share share[QOS_SHARES] = { 0 };
	struct qos_group *of[QOS_SHARES] = { 0 };
	char text[QOS_TEXT];
	size_t n;

	q->planned = now;
	q->urgent = false;
	end_requests(q, now);
	q->why = why_no_plan(q);
	if (q->why)
		return end_plan(q);
	n = make_shares(q, share, of, now);
	if (divide_device(q, share, n, of, now))
		take_shares(q, share, n, of, now);
	print_plan(q, text);
	if (q->active && !strcmp(text, q->text) && now < q->written + q->opt.ttl_ms * 500000ULL)
		return NULL;
	memcpy(q->text, text, strlen(text) + 1);
	q->written = now;
	q->active = true;
	return q->text;
}

void qos_refused(struct qos *q)
{
	q->active = false;
	q->regrouped = true;
}

double qos_latency_us(const struct qos_group *g)
{
	return g->sms ? qos_model_us(&g->model, g->sms) * g->lag : NAN;
}
