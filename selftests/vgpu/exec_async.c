// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Asynchronous copies. Without a seed they are done when they are issued. With one they stay on
 * their way until something that the program may rely on brings them in: a wait for their group,
 * the end of the block, or chance, which takes them in any order. So a program that reads too
 * early, or gives the memory away too early, does see it.
 */
#include <stdlib.h>
#include "exec_priv.h"

#define QUEUE_MAX	4096
#define UNCOMMITTED	0xffffffffu

struct xop_async {
	const struct xinsn *in;
	unsigned int thread;
	uint32_t group;			/* its number among the thread's */
	bool bulk, arrival;
	uint8_t *d;
	const uint8_t *s;		/* NULL: zeroes */
	uint32_t bytes, from_source;	/* what lies behind from_source is zeroed */
	uint16_t mask;			/* bytes of each 16 that are copied */
	void *mbar;
};

struct xqueue {
	struct xop_async *ops;		/* in order of issue */
	size_t n, room;
	uint32_t *committed[2];		/* groups, of each thread; bulk */
};

static struct xqueue *queue(struct vgpu_block *b)
{
	struct xqueue *q = b->async;

	if (q)
		return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->committed[0] = calloc(b->n_threads, sizeof(**q->committed));
	q->committed[1] = calloc(b->n_threads, sizeof(**q->committed));
	b->async = q;
	return q->committed[0] && q->committed[1] ? q : NULL;
}

void async_free(struct vgpu_block *b)
{
	if (!b->async)
		return;
	free(b->async->ops);
	free(b->async->committed[0]);
	free(b->async->committed[1]);
	free(b->async);
}

static bool in_shared(const struct vgpu_block *b, const uint8_t *p)
{
	return (uintptr_t)p - (uintptr_t)b->shared < b->shared_size;
}

static bool arrives(struct vgpu_block *b, const struct xop_async *op)
{
	struct xctx x = { .b = b, .w = &b->warps[op->thread / LANES], .k = b->k,
			  .pool = b->k->pool };
	enum xtype t = (enum xtype)op->in->type;
	size_t size = op->in->op ? xtype_size(t) : 1, i;

	if (op->arrival)
		return mbar_arrive(&x, op->in, op->mbar);
	if (op->in->op) {
		for (i = 0; i + size <= op->bytes; i += size) {
			uint64_t v = 0;

			memcpy(&v, op->s + i, size);
			atom_apply((enum xop)op->in->op, t, op->d + i, v, 0, in_shared(b, op->d));
		}
	} else if (op->mask != 0xffff) {
		for (i = 0; i < op->bytes; i++)
			if (op->mask >> i % 16 & 1)
				op->d[i] = op->s[i];
	} else {
		if (op->from_source)
			memcpy(op->d, op->s, op->from_source);
		memset(op->d + op->from_source, 0, op->bytes - op->from_source);
	}
	return !op->mbar || mbar_complete_tx(&x, op->in, op->mbar, op->bytes);
}

/* Bring in those that @wanted says, oldest first */
static bool bring(struct vgpu_block *b,
		  bool (*wanted)(const struct xop_async *op, const struct xop_async *arg),
		  const struct xop_async *arg)
{
	struct xqueue *q = b->async;
	size_t i, left = 0;
	bool ok = true;

	for (i = 0; i < q->n; i++) {
		struct xop_async op = q->ops[i];

		if (ok && wanted(&op, arg))
			ok = arrives(b, &op);
		else
			q->ops[left++] = op;
	}
	q->n = left;
	return ok;
}

static bool any(const struct xop_async *op, const struct xop_async *arg)
{
	return true;
}

static bool of_group(const struct xop_async *op, const struct xop_async *arg)
{
	return op->thread == arg->thread && op->bulk == arg->bulk && !op->mbar == !arg->mbar &&
	       op->group < arg->group;
}

/* An arrival comes after the thread's copies before it */
static bool of_thread(const struct xop_async *op, const struct xop_async *arg)
{
	return op->thread == arg->thread && !op->bulk;
}

bool async_all(struct vgpu_block *b)
{
	return !b->async || bring(b, any, NULL);
}

bool async_some(struct vgpu_block *b)
{
	struct xqueue *q = b->async;
	unsigned int n = exec_roll(b) % 8;

	for (; n && q->n; n--) {
		size_t i = exec_roll(b) % q->n;
		struct xop_async op = q->ops[i];

		if (op.arrival) {
			if (!bring(b, of_thread, &op))
				return false;
			continue;
		}
		memmove(&q->ops[i], &q->ops[i + 1], (--q->n - i) * sizeof(op));
		if (!arrives(b, &op))
			return false;
	}
	return true;
}

static bool issue(struct xctx *x, const struct xop_async *op)
{
	struct vgpu_block *b = x->b;
	struct xqueue *q;

	if (!b->rng)
		return arrives(b, op);
	q = queue(b);
	if (q && q->n == q->room && q->room < QUEUE_MAX) {
		size_t room = q->room ? q->room * 2 : 64;
		struct xop_async *ops = realloc(q->ops, room * sizeof(*ops));

		if (ops) {
			q->ops = ops;
			q->room = room;
		}
	}
	/* no room for more: as if all had arrived */
	if (!q || q->n == q->room)
		return (!q || !q->committed[1] || bring(b, any, NULL)) && arrives(b, op);
	q->ops[q->n++] = *op;
	return true;
}

static unsigned int thread_of(const struct xctx *x, unsigned int lane)
{
	return x->w->id * LANES + lane;
}

static uint32_t committed(const struct vgpu_block *b, unsigned int thread, bool bulk)
{
	return b->async && b->async->committed[bulk] ? b->async->committed[bulk][thread] : 0;
}

/* cp.async: 4, 8 or 16 bytes; cp.async.bulk and cp.reduce.async.bulk: any number of 16 */
enum xresult x_copy(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xcopy *c = in->ext;
	uint32_t ignored = c->ignore == NO_OPND ? 0 : pred(x, c->ignore);

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint32_t n = c->size == NO_OPND ? in->size : (uint32_t)src(x, c->size)[i];
		size_t align = c->bulk ? 16 : in->size;
		struct xop_async op = { .in = in, .thread = thread_of(x, i), .bulk = c->bulk,
					.mask = 0xffff };

		op.group = committed(x->b, op.thread, c->bulk);
		if (c->bulk ? n % 16 : n > in->size)
			return exec_fault(x, in, c->bulk ? "copies %u bytes, not a multiple of %u" :
					  "copies %u of %u bytes", n, c->bulk ? 16u : in->size);
		op.bytes = c->bulk ? n : in->size;
		op.from_source = ignored >> i & 1 ? 0 : n;
		if (c->mask != NO_OPND)
			op.mask = (uint16_t)src(x, c->mask)[i];
		op.d = mem_ptr(x, in, (enum xspace)c->dspace, i, xaddr_of(x, &c->d, i), op.bytes,
			       align, true);
		if (!op.d)
			return X_FAULT;
		if (op.from_source) {
			op.s = mem_ptr(x, in, (enum xspace)c->sspace, i, xaddr_of(x, &c->s, i),
				       op.from_source, align, false);
			if (!op.s)
				return X_FAULT;
		}
		if (c->mbar.row != NO_OPND) {
			op.mbar = mbar_at(x, in, &c->mbar, i, (enum xspace)c->mspace);
			if (!op.mbar)
				return X_FAULT;
		}
		if (!issue(x, &op))
			return exec_fault(x, in, "out of memory");
	}
	return X_NEXT;
}

enum xresult x_copy_arrive(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xcopy *c = in->ext;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		struct xop_async op = { .in = in, .thread = thread_of(x, i), .arrival = true,
					.group = UNCOMMITTED };

		op.mbar = mbar_at(x, in, &c->mbar, i, (enum xspace)c->mspace);
		if (!op.mbar || (!(in->flags & F_NOCOMPLETE) &&
				 !mbar_expect_arrival(x, in, op.mbar)) || !issue(x, &op))
			return exec_fault(x, in, "out of memory");
	}
	return X_NEXT;
}

enum xresult x_copy_commit(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	struct xqueue *q = x->b->async;

	for (; q && m; m &= m - 1)
		q->committed[in->mode][thread_of(x, (unsigned int)__builtin_ctz(m))]++;
	return X_NEXT;
}

/* All but the newest imm groups; imm < 0: everything, committed or not */
enum xresult x_copy_wait(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	struct vgpu_block *b = x->b;

	for (; b->async && m; m &= m - 1) {
		struct xop_async of = { .thread = thread_of(x, (unsigned int)__builtin_ctz(m)),
					.bulk = in->mode };
		uint32_t have = committed(b, of.thread, of.bulk);

		of.group = in->imm < 0 ? UNCOMMITTED : have > in->imm ? have - (uint32_t)in->imm :
			   0;
		if (!bring(b, of_group, &of))
			return X_FAULT;
	}
	return X_NEXT;
}
