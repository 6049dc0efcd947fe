// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The twins' own shared variables, and where they lie: in the kernel, in front of everything else;
 * or, if device functions name them too, in the module. The assembler places a kernel's variables
 * in the order of their declarations, then the module's, then those of functions. For kernels whose
 * shared addresses must keep their low bits (alignment.c) they take a multiple of GSR_ALIGNED
 * bytes:
 * - in the kernel: all other variables and dynamic shared memory move by exactly that;
 * - in the module they stand behind its other variables: only dynamic shared memory moves.
 *
 * Where static shared memory has no room for those in the kernel, they stand behind the program's
 * dynamic shared memory, and move nothing: the names are then registers with the addresses
 * (gsr_dynamic_shared()).
 *
 * In: struct gsr_own, what the passes use. Out: declarations and their sizes, or a refusal where
 * there is no room. Assumes that the kernel's own declarations are in its text.
 */
#include "runtime.h"

#define SHARED_MAX	49152u
#define LIST_SIZE	(4 * (GSR_MBARRIERS_MAX + 1))
#define UP(n, to)	(((n) + (to) - 1) / (to) * (to))

struct part {
	const char *name;
	unsigned int size;
};

static unsigned int parts(const struct gsr_pass *p, const struct gsr_own *own,
			  struct part part[GSR_OWN_MAX])
{
	unsigned int n = 0;

	part[n++] = (struct part){ "$#me", GSR_TASK_SIZE };
	if (own->mbarriers)
		part[n++] = (struct part){ "#mbarriers", LIST_SIZE };
	if (own->ended)
		part[n++] = (struct part){ "#ended", GSR_ENDED_SIZE };
	if (own->swbarrier)
		part[n++] = (struct part){ "#phases", GSR_SWBARRIER_SIZE };
	if (own->warpsync)
		part[n++] = (struct part){ "#gathers", p->warpsync_size };
	if (own->own_warpsync)
		part[n++] =
			(struct part){ "#own_gathers", own->aligned && !own->inside ?
							       UP(own->own_warpsync, GSR_ALIGNED) :
							       own->own_warpsync };
	return n;
}

/* The first part takes what is missing to a multiple of GSR_ALIGNED */
static unsigned int fill_up(struct part *part, unsigned int n)
{
	unsigned int i, sum = 0;

	for (i = 0; i < n; i++)
		sum += UP(part[i].size, 16);
	part[0].size += UP(sum, GSR_ALIGNED) - sum;
	for (i = 1; i < n; i++)
		part[i].size = UP(part[i].size, 16);
	return UP(sum, GSR_ALIGNED);
}

unsigned int gsr_own_bytes(const struct gsr_pass *p, const struct gsr_own *own, bool wide)
{
	struct part part[GSR_OWN_MAX];
	unsigned int n = parts(p, own, part), i, sum = 0;

	if (own->inside && own->aligned)
		return fill_up(part, n);
	for (i = 0; own->behind && i < n; i++)
		sum += UP(part[i].size, 16);
	for (i = 0; !own->behind && i < n; i++)
		sum += wide && !own->inside && strcmp(part[i].name, "#own_gathers") ?
			       UP(part[i].size, GSR_ALIGNED) :
			       part[i].size;
	return sum;
}

/* The first part is $#me */
static void find_behind(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *at,
			const struct gsr_own *own, const struct part *part, unsigned int n)
{
	unsigned int i, offset = 0;

	gsr_insert_format(p, f, at, gsr_find_me, gsr_own_bytes(p, own, false));
	for (i = 1; i < n; i++) {
		offset += UP(part[i - 1].size, 16);
		gsr_insert_format(p, f, at, gsr_find_part, part[i].name, offset);
	}
}

void gsr_own_declare(struct gsr_pass *p, struct gsr_function *f, const struct gsr_own *own)
{
	struct gsr_stmt *at = f->first;
	struct part part[GSR_OWN_MAX];
	unsigned int n = parts(p, own, part), i;

	if (own->behind) {
		find_behind(p, f, at, own, part, n);
		return;
	}
	if (own->inside && own->aligned)
		fill_up(part, n);
	for (i = 0; i < n; i++)
		if (own->inside || !strcmp(part[i].name, "#own_gathers"))
			gsr_insert(p, f, at,
				   gsr_sprintf(p->arena, ".shared .align %u .b8 %s[%u];",
					       own->inside && own->aligned && !i ? GSR_ALIGNED : 16,
					       part[i].name, part[i].size));
}

struct gsr_var *gsr_own_dynamic(struct gsr_pass *p)
{
	struct gsr_var *v = gsr_alloc(p->arena, sizeof(*v));

	*v = (struct gsr_var){
		.linkage = "extern",
		.space = "shared",
		.align = 16,
		.type = "b8",
		.name = gsr_expand(p, "#dynamic"),
		.n_dims = 1,
	};
	return v;
}

struct gsr_var **gsr_own_module(struct gsr_pass *p, const struct gsr_own *own, bool wide,
				unsigned int *n)
{
	struct gsr_var **vars = gsr_alloc_array(p->arena, GSR_OWN_MAX, sizeof(struct gsr_var *));
	struct part part[GSR_OWN_MAX];
	unsigned int i;

	*n = parts(p, own, part);
	for (i = 0; i < *n; i++) {
		vars[i] = gsr_alloc(p->arena, sizeof(**vars));
		*vars[i] = (struct gsr_var){
			.space = "shared",
			.align = 16,
			.type = "b8",
			.name = gsr_expand(p, part[i].name),
			.dims = { wide ? UP(part[i].size, GSR_ALIGNED) : part[i].size },
			.n_dims = 1,
		};
	}
	return vars;
}

static uint64_t static_shared(const struct gsr_closure *c)
{
	uint64_t size = 0;
	unsigned int i, k;
	struct gsr_stmt *s;

	for (i = 0; i < c->n; i++) {
		for (s = c->fns[i]->f->first; s && c->fns[i]->has.shared; s = s->next)
			if (s->kind == GSR_STMT_VAR && !strcmp(s->var->space, "shared") &&
			    !(s->var->linkage && !strcmp(s->var->linkage, "extern")))
				size = (size + gsr_var_align(s->var) - 1) / gsr_var_align(s->var) *
					       gsr_var_align(s->var) +
				       gsr_var_size(s->var);
		for (k = 0; k < c->fns[i]->has.vars.n; k++) {
			const struct gsr_var *v = c->fns[i]->has.vars.at[k];

			if (!(v->linkage && !strcmp(v->linkage, "extern")))
				size = (size + gsr_var_align(v) - 1) / gsr_var_align(v) *
					       gsr_var_align(v) +
				       gsr_var_size(v);
		}
	}
	return size;
}

const char *gsr_shared_room(struct gsr_pass *p, const struct gsr_closure *c, unsigned int more,
			    bool behind)
{
	uint64_t shared = static_shared(c);
	unsigned int i;

	for (i = 0; i < c->n; i++)
		if (c->fns[i]->has.mbarriers || c->fns[i]->done.mbarriers) {
			more += LIST_SIZE;
			break;
		}
	more += (gsr_functions_exit(c) ? GSR_ENDED_SIZE : 0) +
		(c->fns[0]->plan.swbarrier ? GSR_SWBARRIER_SIZE : 0) +
		(c->fns[0]->plan.warpsync ? p->warpsync_size : 0) + GSR_TASK_SIZE + 16;
	if (shared + (behind ? 0 : more) > SHARED_MAX)
		return gsr_sprintf(p->arena,
				   "%llu bytes of static shared memory leave no room for ours",
				   (unsigned long long)shared);
	return NULL;
}
