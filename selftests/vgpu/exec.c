// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocks and their warps. The threads of a warp that stand at one instruction of one frame are a
 * group and run together; which group runs next is chosen at every branch: normally the one
 * furthest behind, so that paths meet again where the code does, but every few choices another, so
 * that no spinning group starves those it waits for.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "exec_priv.h"

#define TURN	2048	/* thread-instructions before the next warp has its turn */
#define FAIR	16	/* every so many choices goes to a group that is not furthest behind */

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

uint64_t (*vgpu_globaltimer)(void) = clock_ns;

/* An instruction as text, for messages */
char *exec_insn_text(const struct gsr_insn *in, char *buf, size_t size)
{
	size_t n = 0;
	unsigned int i;

	if (!in) {
		snprintf(buf, size, "ret");
		return buf;
	}
	n += (size_t)snprintf(buf, size, "%s", in->name);
	for (i = 0; i < in->n_mods && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, ".%s", in->mods[i]);
	for (i = 0; i < in->n_opnds && n < size; i++) {
		const struct gsr_operand *o = &in->opnds[i];
		const char *name = o->name ? o->name : o->text;

		if (!name && o->n_items)
			name = o->items[0].name ? o->items[0].name : "...";
		n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s", i ? ", " : " ",
				      o->kind == GSR_OPND_ADDR ? "[" : o->kind == GSR_OPND_VEC ?
				      "{" : "", name ? name : "_", o->kind == GSR_OPND_ADDR ? "]" :
				      o->kind == GSR_OPND_VEC ? ",...}" : "");
		if (o->component && n < size)
			n += (size_t)snprintf(buf + n, size - n, ".%c", o->component);
	}
	return buf;
}

static enum xresult fault(struct xctx *x, const struct xinsn *in, enum vgpu_fault kind,
			  const char *fmt, va_list ap)
{
	struct vgpu_block *b = x->b;
	char text[256];
	int n;

	if (b->failed)
		return X_FAULT;
	b->failed = true;
	b->fault = kind;
	n = snprintf(b->error, sizeof(b->error), "vgpu: %s: line %u: %s: ",
		     b->k->info.name, in->line, exec_insn_text(in->src, text, sizeof(text)));
	n += vsnprintf(b->error + n, sizeof(b->error) - (size_t)n, fmt, ap);
	if (n < (int)sizeof(b->error))
		snprintf(b->error + n, sizeof(b->error) - (size_t)n, ", block (%u,%u,%u)",
			 b->ctaid[0], b->ctaid[1], b->ctaid[2]);
	return X_FAULT;
}

enum xresult exec_fault(struct xctx *x, const struct xinsn *in, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fault(x, in, VGPU_FAULT_LAUNCH, fmt, ap);
	va_end(ap);
	return X_FAULT;
}

enum xresult exec_fault_as(struct xctx *x, const struct xinsn *in, enum vgpu_fault kind,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fault(x, in, kind, fmt, ap);
	va_end(ap);
	return X_FAULT;
}

void exec_lane_pcs(struct xctx *x, uint32_t m, uint32_t pc)
{
	for (; m; m &= m - 1)
		x->w->pc[__builtin_ctz(m)] = pc;
}

enum xresult exec_exit_lanes(struct xctx *x, uint32_t m)
{
	x->w->live &= ~m;
	return sync_exited(x) == X_FAULT ? X_FAULT : X_RESCHED;
}

static enum xresult x_bra(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	if (m == x->mask) {
		x->pc = in->target;
		return X_JUMP;
	}
	exec_lane_pcs(x, m, in->target);
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	return X_RESCHED;
}

static enum xresult x_brx(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *index = src(x, in->o[1]);
	const struct xtable *t = in->ext;

	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		if ((uint32_t)index[i] >= t->n)
			return exec_fault(x, in, "index %u of %u targets",
					  (uint32_t)index[i], t->n);
		x->w->pc[i] = t->pc[(uint32_t)index[i]];
	}
	return X_RESCHED;
}

static enum xresult x_exit(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	return exec_exit_lanes(x, m);
}

static enum xresult x_trap(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return exec_fault_as(x, in, VGPU_FAULT_TRAP, "trap, thread %u",
			     x->w->id * LANES + (unsigned int)__builtin_ctz(m));
}

static enum xresult x_nanosleep(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	exec_lane_pcs(x, x->mask, x->pc + 1);
	x->yield = true;
	return X_RESCHED;
}

xfn *exec_control_select(enum gsr_opcode op, const struct xmods *md)
{
	switch (op) {
	case GSR_OP_BRA: return x_bra;
	case GSR_OP_BRX: return x_brx;
	case GSR_OP_EXIT: return x_exit;
	case GSR_OP_TRAP:
	case GSR_OP_BRKPT: return x_trap;
	case GSR_OP_NANOSLEEP: return x_nanosleep;
	default: return NULL;
	}
}

enum xresult x_local_addr(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint32_t *frame = x->w->frame;

	FOR_LANES(m, d[i] = (uint64_t)in->imm + frame[i]);
	return X_NEXT;
}

enum xresult x_special(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct vgpu_block *b = x->b;
	const struct xwarp *w = x->w;
	unsigned int c = in->mode, i, nx = b->l.block[0], ny = b->l.block[1];
	uint64_t *d = dst(x, in->o[0]), v = 0;

	switch (in->op) {
	case SR_TID:
		for (i = 0; i < LANES; i++) {
			unsigned int t = w->id * LANES + i;

			if (m >> i & 1)
				d[i] = c == 0 ? t % nx : c == 1 ? t / nx % ny :
				       c == 2 ? t / nx / ny : 0;
		}
		return X_NEXT;
	case SR_LANEID: FOR_LANES(m, d[i] = i); return X_NEXT;
	case SR_LANEMASK_EQ: FOR_LANES(m, d[i] = 1u << i); return X_NEXT;
	case SR_LANEMASK_LT: FOR_LANES(m, d[i] = (1u << i) - 1); return X_NEXT;
	case SR_LANEMASK_LE: FOR_LANES(m, d[i] = (2u << i) - 1); return X_NEXT;
	case SR_LANEMASK_GT: FOR_LANES(m, d[i] = ~((2u << i) - 1)); return X_NEXT;
	case SR_LANEMASK_GE: FOR_LANES(m, d[i] = ~((1u << i) - 1)); return X_NEXT;
	case SR_NTID: v = c < 3 ? b->l.block[c] : 0; break;
	case SR_CTAID: v = c < 3 ? b->ctaid[c] : 0; break;
	case SR_NCTAID: v = c < 3 ? b->l.grid[c] : 0; break;
	case SR_WARPID: v = w->id; break;
	case SR_NWARPID: v = b->n_warps; break;
	case SR_SMID: v = b->smid; break;
	case SR_NSMID: v = b->l.nsmid; break;
	case SR_GRIDID: v = b->l.grid_id; break;
	case SR_CLOCK: v = (uint32_t)(b->clock / LANES); break;
	case SR_CLOCK_HI: v = b->clock / LANES >> 32; break;
	case SR_CLOCK64: v = b->clock / LANES; break;
	case SR_GLOBALTIMER: v = vgpu_globaltimer(); break;
	case SR_GLOBALTIMER_LO: v = (uint32_t)vgpu_globaltimer(); break;
	case SR_GLOBALTIMER_HI: v = vgpu_globaltimer() >> 32; break;
	case SR_DYNAMIC_SMEM_SIZE: v = b->l.dynamic_shared; break;
	case SR_TOTAL_SMEM_SIZE: v = b->shared_size; break;
	case SR_ONE: v = 1; break;
	case SR_WORKSPACE: v = (uint32_t)b->l.workspace; break;
	case SR_WORKSPACE_HI: v = b->l.workspace >> 32; break;
	}
	FOR_LANES(m, d[i] = v);
	return X_NEXT;
}

static void free_warps(struct vgpu_block *b)
{
	unsigned int k, i;

	for (k = 0; b->warps && k < b->n_warps; k++) {
		struct xwarp *w = &b->warps[k];

		free(w->rows);
		free(w->preds);
		free(w->local);
		for (i = 0; i < LANES; i++)
			free(w->stack[i]);
	}
	free(b->warps);
}

static bool new_warp(struct vgpu_block *b, unsigned int id)
{
	const struct xfunction *f = b->k->entry;
	struct xwarp *w = &b->warps[id];
	unsigned int n = b->n_threads - id * LANES, i;

	w->b = b;
	w->id = id;
	w->rows_room = f->rows;
	w->rows = malloc(f->rows * sizeof(*w->rows));
	w->preds = malloc(f->rows * sizeof(*w->preds));
	w->local_room = f->local;
	w->local = f->local ? malloc((size_t)LANES * f->local) : NULL;
	if (!w->rows || !w->preds || (f->local && !w->local))
		return false;
	poison_fill(b, w->rows, f->rows * sizeof(*w->rows), id + 1);
	poison_fill(b, w->preds, f->rows * sizeof(*w->preds), id + 0x10001);
	poison_fill(b, w->local, (size_t)LANES * f->local, id + 0x20001);
	w->all = w->live = n >= LANES ? FULL : (1u << n) - 1;
	for (i = 0; i < LANES; i++)
		w->pc[i] = f->pc;
	return true;
}

static bool new_failed(struct vgpu_block *b, const char *what)
{
	b->failed = true;
	b->fault = VGPU_FAULT_LAUNCH;
	snprintf(b->error, sizeof(b->error), "vgpu: %s: %s", b->k->info.name, what);
	return true;
}

static bool new_block(struct vgpu_block *b)
{
	const struct vgpu_launch *l = &b->l;
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	size_t shared = b->k->info.static_shared;
	unsigned int k;

	if (b->k->error) {
		b->failed = true;
		b->fault = VGPU_FAULT_INSTRUCTION;
		snprintf(b->error, sizeof(b->error), "%s", b->k->error);
		return true;
	}
	if (!threads || threads > b->k->info.max_threads)
		return new_failed(b, "block size out of range");
	/* dynamic shared memory lies behind the static, aligned as its variables ask */
	if (l->dynamic_shared)
		shared = (shared + b->k->shared_align - 1) / b->k->shared_align *
			 b->k->shared_align + l->dynamic_shared;
	if (l->dynamic_shared > (64u << 20))
		return new_failed(b, "too much shared memory");
	b->n_threads = (unsigned int)threads;
	b->n_warps = b->live_warps = (b->n_threads + LANES - 1) / LANES;
	b->warps = calloc(b->n_warps, sizeof(*b->warps));
	b->shared_size = (uint32_t)shared;
	b->window = (l->grid_id * 0x9e3779b97f4a7c15ull) >> 41 << 16;
	b->shared = aligned_alloc(4096, (shared + 4096) & ~(size_t)4095);
	if (!b->warps || !b->shared)
		return false;
	poison_fill(b, b->shared, shared, 0);
	if (!race_new(b))
		return false;
	for (k = 0; k < b->n_warps; k++)
		if (!new_warp(b, k))
			return false;
	return true;
}

struct vgpu_block *vgpu_block_new(const struct vgpu_launch *launch, const unsigned int ctaid[3],
				  unsigned int smid)
{
	struct vgpu_block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->l = *launch;
	b->k = launch->kernel;
	memcpy(b->ctaid, ctaid, sizeof(b->ctaid));
	b->smid = smid;
	b->rng = launch->seed ? (launch->seed ^ (ctaid[0] * 0x9e3779b97f4a7c15ull) ^ ctaid[1] ^
				 (uint64_t)ctaid[2] << 32) | 1 : 0;
	b->poison = launch->seed ^ launch->grid_id << 48 ^ ctaid[0] ^ (uint64_t)ctaid[1] << 24 ^
		(uint64_t)ctaid[2] << 40;
	b->checks = vgpu_checks;
	if (!new_block(b)) {
		vgpu_block_free(b);
		return NULL;
	}
	return b;
}

void vgpu_block_free(struct vgpu_block *b)
{
	if (!b)
		return;
	free_warps(b);
	async_free(b);
	race_free(b);
	free(b->shared);
	free(b);
}

const char *vgpu_block_error(const struct vgpu_block *b)
{
	return b->error;
}

enum vgpu_fault vgpu_block_fault(const struct vgpu_block *b)
{
	return b->fault;
}

unsigned int vgpu_block_ended(const struct vgpu_block *b)
{
	return b->n_warps - b->live_warps;
}

uint32_t exec_roll(struct vgpu_block *b)
{
	b->rng ^= b->rng << 13;
	b->rng ^= b->rng >> 7;
	b->rng ^= b->rng << 17;
	return (uint32_t)(b->rng >> 32);
}

static uint32_t nth_bit(uint32_t m, unsigned int n)
{
	while (n--)
		m &= m - 1;
	return (uint32_t)__builtin_ctz(m);
}

/*
 * Choose a group of @can; *stop: where it meets others of its frame. Returns whether there are
 * others.
 */
static bool pick(struct xctx *x, uint32_t can, uint32_t *stop)
{
	struct xwarp *w = x->w;
	unsigned int best = (unsigned int)__builtin_ctz(can);
	uint32_t k, m = 0;
	bool several = false;

	for (k = can & (can - 1); k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);

		if (w->pc[i] == w->pc[best] && w->row[i] == w->row[best])
			continue;
		several = true;
		/* deepest frame first: callers wait for the others to come back */
		if (w->row[i] > w->row[best] ||
		    (w->row[i] == w->row[best] && w->pc[i] < w->pc[best]))
			best = i;
	}
	*stop = NO_PC;
	if (several) {
		unsigned int n = (unsigned int)__builtin_popcount(can);

		if (x->b->rng ? exec_roll(x->b) % 4 == 0 : ++w->picks % FAIR == 0)
			best = nth_bit(can, (x->b->rng ? exec_roll(x->b) : w->picks / FAIR) % n);
		for (k = can; k; k &= k - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(k);

			if (w->row[i] != w->row[best])
				continue;
			if (w->pc[i] == w->pc[best])
				m |= 1u << i;
			else if (w->pc[i] > w->pc[best] && w->pc[i] < *stop)
				*stop = w->pc[i];
		}
	} else {
		m = can;
	}
	x->mask = m;
	x->pc = w->pc[best];
	x->row = w->row[best];
	x->r = w->rows + x->row;
	x->p = w->preds + x->row;
	return several;
}

/* One turn of a warp. Returns what it executed; sets x->b->failed on a fault */
static uint64_t run_warp(struct xctx *x, int64_t budget)
{
	const struct xinsn *code = x->k->code;
	struct xwarp *w = x->w;
	int64_t left = budget;

	x->yield = false;
	while (left > 0 && !x->yield) {
		uint32_t can = w->live & ~(w->at_barrier | w->parked), stop;
		unsigned int weight;
		bool several;

		if (!can)
			break;
		several = pick(x, can, &stop);
		if (((w->at_barrier & ~w->arrived) | w->parked) && x->b->checks &
		    VGPU_CHECK_LETTER) {
			if (sync_passed(x, &stop) == X_FAULT)
				break;
			several = true;
		}
		weight = (unsigned int)__builtin_popcount(x->mask);
		for (;;) {
			const struct xinsn *in = &code[x->pc];
			uint32_t m = x->mask;
			enum xresult r;

			left -= weight;
			if (in->guard >= 0) {
				m &= in->guard_neg ? ~x->p[in->guard] : x->p[in->guard];
				if (!m) {
					x->pc++;
					goto next;
				}
			}
			r = in->fn(x, in, m);
			if (r == X_NEXT) {
				x->pc++;
			} else if (r == X_JUMP) {
				if (several) {
					exec_lane_pcs(x, x->mask, x->pc);
					break;
				}
			} else if (r == X_RESCHED) {
				break;
			} else {
				return (uint64_t)(budget - left);
			}
next:
			if (x->pc == stop || left <= 0) {
				exec_lane_pcs(x, x->mask, x->pc);
				break;
			}
		}
	}
	return (uint64_t)(budget - left);
}

static bool runnable(const struct xwarp *w)
{
	return w->live & ~(w->at_barrier | w->parked);
}

static enum vgpu_result deadlock(struct vgpu_block *b)
{
	char who[768];

	sync_describe(b, who, sizeof(who));
	b->failed = true;
	b->fault = VGPU_FAULT_DEADLOCK;
	snprintf(b->error, sizeof(b->error), "vgpu: %s: deadlock in block (%u,%u,%u): %s",
		 b->k->info.name, b->ctaid[0], b->ctaid[1], b->ctaid[2], who);
	return VGPU_FAULT;
}

enum vgpu_result vgpu_block_run(struct vgpu_block *b, uint64_t steps, uint64_t *done)
{
	struct xctx x = { .b = b, .k = b->k, .pool = b->k->pool };
	uint64_t ran = 0;
	unsigned int tried;

	if (done)
		*done = 0;
	if (b->failed)
		return VGPU_FAULT;
	while (b->live_warps && ran < steps) {
		uint64_t turn = b->rng ? 32 + exec_roll(b) % TURN : TURN;

		if (b->rng && exec_roll(b) % 4 == 0)
			b->next = exec_roll(b) % b->n_warps;
		for (tried = 0; tried < b->n_warps && !runnable(&b->warps[b->next]); tried++)
			b->next = (b->next + 1) % b->n_warps;
		if (tried == b->n_warps)
			return deadlock(b);
		x.w = &b->warps[b->next];
		b->next = (b->next + 1) % b->n_warps;
		turn = turn < steps - ran ? turn : steps - ran;
		turn = run_warp(&x, (int64_t)turn);
		ran += turn;
		b->clock += turn;
		if (b->failed || (b->async && !async_some(b)))
			break;
	}
	if (!b->live_warps && !b->failed)
		async_all(b);
	if (done)
		*done = ran;
	return b->failed ? VGPU_FAULT : b->live_warps ? VGPU_RUNNING : VGPU_DONE;
}
