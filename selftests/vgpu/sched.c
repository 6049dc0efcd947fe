// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks to SMs, and turns of channel groups: see sched.h */
#include <stdatomic.h>
#include <string.h>
#include "sched.h"

/* Never none: on a real GPU each block takes a KiB for the driver, which is not modelled. */
static const uint32_t carveouts[] = { 8 << 10, 16 << 10, 32 << 10, 64 << 10, 100 << 10, 132 << 10,
				      164 << 10, 228 << 10 };

void vg_sched_init(struct vg_device *d, const struct vg_config *config)
{
	d->config = *config;
	d->tickets = 0;
	d->groups = 0;
	d->active = VG_NOBODY;
	d->alone = 0;
	d->ran_last = 0;
	d->ready_at = 0;
	d->turn_start = 0;
	d->slice_end = 0;
	memset(d->group, 0, sizeof(d->group));
	memset(d->entry, 0, sizeof(d->entry));
	memset(d->sm, 0, sizeof(d->sm));
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

unsigned int vg_sched_fit(const struct vg_config *c, const struct vg_need *need)
{
	uint32_t n = c->sm_blocks;

	if (need->threads)
		n = min32(n, c->sm_threads / need->threads);
	if (need->regs)
		n = min32(n, c->sm_regs / need->regs);
	if (need->smem)
		n = min32(n, c->sm_smem / need->smem);
	return n;
}

uint32_t vg_sched_carveout(const struct vg_config *c, const struct vg_need *need, int percent)
{
	uint64_t want = (uint64_t)vg_sched_fit(c, need) * need->smem;

	if (percent >= 0) {
		want = (uint64_t)c->sm_smem * (uint64_t)percent / 100;
		if (want < need->smem)
			want = need->smem;
	}
	for (size_t i = 0; i < sizeof(carveouts) / sizeof(carveouts[0]); i++)
		if (carveouts[i] >= want && carveouts[i] <= c->sm_smem)
			return carveouts[i];
	return c->sm_smem;
}

static struct vg_sm *plane(struct vg_device *d, uint32_t proc)
{
	return d->sm[d->proc[proc].group];
}

static bool fits(const struct vg_config *c, const struct vg_sm *sm, const struct vg_need *need)
{
	if (c->carveout && sm->blocks && sm->carveout != need->carveout)
		return false;
	return sm->blocks < c->sm_blocks && sm->threads + need->threads <= c->sm_threads &&
	       sm->regs + need->regs <= c->sm_regs &&
	       sm->smem + need->smem <= (c->carveout ? need->carveout : c->sm_smem);
}

static void occupy(struct vg_sm *sm, const struct vg_need *need, uint32_t n)
{
	sm->blocks += n;
	sm->threads += n * need->threads;
	sm->regs += n * need->regs;
	sm->smem += n * need->smem;
	sm->carveout = need->carveout;
}

static void vacate(struct vg_sm *sm, const struct vg_need *need, uint32_t n)
{
	sm->blocks -= n;
	sm->threads -= n * need->threads;
	sm->regs -= n * need->regs;
	sm->smem -= n * need->smem;
}

int vg_sched_submit(struct vg_device *d, uint32_t proc, const struct vg_need *need, uint64_t blocks,
		    int priority)
{
	for (int i = 0; i < VG_KERNELS_MAX; i++) {
		struct vg_entry *e = &d->entry[i];

		if (e->used)
			continue;
		memset(e, 0, sizeof(*e));
		e->proc = proc;
		e->priority = priority;
		e->ticket = ++d->tickets;
		e->need = *need;
		e->total = blocks;
		e->used = 1;
		d->proc[proc].kernels++;
		return i;
	}
	return -1;
}

static vg_procs members(const struct vg_device *d, uint32_t group)
{
	vg_procs all = 0;

	for (uint32_t p = 0; p < VG_PROCS_MAX; p++)
		if (d->proc[p].used && d->proc[p].group == group)
			all |= 1u << p;
	return all;
}

/* The kernel whose blocks go next among those of the group with these processes */
static struct vg_entry *head(struct vg_device *d, vg_procs procs)
{
	struct vg_entry *best = NULL;

	for (int i = 0; i < VG_KERNELS_MAX; i++) {
		struct vg_entry *e = &d->entry[i];

		if (!e->used || e->placed == e->total || !(procs >> e->proc & 1))
			continue;
		if (!best || e->priority < best->priority ||
		    (e->priority == best->priority && e->ticket < best->ticket))
			best = e;
	}
	return best;
}

static int emptiest(const struct vg_config *c, const struct vg_sm *sms, const struct vg_need *need)
{
	int best = -1;

	for (unsigned int i = 0; i < c->sms; i++)
		if (fits(c, &sms[i], need) && (best < 0 || sms[i].blocks < sms[best].blocks))
			best = (int)i;
	return best;
}

/* Is there room for all blocks of a cooperative grid? */
static bool room(const struct vg_config *c, const struct vg_sm *sms, const struct vg_entry *e)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < c->sms && n < e->total; i++)
		for (struct vg_sm sm = sms[i]; fits(c, &sm, &e->need); n++)
			occupy(&sm, &e->need, 1);
	return n >= e->total;
}

static vg_procs dispatch_group(struct vg_device *d, vg_procs procs)
{
	vg_procs got = 0;
	struct vg_entry *e;

	while ((e = head(d, procs))) {
		struct vg_sm *sms = plane(d, e->proc);

		if (e->need.whole && !e->placed && !room(&d->config, sms, e))
			return got;
		while (e->placed < e->total) {
			int i = emptiest(&d->config, sms, &e->need);

			if (i < 0)
				return got;
			occupy(&sms[i], &e->need, 1);
			/*
			 * this order: vg_sched_repair() makes a block that is fresh and not held
			 * unplaced again
			 */
			e->fresh[i]++;
			atomic_signal_fence(memory_order_seq_cst);
			e->held[i]++;
			e->fresh_blocks++;
			e->placed++;
			got |= 1u << e->proc;
		}
	}
	return got;
}

vg_procs vg_sched_dispatch(struct vg_device *d)
{
	vg_procs busy[VG_GROUPS_MAX] = { 0 };
	vg_procs got = 0;

	for (uint32_t p = 0; p < VG_PROCS_MAX; p++)
		if (d->proc[p].used && d->proc[p].kernels)
			busy[d->proc[p].group] |= 1u << p;
	for (uint32_t g = 0; g < VG_GROUPS_MAX; g++)
		if (busy[g])
			got |= dispatch_group(d, busy[g]);
	return got;
}

int vg_sched_take(struct vg_device *d, int entry)
{
	struct vg_entry *e = &d->entry[entry];

	if (!e->fresh_blocks)
		return -1;
	for (unsigned int i = 0; i < d->config.sms; i++) {
		if (!e->fresh[i])
			continue;
		e->fresh[i]--;
		e->fresh_blocks--;
		return (int)i;
	}
	return -1;
}

void vg_sched_done(struct vg_device *d, int entry, unsigned int sm)
{
	struct vg_entry *e = &d->entry[entry];

	vacate(&plane(d, e->proc)[sm], &e->need, 1);
	e->held[sm]--;
	e->done++;
}

void vg_sched_remove(struct vg_device *d, int entry)
{
	struct vg_entry *e = &d->entry[entry];

	for (unsigned int i = 0; i < d->config.sms; i++)
		if (e->held[i])
			vacate(&plane(d, e->proc)[i], &e->need, e->held[i]);
	e->used = 0;
	d->proc[e->proc].kernels--;
}

void vg_sched_reap(struct vg_device *d, uint32_t proc)
{
	for (int i = 0; i < VG_KERNELS_MAX; i++)
		if (d->entry[i].used && d->entry[i].proc == proc)
			vg_sched_remove(d, i);
	d->proc[proc].used = 0;
	d->proc[proc].mem = 0;
	d->proc[proc].pid = 0;
	d->proc[proc].feeding = 0;
	d->proc[proc].kernels = 0;
	if (d->active == d->proc[proc].group && !members(d, d->active))
		d->active = VG_NOBODY;
}

void vg_sched_repair(struct vg_device *d)
{
	d->active = VG_NOBODY;	/* the next look begins a turn, behind the group that ran last */
	d->alone = 0;
	memset(d->sm, 0, sizeof(d->sm));
	for (uint32_t p = 0; p < VG_PROCS_MAX; p++)
		d->proc[p].kernels = 0;
	for (int i = 0; i < VG_KERNELS_MAX; i++) {
		struct vg_entry *e = &d->entry[i];

		if (!e->used)
			continue;
		if (e->proc >= VG_PROCS_MAX || !d->proc[e->proc].used) {
			e->used = 0;
			continue;
		}
		d->proc[e->proc].kernels++;
		e->placed = e->done;
		e->fresh_blocks = 0;
		for (unsigned int s = 0; s < d->config.sms; s++) {
			if (e->fresh[s] > e->held[s])
				e->fresh[s] = e->held[s];
			e->fresh_blocks += e->fresh[s];
			e->placed += e->held[s];
			if (e->held[s])
				occupy(&plane(d, e->proc)[s], &e->need, e->held[s]);
		}
		if (e->placed > e->total)
			e->total = e->placed;
	}
}

void vg_sched_join(struct vg_device *d, uint32_t proc, uint64_t key)
{
	uint32_t vacant = VG_NOBODY;

	for (uint32_t g = 0; g < VG_GROUPS_MAX; g++) {
		if (!members(d, g)) {
			vacant = vacant == VG_NOBODY ? g : vacant;
		} else if (key != VG_NO_MPS && d->group[g].key == key) {
			d->proc[proc].group = g;
			return;
		}
	}
	/* there are as many as processes, and @proc is in none */
	d->group[vacant] = (struct vg_group) { .id = ++d->groups, .key = key,
					       .slice_ns = d->config.timeslice_ns };
	d->proc[proc].group = vacant;
}

/* Bits of the groups that have work */
static uint32_t with_work(const struct vg_device *d)
{
	uint32_t groups = 0;

	for (uint32_t p = 0; p < VG_PROCS_MAX; p++)
		if (d->proc[p].used && (d->proc[p].kernels || d->proc[p].feeding))
			groups |= 1u << d->proc[p].group;
	return groups;
}

bool vg_sched_has_work(const struct vg_device *d, uint32_t group)
{
	return with_work(d) >> group & 1;
}

/* The next of @groups in the run list behind the one that ran last, which itself comes last */
static uint32_t next_group(const struct vg_device *d, uint32_t groups)
{
	uint32_t best = VG_NOBODY;

	for (uint32_t g = 0; g < VG_GROUPS_MAX; g++) {
		uint64_t id = d->group[g].id, best_id;

		if (!(groups >> g & 1))
			continue;
		best_id = best == VG_NOBODY ? 0 : d->group[best].id;
		if (!best_id || (id > d->ran_last) > (best_id > d->ran_last) ||
		    ((id > d->ran_last) == (best_id > d->ran_last) && id < best_id))
			best = g;
	}
	return best;
}

static vg_procs begin_turn(struct vg_device *d, uint32_t group, uint64_t now)
{
	uint64_t id = d->group[group].id;

	d->ready_at = d->ran_last && d->ran_last != id ? now + d->config.switch_ns : now;
	d->slice_end = d->ready_at + VG_BEGIN_NS;
	d->turn_start = 0;
	d->ran_last = id;
	__atomic_store_n(&d->active, group, __ATOMIC_RELEASE);
	return members(d, group);
}

vg_procs vg_sched_update(struct vg_device *d, uint64_t now)
{
	uint32_t work = with_work(d), next;
	vg_procs wake = 0;

	if (d->active == VG_NOBODY || !(work >> d->active & 1)) {
		next = next_group(d, work);
		if (next == VG_NOBODY)
			d->active = VG_NOBODY;
		else
			wake = begin_turn(d, next, now);
	} else if (now >= d->slice_end) {
		uint64_t slice = d->group[d->active].slice_ns;

		next = next_group(d, work);
		if (d->turn_start && (d->alone || next == d->active)) {
			/*
			 * without competition slices follow each other: this is the one that @now
			 * falls into
			 */
			d->turn_start += (now - d->turn_start) / slice * slice;
			d->slice_end = d->turn_start + slice;
		} else if (next != d->active) {
			wake = begin_turn(d, next, now);
		} else {
			d->slice_end = now + VG_BEGIN_NS;
		}
	}
	d->alone = d->active != VG_NOBODY && work == 1u << d->active;
	return wake;
}

bool vg_sched_turn(struct vg_device *d, uint32_t proc, uint64_t now, vg_procs *wake)
{
	*wake = vg_sched_update(d, now) & ~(1u << proc);
	if (d->active != d->proc[proc].group || now < d->ready_at)
		return false;
	if (!d->turn_start) {
		d->turn_start = now;
		d->slice_end = now + d->group[d->active].slice_ns;
	}
	return true;
}

vg_procs vg_sched_set_slice(struct vg_device *d, uint32_t group, uint64_t ns, uint64_t now)
{
	vg_procs wake = vg_sched_update(d, now);

	d->group[group].slice_ns = ns;
	if (d->active == group && d->turn_start && d->slice_end > d->turn_start + ns)
		d->slice_end = d->turn_start + ns;
	return wake | vg_sched_update(d, now);
}

vg_procs vg_sched_preempt(struct vg_device *d, uint32_t group, uint64_t now)
{
	vg_procs wake = vg_sched_update(d, now);
	uint32_t others;

	if (d->active != group || group == VG_NOBODY)
		return wake;
	others = with_work(d) & ~(1u << group);
	return others ? begin_turn(d, next_group(d, others), now) : wake;
}
