// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A kernel and the functions it reaches: frames, scopes, names, labels; decode_insn.c does the
 * single instructions.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "decode.h"

bool dec_fail(struct dec *d, const char *fmt, ...)
{
	char buf[1024];
	int n;
	va_list ap;

	if (d->failed)
		return false;
	d->failed = true;
	n = snprintf(buf, sizeof(buf), "vgpu: <ptx>:%u: ", d->line);
	va_start(ap, fmt);
	vsnprintf(buf + n, sizeof(buf) - (size_t)n, fmt, ap);
	va_end(ap);
	n = (int)strlen(buf);
	snprintf(buf + n, sizeof(buf) - (size_t)n, ", in %s", d->fn->name);
	free(d->k->error);
	d->k->error = strdup(buf);
	return false;
}

bool dec_unknown(struct dec *d)
{
	char text[512];

	return dec_fail(d, "unknown instruction %s", exec_insn_text(d->insn, text, sizeof(text)));
}

void *dec_grow(struct dec *d, void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 32;
	void *p;

	if (n < *room)
		return array;
	p = realloc(array, more * size);
	if (!p) {
		dec_fail(d, "out of memory");
		return NULL;
	}
	*room = more;
	return p;
}

struct xinsn *dec_emit_plain(struct dec *d, xfn *fn)
{
	struct vgpu_kernel *k = d->k;
	size_t room = k->code_room;
	struct xinsn *code = dec_grow(d, k->code, k->n_code, &room, sizeof(*code));
	struct xinsn *in;

	if (!code)
		return NULL;
	k->code = code;
	k->code_room = (uint32_t)room;
	in = &code[k->n_code++];
	memset(in, 0, sizeof(*in));
	in->fn = fn;
	in->guard = NO_OPND;
	in->line = d->line;
	in->src = d->insn;
	for (unsigned int i = 0; i < 4; i++)
		in->p[i] = NO_OPND;
	return in;
}

struct xinsn *dec_emit(struct dec *d, xfn *fn)
{
	struct xinsn *in;
	int32_t p = NO_OPND;

	if (d->insn->guard && !opnd_guard(d, d->insn->guard, &p))
		return NULL;
	in = dec_emit_plain(d, fn);
	if (in && p != NO_OPND) {
		in->guard = p >> 1;
		in->guard_neg = d->insn->guard_negated;
	}
	return in;
}

int32_t dec_const(struct dec *d, uint64_t v)
{
	struct vgpu_kernel *k = d->k;
	uint32_t i, from = k->n_pool > 512 ? k->n_pool - 512 : 0;
	size_t room = k->pool_room;
	uint64_t (*pool)[LANES];

	for (i = from; i < k->n_pool; i++)
		if (k->pool[i][0] == v)
			return ~(int32_t)i;
	pool = dec_grow(d, k->pool, k->n_pool, &room, sizeof(*pool));
	if (!pool)
		return NO_OPND;
	k->pool = pool;
	k->pool_room = (uint32_t)room;
	for (i = 0; i < LANES; i++)
		pool[k->n_pool][i] = v;
	return ~(int32_t)k->n_pool++;
}

int32_t dec_temp(struct dec *d)
{
	return (int32_t)d->rows++;
}

void *dec_alloc(struct dec *d, size_t size)
{
	struct vgpu_kernel *k = d->k;
	void **allocs = dec_grow(d, k->allocs, k->n_allocs, &k->allocs_room, sizeof(*allocs));
	void *p;

	if (!allocs)
		return NULL;
	k->allocs = allocs;
	p = calloc(1, size ? size : 1);
	if (!p)
		dec_fail(d, "out of memory");
	else
		k->allocs[k->n_allocs++] = p;
	return p;
}

static size_t prefix_len(const char *name)
{
	size_t n = strlen(name);

	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	return n;
}

static uint32_t hash_of(const char *name, size_t n)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return (h ^ h >> 8 ^ h >> 16) & 255;
}

static struct name *declare(struct dec *d, const char *name, enum name_kind kind,
			    unsigned int range, uint64_t value)
{
	size_t room = d->names_room;
	struct name *names = dec_grow(d, d->names, d->n_names, &room, sizeof(*names)), *n;
	uint32_t h;

	if (!names)
		return NULL;
	d->names = names;
	d->names_room = (uint32_t)room;
	n = &names[d->n_names];
	memset(n, 0, sizeof(*n));
	n->name = name;
	n->prefix = range ? strlen(name) : prefix_len(name);
	n->scope = d->scope;
	n->kind = kind;
	n->range = range;
	n->value = value;
	h = hash_of(name, n->prefix);
	n->next = d->hash[h];
	d->hash[h] = (int32_t)d->n_names++;
	return n;
}

static bool visible(const struct dec *d, unsigned int from, unsigned int scope)
{
	while (from > scope)
		from = d->parents[from];
	return from == scope;
}

/*
 * The innermost declaration that is visible from @scope. An inner scope's number is above its
 * parents'.
 */
const struct name *dec_name(struct dec *d, const char *name, unsigned int scope)
{
	size_t len = strlen(name), prefix = prefix_len(name);
	const struct name *best = NULL;
	unsigned long number = len > prefix ? strtoul(name + prefix, NULL, 10) : 0;
	int32_t i;

	for (i = d->hash[hash_of(name, prefix)]; i >= 0; i = d->names[i].next) {
		const struct name *n = &d->names[i];

		if (n->prefix != prefix || memcmp(n->name, name, prefix))
			continue;
		if (n->range ? len == prefix || number >= n->range : strcmp(n->name, name) != 0)
			continue;
		if (visible(d, scope, n->scope) && (!best || n->scope > best->scope))
			best = n;
	}
	return best;
}

bool dec_fixup(struct dec *d, uint32_t insn, struct xtable *table, const char *label)
{
	struct fixup *f = dec_grow(d, d->fixups, d->n_fixups, &d->fixups_room, sizeof(*f));

	if (!f)
		return false;
	d->fixups = f;
	f[d->n_fixups++] = (struct fixup){ insn, table, label, d->scope, d->line };
	return true;
}

bool dec_use(struct dec *d, unsigned int function)
{
	struct xfunction *f = &d->k->functions[function];

	f->used = true;
	return true;
}

static uint32_t align_up(uint32_t v, size_t align)
{
	return (v + (uint32_t)align - 1) & ~((uint32_t)align - 1);
}

static bool declare_bytes(struct dec *d, const struct gsr_var *v, enum name_kind kind, uint32_t *at)
{
	size_t size = var_size(v), align = var_align(v);
	struct name *n;

	if (align & (align - 1) || align > 4096)
		return dec_fail(d, "%s: alignment %zu", v->name, align);
	*at = align_up(*at, align);
	if (size > LOCAL_MAX || *at + size > LOCAL_MAX)
		return dec_fail(d, "%s: more than %u bytes of local memory", v->name, LOCAL_MAX);
	n = declare(d, v->name, kind, 0, *at);
	if (!n)
		return false;
	n->size = (unsigned int)size;
	*at += (uint32_t)size;
	return true;
}

static bool declare_reg(struct dec *d, const struct gsr_var *v)
{
	unsigned int count = v->range ? v->range : 1;
	enum xtype t = xtype_parse(v->type);
	struct name *n;
	bool is_pred = t == T_PRED;

	if (t == T_NONE || (v->vec && (is_pred || v->range || t == T_B128)))
		return dec_fail(d, "register %s of type %s%s", v->name, v->vec ? "a vector of " :
				"", v->type);
	if (v->vec)
		count = v->vec;
	if (t == T_B128 && count <= ROWS_MAX)
		count *= 2;
	if (count > ROWS_MAX || d->rows + count > ROWS_MAX || d->preds + count > ROWS_MAX)
		return dec_fail(d, "more than %d registers", ROWS_MAX);
	n = declare(d, v->name, is_pred ? NAME_PRED : NAME_REG, v->range,
		    is_pred ? d->preds : d->rows);
	if (!n)
		return false;
	n->size = xtype_size(t);
	n->vec = v->vec;
	if (is_pred)
		d->preds += count;
	else
		d->rows += count;
	return true;
}

/* Where a shared variable lies in this kernel; UINT64_MAX for dynamic shared memory */
bool dec_shared(struct dec *d, const struct gsr_var *v, uint64_t *offset)
{
	size_t size = var_size(v), align = var_align(v), i;
	struct shared_var *s;

	for (i = 0; i < d->n_shared; i++)
		if (d->shared[i].var == v) {
			*offset = d->shared[i].offset;
			return true;
		}
	s = dec_grow(d, d->shared, d->n_shared, &d->shared_room, sizeof(*s));
	if (!s)
		return false;
	d->shared = s;
	if (size > (64u << 20) || !align || align & (align - 1) || align > 4096)
		return dec_fail(d, "%s: %zu bytes of shared memory, alignment %zu", v->name,
				size, align);
	*offset = UINT64_MAX;
	if (size) {
		d->shared_size = (d->shared_size + align - 1) & ~(align - 1);
		*offset = d->shared_size;
		d->shared_size += size;
	} else if (align > d->k->shared_align) {
		d->k->shared_align = align;
	}
	s[d->n_shared++] = (struct shared_var){ v, *offset };
	return true;
}

static bool declare_var(struct dec *d, const struct gsr_var *v)
{
	d->line = v->line;
	if (!strcmp(v->space, "reg"))
		return declare_reg(d, v);
	if (!strcmp(v->space, "local") || !strcmp(v->space, "param"))
		return declare_bytes(d, v, NAME_LOCAL, &d->local);
	if (!strcmp(v->space, "shared")) {
		uint64_t at = 0;

		return dec_shared(d, v, &at) && declare(d, v->name, NAME_SHARED, 0, at);
	}
	if (!strcmp(v->space, "global") || !strcmp(v->space, "const")) {
		const struct xsym *s = vars_find_var(d->k->module, v);

		return s ? !!declare(d, v->name, NAME_GLOBAL, 0, s->value) :
		       dec_fail(d, "variable %s", v->name);
	}
	return dec_fail(d, "variable %s in space %s", v->name, v->space);
}

static bool open_scope(struct dec *d, unsigned int id)
{
	size_t room = d->scopes_room;
	unsigned int *parents = dec_grow(d, d->parents, id, &room, sizeof(*parents));

	if (!parents)
		return false;
	d->parents = parents;
	d->scopes_room = (unsigned int)room;
	parents[id] = id ? d->scope : 0;
	d->scope = id;
	return true;
}

/* First pass: everything that has a name */
static bool declare_all(struct dec *d)
{
	const struct gsr_stmt *st;
	unsigned int next = 1;
	struct name *n;

	for (st = d->fn->first; st; st = st->next) {
		d->line = st->line;
		switch (st->kind) {
		case GSR_STMT_OPEN:
			if (!open_scope(d, next++))
				return false;
			break;
		case GSR_STMT_CLOSE:
			d->scope = d->parents[d->scope];
			break;
		case GSR_STMT_VAR:
			if (!declare_var(d, st->var))
				return false;
			break;
		case GSR_STMT_LABEL:
			if (!declare(d, st->label, NAME_LABEL, 0, NO_PC))
				return false;
			break;
		case GSR_STMT_DIRECTIVE:
			if (strstr(st->text, ".branchtargets")) {
				size_t len = strcspn(st->text, ": \t");
				char *label = dec_alloc(d, len + 1);

				if (!label)
					return false;
				memcpy(label, st->text, len);
				n = declare(d, label, NAME_TABLE, 0, 0);
				if (!n)
					return false;
				n->text = st->text;
			}
			break;
		case GSR_STMT_INSN:
			break;
		}
	}
	d->n_scopes = next;
	d->scope = 0;
	return true;
}

static bool decode_body(struct dec *d)
{
	const struct gsr_stmt *st;
	unsigned int next = 1;
	static const struct gsr_insn ret = { .op = GSR_OP_RET, .name = "ret" };
	const struct name *n;

	for (st = d->fn->first; st; st = st->next) {
		d->line = st->line;
		switch (st->kind) {
		case GSR_STMT_OPEN:
			d->scope = next++;
			break;
		case GSR_STMT_CLOSE:
			d->scope = d->parents[d->scope];
			break;
		case GSR_STMT_LABEL:
			n = dec_name(d, st->label, d->scope);
			if (n && n->kind == NAME_LABEL)
				d->names[n - d->names].value = d->k->n_code;
			break;
		case GSR_STMT_INSN:
			d->insn = st->insn;
			if (!dec_insn(d))
				return d->failed ? false : dec_unknown(d);
			break;
		default:
			break;
		}
	}
	/* a body that runs off its end returns */
	d->insn = &ret;
	if (!dec_insn(d))
		return false;
	d->k->code[d->k->n_code - 1].src = NULL;
	return true;
}

static bool resolve(struct dec *d)
{
	size_t i;

	for (i = 0; i < d->n_fixups; i++) {
		const struct fixup *f = &d->fixups[i];
		const struct name *n = dec_name(d, f->label, f->scope);

		if (!n || n->kind != NAME_LABEL || n->value == NO_PC) {
			d->line = f->line;
			return dec_fail(d, "label %s not found", f->label);
		}
		if (f->table)
			f->table->pc[f->insn] = (uint32_t)n->value;
		else
			d->k->code[f->insn].target = (uint32_t)n->value;
	}
	return true;
}

/*
 * Parameters: of an entry, offsets in the launch's buffer; of a function, registers or bytes of its
 * local frame
 */
static bool declare_params(struct dec *d)
{
	struct xfunction *f = d->f;
	const struct gsr_function *fn = d->fn;
	struct vgpu_kernel_info *info = &d->k->info;
	uint32_t at = 0, i;

	d->line = fn->line;
	if (d->entry) {
		if (fn->n_params > sizeof(info->param) / sizeof(*info->param))
			return dec_fail(d, "more than %zu parameters",
					sizeof(info->param) / sizeof(*info->param));
		at = VGPU_PARAMS_FROM;
		for (i = 0; i < fn->n_params; i++) {
			const struct gsr_var *v = &fn->params[i];

			if (!declare_bytes(d, v, NAME_PARAM, &at))
				return false;
			info->param[i].size = var_size(v);
			info->param[i].offset = at - info->param[i].size - VGPU_PARAMS_FROM;
		}
		info->n_params = fn->n_params;
		info->param_size = at - VGPU_PARAMS_FROM;
		return true;
	}
	f->args = dec_alloc(d, fn->n_params * sizeof(*f->args));
	f->rets = dec_alloc(d, fn->n_rets * sizeof(*f->rets));
	if (!f->args || !f->rets)
		return false;
	f->n_args = fn->n_params;
	f->n_rets = fn->n_rets;
	for (i = 0; i < fn->n_params + fn->n_rets; i++) {
		const struct gsr_var *v = i < fn->n_params ? &fn->params[i] :
					  &fn->rets[i - fn->n_params];
		struct xarg *a = i < fn->n_params ? &f->args[i] : &f->rets[i - fn->n_params];

		if (!strcmp(v->space, "reg")) {
			if (!strcmp(v->type, "pred"))
				return dec_fail(d, "predicate parameter %s", v->name);
			a->reg = true;
			a->row = (int32_t)d->rows;
			a->size = xtype_size(xtype_parse(v->type));
			if (!declare_reg(d, v))
				return false;
		} else {
			if (!declare_bytes(d, v, NAME_LOCAL, &d->local))
				return false;
			a->size = (uint32_t)var_size(v);
			a->offset = d->local - a->size;
		}
	}
	return true;
}

static bool decode_function(struct dec *d, struct xfunction *f)
{
	bool ok;

	d->f = f;
	d->fn = f->fn;
	d->entry = f->fn->entry;
	d->n_names = 0;
	d->n_fixups = 0;
	d->rows = d->preds = d->local = 0;
	d->scope = 0;
	memset(d->hash, -1, sizeof(d->hash));
	f->pc = d->k->n_code;
	ok = open_scope(d, 0) && declare_params(d) && declare_all(d) &&
	     decode_body(d) && resolve(d);
	if (!ok)
		return false;
	if (!flow_waits(d, f->pc, d->k->n_code))
		return false;
	f->rows = d->rows > d->preds ? d->rows : d->preds;
	f->rows = f->rows ? f->rows : 1;
	f->local = align_up(d->local, 16);
	f->local_used = d->local;
	return true;
}

/* @given: set if a directive says so */
static unsigned int max_threads(const struct gsr_function *fn, bool *given)
{
	unsigned int i, x, y, z, n = 1024;

	*given = false;

	for (i = 0; i < fn->n_perf; i++) {
		const char *s = fn->perf[i];
		int got;

		if (strncmp(s, ".maxntid", 8) && strncmp(s, ".reqntid", 8))
			continue;
		x = y = z = 1;
		got = sscanf(s + 8, "%u , %u , %u", &x, &y, &z);
		if (got < 1 || x * y * z < 1)
			continue;
		*given = true;
		if (x * y * z < n)
			n = x * y * z;
	}
	return n;
}

/* ptxas spills rather than let a block of the declared size not fit the 65536 of an SM */
static unsigned int regs_at_most(unsigned int threads)
{
	unsigned int n = 65536 / ((threads + 31) & ~31u) & ~7u;

	return n < 255 ? n : 255;
}

/* .reqnctapercluster 1, 1, 1 is no cluster; any other, and .explicitcluster, is */
static bool clusters_ok(struct dec *d, const struct gsr_function *fn)
{
	unsigned int i, x, y, z;

	d->line = fn->line;
	for (i = 0; i < fn->n_perf; i++) {
		const char *s = fn->perf[i];

		x = y = z = 1;
		if (!strncmp(s, ".reqnctapercluster", 18))
			sscanf(s + 18, "%u , %u , %u", &x, &y, &z);
		if (x != 1 || y != 1 || z != 1 || !strncmp(s, ".explicitcluster", 16))
			return dec_fail(d, "%s: clusters are not simulated", s);
	}
	return true;
}

/*
 * Shared variables of the module that the kernel or its functions name are laid out when first met:
 * see opnd_src
 */
bool kernel_decode(struct vgpu_kernel *k, const struct gsr_function *fn)
{
	struct dec d = { .k = k, .fn = fn };
	struct vgpu_module *m = k->module;
	bool more = true, ok = false, bounded;
	size_t i;
	unsigned int regs, most;

	k->info.name = fn->name;
	k->info.max_threads = max_threads(fn, &bounded);
	k->info.regs = 16;
	k->functions = calloc(m->n_functions ? m->n_functions : 1, sizeof(*k->functions));
	if (!k->functions)
		goto out;
	for (i = 0; i < m->n_functions; i++) {
		k->functions[i].fn = m->functions[i];
		k->functions[i].index = (unsigned int)i;
		k->functions[i].pc = NO_PC;
		if (m->functions[i] == fn)
			k->entry = &k->functions[i];
	}
	if (!clusters_ok(&d, fn) || !decode_function(&d, k->entry))
		goto out;
	regs = kernel_regs(fn);
	while (more) {
		more = false;
		for (i = 0; i < m->n_functions; i++) {
			struct xfunction *f = &k->functions[i];

			if (f == k->entry || f->pc != NO_PC || !f->fn->body || f->fn->entry ||
			    !(f->used || d.indirect))
				continue;
			if (!decode_function(&d, f))
				goto out;
			if (kernel_regs(f->fn) > regs)
				regs = kernel_regs(f->fn);
			more = true;
		}
	}
	/* dynamic shared memory lies behind the static: now its place is known */
	if (k->shared_align < 16)
		k->shared_align = 16;
	d.dynamic = (d.shared_size + k->shared_align - 1) & ~(k->shared_align - 1);
	for (i = 0; i < d.n_dynamics; i++)
		for (unsigned int l = 0; l < LANES; l++)
			k->pool[d.dynamics[i].pool][l] = d.dynamic + (uint64_t)d.dynamics[i].offset;
	k->info.static_shared = (unsigned int)d.shared_size;
	k->info.local_size = k->entry->local;
	most = bounded ? regs_at_most(k->info.max_threads) : 255;
	k->info.regs = regs < 16 ? 16 : regs > most ? most : regs;
	ok = true;
out:
	free(d.names);
	free(d.parents);
	free(d.fixups);
	free(d.shared);
	free(d.dynamics);
	return ok;
}
