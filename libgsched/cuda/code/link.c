// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs that link at run time (cuLinkAddData(), as Numba does) load machine code without PTX. So
 * the input of a link is kept. When such machine code is loaded, it is recognised by its contents,
 * because programs copy it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

#define INPUTS_MAX	(64u << 20)	/* bytes kept per link; and of all results */
#define RESULTS_MAX	256

struct input {
	struct input *next;
	CUlinkState state;
	struct gsr_unit *units;
	unsigned int n;
	size_t bytes;
	bool dropped;			/* exceeds INPUTS_MAX */
};

/* The result of a link: size and hash of the machine code, and the PTX of its units */
struct result {
	struct result *next;
	size_t size, source_size;
	uint64_t hash;
	char *source;
};

/* gi_lock */
static struct input *inputs;
static struct result *results;		/* latest first */
static unsigned int n_results;

static uint64_t hash_of(const unsigned char *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull, w;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	while (n--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static void input_free(struct input *in)
{
	while (in->n--)
		free((void *)in->units[in->n].data);
	free(in->units);
	free(in);
}

/* Removes the input from the list. gi_lock held. */
static struct input *take_input(CUlinkState state)
{
	struct input **p, *in;

	for (p = &inputs; *p && (*p)->state != state; p = &(*p)->next)
		;
	in = *p;
	if (in)
		*p = in->next;
	return in;
}

/* Keeps a copy of @data, NUL-terminated. gi_lock held. */
static void keep_input(CUlinkState state, const void *data, size_t size)
{
	struct input *in = take_input(state);
	struct gsr_unit *grown;
	char *copy;

	if (!in) {
		in = calloc(1, sizeof(*in));
		if (!in)
			return;
		in->state = state;
	}
	in->next = inputs;
	inputs = in;
	if (in->dropped || size > INPUTS_MAX - in->bytes) {
		in->dropped = true;
		return;
	}
	copy = malloc(size + 1);
	grown = copy ? realloc(in->units, (in->n + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		in->dropped = true;
		return;
	}
	memcpy(copy, data, size);
	copy[size] = 0;
	in->units = grown;
	in->units[in->n].data = copy;
	in->units[in->n++].size = size;
	in->bytes += size;
}

void gi_link_data(CUlinkState state, const void *data, size_t size)
{
	pthread_mutex_lock(&gi_lock);
	keep_input(state, data, size);
	pthread_mutex_unlock(&gi_lock);
}

void gi_link_file(CUlinkState state, const char *path)
{
	FILE *f = fopen(path, "re");
	char *data = f ? malloc(INPUTS_MAX) : NULL;
	size_t n = data ? fread(data, 1, INPUTS_MAX, f) : 0;

	if (n && n < INPUTS_MAX)
		gi_link_data(state, data, n);
	free(data);
	if (f)
		fclose(f);
}

/* gi_lock held. */
static void forget_results(unsigned int most)
{
	struct result **p = &results, *r;
	size_t bytes = 0;
	unsigned int i = 0;

	while ((r = *p)) {
		bytes += r->source_size;
		if (i++ < most && bytes <= INPUTS_MAX) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		free(r->source);
		free(r);
		n_results--;
	}
}

static void add_result(struct input *in, unsigned int arch, const void *code, size_t size)
{
	struct result *r = calloc(1, sizeof(*r));
	struct gsr_error err;

	if (!r)
		return;
	if (gsr_program_source(NULL, 0, in->units, in->n, arch, &r->source, &r->source_size,
			       &err)) {
		gi_debug("link: %s", err.message);
		free(r);
		return;
	}
	r->size = gsr_image_size(code, size);
	r->hash = hash_of(code, r->size);
	pthread_mutex_lock(&gi_lock);
	r->next = results;
	results = r;
	n_results++;
	forget_results(RESULTS_MAX);
	pthread_mutex_unlock(&gi_lock);
}

void gi_link_ends(CUlinkState state, const void *code, size_t size)
{
	struct gi_ctx *cx = code ? gi_current() : NULL;
	struct input *in;

	pthread_mutex_lock(&gi_lock);
	in = take_input(state);
	pthread_mutex_unlock(&gi_lock);
	if (!in)
		return;
	if (!in->dropped && cx && cx->client)
		add_result(in, cx->client->arch, code, size);
	input_free(in);
}

char *gi_linked_source(const void *image, size_t max, size_t *source_size)
{
	char *source = NULL;
	struct result *r;
	uint64_t hash;
	size_t size;

	pthread_mutex_lock(&gi_lock);
	if (n_results && gsr_image_kind(image, max) == GSR_IMAGE_ELF &&
	    (size = gsr_image_size(image, max))) {
		hash = hash_of(image, size);
		for (r = results; r && (r->size != size || r->hash != hash); r = r->next)
			;
		source = r ? malloc(r->source_size) : NULL;
		if (source) {
			memcpy(source, r->source, r->source_size);
			*source_size = r->source_size;
		}
	}
	pthread_mutex_unlock(&gi_lock);
	return source;
}

void gi_link_reset(void)
{
	inputs = NULL;
	results = NULL;
	n_results = 0;
}
