// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of a kernel's body: returns become jumps to it. If threads may return while others still
 * use plain barriers, each such barrier becomes a site: the thread notes its number and jumps to
 * the meeting, the one point where all threads vote "somebody is still in the body". Threads from
 * sites vote true and continue behind their sites; finished threads vote false and vote again,
 * until nobody voted true. So finished threads keep taking part in barriers, and the last vote is
 * the barrier at the end.
 *
 * In: a kernel, and which barriers are converted. Out: jumps in place of returns and of such
 * barriers, and the meeting. Assumes that no inner scopes enclose sites (scopes.c), and that the
 * loop inserts the meeting at the end. The PTX is in meeting.ptx.
 */
#include <string.h>
#include "transform.h"
#include "rewriter/transform/meeting.ptx.h"

void gsr_returns(struct gsr_pass *p, struct gsr_function *f, unsigned int *returns)
{
	struct gsr_stmt *s;

	*returns = 0;
	for (s = f->first; s; s = s->next) {
		struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;
		struct gsr_operand *to;

		if (!insn || (insn->op != GSR_OP_RET && insn->op != GSR_OP_EXIT))
			continue;
		to = gsr_alloc(p->arena, sizeof(*to));
		to->kind = GSR_OPND_SYM;
		to->name = gsr_intern_str(p->arena, gsr_expand(p, "$#end"));
		insn->op = GSR_OP_BRA;
		insn->name = gsr_intern_str(p->arena, "bra");
		insn->opnds = to;
		insn->n_opnds = 1;
		++*returns;
	}
}

/* The start of a site in front of @s; a guarded one is branched around */
static unsigned int insert_site_begin(struct gsr_pass *p, struct gsr_function *f,
				      struct gsr_stmt *s, unsigned int i, bool resumable,
				      const char *before)
{
	unsigned int n = 0;

	if (s->insn->guard) {
		n += gsr_insert(p, f, s, gsr_sprintf(p->arena, "bra $#past_%u;", i));
		s->prev->insn->guard = s->insn->guard;
		s->prev->insn->guard_negated = !s->insn->guard_negated;
	}
	if (resumable)
		gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#again_%u:", i));
	n += gsr_insert(p, f, s, before);
	return n;
}

/* The jump to the meeting, and the label to continue at */
static unsigned int insert_site_jump(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
				     unsigned int i)
{
	return gsr_insert(p, f, s, gsr_sprintf(p->arena, go_to_meeting, i));
}

static bool is_and(const struct gsr_insn *insn)
{
	return gsr_insn_has(insn, "and");
}

/*
 * The thread's operand of a reduction, which is a sum of 0 and 1. For an "and" it is 1 if the
 * predicate is false: so finished threads, which add 0, change no result.
 */
void gsr_contribute(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s, const char *reg)
{
	const struct gsr_insn *insn = s->insn;
	const struct gsr_operand *pred = &insn->opnds[insn->n_opnds - 1];

	gsr_insert(p, f, s,
		   gsr_sprintf(p->arena,
			       is_and(insn) != pred->negated ? "selp.u32 %s, 0, 1, %%#p0;" :
							       "selp.u32 %s, 1, 0, %%#p0;",
			       reg));
	if (pred->kind == GSR_OPND_INT) {
		s->prev->insn->op = GSR_OP_MOV;
		s->prev->insn->name = gsr_intern_str(p->arena, "mov");
		s->prev->insn->n_opnds = 2;
		s->prev->insn->opnds[1].ival = (pred->ival != 0) != is_and(insn);
		s->prev->insn->opnds[1].text = NULL;
	} else {
		s->prev->insn->opnds[3] = *pred;
		s->prev->insn->opnds[3].negated = false;
	}
}

/* Derives the result from the sum */
unsigned int gsr_outcome(struct gsr_pass *p, struct gsr_function *f, struct gsr_stmt *s,
			 const char *reg)
{
	const struct gsr_insn *insn = s->insn;

	if (insn->opnds[0].kind != GSR_OPND_REG)
		return 0;
	gsr_insert(p, f, s,
		   gsr_sprintf(p->arena,
			       gsr_insn_has(insn, "popc") ? "mov.u32 %%#v, %s;" :
			       is_and(insn)		  ? "setp.eq.u32 %%#p0, %s, 0;" :
							    "setp.ne.u32 %%#p0, %s, 0;",
			       reg));
	s->prev->insn->opnds[0] = insn->opnds[0];
	return 1;
}

static unsigned int convert_reduction(struct gsr_pass *p, struct gsr_function *f,
				      struct gsr_stmt *s, unsigned int i, bool resumable)
{
	unsigned int n = insert_site_begin(p, f, s, i, resumable, "");

	gsr_contribute(p, f, s, "%#v");
	n += 1 + insert_site_jump(p, f, s, i);
	return n + gsr_outcome(p, f, s, "%#v");
}

unsigned int gsr_convert_barriers(struct gsr_pass *p, struct gsr_function *f,
				  struct gsr_sites *sites, bool resumable)
{
	struct gsr_stmt *s, *next;
	struct gsr_barrier b;
	unsigned int n = 0;

	for (s = f->first; s; s = s->next)
		if (s->kind == GSR_STMT_INSN && gsr_barrier_of(f, s->insn, &b) && !b.warp &&
		    !b.cluster && !b.counted)
			sites->red |= b.red;
	for (s = f->first; s; s = next) {
		unsigned int i = sites->n;

		next = s->next;
		if (s->kind != GSR_STMT_INSN || !gsr_barrier_of(f, s->insn, &b) || b.warp ||
		    b.cluster || b.counted)
			continue;
		if (b.red) {
			n += convert_reduction(p, f, s, i, resumable);
		} else {
			n += insert_site_begin(p, f, s, i, resumable,
					       sites->red ? "mov.u32 %#v, 0;" : "");
			n += insert_site_jump(p, f, s, i);
		}
		if (s->insn->guard)
			gsr_insert(p, f, s, gsr_sprintf(p->arena, "$#past_%u:", i));
		gsr_remove(f, s);
		n--;
		sites->n++;
	}
	if (sites->red)
		gsr_insert(p, f, f->first, ".reg .b32 %#v;");
	return n;
}

/*
 * Instructions that wait for all lanes of a warp, if lanes may have finished. Each becomes a site,
 * and its mask becomes that of the lanes that came from such sites. In the original, too, all lanes
 * that have not finished wait at one of them.
 */
unsigned int gsr_convert_warps(struct gsr_pass *p, struct gsr_fn *fn, struct gsr_sites *sites)
{
	struct gsr_function *f = fn->f;
	unsigned int n = 0, i;
	struct gsr_stmt *s;

	for (i = 0; i < fn->graph.cfg.n_blocks; i++) {
		const struct gsr_block *b = &fn->graph.cfg.blocks[i];

		for (s = b->first; b->left_warp && s; s = s->next) {
			unsigned int at = GSR_SITE_WARP + sites->warps;
			struct gsr_insn *insn = s->kind == GSR_STMT_INSN ? s->insn : NULL;

			if (insn && gsr_warp_sync(f, insn) && gsr_full_mask(f, insn)) {
				struct gsr_operand *mask = &insn->opnds[insn->n_opnds - 1];

				n += insert_site_begin(p, f, s, at, false, "");
				n += insert_site_jump(p, f, s, at);
				if (insn->guard)
					gsr_insert(p, f, s->next,
						   gsr_sprintf(p->arena, "$#past_%u:", at));
				insn->guard = NULL;
				*mask = (struct gsr_operand){
					.kind = GSR_OPND_REG,
					.name = gsr_intern_str(p->arena, gsr_expand(p, "%#w")),
				};
				sites->warps++;
			}
			if (s == b->last)
				break;
		}
	}
	if (sites->warps)
		gsr_insert(p, f, f->first, ".reg .b32 %#w;");
	return n;
}

unsigned int gsr_dispatch(struct gsr_pass *p, struct gsr_function *f, const char *to,
			  unsigned int first, unsigned int end)
{
	unsigned int mid = first + (end - first) / 2, n;

	if (end - first == 1)
		return gsr_insert_format(p, f, NULL, "bra $#%s_%u;\n", to, first);
	n = gsr_insert_format(p, f, NULL, search, mid,
			      end - mid == 1 ? to : gsr_sprintf(p->arena, "%s_from", to));
	n += gsr_dispatch(p, f, to, first, mid);
	if (end - mid > 1) {
		gsr_insert_format(p, f, NULL, "$#%s_from_%u:\n", to, mid);
		n += gsr_dispatch(p, f, to, mid, end);
	}
	return n;
}

/*
 * The vote "somebody is in the body"; %#p0: this thread is. The assembler must not rotate the
 * meeting's loop, which would duplicate its barriers, nor make lanes that leave it wait for those
 * that stay. So lanes that stay branch back first, and all other paths lead back here: that makes
 * it one loop which all threads leave together.
 */
unsigned int gsr_vote(struct gsr_pass *p, struct gsr_function *f, bool red, int id,
		      const char *done)
{
	unsigned int n = gsr_insert_format(p, f, NULL, vote_in_block, id);

	if (red)
		n += gsr_insert_format(p, f, NULL, gsr_sum_up, id);
	return n + gsr_insert_format(p, f, NULL, vote_again, done);
}

/*
 * Every lane of a warp comes to the meeting: from a site, from its return and, in kernels with
 * sites of barriers, from the start of the body (the last site). So the warp is converged there. It
 * must be: barriers count warps, and lanes of one warp that wait at different barrier instructions
 * hang.
 */
unsigned int gsr_meeting(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites,
			 int id)
{
	unsigned int n;

	gsr_insert(p, f, f->first, ".reg .b32 %#s;");
	n = gsr_insert(p, f, NULL, sites->red ? "mov.u32 %#v, 0;\n" : "");
	n += gsr_insert(p, f, NULL, begin_meeting);
	if (sites->warps) {
		n += gsr_insert(p, f, NULL, gsr_sprintf(p->arena, vote_in_warp, GSR_SITE_WARP));
		n += gsr_dispatch(p, f, "site", GSR_SITE_WARP, GSR_SITE_WARP + sites->warps);
		n += gsr_insert(p, f, NULL, "$#block:\n");
	}
	if (!sites->n)
		return id < 0 ? n :
				n + gsr_insert(p, f, NULL,
					       gsr_sprintf(p->arena, "bar.sync %d;\n", id));
	n += gsr_vote(p, f, sites->red, id, "done");
	return n + gsr_dispatch(p, f, "site", 0, sites->n + 1);
}
