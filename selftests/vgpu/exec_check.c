// SPDX-License-Identifier: LGPL-2.1-or-later
/* What blocks are checked for, and what memory holds before it is written. */
#include "exec_priv.h"

unsigned int vgpu_checks;

static const struct {
	const char *name;
	unsigned int checks;
} names[] = {
	{ "all", VGPU_CHECK_ALL }, { "none", 0 }, { "sync", VGPU_CHECK_SYNC },
	{ "race", VGPU_CHECK_RACE },
	{ "grid", VGPU_CHECK_GRID }, { "memory", VGPU_CHECK_MEMORY },
	{ "letter", VGPU_CHECK_LETTER },
};

bool vgpu_checks_parse(const char *text, unsigned int *checks)
{
	const size_t n = sizeof(names) / sizeof(*names);
	unsigned int all = 0;

	for (text += strspn(text, ", "); *text; text += strspn(text, ", ")) {
		size_t len = strcspn(text, ", "), i;

		for (i = 0; i < n && (strncmp(names[i].name, text, len) || names[i].name[len]); i++)
			;
		if (i == n)
			return false;
		all |= names[i].checks;
		text += len;
	}
	*checks = all;
	return true;
}

void poison_fill(const struct vgpu_block *b, void *p, size_t size, uint64_t salt)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	const uint64_t step = 0xbf58476d1ce4e5b9ull;
	uint64_t v = (b->poison ^ salt) * 0x9e3779b97f4a7c15ull, word;
	uint8_t *to = p, *end = to + size;
	pair one, two, low, high;

	/*
	 * No pointer; else any number, as in a register that somebody else has left: of either
	 * sign, odd and even. Every block that starts has a lot to fill, so this takes four words
	 * at a time, and no multiplication for each.
	 */
	v = (v ^ v >> 29) * 0x94d049bb133111ebull;
	one = (pair){ v, v + step };
	two = (pair){ v + 2 * step, v + 3 * step };
	for (size_t n = size / 32; n--; to += 32) {
		low = (one ^ one >> 32) | 1ull << 63;
		high = (two ^ two >> 32) | 1ull << 63;
		memcpy(to, &low, 16);
		memcpy(to + 16, &high, 16);
		one += 4 * step;
		two += 4 * step;
	}
	for (v = one[0]; end - to >= 8; to += 8, v += step) {
		word = (v ^ v >> 32) | 1ull << 63;
		memcpy(to, &word, 8);
	}
	while (to < end)
		*to++ = (uint8_t)(v >> 32);
}
