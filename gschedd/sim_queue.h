/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl simulate: events in order of time; of equal times the one that was added first. */
#ifndef GSCHED_SIM_QUEUE_H
#define GSCHED_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_event_type {
	SIM_EV_ARRIVE,			/* @who: a program launches its next kernel */
	SIM_EV_WINDOW,			/* @what: a launch; its @n-th window is @value */
	SIM_EV_BLOCKS,			/* @what: a launch; @n block-tasks end on SM @who */
	SIM_EV_TIMER,			/* the core's, for the time @value */
	SIM_EV_SWITCHED,		/* the device is another program's */
	SIM_EV_SLICE,			/* of the @value-th owner: a time slice is over */
	SIM_EV_BAND,			/* @who: a program's slice or gate changed */
	SIM_EV_IDLE,			/* @who: a program may have been idle for long enough */
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
/* The first one, which stays; NULL none */
const struct sim_event *sim_queue_first(const struct sim_queue *queue);
struct sim_event sim_queue_take(struct sim_queue *queue);	/* not of an empty one */
/* Moves all events of @type, in any order, to the end of @to */
void sim_queue_move(struct sim_queue *queue, enum sim_event_type type, struct sim_queue *to);
void sim_queue_free(struct sim_queue *queue);

#endif /* GSCHED_SIM_QUEUE_H */
