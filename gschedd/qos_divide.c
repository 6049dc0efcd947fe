// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QoS planner: divides the device. User-facing groups come first and get just enough (C-Laius 6.1,
 * 8); then batch groups share the remainder within the memory bandwidth (6.2).
 */
#include <math.h>
#include <string.h>
#include "qos.h"

/* quanta of SMs that batch groups share; the paper has 10 (6.2, 9.1) */
#define QUANTA		64
#define LEVELS		20	/* of memory bandwidth */

/* The time that the last SM saves: the slope in section 8 */
static double slope_of(const struct qos_share *s)
{
	if (!s->model || s->need < 2 || !qos_model_known(s->model))
		return INFINITY;
	return qos_model_us(s->model, s->need - 1) - qos_model_us(s->model, s->need);
}

/*
 * Section 8: if not all targets can be met, the group whose request is furthest behind comes first
 * (equation 7), then the one that would lose most by getting less.
 */
static bool comes_before(const struct qos_share *a, const struct qos_share *b)
{
	if (a->behind_us != b->behind_us)
		return a->behind_us > b->behind_us;
	return slope_of(a) > slope_of(b);
}

static uint32_t serve_facing(struct qos_share *share, size_t n, uint32_t left)
{
	struct qos_share *order[QOS_SHARES];
	size_t n_facing = 0, k;

	for (size_t i = 0; i < n; i++) {
		if (!share[i].facing)
			continue;
		for (k = n_facing++; k && comes_before(&share[i], order[k - 1]); k--)
			order[k] = order[k - 1];
		order[k] = &share[i];
	}
	for (size_t i = 0; i < n_facing; i++) {
		uint32_t more = order[i]->need < order[i]->most ? order[i]->need : order[i]->most;

		more -= more < order[i]->least ? more : order[i]->least;
		more = more < left ? more : left;
		order[i]->sms = order[i]->least + more;
		left -= more;
	}
	return left;
}

/* Bandwidth is in proportion to throughput: a kernel moves the same bytes at any speed. */
static double bandwidth_of(const struct qos_share *s, uint32_t sms, uint32_t whole)
{
	return s->bandwidth > 0 ? s->bandwidth * qos_model_rate(s->model, sms, whole) : 0;
}

/* Bandwidth that user-facing groups use, and batch groups with their least quotas */
static double bandwidth_taken(const struct qos_share *share, size_t n, uint32_t whole)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += bandwidth_of(&share[i], share[i].sms, whole);
	return sum;
}

static uint32_t with_quanta(const struct qos_share *s, uint32_t k, uint32_t quantum)
{
	uint32_t sms = s->least + k * quantum;

	return sms < s->most ? sms : s->most;
}

/*
 * The knapsack of 6.2, equations 4 and 5, over quanta of SMs and levels of bandwidth. The paper
 * maximises the sum of IPC, which gives all to one of several equal groups and may starve some.
 * Here it is the sum of gpu.weight times the logarithm of the throughput: equal groups get equal
 * shares, SMs go to groups that gain by them, and no group starves.
 */
static void solve_knapsack(struct qos_share **batch, size_t n, uint32_t left, uint32_t whole,
			   double bandwidth)
{
	uint32_t quantum = (left + QUANTA - 1) / QUANTA, quanta = left / quantum;
	int levels = bandwidth > 0 ? (int)(bandwidth * LEVELS + 1e-9) : 0;
	double value[QUANTA + 1][LEVELS + 1] = { 0 }, next[QUANTA + 1][LEVELS + 1];
	uint8_t chosen[QOS_SHARES][QUANTA + 1][LEVELS + 1];
	uint32_t j, k;
	int b;

	levels = levels < LEVELS ? levels : LEVELS;
	for (size_t i = 0; i < n; i++) {
		double gain[QUANTA + 1],
			first = qos_model_rate(batch[i]->model, batch[i]->sms, whole);
		int cost[QUANTA + 1];

		for (k = 0; k <= quanta; k++) {
			uint32_t sms = with_quanta(batch[i], k, quantum);
			double more = bandwidth_of(batch[i], sms, whole) -
				      bandwidth_of(batch[i], batch[i]->sms, whole);

			gain[k] = batch[i]->weight *
				  log(qos_model_rate(batch[i]->model, sms, whole) / first);
			cost[k] = (int)ceil(more * LEVELS - 1e-9);
		}
		for (j = 0; j <= quanta; j++)
			for (b = 0; b <= levels; b++) {
				next[j][b] = value[j][b];
				chosen[i][j][b] = 0;
				for (k = 1; k <= j; k++) {
					double v = gain[k];

					if (cost[k] > b)
						break;
					v += value[j - k][b - cost[k]];
					if (v > next[j][b] + 1e-9) {
						next[j][b] = v;
						chosen[i][j][b] = (uint8_t)k;
					}
				}
			}
		memcpy(value, next, sizeof(value));
	}
	j = quanta;
	b = levels;
	for (size_t i = n; i-- > 0;) {
		uint32_t sms = with_quanta(batch[i], chosen[i][j][b], quantum);
		double more = bandwidth_of(batch[i], sms, whole) -
			      bandwidth_of(batch[i], batch[i]->sms, whole);

		j -= chosen[i][j][b];
		b -= (int)ceil(more * LEVELS - 1e-9);
		batch[i]->sms = sms;
	}
}

/* Gives the SMs that rounding to quanta leaves to the first groups that may have more */
static void distribute_rest(struct qos_share **batch, size_t n, uint32_t left)
{
	for (size_t i = 0; i < n; i++)
		left -= batch[i]->sms - batch[i]->least;
	for (size_t i = 0; i < n && left; i++) {
		uint32_t more = batch[i]->most - batch[i]->sms;

		if (batch[i]->bandwidth > 0)
			continue;
		more = more < left ? more : left;
		batch[i]->sms += more;
		left -= more;
	}
}

void qos_divide(struct qos_share *share, size_t n, uint32_t sms)
{
	struct qos_share *batch[QOS_SHARES];
	uint32_t left = sms;
	size_t n_batch = 0;

	for (size_t i = 0; i < n; i++) {
		share[i].sms = share[i].least;
		left -= share[i].least;
		if (!share[i].facing)
			batch[n_batch++] = &share[i];
	}
	left = serve_facing(share, n, left);
	if (!left || !n_batch)
		return;
	solve_knapsack(batch, n_batch, left, sms, 1 - bandwidth_taken(share, n, sms));
	distribute_rest(batch, n_batch, left);
}
