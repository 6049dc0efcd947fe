// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory. Global memory is the process's own and shared with real threads and other processes, so
 * every access is a host atomic of its size, and atomics are host atomics. Fences make acquire and
 * release of plain ones, which x86 orders so anyway.
 */
#include "exec_priv.h"

static void *out_of(struct xctx *x, const struct xinsn *in, const char *space, unsigned int lane,
		    uint64_t addr, size_t size, uint64_t limit)
{
	exec_fault_as(x, in, VGPU_FAULT_ADDRESS,
		      "%s address 0x%llx of %zu bytes is outside of %llu, thread %u", space,
		      (unsigned long long)addr, size, (unsigned long long)limit,
		      x->w->id * LANES + lane);
	return NULL;
}

/* Up to the frame of the function that the thread is in: its callers' may be pointed to */
static uint64_t local_top(const struct xctx *x, unsigned int lane)
{
	const struct xwarp *w = x->w;
	const struct xfunction *f = w->depth[lane] ? w->stack[lane][w->depth[lane] - 1].callee :
				    x->k->entry;

	return w->frame[lane] + (w->extra[lane] ? f->local + w->extra[lane] : f->local_used);
}

static void *illegal(struct xctx *x, const struct xinsn *in, const char *what, unsigned int lane,
		     uint64_t addr, size_t size)
{
	char where[160] = "";

	if (vgpu_access_why)
		vgpu_access_why(addr, size, where, sizeof(where));
	exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "illegal %s of %zu bytes at 0x%llx%s, thread %u",
		      what, size, (unsigned long long)addr, where, x->w->id * LANES + lane);
	return NULL;
}

static void *pointer(struct xctx *x, const struct xinsn *in, enum xspace space, unsigned int lane,
		     uint64_t addr, size_t size, size_t align, unsigned int kind)
{
	bool write = kind & XA_WRITE;
	struct vgpu_block *b = x->b;
	uint64_t off, top;

	if (addr & (align - 1)) {
		exec_fault_as(x, in, VGPU_FAULT_MISALIGNED,
			      "misaligned address 0x%llx, needs %zu, thread %u",
			      (unsigned long long)addr, align, x->w->id * LANES + lane);
		return NULL;
	}
	if (space == S_NONE || space == S_PARAM) {
		if (IN_WIN(addr, WIN_SHARED)) {
			space = S_SHARED;
			addr = WIN_OFFSET(addr) - b->window;
		} else if (IN_WIN(addr, WIN_LOCAL)) {
			space = S_LOCAL;
		} else if (IN_WIN(addr, WIN_PARAM)) {
			off = WIN_OFFSET(addr) - (space == S_NONE ? b->window + b->l.params_at : 0) -
			      VGPU_PARAMS_FROM;
			if (write || off > b->k->info.param_size ||
			    off + size > b->k->info.param_size)
				return out_of(x, in, write ? "store to parameter" : "parameter",
					      lane, off, size, b->k->info.param_size);
			return (uint8_t *)(uintptr_t)b->l.params + off;
		}
	}
	switch (space) {
	case S_SHARED:
		if (addr > b->shared_size || addr + size > b->shared_size)
			return out_of(x, in, "shared", lane, addr, size, b->shared_size);
		if (b->cells && !race_access(x, in, lane, true, addr, size, kind))
			return NULL;
		return b->shared + addr;
	case S_LOCAL:
		off = WIN_OFFSET(addr);
		top = local_top(x, lane);
		if (off + size > top)
			return out_of(x, in, "local", lane, off, size, top);
		return x->w->local + (size_t)lane * x->w->local_room + off;
	default:
		if (space == S_CONST && !exec_const_ok(b, addr, size))
			return illegal(x, in, "load from constant memory", lane, addr, size);
		if (!exec_global_ok(b, addr, size, write))
			return illegal(x, in, write ? "store" : "load", lane, addr, size);
		if (b->order && space != S_CONST && !race_access(x, in, lane, false, addr,
								 size, kind))
			return NULL;
		return (void *)(uintptr_t)addr;
	}
}

/* How the threads of a launch may rely on it */
static unsigned int kind_of(const struct xinsn *in, bool write)
{
	enum gsr_opcode op = in->src ? in->src->op : GSR_OP_RET;
	unsigned int release = in->sem & 5 ? XA_RELEASE : 0;

	switch (op) {
	case GSR_OP_ATOM:
	case GSR_OP_RED:
		return XA_READ | XA_WRITE | XA_STRONG | release;
	case GSR_OP_LD:
		return XA_READ | (in->sem & 8 ? XA_STRONG : 0);
	case GSR_OP_ST:
		return XA_WRITE | (in->sem & 8 ? XA_STRONG | release : XA_STORE);
	case GSR_OP_CP:
		return write ? XA_WRITE | (in->op ? XA_READ | XA_STRONG : 0) : XA_READ;
	default:
		return write ? XA_WRITE : XA_READ;
	}
}

void *mem_ptr(struct xctx *x, const struct xinsn *in, enum xspace space, unsigned int lane,
	      uint64_t addr, size_t size, size_t align, bool write)
{
	return pointer(x, in, space, lane, addr, size, align, kind_of(in, write));
}

void *mem_sync_ptr(struct xctx *x, const struct xinsn *in, enum xspace space, unsigned int lane,
		   uint64_t addr, size_t size, size_t align)
{
	return pointer(x, in, space, lane, addr, size, align, XA_READ | XA_WRITE | XA_STRONG |
		       XA_RELEASE);
}


static inline uint64_t address(const struct xinsn *in, const uint64_t *row, unsigned int lane)
{
	uint64_t a = row[lane] + (uint64_t)in->imm;

	/* 32-bit addresses wrap: compilers count down from what lies behind an array */
	return in->a32 ? (uint32_t)a : a;
}

/*
 * The common case: all lanes of the group in global or in shared memory, close together. What is to
 * be added to their addresses comes back in *base; false: go lane by lane, which also finds the
 * fault.
 */
static bool together(struct xctx *x, const struct xinsn *in, const uint64_t *row, uint32_t m,
		     size_t bytes, bool write, uintptr_t *base)
{
	uint64_t lo = ~0ull, hi = 0, any = 0;

	if (in->space != S_GLOBAL && in->space != S_SHARED && in->space != S_NONE &&
	    in->space != S_CONST)
		return false;
	if (x->b->order && in->space != S_CONST)
		return false;
	for (; m; m &= m - 1) {
		uint64_t a = address(in, row, (unsigned int)__builtin_ctz(m));

		lo = a < lo ? a : lo;
		hi = a > hi ? a : hi;
		any |= a;
	}
	if (any & (bytes - 1))
		return false;
	if (in->space == S_SHARED) {
		*base = (uintptr_t)x->b->shared;
		return hi < x->b->shared_size && hi + bytes <= x->b->shared_size;
	}
	*base = 0;
	if (in->space == S_CONST)
		return exec_const_ok(x->b, lo, hi - lo + bytes);
	if (hi - lo > 65536 || hi >> HOST_BITS)
		return false;
	return exec_global_ok(x->b, lo, hi - lo + bytes, write);
}

static inline uint64_t load(const void *p, unsigned int type)
{
	switch (type) {
	case T_U8: case T_B8: return __atomic_load_n((const uint8_t *)p, __ATOMIC_RELAXED);
	case T_S8: return (uint64_t)(int64_t)(int8_t)__atomic_load_n((const uint8_t *)p,
								     __ATOMIC_RELAXED);
	case T_S16: return (uint64_t)(int64_t)(int16_t)__atomic_load_n((const uint16_t *)p,
								       __ATOMIC_RELAXED);
	case T_S32: return (uint64_t)(int64_t)(int32_t)__atomic_load_n((const uint32_t *)p,
								       __ATOMIC_RELAXED);
	case T_U16: case T_B16: case T_F16: case T_BF16: return __atomic_load_n((const uint16_t *)p,
										__ATOMIC_RELAXED);
	case T_U64: case T_S64: case T_B64: case T_F64: return __atomic_load_n((const uint64_t *)p,
									       __ATOMIC_RELAXED);
	default: return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
	}
}

static inline void store(void *p, unsigned int size, uint64_t v)
{
	switch (size) {
	case 1: __atomic_store_n((uint8_t *)p, (uint8_t)v, __ATOMIC_RELAXED); break;
	case 2: __atomic_store_n((uint16_t *)p, (uint16_t)v, __ATOMIC_RELAXED); break;
	case 4: __atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_RELAXED); break;
	default: __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
	}
}

static enum xresult x_ld(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *row = src(x, in->o[0]);
	size_t bytes = (size_t)in->size * in->n;
	uintptr_t base;
	unsigned int k;
	uint8_t *p;

	if (in->o[0] < 0) {
		uint32_t l = x->b->order ? m : m & -m;

		/* one address for all */
		for (p = NULL; l; l &= l - 1) {
			p = mem_ptr(x, in, (enum xspace)in->space, (unsigned int)__builtin_ctz(l),
				    address(in, row, 0), bytes, bytes, false);
			if (!p)
				return X_FAULT;
		}
		for (k = 0; k < in->n; k++) {
			uint64_t v = load(p + k * in->size, in->type), *d = dst(x, in->o[k + 1]);

			FOR_LANES(m, d[i] = v);
		}
		return X_NEXT;
	}
	if (together(x, in, row, m, bytes, false, &base)) {
		uint64_t at[LANES];

		/* a destination may be the address */
		FOR_LANES(m, at[i] = base + address(in, row, i));
		for (k = 0; k < in->n; k++) {
			uint64_t *d = dst(x, in->o[k + 1]);
			size_t off = (size_t)k * in->size;

			if (in->size == 4 && in->type != T_S32)
				FOR_LANES(m,
					  d[i] =
					  __atomic_load_n((const uint32_t *)(uintptr_t)(at[i] +
											off),
							  __ATOMIC_RELAXED));
			else
				FOR_LANES(m, d[i] = load((const void *)(uintptr_t)(at[i] + off),
							 in->type));
		}
		return X_NEXT;
	}
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		p = mem_ptr(x, in, (enum xspace)in->space, i, address(in, row, i), bytes,
			    bytes, false);
		if (!p)
			return X_FAULT;
		for (k = 0; k < in->n; k++)
			dst(x, in->o[k + 1])[i] = load(p + k * in->size, in->type);
	}
	return X_NEXT;
}

static enum xresult x_ld_acquire(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	enum xresult r = x_ld(x, in, m);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return r;
}

static enum xresult x_st(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *row = src(x, in->o[0]);
	size_t bytes = (size_t)in->size * in->n;
	uintptr_t base;
	unsigned int k;
	uint8_t *p;

	if (in->space == S_CONST)
		return exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "store to constant memory");
	if (in->sem & 1)
		__atomic_thread_fence(__ATOMIC_RELEASE);
	if (together(x, in, row, m, bytes, true, &base)) {
		for (k = 0; k < in->n; k++) {
			const uint64_t *v = src(x, in->o[k + 1]);
			uintptr_t off = base + (uintptr_t)k * in->size;

			if (in->size == 4)
				FOR_LANES(m,
					  __atomic_store_n((uint32_t *)(uintptr_t)(off +
										   address(in, row,
											   i)),
							   (uint32_t)v[i], __ATOMIC_RELAXED));
			else
				FOR_LANES(m, store((void *)(uintptr_t)(off + address(in, row, i)),
						   in->size, v[i]));
		}
		return X_NEXT;
	}
	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		uint8_t old[32];

		p = mem_ptr(x, in, (enum xspace)in->space, i, address(in, row, i), bytes,
			    bytes, true);
		if (!p)
			return X_FAULT;
		if (x->suspect.line)
			memcpy(old, p, bytes);
		for (k = 0; k < in->n; k++)
			store(p + k * in->size, in->size, src(x, in->o[k + 1])[i]);
		if (x->suspect.line) {
			if (memcmp(old, p, bytes) && !race_report(x, in))
				return X_FAULT;
			x->suspect.line = 0;
		}
	}
	return X_NEXT;
}

xfn *mem_ld_select(const struct xmods *md)
{
	if (md->n_types != 1 || md->t[0] == T_PRED || (md->t[0] == T_B128 && md->vec))
		return NULL;
	return md->sem & 2 ? x_ld_acquire : x_ld;
}

xfn *mem_st_select(const struct xmods *md)
{
	return md->n_types == 1 && md->t[0] != T_PRED && (md->t[0] != T_B128 || !md->vec) &&
	       !(md->flags & F_SYNC) ? x_st : NULL;
}

static enum xresult x_cvta_shared(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *a = src(x, in->o[1]);

	FOR_LANES(m, d[i] = WIN_OFFSET(a[i] + x->b->window) | WIN_SHARED);
	return X_NEXT;
}

static enum xresult x_cvta_to_shared(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *a = src(x, in->o[1]);

	FOR_LANES(m, d[i] = IN_WIN(a[i], WIN_SHARED) ? WIN_OFFSET(a[i] - x->b->window) : a[i]);
	return X_NEXT;
}

/* Of a kernel: those of calls are in local memory */
static enum xresult x_cvta_param(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *a = src(x, in->o[1]);
	const uint64_t at = x->b->window + x->b->l.params_at;

	FOR_LANES(m, d[i] = IN_WIN(a[i], WIN_PARAM) ? WIN_OFFSET(a[i] + at) | WIN_PARAM : a[i]);
	return X_NEXT;
}

static enum xresult x_cvta_to_param(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	uint64_t *d = dst(x, in->o[0]);
	const uint64_t *a = src(x, in->o[1]);
	const uint64_t at = x->b->window + x->b->l.params_at;

	FOR_LANES(m, d[i] = IN_WIN(a[i], WIN_PARAM) ? WIN_OFFSET(a[i] - at) | WIN_PARAM : a[i]);
	return X_NEXT;
}

/* Global and local addresses are generic ones: local ones carry their window always */
xfn *mem_cvta_select(const struct xmods *md)
{
	if (md->n_types != 1 || md->t[0] != T_U64 || md->space == S_NONE)
		return NULL;
	if (md->space == S_SHARED)
		return md->flags & F_TO ? x_cvta_to_shared : x_cvta_shared;
	if (md->space == S_PARAM)
		return md->flags & F_TO ? x_cvta_to_param : x_cvta_param;
	return x_mov;
}

enum xresult x_isspacep(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const uint64_t *a = src(x, in->o[1]);
	uint32_t r = 0, k;

	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		bool is;

		switch (in->space) {
		case S_SHARED: is = IN_WIN(a[i], WIN_SHARED); break;
		case S_LOCAL: is = IN_WIN(a[i], WIN_LOCAL); break;
		case S_PARAM: is = IN_WIN(a[i], WIN_PARAM); break;
		case S_CONST: is = false; break;
		default: is = !(a[i] >> HOST_BITS);
		}
		r |= (uint32_t)is << i;
	}
	pred_set(x, in->p[0], m, r);
	return X_NEXT;
}

enum xresult x_fence(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (; x->b->order && m; m &= m - 1)
		order_fence(x->b->order, x->w->id * LANES + (unsigned int)__builtin_ctz(m));
	return X_NEXT;
}

enum xresult x_prefetch(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return X_NEXT;
}
