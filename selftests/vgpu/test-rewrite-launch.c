// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test-rewrite.h"

static bool param(char *text, struct test_param *p)
{
	char *colon = strchr(text, ':');
	unsigned long long n;
	float f;
	double d;

	if (!colon)
		return false;
	*colon++ = 0;
	n = strtoull(colon, NULL, 10);
	memset(p, 0, sizeof(*p));
	p->kind = PARAM_VALUE;
	p->value = n;
	if (!strcmp(text, "in") || !strcmp(text, "io") || !strcmp(text, "inf") || !strcmp(text, "out")) {
		p->kind = PARAM_BUFFER;
		p->size = n;
		p->fill = !strcmp(text, "inf") ? FILL_FLOATS : !strcmp(text, "out") ? FILL_ZERO : FILL_WORDS;
	} else if (!strcmp(text, "bytes")) {
		p->kind = PARAM_BYTES;
	} else if (!strcmp(text, "f32")) {
		f = strtof(colon, NULL);
		memcpy(&p->value, &f, sizeof(f));
	} else if (!strcmp(text, "f64")) {
		d = strtod(colon, NULL);
		memcpy(&p->value, &d, sizeof(d));
	} else if (strcmp(text, "u8") && strcmp(text, "u16") && strcmp(text, "u32") && strcmp(text, "u64")) {
		return false;
	}
	return true;
}

static bool params(char *text, struct test_launch *l)
{
	char *save, *p;

	if (!strcmp(text, "none"))
		return true;
	for (p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (l->n_params == LAUNCH_PARAMS_MAX || !param(p, &l->params[l->n_params++]))
			return false;
	return true;
}

static bool line(char *text, struct test_launch *l)
{
	char tier[16], *save, *word, *reason = strstr(text, " reason=");

	if (reason)
		*reason = 0;
	memset(l, 0, sizeof(*l));
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
		unsigned int *g = l->grid, *b = l->block_dim;

		if (!strcmp(word, "-"))
			continue;
		if (!strncmp(word, "params=", 7) ? !params(word + 7, l) :
		    !strncmp(word, "shared=", 7) ? sscanf(word + 7, "%zu", &l->dynamic) != 1 :
		    !strncmp(word, "arch=", 5) ? sscanf(word + 5, "%u", &l->arch) != 1 :
		    sscanf(word, "grid=%u,%u,%u", &g[0], &g[1], &g[2]) != 3 && sscanf(word, "block=%u,%u,%u", &b[0], &b[1], &b[2]) != 3)
			return false;
	}
	return !l->block || (l->grid[0] && l->grid[1] && l->grid[2] && l->block_dim[0]);
}

bool launches_read(const char *ptx_path, struct test_launches *all, char *why, size_t size)
{
	char path[4096], buf[1024], *end;
	unsigned int n = 0;
	FILE *f;

	memset(all, 0, sizeof(*all));
	snprintf(path, sizeof(path) - 8, "%s", ptx_path);
	end = strrchr(path, '/') ? strrchr(path, '/') : path;
	end = strstr(end, ".sm_") ? strstr(end, ".sm_") : strrchr(end, '.') ? strrchr(end, '.') : end + strlen(end);
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
		if (!line(buf, &l[all->n])) {
			snprintf(why, size, "%s:%u: not a launch", path, n);
			fclose(f);
			return false;
		}
		all->n++;
	}
	fclose(f);
	return true;
}

void launches_free(struct test_launches *all)
{
	free(all->launch);
	memset(all, 0, sizeof(*all));
}
