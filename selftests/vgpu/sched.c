// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks to SMs, and turns of processes: see sched.h */
#include <stdatomic.h>
#include <string.h>
#include "sched.h"

static const uint32_t carveouts[] = { 0, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 100 << 10, 132 << 10, 164 << 10, 228 << 10 };

void vg_sched_init(struct vg_device *d, const struct vg_config *config)
{
	d->config = *config;
	d->tickets = 0;
	d->active = VG_NOBODY;
	d->slice_end = 0;
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
	return d->sm[d->config.mps ? 0 : proc];
}

static bool fits(const struct vg_config *c, const struct vg_sm *sm, const struct vg_need *need)
{
	if (c->carveout && sm->blocks && sm->carveout != need->carveout)
		return false;
	return sm->blocks < c->sm_blocks && sm->threads + need->threads <= c->sm_threads &&
	       sm->regs + need->regs <= c->sm_regs && sm->smem + need->smem <= (c->carveout ? need->carveout : c->sm_smem);
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

int vg_sched_submit(struct vg_device *d, uint32_t proc, const struct vg_need *need, uint64_t blocks, int priority)
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
		return i;
	}
	return -1;
}

/* The kernel whose blocks go next among those of one plane (@proc), or of all processes */
static struct vg_entry *head(struct vg_device *d, uint32_t proc)
{
	struct vg_entry *best = NULL;

	for (int i = 0; i < VG_KERNELS_MAX; i++) {
		struct vg_entry *e = &d->entry[i];

		if (!e->used || e->placed == e->total || (proc != VG_NOBODY && e->proc != proc))
			continue;
		if (!best || e->priority < best->priority || (e->priority == best->priority && e->ticket < best->ticket))
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

static vg_procs dispatch_plane(struct vg_device *d, uint32_t proc)
{
	vg_procs got = 0;
	struct vg_entry *e;

	while ((e = head(d, proc))) {
		struct vg_sm *sms = plane(d, e->proc);

		while (e->placed < e->total) {
			int i = emptiest(&d->config, sms, &e->need);

			if (i < 0)
				return got;
			occupy(&sms[i], &e->need, 1);
			/* this order: vg_sched_repair() makes a block that is fresh and not held unplaced again */
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
	vg_procs got = 0;

	if (d->config.mps)
		return dispatch_plane(d, VG_NOBODY);
	for (uint32_t p = 0; p < VG_PROCS_MAX; p++)
		if (d->proc[p].used)
			got |= dispatch_plane(d, p);
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
}

void vg_sched_reap(struct vg_device *d, uint32_t proc)
{
	for (int i = 0; i < VG_KERNELS_MAX; i++)
		if (d->entry[i].used && d->entry[i].proc == proc)
			vg_sched_remove(d, i);
	d->proc[proc].used = 0;
	d->proc[proc].mem = 0;
	d->proc[proc].pid = 0;
	if (d->active == proc)
		d->active = VG_NOBODY;
}

void vg_sched_repair(struct vg_device *d)
{
	memset(d->sm, 0, sizeof(d->sm));
	for (int i = 0; i < VG_KERNELS_MAX; i++) {
		struct vg_entry *e = &d->entry[i];

		if (!e->used)
			continue;
		if (e->proc >= VG_PROCS_MAX || !d->proc[e->proc].used) {
			e->used = 0;
			continue;
		}
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

bool vg_sched_has_work(const struct vg_device *d, uint32_t proc)
{
	if (!d->proc[proc].used)
		return false;
	for (int i = 0; i < VG_KERNELS_MAX; i++)
		if (d->entry[i].used && d->entry[i].proc == proc)
			return true;
	return false;
}

bool vg_sched_turn(struct vg_device *d, uint32_t proc, uint64_t now, vg_procs *wake)
{
	*wake = 0;
	if (d->config.mps)
		return true;
	if (d->active != VG_NOBODY && d->active != proc && !vg_sched_has_work(d, d->active))
		d->active = VG_NOBODY;
	if (d->active == VG_NOBODY) {
		d->active = proc;
		d->slice_end = now + d->config.timeslice_ns;
		return true;
	}
	if (now >= d->slice_end) {
		uint32_t next = d->active;

		for (uint32_t i = 1; i <= VG_PROCS_MAX; i++) {
			next = (d->active + i) % VG_PROCS_MAX;
			if (vg_sched_has_work(d, next))
				break;
		}
		if (next != d->active && next != proc)
			*wake |= 1u << next;
		d->active = next;
		d->slice_end = now + d->config.timeslice_ns;
	}
	return d->active == proc;
}
