// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QoS planner: detects the requests of a client, to which latency targets apply (a query of
 * C-Laius, several tasks; its progress, section 7). Programs do not mark where a request begins, so
 * it is inferred from idle times. If these fall into two classes, a factor of four or more apart,
 * the short ones are pauses within a request, in which the program computes between two kernels,
 * and the long ones separate requests. Otherwise each idle time separates two requests.
 *
 * A program that always has work in flight is never idle. Its requests are split at twice the
 * target, and their latency is that of the longest of their kernels, queueing included.
 */
#include <string.h>
#include "qos.h"

#define GAPS_MAX	256	/* at this many, all counts are halved, so that old ones fade */
#define GAPS_MIN	16
#define VALLEY		2	/* empty octaves between the two classes of idle times */

static unsigned int octave_of(uint64_t ns)
{
	unsigned int octave = ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;

	return octave < QOS_OCTAVES ? octave : QOS_OCTAVES - 1;
}

/* Each class has at least an eighth of all idle times, and at most a 64th lies between them. */
static uint64_t pause_of(const struct qos_flow *f)
{
	uint32_t below = 0, between;

	if (f->n_gaps < GAPS_MIN)
		return 0;
	for (unsigned int i = 0; i + VALLEY < QOS_OCTAVES; i++) {
		below += f->gaps[i];
		between = 0;
		for (unsigned int k = 1; k <= VALLEY; k++)
			between += f->gaps[i + k];
		if (below * 8 >= f->n_gaps && between * 64 <= f->n_gaps &&
		    (f->n_gaps - below - between) * 8 >= f->n_gaps)
			return 2ULL << i;
	}
	return 0;
}

static void note_gap(struct qos_flow *f, uint64_t ns)
{
	if (f->n_gaps == GAPS_MAX) {
		f->n_gaps = 0;
		for (unsigned int i = 0; i < QOS_OCTAVES; i++)
			f->n_gaps += f->gaps[i] /= 2;
	}
	f->gaps[octave_of(ns)]++;
	f->n_gaps++;
	f->pause = pause_of(f);
}

static void end_request(struct qos_flow *f, uint64_t ns, struct qos_request *ended)
{
	*ended = (struct qos_request){
		.begin = f->begin, .end = f->last_end, .ns = ns, .tasks = f->done,
	};
	if (f->done > f->tasks)
		f->tasks += f->tasks ? (f->done - f->tasks + 3) / 4 : f->done;
	else
		f->tasks -= (f->tasks - f->done + 3) / 4;
	f->open = false;
}

static void begin_request(struct qos_flow *f, uint64_t now)
{
	f->open = true;
	f->chained = false;
	f->begin = now;
	f->done = 0;
	f->longest = 0;
}

bool qos_flow_submit(struct qos_flow *f, unsigned int slot, uint64_t submitted, uint64_t granted,
		     struct qos_request *ended)
{
	bool was_idle = !f->active && f->last_end && submitted > f->last_end, over = false;

	if (slot >= QOS_SLOTS)
		return false;
	if (was_idle)
		note_gap(f, submitted - f->last_end);
	if (was_idle && f->open) {
		over = submitted - f->last_end > f->pause;
		if (over)
			end_request(f, f->last_end - f->begin, ended);
		else
			f->chained = true;
	}
	if (!f->open)
		begin_request(f, submitted);
	f->active |= 1ULL << slot;
	f->resized &= ~(1ULL << slot);
	f->submitted[slot] = submitted;
	f->granted[slot] = granted;
	return over;
}

bool qos_flow_done(struct qos_flow *f, unsigned int slot, uint64_t now, uint64_t most_ns,
		   struct qos_request *ended)
{
	uint64_t took;

	if (slot >= QOS_SLOTS || !(f->active & 1ULL << slot))
		return false;
	f->active &= ~(1ULL << slot);
	took = now > f->submitted[slot] ? now - f->submitted[slot] : 0;
	f->longest = took > f->longest ? took : f->longest;
	f->last_end = now > f->last_end ? now : f->last_end;
	f->done++;
	if (!f->active && (!f->pause || f->last_end - f->begin > most_ns)) {
		end_request(f, f->last_end - f->begin, ended);
		return true;
	}
	if (!f->active || f->last_end - f->begin <= most_ns)
		return false;
	end_request(f, f->chained ? f->last_end - f->begin : f->longest, ended);
	begin_request(f, now);
	return true;
}

bool qos_flow_idle(struct qos_flow *f, uint64_t now, struct qos_request *ended)
{
	if (!f->open || f->active || !f->done || now <= f->last_end + f->pause)
		return false;
	end_request(f, f->last_end - f->begin, ended);
	return true;
}

void qos_flow_reset(struct qos_flow *f)
{
	f->active = 0;
	f->open = false;
	f->last_end = 0;
}
