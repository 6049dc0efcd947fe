// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The whole rewriter, both kinds of twins: what it makes parses, holds every twin it claims, and
 * its description survives.
 */
#include "rewriter/ptx/ptx.h"
#include "fuzz.h"

static void check_twins(const struct gsr_rewrite *rw)
{
	struct gsr_module *m;
	struct gsr_error err;
	unsigned int i, blocks = 0;
	char *name;

	for (i = 0; i < rw->n_kernels; i++) {
		MUST(rw->kernels[i].name && rw->kernels[i].reason && rw->kernels[i].reason[0],
		     "kernel %u", i);
		blocks += rw->kernels[i].tier == GSR_TIER_BLOCK;
	}
	MUST(!blocks == !rw->ptx, "%u twins", blocks);
	if (!rw->ptx)
		return;
	MUST(strlen(rw->ptx) == rw->ptx_size, "size");
	MUST(gsr_parse(rw->ptx, rw->ptx_size, "twins", &m, &err) == GSR_OK, "%s in\n%s",
	     err.message, rw->ptx);
	for (i = 0; i < rw->n_kernels; i++) {
		const struct gsr_kernel *k = &rw->kernels[i];
		const struct gsr_function *f;

		if (k->tier != GSR_TIER_BLOCK)
			continue;
		name = malloc(strlen(k->name) + sizeof(GSR_SUFFIX));
		if (!name)
			abort();
		strcat(strcpy(name, k->name), GSR_SUFFIX);
		f = gsr_module_function(m, name);
		MUST(f && f->entry && f->body, "no %s in\n%s", name, rw->ptx);
		MUST(f->n_params == k->params + 1 + (k->n_references > 0) &&
		     k->launch_offset >= k->param_size, "parameters of %s", name);
		free(name);
	}
	gsr_module_free(m);
}

static void check_description(const struct gsr_rewrite *rw)
{
	struct gsr_rewrite back;
	struct gsr_error err;
	void *data, *again;
	size_t n, m;

	data = gsr_describe(rw, &n);
	MUST(data, "description");
	MUST(gsr_read_description(data, n, &back, &err) == GSR_OK, "%s", err.message);
	again = gsr_describe(&back, &m);
	MUST(again && m == n && !memcmp(data, again, n), "%zu bytes and %zu", n, m);
	free(data);
	free(again);
	gsr_rewrite_free(&back);
}

/* The last kernel by itself: of the same tier, which other kernels have no part in. */
static void check_alone(const uint8_t *data, size_t size, struct gsr_options opts,
			const struct gsr_kernel *k)
{
	struct gsr_rewrite rw;
	struct gsr_error err;

	opts.kernel = k->name;
	MUST(gsr_rewrite_ptx((const char *)data, size, &opts, &rw, &err) == GSR_OK, "%s",
	     err.message);
	MUST(rw.n_kernels >= 1 && rw.kernels[rw.n_kernels - 1].tier == k->tier,
	     "%s: tier %d, alone %d", k->name, k->tier, rw.kernels[0].tier);
	check_twins(&rw);
	check_description(&rw);
	gsr_rewrite_free(&rw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gsr_options opts = { .size = sizeof(opts), .name = "x" };
	struct gsr_rewrite rw;
	struct gsr_error err;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		opts.resumable = opts.modes = i;
		if (gsr_rewrite_ptx((const char *)data, size, &opts, &rw, &err) != GSR_OK) {
			MUST(!rw.ptx && !rw.kernels && err.status != GSR_OK && err.message[0],
			     "status %d", err.status);
			continue;
		}
		check_twins(&rw);
		check_description(&rw);
		if (rw.n_kernels)
			check_alone(data, size, opts, &rw.kernels[rw.n_kernels - 1]);
		gsr_rewrite_free(&rw);
	}
	return 0;
}
