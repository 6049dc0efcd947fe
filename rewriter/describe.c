// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The description of a rewrite as gschedd's cache and its protocol carry it. A description
 * consists of a head and of what the structs of gsr.h hold, in the order below. Numbers are
 * little-endian and not aligned; a string is its length (u32) and so many bytes other than NUL; a
 * list is the number of its members (u32) and these. The twins' PTX is not part of it.
 *
 * As in XDR, one function for each struct both writes and reads it. Each value has one form only:
 * what can be read is what writing it again gives. When the form changes, FORMAT does.
 *
 * In: struct gsr_rewrite, or bytes. Out: bytes, or struct gsr_rewrite. Assumes nothing of bytes
 * that it reads.
 */
#include <endian.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/ptx/arena.h"
#include "gsr.h"

#define MAGIC		"GSRD"
#define FORMAT		3
#define SIZE_MOST	(1u << 20)	/* of parameters; kernels that claim more have no twin */
#define FIXED_MOST	((1u << 20) - 1)
#define THREAD_MOST	((1u << 17) - 1)
#define DYNAMIC_MOST	((1u << 16) - 1)

/* No member of these lists takes fewer bytes: it bounds how many the rest of the input can hold. */
#define VARIABLE_LEAST	16
#define KERNEL_LEAST	68
#define REFERENCE_LEAST	5
#define INDEX_LEAST	4
#define PARAM_LEAST	8

struct io {
	struct gsr_arena *arena;	/* reading: for strings and lists. NULL: writing */
	const unsigned char *from;	/* reading */
	unsigned char *to;		/* writing; NULL: only the size is wanted */
	size_t at, size;
	bool bad;			/* for good: what is read from then on is 0 */
};

static size_t left(const struct io *io)
{
	return io->size - io->at;
}

/* @p is only read when writing. */
static void bytes(struct io *io, void *p, size_t n)
{
	if (io->bad || ((io->arena || io->to) && n > left(io))) {
		io->bad = true;
		if (io->arena)
			memset(p, 0, n);
		return;
	}
	if (io->arena)
		memcpy(p, io->from + io->at, n);
	else if (io->to)
		memcpy(io->to + io->at, p, n);
	io->at += n;
}

/* Limits are those of the reader, which believes nothing. */
static void expect(struct io *io, bool good)
{
	if (io->arena && !good)
		io->bad = true;
}

static void u64(struct io *io, uint64_t *v)
{
	uint64_t le = htole64(*v);

	bytes(io, &le, sizeof(le));
	*v = le64toh(le);
}

static void u32(struct io *io, uint32_t *v, uint32_t most)
{
	uint32_t le = htole32(*v);

	bytes(io, &le, sizeof(le));
	*v = le32toh(le);
	expect(io, *v <= most);
}

static unsigned int choice(struct io *io, unsigned int v, unsigned int most)
{
	unsigned char byte = v <= UINT8_MAX ? (unsigned char)v : UINT8_MAX;

	bytes(io, &byte, 1);
	expect(io, byte <= most);
	return byte;
}

static void flag(struct io *io, bool *v)
{
	*v = choice(io, *v, 1) == 1;
}

static void size(struct io *io, size_t *v)
{
	uint32_t n = *v < SIZE_MOST ? (uint32_t)*v : SIZE_MOST;

	u32(io, &n, SIZE_MOST);
	*v = n;
}

static void string(struct io *io, const char **s)
{
	size_t length = io->arena ? 0 : strlen(*s);
	uint32_t n = (uint32_t)length;

	if (length > UINT32_MAX)
		io->bad = true;
	u32(io, &n, UINT32_MAX);
	if (!io->arena) {
		bytes(io, (char *)*s, n);
	} else if (io->bad || n > left(io) || memchr(io->from + io->at, 0, n)) {
		io->bad = true;
		*s = "";
	} else {
		*s = gsr_strndup(io->arena, (const char *)io->from + io->at, n);
		io->at += n;
	}
}

/* NULL is not "". */
static void optional(struct io *io, const char **s)
{
	bool there = *s;

	flag(io, &there);
	if (there)
		string(io, s);
}

/* The length of a list; 0 if the input cannot hold that many members of @least bytes. */
static void io_count(struct io *io, unsigned int *n, unsigned int most, size_t least)
{
	u32(io, n, most);
	expect(io, *n <= left(io) / least);
	if (io->bad)
		*n = 0;
}

static void variable(struct io *io, struct gsr_variable *v)
{
	string(io, &v->name);
	v->space = choice(io, v->space, GSR_SPACE_CONST);
	u64(io, &v->size);
	flag(io, &v->copied);
	optional(io, &v->function);
	if (v->function) {
		u64(io, &v->offset);
		expect(io, v->size >= 8 && v->offset <= v->size - 8 && !v->copied);
	}
	expect(io, *v->name);
}

static void kernel_variables(struct io *io, struct gsr_kernel *k, unsigned int n_variables)
{
	const unsigned int *from = k->variables;
	unsigned int *list = NULL, i;

	io_count(io, &k->n_variables, n_variables, INDEX_LEAST);
	if (io->arena)
		k->variables = list = gsr_alloc_array(io->arena, k->n_variables, sizeof(*list));
	for (i = 0; i < k->n_variables && !io->bad; i++) {
		unsigned int index = list ? 0 : from[i];

		u32(io, &index, n_variables - 1);
		if (list)
			list[i] = index;
	}
}

/* The handles fit between the original parameters and the launch's. */
static void kernel_references(struct io *io, struct gsr_kernel *k)
{
	const struct gsr_reference *from = k->references;
	struct gsr_reference *list = NULL;
	unsigned int i;
	size_t end;

	io_count(io, &k->n_references, GSR_REFERENCES_MAX, REFERENCE_LEAST);
	if (io->arena)
		k->references = list = gsr_alloc_array(io->arena, k->n_references, sizeof(*list));
	for (i = 0; i < k->n_references && !io->bad; i++) {
		struct gsr_reference r = { 0 };

		if (!list)
			r = from[i];
		string(io, &r.name);
		flag(io, &r.surface);
		if (list)
			list[i] = r;
	}
	size(io, &k->references_offset);
	end = k->references_offset + 8 * (size_t)k->n_references;
	expect(io, !k->n_references || (k->references_offset % 8 == 0 && end <= k->launch_offset &&
					k->references_offset >= k->param_size));
}

/* Those of a twin are in order, and in the buffer. */
static void kernel_params(struct io *io, struct gsr_kernel *k)
{
	const struct gsr_param *from = k->layout;
	struct gsr_param *list = NULL;
	size_t end = 0;
	unsigned int i;

	io_count(io, &k->params, UINT32_MAX, PARAM_LEAST);
	size(io, &k->param_size);
	if (io->arena)
		k->layout = list = gsr_alloc_array(io->arena, k->params, sizeof(*list));
	for (i = 0; i < k->params && !io->bad; i++) {
		struct gsr_param p = { 0 };

		if (!list)
			p = from[i];
		size(io, &p.offset);
		size(io, &p.size);
		expect(io, k->tier != GSR_TIER_BLOCK ||
			   (p.size && p.offset >= end && p.offset + p.size <= k->param_size));
		end = p.offset + p.size;
		if (list)
			list[i] = p;
	}
}

static void kernel(struct io *io, struct gsr_kernel *k, unsigned int n_variables)
{
	unsigned int i;

	string(io, &k->name);
	k->tier = choice(io, k->tier, GSR_TIER_LAUNCH);
	string(io, &k->reason);
	kernel_params(io, k);
	size(io, &k->launch_offset);
	expect(io, k->tier != GSR_TIER_BLOCK ||
		   (k->launch_offset % 16 == 0 && k->launch_offset >= k->param_size));
	u32(io, &k->barriers, UINT32_MAX);
	u32(io, &k->returns, UINT32_MAX);
	flag(io, &k->early_return);
	flag(io, &k->warp_rows);
	flag(io, &k->waits);
	u32(io, &k->static_shared, UINT32_MAX);
	u32(io, &k->dynamic_shared, DYNAMIC_MOST);
	for (i = 0; i < GSR_INSERTIONS; i++)
		u32(io, &k->inserted[i], UINT32_MAX);
	u32(io, &k->sites, UINT32_MAX);
	u32(io, &k->resume_points, UINT32_MAX);
	flag(io, &k->restarts);
	optional(io, &k->resume_reason);
	u32(io, &k->save_fixed, FIXED_MOST);
	u32(io, &k->save_thread, THREAD_MOST);
	kernel_variables(io, k, n_variables);
	kernel_references(io, k);
}

/* Members are copied, so that writing leaves @rw alone. */
static void rewrite(struct io *io, struct gsr_rewrite *rw)
{
	unsigned int i;

	optional(io, &rw->addresses);
	io_count(io, &rw->n_variables, GSR_VARIABLES_MAX, VARIABLE_LEAST);
	expect(io, !rw->n_variables || (rw->addresses && *rw->addresses));
	if (io->arena)
		rw->variables = gsr_alloc_array(io->arena, rw->n_variables, sizeof(*rw->variables));
	for (i = 0; i < rw->n_variables && !io->bad; i++) {
		struct gsr_variable v = rw->variables[i];

		variable(io, &v);
		if (io->arena)
			rw->variables[i] = v;
	}
	io_count(io, &rw->n_kernels, UINT32_MAX, KERNEL_LEAST);
	if (io->arena)
		rw->kernels = gsr_alloc_array(io->arena, rw->n_kernels, sizeof(*rw->kernels));
	for (i = 0; i < rw->n_kernels && !io->bad; i++) {
		struct gsr_kernel k = rw->kernels[i];

		kernel(io, &k, rw->n_variables);
		if (io->arena)
			rw->kernels[i] = k;
	}
}

/* A refusal has a status and a message in place of the rewrite. */
static void description(struct io *io, struct gsr_rewrite *rw, struct gsr_error *err)
{
	uint32_t format = FORMAT, abi = GSR_ABI_VERSION;
	const char *message = err->message;
	char magic[4] = MAGIC;

	bytes(io, magic, sizeof(magic));
	u32(io, &format, UINT32_MAX);
	u32(io, &abi, UINT32_MAX);
	expect(io, !memcmp(magic, MAGIC, sizeof(magic)));
	expect(io, format == FORMAT && abi == GSR_ABI_VERSION);
	err->status = choice(io, err->status, GSR_ERR_UNSUPPORTED);
	if (io->bad)
		return;
	if (err->status == GSR_OK) {
		rewrite(io, rw);
		return;
	}
	string(io, &message);
	expect(io, *message && strlen(message) < sizeof(err->message));
	if (io->arena && !io->bad)
		strcpy(err->message, message);
}

static void *write_description(const struct gsr_rewrite *rw, const struct gsr_error *err,
			       size_t *size)
{
	struct gsr_rewrite copy = rw ? *rw : (struct gsr_rewrite){ 0 };
	struct gsr_error why = err ? *err : (struct gsr_error){ 0 };
	struct io io = { 0 };

	description(&io, &copy, &why);
	if (io.bad)
		return NULL;
	io.size = io.at;
	io.at = 0;
	io.to = malloc(io.size);
	if (!io.to)
		return NULL;
	description(&io, &copy, &why);
	*size = io.size;
	return io.to;
}

void *gsr_describe(const struct gsr_rewrite *rw, size_t *size)
{
	return write_description(rw, NULL, size);
}

void *gsr_describe_error(const struct gsr_error *err, size_t *size)
{
	return err->status ? write_description(NULL, err, size) : NULL;
}

static enum gsr_status read_description(struct io *io, struct gsr_rewrite *out,
					struct gsr_error *err)
{
	jmp_buf nomem;

	if (setjmp(nomem))
		return GSR_ERR_NOMEM;
	gsr_arena_escape(io->arena, &nomem);
	description(io, out, err);
	gsr_arena_escape(io->arena, NULL);
	return io->bad || left(io) ? GSR_ERR_FORMAT : GSR_OK;
}

enum gsr_status gsr_read_description(const void *data, size_t size, struct gsr_rewrite *out,
				     struct gsr_error *err)
{
	struct io io = { .arena = gsr_arena_new(), .from = data, .size = size };
	struct gsr_error why = { 0 };
	enum gsr_status status;

	memset(out, 0, sizeof(*out));
	status = io.arena ? read_description(&io, out, &why) : GSR_ERR_NOMEM;
	if (status != GSR_OK) {
		why = (struct gsr_error){ .status = status };
		snprintf(why.message, sizeof(why.message), "<description>: %s",
			 status == GSR_ERR_NOMEM ? "out of memory" : "not one of this version");
	}
	if (err)
		*err = why;
	if (why.status == GSR_OK) {
		out->arena = io.arena;
		return GSR_OK;
	}
	gsr_arena_free(io.arena);
	memset(out, 0, sizeof(*out));
	return why.status;
}

/* Here, so that a reader of descriptions is not linked with the passes. */
void gsr_rewrite_free(struct gsr_rewrite *rw)
{
	if (!rw)
		return;
	free(rw->ptx);
	gsr_arena_free(rw->arena);
	memset(rw, 0, sizeof(*rw));
}
