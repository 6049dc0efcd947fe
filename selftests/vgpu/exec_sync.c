// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Barriers of the block, and instructions that the lanes of a warp do together.
 *
 * A barrier counts warps: a thread that comes to it waits for all threads of its warp that have not
 * exited, then the warp has arrived. A barrier without a count waits for all warps; those that have
 * exited count. Lanes that wait keep their pc at the instruction, so each finds its own operands
 * when it is released.
 */
#include <stdio.h>
#include "exec_priv.h"

/* The threads of a mask, as text */
static int runs(char *buf, size_t size, const struct xwarp *w, uint32_t m)
{
	int n = 0;
	unsigned int i, j;

	for (i = 0; i < LANES; i = j + 1) {
		for (j = i; j < LANES && m >> j & 1; j++)
			;
		if (j == i)
			continue;
		if (n + 24 > (int)size)
			break;
		n += snprintf(buf + n, size - (size_t)n, j - i > 1 ? "%s%u-%u" : "%s%u",
			      n ? "," : "", w->id * LANES + i, w->id * LANES + j - 1);
	}
	return n;
}

static const struct xinsn *at(const struct vgpu_block *b, const struct xwarp *w, unsigned int lane)
{
	return &b->k->code[w->pc[lane]];
}

static uint64_t lane_src(const struct vgpu_block *b, const struct xwarp *w,
			 unsigned int lane, int32_t o)
{
	return o >= 0 ? w->rows[w->row[lane] + (uint32_t)o][lane] : b->k->pool[~o][lane];
}

static bool lane_pred(const struct xwarp *w, unsigned int lane, int32_t p)
{
	bool v;

	if (p < 0)
		return p == P_TRUE;
	v = w->preds[w->row[lane] + ((uint32_t)p >> 1)] >> lane & 1;
	return p & 1 ? !v : v;
}

static void lane_dst(struct xwarp *w, unsigned int lane, int32_t o, uint64_t v)
{
	w->rows[w->row[lane] + (uint32_t)o][lane] = v;
}

static void lane_pred_dst(struct xwarp *w, unsigned int lane, int32_t p, bool v)
{
	uint32_t *to;

	if (p < 0)
		return;
	to = &w->preds[w->row[lane] + ((uint32_t)p >> 1)];
	*to = (*to & ~(1u << lane)) | (uint32_t)v << lane;
}

uint32_t sync_here(const struct xwarp *w, unsigned int id)
{
	uint32_t m, here = 0;

	for (m = w->at_barrier & w->arrived; m; m &= m - 1)
		here |= (uint32_t)(w->barrier[__builtin_ctz(m)] == id) << __builtin_ctz(m);
	return here;
}

static void release(struct vgpu_block *b, unsigned int id)
{
	struct xbarrier *bar = &b->barriers[id];
	unsigned int k;

	if (b->order)
		order_barrier(b, id, !bar->expected);
	for (k = 0; k < b->n_warps; k++) {
		struct xwarp *w = &b->warps[k];
		uint32_t m;

		for (m = sync_here(w, id); m; m &= m - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(m);
			const struct xinsn *in = at(b, w, i);

			if (in->fn == x_bar_red) {
				if (in->op == A_POPC)
					lane_dst(w, i, in->o[0], bar->popc);
				else
					lane_pred_dst(w, i, in->p[0],
						      in->op == A_AND ? bar->and : bar->or);
			}
			w->pc[i]++;
			w->at_barrier &= ~(1u << i);
			w->arrived &= ~(1u << i);
		}
	}
	memset(bar, 0, sizeof(*bar));
}

static void check_complete(struct vgpu_block *b, unsigned int id)
{
	struct xbarrier *bar = &b->barriers[id];
	unsigned int exited = b->n_warps - b->live_warps;

	if (bar->active && (bar->expected ? bar->arrived >= bar->expected :
			    bar->arrived + exited >= b->n_warps))
		release(b, id);
}

/* All threads of the warp that are left wait at one barrier: the warp arrives */
static enum xresult try_arrive(struct xctx *x, struct xwarp *w)
{
	struct vgpu_block *b = x->b;
	uint32_t m, k;
	unsigned int first, id;
	const struct xinsn *in;
	struct xbarrier *bar;

	m = w->at_barrier & ~w->arrived;
	if (!w->live || m != w->live)
		return X_NEXT;
	first = (unsigned int)__builtin_ctz(m);
	id = w->barrier[first];
	in = at(b, w, first);
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *other = at(b, w, i);

		if (w->barrier[i] != id)
			return X_NEXT;
		if (other->fn != in->fn || other->op != in->op ||
		    w->bar_count[i] != w->bar_count[first] ||
		    (other != in && b->checks & VGPU_CHECK_SYNC)) {
			char here[64], there[64];
			uint32_t others = 0, j;

			for (j = m; j; j &= j - 1)
				others |= (uint32_t)(at(b, w,
							(unsigned int)__builtin_ctz(j)) != in) <<
							__builtin_ctz(j);
			runs(here, sizeof(here), w, others);
			runs(there, sizeof(there), w, m & ~others);
			return exec_fault_as(x, other, VGPU_FAULT_SYNC,
					     "threads %s wait for barrier %u here, threads %s of "
					     "the same warp at line %u (%s): hardware hangs", here,
					     id, there, in->line, in->src->name);
		}
	}
	bar = &b->barriers[id];
	if (!bar->active) {
		bar->active = true;
		bar->and = true;
		bar->expected = w->bar_count[first] / LANES;
	} else if (bar->expected != w->bar_count[first] / LANES) {
		return exec_fault_as(x, in, VGPU_FAULT_SYNC,
				     "barrier %u waits for %u threads, warp %u asks for %u", id,
				     bar->expected ? bar->expected * LANES : b->n_warps * LANES,
				     w->id, w->bar_count[first] ? w->bar_count[first] :
				     b->n_warps * LANES);
	}
	bar->arrived++;
	bar->popc += (uint32_t)__builtin_popcount(w->bar_pred & m);
	bar->and &= (w->bar_pred & m) == m;
	bar->or |= (w->bar_pred & m) != 0;
	if (in->fn == x_bar_arrive) {
		if (b->order)
			order_arrive(b->order, id, w->id, m);
		for (k = m; k; k &= k - 1)
			w->pc[__builtin_ctz(k)]++;
		w->at_barrier &= ~m;
	} else {
		w->arrived |= m;
	}
	check_complete(b, id);
	return X_RESCHED;
}

static enum xresult barrier(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	struct xwarp *w = x->w;
	uint32_t k, stop = NO_PC;

	if (m != x->mask && in->flags & F_ALIGNED && x->b->checks & VGPU_CHECK_SYNC) {
		char here[64], there[64];

		runs(here, sizeof(here), w, m);
		runs(there, sizeof(there), w, x->mask & ~m);
		return exec_fault_as(x, in, VGPU_FAULT_SYNC,
				     "an aligned barrier that threads %s of warp %u execute, "
				     "threads %s not", here, w->id, there);
	}
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		uint32_t id = (uint32_t)src(x, in->o[1])[i], count = in->o[2] == NO_OPND ? 0 :
			      (uint32_t)src(x, in->o[2])[i];

		if (id >= BARRIERS)
			return exec_fault_as(x, in, VGPU_FAULT_SYNC, "barrier %u, there are %d",
					     id, BARRIERS);
		if (in->o[2] != NO_OPND && (!count || count % LANES))
			return exec_fault_as(x, in, VGPU_FAULT_SYNC,
					     "barrier for %u threads: not a multiple of %d",
					     count, LANES);
		if (count > x->b->n_warps * LANES)
			return exec_fault_as(x, in, VGPU_FAULT_SYNC, "barrier for %u threads of %u",
					     count, x->b->n_threads);
		w->barrier[i] = (uint8_t)id;
		w->bar_count[i] = count;
		w->pc[i] = x->pc;
	}
	if (in->fn == x_bar_red)
		w->bar_pred = (w->bar_pred & ~m) | (pred(x, in->p[1]) & m);
	w->at_barrier |= m;
	if (m != w->live && x->b->checks & VGPU_CHECK_LETTER && sync_passed(x, &stop) == X_FAULT)
		return X_FAULT;
	return try_arrive(x, w) == X_FAULT ? X_FAULT : X_RESCHED;
}

enum xresult x_bar_sync(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return barrier(x, in, m);
}

enum xresult x_bar_arrive(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return barrier(x, in, m);
}

enum xresult x_bar_red(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return barrier(x, in, m);
}

static void do_shfl(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	uint64_t v[LANES], r[LANES];
	bool p[LANES];
	uint32_t k;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		v[i] = lane_src(b, w, i, at(b, w, i)->o[1]);
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(b, w, i);
		uint32_t bv = (uint32_t)lane_src(b, w, i, in->o[2]) & 31,
			c = (uint32_t)lane_src(b, w, i, in->o[3]);
		uint32_t seg = c >> 8 & 31, clamp = c & 31;
		int last = (int)((i & seg) | (clamp & ~seg)), least = (int)(i & seg), j;

		switch (in->mode) {
		case V_UP:
			j = (int)i - (int)bv;
			p[i] = j >= last;
			break;
		case V_DOWN:
			j = (int)(i + bv);
			p[i] = j <= last;
			break;
		case V_BFLY:
			j = (int)(i ^ bv);
			p[i] = j <= last;
			break;
		default:
			j = least | (int)(bv & ~seg);
			p[i] = j <= last;
		}
		/* from a lane that takes no part the value is undefined: it keeps its own */
		r[i] = p[i] && (m >> j & 1) ? v[j] : v[i];
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		lane_dst(w, i, at(b, w, i)->o[0], r[i]);
		lane_pred_dst(w, i, at(b, w, i)->p[0], p[i]);
	}
}

static void do_vote(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	uint32_t k, yes = 0;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		yes |= (uint32_t)lane_pred(w, i, at(b, w, i)->p[1]) << i;
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(b, w, i);

		switch (in->mode) {
		case V_BALLOT: lane_dst(w, i, in->o[0], yes); break;
		case V_ALL: lane_pred_dst(w, i, in->p[0], yes == m); break;
		case V_ANY: lane_pred_dst(w, i, in->p[0], yes != 0); break;
		default: lane_pred_dst(w, i, in->p[0], !yes || yes == m);
		}
	}
}

static void do_match(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	uint64_t v[LANES];
	uint32_t k, n;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(b, w, i);

		v[i] = lane_src(b, w, i, in->o[1]);
		if (in->size == 4)
			v[i] = (uint32_t)v[i];
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(b, w, i);
		uint32_t same = 0;

		for (n = m; n; n &= n - 1)
			/* cppcheck-suppress uninitvar ; those of m are set */
			same |= (uint32_t)(v[__builtin_ctz(n)] == v[i]) << __builtin_ctz(n);
		if (in->mode == V_ALL) {
			lane_dst(w, i, in->o[0], same == m ? m : 0);
			lane_pred_dst(w, i, in->p[0], same == m);
		} else {
			lane_dst(w, i, in->o[0], same);
		}
	}
}

/* NaNs are left out, unless .NaN wants them; -0 is below +0 */
static void do_redux_f32(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	const struct xinsn *in = at(b, w, (unsigned int)__builtin_ctz(m));
	bool nan = false, first = true;
	float r = 0;
	uint32_t k;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		float v = as_f32(lane_src(b, w, i, at(b, w, i)->o[1]));

		if (in->flags & F_ABS)
			v = as_f32(f32_bits(v) & 0x7fffffff);
		if (v != v) {
			nan = true;
			continue;
		}
		if (first || (v == r ? f32_bits(v) >> 31 == (in->op == A_MIN) :
			      (v < r) == (in->op == A_MIN)))
			r = v;
		first = false;
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		lane_dst(w, i, at(b, w, i)->o[0], first || (nan && in->flags & F_NAN) ? 0x7fffffff :
			 f32_bits(r));
	}
}

static void do_redux(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	uint32_t k, r = 0;
	bool first = true;

	if (at(b, w, (unsigned int)__builtin_ctz(m))->type == T_F32) {
		do_redux_f32(b, w, m);
		return;
	}

	for (k = m; k; k &= k - 1, first = false) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(b, w, i);
		uint32_t v = (uint32_t)lane_src(b, w, i, in->o[1]);
		bool less = in->type == T_S32 ? (int32_t)v < (int32_t)r : v < r;

		if (first)
			r = v;
		else if (in->op == A_ADD)
			r += v;
		else if (in->op == A_AND)
			r &= v;
		else if (in->op == A_OR)
			r |= v;
		else if (in->op == A_XOR)
			r ^= v;
		else if (less == (in->op == A_MIN))
			r = v;
	}
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		lane_dst(w, i, at(b, w, i)->o[0], r);
	}
}

static void do_elect(struct vgpu_block *b, struct xwarp *w, uint32_t m)
{
	uint32_t k, leader = (uint32_t)__builtin_ctz(m);

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		lane_dst(w, i, at(b, w, i)->o[0], leader);
		lane_pred_dst(w, i, at(b, w, i)->p[0], i == leader);
	}
}

static void perform(struct vgpu_block *b, struct xwarp *w, xfn *fn, uint32_t m)
{
	if (fn == x_shfl)
		do_shfl(b, w, m);
	else if (fn == x_vote)
		do_vote(b, w, m);
	else if (fn == x_match)
		do_match(b, w, m);
	else if (fn == x_redux)
		do_redux(b, w, m);
	else if (fn == x_elect)
		do_elect(b, w, m);
	else if (fn == x_warp_sync && b->order)
		order_lanes(b->order, w->id, m);
}

/*
 * Lanes that wait for each other and are all there now go on; they may stand at different
 * instructions of one kind
 */
static void try_unpark(struct vgpu_block *b, struct xwarp *w)
{
	uint32_t todo = w->parked, k;

	while (todo) {
		unsigned int i = (unsigned int)__builtin_ctz(todo);
		const struct xinsn *in = at(b, w, i);
		uint32_t need = w->park_mask[i] & w->live;
		bool all = (need & ~w->parked) == 0;

		todo &= ~(1u << i);
		for (k = need; all && k; k &= k - 1) {
			unsigned int j = (unsigned int)__builtin_ctz(k);
			const struct xinsn *other = at(b, w, j);

			all = other->fn == in->fn && (other == in || !(in->flags & F_GATHER)) &&
			      other->mode == in->mode && other->op == in->op &&
				w->park_mask[j] == w->park_mask[i];
		}
		if (!all)
			continue;
		/* those that gather go on to run their instruction, all at once */
		if (!(in->flags & F_GATHER)) {
			perform(b, w, in->fn, need);
			for (k = need; k; k &= k - 1)
				w->pc[__builtin_ctz(k)]++;
		}
		w->parked &= ~need;
		todo &= ~need;
	}
}

static enum xresult together(struct xctx *x, const struct xinsn *in, uint32_t m, int32_t mask_opnd)
{
	struct xwarp *w = x->w;
	const uint64_t *masks = src(x, mask_opnd);
	uint32_t k, same = (uint32_t)masks[__builtin_ctz(m)], stop = NO_PC;
	bool uniform = true;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		uint32_t mask = (uint32_t)masks[i];

		if (!(mask >> i & 1))
			return exec_fault_as(x, in, VGPU_FAULT_SYNC,
					     "thread %u is not in its own member mask 0x%x",
					     w->id * LANES + i, mask);
		uniform &= mask == same;
		w->pc[i] = x->pc;
		w->park_mask[i] = mask;
	}
	if (uniform && (same & w->live) == m) {
		perform(x->b, w, in->fn, m);
		return X_NEXT;
	}
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	w->parked |= m;
	if (x->b->checks & VGPU_CHECK_LETTER && sync_passed(x, &stop) == X_FAULT)
		return X_FAULT;
	try_unpark(x->b, w);
	return X_RESCHED;
}

bool sync_gather(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	struct xwarp *w = x->w;
	uint32_t k;

	if (m == w->live)
		return true;
	for (k = m; k; k &= k - 1) {
		w->pc[__builtin_ctz(k)] = x->pc;
		w->park_mask[__builtin_ctz(k)] = FULL;
	}
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	w->parked |= m;
	try_unpark(x->b, w);
	return false;
}

enum xresult x_shfl(struct xctx *x, const struct xinsn *in,
		    uint32_t m) { return together(x, in, m, in->o[8]); }
enum xresult x_vote(struct xctx *x, const struct xinsn *in,
		    uint32_t m) { return together(x, in, m, in->o[8]); }
enum xresult x_match(struct xctx *x, const struct xinsn *in,
		     uint32_t m) { return together(x, in, m, in->o[8]); }
enum xresult x_redux(struct xctx *x, const struct xinsn *in,
		     uint32_t m) { return together(x, in, m, in->o[8]); }
enum xresult x_elect(struct xctx *x, const struct xinsn *in,
		     uint32_t m) { return together(x, in, m, in->o[8]); }
enum xresult x_warp_sync(struct xctx *x, const struct xinsn *in,
			 uint32_t m) { return together(x, in, m, in->o[1]); }

enum xresult x_activemask(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);

	FOR_LANES(m, d[i] = m);
	return X_NEXT;
}

enum xresult sync_exited(struct xctx *x)
{
	struct xwarp *w = x->w;
	unsigned int id;

	if (w->live) {
		try_unpark(x->b, w);
		return try_arrive(x, w);
	}
	x->b->live_warps--;
	for (id = 0; id < BARRIERS; id++)
		check_complete(x->b, id);
	return X_NEXT;
}

bool sync_waits(xfn *fn)
{
	return fn == x_bar_sync || fn == x_bar_arrive || fn == x_bar_red || fn == x_shfl ||
	       fn == x_vote || fn == x_match ||
		fn == x_redux || fn == x_elect || fn == x_warp_sync;
}

/*
 * The place at which lane @i waits, in its own frame (0) or in that of its caller (1), ...; NO_PC
 * there is no such frame
 */
static uint32_t place(const struct xwarp *w, unsigned int i, uint32_t level, uint32_t *row)
{
	const struct xframe *s;

	*row = w->row[i];
	if (!level)
		return w->pc[i];
	if (level > w->depth[i])
		return NO_PC;
	s = &w->stack[i][w->depth[i] - level];
	*row = s->row;
	return s->ret_pc - 1;
}

enum xresult sync_passed(struct xctx *x, uint32_t *stop)
{
	struct xwarp *w = x->w;
	uint32_t held = (w->at_barrier & ~w->arrived) | w->parked, k, n, level, pc, row;

	for (k = held; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xinsn *in = at(x->b, w, i);
		uint32_t need = w->parked >> i & 1 ? w->park_mask[i] & w->live :
				in->flags & F_ALIGNED ? w->live : 0, missed = 0;
		char here[64], there[64];

		for (level = 0; need && (pc = place(w, i, level, &row)) != NO_PC; level++) {
			const struct xwait *wait = x->k->code[pc].wait;

			if (!wait)
				continue;
			for (n = need; n; n &= n - 1) {
				unsigned int j = (unsigned int)__builtin_ctz(n);

				missed |= (uint32_t)(w->row[j] == row &&
						     wait_past(wait, w->pc[j])) << j;
			}
			if (row == x->row && wait->stop > x->pc && wait->stop < *stop)
				*stop = wait->stop;
		}
		if (!missed)
			continue;
		for (n = held, need = 0; n; n &= n - 1)
			need |= (uint32_t)(w->pc[__builtin_ctz(n)] == w->pc[i]) << __builtin_ctz(n);
		runs(here, sizeof(here), w, need);
		runs(there, sizeof(there), w, missed);
		return exec_fault_as(x, in, VGPU_FAULT_SYNC,
				     "threads %s wait for their warp, of which threads %s went "
				     "past to line %u", here, there,
				     at(x->b, w, (unsigned int)__builtin_ctz(missed))->line);
	}
	return X_NEXT;
}

/*
 * Barriers that threads wait for, and who waits where: one clause for each group of threads at one
 * instruction
 */
void sync_describe(struct vgpu_block *b, char *buf, size_t size)
{
	unsigned int k;
	size_t n = 0;

	buf[0] = 0;
	for (k = 0; k < BARRIERS; k++) {
		const struct xbarrier *bar = &b->barriers[k];

		if (bar->active && n + 64 < size)
			n += (size_t)snprintf(buf + n, size - n,
					      "%sbarrier %u: %u of %u warps arrived", n ? "; " : "",
					      k, bar->arrived + (bar->expected ? 0 :
								 b->n_warps - b->live_warps),
					      bar->expected ? bar->expected : b->n_warps);
	}
	for (k = 0; k < b->n_warps; k++) {
		const struct xwarp *w = &b->warps[k];
		uint32_t left = w->live;

		while (left && n + 160 < size) {
			unsigned int first = (unsigned int)__builtin_ctz(left), i;
			const struct xinsn *in = at(b, w, first);
			uint32_t m = 0;
			char who[64];

			for (i = 0; i < LANES; i++)
				if (left >> i & 1 && w->pc[i] == w->pc[first])
					m |= 1u << i;
			left &= ~m;
			runs(who, sizeof(who), w, m);
			n += (size_t)snprintf(buf + n, size - n, "%sthreads %s at line %u (%s",
					      n ? "; " : "", who, in->line,
					      in->src ? in->src->name : "ret");
			if (w->at_barrier >> first & 1)
				n += (size_t)snprintf(buf + n, size - n, ", barrier %u%s)",
						      w->barrier[first], w->arrived >> first & 1 ?
						      "" : ", its warp has not arrived");
			else
				n += (size_t)snprintf(buf + n, size - n, ", lanes 0x%x)",
						      w->park_mask[first]);
		}
	}
}
