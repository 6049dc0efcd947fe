// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QoS planner: predicts the duration of a user-facing group's requests, or a batch group's kernels,
 * by their quota of SMs (C-Laius 5.1, 5.2). The paper trains models before a service runs, and
 * finds that nearest neighbours and decision trees are accurate where linear regression is not
 * (5.3). Here samples are taken online, and the model is a table with interpolation between
 * neighbours.
 *
 * Outside of the measured range, the product of time and SMs is assumed to be constant. Towards
 * fewer SMs that is the worst case, so a quota is only lowered as far as is safe. Towards more SMs
 * it is the best case: the quota that is tried next may turn out too small, and is then measured,
 * too.
 */
#include <math.h>
#include <string.h>
#include "qos.h"

#define FORGET		256	/* a point without a sample among so many is forgotten */
#define TOLERANCE	1.125	/* noise: a larger quota may appear slower by this factor */

/* A quantile of the samples; never the highest one, which may be an outlier. */
static double quantile_of(const struct qos_point *p, double quantile)
{
	double sorted[QOS_SAMPLES] = { 0 };
	uint32_t rank = (uint32_t)fmin(ceil(quantile * p->n), p->n - 1.0), i, k;

	for (i = 0; i < p->n; i++) {
		for (k = i; k && sorted[k - 1] > p->us[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = p->us[i];
	}
	return sorted[rank ? rank - 1 : 0];
}

static bool is_known(const struct qos_point *p)
{
	return p->n >= QOS_KNOWN;
}

static void remove_point(struct qos_model *m, uint32_t i)
{
	memmove(&m->point[i], &m->point[i + 1], (--m->n - i) * sizeof(m->point[0]));
}

static uint32_t oldest_point(const struct qos_model *m)
{
	uint32_t oldest = 0;

	for (uint32_t i = 1; i < m->n; i++)
		if (m->point[i].stamp < m->point[oldest].stamp)
			oldest = i;
	return oldest;
}

static struct qos_point *point_of(struct qos_model *m, uint32_t sms)
{
	uint32_t i;

	for (i = 0; i < m->n; i++)
		if (m->point[i].sms == sms)
			return &m->point[i];
	if (m->n == QOS_POINTS)
		remove_point(m, oldest_point(m));
	for (i = m->n++; i && m->point[i - 1].sms > sms; i--)
		m->point[i] = m->point[i - 1];
	m->point[i] = (struct qos_point){ .sms = sms };
	return &m->point[i];
}

/*
 * More SMs do not make a program slower. If an older point contradicts this, the program or its
 * neighbours have changed since. Points that have not been updated for long are dropped as well, so
 * that their quotas are tried again.
 */
static void remove_outdated(struct qos_model *m, struct qos_point newest)
{
	for (uint32_t i = m->n; i-- > 0;) {
		const struct qos_point *p = &m->point[i];
		bool slower = p->sms > newest.sms && p->typical > newest.typical * TOLERANCE;
		bool faster = p->sms < newest.sms && p->typical * TOLERANCE < newest.typical;

		if (slower || faster || p->stamp + FORGET < newest.stamp)
			remove_point(m, i);
	}
}

void qos_model_add(struct qos_model *m, uint32_t sms, double us)
{
	struct qos_point *p;

	if (!sms || !(us > 0) || isinf(us))
		return;
	p = point_of(m, sms);
	p->us[p->next] = us;
	p->next = (p->next + 1) % QOS_SAMPLES;
	p->n += p->n < QOS_SAMPLES;
	p->stamp = ++m->stamp;
	p->typical = quantile_of(p, m->quantile);
	if (is_known(p))
		remove_outdated(m, *p);
}

bool qos_model_known(const struct qos_model *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (is_known(&m->point[i]))
			return true;
	return false;
}

double qos_model_us(const struct qos_model *m, uint32_t sms)
{
	double us = 0, above_us = NAN, below_us = NAN, part;
	uint32_t above = 0, below = 0;

	/* from the largest quota down, with times made monotonic */
	for (uint32_t i = m->n; i-- > 0;) {
		const struct qos_point *p = &m->point[i];

		if (!is_known(p))
			continue;
		us = fmax(us, p->typical);
		if (p->sms >= sms) {
			above = p->sms;
			above_us = us;
		} else {
			below = p->sms;
			below_us = us;
			break;
		}
	}
	if (!above && !below)
		return NAN;
	if (!below || above == sms)
		return above_us * above / sms;
	if (!above)
		return below_us * below / sms;
	/* linear in 1/SMs, as for work that divides evenly */
	part = (1.0 / below - 1.0 / sms) / (1.0 / below - 1.0 / above);
	return below_us + (above_us - below_us) * part;
}

uint32_t qos_model_enough(const struct qos_model *m, double us, uint32_t most)
{
	uint32_t low = 0, high = most;

	if (!most || !(qos_model_us(m, most) <= us))
		return 0;
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (qos_model_us(m, mid) <= us)
			high = mid;
		else
			low = mid;
	}
	return high;
}

double qos_model_rate(const struct qos_model *m, uint32_t sms, uint32_t whole)
{
	double us = qos_model_us(m, sms);

	if (isnan(us))
		return (double)sms / whole;
	return fmin(1, qos_model_us(m, whole) / us);
}
