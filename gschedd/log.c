// SPDX-License-Identifier: GPL-2.0-only
/* Log messages, on standard error. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "gschedd.h"

void say(int level, const char *fmt, ...)
{
	static const char *const name[] = { "error: ", "warning: ", "", "debug: " };
	int saved = errno;
	char line[1024];
	va_list ap;

	if (level > opt.log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "gschedd: %s%s\n", name[level], line);
	errno = saved;
}

bool may_say(uint64_t *last)
{
	uint64_t now = now_ns();

	if (*last && now - *last < 1000000000)
		return false;
	*last = now;
	return true;
}
