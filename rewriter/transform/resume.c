// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans the resume points of a kernel: the points at which a block-task can be suspended in its
 * middle. These are its barriers, which all of its threads reach together, and the heads of loops
 * without barriers, where each thread stops by itself. The state of a thread at a point is what
 * liveness finds live.
 *
 * In: a kernel in its final form but for its barriers. Out: struct gsr_resume, or a reason why
 * there is none. Assumes a function without inner scopes, and its graph.
 */
#include <string.h>
#include "resume.h"

#define HEADS_MAX	32
#define SITES_MAX	256
#define WORDS_MAX	4096	/* of one thread's registers */
#define SHARED_MAX	(48u << 10)
#define RECORD_MAX	(SHARED_MAX + sizeof(struct gsr_record))
#define LOCAL_MAX	(64u << 10)	/* bytes a thread */

/*
 * Instructions of a thread between two checks; those that wait for memory count as several. If all
 * threads vote at each point, a check costs a barrier, but they also leave at the same time: so
 * checks can be rarer.
 */
#define LOOK		2048
#define LOOK_IN_PLACE	4096
#define WAITS_LONG	24
#define INNER_ROUNDS	8	/* assumed trip count of a loop without a point */

struct plan {
	struct gsr_pass *p;
	struct gsr_fn *fn;
	const struct gsr_closure *c;
	struct gsr_live live;
	struct gsr_preds preds;
	/* by block */
	unsigned char *in_loop;		/* IN_LOOP and others */
	unsigned int *holds_site;	/* number of sites */
	unsigned char *awaited;		/* NULL: there are no barriers with a thread count */
	unsigned char *lanes_awaited;	/* NULL: there are no warp-synchronous instructions */
	unsigned char *apart_awaited;	/* the same, before lanes that are apart meet again */
	bool no_joins, calls_wait;	/* calls_wait: for lanes */
	unsigned int *weight;
	const struct gsr_loop **innermost;	/* or NULL */
	bool warp_sync, restart;
	struct gsr_effects *effects;	/* with restart */
	struct gsr_based *based;	/* NULL: no register is based on a parameter's address */
};

enum {
	IN_LOOP = 1,
	HEAD = 2,
	NEAR_SITE = 4,		/* in a loop that has a site */
	WAITS = 8,		/* may poll for other threads of its thread block */
};

static const char behind_store[] =
	"a loop or barrier has no point: the block could read what it stored before";
static const char behind_effect[] =
	"a loop or barrier has no point: an atomic or the like before must not be repeated";
static const char finished[] = "not once a thread of the block has finished";
static const char may_wait[] = "a loop that may wait for other threads", says_nothing[] = "";

static const struct {
	const char *name, *why;
} tied_to_place[] = {
	{ "%smid", "reads where it runs (%smid)" },
	{ "%warpid", "reads where it runs (%smid)" },
	{ "%nwarpid", "reads where it runs (%smid)" },
	/* cooperative groups keep the barriers of large tiles there, and nothing saves it */
	{ "%reserved_smem_offset_1", "reserved shared memory" },
	{ "%reserved_smem_offset_0", "reserved shared memory" },
	{ NULL, NULL },
};

static const char *place_named(const struct gsr_operand *o)
{
	const char *why = NULL;
	unsigned int i;

	for (i = 0; o->kind == GSR_OPND_REG && tied_to_place[i].name; i++)
		if (o->name[1] == tied_to_place[i].name[1] &&
		    !strcmp(o->name, tied_to_place[i].name))
			return tied_to_place[i].why;
	for (i = 0; i < o->n_items && !why; i++)
		why = place_named(&o->items[i]);
	return why;
}

/* Why a kernel with this instruction is not resumable, or not restarted; or NULL */
static const char *obstacle_of(const struct gsr_insn *insn, bool restart)
{
	const char *why = NULL;
	unsigned int i;

	for (i = 0; i < insn->n_opnds && !why && !restart; i++)
		why = place_named(&insn->opnds[i]);
	if (why)
		return why;
	switch (insn->op) {
	case GSR_OP_MBARRIER:
	case GSR_OP_WGMMA:
	case GSR_OP_TCGEN05:
	case GSR_OP_STACKSAVE:
	case GSR_OP_STACKRESTORE:
	case GSR_OP_ALLOCA:
		return insn->name;
	case GSR_OP_ST:
	case GSR_OP_RED:
		return gsr_insn_has(insn, "async") ? "asynchronous store" : NULL;
	case GSR_OP_CP:
		return gsr_insn_has(insn, "bulk") || gsr_insn_has(insn, "mbarrier") ?
			       "cp.async.bulk" :
			       NULL;
	default:
		return NULL;
	}
}

static bool is_site(const struct gsr_function *f, const struct gsr_stmt *s)
{
	struct gsr_barrier b;

	return s->kind == GSR_STMT_INSN && gsr_barrier_of(f, s->insn, &b) && !b.warp &&
	       !b.cluster && !b.counted;
}

/*
 * Why the kernel, or a function that it calls, cannot be suspended: barriers at which that is
 * impossible, and state that cannot be moved. Or NULL. With @restart no state is moved.
 */
static const char *check_function(const struct gsr_function *f, bool kernel, bool restart)
{
	const struct gsr_stmt *s;
	struct gsr_barrier b;
	const char *why;

	for (s = f->first; s; s = s->next) {
		if (s->kind == GSR_STMT_VAR && !kernel && !restart &&
		    !strcmp(s->var->space, "shared"))
			return "shared memory of a device function";
		if (s->kind != GSR_STMT_INSN)
			continue;
		why = obstacle_of(s->insn, restart);
		if (why)
			return why;
		/* where the window of shared memory lies may differ from launch to launch */
		if (kernel && !restart && s->insn->op == GSR_OP_CVTA &&
		    gsr_insn_has(s->insn, "shared") &&
		    !gsr_insn_has(s->insn, "to"))
			return "generic address of shared memory (cvta.shared)";
		if (!kernel && !restart && s->insn->op == GSR_OP_CVTA &&
		    gsr_insn_has(s->insn, "param") &&
		    !gsr_insn_has(s->insn, "to"))
			return "generic address of a device function's parameter (cvta.param)";
		if (!kernel && gsr_may_wait(s->insn))
			return "a device function that may wait for other threads";
		if (!gsr_barrier_of(f, s->insn, &b) || b.warp)
			continue;
		if (!kernel)
			return "barrier in a device function";
		if (b.arrive)
			return "bar.arrive";
	}
	return NULL;
}

static const char *check_closure(struct plan *pl)
{
	const char *why = check_function(pl->fn->f, true, pl->restart);
	unsigned int i;

	for (i = 1; i < pl->c->n && !why; i++) {
		struct gsr_fn *fn = pl->c->fns[i];

		if (pl->restart) {
			why = check_function(fn->f, false, true);
			continue;
		}
		/* kernels share the function: it is checked once */
		if (!fn->done.resume_checked)
			fn->done.resume_obstacle = check_function(fn->f, false, false);
		fn->done.resume_checked = true;
		why = fn->done.resume_obstacle;
	}
	if (!why && !pl->restart)
		pl->based = gsr_find_based(pl->p->arena, pl->fn, &why);
	if (!why && !pl->restart && gsr_shared_by_number(pl->c))
		why = "shared memory that has no name";
	return why;
}

struct back {
	unsigned int from, next;	/* next: edge of the same loop; 0: none */
};

/*
 * The natural loop: blocks from which a back edge is reached without passing the head. @of: the
 * loop in which a block was found last.
 */
static void find_blocks(const struct plan *pl, struct gsr_loop *l, const struct back *edges,
			unsigned int id, unsigned int *of, unsigned int *found)
{
	unsigned int n = 0, i, k, e;

	of[l->head] = id;
	found[n++] = l->head;
	for (e = l->edge; e; e = edges[e].next)
		if (of[edges[e].from] != id) {
			of[edges[e].from] = id;
			found[n++] = edges[e].from;
		}
	for (i = 1; i < n; i++)
		for (k = pl->preds.start[found[i]]; k < pl->preds.start[found[i] + 1]; k++) {
			unsigned int b = pl->preds.at[k];

			if (of[b] != id && pl->fn->graph.cfg.blocks[b].reachable) {
				of[b] = id;
				found[n++] = b;
			}
		}
	l->blocks = gsr_memdup(pl->p->scratch, found, n * sizeof(*found));
	l->n = n;
}

/* Finds loops by a depth-first search: a back edge leads to a block on the search's stack */
static unsigned int find_loops(struct plan *pl, struct gsr_loop **out)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned int n = cfg->n_blocks, depth = 0, found = 0, n_edges = 0, total = 0, i, *stack,
		     *at, *of;
	struct gsr_arena *a = pl->p->scratch;
	unsigned char *state = gsr_alloc(a, n + 1);
	struct back *edges;
	struct gsr_loop *list;

	for (i = 0; i < n; i++)
		total += cfg->blocks[i].n_succ;
	edges = gsr_alloc_array(a, total + 1, sizeof(*edges));
	stack = gsr_alloc_array(a, n + 1, sizeof(*stack));
	of = gsr_alloc_array(a, n + 1, sizeof(*of));
	at = gsr_alloc_array(a, n + 1, sizeof(*at));
	list = gsr_alloc_array(a, n + 1, sizeof(*list));
	stack[depth++] = 0;
	state[0] = 1;
	while (depth) {
		unsigned int b = stack[depth - 1], to;

		if (at[b] == cfg->blocks[b].n_succ) {
			state[b] = 2;
			depth--;
			continue;
		}
		to = cfg->blocks[b].succ[at[b]++];
		if (to >= n)
			continue;
		if (!state[to]) {
			state[to] = 1;
			stack[depth++] = to;
		} else if (state[to] == 1) {
			if (!of[to]) {
				list[found].head = to;
				of[to] = ++found;
			}
			edges[++n_edges] =
				(struct back){ .from = b, .next = list[of[to] - 1].edge };
			list[of[to] - 1].edge = n_edges;
		}
	}
	memset(of, 0, (n + 1) * sizeof(*of));
	for (i = 0; i < found; i++)
		find_blocks(pl, &list[i], edges, i + 1, of, stack);
	*out = list;
	return found;
}

/* The time that the instruction takes, estimated in simple instructions */
static unsigned int weight_of(const struct gsr_insn *insn)
{
	switch (insn->op) {
	case GSR_OP_LD:
		return gsr_insn_has(insn, "shared")				  ? 2 :
		       gsr_insn_has(insn, "param") || gsr_insn_has(insn, "const") ? 1 :
										    WAITS_LONG;
	case GSR_OP_LDU:
	case GSR_OP_ATOM:
	case GSR_OP_TEX:
	case GSR_OP_TLD4:
	case GSR_OP_SULD:
	case GSR_OP_CALL:
		return WAITS_LONG;
	case GSR_OP_DIV:
	case GSR_OP_REM:
	case GSR_OP_SQRT:
	case GSR_OP_MMA:
	case GSR_OP_WMMA:
		return 8;
	default:
		return 1;
	}
}

/*
 * The weight of an iteration of each loop: a block counts for its innermost loop, and for outer
 * loops with sites if its own loop has none
 */
static void weigh_loops(struct plan *pl, struct gsr_loop *list, unsigned int n_loops)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	const struct gsr_stmt *s;
	unsigned int i, k;

	pl->weight = gsr_alloc_array(pl->p->scratch, cfg->n_blocks + 1, sizeof(*pl->weight));
	pl->innermost = gsr_alloc_array(pl->p->scratch, cfg->n_blocks + 1,
					sizeof(*pl->innermost));
	for (i = 0; i < cfg->n_blocks; i++)
		for (s = cfg->blocks[i].first; s; s = s == cfg->blocks[i].last ? NULL : s->next)
			pl->weight[i] += s->kind == GSR_STMT_INSN ? weight_of(s->insn) : 0;
	for (i = 0; i < n_loops; i++)
		for (k = 0; k < list[i].n; k++) {
			const struct gsr_loop **in = &pl->innermost[list[i].blocks[k]];

			if (!*in || (*in)->n > list[i].n)
				*in = &list[i];
		}
	for (i = 0; i < n_loops; i++) {
		struct gsr_loop *l = &list[i];

		for (k = 0; k < l->n; k++) {
			const struct gsr_loop *in = pl->innermost[l->blocks[k]];

			if (in == l)
				l->weight += pl->weight[l->blocks[k]];
			else if (l->sites && !in->sites)
				l->weight += INNER_ROUNDS * pl->weight[l->blocks[k]];
		}
		l->weight += 2;
	}
}

static void note_registers(const struct plan *pl, struct gsr_point *pt, const uint64_t *live)
{
	unsigned int i, n = 0;

	if (pl->restart)
		return;
	for (i = 0; i < pl->live.n; i++)
		n += live[i / 64] >> (i % 64) & 1;
	pt->regs = gsr_alloc_array(pl->p->arena, n + 1, sizeof(*pt->regs));
	pt->vars = gsr_alloc_array(pl->p->arena, n + 1, sizeof(*pt->vars));
	pt->based = gsr_alloc_array(pl->p->arena, n + 1, sizeof(*pt->based));
	for (i = 0; i < pl->live.n; i++) {
		const struct gsr_var *v = pl->live.regs[i].var;
		unsigned int size = gsr_type_size(v->type);

		if (!(live[i / 64] >> (i % 64) & 1) ||
		    (pt->remat && gsr_remat(pl->c, pl->live.regs[i].name, pt)))
			continue;
		pt->regs[pt->n_regs] = pl->live.regs[i].name;
		pt->based[pt->n_regs] = gsr_is_based(pl->based, pl->live.regs[i].name);
		pt->vars[pt->n_regs++] = v;
		pt->words += size <= 4 ? 1 : size / 4;
	}
}

static unsigned int block_of(const struct gsr_cfg *cfg, const struct gsr_stmt *s)
{
	const struct gsr_stmt *at;
	unsigned int i;

	for (i = 0; i < cfg->n_blocks; i++)
		for (at = cfg->blocks[i].first; at; at = at->next) {
			if (at == s)
				return i;
			if (at == cfg->blocks[i].last)
				break;
		}
	return GSR_NO_BLOCK;
}

static unsigned int add_shared(struct gsr_resume *r, const struct gsr_var *v, unsigned int at)
{
	struct gsr_saved *s;
	uint64_t size = gsr_type_size(v->type) * (uint64_t)(v->vec ? v->vec : 1);
	unsigned int d;

	for (d = 0; d < v->n_dims; d++)
		size = v->dims[d] > SHARED_MAX || size > SHARED_MAX ? SHARED_MAX + 1 :
								      size * v->dims[d];
	if (v->linkage && !strcmp(v->linkage, "extern")) {
		r->dynamic = v->name;
		return at;
	}
	if (size > SHARED_MAX)
		return RECORD_MAX + 1;
	s = &r->shared[r->n_shared++];
	s->name = v->name;
	s->size = (unsigned int)size;
	s->align = v->align ? v->align : gsr_type_size(v->type) * (v->vec ? v->vec : 1);
	s->offset = at;
	return at + (s->size + 15) / 16 * 16;
}

/* Lays out shared memory and local arrays in the record; a reason against it or NULL */
static const char *layout_memory(struct plan *pl, struct gsr_resume *r)
{
	unsigned int room_shared = 0, room_local = 0, at = sizeof(struct gsr_record), local = 0, i,
		     k;
	const struct gsr_stmt *s;

	for (i = 0; i < pl->c->n; i++)
		room_shared += pl->c->fns[i]->has.vars.n;
	for (s = pl->fn->f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_VAR ||
		    (strcmp(s->var->space, "shared") && strcmp(s->var->space, "local")))
			continue;
		room_shared++;
		room_local++;
	}
	r->shared = gsr_alloc_array(pl->p->arena, room_shared + 1, sizeof(*r->shared));
	r->local = gsr_alloc_array(pl->p->arena, room_local + 1, sizeof(*r->local));
	for (i = 0; i < pl->c->n; i++)
		for (k = 0; k < pl->c->fns[i]->has.vars.n; k++) {
			const struct gsr_var *v = pl->c->fns[i]->has.vars.at[k];
			unsigned int n;

			for (n = 0; n < r->n_shared && strcmp(r->shared[n].name, v->name); n++)
				;
			if (n == r->n_shared)
				at = add_shared(r, v, at);
			if (at > RECORD_MAX)
				return "too much shared memory";
		}
	for (s = pl->fn->f->first; s; s = s->next) {
		if (s->kind != GSR_STMT_VAR)
			continue;
		if (!strcmp(s->var->space, "shared")) {
			at = add_shared(r, s->var, at);
			if (at > RECORD_MAX)
				return "too much shared memory";
		} else if (!strcmp(s->var->space, "local")) {
			struct gsr_saved *l = &r->local[r->n_local++];
			uint64_t size = gsr_type_size(s->var->type) *
					(uint64_t)(s->var->vec ? s->var->vec : 1);

			for (k = 0; k < s->var->n_dims; k++)
				size = size > LOCAL_MAX || s->var->dims[k] > LOCAL_MAX ?
					       LOCAL_MAX + 1 :
					       size * s->var->dims[k];
			l->name = s->var->name;
			l->size = (unsigned int)size;
			l->align = s->var->align ? s->var->align : gsr_type_size(s->var->type);
			l->offset = local;
			local += (l->size + 3) / 4;
			if (size > LOCAL_MAX || local > LOCAL_MAX / 4)
				return "too much local memory";
		}
	}
	r->fixed = at;
	r->words = 1 + local;
	return NULL;
}

static const char *unsaveable(const struct gsr_point *pt)
{
	unsigned int i, size;

	for (i = 0; i < pt->n_regs; i++) {
		size = gsr_type_size(pt->vars[i]->type);
		if (strcmp(pt->vars[i]->type, "pred") && size != 2 && size != 4 && size != 8 &&
		    size != 16)
			return "registers of a type that cannot be saved";
		if (pt->based[i] && size != 8)
			return "address of a parameter in a register of another size";
	}
	return NULL;
}

/* The statement behind which to check: the head's label, or the last directive that follows it */
static struct gsr_stmt *behind_label(const struct gsr_block *b)
{
	struct gsr_stmt *s = b->first;

	while (s != b->last && s->next && s->next->kind == GSR_STMT_DIRECTIVE)
		s = s->next;
	return s;
}

struct gsr_stmt *gsr_start_of(const struct gsr_block *b)
{
	return b->first->kind == GSR_STMT_LABEL ? behind_label(b)->next : b->first;
}

/*
 * Finds the blocks where a thread must not stop, because others may wait for it at a barrier with a
 * thread count: those from which it can reach such a barrier. A path is fine if it passes a plain
 * barrier first: the threads that wait at the counted one could not come to that in the original.
 */
static void find_awaited(struct plan *pl)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned int *found = gsr_alloc_array(pl->p->scratch, cfg->n_blocks + 1, sizeof(*found)),
		     n = 0, i, k;
	unsigned char *through = gsr_alloc(pl->p->scratch, cfg->n_blocks + 1);
	const struct gsr_stmt *s;
	struct gsr_barrier b;

	pl->awaited = gsr_alloc(pl->p->scratch, cfg->n_blocks + 1);
	for (i = 0; i < cfg->n_blocks; i++) {
		through[i] = 1;
		for (s = cfg->blocks[i].first; s && through[i];
		     s = s == cfg->blocks[i].last ? NULL : s->next) {
			if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(pl->fn->f, s->insn, &b) ||
			    b.warp)
				continue;
			if (b.counted && !pl->awaited[i]) {
				pl->awaited[i] = 1;
				found[n++] = i;
			}
			through[i] = b.counted || s->insn->guard;
		}
	}
	for (i = 0; i < n; i++)
		for (k = pl->preds.start[found[i]]; k < pl->preds.start[found[i] + 1]; k++) {
			unsigned int from = pl->preds.at[k];

			if (through[from] && !pl->awaited[from]) {
				pl->awaited[from] = 1;
				found[n++] = from;
			}
		}
}

bool gsr_needs_lanes(const struct gsr_insn *insn)
{
	return gsr_mask_of(insn) || (insn->op >= GSR_OP_WMMA && insn->op <= GSR_OP_MOVMATRIX);
}

/*
 * The same for lanes: blocks from which a thread can reach a warp-synchronous instruction, or a
 * call, before a plain barrier. No other lane waits for a lane that stops in any other block: the
 * lanes ahead of it are at most at that barrier, which takes part in the vote. Heads of loops that
 * warps enter converged count as warp-synchronous, as their lanes vote there.
 */
static void find_lanes_awaited(struct plan *pl)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned int *found = gsr_alloc_array(pl->p->scratch, cfg->n_blocks + 1, sizeof(*found)),
		     n = 0, i, k;
	unsigned char *through = gsr_alloc(pl->p->scratch, cfg->n_blocks + 1);
	const struct gsr_stmt *s;

	for (i = 1; i < pl->c->n; i++)
		pl->calls_wait |= pl->c->fns[i]->any.warp_sync || pl->c->fns[i]->has.matrices;
	pl->lanes_awaited = gsr_alloc(pl->p->scratch, cfg->n_blocks + 1);
	for (i = 0; i < cfg->n_blocks; i++) {
		bool waits = pl->in_loop[i] & HEAD && !cfg->blocks[i].split_warp;

		through[i] = 1;
		for (s = cfg->blocks[i].first; s && through[i];
		     s = s == cfg->blocks[i].last ? NULL : s->next) {
			if (s->kind != GSR_STMT_INSN)
				continue;
			waits |= gsr_needs_lanes(s->insn) ||
				 (s->insn->op == GSR_OP_CALL && pl->calls_wait);
			through[i] = !is_site(pl->fn->f, s) || s->insn->guard;
		}
		pl->lanes_awaited[i] = waits;
		if (waits)
			found[n++] = i;
	}
	for (i = 0; i < n; i++)
		for (k = pl->preds.start[found[i]]; k < pl->preds.start[found[i] + 1]; k++) {
			unsigned int from = pl->preds.at[k];

			if (through[from] && !pl->lanes_awaited[from]) {
				pl->lanes_awaited[from] = 1;
				found[n++] = from;
			}
		}
}

/*
 * Lanes that come apart in a region of blocks meet again behind it, in a block that the warp comes
 * to as a whole: the join. There they may wait for each other, if no lane of the region is waited
 * for elsewhere: then a lane that stops in the region goes to the join, too. Blocks from which such
 * a wait is reached first. A lane that waits at a plain barrier would be one, too: the others could
 * not go on to theirs.
 */
static void find_apart_awaited(struct plan *pl)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned int *found = gsr_alloc_array(pl->p->scratch, cfg->n_blocks + 1, sizeof(*found)),
		     n = 0, i, k;
	const struct gsr_stmt *s;

	pl->apart_awaited = gsr_alloc(pl->p->scratch, cfg->n_blocks + 1);
	for (i = 0; i < cfg->n_blocks; i++) {
		const bool apart = cfg->blocks[i].split_warp;

		for (s = cfg->blocks[i].first; s; s = s == cfg->blocks[i].last ? NULL : s->next) {
			if (s->kind != GSR_STMT_INSN)
				continue;
			pl->no_joins |= is_site(pl->fn->f, s) && (apart || s->insn->guard);
			pl->apart_awaited[i] |=
				apart && (gsr_needs_lanes(s->insn) ||
					  (s->insn->op == GSR_OP_CALL && pl->calls_wait));
		}
		if (pl->apart_awaited[i])
			found[n++] = i;
	}
	for (i = 0; i < n; i++)
		for (k = pl->preds.start[found[i]]; k < pl->preds.start[found[i] + 1]; k++) {
			unsigned int from = pl->preds.at[k];

			if (cfg->blocks[from].split_warp && !pl->apart_awaited[from]) {
				pl->apart_awaited[from] = 1;
				found[n++] = from;
			}
		}
}

/* The join of a loop whose lanes come apart, or GSR_NO_BLOCK */
static unsigned int join_of(const struct plan *pl, unsigned int head)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned int b = cfg->blocks[head].ipdom;

	while (b < cfg->n_blocks && cfg->blocks[b].split_warp)
		b = cfg->blocks[b].ipdom;
	/* the code in front of a loop's check may be moved with the loop */
	if (b >= cfg->n_blocks || pl->in_loop[b] & HEAD || pl->no_joins || pl->apart_awaited[head])
		return GSR_NO_BLOCK;
	return b;
}

/* Why a block-task that is left there, in @block, cannot begin again; NULL: it can, or need not */
static const char *no_restart_reason(const struct plan *pl, unsigned int block,
				     const struct gsr_stmt *s)
{
	unsigned int before = pl->restart ? gsr_effects_before(pl->effects, block, s) : 0;

	return before & GSR_EFFECT_OTHER ? behind_effect : before ? behind_store : NULL;
}

static bool needs_join(const struct plan *pl, unsigned int head)
{
	return pl->warp_sync && pl->fn->graph.cfg.blocks[head].split_warp &&
	       pl->lanes_awaited[head];
}

/* Why the loop cannot have a point; NULL: it can */
static const char *no_point_reason(const struct plan *pl, const struct gsr_resume *r,
				   const struct gsr_loop *l)
{
	const struct gsr_block *head = &pl->fn->graph.cfg.blocks[l->head], *join;
	const char *reason;

	/* in a loop with barriers a thread soon comes to the next barrier */
	if (pl->in_loop[l->head] & NEAR_SITE)
		return says_nothing;
	if (r->n_points - r->n_sites >= HEADS_MAX)
		return "a loop has no point: too many have one";
	if (head->first->kind != GSR_STMT_LABEL ||
	    (needs_join(pl, l->head) && join_of(pl, l->head) == GSR_NO_BLOCK))
		return "a loop has no point: its lanes may be apart while others of the warp are "
		       "waited for";
	if (pl->awaited && pl->awaited[l->head])
		return "a loop has no point: others may wait for its threads at a barrier with a "
		       "thread count";
	reason = no_restart_reason(pl, l->head, head->first);
	if (reason || !needs_join(pl, l->head))
		return reason;
	join = &pl->fn->graph.cfg.blocks[join_of(pl, l->head)];
	return no_restart_reason(pl, join_of(pl, l->head), join->first);
}

static void add_head(const struct plan *pl, struct gsr_resume *r, const struct gsr_loop *l,
		     uint64_t *live)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	struct gsr_block *head = &cfg->blocks[l->head];
	struct gsr_point *pt = &r->points[r->n_points++];
	unsigned int k;

	*pt = (struct gsr_point){ .at = behind_label(head),
				  .warp = pl->warp_sync && !head->split_warp,
				  .weight = l->weight, .block = l->head };
	/* a loop around others with points of their own cannot be copied */
	for (k = 1; k < l->n; k++)
		if ((pl->in_loop[l->blocks[k]] & HEAD) &&
		    (!l->sites || pl->innermost[l->blocks[k]]->sites))
			break;
	pt->head = head->first;
	pt->insns = k < l->n ? 0 : gsr_loop_text(cfg, l->blocks, l->n, &pt->last);
	if (pl->restart)
		return;
	if (gsr_stripmine_rounds(pt, r->look))
		pt->remat = gsr_alloc_array(pl->p->arena, GSR_REMAT_MAX, sizeof(*pt->remat));
	memcpy(live, &pl->live.in[(size_t)l->head * pl->live.words],
	       pl->live.words * sizeof(*live));
	note_registers(pl, pt, live);
}

/* The point of the join of a loop, which loops may share */
static unsigned int add_join(const struct plan *pl, struct gsr_resume *r, unsigned int head,
			     uint64_t *live)
{
	unsigned int b = join_of(pl, head), i;
	struct gsr_stmt *at = gsr_start_of(&pl->fn->graph.cfg.blocks[b]);
	struct gsr_point *pt;

	for (i = r->n_sites; i < r->n_points; i++)
		if (r->points[i].is_join && r->points[i].at == at)
			return i;
	pt = &r->points[r->n_points++];
	*pt = (struct gsr_point){ .at = at, .is_join = true, .block = b };
	if (!pl->restart)
		memcpy(live, &pl->live.in[(size_t)b * pl->live.words],
		       pl->live.words * sizeof(*live));
	note_registers(pl, pt, live);
	return i;
}

/*
 * Barriers are the only points, and all threads reach each. Then all threads also reach the heads
 * of loops with barriers, equally often, and can vote there instead of at each barrier. That vote
 * is one more barrier, but a rare one, and the loop's own barriers stay as they are. As it is a
 * barrier of all threads, no thread may be waited for by others on its way there.
 */
static void vote_at_heads(const struct plan *pl, struct gsr_resume *r, const struct gsr_loop *list,
			  unsigned int n_loops, uint64_t *live, const char **note)
{
	const struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	unsigned char *voted = gsr_alloc(pl->p->scratch, n_loops + 1);
	unsigned int i, n = 0, n_heads = 0;
	bool waits = false;

	r->in_place = true;
	r->look = pl->p->look ? pl->p->look : LOOK_IN_PLACE;
	for (i = 0; i < cfg->n_blocks; i++)
		waits |= (pl->in_loop[i] & WAITS) != 0;
	for (i = 0; i < n_loops && n_heads < HEADS_MAX; i++) {
		unsigned int head = list[i].head;

		voted[i] = list[i].sites && !waits &&
			   cfg->blocks[head].first->kind == GSR_STMT_LABEL &&
			   !(pl->awaited && pl->awaited[head]) &&
			   !no_restart_reason(pl, head, cfg->blocks[head].first);
		n_heads += voted[i];
	}
	for (i = 0; i < r->n_sites; i++) {
		unsigned int b = block_of(cfg, r->points[i].at);
		const struct gsr_loop *in = pl->innermost[b];
		const char *reason = no_restart_reason(pl, b, r->points[i].at);

		/* outside of loops it would not last long anyway */
		if (reason && in)
			*note = reason;
		if (reason || (in && voted[in - list]))
			continue;
		r->points[n] = r->points[i];
		r->points[n++].weight =
			in ? in->weight / in->sites + 2 : LOOK_IN_PLACE / 16;
	}
	r->n_sites = r->n_points = n;
	for (i = 0; i < n_loops; i++)
		if (voted[i])
			add_head(pl, r, &list[i], live);
}

/* Why threads that meet at a barrier could not begin again; NULL: at each they can */
static const char *barrier_behind_effect(const struct plan *pl, const struct gsr_resume *r)
{
	const char *reason = NULL;
	unsigned int i;

	for (i = 0; i < r->n_sites && !reason; i++)
		reason = no_restart_reason(pl, block_of(&pl->fn->graph.cfg, r->points[i].at),
					   r->points[i].at);
	return reason;
}

static const char *find_points(struct plan *pl, struct gsr_resume *r, const char **note, bool *rows)
{
	struct gsr_cfg *cfg = &pl->fn->graph.cfg;
	struct gsr_arena *a = pl->p->scratch;
	unsigned int n = cfg->n_blocks, n_loops, i, k, b;
	bool counted = false, waits = false;
	struct gsr_barrier bar;
	const char *reason;
	struct gsr_stmt *s;
	struct gsr_loop *loop;
	uint64_t *live;

	pl->holds_site = gsr_alloc_array(a, n + 1, sizeof(*pl->holds_site));
	pl->in_loop = gsr_alloc(a, n + 1);
	b = GSR_NO_BLOCK;
	for (s = pl->fn->f->first, i = 0; s; s = s->next) {
		if (i < n && cfg->blocks[i].first == s)
			b = i++;
		if (is_site(pl->fn->f, s)) {
			pl->holds_site[b]++;
			r->n_sites++;
			r->red |= gsr_insn_has(s->insn, "red");
		} else if (s->kind == GSR_STMT_INSN && gsr_barrier_of(pl->fn->f, s->insn, &bar)) {
			counted |= bar.counted;
		}
	}
	if (r->n_sites > SITES_MAX)
		return "too many barriers";
	pl->preds = gsr_preds(pl->p->scratch, &pl->fn->graph.cfg);
	if (counted)
		find_awaited(pl);
	n_loops = find_loops(pl, &loop);
	for (i = 0; i < n_loops; i++) {
		for (k = 0; k < loop[i].n; k++) {
			pl->in_loop[loop[i].blocks[k]] |= IN_LOOP;
			loop[i].sites += pl->holds_site[loop[i].blocks[k]];
		}
		pl->in_loop[loop[i].head] |= HEAD;
		for (k = 0; k < loop[i].n && loop[i].sites; k++)
			pl->in_loop[loop[i].blocks[k]] |= NEAR_SITE;
	}
	weigh_loops(pl, loop, n_loops);
	for (i = 0; i < n; i++)
		for (s = cfg->blocks[i].first; pl->in_loop[i] && s; s = s->next) {
			enum gsr_wait wait =
				s->kind == GSR_STMT_INSN ? gsr_may_wait(s->insn) : GSR_WAIT_NONE;

			if (wait == GSR_WAIT_ALL)
				return may_wait;
			pl->in_loop[i] |= wait == GSR_WAIT_BLOCK ? WAITS : 0;
			if (s == cfg->blocks[i].last)
				break;
		}
	gsr_uniform(a, pl->fn->f, &pl->fn->graph, true);
	if (pl->warp_sync) {
		find_lanes_awaited(pl);
		find_apart_awaited(pl);
	}
	if (pl->restart)
		pl->effects = gsr_effects(a, pl->c);
	else if ((reason = gsr_liveness(&pl->live, a, pl->fn)))
		return reason;
	live = gsr_alloc_array(a, pl->live.words, sizeof(*live));
	/* a loop's head, and its join */
	r->points = gsr_alloc_array(pl->p->arena, r->n_sites + 2 * n_loops + 1,
				    sizeof(*r->points));
	for (s = pl->fn->f->first; s; s = s->next)
		if (is_site(pl->fn->f, s)) {
			struct gsr_point *pt = &r->points[r->n_points++];

			pt->at = s;
			if (!pl->restart)
				gsr_live_before(&pl->live, cfg, block_of(cfg, s), s, live);
			note_registers(pl, pt, live);
		}
	for (i = 0; i < n_loops; i++) {
		reason = no_point_reason(pl, r, &loop[i]);
		for (k = 0; reason && k < loop[i].n; k++)
			waits |= pl->in_loop[loop[i].blocks[k]] & WAITS;
		if (reason) {
			*note = *reason ? reason : *note;
			continue;
		}
		if (pl->warp_sync && (!cfg->blocks[loop[i].head].split_warp ||
				      needs_join(pl, loop[i].head)))
			*rows = true;
		add_head(pl, r, &loop[i], live);
		k = r->n_points - 1;
		if (needs_join(pl, loop[i].head))
			r->points[k].join = add_join(pl, r, loop[i].head, live);
	}
	/*
	 * A thread that polls in a loop for one that has left would never go on: then loops get
	 * no points. A thread that leaves at a barrier is fine, as the barrier waits for all.
	 */
	if (waits && r->n_points > r->n_sites) {
		r->n_points = r->n_sites;
		*rows = false;
		*note = may_wait;
	}
	if (!r->early && r->n_points == r->n_sites)
		vote_at_heads(pl, r, loop, n_loops, live, note);
	else if (r->n_points && (reason = barrier_behind_effect(pl, r)))
		return reason;
	if (!r->in_place)
		gsr_find_reconvs(pl->p, pl->fn, r, loop, n_loops, pl->calls_wait);
	r->commits = pl->restart && !r->in_place && gsr_has_effects(pl->effects);
	if (r->commits && !*note)
		*note = finished;
	return r->n_points ? NULL : *note ? *note : "no loops and no barriers";
}

struct gsr_resume *gsr_resume_plan(struct gsr_pass *p, struct gsr_fn *fn,
				   const struct gsr_closure *c, bool early, int id, bool restart,
				   bool *rows, const char **note)
{
	struct gsr_resume *r = gsr_alloc(p->arena, sizeof(*r));
	struct plan pl = { .p = p, .fn = fn, .c = c, .restart = restart };
	unsigned int i, most = 0;
	bool needs_rows = false;
	const char *reason;

	*note = NULL;
	r->early = early;
	r->restart = restart;
	r->id = id;
	r->look = p->look ? p->look : LOOK;
	for (i = 0; i < c->n; i++) {
		r->cp_async |= c->fns[i]->has.cp_async;
		pl.warp_sync |= c->fns[i]->any.warp_sync || c->fns[i]->has.matrices;
	}
	reason = check_closure(&pl);
	reason = reason ? reason : find_points(&pl, r, note, &needs_rows);
	gsr_arena_reset(p->scratch);
	if (restart)
		r->fixed = sizeof(struct gsr_record);
	else if (!reason)
		reason = layout_memory(&pl, r);
	for (i = 0; i < r->n_points && !reason; i++) {
		reason = unsaveable(&r->points[i]);
		most = r->points[i].words > most ? r->points[i].words : most;
	}
	r->words += most;
	if (!reason && most > WORDS_MAX)
		reason = "too many registers to save";
	if (reason) {
		*note = reason;
		return NULL;
	}
	/* in the record, local memory follows the point's number and the registers */
	for (i = 0; i < r->n_local; i++)
		r->local[i].offset += 1 + most;
	*rows |= needs_rows;
	return r;
}
