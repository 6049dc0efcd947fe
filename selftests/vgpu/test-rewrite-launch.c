// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rewriter/abi.h"
#include "test-rewrite.h"

/* SMALL|FULL*: the second at full size, each star once more the scale. @scale 0: small */
static bool number(char **at, unsigned int scale, unsigned long long *n)
{
	char *end;

	*n = strtoull(*at, &end, 10);
	if (end == *at)
		return false;
	if (*end == '|') {
		char *full = end + 1;
		unsigned long long m = strtoull(full, &end, 10);

		if (end == full)
			return false;
		*n = scale ? m : *n;
	}
	for (; *end == '*'; end++)
		*n *= scale ? scale : 1;
	*at = end;
	return true;
}

static bool triple(char *at, unsigned int scale, unsigned int out[3])
{
	unsigned long long n;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (!number(&at, scale, &n) || n > UINT32_MAX || *at != (i < 2 ? ',' : 0))
			return false;
		out[i] = (unsigned int)n;
		at++;
	}
	return true;
}

static bool param(char *text, unsigned int scale, struct test_param *p)
{
	static const struct {
		const char *name;
		enum test_fill fill;
		char then;		/* a second number follows it */
	} buffers[] = {
		{ "out", FILL_ZERO, 0 }, { "in", FILL_WORDS, 0 }, { "io", FILL_WORDS, 0 },
		{ "inf", FILL_FLOATS, 0 },
		{ "idx", FILL_INDEX, '%' }, { "ptr", FILL_ROWS, '/' }, { "text", FILL_TEXT, '%' },
	};
	char *colon = strchr(text, ':');
	unsigned long long n = 0, m = 0;
	unsigned int i;
	float f;
	double d;

	if (!colon)
		return false;
	*colon++ = 0;
	memset(p, 0, sizeof(*p));
	for (i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
		if (strcmp(text, buffers[i].name))
			continue;
		if (!number(&colon, scale, &n) || *colon != buffers[i].then)
			return false;
		if (buffers[i].then && (colon++, !number(&colon, scale, &m) || !m || *colon))
			return false;
		p->kind = PARAM_BUFFER;
		p->size = n;
		p->value = m;
		p->fill = buffers[i].fill;
		return true;
	}
	p->kind = PARAM_VALUE;
	if (text[0] == 'u' && (!number(&colon, scale, &n) || *colon))
		return false;
	p->value = n;
	if (!strcmp(text, "bytes")) {
		p->kind = PARAM_BYTES;
	} else if (!strcmp(text, "tex")) {
		p->kind = PARAM_TEXTURE;
	} else if (!strcmp(text, "f32")) {
		f = strtof(colon, NULL);
		memcpy(&p->value, &f, sizeof(f));
	} else if (!strcmp(text, "f64")) {
		d = strtod(colon, NULL);
		memcpy(&p->value, &d, sizeof(d));
	} else if (strcmp(text, "u8") && strcmp(text, "u16") && strcmp(text, "u32") &&
		   strcmp(text, "u64")) {
		return false;
	}
	return true;
}

static bool params(char *text, unsigned int scale, struct test_launch *l)
{
	char *save, *p;

	if (!strcmp(text, "none"))
		return true;
	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (l->n_params == LAUNCH_PARAMS_MAX || !param(p, scale, &l->params[l->n_params++]))
			return false;
	return true;
}

/* NAME:BUFFER or NAME:BUFFERxWIDTH, with commas */
static bool refs(char *text, struct test_launch *l)
{
	char *save, *p, *end;

	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		struct test_ref *r = &l->refs[l->n_refs];
		char *colon = strchr(p, ':');

		if (l->n_refs++ == LAUNCH_REFS_MAX || !colon || colon - p >= (long)sizeof(r->name))
			return false;
		memcpy(r->name, p, (size_t)(colon - p));
		r->buffer = (unsigned int)strtoul(colon + 1, &end, 10);
		if (*end == 'x')
			r->width = (unsigned int)strtoul(end + 1, &end, 10);
		if (*end)
			return false;
	}
	return true;
}

static bool line(char *text, bool full, struct test_launch *l)
{
	char tier[16], *save, *word, *at = strstr(text, " scale="),
		*reason = strstr(text, " reason=");
	unsigned int scale;

	if (reason)
		*reason = 0;
	memset(l, 0, sizeof(*l));
	l->scale = at ? (unsigned int)strtoul(at + 7, NULL, 10) : 1;
	scale = full ? l->scale : 0;
	word = strtok_r(text, " \t\n", &save);
	if (!word || strlen(word) >= sizeof(l->kernel))
		return false;
	strcpy(l->kernel, word);
	word = strtok_r(NULL, " \t\n", &save);
	if (!word || strlen(word) >= sizeof(tier))
		return false;
	strcpy(tier, word);
	l->block = !strcmp(tier, "block");
	if (!l->block && strcmp(tier, "launch"))
		return false;
	while ((word = strtok_r(NULL, " \t\n", &save))) {
		/* not to be run */
		if (!strcmp(word, "-"))
			l->block = false;
		l->ordered |= !strcmp(word, "ordered");
		if (!strcmp(word, "-") || !strcmp(word, "ordered") || !strncmp(word, "scale=", 6))
			continue;
		if (!strncmp(word, "params=", 7) ? !params(word + 7, scale, l) :
		    !strncmp(word, "refs=", 5) ? !refs(word + 5, l) :
		    !strncmp(word, "shared=", 7) ? sscanf(word + 7, "%zu", &l->dynamic) != 1 :
		    !strncmp(word, "arch=", 5) ? sscanf(word + 5, "%u", &l->arch) != 1 :
		    !strncmp(word, "grid=", 5) ? !triple(word + 5, scale, l->grid) :
		    strncmp(word, "block=", 6) || !triple(word + 6, scale, l->block_dim))
			return false;
	}
	return !l->block || (l->grid[0] && l->grid[1] && l->grid[2] && l->block_dim[0]);
}

static bool read_all(const char *ptx_path, bool full, struct test_launches *all, char *why,
		     size_t size)
{
	char path[4096], buf[1024], *end;
	unsigned int n = 0;
	FILE *f;

	memset(all, 0, sizeof(*all));
	snprintf(path, sizeof(path) - 8, "%s", ptx_path);
	end = strrchr(path, '/') ? strrchr(path, '/') : path;
	end = strchr(end, '.') ? strchr(end, '.') : end + strlen(end);
	strcpy(end, ".launch");
	f = fopen(path, "r");
	if (!f) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	while (fgets(buf, sizeof(buf), f)) {
		struct test_launch *l;

		n++;
		if (buf[0] == '#' || !buf[strspn(buf, " \t\n")])
			continue;
		l = realloc(all->launch, (all->n + 1) * sizeof(*l));
		if (!l)
			break;
		all->launch = l;
		if (!line(buf, full, &l[all->n])) {
			snprintf(why, size, "%s:%u: not a launch", path, n);
			fclose(f);
			return false;
		}
		all->n++;
	}
	fclose(f);
	return true;
}

bool launches_read(const char *ptx_path, struct test_launches *all, char *why, size_t size)
{
	return read_all(ptx_path, false, all, why, size);
}

bool launches_read_full(const char *ptx_path, struct test_launches *all, char *why, size_t size)
{
	return read_all(ptx_path, true, all, why, size);
}

void launch_fill(const struct test_param *p, uint8_t *to)
{
	size_t k;

	memset(to, 0, p->size);
	for (k = 0; p->fill == FILL_TEXT && k < p->size; k++)
		to[k] = (uint8_t)('a' + (((uint32_t)k * 2654435761u) >> 8) % p->value);
	for (k = 0; p->fill != FILL_ZERO && p->fill != FILL_TEXT && k + 4 <= p->size; k += 4) {
		uint32_t v = ((uint32_t)(k / 4) * 2654435761u) >> 8;
		float f = (float)(k / 4 % 97) / 4;

		if (p->fill == FILL_INDEX)
			v %= (uint32_t)p->value;
		else if (p->fill == FILL_ROWS)
			v = (uint32_t)(k / 4) * (uint32_t)p->value + v % (uint32_t)p->value;
		else if (p->fill == FILL_FLOATS)
			memcpy(&v, &f, 4);
		memcpy(to + k, &v, 4);
	}
}

void launches_free(struct test_launches *all)
{
	free(all->launch);
	memset(all, 0, sizeof(*all));
}

uint64_t launch_unclaimed(const struct gsr_launch *a, const struct gsr_control *c)
{
	uint64_t total = (uint64_t)a->grid[0] * a->grid[1] * a->grid[2], n = 0, has;
	unsigned int i;

	for (i = 0; i <= a->last_counter; i++) {
		has = (total + a->last_counter - i) / a->counters;
		n += has > c->counter[i].next ? has - c->counter[i].next : 0;
	}
	return n;
}
