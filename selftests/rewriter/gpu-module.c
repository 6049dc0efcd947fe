// SPDX-License-Identifier: LGPL-2.1-or-later
/* Modules of the corpus on a device: the original as its file is, and the twins of that file */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "libgsched/cuda/code/tuning.h"
#include "gpu.h"
#include "rewriter/ptx/ptx.h"

#define REWRITES	5
#define LOOK		64	/* short kernels look more often, too, whether to leave */

const char *gpu_error(CUresult rc)
{
	const char *name = NULL;

	return cuGetErrorName(rc, &name) || !name ? "unknown error" : name;
}

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) {
		text = malloc((size_t)n + 1);
		if (text)
			text[*size = fread(text, 1, (size_t)n, f)] = 0;
	}
	fclose(f);
	return text;
}

unsigned int gpu_arch_of(const char *path)
{
	size_t size;
	char *text = read_file(path, &size);
	char *at = text ? strstr(text, ".target sm_") : NULL;
	unsigned int arch = at ? (unsigned int)strtoul(at + strlen(".target sm_"), NULL, 10) : 0;

	free(text);
	return arch;
}

/* ---- what a kernel needs of its module ---- */

static bool names(const struct gsr_operand *o, const char *name)
{
	unsigned int i;

	if (o->name && !strcmp(o->name, name))
		return true;
	for (i = 0; i < o->n_items; i++)
		if (names(&o->items[i], name))
			return true;
	return false;
}

static bool calls(const struct gsr_function *f, const char *name)
{
	const struct gsr_stmt *s;
	unsigned int i;

	for (s = f->first; s; s = s->next) {
		if (s->kind == GSR_STMT_DIRECTIVE && strstr(s->text, name))
			return true;
		for (i = 0; s->kind == GSR_STMT_INSN && i < s->insn->n_opnds; i++)
			if (names(&s->insn->opnds[i], name))
				return true;
	}
	return false;
}

/* Take out every function that @entry does not come to. false: there is no such entry. */
static bool reduce(struct gsr_module *m, const char *entry)
{
	struct gsr_item *i, *j, **p, *last = NULL;
	bool more, *keep;
	unsigned int n = 0, a, b;

	for (i = m->first; i; i = i->next)
		n++;
	keep = calloc(n + 1, sizeof(*keep));
	if (!keep || !gsr_module_function(m, entry)) {
		free(keep);
		return false;
	}
	do {
		more = false;
		for (i = m->first, a = 0; i; i = i->next, a++) {
			if (keep[a])
				continue;
			keep[a] = i->kind != GSR_ITEM_FUNCTION || !strcmp(i->function->name, entry);
			for (j = m->first, b = 0; j && !keep[a]; j = j->next, b++)
				keep[a] = keep[b] && j->kind == GSR_ITEM_FUNCTION &&
					  calls(j->function, i->function->name);
			more |= keep[a];
		}
	} while (more);
	for (p = &m->first, a = 0; *p; a++) {
		if (keep[a]) {
			last = *p;
			p = &(*p)->next;
		} else {
			*p = (*p)->next;
		}
	}
	m->last = last;
	free(keep);
	return true;
}

static bool reads_z(const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG &&
	    (!strcmp(o->name, "%ctaid") || !strcmp(o->name, "%nctaid")) && o->component != 'x' &&
	    o->component != 'y')
		return true;
	for (i = 0; i < o->n_items; i++)
		if (reads_z(&o->items[i]))
			return true;
	return false;
}

/* An atomic on shared memory: other blocks do not see it */
static bool of_block(const struct gsr_insn *insn)
{
	unsigned int i;

	for (i = 0; i < insn->n_mods; i++)
		if (!strncmp(insn->mods[i], "shared", 6))
			return true;
	return false;
}

/* Blocks that differ in z only do the same. @m is reduced to the kernel. */
static bool scalable(const struct gsr_module *m, const struct test_launch *t)
{
	const struct gsr_item *item;
	const struct gsr_stmt *s;
	unsigned int i;

	for (item = m->first; item; item = item->next) {
		if (item->kind != GSR_ITEM_FUNCTION)
			continue;
		for (s = item->function->first; s; s = s->next) {
			if (s->kind != GSR_STMT_INSN)
				continue;
			if ((s->insn->op == GSR_OP_ATOM || s->insn->op == GSR_OP_RED) &&
			    !of_block(s->insn))
				return false;
			for (i = 0; i < s->insn->n_opnds; i++)
				if (reads_z(&s->insn->opnds[i]))
					return false;
		}
	}
	return t->grid[2] == 1;
}

/* ---- loading ---- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static CUresult load(const char *ptx, unsigned int cap, CUmodule *out, char *log, size_t size)
{
	CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				  CU_JIT_MAX_REGISTERS };
	void *value[] = { log, (void *)(uintptr_t)size, (void *)(uintptr_t)cap };
	char *end;
	CUresult rc;

	log[0] = 0;
	rc = cuModuleLoadDataEx(out, ptx, cap ? 3 : 2, option, value);
	while ((end = strchr(log, '\n')))
		*end = ' ';
	return rc;
}

/* The same by the linker, which compiles without holding up the context's other calls */
static CUresult load_linked(const char *ptx, unsigned int cap, CUmodule *out)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	void *value = (void *)(uintptr_t)cap, *code;
	CUlinkState state;
	size_t size;
	CUresult rc = cuLinkCreate(cap ? 1 : 0, &option, &value, &state);

	if (rc)
		return rc;
	rc = cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)ptx, strlen(ptx) + 1, "twins", 0, NULL,
			   NULL);
	if (!rc)
		rc = cuLinkComplete(state, &code, &size);
	if (!rc)
		rc = cuModuleLoadData(out, code);
	cuLinkDestroy(state);
	return rc;
}

static int attribute(CUfunction f, CUfunction_attribute what)
{
	int v = 0;

	return cuFuncGetAttribute(&v, what, f) ? -1 : v;
}

/* More than 48 KiB have to be asked for, the static ones included */
static CUresult get_function(CUfunction *f, CUmodule module, const char *name, size_t dynamic)
{
	CUresult rc = cuModuleGetFunction(f, module, name);

	if (!rc && dynamic + (size_t)attribute(*f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) > 48 << 10)
		rc = cuFuncSetAttribute(*f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					(int)dynamic);
	return rc;
}

static int per_sm(CUfunction f, const struct test_launch *t, size_t dynamic)
{
	const unsigned int *b = t->block_dim;
	int n = 0;

	return cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, (int)(b[0] * b[1] * b[2]),
							   dynamic) ? -1 : n;
}

static void measure(CUfunction f, unsigned int which, const struct test_launch *t, size_t dynamic,
		    struct gpu_report *r)
{
	r->regs[which] = attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
	r->local[which] = attribute(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
	r->per_sm[which] = per_sm(f, t, dynamic);
}

static void dump(const struct gpu_options *o, const char *kernel, const char *suffix,
		 const char *ptx)
{
	char path[4096];
	FILE *f;

	if (!o->dump)
		return;
	snprintf(path, sizeof(path), "%s/%s%s.ptx", o->dump, kernel, suffix);
	f = fopen(path, "w");
	if (f) {
		fputs(ptx, f);
		fclose(f);
	}
}

static bool load_original(const char *text, size_t size, const char *path,
			  const struct test_launch *t, const struct gpu_options *o,
			  struct gpu_pair *out, struct gpu_report *r)
{
	struct gsr_module *m = NULL;
	struct gsr_error err;
	char log[1024], *alone;
	CUmodule module = NULL;
	size_t n;
	CUresult rc;

	if (gsr_parse(text, size, path, &m, &err)) {
		snprintf(r->why, sizeof(r->why), "%s", err.message);
		return false;
	}
	if (!reduce(m, t->kernel) || !(alone = gsr_print(m, &n))) {
		snprintf(r->why, sizeof(r->why), "%s: no kernel %s", path, t->kernel);
		gsr_module_free(m);
		return false;
	}
	out->scalable = scalable(m, t);
	gsr_module_free(m);
	dump(o, t->kernel, "", alone);
	free(alone);
	r->load_ns[0] = now_ns();
	rc = load(text, 0, &module, log, sizeof(log));
	r->load_ns[0] = now_ns() - r->load_ns[0];
	if (!rc)
		rc = get_function(&out->original, module, t->kernel, t->dynamic);
	out->module = module;
	if (rc)
		snprintf(r->why, sizeof(r->why), "the original does not load: %s %s",
			 gpu_error(rc), log);
	return !rc;
}

static bool find(void *arg, const char *name, uint64_t *address, uint64_t *size)
{
	CUdeviceptr at = 0;
	size_t bytes = 0;
	CUresult rc = cuModuleGetGlobal(&at, &bytes, arg, name);

	*address = at;
	*size = bytes;
	return !rc;
}

/* Nothing has been launched yet */
static bool first(void *arg, const char *name, uint64_t offset, uint64_t *word)
{
	uint64_t at, size;

	return find(arg, name, &at, &size) && offset + sizeof(*word) <= size &&
	       !cuMemcpyDtoH(word, at + offset, sizeof(*word));
}

/* The twins' table of addresses */
static bool share(CUmodule twins, struct gpu_pair *out, struct gpu_report *r)
{
	size_t size = out->rw.n_variables * sizeof(uint64_t), room = 0;
	bool *missing = calloc(out->rw.n_variables + 1, sizeof(*missing));
	uint64_t *table = malloc(size + 1);
	const struct gsr_variable *variable;
	CUdeviceptr at = 0;
	CUresult rc = CUDA_SUCCESS;

	if (size && missing && table) {
		rc = cuModuleGetGlobal(&at, &room, twins, out->rw.addresses);
		if (!rc && room == size)
			rc = cuMemcpyDtoH(table, at, size);
		if (!rc && room == size) {
			gsr_fill_addresses(&out->rw, find, first, out->module, table, missing);
			rc = cuMemcpyHtoD(at, table, size);
		}
	}
	variable = missing ? gsr_missing_variable(&out->rw, out->desc, missing) : NULL;
	if (rc || room != size || !missing)
		snprintf(r->why, sizeof(r->why), "table of addresses: %s, %zu bytes instead of %zu",
			 gpu_error(rc), room, size);
	else if (variable)
		snprintf(r->why, sizeof(r->why), "the driver does not find the variable %s",
			 variable->name);
	free(table);
	free(missing);
	return missing && !rc && room == size && !variable;
}

static bool load_twin(const char *twins, const struct test_launch *t, const struct gpu_options *o,
		      struct gpu_pair *out, struct gpu_report *r)
{
	const size_t dynamic = gsr_dynamic_shared(out->desc, t->dynamic);
	char log[1024] = "", symbol[256];
	int sm_regs = 0, sm_threads = 0;
	unsigned int cap;
	CUfunction capped = NULL;
	CUmodule module = NULL;
	CUresult rc;

	r->load_ns[1] = now_ns();
	rc = o->link ? load_linked(twins, 0, &module) : load(twins, 0, &module, log, sizeof(log));
	r->load_ns[1] = now_ns() - r->load_ns[1];
	out->twins = module;
	snprintf(symbol, sizeof(symbol), "%s" GSR_SUFFIX, t->kernel);
	if (!rc)
		rc = get_function(&out->twin, module, symbol, dynamic);
	if (rc) {
		snprintf(r->why, sizeof(r->why), "the twin does not load: %s %s",
			 gpu_error(rc), log);
		return false;
	}
	if (!share(module, out, r))
		return false;
	measure(out->twin, 1, t, dynamic, r);
	cuDeviceGetAttribute(&sm_regs, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0);
	cuDeviceGetAttribute(&sm_threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0);
	cap = gi_register_cap((unsigned int)r->regs[0], (unsigned int)sm_regs,
			      (unsigned int)sm_threads);
	if (r->per_sm[1] < r->per_sm[0] &&
	    !(o->link ? load_linked(twins, cap, &out->capped) :
			load(twins, cap, &out->capped, log, sizeof(log))) &&
	    share(out->capped, out, r) && !get_function(&capped, out->capped, symbol, dynamic) &&
	    per_sm(capped, t, dynamic) >= r->per_sm[0] &&
	    attribute(capped, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) <=
	    attribute(out->twin, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)) {
		snprintf(r->note, sizeof(r->note), "without a cap the twin has %d registers and %d "
			 "blocks per SM", r->regs[1], r->per_sm[1]);
		r->cap = cap;
		out->twin = capped;
		measure(capped, 1, t, dynamic, r);
	}
	return true;
}

/* The least of some times, for a file */
static enum gsr_status rewrite(const char *text, size_t size, const struct gsr_options *o,
			       struct gsr_rewrite *rw, struct gsr_error *err, struct gpu_report *r)
{
	enum gsr_status status = GSR_OK;
	unsigned int i;
	uint64_t t;

	for (i = 0; i < REWRITES && !status; i++) {
		if (i)
			gsr_rewrite_free(rw);
		t = now_ns();
		status = gsr_rewrite_ptx(text, size, o, rw, err);
		t = now_ns() - t;
		if (!i || t < r->rewrite_ns)
			r->rewrite_ns = t;
	}
	for (r->lines = 0; *text; text++)
		r->lines += *text == '\n';
	return status;
}

bool gpu_load(const char *path, const struct test_launch *t, const struct gpu_options *o,
	      struct gpu_pair *out, struct gpu_report *r)
{
	/* every other one by chance, and where they are asked for */
	static bool modes;
	struct gsr_options ro = { .size = sizeof(ro), .name = path, .resumable = o->resumable,
				  .restart = o->restart ? GSR_RESTART_ALWAYS : GSR_RESTART_NEVER,
				  .look = o->full ? 0 : LOOK };
	struct gsr_error err = { 0 };
	unsigned int i;
	size_t size = 0;
	bool good;
	char *text = read_file(path, &size);

	memset(out, 0, sizeof(*out));
	modes = !modes;
	out->modes = ro.modes = o->limit == ANY_LIMIT ? o->ranges || (modes && !o->overhead) :
		     o->limit || o->ranges;
	if (!text || rewrite(text, size, &ro, &out->rw, &err, r)) {
		snprintf(r->why, sizeof(r->why), "%s", text ? err.message : "cannot read the file");
		free(text);
		return false;
	}
	for (i = 0; i < out->rw.n_kernels; i++)
		if (!strcmp(out->rw.kernels[i].name, t->kernel))
			out->desc = &out->rw.kernels[i];
	good = out->desc && out->desc->tier == GSR_TIER_BLOCK && out->rw.ptx;
	if (!good)
		snprintf(r->why, sizeof(r->why), "not rewritten: %s",
			 out->desc ? out->desc->reason : "no such kernel");
	if (good)
		good = load_original(text, size, path, t, o, out, r);
	if (good) {
		measure(out->original, 0, t, t->dynamic, r);
		dump(o, t->kernel, GSR_SUFFIX, out->rw.ptx);
		good = load_twin(out->rw.ptx, t, o, out, r);
	}
	free(text);
	return good;
}

void gpu_unload(struct gpu_pair *pair)
{
	CUmodule all[] = { pair->module, pair->twins, pair->capped };
	unsigned int i;

	for (i = 0; i < 3; i++)
		if (all[i])
			cuModuleUnload(all[i]);
	gsr_rewrite_free(&pair->rw);
}
