// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mbarrier objects: 64 bits of shared memory whose layout is ours. A phase ends when no arrival and
 * no transaction is pending; the next begins with the expected count. Where PTX leaves the outcome
 * undefined (no object there, counts out of range, .noComplete that completes) this is a fault.
 */
#include "exec_priv.h"

#define COUNT_MAX	0xfffff		/* also of transactions, in both directions */
#define VALID		1u

struct mbar {
	uint32_t pending, expected;
	int32_t tx;
	bool phase, valid;
};

static struct mbar unpacked(uint64_t v)
{
	return (struct mbar){
		.pending = v & COUNT_MAX, .expected = v >> 20 & COUNT_MAX,
		.tx = (int32_t)(v >> 40 & 0x1fffff) - 0x100000,
		.phase = v >> 61 & 1, .valid = v >> 62 == VALID,
	};
}

static uint64_t packed(const struct mbar *b)
{
	return b->pending | (uint64_t)b->expected << 20 |
	       (uint64_t)(uint32_t)(b->tx + 0x100000) << 40 | (uint64_t)b->phase << 61 |
	       (uint64_t)VALID << 62;
}

/* mbarrier objects live in shared memory, however they are addressed */
static void *object(struct xctx *x, const struct xinsn *in, unsigned int lane, uint64_t addr,
		    enum xspace space)
{
	if (space == S_NONE && !IN_WIN(addr, WIN_SHARED)) {
		exec_fault(x, in, "mbarrier at 0x%llx, which is not in shared memory",
			   (unsigned long long)addr);
		return NULL;
	}
	return mem_sync_ptr(x, in, space, lane, addr, 8, 8);
}

static bool load(struct xctx *x, const struct xinsn *in, const void *p, struct mbar *b)
{
	uint64_t v;

	memcpy(&v, p, 8);
	*b = unpacked(v);
	if (!b->valid)
		exec_fault(x, in, "no mbarrier was initialised here");
	return b->valid;
}

static void store(void *p, struct mbar *b)
{
	uint64_t v;

	if (!b->pending && !b->tx) {
		b->phase = !b->phase;
		b->pending = b->expected;
	}
	v = packed(b);
	memcpy(p, &v, 8);
}

static bool add_tx(struct xctx *x, const struct xinsn *in, struct mbar *b, int64_t n)
{
	int64_t tx = b->tx + n;

	if (tx < -COUNT_MAX || tx > COUNT_MAX) {
		exec_fault(x, in, "mbarrier with %lld transactions pending, out of range",
			   (long long)tx);
		return false;
	}
	b->tx = (int32_t)tx;
	return true;
}

static bool take(struct xctx *x, const struct xinsn *in, struct mbar *b, uint32_t count)
{
	if (count > b->pending || !count) {
		exec_fault(x, in, "%u arrive, the mbarrier waits for %u", count, b->pending);
		return false;
	}
	b->pending -= count;
	return true;
}

/* Bytes have come: what a bulk copy does at its end */
bool mbar_complete_tx(struct xctx *x, const struct xinsn *in, void *p, uint32_t bytes)
{
	struct mbar b;

	if (!load(x, in, p, &b) || !add_tx(x, in, &b, -(int64_t)bytes))
		return false;
	store(p, &b);
	return true;
}

/*
 * cp.async.mbarrier.arrive: at once its pending arrival, unless .noinc; and the arrival when the
 * copies are done
 */
bool mbar_expect_arrival(struct xctx *x, const struct xinsn *in, void *p)
{
	struct mbar b;
	uint64_t v;

	if (!load(x, in, p, &b))
		return false;
	if (b.pending == COUNT_MAX) {
		exec_fault(x, in, "mbarrier with more than %d arrivals pending", COUNT_MAX);
		return false;
	}
	b.pending++;
	v = packed(&b);
	memcpy(p, &v, 8);
	return true;
}

bool mbar_arrive(struct xctx *x, const struct xinsn *in, void *p)
{
	struct mbar b;

	if (!load(x, in, p, &b) || !take(x, in, &b, 1))
		return false;
	store(p, &b);
	return true;
}

void *mbar_at(struct xctx *x, const struct xinsn *in, const struct xaddr *a, unsigned int lane,
	      enum xspace space)
{
	return object(x, in, lane, xaddr_of(x, a, lane), space);
}

static inline uint64_t address(const struct xctx *x, const struct xinsn *in, unsigned int lane)
{
	const uint64_t *row = src(x, in->o[0]);

	return (in->a32 ? (uint32_t)row[lane] : row[lane]) + (uint64_t)in->imm;
}

/* One lane of any of them; o[0] address, o[1] result, o[2] count or state */
static bool lane(struct xctx *x, const struct xinsn *in, unsigned int i)
{
	void *p = object(x, in, i, address(x, in, i), (enum xspace)in->space);
	uint64_t arg = in->o[2] == NO_OPND ? 1 : src(x, in->o[2])[i], before;
	uint32_t count = (uint32_t)arg;
	struct mbar b;

	if (!p)
		return false;
	if (in->op == MB_INIT) {
		if (!count || count > COUNT_MAX) {
			exec_fault(x, in, "mbarrier for %u arrivals", count);
			return false;
		}
		b = (struct mbar){ .pending = count, .expected = count };
		before = packed(&b);
		memcpy(p, &before, 8);
		return true;
	}
	if (!load(x, in, p, &b))
		return false;
	before = packed(&b);
	switch (in->op) {
	case MB_INVAL:
		memset(p, 0xab, 8);
		return true;
	case MB_EXPECT_TX:
	case MB_COMPLETE_TX:
		if (!add_tx(x, in, &b, in->op == MB_EXPECT_TX ? (int64_t)count : -(int64_t)count))
			return false;
		break;
	default:
		if (in->flags & F_EXPECT_TX) {
			if (!add_tx(x, in, &b, count))
				return false;
			count = 1;
		}
		if (in->op == MB_ARRIVE_DROP) {
			if (count > b.expected) {
				exec_fault(x, in, "%u drop out, the mbarrier expects %u", count,
					   b.expected);
				return false;
			}
			b.expected -= count;
		}
		if (!take(x, in, &b, count))
			return false;
		if ((in->flags & F_NOCOMPLETE) && !b.pending && !b.tx) {
			exec_fault(x, in, "this arrival completes the phase");
			return false;
		}
		if (in->o[1] != NO_OPND)
			dst(x, in->o[1])[i] = before;
	}
	store(p, &b);
	return true;
}

enum xresult x_mbar(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	for (; m; m &= m - 1)
		if (!lane(x, in, (unsigned int)__builtin_ctz(m)))
			return X_FAULT;
	return X_NEXT;
}

/*
 * test_wait, try_wait: has the phase of this state, or of this parity, ended? A warp that finds it
 * has not gives way.
 */
enum xresult x_mbar_wait(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint32_t done = 0, k;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		void *p = object(x, in, i, address(x, in, i), (enum xspace)in->space);
		uint64_t arg = src(x, in->o[2])[i];
		struct mbar b, token;

		if (!p || !load(x, in, p, &b))
			return X_FAULT;
		token = unpacked(arg);
		if (!(in->flags & F_PARITY) && !token.valid)
			return exec_fault(x, in, "0x%llx is no state of an mbarrier",
					  (unsigned long long)arg);
		done |= (uint32_t)(b.phase != (in->flags & F_PARITY ? (bool)(arg & 1) :
					       token.phase)) << i;
	}
	pred_set(x, in->p[0], m, done);
	if (done == m)
		return X_NEXT;
	exec_lane_pcs(x, x->mask, x->pc + 1);
	x->yield = true;
	return X_RESCHED;
}

enum xresult x_mbar_pending(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[1]);
	const uint64_t *s = src(x, in->o[2]);

	FOR_LANES(m, d[i] = s[i] & COUNT_MAX);
	return X_NEXT;
}
