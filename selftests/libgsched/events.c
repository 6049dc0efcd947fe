// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of a later arbiter, longer ones and of types that there are not yet, from the socket and
 * from a device node that the linker's --wrap puts in the place of the module's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "libgsched/transport.h"
#include "arbiter.h"
#include "selftests/tap.h"

#define UNKNOWN	(GSCHED_EVENT_BAND + 1)

int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *buf, size_t size);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *buf, size_t size);

/* What the device node has to read, one behind the other */
static struct {
	int fd;
	char bytes[2048];
	size_t first, end;
	unsigned int reads;
} node = { .fd = -1 };

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (strcmp(path, GSCHED_DEVICE_NODE))
		return __real_open(path, flags, mode);
	node.fd = __real_open("/dev/null", flags, mode);
	return node.fd;
}

/* As many whole events as fit */
ssize_t __wrap_read(int fd, void *buf, size_t size)
{
	uint32_t next;
	size_t n = 0;

	if (fd != node.fd)
		return __real_read(fd, buf, size);
	node.reads++;
	if (node.first == node.end) {
		errno = EAGAIN;
		return -1;
	}
	for (; node.first != node.end; node.first += next, n += next) {
		memcpy(&next, node.bytes + node.first, sizeof(next));
		if (n + next > size)
			break;
		memcpy((char *)buf + n, node.bytes + node.first, next);
	}
	if (n)
		return (ssize_t)n;
	errno = EINVAL;
	return -1;
}

static void node_add(uint32_t type, uint32_t slot, uint32_t size)
{
	const struct gsched_event ev = { .size = size, .type = type, .slot = slot, .window = slot };

	memset(node.bytes + node.end, 0xff, size);
	memcpy(node.bytes + node.end, &ev, sizeof(ev));
	node.end += size;
}

static bool reads(struct gsched *g, unsigned int type, unsigned int slot)
{
	struct gsched_event_info ev;

	return gsched_event_read(g, &ev) == 1 && ev.type == type && ev.slot == slot &&
	       ev.window == slot;
}

static bool reads_nothing(struct gsched *g)
{
	struct gsched_event_info ev;

	return !gsched_event_read(g, &ev);
}

static void module(void)
{
	const struct gsched_open_opts opts = { .size = sizeof(opts),
					       .backend = GSCHED_BACKEND_MODULE };
	struct gsched *g = gsched_open(&opts);
	uint32_t size;

	ok(g && node.fd >= 0, "the module's node is opened");
	ok(reads_nothing(g), "no event");
	node_add(GSCHED_EVENT_GRANT, 1, sizeof(struct gsched_event));
	node_add(GSCHED_EVENT_EVICT, 2, sizeof(struct gsched_event));
	ok(reads(g, GSCHED_EVENT_GRANT, 1) && node.first != node.end,
	   "one event at a time: what is left, poll(2) knows of");
	ok(reads(g, GSCHED_EVENT_EVICT, 2) && reads_nothing(g), "then the next one");
	for (size = sizeof(struct gsched_event) + 8; size <= GSCHED_EVENT_SIZE_MAX; size += 72) {
		node.first = node.end = 0;
		node_add(GSCHED_EVENT_GROW, 3, size);
		node_add(UNKNOWN, 3, sizeof(struct gsched_event));
		node_add(UNKNOWN, 3, size);
		node_add(GSCHED_EVENT_EVICT, 4, sizeof(struct gsched_event));
		ok(reads(g, GSCHED_EVENT_GROW, 3) && node.first == size,
		   "the head of a later event of %u bytes, and no more than that", size);
		ok(reads(g, GSCHED_EVENT_EVICT, 4) && reads_nothing(g),
		   "unknown types are skipped");
	}
	node.first = node.end = 0;
	node_add(UNKNOWN, 5, GSCHED_EVENT_SIZE_MAX);
	ok(reads_nothing(g) && node.first == node.end, "of an unknown type alone: nothing");
	gsched_close(g);
	node.fd = -1;
}

static void daemon_events(void)
{
	static const unsigned char uuid[16] = "0123456789abcde";
	struct gsched_task task = { .slot = 9, .seq = 1, .blocks_per_sm = 1, .blocks = 1 };
	struct gsched_event ev = { .size = sizeof(ev), .slot = 1, .window = 1 };
	struct gsched *g;
	struct fake f;

	fake_start(&f);
	g = gsched_open(NULL);
	if (!g || gsched_attach(g, uuid, true, NULL))
		abort();
	ev.type = GSCHED_EVENT_EVICT;
	ev.size = sizeof(ev) + 16;
	fake_event_of(&f, &ev, ev.size);
	/* of the same slot: it must not take the place of the one before */
	ev.type = UNKNOWN;
	fake_event_of(&f, &ev, ev.size);
	ev.slot = 2;
	fake_event_of(&f, &ev, ev.size);
	/* none of these is an event */
	ev.type = GSCHED_EVENT_GROW;
	ev.size = sizeof(ev) - 8;
	fake_event_of(&f, &ev, sizeof(ev));
	ev.size = sizeof(ev) + 8;
	fake_event_of(&f, &ev, sizeof(ev));
	ev.size = sizeof(ev) + 4;
	fake_event_of(&f, &ev, sizeof(ev) + 4);
	ev.size = sizeof(ev);
	fake_event_of(&f, &ev, 4);
	ok(!gsched_submit(g, &task), "a submit behind events of a later daemon");
	ok(reads(g, GSCHED_EVENT_EVICT, 1) && reads_nothing(g),
	   "the head of the known one, and nothing of the others");
	gsched_close(g);
	fake_stop(&f);
}

int main(void)
{
	module();
	daemon_events();
	return done();
}
