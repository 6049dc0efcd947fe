// SPDX-License-Identifier: LGPL-2.1-or-later
/* Settings from the environment, and messages. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"

uint64_t gi_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	unsigned long long v;
	char *end;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	v = strtoull(text, &end, 10);
	return errno || *end ? otherwise : v;
}

static bool debug_enabled(void)
{
	static int on = -1;

	if (on < 0)
		on = getenv("GSCHED_DEBUG") != NULL;
	return on;
}

static void write_line(const char *fmt, va_list ap)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "gsched[%d]: ", (int)getpid());

	n += vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void gi_debug(const char *fmt, ...)
{
	va_list ap;

	if (!debug_enabled())
		return;
	va_start(ap, fmt);
	write_line(fmt, ap);
	va_end(ap);
}

void gi_illegal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
#ifdef GI_CHECKED
	write_line(fmt, ap);
	abort();
#else
	if (debug_enabled())
		write_line(fmt, ap);
#endif
	va_end(ap);
}

void gi_report(struct gsched_cl_page *page, const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char text[sizeof(page->header.why)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gi_debug("%s", text);
	if (!page)
		return;
	pthread_mutex_lock(&lock);
	/* a concurrent reader always finds a terminated string */
	page->header.why[0] = 0;
	memcpy(page->header.why + 1, text + 1, sizeof(text) - 1);
	__atomic_store_n(&page->header.why[0], text[0], __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}
