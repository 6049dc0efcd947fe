// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl simulate: the device. Blocks that start together on an SM end in one event. */
#include <stdlib.h>
#include "sim_gpu.h"

int sim_gpu_init(struct sim_gpu *gpu, struct sim_queue *queue, uint32_t sms, uint32_t n_programs)
{
	*gpu = (struct sim_gpu){
		.queue = queue, .sms = sms, .owner = UINT32_MAX, .n_programs = n_programs,
	};
	gpu->room = calloc(sms, sizeof(*gpu->room));
	gpu->new = calloc(sms, sizeof(*gpu->new));
	gpu->used = calloc(n_programs, sizeof(*gpu->used));
	gpu->slice = calloc(n_programs, sizeof(*gpu->slice));
	if (!gpu->room || !gpu->new || !gpu->used || !gpu->slice)
		return -1;
	for (uint32_t sm = 0; sm < sms; sm++)
		gpu->room[sm] = SIM_SM_ROOM;
	return 0;
}

static void free_places(struct sim_launch *launch)
{
	free(launch->workers);
	free(launch->rank);
	free(launch->ranked);
	launch->workers = NULL;
	launch->rank = NULL;
	launch->ranked = NULL;
}

static void remove_launch(struct sim_gpu *gpu, struct sim_launch *launch)
{
	if (launch->device_prev)
		launch->device_prev->device_next = launch->device_next;
	else
		gpu->first = launch->device_next;
	if (launch->device_next)
		launch->device_next->device_prev = launch->device_prev;
	else
		gpu->last = launch->device_prev;
	launch->device_next = NULL;
	launch->device_prev = NULL;
	free_places(launch);
}

void sim_gpu_free(struct sim_gpu *gpu)
{
	while (gpu->first)
		remove_launch(gpu, gpu->first);
	free(gpu->room);
	free(gpu->new);
	free(gpu->used);
	free(gpu->slice);
	sim_queue_free(&gpu->paused);
	*gpu = (struct sim_gpu){ 0 };
}

int sim_gpu_launch(struct sim_gpu *gpu, struct sim_launch *launch)
{
	launch->workers = calloc(gpu->sms, sizeof(*launch->workers));
	launch->rank = calloc(gpu->sms, sizeof(*launch->rank));
	launch->ranked = calloc(gpu->sms, sizeof(*launch->ranked));
	if (!launch->workers || !launch->rank || !launch->ranked) {
		free_places(launch);
		return -1;
	}
	launch->device_prev = gpu->last;
	if (gpu->last)
		gpu->last->device_next = launch;
	else
		gpu->first = launch;
	gpu->last = launch;
	gpu->changed = true;
	return 0;
}

void sim_gpu_window(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t window)
{
	launch->window = window;
	gpu->changed = true;
}

/* Most workers of @launch on its SM of @rank. The last one may be partially inside the window. */
static uint32_t workers_max(const struct sim_launch *launch, uint32_t rank)
{
	uint32_t units;

	if (launch->opaque)
		return launch->kernel->per_sm;
	if (rank * GSCHED_CAPSM >= launch->window)
		return 0;
	units = launch->window - rank * GSCHED_CAPSM;
	return (units < GSCHED_CAPSM ? units : GSCHED_CAPSM) * launch->kernel->per_sm /
	       GSCHED_CAPSM;
}

static uint64_t room_of(const struct sim_launch *launch)
{
	return SIM_SM_ROOM / launch->kernel->per_sm;
}

/* Starts a block-task in each of @n blocks, whose room has been taken. */
static void start_worker(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t sm, uint32_t n,
		  uint64_t now)
{
	const struct sim_event end = {
		.time = now + launch->block_ns,
		.type = SIM_EV_BLOCKS,
		.what = launch,
		.who = sm,
		.n = n,
	};

	if (!launch->started)
		launch->started = now;
	launch->left -= n;
	launch->running += n;
	gpu->running += n;
	gpu->used[launch->owner] += (double)n / launch->kernel->per_sm * (double)launch->block_ns;
	launch->events++;
	sim_queue_add(gpu->queue, &end);
}

void sim_gpu_cut(struct sim_gpu *gpu, const struct sim_event *event, uint64_t now)
{
	const struct sim_launch *launch = event->what;

	gpu->used[launch->owner] -= (double)event->n / launch->kernel->per_sm *
				    (double)(event->time - now);
}

static bool is_blocked(const struct sim_gpu *gpu, const struct sim_launch *launch)
{
	for (const struct sim_launch *l = gpu->first; l != launch; l = l->device_next)
		if (l->left && (!gpu->exclusive || l->owner == launch->owner))
			return true;
	return false;
}

bool sim_gpu_blocks_end(struct sim_gpu *gpu, struct sim_launch *launch, uint32_t sm, uint32_t n,
			uint64_t now)
{
	uint32_t others = launch->workers[sm] - n;
	uint32_t most = workers_max(launch, launch->rank[sm]), stay;

	launch->events--;
	launch->running -= n;
	gpu->running -= n;
	stay = most > others ? most - others : 0;
	stay = stay < n ? stay : n;
	stay = stay < launch->left ? stay : (uint32_t)launch->left;
	/* the room of a block that has ended goes to the first launch in order */
	if (launch->opaque && is_blocked(gpu, launch))
		stay = 0;
	if (stay)
		start_worker(gpu, launch, sm, stay, now);
	if (stay < n) {
		launch->workers[sm] -= n - stay;
		gpu->room[sm] += (n - stay) * room_of(launch);
		gpu->changed = true;
		if (!launch->workers[sm])
			launch->ranked[launch->rank[sm]] = false;
	}
	if (launch->left || launch->running)
		return false;
	remove_launch(gpu, launch);
	return true;
}

/* Places one block on each SM with room, then a second one on each, and so on, as hardware does. */
static void place_blocks(struct sim_gpu *gpu, struct sim_launch *launch, uint64_t now)
{
	uint64_t each = room_of(launch), left = launch->left;
	uint32_t rank, unused = 0;
	bool placed = true;

	while (placed && left) {
		placed = false;
		for (uint32_t sm = 0; sm < gpu->sms && left; sm++) {
			while (!launch->workers[sm] && launch->ranked[unused])
				unused++;
			rank = launch->workers[sm] ? launch->rank[sm] : unused;
			if (gpu->room[sm] < each ||
			    launch->workers[sm] >= workers_max(launch, rank))
				continue;
			launch->rank[sm] = rank;
			launch->ranked[rank] = true;
			gpu->room[sm] -= each;
			launch->workers[sm]++;
			gpu->new[sm]++;
			left--;
			placed = true;
		}
	}
	for (uint32_t sm = 0; sm < gpu->sms; sm++) {
		if (gpu->new[sm])
			start_worker(gpu, launch, sm, gpu->new[sm], now);
		gpu->new[sm] = 0;
	}
}

static bool may_start(const struct sim_launch *launch)
{
	return launch->left && (launch->opaque || launch->window);
}

/* Whether the program has block-tasks that run, could start, or are paused. */
static bool has_work(const struct sim_gpu *gpu, uint32_t program)
{
	for (const struct sim_launch *l = gpu->first; l; l = l->device_next)
		if (l->owner == program && (may_start(l) || l->running))
			return true;
	return false;
}

/* The next program in rotation with work, except the owner; UINT32_MAX: none. */
static uint32_t next_in_turn(const struct sim_gpu *gpu)
{
	for (uint32_t i = 1; i <= gpu->n_programs; i++) {
		/* if there is no owner (UINT32_MAX), the first one is next */
		uint32_t program = (uint32_t)(gpu->owner + i) % gpu->n_programs;

		if (program != gpu->owner && has_work(gpu, program))
			return program;
	}
	return UINT32_MAX;
}

/* Pauses the owner's block-tasks in the middle. */
static void pause_owner(struct sim_gpu *gpu, uint64_t now)
{
	sim_queue_move(gpu->queue, SIM_EV_BLOCKS, &gpu->paused);
	/* this need not be a heap any more: the remaining time replaces the time */
	for (size_t i = 0; i < gpu->paused.n; i++) {
		struct sim_event *ev = &gpu->paused.heap[i];
		const struct sim_launch *launch = ev->what;

		if (launch->owner != gpu->owner)
			continue;
		sim_gpu_cut(gpu, ev, now);
		ev->time -= now;
		gpu->running -= ev->n;
	}
	for (uint32_t sm = 0; sm < gpu->sms; sm++)
		gpu->room[sm] = SIM_SM_ROOM;
}

/* Resumes those of the new owner at @gpu->ready. */
static void resume_owner(struct sim_gpu *gpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < gpu->paused.n; i++) {
		struct sim_event ev = gpu->paused.heap[i];
		const struct sim_launch *launch = ev.what;

		if (launch->owner != gpu->owner) {
			gpu->paused.heap[kept++] = ev;
			continue;
		}
		gpu->used[launch->owner] += (double)ev.n / launch->kernel->per_sm * (double)ev.time;
		gpu->running += ev.n;
		gpu->room[ev.who] -= ev.n * room_of(launch);
		ev.time += gpu->ready;
		sim_queue_add(gpu->queue, &ev);
	}
	gpu->paused.n = kept;
}

static void switch_to(struct sim_gpu *gpu, uint32_t program, uint64_t now)
{
	struct sim_event ev = { .type = SIM_EV_SWITCHED };

	if (gpu->sliced && gpu->owner != UINT32_MAX)
		pause_owner(gpu, now);
	gpu->ready = gpu->owner == UINT32_MAX ? now : now + gpu->switch_ns;
	gpu->owner = program;
	gpu->n_switches++;
	gpu->slice_end = 0;
	if (gpu->sliced)
		resume_owner(gpu);
	ev.time = gpu->ready;
	sim_queue_add(gpu->queue, &ev);
}

/* Decides whether the next program in rotation gets the device, now or later. */
static void yield_device(struct sim_gpu *gpu, uint64_t now)
{
	struct sim_event ev = { .type = SIM_EV_SLICE, .value = gpu->n_switches };
	uint32_t next = next_in_turn(gpu);
	uint64_t slice, had;

	if (next == UINT32_MAX)
		return;
	if (!gpu->running && (gpu->owner == UINT32_MAX || !has_work(gpu, gpu->owner))) {
		switch_to(gpu, next, now);
		return;
	}
	if (!gpu->sliced)
		return;
	/* slices follow each other while no other program has work */
	slice = gpu->slice[gpu->owner];
	had = now - gpu->ready;
	if (had && had % slice == 0) {
		switch_to(gpu, next, now);
		return;
	}
	ev.time = now + slice - had % slice;
	if (ev.time == gpu->slice_end)
		return;
	gpu->slice_end = ev.time;
	sim_queue_add(gpu->queue, &ev);
}

void sim_gpu_slice(struct sim_gpu *gpu, uint64_t value)
{
	if (value == gpu->n_switches)
		gpu->changed = true;
}

void sim_gpu_fill(struct sim_gpu *gpu, uint64_t now)
{
	struct sim_launch *launch;

	/* during a switch nothing starts; its end calls this again */
	if (!gpu->changed || (gpu->exclusive && now < gpu->ready))
		return;
	gpu->changed = false;
	for (launch = gpu->first; launch; launch = launch->device_next) {
		if (gpu->exclusive && launch->owner != gpu->owner)
			continue;
		if (launch->left)
			place_blocks(gpu, launch, now);
		if (launch->opaque && launch->left)
			break;
	}
	if (gpu->exclusive)
		yield_device(gpu, now);
}
