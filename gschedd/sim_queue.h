/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl simulate: events in order of time; at equal times, in order of insertion. */
#ifndef GSCHED_SIM_QUEUE_H
#define GSCHED_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_event_type {
	SIM_EV_ARRIVE,			/* @who: a program launches its next kernel */
	SIM_EV_WINDOW,			/* @what: a launch; its @n-th window is @value */
	SIM_EV_BLOCKS,			/* @what: a launch; @n block-tasks end on SM @who */
	SIM_EV_TIMER,			/* of the core, for the time @value */
	SIM_EV_QOS,			/* of the QoS planner */
	SIM_EV_SWITCHED,		/* the switch to another program has ended */
	SIM_EV_SLICE,			/* the time slice of the @value-th owner has ended */
	SIM_EV_BAND,			/* @who: a program whose slice or turn has changed */
	/* @who: a program that may have been idle for long enough */
	SIM_EV_IDLE,
};

struct sim_event {
	uint64_t time, order, value;
	void *what;
	uint32_t who, n;
	enum sim_event_type type;
};

struct sim_queue {
	struct sim_event *heap;
	size_t n, size;
	uint64_t added;
	bool failed;			/* out of memory: an event was lost */
};

void sim_queue_add(struct sim_queue *queue, const struct sim_event *event);
/* The first event, which stays in the queue; NULL: none. */
const struct sim_event *sim_queue_first(const struct sim_queue *queue);
struct sim_event sim_queue_take(struct sim_queue *queue);	/* the queue must not be empty */
/* Moves all events of @type to the end of @to, in any order. */
void sim_queue_move(struct sim_queue *queue, enum sim_event_type type, struct sim_queue *to);
void sim_queue_free(struct sim_queue *queue);

#endif /* GSCHED_SIM_QUEUE_H */
