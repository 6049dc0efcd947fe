// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: prints foreign names on a terminal. */
#include <stdio.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>
#include "ctl.h"

void ctl_put_safely(FILE *to, const char *s)
{
	mbstate_t state = { 0 };
	wchar_t c;

	while (*s) {
		size_t len = mbrtowc(&c, s, strlen(s), &state);

		if (len == (size_t)-1 || len == (size_t)-2 || !iswprint(c)) {
			fprintf(to, "\\x%02x", (unsigned char)*s++);
			memset(&state, 0, sizeof(state));
			continue;
		}
		fwrite(s, 1, len, to);
		s += len;
	}
}
