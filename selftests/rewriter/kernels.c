// SPDX-License-Identifier: LGPL-2.1-or-later
/* The corpus: each kernel's tier and exact reason, and what its twin keeps. */
#include "test.h"

static const struct gsr_kernel *find_kernel(const struct gsr_rewrite *rw, const char *name)
{
	unsigned int i;

	for (i = 0; i < rw->n_kernels; i++)
		if (!strcmp(rw->kernels[i].name, name))
			return &rw->kernels[i];
	return NULL;
}

static bool reads_ids(const struct gsr_operand *o)
{
	unsigned int i;

	if (o->kind == GSR_OPND_REG && (!strcmp(o->name, "%ctaid") || !strcmp(o->name, "%nctaid")))
		return true;
	for (i = 0; i < o->n_items; i++)
		if (reads_ids(&o->items[i]))
			return true;
	return false;
}

/*
 * What holds of every twin: parameters and launch bounds as before and ours behind; the worker's
 * block id is read once, by us; one way out
 */
static bool twin_fine(const struct gsr_module *in, const struct gsr_module *out,
		      const struct gsr_kernel *k)
{
	const struct gsr_function *a = gsr_module_function(in, k->name), *b;
	unsigned int i, rets = 0, ids = 0, own = 0, handles = k->n_references > 0;
	struct gsr_stmt *s;
	char name[300];

	snprintf(name, sizeof(name), "%s" GSR_SUFFIX, k->name);
	b = gsr_module_function(out, name);
	if (!a || !b || !b->entry || b->n_params != a->n_params + 1 + handles ||
	    b->n_perf != a->n_perf || k->launch_offset % 16 || k->launch_offset < k->param_size ||
	    gsr_module_function(out, k->name))
		return false;
	for (i = 0; i < a->n_params; i++)
		if (strcmp(a->params[i].name, b->params[i].name) ||
		    strcmp(a->params[i].type, b->params[i].type) ||
		    a->params[i].align != b->params[i].align)
			return false;
	if (handles && (b->params[i].align != 8 || b->params[i].dims[0] != 8 * k->n_references ||
			k->references_offset < k->param_size))
		return false;
	i += handles;
	if (b->params[i].align != 16 || b->params[i].dims[0] != sizeof(struct gsr_launch))
		return false;
	for (i = 0; i < a->n_perf; i++)
		if (strcmp(a->perf[i], b->perf[i]))
			return false;
	for (s = b->first; s; s = s->next) {
		if (s->kind != GSR_STMT_INSN)
			continue;
		rets += s->insn->op == GSR_OP_RET || s->insn->op == GSR_OP_EXIT;
		for (i = 0; i < s->insn->n_opnds; i++)
			if (reads_ids(&s->insn->opnds[i])) {
				own += *s->insn->opnds[0].name == '$';
				ids++;
			}
	}
	/* which worker it is, for what is its own: all that is left of them */
	return rets == 1 && own == ids && ids;
}

static void one(const char *path, const struct gsr_rewrite *rw, const struct gsr_module *in,
		const struct gsr_module *out, char *line)
{
	unsigned int arch = strstr(line, " arch=") ?
			    (unsigned int)atoi(strstr(line, " arch=") + 6) : 0;
	char *name = strtok(line, " "), *tier = strtok(NULL, " "),
		*rest = strtok(NULL, ""), *reason;
	const struct gsr_kernel *k = find_kernel(rw, name);

	if (in->arch < arch)
		return;
	reason = rest ? strstr(rest, "reason=") : NULL;
	if (!tier || !rest || (!strcmp(tier, "launch") && !reason)) {
		ok(false, "%s: malformed line for %s", path, name);
	} else if (!strcmp(tier, "block")) {
		if (!ok(k && k->tier == GSR_TIER_BLOCK && !strcmp(k->reason, "rewritten") && out &&
			twin_fine(in, out, k), "%s: %s is rewritten", path, name))
			printf("# %s\n", k ? k->reason : "no such kernel");
	} else if (!ok(k && k->tier == GSR_TIER_LAUNCH && !strcmp(k->reason, reason + 7),
		       "%s: %s: %s", path, name, reason + 7)) {
		printf("# %s\n", k ? k->reason : "no such kernel");
	}
}

static bool same_layout(const struct gsr_kernel *a, const struct gsr_kernel *b)
{
	return a->params == b->params && a->param_size == b->param_size &&
	       a->launch_offset == b->launch_offset &&
	       (!a->params ||
		!memcmp(a->layout, b->layout, a->params * sizeof(*a->layout)));
}

/* A kernel that is rewritten alone, against the same among all of its module */
static bool alone_fine(const struct gsr_module *in, const struct gsr_kernel *k,
		       const struct gsr_rewrite *rw)
{
	const struct gsr_kernel *a = rw->kernels;
	struct gsr_module *out = NULL;
	const struct gsr_item *i;
	unsigned int entries = 0;
	struct gsr_error err;
	bool good;

	if (rw->n_kernels != 1 || strcmp(a->name, k->name) || a->tier != k->tier ||
	    strcmp(a->reason, k->reason) || !same_layout(a, k) || a->waits != k->waits ||
	    a->warp_rows != k->warp_rows || a->early_return != k->early_return ||
	    a->resume_points != k->resume_points || a->save_thread != k->save_thread ||
	    a->n_variables != k->n_variables || a->n_references != k->n_references)
		return false;
	if (!rw->ptx)
		return k->tier != GSR_TIER_BLOCK;
	if (gsr_parse(rw->ptx, rw->ptx_size, "twin", &out, &err))
		return false;
	for (i = out->first; i; i = i->next)
		entries += i->kind == GSR_ITEM_FUNCTION && i->function->entry;
	good = entries == 1 && twin_fine(in, out, a) && !strstr(rw->ptx, ".loc\t") &&
	       !strstr(rw->ptx, ".file\t") && !strstr(rw->ptx, ".loc ") &&
	       !strstr(rw->ptx, ".file ");
	gsr_module_free(out);
	return good;
}

/* Each kernel alone is as among the others, in both forms. */
static void each_alone(const char *path, const char *text, size_t n, const struct gsr_module *in)
{
	struct gsr_options opts = { .size = sizeof(opts) };
	struct gsr_rewrite all, alone;
	unsigned int i, wrong = 0, form;
	struct gsr_error err;

	for (form = 0; form < 2; form++) {
		opts.resumable = form;
		opts.kernel = NULL;
		if (gsr_rewrite_ptx(text, n, &opts, &all, &err))
			continue;
		for (i = 0; i < all.n_kernels; i++) {
			opts.kernel = all.kernels[i].name;
			if (!gsr_rewrite_ptx(text, n, &opts, &alone, &err) &&
			    alone_fine(in, &all.kernels[i], &alone)) {
				gsr_rewrite_free(&alone);
				continue;
			}
			printf("# %s%s: %s, alone %s\n", opts.kernel, form ? ", resumable" : "",
			       all.kernels[i].reason,
			       alone.n_kernels ? alone.kernels[0].reason : err.message);
			gsr_rewrite_free(&alone);
			wrong++;
		}
		gsr_rewrite_free(&all);
	}
	ok(!wrong, "%s: each kernel alone", path);
	opts.kernel = "no_such_kernel";
	ok(!gsr_rewrite_ptx(text, n, &opts, &alone, &err) && !alone.n_kernels && !alone.ptx,
	   "%s: a kernel that it has not", path);
	gsr_rewrite_free(&alone);
}

static const struct gsr_variable *variable(const struct gsr_rewrite *rw, const char *name)
{
	unsigned int i;

	for (i = 0; i < rw->n_variables; i++)
		if (!strcmp(rw->variables[i].name, name))
			return &rw->variables[i];
	return NULL;
}

static bool copies(const struct gsr_rewrite *rw, const char *name)
{
	const struct gsr_variable *v = variable(rw, name);

	return v && v->copied;
}

/* What a driver may answer: hist alone, nothing, or another size */
static bool find(void *arg, const char *name, uint64_t *address, uint64_t *size)
{
	*address = 0x7000;
	*size = 256 + (strcmp(arg, "larger") == 0);
	return strcmp(arg, "none") != 0 && !strcmp(name, "hist");
}

static bool none(void *arg, const char *name, uint64_t offset, uint64_t *word)
{
	(void)arg, (void)name, (void)offset, (void)word;
	return false;
}

/* The table of addresses: its description, and how it is filled */
static void variables(const struct gsr_rewrite *rw)
{
	const struct gsr_variable *hist = variable(rw, "hist"), *table = variable(rw, "table");
	const struct gsr_kernel *k = find_kernel(rw, "histogram"),
		*c = find_kernel(rw, "constants");
	uint64_t words[64] = { 0 };
	bool missing[64];
	unsigned int at;

	if (!hist || !table || !k || !c || rw->n_variables > 64) {
		ok(false, "globals: variables and kernels");
		return;
	}
	ok(rw->addresses && !strcmp(rw->addresses, "__gsr_addresses"),
	   "globals: a table of addresses");
	ok(hist->space == GSR_SPACE_GLOBAL && hist->size == 256 && !hist->copied &&
	   table->space == GSR_SPACE_CONST && table->size == 64 && table->copied,
	   "globals: spaces, sizes, copies");
	ok(k->n_variables == 1 && &rw->variables[k->variables[0]] == hist && c->n_variables == 3,
	   "globals: which kernel needs which");
	at = (unsigned int)(hist - rw->variables);
	memset(missing, 1, sizeof(missing));
	gsr_fill_addresses(rw, find, none, "hist", words, missing);
	ok(words[at] == 0x7000 && !words[at ? 0 : 1] && !gsr_missing_variable(rw, k, missing) &&
	   !gsr_missing_variable(rw, c, missing), "globals: found, or copied");
	k = find_kernel(rw, "statics");
	ok(k && gsr_missing_variable(rw, k, missing) &&
	   !strcmp(gsr_missing_variable(rw, k, missing)->name, "marks"), "globals: neither");
	k = find_kernel(rw, "histogram");
	words[at] = 5;
	gsr_fill_addresses(rw, find, none, "larger", words, missing);
	ok(words[at] == 5 && gsr_missing_variable(rw, k, missing),
	   "globals: another variable of that name");
	gsr_fill_addresses(rw, find, none, "none", words, missing);
	ok(words[at] == 5 && gsr_missing_variable(rw, k, missing), "globals: not found");
}

/* May threads of these kernels finish while others wait for all? */
static void test_early(const struct gsr_rewrite *rw, const char *const *names, bool early,
		       const char *why)
{
	const struct gsr_kernel *k;

	for (; *names; names++)
		ok((k = find_kernel(rw, *names)) && k->early_return == early && !k->sites == !early,
		   "%s: %s", *names, why);
}

/* Details that no kernel's tier shows */
static void details(const struct gsr_rewrite *rw, const char *path)
{
	const struct gsr_kernel *k;

	if (strstr(path, "returns.sm_90")) {
		ok((k = find_kernel(rw, "early")) && k->early_return && k->barriers == 1,
		   "early: early return before a barrier");
		ok((k = find_kernel(rw, "whole")) && !k->early_return,
		   "whole: a block that returns as one is no early return");
		ok((k = find_kernel(rw, "exits")) && k->returns == 3, "exits: three returns");
		ok(strstr(rw->ptx, "cp.async.wait_all;\nbar.warp") ||
		   strstr(rw->ptx, "cp.async.wait_all;\n\tmov.u32 $s, -1;"),
		   "async_copy: waits for its copies at the end of the body");
	} else if (strstr(path, "ends.ptx")) {
		ok((k = find_kernel(rw, "walks")) && k->inserted[GSR_INSERTED_EXITS] &&
		   k->static_shared == 1152, "walks: threads end in functions");
		ok(!strstr(rw->ptx, ".noreturn"), "stop: it returns now");
	} else if (strstr(path, "alignment.ptx")) {
		ok((k = find_kernel(rw, "masks")) && k->static_shared == 1024,
		   "masks: its shared addresses stay the same modulo 1024");
		ok((k = find_kernel(rw, "listed")) && k->static_shared == 1024,
		   "listed: with what the list of mbarriers takes");
		ok((k = find_kernel(rw, "leaves")) && k->static_shared == 5120,
		   "leaves: with what lanes gather in");
		ok((k = find_kernel(rw, "looks_away")) && k->static_shared == 128,
		   "looks_away: needs nothing more");
	} else if (strstr(path, "full.ptx")) {
		ok((k = find_kernel(rw, "ends_early")) && !k->static_shared &&
		   k->dynamic_shared == 128 && gsr_dynamic_shared(k, 100) == 112 + 128,
		   "ends_early: its words stand behind dynamic shared memory");
		ok((k = find_kernel(rw, "with_dynamic")) && !k->static_shared &&
		   k->dynamic_shared == 128, "with_dynamic: behind the program's");
		ok((k = find_kernel(rw, "with_more")) && !k->static_shared &&
		   k->dynamic_shared == 128 + 496 + 32 * 136,
		   "with_more: with the list of mbarriers and what lanes gather in");
		ok((k = find_kernel(rw, "by_number_copied")) && !k->static_shared &&
		   k->dynamic_shared == 128, "by_number_copied: nor do those of cp.async");
		ok((k = find_kernel(rw, "by_number")) && !k->static_shared &&
		   k->dynamic_shared == 128,
		   "by_number: they move nothing that has no name");
	} else if (strstr(path, "gathers.ptx")) {
		ok((k = find_kernel(rw, "bounded")) && k->static_shared == 128 + 2 * 136,
		   "bounded: words for the warps that there may be");
		ok((k = find_kernel(rw, "halves")) && k->static_shared == 128 + 32 * 136 &&
		   k->early_return && k->sites == 4, "halves: its lanes gather at four places");
		ok((k = find_kernel(rw, "rows")) && !k->warp_rows, "rows: any block");
		ok((k = find_kernel(rw, "were_there")) && k->sites == 2,
		   "were_there: not where all that were there come");
		ok((k = find_kernel(rw, "takes_part")) && k->early_return && !k->sites,
		   "takes_part: in what its functions do");
	} else if (strstr(path, "uniform.ptx")) {
		ok((k = find_kernel(rw, "tile_any")) && k->sites == 2 && !k->warp_rows,
		   "tile_any: a vote of part of a warp parts it");
		ok((k = find_kernel(rw, "tile_redux")) && k->sites == 2 && !k->warp_rows,
		   "tile_redux: so does a reduction");
		ok((k = find_kernel(rw, "tile_match")) && k->sites == 2, "tile_match: and a match");
		ok((k = find_kernel(rw, "were_there_any")) && k->sites == 2 && !k->warp_rows,
		   "were_there_any: lanes that were there need not be all");
		ok((k = find_kernel(rw, "warp_any")) && !k->early_return && k->warp_rows,
		   "warp_any: a vote of all lanes does not");
		ok((k = find_kernel(rw, "warp_match")) && !k->early_return && k->warp_rows,
		   "warp_match: nor does a match");
		ok((k = find_kernel(rw, "warp_read")) && !k->early_return && k->warp_rows,
		   "warp_read: nor what all read of one lane");
		ok((k = find_kernel(rw, "tile_read")) && k->sites == 2,
		   "tile_read: what lanes read of two does");
		ok((k = find_kernel(rw, "lanes_read")) && k->sites == 2,
		   "lanes_read: so does what each reads of its own");
		ok((k = find_kernel(rw, "first_warp")) && !k->early_return && k->warp_rows &&
		   (k = find_kernel(rw, "by_warp")) && !k->early_return && k->warp_rows,
		   "first_warp, by_warp: whole warps return");
		ok((k = find_kernel(rw, "first_lanes")) && k->sites == 2 &&
		   (k = find_kernel(rw, "by_part")) && k->sites == 2 &&
		   (k = find_kernel(rw, "by_sign")) && k->sites == 2,
		   "first_lanes, by_part, by_sign: parts of warps do");
		ok((k = find_kernel(rw, "pairs_or")) && k->early_return && k->sites == 2,
		   "pairs_or: a reduction at a barrier with a thread count parts the block");
		ok((k = find_kernel(rw, "pairs_popc")) && k->early_return && k->sites == 1,
		   "pairs_popc: so does a sum");
		ok((k = find_kernel(rw, "block_or")) && !k->early_return,
		   "block_or: a reduction over all threads does not");
	} else if (strstr(path, "dependents.ptx")) {
		ok(!strstr(rw->ptx, "launch_dependents") && strstr(rw->ptx, "griddepcontrol.wait;"),
		   "primary: lets nobody begin early, and may wait itself");
	} else if (strstr(path, "loads.ptx")) {
		static const char *const alike[] = { "by_word", "by_generic", "by_shared",
						     "by_parameter", "by_scopes", "by_constant",
						     "by_offset", "by_word_beside_flag",
						     "by_word_checked", NULL },
				  *const apart[] = { "by_flag", "by_variable", "by_branch",
						     "by_coherent", "by_local", "by_turns",
						     "by_message", "by_halves", "by_shifts",
						     "by_product", NULL };

		test_early(rw, alike, false, "all threads read the same");
		test_early(rw, apart, true, "threads may read different values");
	} else if (strstr(path, "reach.ptx")) {
		static const char *const alike[] = { "reused_later", "reused_earlier",
						     "by_two_ways", NULL },
				  *const apart[] = { "by_guard", "kept", "from_loop",
						     "by_branch_apart", "in_place", "late", NULL };

		test_early(rw, alike, false, "what varies does not reach the branch");
		test_early(rw, apart, true, "what varies reaches the branch");
	} else if (strstr(path, "left.ptx")) {
		static const char *const wait[] = { "wait_later", "wait_for_a_reason", NULL },
				  *const finish[] = { "wait_never", "wait_before",
						      "wait_sometimes", "wait_counted",
						      "wait_or_finish", NULL };

		test_early(rw, wait, false, "lanes that leave the loop cannot finish");
		test_early(rw, finish, true, "lanes that leave the loop may finish");
		ok((k = find_kernel(rw, "wait_apart")) && k->sites == 2 &&
		   (k = find_kernel(rw, "wait_guarded")) && k->sites == 2,
		   "wait_apart, wait_guarded: those that pass the barrier by may");
	} else if (strstr(path, "shared.sm_90")) {
		ok((k = find_kernel(rw, "matmul")) && !k->early_return,
		   "matmul: uniform loops are no early return");
		ok((k = find_kernel(rw, "votes_all")) && !k->early_return,
		   "votes_all: votes of all threads stay");
		ok(strstr(rw->ptx, "bar.sync 1;") != NULL, "counted0: a barrier of our own");
	} else if (strstr(path, "warps.sm_90")) {
		ok((k = find_kernel(rw, "block_sum")) && k->warp_rows,
		   "block_sum: whole warps only");
		ok((k = find_kernel(rw, "ballot")) && !k->warp_rows, "ballot: any block");
	} else if (strstr(path, "atomics.sm_90")) {
		ok((k = find_kernel(rw, "cas")) && k->waits, "cas: may wait for other blocks");
		ok((k = find_kernel(rw, "real_sums")) && !k->waits, "real_sums: waits for nobody");
	} else if (strstr(path, "waits.ptx")) {
		ok((k = find_kernel(rw, "chain_cv")) && k->waits, "chain_cv: polls with ld.cv");
		ok((k = find_kernel(rw, "chain_cg")) && k->waits, "chain_cg: polls with ld.cg");
		ok((k = find_kernel(rw, "chain_generic")) && k->waits,
		   "chain_generic: from any space");
		ok((k = find_kernel(rw, "chain_volatile")) && k->waits, "chain_volatile: polls");
		ok((k = find_kernel(rw, "turns_cg")) && k->waits, "turns_cg: polls for its turn");
		ok((k = find_kernel(rw, "once_cg")) && !k->waits, "once_cg: looks once");
		ok((k = find_kernel(rw, "retries")) && !k->waits,
		   "retries: tries again, and waits for nobody");
		ok((k = find_kernel(rw, "locks")) && k->waits,
		   "locks: with such a loop it waits for a lock");
		ok((k = find_kernel(rw, "spins")) && k->waits, "spins: for a lock, too");
	} else if (strstr(path, "gloop.sm_90")) {
		ok((k = find_kernel(rw, "tpacf")) && !k->waits,
		   "tpacf: an atomic whose result nobody reads waits for nobody");
	} else if (strstr(path, "params.sm_90")) {
		ok((k = find_kernel(rw, "odd_param")) && k->params == 3 && k->param_size == 24 &&
		   k->launch_offset == 32 && !k->layout[0].offset && k->layout[0].size == 8 &&
		   k->layout[1].offset == 8 && k->layout[2].offset + k->layout[2].size == 24,
		   "odd_param: offsets");
		ok((k = find_kernel(rw, "none")) && k->params == 0 && k->launch_offset == 0,
		   "none: offsets");
		ok(strstr(rw->ptx, ".minnctapersm 8") && strstr(rw->ptx, ".maxntid 128"),
		   "bounds: launch bounds stay");
	} else if (strstr(path, "globals.sm_90")) {
		variables(rw);
	} else if (strstr(path, "hand-variables")) {
		ok(strstr(rw->ptx, "ld.const.u64 a, [__gsr_addresses+") &&
		   strstr(rw->ptx, "add.s64 a, a, 8;"), "element: its index counts elements");
		ok(strstr(rw->ptx, "[$g1+12]"), "forms: so it does in an address");
		ok(strstr(rw->ptx, "@p ld.const.u64 c, [__gsr_addresses+") &&
		   strstr(rw->ptx, "@p add.s64 c, c, 8;"), "forms: a predicate stays");
		ok(copies(rw, "quiet") && copies(rw, "text") && copies(rw, "fixed"),
		   "forms: what nobody writes is copied");
		ok(!copies(rw, "words") && !copies(rw, "bytes") && !copies(rw, "places"),
		   "forms: what is visible, without a value or holds addresses is not");
		ok((k = find_kernel(rw, "bindless")) && k->tier == GSR_TIER_BLOCK &&
		   !k->n_variables, "bindless: textures and surfaces by handle");
		ok(!strstr(rw->ptx, "ld.const.u32") && !strstr(rw->ptx, "cvta.const") &&
		   strstr(rw->ptx, "ld.global.nc.v4.b32"),
		   "forms: constants are read in global memory");
	} else if (strstr(path, "hand.")) {
		ok(strstr(rw->ptx, "$_0_me[") && strstr(rw->ptx, "$_0_body:"),
		   "prefixes that the input does not use");
	}
}

struct expected {
	const char *kernel;
	unsigned int n;
	const char *reason;
};

/* Where block-tasks can be left, and why not: of all kernels of the file */
static void points(const char *name, const char *text, size_t n, const struct expected *expected,
		   unsigned int n_expected, enum gsr_restart restart)
{
	const struct gsr_options opts = { .size = sizeof(opts), .resumable = true,
					  .restart = restart };
	struct gsr_rewrite rw = { 0 };
	struct gsr_error err;
	unsigned int i;

	if (!ok(gsr_rewrite_ptx(text, n, &opts, &rw, &err) == GSR_OK,
		"%s: the %s form", name, restart ? "restarted" : "resumable"))
		return;
	ok(rw.n_kernels == n_expected, "%s: %u kernels", name, rw.n_kernels);
	for (i = 0; i < n_expected; i++) {
		const struct gsr_kernel *k = find_kernel(&rw, expected[i].kernel);
		const char *reason = k && k->resume_reason ? k->resume_reason : "",
			*want = expected[i].reason ? expected[i].reason : "";

		if (!ok(k && k->resume_points == expected[i].n && !strcmp(reason, want) &&
			k->restarts == (restart == GSR_RESTART_ALWAYS && k->resume_points),
			"%s: %u points%s%s", expected[i].kernel, expected[i].n,
			*want ? ", " : "", want))
			printf("# %u points, %s\n", k ? k->resume_points : 0, reason);
	}
	gsr_rewrite_free(&rw);
}

/* Only what cannot be resumed begins again */
static void restarted_instead(const char *text, size_t n)
{
	const struct gsr_options opts = { .size = sizeof(opts), .resumable = true,
					  .restart = GSR_RESTART_INSTEAD };
	const struct gsr_kernel *k;
	struct gsr_rewrite rw = { 0 };
	struct gsr_error err;

	if (!ok(gsr_rewrite_ptx(text, n, &opts, &rw, &err) == GSR_OK, "restarted instead"))
		return;
	k = find_kernel(&rw, "long_array");
	ok(k && k->resume_points && !k->restarts && k->save_thread, "long_array is resumed");
	k = find_kernel(&rw, "too_long");
	ok(k && k->resume_points && k->restarts && !k->save_thread &&
	   gsr_save_stride(k, 1024, 1 << 16) == sizeof(struct gsr_record),
	   "too_long, with too large an array, begins again: its record has the ids only");
	gsr_rewrite_free(&rw);
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

/* Where lanes that left a loop wait for those with which they came to it */
static void reconvs(const char *text, size_t n)
{
	static const struct {
		const char *kernel;
		unsigned int reconvs, entries;
	} expected[] = {
		{ "search", 1, 1 },	  { "two_levels", 1, 1 },     { "out_of_both", 1, 1 },
		{ "past_one", 1, 1 },	  { "entered_thrice", 1, 1 }, { "some_return", 0, 0 },
	};
	unsigned int i, n_reconvs, n_entries;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct gsr_options opts = { .size = sizeof(opts), .resumable = true,
						  .kernel = expected[i].kernel };
		struct gsr_rewrite rw = { 0 };
		struct gsr_error err;

		if (!ok(gsr_rewrite_ptx(text, n, &opts, &rw, &err) == GSR_OK, "%s: resumable",
			expected[i].kernel))
			continue;
		n_reconvs = count(rw.ptx, "bar.warp.sync $lanes_");
		n_entries = count(rw.ptx, "activemask.b32 $lanes_");
		if (!ok(n_reconvs == expected[i].reconvs && n_entries == expected[i].entries,
			"%s: %u reconvergence points, whose lanes enter at %u places",
			expected[i].kernel, expected[i].reconvs, expected[i].entries))
			printf("# %u, %u\n", n_reconvs, n_entries);
		gsr_rewrite_free(&rw);
	}
}

static void all_points(const char *path, const char *text, size_t n)
{
	/* barriers of any form */
	static const struct expected barriers[] = {
		{ "named_early", 2, NULL }, { "counted_early", 1, NULL },
		{ "register_early", 1, NULL }, { "reductions_early", 9, NULL },
		{ "scopes_early", 3, NULL }, { "loop_early", 2, NULL },
		{ "arrive_early", 0, "bar.arrive" }, { "register_counted", 2, NULL },
		{ "reductions_whole", 1, NULL }, { "reductions_between", 5, NULL },
		{ "counted_between", 4, "a loop has no point: others may wait for its threads at a "
		  "barrier with a thread count" },
		{ "hands_over", 3, NULL }, { "scopes_loop", 1, NULL },
		{ "hands_over_again", 3, "a loop that may wait for other threads" },
		{ "called", 6, NULL },
		{ "skewed", 1, NULL },
	};
	static const char wait[] = "a loop that may wait for other threads";
	static const struct expected waits[] = {
		{ "chain_cv", 0, wait }, { "chain_cg", 0, wait }, { "chain_generic", 0, wait },
		{ "chain_volatile", 0, wait }, { "turns_cg", 0, wait }, { "once_cg", 2, NULL },
		{ "retries", 2, NULL }, { "locks", 0, wait }, { "spins", 0, wait },
	};

	static const char apart[] = "a loop has no point: its lanes may be apart while others of "
				    "the warp are waited for";
	static const char finished[] = "lanes may be finished while others of the warp wait for it";
	static const struct expected lanes[] = {
		{ "totals", 0, finished }, { "votes", 0, finished }, { "partial", 0, finished },
		{ "reduces", 0, finished },
		{ "apart", 2, NULL }, { "apart_waited", 2, NULL }, { "apart_matrix", 3, NULL },
		{ "uneven", 3, NULL },
	};
	static const struct expected joins[] = {
		{ "branches", 3, NULL }, { "nested", 3, NULL }, { "rounds", 3, NULL },
		{ "tiles", 5, NULL }, { "early", 3, NULL }, { "some_part", 0, apart },
		{ "waits_at_barrier", 3, apart },
	};
	static const struct expected locals[] = {
		{ "long_array", 2, NULL }, { "too_long", 0, "too much local memory" },
		{ "longest", 2, NULL },
		{ "own_window", 0, "generic address of shared memory (cvta.shared)" },
		{ "reserved", 0, "reserved shared memory" },
	};

	static const char once[] = "not once a thread of the block has finished";
	static const char stored[] =
		"a loop or barrier has no point: the block could read what it stored before";
	static const char done[] =
		"a loop or barrier has no point: an atomic or the like before must not be repeated";
	static const struct expected restarts[] = {
		{ "uneven", 1, once }, { "counts", 1, once }, { "two_loops", 1, stored },
		{ "stores_first", 0, stored }, { "adds_first", 0, done },
		{ "calls_first", 0, done }, { "repeats", 1, NULL }, { "may_alias", 0, stored },
		{ "tells_time", 0, stored }, { "tiles", 1, NULL }, { "tiles_early", 2, once },
	};

	if (strstr(path, "/lanes.ptx"))
		points("lanes", text, n, lanes, sizeof(lanes) / sizeof(*lanes),
		       GSR_RESTART_NEVER);
	if (strstr(path, "/reconverge.ptx"))
		reconvs(text, n);
	if (strstr(path, "/locals.ptx"))
		restarted_instead(text, n);
	if (strstr(path, "/joins.ptx"))
		points("joins", text, n, joins, sizeof(joins) / sizeof(*joins), GSR_RESTART_NEVER);
	if (strstr(path, "/locals.ptx"))
		points("locals", text, n, locals, sizeof(locals) / sizeof(*locals),
		       GSR_RESTART_NEVER);
	if (strstr(path, "/barriers.ptx"))
		points("barriers", text, n, barriers, sizeof(barriers) / sizeof(*barriers),
		       GSR_RESTART_NEVER);
	if (strstr(path, "/waits.ptx"))
		points("waits", text, n, waits, sizeof(waits) / sizeof(*waits),
		       GSR_RESTART_NEVER);
	if (strstr(path, "/restarts.ptx"))
		points("restarts", text, n, restarts, sizeof(restarts) / sizeof(*restarts),
		       GSR_RESTART_ALWAYS);
}

/* What the product launches by default does without is there on demand only */
static void modes(void)
{
	static const char *const only[] = { "$by_index", "$range:", "$index:" };
	struct gsr_options opts = { .size = sizeof(opts) };
	struct gsr_rewrite rw[4];
	struct gsr_error err;
	unsigned int i, k, n[4];
	size_t size;
	char *text = slurp(CORPUS "grids.sm_90.ptx", &size);

	for (i = 0; i < 4; i++) {
		opts.modes = i & 1;
		opts.resumable = i & 2;
		if (!ok(gsr_rewrite_ptx(text, size, &opts, &rw[i], &err) == GSR_OK, "form %u", i))
			return;
		n[i] = rw[i].kernels[0].inserted[GSR_INSERTED_LOOP];
		for (k = 0; k < sizeof(only) / sizeof(*only); k++)
			ok(!strstr(rw[i].ptx, only[k]) == !opts.modes, "%s%s: %s",
			   opts.modes ? "all modes" : "the default",
			   opts.resumable ? ", resumable" : "", only[k]);
	}
	ok(n[0] < n[1] * 3 / 4 && n[2] < n[3] * 3 / 4,
	   "they are much longer: %u and %u instructions, resumable %u and %u", n[0], n[1],
	   n[2], n[3]);
	for (i = 0; i < 4; i++)
		gsr_rewrite_free(&rw[i]);
	free(text);
}

/*
 * A generic address of a parameter is another in a wing: a block-task can be left only where it is
 * certain which registers hold one
 */
static void param_address(void)
{
	static const char head[] =
		".version 8.6\n.target sm_75\n.address_size 64\n"
		".visible .entry k (.param .u64 out, .param .align 4 .b8 a[64])\n{\n"
		".reg .b64 %rd<7>;\n.reg .b32 %r<5>;\n.reg .pred %p;\n.local .b64 l[2];\n"
		"mov.b64 %rd1, a;\ncvta.param.u64 %rd2, %rd1;\nadd.u64 %rd3, %rd2, 64;\n"
		"mov.u32 %r1, 0;\nld.param.u64 %rd5, [out];\n";
	static const char tail[] =
		"again:\nld.u32 %r2, [%rd2];\nadd.u32 %r1, %r1, %r2;\nadd.u64 %rd2, %rd2, 4;\n"
		"setp.lt.u64 %p, %rd2, %rd3;\n@%p bra again;\nst.global.u32 [%rd5], %r1;\n"
		"ret;\n}\n";
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", NULL },
		{ "sub.u64 %rd4, %rd3, %rd2;\ncvt.u32.u64 %r3, %rd4;\n", NULL },
		{ "setp.eq.u64 %p, %rd2, 0;\nselp.b64 %rd4, %rd2, %rd3, %p;\n"
		  "mov.b64 %rd2, %rd4;\n", NULL },
		{ "mad.wide.u32 %rd4, %r1, 4, %rd2;\nprefetch.global.L1 [%rd4];\n", NULL },
		{ "st.local.u64 [l], %rd2;\n", "address of a parameter used by st" },
		{ "st.global.u64 [%rd5], %rd3;\n", "address of a parameter used by st" },
		{ "cvt.u32.u64 %r3, %rd2;\n", "address of a parameter used by cvt" },
		{ "mov.b64 {%r3, %r4}, %rd2;\n", "address of a parameter used by mov" },
		{ "and.b64 %rd4, %rd2, 15;\n", "address of a parameter used by and" },
		{ "sub.u64 %rd4, 64, %rd2;\n", "address of a parameter used by sub" },
		{ "add.u64 %rd4, %rd3, %rd2;\n", "address of a parameter used by add" },
		{ "mad.lo.u64 %rd4, %rd2, 2, %rd5;\n", "address of a parameter used by mad" },
		{ "setp.lt.u64 %p, %rd2, 4096;\n", "address of a parameter used by setp" },
		{ "setp.lt.u64 %p, %rd5, %rd2;\n", "address of a parameter used by setp" },
		{ "selp.b64 %rd4, %rd2, %rd5, %p;\n", "address of a parameter used by selp" },
		{ "atom.global.exch.b64 %rd4, [%rd5], %rd2;\n",
		  "address of a parameter used by atom" },
		{ "cvta.to.global.u64 %rd4, %rd2;\n", "address of a parameter used by cvta" },
		{ "@%p mov.b64 %rd2, %rd5;\n",
		  "%rd2 may hold the address of a parameter or another value" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct expected expected = { "k", cases[i].reason ? 0 : 1, cases[i].reason };
		char name[32], text[1500];

		snprintf(name, sizeof(name), "param_address %u", i);
		snprintf(text, sizeof(text), "%s%s%s", head, cases[i].text, tail);
		points(name, text, strlen(text), &expected, 1, GSR_RESTART_NEVER);
	}
}

/*
 * A kernel without a named shared variable, with one instruction: only if that addresses shared
 * memory do the twin's words stand behind it
 */
static void by_number(void)
{
	static const char head[] =
		".version 8.6\n.target sm_90a\n.address_size 64\n"
		".visible .entry k (.param .u64 in)\n{\n"
		".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .pred %p;\n"
		"ld.param.u64 %rd1, [in];\nmov.u32 %r1, 1024;\n";
	static const struct {
		const char *text;
		bool shared;
	} cases[] = {
		{ "ld.shared.u32 %r2, [%r1];", true },
		{ "st.shared::cluster.u32 [%r1], %r2;", true },
		{ "atom.shared::cta.add.u32 %r2, [%r1], 1;", true },
		{ "red.shared.add.u32 [%r1], 1;", true },
		{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
		  "[%r1], %r2, [%r3];", true },
		{ "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];", true },
		{ "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};", true },
		{ "wmma.load.c.sync.aligned.row.m8n8k32.shared.s32 {%r2, %r3}, [%r1];", true },
		{ "wmma.store.d.sync.aligned.row.m8n8k32.shared.s32 [%r1], {%r2, %r3};", true },
		{ "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, "
		  "%rd3, 1, 1, 1, 0, 0;", true },
		{ "cp.async.ca.shared.global [%r1], [%rd1], 4;", true },
		{ "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];", true },
		{ "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		  "[%r1], [%rd1], 16, [%r2];", true },
		{ "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;", true },
		{ "mbarrier.init.shared::cta.b64 [%r1], 1;", true },
		{ "mbarrier.arrive.shared.b64 %rd2, [%r1];", true },
		{ "cvta.shared.u64 %rd2, %rd1;", true },
		{ "cvta.to.shared.u64 %rd2, %rd1;", false },
		{ "isspacep.shared %p, %rd1;", false },
		{ "fence.proxy.async.shared::cta;", false },
		{ "ld.global.u32 %r2, [%rd1];", false },
		{ "prefetch.global.L2 [%rd1];", false },
		{ "cp.async.wait_all;", false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gsr_rewrite rw = { 0 };
		struct gsr_error err;
		char text[1500];

		snprintf(text, sizeof(text), "%s%s\nret;\n}\n", head, cases[i].text);
		ok(gsr_rewrite_ptx(text, strlen(text), NULL, &rw, &err) == GSR_OK && rw.ptx &&
		   !rw.kernels[0].static_shared == cases[i].shared &&
		   !rw.kernels[0].dynamic_shared == !cases[i].shared,
		   "%.*s: %s address in shared memory", (int)strcspn(cases[i].text, " "),
		   cases[i].text, cases[i].shared ? "an" : "no");
		gsr_rewrite_free(&rw);
	}
}

/* An instruction that only reads its first operand is no writer of it */
static void readers(void)
{
	static const char head[] =
		".version 8.6\n.target sm_90\n.address_size 64\n"
		".visible .entry k (.param .u32 n)\n{\n"
		".reg .b32 %r<9>;\n.reg .pred %p;\n"
		"ld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\nsetp.ge.u32 %p, %r2, %r1;\n";
	static const struct {
		const char *text, *says;
		unsigned int sites, bytes;
	} cases[] = {
		{ "@%p ret;\nmov.u32 %r3, -1;\nbar.warp.sync %r3;\n",
		  "the mask is known to be all lanes", 1, 128 },
		{ "@%p ret;\nmov.u32 %r3, -1;\nbar.warp.sync %r3;\nnanosleep.u32 %r3;\n",
		  "known behind a nanosleep, too", 1, 128 },
		{ "table: .branchtargets one, two;\nbrx.idx %r1, table;\n"
		  "one:\nbar.sync 0;\ntwo:\n",
		  "a branch on what is uniform does not split the block", 0, 128 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gsr_rewrite rw = { 0 };
		struct gsr_error err;
		char text[1500];

		snprintf(text, sizeof(text), "%s%sret;\n}\n", head, cases[i].text);
		ok(gsr_rewrite_ptx(text, strlen(text), NULL, &rw, &err) == GSR_OK && rw.ptx &&
		   rw.kernels[0].sites == cases[i].sites &&
		   rw.kernels[0].static_shared == cases[i].bytes, "readers: %s", cases[i].says);
		gsr_rewrite_free(&rw);
	}
}

/* What the loop adds to a small kernel, laid out as nvcc does: all of it is compiled at a load */
static void small(void)
{
	static const char text[] =
		".version 8.0\n.target sm_90\n.address_size 64\n\n"
		".visible .entry scale(\n\t.param .u64 scale_param_0,\n"
		"\t.param .u32 scale_param_1\n)\n{\n"
		"\t.reg .pred \t%p<2>;\n\t.reg .f32 \t%f<3>;\n\t.reg .b32 \t%r<6>;\n"
		"\t.reg .b64 \t%rd<5>;\n\n"
		"\tld.param.u64 \t%rd1, [scale_param_0];\n\tld.param.u32 \t%r2, [scale_param_1];\n"
		"\tmov.u32 \t%r3, %ctaid.x;\n\tmov.u32 \t%r4, %ntid.x;\n"
		"\tmov.u32 \t%r5, %tid.x;\n\tmad.lo.s32 \t%r1, %r3, %r4, %r5;\n"
		"\tsetp.ge.s32 \t%p1, %r1, %r2;\n\t@%p1 bra \t$L__BB0_2;\n\n"
		"\tcvta.to.global.u64 \t%rd2, %rd1;\n\tmul.wide.s32 \t%rd3, %r1, 4;\n"
		"\tadd.s64 \t%rd4, %rd2, %rd3;\n\tld.global.f32 \t%f1, [%rd4];\n"
		"\tadd.f32 \t%f2, %f1, %f1;\n\tst.global.f32 \t[%rd4], %f2;\n\n"
		"$L__BB0_2:\n\tret;\n\n}\n";
	struct gsr_rewrite rw = { 0 };
	unsigned int insns = 0;
	struct gsr_error err;
	size_t bytes = 0;

	if (gsr_rewrite_ptx(text, strlen(text), NULL, &rw, &err) == GSR_OK && rw.ptx) {
		insns = rw.kernels[0].inserted[GSR_INSERTED_LOOP];
		bytes = rw.ptx_size - strlen(text);
	}
	ok(insns && insns <= 300 && bytes <= 8000,
	   "a small kernel: %u instructions and %zu bytes more", insns, bytes);
	gsr_rewrite_free(&rw);
}

int main(void)
{
	glob_t g = corpus(CORPUS "*.ptx");
	unsigned int i;

	for (i = 0; i < g.gl_pathc; i++) {
		const char *path = g.gl_pathv[i];
		struct gsr_module *in = NULL, *out = NULL;
		char launch[300], *text, *lines, *line, *save;
		struct gsr_rewrite rw = { 0 };
		struct gsr_error err;
		size_t n, m;

		text = slurp(path, &n);
		snprintf(launch, sizeof(launch), CORPUS "%.*s.launch",
			 (int)strcspn(path + strlen(CORPUS), "."), path + strlen(CORPUS));
		lines = slurp(launch, &m);
		if (!ok(gsr_parse(text, n, path, &in, &err) == GSR_OK &&
			gsr_rewrite_ptx(text, n, NULL, &rw, &err) == GSR_OK, "%s: read", path)) {
			printf("# %s\n", err.message);
			continue;
		}
		if (rw.ptx)
			ok(gsr_parse(rw.ptx, rw.ptx_size, "twins", &out, &err) == GSR_OK,
			   "%s: what we write is PTX", path);
		for (line = lines; *line; line = save) {
			save = line + strcspn(line, "\n");
			if (*save)
				*save++ = 0;
			if (*line && *line != '#')
				one(path, &rw, in, out, line);
		}
		details(&rw, path);
		all_points(path, text, n);
		each_alone(path, text, n, in);
		gsr_rewrite_free(&rw);
		gsr_module_free(in);
		gsr_module_free(out);
		free(text);
		free(lines);
	}
	globfree(&g);
	param_address();
	by_number();
	readers();
	small();
	modes();
	return done();
}
