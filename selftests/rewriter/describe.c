// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The description of a rewrite in the form that crosses the socket: all of the corpus there and
 * back, and what is no description.
 */
#include <cjson/cJSON.h>
#include "rewriter/tools/gsrewrite.h"
#include "test.h"

#define FLIPS	2000

static uint64_t random_state = 1;

static unsigned int random_below(size_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return n ? (unsigned int)((random_state >> 33) % n) : 0;
}

/*
 * From a buffer of just this size, so that a sanitizer sees each byte read behind it. What is no
 * description leaves nothing.
 */
static enum gsr_status read_copy(const unsigned char *data, size_t n, struct gsr_rewrite *rw,
				 struct gsr_error *err)
{
	unsigned char *copy = malloc(n ? n : 1);
	enum gsr_status status;

	memcpy(copy, data, n);
	memset(rw, 0xff, sizeof(*rw));
	status = gsr_read_description(copy, n, rw, err);
	free(copy);
	if (status != err->status ||
	    (status && (rw->ptx || rw->kernels || rw->n_kernels || rw->variables || rw->arena ||
			!err->message[0]))) {
		printf("Bail out! status %d and %d, %s\n", status, err->status, err->message);
		exit(1);
	}
	return status;
}

/* Is @a in each of its values what @b is? As gsrewrite lists them, without the twins */
static bool same(struct gsr_rewrite a, struct gsr_rewrite b)
{
	cJSON *x, *y;
	bool good;

	a.ptx = b.ptx = NULL;
	x = gsr_rewrite_json(&a);
	y = gsr_rewrite_json(&b);
	good = x && y && cJSON_Compare(x, y, true);
	cJSON_Delete(x);
	cJSON_Delete(y);
	return good;
}

static bool there_and_back(const struct gsr_rewrite *rw, const unsigned char *data, size_t n)
{
	struct gsr_rewrite back;
	struct gsr_error err;
	void *again = NULL;
	bool good;
	size_t m;

	if (read_copy(data, n, &back, &err))
		return false;
	again = gsr_describe(&back, &m);
	good = again && m == n && !memcmp(again, data, n) && (!rw || same(*rw, back));
	free(again);
	gsr_rewrite_free(&back);
	return good;
}

/* Flips of up to three bytes: an error, or the description of something else */
static unsigned int flip(unsigned char *data, size_t n)
{
	unsigned int i, j, wrong = 0;
	unsigned char was[3];
	struct gsr_rewrite rw;
	struct gsr_error err;

	for (i = 0; i < FLIPS; i++) {
		unsigned int at = random_below(n - 2), many = 1 + random_below(3);

		memcpy(was, data + at, 3);
		for (j = 0; j < many; j++)
			data[at + j] = random_below(4) ? (unsigned char)random_below(256) : 0xff;
		if (read_copy(data, n, &rw, &err) == GSR_OK) {
			gsr_rewrite_free(&rw);
			wrong += !there_and_back(NULL, data, n);
		}
		memcpy(data + at, was, 3);
	}
	return wrong;
}

static void one(const char *path, const struct gsr_rewrite *rw, bool resumable)
{
	unsigned int whole = 0;
	struct gsr_rewrite back;
	struct gsr_error err;
	unsigned char *data;
	size_t n = 0, i;

	data = gsr_describe(rw, &n);
	ok(data && there_and_back(rw, data, n), "%s%s: there and back", path,
	   resumable ? ", resumable" : "");
	for (i = 0; data && i < n; i++)
		if (read_copy(data, i, &back, &err) != GSR_ERR_FORMAT)
			whole++;
	ok(data && !whole, "%s: cut anywhere in its %zu bytes it is an error", path, n);
	ok(data && n > 2 && !flip(data, n),
	   "%s: with other bytes it is an error, or another description", path);
	free(data);
}

static void all(void)
{
	glob_t g = corpus(CORPUS "*.ptx");
	unsigned int i, resumable;

	for (i = 0; i < g.gl_pathc; i++) {
		size_t n;
		char *text = slurp(g.gl_pathv[i], &n);

		for (resumable = 0; resumable < 2; resumable++) {
			struct gsr_options opts = { .size = sizeof(opts), .resumable = resumable };
			struct gsr_rewrite rw;
			struct gsr_error err;

			if (gsr_rewrite_ptx(text, n, &opts, &rw, &err)) {
				ok(false, "%s: %s", g.gl_pathv[i], err.message);
				continue;
			}
			one(g.gl_pathv[i], &rw, resumable);
			gsr_rewrite_free(&rw);
		}
		free(text);
	}
	globfree(&g);
}

static enum gsr_status status_of(const struct gsr_rewrite *rw)
{
	enum gsr_status status = GSR_ERR_NOMEM;
	struct gsr_rewrite back;
	struct gsr_error err;
	void *data;
	size_t n;

	data = gsr_describe(rw, &n);
	if (data) {
		status = read_copy(data, n, &back, &err);
		if (!status)
			gsr_rewrite_free(&back);
	}
	free(data);
	return status;
}

/* What the reader makes of it while @field is @value */
#define WITH(field, value, want, what) do { \
	__typeof__(field) was_ = (field); \
	(field) = (value); \
	ok(status_of(&rw) == (want), "%s: %s", what, (want) ? "an error" : "read"); \
	(field) = was_; \
} while (0)

/* Each limit, from both sides */
static void limits(void)
{
	struct gsr_variable variables[] = {
		{ .name = "hist", .size = 256 },
		{ .name = "calls", .size = 24, .function = "f", .offset = 16 },
	};
	struct gsr_reference references[] = { { .name = "image", .surface = true } };
	struct gsr_param params[] = { { 0, 4 }, { 8, 4 } };
	unsigned int list[] = { 1, 0 };
	struct gsr_kernel kernel = {
		.name = "k", .reason = "rewritten", .param_size = 12, .params = 2, .layout = params,
		.references = references, .n_references = 1, .references_offset = 16,
		.launch_offset = 32, .variables = list, .n_variables = 2, .resume_points = 3,
		.dynamic_shared = 128, .restarts = true, .save_fixed = 64, .save_thread = 8,
	};
	struct gsr_rewrite rw = {
		.addresses = "words", .variables = variables, .n_variables = 2, .kernels = &kernel,
		.n_kernels = 1,
	};

	ok(status_of(&rw) == GSR_OK, "a description by hand");
	WITH(rw.addresses, NULL, GSR_ERR_FORMAT, "variables without a table");
	WITH(rw.addresses, "", GSR_ERR_FORMAT, "a table without a name");
	WITH(variables[0].name, "", GSR_ERR_FORMAT, "a variable without a name");
	WITH(variables[0].space, GSR_SPACE_CONST, GSR_OK, "the other space");
	WITH(variables[0].space, GSR_SPACE_CONST + 1, GSR_ERR_FORMAT, "a space that is none");
	WITH(variables[0].size, UINT64_MAX, GSR_OK, "any size");
	WITH(variables[1].offset, 17, GSR_ERR_FORMAT, "a function's place at a variable's end");
	WITH(variables[1].offset, UINT64_MAX, GSR_ERR_FORMAT, "a function's place in front of it");
	WITH(variables[1].size, 7, GSR_ERR_FORMAT, "a variable that holds no function");
	WITH(variables[1].copied, true, GSR_ERR_FORMAT, "a copy of what holds functions");
	WITH(list[1], 2, GSR_ERR_FORMAT, "a variable that is not there");
	WITH(list[1], UINT32_MAX, GSR_ERR_FORMAT, "a variable of a negative number");
	WITH(rw.n_variables, 1, GSR_ERR_FORMAT, "more variables of a kernel than there are");
	WITH(kernel.tier, GSR_TIER_LAUNCH, GSR_OK, "another tier");
	WITH(kernel.tier, GSR_TIER_LAUNCH + 1, GSR_ERR_FORMAT, "a tier that is none");
	WITH(kernel.launch_offset, 40, GSR_ERR_FORMAT, "a launch that is not aligned");
	WITH(kernel.launch_offset, 16, GSR_ERR_FORMAT, "a launch in the handles");
	WITH(kernel.references_offset, 20, GSR_ERR_FORMAT, "handles that are not aligned");
	WITH(kernel.references_offset, 8, GSR_ERR_FORMAT, "handles in the parameters");
	WITH(kernel.references_offset, 24, GSR_OK, "handles just before the launch");
	WITH(kernel.references_offset, 32, GSR_ERR_FORMAT, "handles behind the launch");
	WITH(params[0].size, 8, GSR_OK, "a parameter up to the next one");
	WITH(params[0].size, 9, GSR_ERR_FORMAT, "parameters that overlap");
	WITH(params[0].size, 0, GSR_ERR_FORMAT, "a parameter without a size");
	WITH(params[1].offset, 9, GSR_ERR_FORMAT, "a parameter behind the buffer's end");
	WITH(params[1].offset, SIZE_MAX, GSR_ERR_FORMAT, "a parameter beyond measure");
	WITH(kernel.save_fixed, (1 << 20) - 1, GSR_OK, "a large record");
	WITH(kernel.save_fixed, 1 << 20, GSR_ERR_FORMAT, "a record too large");
	WITH(kernel.save_thread, (1 << 17) - 1, GSR_OK, "much to save");
	WITH(kernel.save_thread, 1 << 17, GSR_ERR_FORMAT, "too much to save");
	WITH(kernel.dynamic_shared, 1 << 16, GSR_ERR_FORMAT, "more than a block can have");
	kernel.n_references = 0;
	kernel.params = 0;
	WITH(kernel.param_size, 33, GSR_ERR_FORMAT, "parameters in the launch");
	WITH(kernel.param_size, SIZE_MAX, GSR_ERR_FORMAT, "parameters beyond measure");
}

static void put_u32(unsigned char *at, uint32_t v)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		at[i] = (unsigned char)(v >> (8 * i));
}

/*
 * The head is a magic number, the form's version, that of the ABI, and the status; no table and the
 * numbers of variables and of kernels follow.
 */
static void head(void)
{
	static const struct { unsigned int at; uint32_t value; const char *what; } bad[] = {
		{ 0, 0x7b7b7b7b, "another kind of file" },
		{ 4, 4, "another form" },
		{ 8, GSR_ABI_VERSION + 1, "another ABI" },
		{ 14, UINT32_MAX, "four billion variables" },
		{ 14, 4097, "too many variables" },
		{ 18, UINT32_MAX, "four billion kernels" },
		{ 18, 1, "a kernel that does not follow" },
	};
	struct gsr_rewrite rw = { 0 }, back;
	unsigned char *data, copy[64];
	struct gsr_error err;
	unsigned int i;
	bool good;
	size_t n;

	data = gsr_describe(&rw, &n);
	good = data && n == 22 && there_and_back(&rw, data, n);
	ok(good, "a description of nothing");
	if (!good) {
		free(data);
		return;
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		memcpy(copy, data, n);
		put_u32(copy + bad[i].at, bad[i].value);
		ok(read_copy(copy, n, &back, &err) == GSR_ERR_FORMAT, "%s: an error", bad[i].what);
	}
	memcpy(copy, data, n);
	copy[12] = GSR_ERR_UNSUPPORTED + 1;
	ok(read_copy(copy, n, &back, &err) == GSR_ERR_FORMAT, "a status that is none: an error");
	memcpy(copy, data, n);
	copy[13] = 2;
	ok(read_copy(copy, n, &back, &err) == GSR_ERR_FORMAT, "a flag that is neither: an error");
	memcpy(copy, data, n);
	copy[n] = 0;
	ok(read_copy(copy, n + 1, &back, &err) == GSR_ERR_FORMAT, "one byte more: an error");
	ok(gsr_read_description(copy, 0, &back, NULL) == GSR_ERR_FORMAT && !back.kernels,
	   "nothing: an error, which nobody need ask for");
	free(data);
}

static void refusals(void)
{
	struct gsr_error why = { .status = GSR_ERR_NO_PTX, .message = "machine code only, no PTX" };
	static const size_t most = sizeof(why.message) - 1;
	struct gsr_rewrite back;
	struct gsr_error err;
	unsigned char *data, copy[400];
	unsigned int wrong = 0;
	size_t n, i;

	ok(!gsr_describe_error(&(struct gsr_error){ 0 }, &n), "success is no refusal");
	data = gsr_describe_error(&why, &n);
	ok(data && read_copy(data, n, &back, &err) == why.status &&
	   !strcmp(err.message, why.message), "a refusal says why");
	for (i = 0; data && i < n; i++)
		wrong += read_copy(data, i, &back, &err) != GSR_ERR_FORMAT;
	ok(!wrong, "cut anywhere it is an error");
	if (data) {
		memset(copy, 'x', sizeof(copy));
		memcpy(copy, data, 13);
		put_u32(copy + 13, most);
		ok(read_copy(copy, 17 + most, &back, &err) == why.status &&
		   strlen(err.message) == most, "the longest message");
		put_u32(copy + 13, most + 1);
		ok(read_copy(copy, 18 + most, &back, &err) == GSR_ERR_FORMAT,
		   "a longer one: an error");
		put_u32(copy + 13, 0);
		ok(read_copy(copy, 17, &back, &err) == GSR_ERR_FORMAT, "none: an error");
		put_u32(copy + 13, 3);
		copy[18] = 0;
		ok(read_copy(copy, 17 + 3, &back, &err) == GSR_ERR_FORMAT, "a NUL in it: an error");
	}
	free(data);
}

int main(void)
{
	limits();
	head();
	refusals();
	all();
	return done();
}
