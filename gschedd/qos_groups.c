// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QoS planner: groups, clients and their tasks, and the role of each group. A plan may name neither
 * the root group nor nested groups. So of nested groups with a target only the deepest counts, and
 * clients in ancestors of named groups share the remainder.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/gsched.h>
#include "qos.h"

void qos_init(struct qos *q, const struct qos_options *opt, uint32_t sms)
{
	memset(q, 0, sizeof(*q));
	q->opt = *opt;
	q->sms = sms;
	q->urgent = true;
}

static int find_group(const struct qos *q, const char *path)
{
	for (size_t i = 0; i < q->n_groups; i++)
		if (!strcmp(q->group[i].path, path))
			return (int)i;
	return -1;
}

void qos_groups_begin(struct qos *q, bool space)
{
	q->regrouped |= q->space != space;
	q->space = space;
	for (size_t i = 0; i < q->n_groups; i++)
		q->group[i].listed = false;
}

void qos_group(struct qos *q, const char *path, uint32_t target_us, uint32_t weight, double max,
	       double min)
{
	int i = find_group(q, path);
	struct qos_group *g;

	if (i < 0 && (q->n_groups == QOS_GROUPS || strlen(path) >= QOS_PATH))
		return;
	g = &q->group[i < 0 ? q->n_groups++ : (size_t)i];
	if (i < 0) {
		*g = (struct qos_group){ .lag = 1, .tail = 1, .stay_next = QOS_STAY };
		snprintf(g->path, sizeof(g->path), "%s", path);
		q->regrouped = true;
	}
	/* the model is of requests with a target, of tasks without */
	if (!g->target_us != !target_us)
		g->model = (struct qos_model){ 0 };
	g->model.quantile = target_us ? 0.97 : 0.5;
	/* what was late for another target may not be for this one */
	if (g->target_us != target_us) {
		g->trial = g->late = 0;
		g->stay = g->kept ? g->stay : 0;
	}
	g->target_us = target_us;
	g->budget_us = target_us * (1 - q->opt.margin);
	g->weight = weight ? weight : 1;
	g->most = max > 0 && max < q->sms ? (uint32_t)fmax(1, floor(max)) : q->sms;
	g->least = min > 0 ? (uint32_t)fmin(ceil(min), q->sms) : 1;
	g->listed = true;
}

static void drop_group(struct qos *q, int gone)
{
	memmove(&q->group[gone], &q->group[gone + 1],
		(--q->n_groups - (size_t)gone) * sizeof(q->group[0]));
	for (size_t i = 0; i < q->n_clients; i++) {
		if (q->client[i].group == gone)
			q->client[i].group = -1;
		else if (q->client[i].group > gone)
			q->client[i].group--;
	}
	q->regrouped = true;
}

static bool is_below(const struct qos_group *g, const struct qos_group *top)
{
	size_t len = strlen(top->path);

	return g != top && (!len || (!strncmp(g->path, top->path, len) && g->path[len] == '/'));
}

/* Clients of the group and of those below it */
static uint32_t clients_in(const struct qos *q, const struct qos_group *top)
{
	uint32_t n = top->clients;

	for (size_t i = 0; i < q->n_groups; i++)
		if (is_below(&q->group[i], top))
			n += q->group[i].clients;
	return n;
}

/* Is there a descendant with clients; @facing: with a target, too? */
static bool has_below(const struct qos *q, const struct qos_group *top, bool facing)
{
	for (size_t i = 0; i < q->n_groups; i++) {
		const struct qos_group *g = &q->group[i];

		if (is_below(g, top) && (facing ? g->target_us && clients_in(q, g) : g->clients))
			return true;
	}
	return false;
}

static struct qos_group *facing_above(struct qos *q, const struct qos_group *g)
{
	for (size_t i = 0; i < q->n_groups; i++)
		if (q->group[i].role == QOS_FACING && is_below(g, &q->group[i]))
			return &q->group[i];
	return NULL;
}

static enum qos_role role_of(struct qos *q, const struct qos_group *g)
{
	if (facing_above(q, g) || !g->clients)
		return QOS_UNUSED;
	return has_below(q, g, false) ? QOS_REST : QOS_BATCH;
}

static void assign_roles(struct qos *q)
{
	enum qos_role before[QOS_GROUPS] = { 0 };

	for (size_t i = 0; i < q->n_groups; i++) {
		struct qos_group *g = &q->group[i];

		before[i] = g->role;
		g->role = *g->path && g->target_us && clients_in(q, g) && !has_below(q, g, true) ?
			  QOS_FACING : QOS_UNUSED;
	}
	for (size_t i = 0; i < q->n_groups; i++) {
		struct qos_group *g = &q->group[i];

		if (g->role != QOS_FACING)
			g->role = role_of(q, g);
		if (g->role != before[i]) {
			q->regrouped = true;
			q->urgent = true;
		}
	}
}

static void count_clients(struct qos *q)
{
	for (size_t i = 0; i < q->n_groups; i++)
		q->group[i].clients = 0;
	for (size_t i = 0; i < q->n_clients; i++)
		if (q->client[i].group >= 0)
			q->group[q->client[i].group].clients++;
	assign_roles(q);
}

/* A group's capsm.max is a bound for its descendants. */
static void inherit_most(struct qos *q)
{
	for (size_t i = 0; i < q->n_groups; i++)
		for (size_t k = 0; k < q->n_groups; k++)
			if (is_below(&q->group[i], &q->group[k]) &&
			    q->group[k].most < q->group[i].most)
				q->group[i].most = q->group[k].most;
}

void qos_groups_end(struct qos *q)
{
	for (size_t i = q->n_groups; i-- > 0;)
		if (!q->group[i].listed)
			drop_group(q, (int)i);
	inherit_most(q);
	for (size_t i = 0; i < q->n_groups; i++)
		if (q->group[i].least > q->group[i].most)
			q->group[i].least = q->group[i].most;
	count_clients(q);
}

static struct qos_client *find_client(struct qos *q, uint64_t id)
{
	for (size_t i = 0; i < q->n_clients; i++)
		if (q->client[i].id == id)
			return &q->client[i];
	return NULL;
}

void qos_client_add(struct qos *q, uint64_t id, uint32_t pid, const char *path)
{
	struct qos_client *c = find_client(q, id);

	if (!c && q->n_clients == QOS_CLIENTS) {
		q->n_untracked++;
		return;
	}
	if (!c) {
		c = &q->client[q->n_clients++];
		*c = (struct qos_client){ .id = id };
	}
	c->pid = pid;
	c->group = find_group(q, path);
	count_clients(q);
}

void qos_client_del(struct qos *q, uint64_t id)
{
	struct qos_client *c = find_client(q, id);

	if (!c) {
		q->n_untracked -= !!q->n_untracked;
		return;
	}
	*c = q->client[--q->n_clients];
	count_clients(q);
}

struct qos_group *qos_owner(struct qos *q, const struct qos_client *c)
{
	struct qos_group *g = c->group < 0 ? NULL : &q->group[c->group];

	if (!g || g->role == QOS_REST)
		return NULL;
	return g->role == QOS_UNUSED ? facing_above(q, g) : g;
}

/* Slate's table II, of a GPU of 548 GB/s: high 569 GB/s, medium 341 to 404, low 72. */
static double bandwidth_of(uint32_t intensity)
{
	switch (intensity) {
	case GSCHED_INTENSITY_H_M:
		return 1;
	case GSCHED_INTENSITY_M_M:
		return 0.7;
	case GSCHED_INTENSITY_L_C:
	case GSCHED_INTENSITY_M_C:
	case GSCHED_INTENSITY_H_C:
		return 0.1;
	}
	return 0;	/* not known: not bounded */
}

void qos_granted(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t wait_ns,
		 uint32_t window, uint32_t intensity)
{
	struct qos_client *c = find_client(q, id);
	struct qos_group *g = c ? qos_owner(q, c) : NULL;
	struct qos_request ended;

	if (!g)
		return;
	g->bandwidth = bandwidth_of(intensity);
	if (qos_flow_submit(&c->flow, slot, now > wait_ns ? now - wait_ns : 0, now, &ended) &&
	    g->role == QOS_FACING)
		qos_measured(g, &ended);
	if (slot < QOS_SLOTS && window > g->sms * GSCHED_CAPSM)
		c->flow.resized |= 1ULL << slot;
}

void qos_resized(struct qos *q, uint64_t id, unsigned int slot)
{
	struct qos_client *c = find_client(q, id);

	if (c && slot < QOS_SLOTS)
		c->flow.resized |= 1ULL << slot;
}

void qos_done(struct qos *q, uint64_t id, unsigned int slot, uint64_t now, uint64_t run_ns)
{
	struct qos_client *c = find_client(q, id);
	struct qos_group *g = c ? qos_owner(q, c) : NULL;
	struct qos_request ended;

	if (!g || slot >= QOS_SLOTS || !(c->flow.active & 1ULL << slot))
		return;
	/* a task that had more or less, or during which the quota changed, is no sample for it */
	if (g->role == QOS_BATCH && g->sms && c->flow.granted[slot] >= g->changed &&
	    !(c->flow.resized & 1ULL << slot))
		qos_model_add(&g->model, g->sms, (double)run_ns / 1000);
	if (qos_flow_done(&c->flow, slot, now, 2000ULL * g->target_us, &ended) &&
	    g->role == QOS_FACING)
		qos_measured(g, &ended);
	if (g->role == QOS_FACING &&
	    (qos_needs_quota(g) || (g->kept && qos_behind_us(g, &c->flow, now) > 0)))
		q->urgent = true;
}

void qos_lost(struct qos *q)
{
	for (size_t i = 0; i < q->n_clients; i++)
		qos_flow_reset(&q->client[i].flow);
}
