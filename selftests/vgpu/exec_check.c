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
	uint64_t v = (b->poison ^ salt) * 0x9e3779b97f4a7c15ull, word;
	size_t i;

	/*
	 * No pointer; else any number, as in a register that somebody else has left: of either
	 * sign, odd and even
	 */
	for (i = 0; i < size / 8; i++) {
		word = v + i * 0xbf58476d1ce4e5b9ull;
		word = (word ^ word >> 29) * 0x94d049bb133111ebull;
		word = (word ^ word >> 32) | 1ull << 63;
		memcpy((uint8_t *)p + 8 * i, &word, 8);
	}
	for (i = size & ~(size_t)7; i < size; i++)
		((uint8_t *)p)[i] = (uint8_t)(v >> 32);
}
