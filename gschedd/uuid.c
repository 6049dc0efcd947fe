// SPDX-License-Identifier: GPL-2.0-only
/* UUIDs of devices as text. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "gschedd.h"

int parse_uuid(const char *text, size_t len, uint8_t *uuid)
{
	unsigned int n = 0;

	if (len > 4 && (!strncmp(text, "GPU-", 4) || !strncmp(text, "MIG-", 4))) {
		text += 4;
		len -= 4;
	}
	memset(uuid, 0, GSCHED_UUID_SIZE);
	for (size_t i = 0; i < len; i++) {
		int c = tolower((unsigned char)text[i]);

		if (c == '-')
			continue;
		if (!isxdigit(c) || n == 2 * GSCHED_UUID_SIZE)
			return -1;
		uuid[n / 2] |= (isdigit(c) ? c - '0' : c - 'a' + 10) << (n % 2 ? 0 : 4);
		n++;
	}
	return n == 2 * GSCHED_UUID_SIZE ? 0 : -1;
}

void uuid_text(const uint8_t *uuid, char *text)
{
	for (int i = 0; i < GSCHED_UUID_SIZE; i++)
		text += sprintf(text, "%s%02x",
				i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}
