// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Modules: parse, variables, and every kernel decoded. A kernel that cannot run keeps the reason
 * and fails when launched.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "exec_priv.h"

bool (*vgpu_access_ok)(uint64_t addr, size_t size, bool write);
void (*vgpu_access_why)(uint64_t addr, size_t size, char *buf, size_t n);

/* All modules: a kernel may hold a pointer to a variable of another one */
static struct vgpu_module *modules;
static pthread_rwlock_t modules_lock = PTHREAD_RWLOCK_INITIALIZER;
static _Atomic uint64_t functions_loaded;

static bool inside(const struct vgpu_module *m, uint64_t addr, size_t size, bool write)
{
	const struct xrange *r = vars_range(m, addr, size);

	return r && !(write && r->constant);
}

bool exec_const_ok(const struct vgpu_block *b, uint64_t addr, size_t size)
{
	const struct xrange *r = vars_range(b->k->module, addr, size);

	return r && r->constant;
}

bool exec_global_ok(struct vgpu_block *b, uint64_t addr, size_t size, bool write)
{
	const struct vgpu_module *own = b->k->module, *m;
	bool ok = false;

	if (addr < 65536 || addr >> HOST_BITS)
		return false;
	if (addr - (uintptr_t)own->globals < own->globals_size)
		return inside(own, addr, size, write);
	if (!vgpu_access_ok || vgpu_access_ok(addr, size, write))
		return true;
	pthread_rwlock_rdlock(&modules_lock);
	for (m = modules; m && !ok; m = m->next)
		ok = inside(m, addr, size, write);
	pthread_rwlock_unlock(&modules_lock);
	return ok || heap_covers(addr, size);
}

static void kernel_free(struct vgpu_kernel *k)
{
	size_t i;

	if (!k)
		return;
	for (i = 0; i < k->n_allocs; i++)
		free(k->allocs[i]);
	free(k->allocs);
	free(k->code);
	free(k->pool);
	free(k->functions);
	free(k->error);
	free(k);
}

static bool is_code(const struct gsr_item *it)
{
	return it->kind == GSR_ITEM_FUNCTION;
}

/* Functions by index; a definition takes the place of its declaration */
static bool list_functions(struct vgpu_module *m)
{
	struct gsr_item *it;
	unsigned int n = 0, i;

	for (it = m->ptx->first; it; it = it->next)
		n += is_code(it);
	m->functions = calloc(n ? n : 1, sizeof(*m->functions));
	m->kernels = calloc(n ? n : 1, sizeof(*m->kernels));
	if (!m->functions || !m->kernels)
		return false;
	for (it = m->ptx->first; it; it = it->next) {
		if (!is_code(it))
			continue;
		/* the entries below n_functions are filled */
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
		for (i = 0; i < m->n_functions && strcmp(m->functions[i]->name, it->function->name);
		     i++)
			;
		if (i == m->n_functions)
			m->functions[m->n_functions++] = it->function;
		else if (it->function->body)
			m->functions[i] = it->function;
	}
	/* one module's numbers mean nothing in another */
	m->code = WIN_CODE + WIN_OFFSET(16 * atomic_fetch_add(&functions_loaded,
							      m->n_functions + 1));
	return true;
}

struct vgpu_module *vgpu_module_load(const char *ptx, size_t size, char *err, size_t err_size)
{
	struct vgpu_module *m = calloc(1, sizeof(*m));
	struct gsr_error e = { 0 };
	char why[256] = "out of memory";
	unsigned int i;

	if (!m)
		goto failed;
	if (gsr_parse(ptx, size, "<ptx>", &m->ptx, &e) != GSR_OK) {
		snprintf(why, sizeof(why), "%s", e.message);
		goto failed;
	}
	if (!list_functions(m) || !vars_load(m, why, sizeof(why)))
		goto failed;
	for (i = 0; i < m->n_functions; i++) {
		struct vgpu_kernel *k;

		if (!m->functions[i]->entry || !m->functions[i]->body)
			continue;
		k = calloc(1, sizeof(*k));
		if (!k)
			goto failed;
		m->kernels[m->n_kernels++] = k;
		k->module = m;
		if (!kernel_decode(k, m->functions[i]) && !k->error)
			goto failed;
	}
	pthread_rwlock_wrlock(&modules_lock);
	m->next = modules;
	modules = m;
	pthread_rwlock_unlock(&modules_lock);
	return m;
failed:
	if (err_size)
		snprintf(err, err_size, "vgpu: %s", why);
	vgpu_module_free(m);
	return NULL;
}

void vgpu_module_free(struct vgpu_module *m)
{
	struct vgpu_module **p;
	unsigned int i;

	if (!m)
		return;
	pthread_rwlock_wrlock(&modules_lock);
	for (p = &modules; *p && *p != m; p = &(*p)->next)
		;
	if (*p)
		*p = m->next;
	pthread_rwlock_unlock(&modules_lock);
	for (i = 0; i < m->n_kernels; i++)
		kernel_free(m->kernels[i]);
	free(m->kernels);
	vars_free(m);
	free(m->functions);
	if (m->ptx)
		gsr_module_free(m->ptx);
	free(m);
}

struct vgpu_kernel *vgpu_module_kernel(struct vgpu_module *m, const char *name)
{
	unsigned int i;

	for (i = 0; i < m->n_kernels; i++)
		if (!strcmp(m->kernels[i]->info.name, name))
			return m->kernels[i];
	return NULL;
}

unsigned int vgpu_module_kernels(struct vgpu_module *m, struct vgpu_kernel **list, unsigned int max)
{
	unsigned int i;

	for (i = 0; i < m->n_kernels && i < max; i++)
		list[i] = m->kernels[i];
	return m->n_kernels;
}

void *vgpu_module_global(struct vgpu_module *m, const char *name, size_t *size)
{
	const struct xsym *s = vars_find(m, name);

	if (!s || (s->kind != SYM_GLOBAL && s->kind != SYM_CONST))
		return NULL;
	if (size)
		*size = s->size;
	return (void *)(uintptr_t)s->value;
}

bool vgpu_module_reference(const struct vgpu_module *m, const char *name, bool *surface)
{
	const struct xsym *s = vars_find(m, name);
	const char *type = s && s->var ? s->var->type : "";

	*surface = !strcmp(type, "surfref");
	return *surface || !strcmp(type, "texref");
}

void *vgpu_module_globals(struct vgpu_module *m, size_t *size)
{
	*size = m->globals_size;
	return m->globals;
}

const struct vgpu_kernel_info *vgpu_kernel_info(const struct vgpu_kernel *k)
{
	return &k->info;
}
