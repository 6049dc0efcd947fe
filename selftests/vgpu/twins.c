// SPDX-License-Identifier: LGPL-2.1-or-later
#include <linux/gsched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "exec_tex.h"
#include "twins.h"

#define SMS_MAX		6
#define WORKERS_MAX	256
#define ORIGINALS_MAX	6	/* blocks of an original at once */
#define SEQ		77

struct twins_stats twins_stats;
uint64_t twins_steps_max = 1ull << 32;
uint64_t twins_slices_max = 500000;
static uint64_t rng, now;

static uint64_t roll64(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng * 0x2545f4914f6cdd1dull;
}

static unsigned int roll(unsigned int n)
{
	return n ? (unsigned int)((roll64() >> 33) % n) : 0;
}

static void reseed(uint64_t seed)
{
	unsigned int i;

	rng = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
	for (i = 0; i < 4; i++)
		roll64();
}

static uint64_t simulated_time(void)
{
	return now;
}

#define MEMORY_MAX	(LAUNCH_PARAMS_MAX + 1)

/*
 * The buffers of a launch, and behind them all variables of the module: what they hold at first,
 * and where they are
 */
struct memory {
	unsigned int n, own;		/* own: buffers */
	uint8_t *at[MEMORY_MAX], *first[MEMORY_MAX], *result[MEMORY_MAX];
	size_t size[MEMORY_MAX];
	uint64_t texture[LAUNCH_PARAMS_MAX];	/* by parameter */
	const struct test_launch *launch;
	uint64_t reference[LAUNCH_REFS_MAX];	/* by the launch's number */
	bool surface[LAUNCH_REFS_MAX];
};

static bool memory_variables(struct memory *m, const struct twins *f)
{
	unsigned int b = m->n;

	m->at[b] = vgpu_module_globals(f->orig, &m->size[b]);
	if (!m->size[b])
		return true;
	m->n++;
	m->first[b] = malloc(m->size[b]);
	m->result[b] = malloc(m->size[b]);
	if (!m->first[b] || !m->result[b])
		return false;
	memcpy(m->first[b], m->at[b], m->size[b]);
	return true;
}

/* A buffer as a run of floats */
static uint64_t texture_of(uint8_t *at, size_t size)
{
	return vgpu_texture_new(&(struct vgpu_texture){
		.image = { .data = at, .width = (unsigned int)(size / 4), .channels = 1,
			   .format = VGPU_FORMAT_F32, .linear = true },
	}, false);
}

static bool references_new(struct memory *m, const struct twins *f)
{
	unsigned int i;

	for (i = 0; i < m->launch->n_refs; i++) {
		const struct test_ref *r = &m->launch->refs[i];
		struct vgpu_texture t = { .address = { VGPU_ADDRESS_BORDER, VGPU_ADDRESS_CLAMP } };

		if (r->buffer >= m->own || !vgpu_module_reference(f->orig, r->name, &m->surface[i]))
			return false;
		t.image.data = m->at[r->buffer];
		t.image.width = (unsigned int)(m->size[r->buffer] / 4);
		if (r->width) {
			t.image.height = t.image.width / r->width;
			t.image.width = r->width;
			t.image.pitch = 4ul * r->width;
		}
		t.image.channels = 1;
		t.image.format = m->surface[i] ? VGPU_FORMAT_U32 : VGPU_FORMAT_F32;
		t.image.linear = !m->surface[i] && !r->width;
		t.linear_filter = r->width;
		m->reference[i] = vgpu_texture_new(&t, m->surface[i]);
	}
	return true;
}

static uint64_t reference_of(const struct memory *m, const char *name)
{
	unsigned int i;

	for (i = 0; i < m->launch->n_refs && strcmp(m->launch->refs[i].name, name); i++)
		;
	return i < m->launch->n_refs ? m->reference[i] : 0;
}

static bool memory_new(struct memory *m, const struct twins *f, const struct test_launch *l)
{
	unsigned int i, b;

	memset(m, 0, sizeof(*m));
	m->launch = l;
	for (i = 0; i < l->n_params; i++) {
		const struct test_param *p = &l->params[i];

		if (p->kind == PARAM_TEXTURE && m->n)
			m->texture[i] = texture_of(m->at[m->n - 1], m->size[m->n - 1]);
		if (p->kind != PARAM_BUFFER)
			continue;
		b = m->n++;
		m->own = m->n;
		m->size[b] = p->size;
		m->at[b] = aligned_alloc(256, (p->size + 511) & ~(size_t)255);
		m->first[b] = malloc(p->size + 1);
		m->result[b] = malloc(p->size + 1);
		/* memory_free() frees all below n, of which it loses count */
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		if (!m->at[b] || !m->first[b] || !m->result[b])
			return false;
		launch_fill(p, m->first[b]);
	}
	return references_new(m, f) && memory_variables(m, f);
}

static void memory_free(struct memory *m)
{
	unsigned int i;

	for (i = 0; i < LAUNCH_PARAMS_MAX; i++)
		if (m->texture[i])
			vgpu_texture_free(m->texture[i], false);
	for (i = 0; m->launch && i < m->launch->n_refs; i++)
		vgpu_texture_free(m->reference[i], m->surface[i]);
	for (i = 0; i < m->n; i++) {
		if (i < m->own)
			free(m->at[i]);
		else if (m->first[i])
			memcpy(m->at[i], m->first[i], m->size[i]);
		free(m->first[i]);
		free(m->result[i]);
	}
}

static void memory_reset(struct memory *m)
{
	unsigned int i;

	for (i = 0; i < m->n; i++)
		memcpy(m->at[i], m->first[i], m->size[i]);
}

/*
 * What a kernel may touch: its buffers, and a twin the words of its launcher. Broken twins go
 * astray.
 */
static const struct memory *mem_now;
static const struct sim *sim_now;

static bool params_fill(uint8_t *buf, const struct vgpu_kernel_info *info,
			const struct test_launch *l, const struct memory *m, char *why, size_t size)
{
	unsigned int i, b = 0;
	size_t k;

	if (info->n_params < l->n_params) {
		snprintf(why, size, "%u parameters described, kernel has %u", l->n_params,
			 info->n_params);
		return false;
	}
	for (i = 0; i < l->n_params; i++) {
		const struct test_param *p = &l->params[i];
		uint8_t *to = buf + info->param[i].offset;
		size_t room = info->param[i].size;

		switch (p->kind) {
		case PARAM_BUFFER: {
			uint64_t a = (uintptr_t)m->at[b++];

			memcpy(to, &a, room < 8 ? room : 8);
			break;
		}
		case PARAM_TEXTURE:
			memcpy(to, &m->texture[i], room < 8 ? room : 8);
			break;
		case PARAM_VALUE:
			memcpy(to, &p->value, room < 8 ? room : 8);
			break;
		case PARAM_BYTES:
			for (k = 0; k < room; k++)
				to[k] = (uint8_t)(k * 7 + 1);
		}
	}
	return true;
}

/*
 * @shuffle: blocks in any order, those of a launch that needs their order in that, some of them at
 * once; else one after the other
 */
static bool run_original(struct vgpu_kernel *k, const struct test_launch *t, struct memory *m,
			 bool shuffle, uint64_t *done, char *why, size_t size)
{
	const struct vgpu_kernel_info *info = vgpu_kernel_info(k);
	unsigned int total = t->grid[0] * t->grid[1] * t->grid[2], i, j, n = 0,
		most = shuffle ? 1 + roll(ORIGINALS_MAX) : 1;
	struct vgpu_block *block[ORIGINALS_MAX];
	uint64_t steps = 0;
	unsigned int *order = calloc(total, sizeof(*order));
	uint8_t *params = calloc(1, info->param_size + 16);
	uint64_t references[sizeof(info->reference) / sizeof(*info->reference)] = { 0 };
	struct vgpu_launch l = { .kernel = k, .dynamic_shared = t->dynamic, .params = params,
				 .nsmid = SMS_MAX, .references = references,
				 .seed = shuffle ? roll64() : 0, .watch = vgpu_watch_new() };
	bool good = order && params && l.watch && params_fill(params, info, t, m, why, size);

	for (i = 0; i < info->n_references; i++)
		references[i] = reference_of(m, info->reference[i]);
	memcpy(l.grid, t->grid, sizeof(l.grid));
	memcpy(l.block, t->block_dim, sizeof(l.block));
	memory_reset(m);
	for (i = 0; good && i < total; i++) {
		j = shuffle && !t->ordered ? roll(i + 1) : i;
		order[i] = order[j];
		order[j] = i;
	}
	/* several at once, in turns: what blocks do to each other shows */
	for (i = 0; good && (i < total || n);) {
		enum vgpu_result r;
		uint64_t ran = 0;

		if (n < most && i < total) {
			unsigned int c = order[i++],
				id[3] = { c % t->grid[0], c / t->grid[0] % t->grid[1],
					  c / t->grid[0] / t->grid[1] };

			block[n] = vgpu_block_new(&l, id, roll(SMS_MAX));
			if (!block[n]) {
				snprintf(why, size, "out of memory");
				good = false;
				break;
			}
			n++;
			continue;
		}
		j = shuffle ? roll(n) : 0;
		r = vgpu_block_run(block[j], most > 1 ? 1 + roll(400) : twins_steps_max, &ran);
		steps += ran;
		if (r == VGPU_RUNNING && most > 1 && steps < twins_steps_max)
			continue;
		if (r != VGPU_DONE) {
			snprintf(why, size, "original: %s", r == VGPU_RUNNING ? "does not end" :
				 vgpu_block_error(block[j]));
			good = false;
		}
		vgpu_block_free(block[j]);
		block[j] = block[--n];
	}
	while (n)
		vgpu_block_free(block[--n]);
	if (done)
		*done = steps;
	vgpu_watch_free(l.watch);
	free(order);
	free(params);
	return good;
}


#define NOT_SEEN	0xdeadbeef

/* One run of a twin: the launcher, the arbiter and the GPU in one */
struct sim {
	struct gsr_control *control;
	struct gsr_save *save;		/* with its records; NULL none */
	size_t save_size;
	struct gsr_ranges *ranges;	/* static ones; NULL: the counter */
	size_t ranges_size;
	uint64_t window;
	struct gsr_launch *arg;
	struct gsched_cl_slot stat;
	struct vgpu_block *worker[WORKERS_MAX];
	unsigned int sm[WORKERS_MAX];	/* of each worker */
	unsigned int n, pending, launched, wings, sms, per_sm, resident[SMS_MAX], weight;
	unsigned int early;		/* workers that ended while there was work to fetch */
	uint64_t changes;
	bool steady;			/* the window is the whole device's from start to end */
	bool together;			/* workers leave an SM together: */
	bool may_end[WORKERS_MAX], excluded[WORKERS_MAX];
};

static bool within(const void *p, size_t room, uint64_t addr, size_t size)
{
	uint64_t off = addr - (uintptr_t)p;

	return p && off < room && size <= room - off;
}

static bool may_access(uint64_t addr, size_t size, bool write)
{
	unsigned int i;

	for (i = 0; mem_now && i < mem_now->n; i++)
		if (within(mem_now->at[i], mem_now->size[i], addr, size))
			return true;
	return sim_now && (within(sim_now->control, sizeof(*sim_now->control), addr, size) ||
			   within(sim_now->save, sim_now->save_size, addr, size) ||
			   within(sim_now->ranges, sim_now->ranges_size, addr, size) ||
			   (!write && within(&sim_now->window, sizeof(sim_now->window),
					     addr, size)) ||
			   within(&sim_now->stat, sizeof(sim_now->stat), addr, size));
}

static uint64_t any_window(const struct sim *s)
{
	switch (roll(6)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return s->sms * GSCHED_CAPSM;
	case 3:	/* parts of SMs */
		return roll(s->sms * GSCHED_CAPSM);
	default:	/* small ones more often: they take more away */
		return (1 + roll(s->sms - roll(s->sms))) * GSCHED_CAPSM;
	}
}

static void place(struct sim *s, struct vgpu_launch *l)
{
	while (s->pending && s->n < WORKERS_MAX) {
		unsigned int sm = roll(s->sms), k, id[3] = { 0 };

		for (k = 0; k < s->sms && s->resident[sm] == s->per_sm; k++)
			sm = (sm + 1) % s->sms;
		if (k == s->sms)
			return;
		id[0] = --s->pending;
		if (l->seed)
			l->seed = roll64() | 1;
		s->worker[s->n] = vgpu_block_new(l, id, sm);
		s->may_end[s->n] = s->excluded[s->n] = false;
		s->sm[s->n++] = sm;
		s->resident[sm]++;
	}
}

/* Each range that holds block-tasks is taken for good, and no more are counted than are taken */
static bool ranges_done(const struct sim *s, unsigned int total, char *why, size_t size)
{
	unsigned int n = s->arg->workers, each = (total + n - 1) / n, i, taken = 0;

	for (i = 0; i < GSR_RANGES_MAX; i++) {
		bool bit = s->ranges->taken[i / 64] >> i % 64 & 1;

		taken += bit;
		if (bit != (i < n) && (i >= n || i * each < total)) {
			snprintf(why, size, "range %u of %u, %u block-tasks each of %u, is %staken",
				 i, n, each, total, bit ? "" : "not ");
			return false;
		}
	}
	if (s->ranges->taken_count != taken || s->control->counter[0].next ||
	    s->control->exhausted) {
		snprintf(why, size, "%u ranges are counted, %u are taken, the counter is at %llu",
			 s->ranges->taken_count, taken,
			 (unsigned long long)s->control->counter[0].next);
		return false;
	}
	return true;
}

static bool finish(struct sim *s, unsigned int total, char *why, size_t size)
{
	const struct gsr_control *c = s->control;
	unsigned int i;

	if (c->done != total || c->gate != SEQ || s->stat.finished != SEQ) {
		snprintf(why, size, "done %llu of %u, gate %u, finished %u, seq %d",
			 (unsigned long long)c->done, total, c->gate, s->stat.finished, SEQ);
		return false;
	}
	for (i = 0; i < GSR_SMS_MAX; i++)
		if (c->sm[i] || c->ranks[i / 64]) {
			snprintf(why, size, "places 0x%llx of word %u, ranks 0x%llx "
				 "are still taken", (unsigned long long)c->sm[i], i,
				 (unsigned long long)c->ranks[i / 64]);
			return false;
		}
	if (s->stat.left < s->early || s->stat.left > s->launched ||
	    s->stat.seen_limit == NOT_SEEN || !s->stat.end_ns || !s->stat.start_ns) {
		snprintf(why, size, "left %u of %u workers, %u before the last fetch, seen limit "
			 "0x%x, started %llu, ended %llu", s->stat.left, s->launched, s->early,
			 s->stat.seen_limit, (unsigned long long)s->stat.start_ns,
			 (unsigned long long)s->stat.end_ns);
		return false;
	}
	for (i = 0; s->save && i < sizeof(*s->save); i++)
		if (((const uint8_t *)s->save)[i]) {
			snprintf(why, size, "a record is still in use: byte %u of struct "
				 "gsr_save is not 0", i);
			return false;
		}
	if (s->ranges && !ranges_done(s, total, why, size))
		return false;
	/* the stamps are hints: a first worker may be held up before it writes its own */
	twins_stats.late += s->stat.start_ns > s->stat.end_ns;
	return true;
}

/* Worker @i ran: if none on its SM has a place now, those that are there may end */
static void note_vacant(struct sim *s, unsigned int i)
{
	unsigned int j;

	if ((uint32_t)s->control->sm[s->sm[i]])
		return;
	for (j = 0; j < s->n; j++)
		s->may_end[j] |= s->sm[j] == s->sm[i];
}

static bool simulate(struct sim *s, struct vgpu_launch *l, unsigned int total, char *why,
		     size_t size)
{
	unsigned int seen = 0, waiting = 0, quiet = roll(3) ? 400 + roll(4000) : 0,
		pace = 3 + roll(40);
	uint64_t slices;
	bool good = true;

	s->steady = !quiet && s->window == s->sms * GSCHED_CAPSM;
	for (slices = 0; slices < twins_slices_max && good; slices++) {
		unsigned int i, left;
		enum vgpu_result r;

		place(s, l);
		if (s->stat.finished == SEQ && !s->n && !s->pending)
			return finish(s, total, why, size);
		now += roll(400);
		/* the arbiter changes its mind, until it has done so often enough */
		if (s->changes < quiet && roll(pace) == 0) {
			s->window = any_window(s);
			s->changes++;
		} else if ((s->changes >= quiet || s->wings > 150) &&
			   s->window != s->sms * GSCHED_CAPSM) {
			s->window = s->sms * GSCHED_CAPSM;
		}
		/* wings: for workers that left, or when nobody is there to go on */
		if (!s->pending && s->stat.finished != SEQ && (s->stat.left != seen || !s->n)) {
			if (s->window && (roll(8) == 0 || !s->n)) {
				seen = s->stat.left;
				s->pending = 1 + roll(s->sms * s->per_sm);
				s->launched += s->pending;
				s->wings++;
				l->grid[0] = s->pending;
				/*
				 * with its parameters at other generic addresses; the window of
				 * shared memory is the context's
				 */
				l->params_at += 1 << 16;
				/* as the launcher reckons, who may be wrong */
				s->arg->first = roll(4) ? s->n : roll(WORKERS_MAX);
				s->arg->flags &= ~GSR_LAUNCH_WHOLE;
				/*
				 * a wing's window is written before it: its workers read it anew at
				 * their first look
				 */
				if (roll(2))
					s->control->relay = s->window;
			} else if (!s->n) {
				s->changes++;
				s->window = any_window(s);
			}
		}
		if (!s->n)
			continue;
		i = roll(s->n);
		left = s->control->left;
		r = vgpu_block_run(s->worker[i], 1 + roll(roll(4) ? 300 : 20000), NULL);
		note_vacant(s, i);
		/* in resumable twins all are counted */
		s->excluded[i] |= s->control->left != left && !s->steady;
		if (s->save) {
			twins_stats.suspended += s->save->waiting_count > waiting;
			waiting = s->save->waiting_count;
		}
		if (r == VGPU_FAULT) {
			snprintf(why, size, "twin: %s", vgpu_block_error(s->worker[i]));
			good = false;
		} else if (s->together && !s->may_end[i] && !s->excluded[i] &&
			   vgpu_block_ended(s->worker[i])) {
			snprintf(why, size, "%u warps left SM %u before the others",
				 vgpu_block_ended(s->worker[i]), s->sm[i]);
			good = false;
		}
		if (r == VGPU_RUNNING)
			continue;
		s->early += !s->ranges && launch_unclaimed(s->arg, s->control);
		vgpu_block_free(s->worker[i]);
		s->resident[s->sm[i]]--;
		s->worker[i] = s->worker[--s->n];
		s->sm[i] = s->sm[s->n];
		s->may_end[i] = s->may_end[s->n];
		s->excluded[i] = s->excluded[s->n];
	}
	if (good)
		snprintf(why, size, "not finished after %llu slices: not fetched %llu, done %llu "
			 "of %u, %u workers, window 0x%llx", (unsigned long long)twins_slices_max,
			 (unsigned long long)launch_unclaimed(s->arg, s->control),
			 (unsigned long long)s->control->done, total, s->n,
			 (unsigned long long)s->window);
	return false;
}

/* How a worker comes to its position */
static uint32_t any_mode(void)
{
	uint32_t mode = roll(3) ? 0 : GSR_LAUNCH_BY_INDEX;

	twins_stats.by_index += mode == GSR_LAUNCH_BY_INDEX;
	return mode;
}

/* As many as there are places, or any number */
static bool any_ranges(struct sim *s, struct gsr_launch *a, unsigned int total)
{
	a->workers = roll(3) ? s->sms * s->per_sm : 1 + roll(100);
	if (roll(2) && a->workers > total)
		a->workers = total;
	s->ranges_size = sizeof(*s->ranges) + a->workers * sizeof(*s->ranges->next);
	s->ranges = aligned_alloc(128, (s->ranges_size + 127) & ~(size_t)127);
	if (!s->ranges)
		return false;
	memset(s->ranges, 0xa5, s->ranges_size);
	memset(s->ranges, 0, sizeof(*s->ranges));
	a->ranges = (uintptr_t)s->ranges;
	twins_stats.ranges++;
	return true;
}

static bool run_twin(struct vgpu_kernel *k, const struct gsr_kernel *g, const struct test_launch *t,
		     bool modes, struct memory *m, char *why, size_t size)
{
	const struct vgpu_kernel_info *info = vgpu_kernel_info(k);
	unsigned int total = t->grid[0] * t->grid[1] * t->grid[2], workers, i;
	uint8_t *params = calloc(1, info->param_size + 16);
	struct vgpu_launch l = { .kernel = k, .params = params, .seed = roll64() | 1,
				 .dynamic_shared = gsr_dynamic_shared(g, t->dynamic),
				 .watch = vgpu_watch_new() };
	struct sim s = { .sms = 1 + roll(SMS_MAX), .per_sm = 1 + roll(4) };
	bool good = params && l.watch && params_fill(params, info, t, m, why, size);
	struct gsr_launch a;
	unsigned int per_sm = 0;
	size_t stride = 0;

	if (info->n_params != g->params + !!g->n_references + 1 ||
	    info->param[info->n_params - 1].size != sizeof(a)) {
		snprintf(why, size, "the twin's parameters are not %u, %sand the launch", g->params,
			 g->n_references ? "handles " : "");
		good = false;
	}
	s.control = aligned_alloc(128, (sizeof(*s.control) + 127) & ~(size_t)127);
	good = good && s.control;
	if (!good)
		goto out;
	if (g->resume_points && roll(8)) {
		stride = gsr_save_stride(g, (size_t)t->block_dim[0] * t->block_dim[1] *
					 t->block_dim[2], t->dynamic);
		/* fewer records than workers is allowed, too */
		per_sm = roll(4) ? s.per_sm : 1 + roll(s.per_sm);
		s.save_size = sizeof(*s.save) + s.sms * per_sm * stride;
		s.save = aligned_alloc(128, (s.save_size + 127) & ~(size_t)127);
		good = s.save;
		if (!good)
			goto out;
		/* what lies in a record is nobody's before it is saved */
		memset(s.save, 0xa5, s.save_size);
		memset(s.save, 0, sizeof(*s.save));
	}
	now = 1000000 + roll(1000000);
	s.weight = GSCHED_CAPSM / s.per_sm;
	s.window = roll(4) ? s.sms * GSCHED_CAPSM : any_window(&s);
	gsr_control_init(s.control, s.window);
	workers = s.sms * s.per_sm < total ? s.sms * s.per_sm : total;
	workers = roll(3) ? workers : 1 + roll(workers);
	a = (struct gsr_launch){
		.control = (uintptr_t)s.control, .window = (uintptr_t)&s.window,
		.stat = (uintptr_t)&s.stat,
		.grid = { t->grid[0], t->grid[1], t->grid[2] }, .seq = SEQ, .weight = s.weight,
		.poll_quarter = 1 + roll(roll(2) ? 75 : 1250),
		.poll_clocks = roll(2) ? 0 : roll(3000),
		.fetch_ns = 1000 + roll(20000), .fetch_max = 1 + roll(16), .workers = workers,
		.flags = (modes ? any_mode() : 0) | (roll(10) ? 0 : GSR_LAUNCH_NO_WINDOW) |
			 (roll(3) ? 0 : GSR_LAUNCH_TOGETHER),
		.save = (uintptr_t)s.save, .save_stride = (uint32_t)stride,
		.save_per_sm = per_sm, .save_sms = s.sms,
		.last_warp = (t->block_dim[0] * t->block_dim[1] * t->block_dim[2] - 1) / 32,
	};
	/* blocks that wait for lower ones need these to come first */
	good = !modes || g->waits || roll(3) || any_ranges(&s, &a, total);
	if (!good)
		goto out;
	gsr_launch_order(&a, g->waits || s.ranges || roll(4) == 0 ? GSR_ORDER_STRICT :
			 GSR_ORDER_STRIPES, 1 + roll(2 * workers), roll(10));
	a.last_copy = (1u << roll(6)) - 1;
	if (s.window == s.sms * GSCHED_CAPSM && roll(2))
		a.flags |= GSR_LAUNCH_WHOLE;
	for (i = 0; i < g->n_references; i++) {
		uint64_t handle = reference_of(m, g->references[i].name);

		memcpy(params + info->param[g->params].offset + i * sizeof(handle), &handle,
		       sizeof(handle));
	}
	s.arg = (void *)(params + info->param[info->n_params - 1].offset);
	memcpy(s.arg, &a, sizeof(a));
	s.together = a.flags & GSR_LAUNCH_TOGETHER && !modes;
	memcpy(l.block, t->block_dim, sizeof(l.block));
	l.grid[0] = s.pending = s.launched = workers;
	l.grid[1] = l.grid[2] = 1;
	l.nsmid = s.sms;
	s.stat.seq = SEQ;
	s.stat.seen_limit = NOT_SEEN;
	memory_reset(m);
	sim_now = &s;
	good = simulate(&s, &l, total, why, size);
	sim_now = NULL;
	twins_stats.runs++;
	twins_stats.resumable += s.save != NULL;
	twins_stats.workers += s.launched;
	twins_stats.left += s.stat.left;
	twins_stats.wings += s.wings;
	twins_stats.changes += s.changes;
	while (s.n)
		vgpu_block_free(s.worker[--s.n]);
out:
	vgpu_watch_free(l.watch);
	free(s.ranges);
	free(s.save);
	free(s.control);
	free(params);
	return good;
}

static bool same_memory(const struct memory *m, char *why, size_t size)
{
	unsigned int i;
	size_t k;

	for (i = 0; i < m->n; i++)
		for (k = 0; k < m->size[i]; k++)
			if (m->at[i][k] != m->result[i][k]) {
				snprintf(why, size, "%s %u differs at byte %zu: 0x%02x, "
					 "original 0x%02x", i < m->own ? "buffer" :
					 "variables, memory", i, k, m->at[i][k], m->result[i][k]);
				return false;
			}
	return true;
}

void twins_init(void)
{
	vgpu_globaltimer = simulated_time;
	vgpu_access_ok = may_access;
	vgpu_checks = VGPU_CHECK_ALL;
}

bool twins_load(struct twins *f, const char *text, size_t size, char *why, size_t why_size)
{
	memset(f, 0, sizeof(*f));
	f->orig = vgpu_module_load(text, size, why, why_size);
	return f->orig;
}

static bool find(void *arg, const char *name, uint64_t *address, uint64_t *size)
{
	size_t bytes = 0;

	*address = (uintptr_t)vgpu_module_global(arg, name, &bytes);
	*size = bytes;
	return *address;
}

/* What no kernel writes is there still */
static bool first(void *arg, const char *name, uint64_t offset, uint64_t *word)
{
	size_t bytes = 0;
	const uint8_t *at = vgpu_module_global(arg, name, &bytes);

	if (!at || offset + sizeof(*word) > bytes)
		return false;
	memcpy(word, at + offset, sizeof(*word));
	return true;
}

/* The twins' table of addresses */
static bool share(struct twins *f, char *why, size_t size)
{
	bool *missing = calloc(f->rw.n_variables + 1, sizeof(*missing));
	size_t bytes = 0;
	uint64_t *table = f->rw.n_variables ? vgpu_module_global(f->twin, f->rw.addresses, &bytes) :
			  NULL;
	bool good = missing && bytes == f->rw.n_variables * sizeof(*table);
	unsigned int i;

	if (good)
		gsr_fill_addresses(&f->rw, find, first, f->orig, table, missing);
	for (i = 0; good && i < f->rw.n_variables; i++)
		good = !missing[i];
	if (!good)
		snprintf(why, size, "table of addresses of %zu bytes for %u variables", bytes,
			 f->rw.n_variables);
	free(missing);
	return good;
}

bool twins_reload(struct twins *f, char *why, size_t size)
{
	vgpu_module_free(f->twin);
	f->twin = f->rw.ptx ? vgpu_module_load(f->rw.ptx, strlen(f->rw.ptx), why, size) : NULL;
	return f->twin ? share(f, why, size) : !f->rw.ptx;
}

bool twins_rewrite(struct twins *f, const char *text, size_t size, const struct gsr_options *o,
		   char *why, size_t why_size)
{
	struct gsr_error e = { 0 };

	if (gsr_rewrite_ptx(text, size, o, &f->rw, &e) != GSR_OK) {
		snprintf(why, why_size, "%s", e.message);
		return false;
	}
	f->modes = o->modes;
	return twins_reload(f, why, why_size);
}

bool twins_drop(struct twins *f, unsigned int n, char *what, size_t size)
{
	static const char *const kinds[] = { "bar.sync", "barrier.sync", "red.", "st.relaxed" };
	char *line, *end;
	unsigned int k;

	for (line = f->rw.ptx; line && *line; line = *end ? end + 1 : end) {
		end = line + strcspn(line, "\n");
		line += strspn(line, " \t");
		for (k = 0; k < 4 && strncmp(line, kinds[k], strlen(kinds[k])); k++)
			;
		if (k == 4 || n--)
			continue;
		snprintf(what, size, "%.*s", (int)(end - line), line);
		memset(line, ' ', (size_t)(end - line));
		return true;
	}
	return false;
}

void twins_close(struct twins *f)
{
	vgpu_module_free(f->orig);
	vgpu_module_free(f->twin);
	gsr_rewrite_free(&f->rw);
	memset(f, 0, sizeof(*f));
}

const struct gsr_kernel *twins_described(const struct twins *f, const char *kernel)
{
	unsigned int i;

	for (i = 0; i < f->rw.n_kernels; i++)
		if (!strcmp(f->rw.kernels[i].name, kernel))
			return &f->rw.kernels[i];
	return NULL;
}

static void keep_result(struct memory *m)
{
	unsigned int i;

	for (i = 0; i < m->n; i++)
		memcpy(m->result[i], m->at[i], m->size[i]);
}

bool twins_fair(const struct twins *f, const struct test_launch *t, uint64_t seed, unsigned int n,
		uint64_t *done, char *why, size_t size)
{
	struct vgpu_kernel *k = vgpu_module_kernel(f->orig, t->kernel);
	struct memory m;
	unsigned int i;
	bool good;

	if (!k) {
		snprintf(why, size, "no such kernel");
		return false;
	}
	reseed(seed);
	/* to look for races costs a multiple of the time: under every third seed */
	vgpu_checks = seed % 3 ? VGPU_CHECK_ALL & ~(VGPU_CHECK_RACE | VGPU_CHECK_GRID) :
		      VGPU_CHECK_ALL;
	mem_now = &m;
	good = memory_new(&m, f, t);
	for (i = 0; good && i < n; i++) {
		good = run_original(k, t, &m, i > 0, i ? NULL : done, why, size) &&
		       (!i || same_memory(&m, why, size));
		if (!i)
			keep_result(&m);
	}
	mem_now = NULL;
	memory_free(&m);
	return good;
}

bool twins_compare(const struct twins *f, const struct test_launch *t, uint64_t seed, char *why,
		   size_t size)
{
	const struct gsr_kernel *g = twins_described(f, t->kernel);
	struct vgpu_kernel *orig = vgpu_module_kernel(f->orig, t->kernel), *twin;
	struct memory m;
	char name[512];
	bool good;

	snprintf(name, sizeof(name), "%s" GSR_SUFFIX, t->kernel);
	twin = f->twin ? vgpu_module_kernel(f->twin, name) : NULL;
	if (!orig || !twin || !g) {
		snprintf(why, size, "%s", !orig || !g ? "no such kernel" : "no twin");
		return false;
	}
	reseed(seed);
	mem_now = &m;
	good = memory_new(&m, f, t) && run_original(orig, t, &m, true, NULL, why, size);
	if (good) {
		keep_result(&m);
		good = run_twin(twin, g, t, f->modes, &m, why, size) && same_memory(&m, why, size);
	}
	mem_now = NULL;
	memory_free(&m);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): as in memory_new() */
	return good;
}
