// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The worker's loop around the body (abi.h). State that must survive from one fetch to the next is
 * in shared memory; only the ids that the kernel reads, and the number of block-tasks left in the
 * batch, are held in registers across the body.
 *
 * The PTX is in loop.ptx and static.ptx; here is which parts of it a twin needs, in which order.
 *
 * Cold paths are placed out of line (insert_cold_paths()): fetching is single-threaded and on the
 * thread block's critical path.
 *
 * In: a kernel whose body ends at $#end and reads its ids where the passes say. Out: the twin.
 * Assumes that all passes of transform/ have run.
 */
#include <string.h>
#include "runtime.h"
#include "rewriter/runtime/loop.ptx.h"
#include "rewriter/runtime/static.ptx.h"

static const struct {
	const char *count_up, *carry, *wrap;
} component[GSR_IDS_ALL] = {
	{ count_up_x, carry_x, wrap_x }, { count_up_y, carry_y, wrap_y }, { .count_up = count_up_z }
};

/* Advances to the next block-task of the batch, or to the next fetch */
static unsigned int insert_advance(struct gsr_pass *p, struct gsr_function *f,
				   const struct gsr_cleanup *cleanup, const struct gsr_ids *ids,
				   int id)
{
	unsigned int n = 0, i;

	if (cleanup->mbarriers || ids->shared)
		n += gsr_insert_text(p, f, NULL, gsr_not_first);
	if (cleanup->mbarriers) {
		n += gsr_insert_text(p, f, NULL, "@%#p0 bra $#unmade;\n");
		n += gsr_insert_text(p, f, NULL, gsr_mbarriers_down);
		n += gsr_insert_text(p, f, NULL, "$#unmade:\n");
	}
	n += gsr_insert_text(p, f, NULL, load_width);
	for (i = 0; i < ids->held && i < GSR_IDS_ALL; i++) {
		n += gsr_insert_text(p, f, NULL, component[i].count_up);
		if (i + 1 < ids->held)
			n += gsr_insert_text(p, f, NULL, component[i].carry);
		if (component[i].wrap)
			n += gsr_insert_text(p, f, NULL, component[i].wrap);
	}
	n += gsr_insert_text(p, f, NULL, "sub.u32 %#cn, %#cn, 2;\n");
	if (ids->shared)
		n += gsr_insert_text(p, f, NULL, publish_ids);
	if (cleanup->mbarriers || ids->shared)
		n += gsr_insert_format(p, f, NULL, gsr_converge_and_sync, id);
	n += gsr_insert_text(p, f, NULL, repeat_body);
	n += gsr_insert_text(p, f, NULL, first_come);
	return n + gsr_insert_text(p, f, NULL, fetch_again);
}

static struct gsr_stmt *first_code(struct gsr_stmt *s)
{
	while (s && s->kind == GSR_STMT_VAR)
		s = s->next;
	return s;
}

static unsigned int insert_prologue(struct gsr_pass *p, struct gsr_function *f,
				    const struct gsr_sites *sites,
				    const struct gsr_cleanup *cleanup, const struct gsr_ids *ids,
				    int id, const struct gsr_resume *r)
{
	struct gsr_stmt *body = f->first, *code;
	unsigned int n = 0;

	if (cleanup->alloca)
		n += gsr_insert(p, f, body, ".reg .b64 %#sp; stacksave.u64 %#sp;");
	body = f->first;
	gsr_insert_text(p, f, body, declarations);
	if (cleanup->warpsync)
		n += gsr_insert_format(p, f, body, gsr_warpsync_init, cleanup->warpsync);
	if (r)
		n += gsr_insert_text(p, f, body, gsr_not_first);
	n += gsr_insert_text(p, f, body, r ? init_resumable : start);
	n += gsr_position_claim(p, f, body, r, ids->shared);
	if (cleanup->mbarriers)
		n += gsr_insert_text(p, f, body, gsr_mbarriers_none);
	if (cleanup->swbarrier)
		n += gsr_insert_format(p, f, body, gsr_swbarrier_init, "%#1", "%#0");
	n += gsr_insert_text(p, f, body, "$#next:\n");
	if (r)
		n += gsr_insert_text(p, f, body, gsr_not_first);
	n += gsr_insert_text(p, f, body, r ? "@%#p0 bra $#wait;\n" : unless_fetching);
	n += gsr_insert_text(p, f, body, r ? find_copy : gsr_queue_rest);
	n += gsr_insert_text(p, f, body, schedule);
	n += r ? gsr_resume_look(p, f, body) : gsr_insert_text(p, f, body, gsr_queue_count);
	if (p->modes)
		n += gsr_insert_text(p, f, body, unless_window);
	n += gsr_insert_text(p, f, body, test_copy);
	n += gsr_insert_text(p, f, body, leave_if_excluded);
	if (p->modes)
		n += gsr_insert_text(p, f, body, "$#fetch:\n");
	if (r)
		n += gsr_resume_fetch(p, f, body, r);
	n += gsr_queue_take(p, f, body, r, r ? GSR_IDS_ALL : ids->held);
	if (r) {
		n += gsr_insert_text(p, f, body, tell_resumable);
		n += gsr_insert_text(p, f, body, count_ran);
		n += gsr_resume_arm(p, f, body, r);
	}
	n += gsr_insert_text(p, f, body,
			     r		? stop_resumable :
			     ids->aside ? tell_ids_aside :
					  tell_ids);
	if (!r) {
		if (ids->aside) {
			n += gsr_insert_text(p, f, body, choose_place);
			n += gsr_insert_text(p, f, body, ids->held > 1 ? tell_all : tell_x);
		}
		n += gsr_insert_text(p, f, body, count_ran);
		n += gsr_insert_text(p, f, body, "$#wait:\n");
	}
	n += gsr_insert_format(p, f, body, gsr_converge_and_sync, id);
	if (r || !ids->aside)
		n += gsr_insert_text(p, f, body, r ? read_resumable : read_ids);
	if (!r && ids->aside) {
		n += gsr_insert_text(p, f, body, choose_place);
		n += gsr_insert_text(p, f, body, ids->held > 1 ? read_all : read_x);
		n += gsr_insert_text(p, f, body, leave_if_stopped);
	}
	/* in this order; the jump comes last */
	code = first_code(body);
	if (!r && sites->n)
		n += gsr_insert(
			p, f, code,
			gsr_sprintf(p->arena, "%smov.u32 %%#s, %u;\nbra $#meet;\n$#site_%u:\n",
				    sites->red ? "mov.u32 %#v, 0;\n" : "", sites->n, sites->n));
	if (r)
		n += gsr_resume_start(p, f, code, r);
	if (r && r->early && r->red)
		n += gsr_insert_text(p, f, code, "mov.u32 %#v, 0;\n");
	if (r && r->early) {
		n += gsr_insert_text(p, f, code, r->restart ? enter_at_start : choose_entry);
		n += gsr_insert_text(p, f, code, enter_by_meeting);
	} else if (r && !r->restart) {
		n += gsr_insert_text(p, f, code, enter_body);
	}
	return n;
}

static unsigned int insert_cold_paths(struct gsr_pass *p, struct gsr_function *f, bool resumable,
				      const struct gsr_ids *ids)
{
	unsigned int n = gsr_insert_text(p, f, NULL, "$#due:\n");

	n += gsr_insert_text(p, f, NULL, poll_copies);
	if (resumable)
		n += gsr_insert_text(p, f, NULL, excluded_resumable);
	n += gsr_queue_seldom(p, f, resumable, resumable ? GSR_IDS_ALL : ids->held);
	if (!resumable)
		n += gsr_insert_text(p, f, NULL, stop);
	if (!p->modes)
		n += gsr_insert_text(p, f, NULL, stay);
	return p->modes ? n + gsr_insert_text(p, f, NULL, static_take) : n;
}

static bool calls_assertfail(const struct gsr_stmt *s)
{
	unsigned int i;

	for (i = 0; s->kind == GSR_STMT_INSN && s->insn->op == GSR_OP_CALL && i < s->insn->n_opnds;
	     i++)
		if (s->insn->opnds[i].kind == GSR_OPND_SYM &&
		    !strcmp(s->insn->opnds[i].name, "__assertfail"))
			return true;
	return false;
}

/* In the kernel itself; functions do not have its parameters */
static unsigned int open_gate_at_assertions(struct gsr_pass *p, struct gsr_function *f)
{
	unsigned int n = 0;
	struct gsr_stmt *s;

	for (s = f->first; s; s = s->next)
		if (calls_assertfail(s)) {
			n += gsr_unguard(p, f, s);
			n += gsr_insert_text(p, f, s, open_gate);
		}
	return n;
}

unsigned int gsr_loop(struct gsr_pass *p, struct gsr_function *f, const struct gsr_sites *sites,
		      const struct gsr_cleanup *cleanup, const struct gsr_ids *ids, int id,
		      const struct gsr_resume *r)
{
	unsigned int n = open_gate_at_assertions(p, f);

	n += insert_prologue(p, f, sites, cleanup, ids, id, r);
	n += gsr_insert_text(p, f, NULL, "$#end:\n");
	if (cleanup->alloca)
		n += gsr_insert_text(p, f, NULL, "stackrestore.u64 %#sp;\n");
	if (cleanup->cp_async)
		n += gsr_insert_text(p, f, NULL, "cp.async.wait_all;\n");
	if (cleanup->bulk)
		n += gsr_insert_text(p, f, NULL, finish_bulk_copies);
	if (r)
		n += gsr_resume_tail(p, f, r);
	else if (sites->n || sites->warps)
		n += gsr_meeting(p, f, sites, ids->alone ? -1 : id) +
		     gsr_insert_text(p, f, NULL, "$#done:\n");
	else if (ids->alone)
		n += gsr_insert_text(p, f, NULL, "bar.warp.sync -1;\n");
	else
		n += gsr_insert_format(p, f, NULL,
				       ids->aside ? sync_between : gsr_converge_and_sync, id);
	if (!r)
		n += insert_advance(p, f, cleanup, ids, id);
	n += gsr_insert_text(p, f, NULL, "$#leave:\n");
	n += gsr_insert_text(p, f, NULL, r ? gsr_not_first : is_leaver);
	n += gsr_insert_text(p, f, NULL, load_for_leave);
	if (r)
		n += gsr_insert_text(p, f, NULL, load_early);
	if (r)
		n += gsr_insert_text(p, f, NULL, release_record);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, static_leave);
	n += gsr_position_release(p, f);
	n += gsr_insert_text(p, f, NULL, count_done);
	if (!r)
		n += gsr_insert_text(p, f, NULL, p->modes ? skip_count_modes : skip_count);
	n += gsr_insert_text(p, f, NULL, count_left);
	if (r || p->modes)
		n += gsr_insert_text(p, f, NULL, tell_if_early);
	if (r)
		n += gsr_insert_text(p, f, NULL, tell_if_waiting);
	if (p->modes)
		n += gsr_insert_text(p, f, NULL, static_waits);
	else if (r)
		n += gsr_insert_text(p, f, NULL, load_word);
	n += gsr_insert_text(p, f, NULL, tell_count);
	n += gsr_insert_format(p, f, NULL, end_together, id);
	return n + insert_cold_paths(p, f, r, ids);
}
