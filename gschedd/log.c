// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log messages, on standard error. Who reads them may have stopped, and the daemon must not wait
 * for that: a message that cannot be written at once is lost, and counted.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "gschedd.h"

/* A line: less than PIPE_BUF, for which there is room if there is any */
static bool put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool put(const char *fmt, ...)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[1100];
	va_list ap;
	int n;

	if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
		return false;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	return write(STDERR_FILENO, line, (size_t)n) == n;
}

void say(int level, const char *fmt, ...)
{
	static const char *const name[] = { "error: ", "warning: ", "", "debug: " };
	static unsigned int lost;
	int saved = errno;
	char line[1024];
	va_list ap;

	if (level > opt.log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (lost && put("gschedd: warning: %u messages were lost, as the log was not read\n", lost))
		lost = 0;
	if (lost || !put("gschedd: %s%s\n", name[level], line))
		lost++;
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
