// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls: every thread has its own frames, so recursion and divergent indirect calls need nothing
 * special.
 */
#include <stdio.h>
#include <stdlib.h>
#include "exec_priv.h"

enum { BUILTIN_NONE, BUILTIN_VPRINTF, BUILTIN_ASSERTFAIL, BUILTIN_MALLOC, BUILTIN_FREE };

int call_builtin(const char *name)
{
	static const struct {
		const char *name;
		int builtin;
	} builtins[] = { { "vprintf", BUILTIN_VPRINTF }, { "__assertfail", BUILTIN_ASSERTFAIL },
	{ "malloc", BUILTIN_MALLOC },
			 { "free", BUILTIN_FREE } };
	size_t i;

	for (i = 0; i < sizeof(builtins) / sizeof(*builtins); i++)
		if (!strcmp(builtins[i].name, name))
			return builtins[i].builtin;
	return BUILTIN_NONE;
}

static bool grow_rows(struct xwarp *w, uint32_t rows)
{
	uint32_t had = w->rows_room, room = w->rows_room;
	uint64_t (*r)[LANES];
	uint32_t *p;

	if (rows <= room)
		return true;
	while (room < rows)
		room *= 2;
	r = realloc(w->rows, room * sizeof(*r));
	if (!r)
		return false;
	w->rows = r;
	p = realloc(w->preds, room * sizeof(*p));
	if (!p)
		return false;
	w->preds = p;
	poison_fill(w->b, r + had, (room - had) * sizeof(*r), had);
	poison_fill(w->b, p + had, (room - had) * sizeof(*p), had + 1);
	w->rows_room = room;
	return true;
}

static bool grow_local(struct xwarp *w, uint32_t bytes)
{
	uint32_t room = w->local_room ? w->local_room : 64;
	uint8_t *l;
	unsigned int i;

	if (bytes <= w->local_room)
		return true;
	while (room < bytes)
		room *= 2;
	l = malloc((size_t)LANES * room);
	if (!l)
		return false;
	poison_fill(w->b, l, (size_t)LANES * room, room);
	for (i = 0; i < LANES; i++)
		if (w->local_room)
			memcpy(l + (size_t)i * room, w->local + (size_t)i * w->local_room,
			       w->local_room);
	free(w->local);
	w->local = l;
	w->local_room = room;
	return true;
}

static uint8_t *local(struct xwarp *w, unsigned int lane, uint32_t frame, const struct xarg *a)
{
	return w->local + (size_t)lane * w->local_room + frame + a->offset;
}

/* Move a value between two frames of a lane */
static void move(struct xctx *x, unsigned int lane, const struct xarg *from, uint32_t from_row,
		 uint32_t from_frame, const struct xarg *to, uint32_t to_row, uint32_t to_frame)
{
	struct xwarp *w = x->w;
	uint32_t size = from->size < to->size ? from->size : to->size;
	uint64_t v = 0;

	if (!from->reg && !to->reg) {
		memmove(local(w, lane, to_frame, to), local(w, lane, from_frame, from), size);
		return;
	}
	size = size > 8 ? 8 : size;
	if (from->reg)
		v = from->row >= 0 ? w->rows[from_row + (uint32_t)from->row][lane] :
		    x->pool[~from->row][lane];
	else
		memcpy(&v, local(w, lane, from_frame, from), size);
	if (to->reg)
		w->rows[to_row + (uint32_t)to->row][lane] = v;
	else
		memcpy(local(w, lane, to_frame, to), &v, size);
}

static const struct xfunction *target(struct xctx *x, const struct xinsn *in, unsigned int lane)
{
	uint64_t addr = src(x, in->o[1])[lane], index = (addr - x->k->module->code) / 16;
	const struct xcall *c = in->ext;
	const struct xfunction *f;

	if (!IN_WIN(addr, WIN_CODE) || index >= x->k->module->n_functions || addr % 16) {
		exec_fault(x, in, "call of 0x%llx, which is no function of the module",
			   (unsigned long long)addr);
		return NULL;
	}
	f = &x->k->functions[index];
	if (f->pc == NO_PC || f->n_args != c->n_args || f->n_rets != c->n_rets) {
		exec_fault(x, in, "indirect call of %s with %u arguments and %u results",
			   f->fn->name, c->n_args, c->n_rets);
		return NULL;
	}
	return f;
}

static enum xresult enter(struct xctx *x, const struct xinsn *in, unsigned int lane)
{
	struct xwarp *w = x->w;
	const struct xcall *c = in->ext;
	const struct xfunction *f = c->callee ? c->callee : target(x, in, lane);
	uint32_t row = w->row[lane] + c->caller->rows,
		frame = w->frame[lane] + c->caller->local + w->extra[lane], k;

	if (!f)
		return X_FAULT;
	if (w->depth[lane] >= DEPTH_MAX || row + f->rows > ROWS_MAX || frame + f->local > LOCAL_MAX)
		return exec_fault(x, in, "stack overflow calling %s at depth %u", f->fn->name,
				  w->depth[lane]);
	if (w->depth[lane] == w->stack_room[lane]) {
		uint32_t room = w->stack_room[lane] ? w->stack_room[lane] * 2 : 4;
		struct xframe *s = realloc(w->stack[lane], room * sizeof(*s));

		if (!s)
			return exec_fault(x, in, "out of memory");
		w->stack[lane] = s;
		w->stack_room[lane] = room;
	}
	if (!grow_rows(w, row + f->rows) || !grow_local(w, frame + f->local))
		return exec_fault(x, in, "out of memory");
	w->stack[lane][w->depth[lane]++] = (struct xframe){ x->pc + 1, w->row[lane], w->frame[lane],
							    w->extra[lane], in, f };
	for (k = 0; k < c->n_args; k++)
		move(x, lane, &c->args[k], w->row[lane], w->frame[lane], &f->args[k], row, frame);
	w->row[lane] = row;
	w->frame[lane] = frame;
	w->extra[lane] = 0;
	w->pc[lane] = f->pc;
	return X_NEXT;
}

enum xresult x_ret(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	struct xwarp *w = x->w;
	uint32_t out = 0, k;

	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	for (k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct xframe *s;
		const struct xcall *c;

		if (!w->depth[i]) {
			out |= 1u << i;
			continue;
		}
		s = &w->stack[i][--w->depth[i]];
		c = s->call->ext;
		for (unsigned int r = 0; r < c->n_rets; r++)
			move(x, i, &s->callee->rets[r], w->row[i], w->frame[i], &c->rets[r],
			     s->row, s->local);
		w->row[i] = s->row;
		w->frame[i] = s->local;
		w->extra[i] = s->extra;
		w->pc[i] = s->ret_pc;
	}
	return out ? exec_exit_lanes(x, out) : X_RESCHED;
}

/* printf */
struct out {
	char buf[4096];
	size_t n;
};

static bool text(struct xctx *x, const struct xinsn *in, unsigned int lane, uint64_t addr,
		 char *buf, size_t size)
{
	size_t n;

	for (n = 0; n + 1 < size; n++) {
		const char *p = mem_ptr(x, in, S_NONE, lane, addr + n, 1, 1, false);

		if (!p)
			return false;
		buf[n] = *p;
		if (!*p)
			return true;
	}
	buf[n] = 0;
	return true;
}

static bool argument(struct xctx *x, const struct xinsn *in, unsigned int lane, uint64_t *at,
		     size_t size, uint64_t *v)
{
	const void *p;

	*at = (*at + size - 1) & ~(uint64_t)(size - 1);
	p = mem_ptr(x, in, S_NONE, lane, *at, size, size, false);
	if (!p)
		return false;
	*v = 0;
	memcpy(v, p, size);
	*at += size;
	return true;
}

/* One conversion: @spec from '%' on. Returns its length, 0 on a fault */
static size_t convert(struct xctx *x, const struct xinsn *in, unsigned int lane, const char *spec,
		      uint64_t *args, struct out *o, int *count)
{
	char fmt[64], str[2048];
	size_t n = 1, room = sizeof(o->buf) - o->n, f = 1;
	bool wide = false;
	uint64_t v;
	int got;

	fmt[0] = '%';
	for (; spec[n] && strchr("-+ #0123456789.*", spec[n]) && f < 40; n++) {
		if (spec[n] == '*') {
			if (!argument(x, in, lane, args, 4, &v))
				return 0;
			f += (size_t)snprintf(fmt + f, sizeof(fmt) - f, "%d", (int)v);
		} else {
			fmt[f++] = spec[n];
		}
	}
	for (; spec[n] && strchr("hljztL", spec[n]); n++)
		wide |= spec[n] != 'h' && spec[n] != 'L';
	fmt[f] = 0;
	if (!spec[n])
		return n;
	if (spec[n] == '%') {
		got = snprintf(o->buf + o->n, room, "%%");
	} else if (strchr("diouxXcp", spec[n])) {
		wide |= spec[n] == 'p';
		if (!argument(x, in, lane, args, wide ? 8 : 4, &v))
			return 0;
		if (wide && spec[n] != 'p') {
			fmt[f++] = 'l';
			fmt[f++] = 'l';
		}
		fmt[f++] = spec[n];
		fmt[f] = 0;
		if (spec[n] == 'p')
			got = snprintf(o->buf + o->n, room, fmt, (void *)(uintptr_t)v);
		else if (wide)
			got = snprintf(o->buf + o->n, room, fmt, (unsigned long long)v);
		else
			got = snprintf(o->buf + o->n, room, fmt, (unsigned int)v);
		++*count;
	} else if (strchr("aAeEfFgG", spec[n])) {
		if (!argument(x, in, lane, args, 8, &v))
			return 0;
		fmt[f++] = spec[n];
		fmt[f] = 0;
		got = snprintf(o->buf + o->n, room, fmt, as_f64(v));
		++*count;
	} else if (spec[n] == 's') {
		if (!argument(x, in, lane, args, 8, &v) || !text(x, in, lane, v, str, sizeof(str)))
			return 0;
		fmt[f++] = 's';
		fmt[f] = 0;
		got = snprintf(o->buf + o->n, room, fmt, str);
		++*count;
	} else {
		got = snprintf(o->buf + o->n, room, "%%%c", spec[n]);
	}
	o->n += got < 0 ? 0 : (size_t)got < room ? (size_t)got : room - 1;
	return n + 1;
}

static enum xresult print(struct xctx *x, const struct xinsn *in, unsigned int lane, uint64_t fmt,
			  uint64_t args, uint64_t *result)
{
	char spec[2048];
	struct out o = { .n = 0 };
	const char *s;
	int count = 0;

	if (!text(x, in, lane, fmt, spec, sizeof(spec)))
		return X_FAULT;
	for (s = spec; *s && o.n + 1 < sizeof(o.buf);) {
		if (*s == '%') {
			size_t n = convert(x, in, lane, s, &args, &o, &count);

			if (!n)
				return X_FAULT;
			s += n;
		} else {
			o.buf[o.n++] = *s++;
		}
	}
	fwrite(o.buf, 1, o.n, stdout);
	*result = (uint64_t)count;
	return X_NEXT;
}

static enum xresult builtin(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xcall *c = in->ext;
	struct xwarp *w = x->w;
	uint64_t v[8] = { 0 }, result = 0;
	unsigned int k;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);

		for (k = 0; k < c->n_args && k < 8; k++) {
			const struct xarg *a = &c->args[k];

			v[k] = 0;
			if (a->reg)
				v[k] = src(x, a->row)[i];
			else
				memcpy(&v[k], local(w, i, w->frame[i], a),
				       a->size > 8 ? 8 : a->size);
		}
		if (c->builtin == BUILTIN_ASSERTFAIL) {
			char what[256], file[256];

			if (!text(x, in, i, v[0], what, sizeof(what)) ||
			    !text(x, in, i, v[1], file, sizeof(file)))
				return X_FAULT;
			return exec_fault_as(x, in, VGPU_FAULT_ASSERT,
					     "%s:%u: thread %u: assertion `%s' failed", file,
					     (unsigned int)v[2], w->id * LANES + i, what);
		}
		if (c->n_args != (c->builtin == BUILTIN_VPRINTF ? 2 : 1))
			return exec_fault(x, in, "called with %u arguments", c->n_args);
		if (c->builtin == BUILTIN_MALLOC)
			result = heap_alloc(x->b, v[0]);
		else if (c->builtin == BUILTIN_FREE && !heap_free(v[0]))
			return exec_fault_as(x, in, VGPU_FAULT_ADDRESS,
					     "0x%llx was not allocated by malloc, thread %u",
					     (unsigned long long)v[0], w->id * LANES + i);
		if (c->builtin == BUILTIN_VPRINTF &&
		    print(x, in, i, v[0], v[1], &result) == X_FAULT)
			return X_FAULT;
		if (c->n_rets == 1) {
			if (c->rets[0].reg)
				dst(x, c->rets[0].row)[i] = result;
			else
				memcpy(local(w, i, w->frame[i], &c->rets[0]), &result,
				       c->rets[0].size > 8 ? 8 : c->rets[0].size);
		}
	}
	return X_NEXT;
}

enum xresult x_call(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xcall *c = in->ext;
	uint32_t k;

	if (c->builtin)
		return builtin(x, in, m);
	exec_lane_pcs(x, x->mask & ~m, x->pc + 1);
	for (k = m; k; k &= k - 1) {
		if (enter(x, in, (unsigned int)__builtin_ctz(k)) == X_FAULT)
			return X_FAULT;
		/* a frame may have moved */
		x->r = x->w->rows + x->row;
		x->p = x->w->preds + x->row;
	}
	return X_RESCHED;
}

/* What a frame takes beyond its variables ends where the next one begins. imm: the alignment */
enum xresult x_alloca(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xfunction *f = in->ext;
	const uint64_t *size = src(x, in->o[1]);
	struct xwarp *w = x->w;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint64_t own = (uint64_t)w->frame[i] + f->local, align = (uint64_t)in->imm;
		uint64_t at = (own + w->extra[i] + align - 1) & ~(align - 1);

		if (size[i] > LOCAL_MAX || at + size[i] > LOCAL_MAX)
			return exec_fault(x, in, "stack overflow by %llu bytes, thread %u",
					  (unsigned long long)size[i], w->id * LANES + i);
		if (!grow_local(w, (uint32_t)(at + size[i])))
			return exec_fault(x, in, "out of memory");
		w->extra[i] = (uint32_t)(((at + size[i] - own) + 15) & ~15ull);
		dst(x, in->o[0])[i] = WIN_LOCAL + at;
	}
	return X_NEXT;
}

enum xresult x_stacksave(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xfunction *f = in->ext;
	const struct xwarp *w = x->w;
	uint64_t *d = dst(x, in->o[0]);

	FOR_LANES(m, d[i] = WIN_LOCAL + w->frame[i] + f->local + w->extra[i]);
	return X_NEXT;
}

enum xresult x_stackrestore(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xfunction *f = in->ext;
	struct xwarp *w = x->w;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint64_t at = src(x, in->o[1])[i], own = WIN_LOCAL + w->frame[i] + f->local;

		if (at < own || at - own > w->extra[i])
			return exec_fault(x, in,
					  "0x%llx is no place in the stack of this "
					  "frame, thread %u", (unsigned long long)at,
					  w->id * LANES + i);
		w->extra[i] = (uint32_t)(at - own);
	}
	return X_NEXT;
}
