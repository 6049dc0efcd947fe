// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The epoll loop, with halt polling. A sleeping thread costs the next message a wake-up (tens of
 * us), as much as a short kernel takes. So while clients compete, the loop stays awake for a while
 * after each message. As in KVM, the polling time shrinks when it did not help, and grows again
 * when the next message would have come within it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "gschedd.h"

#define BATCH	128

static int epfd = -1;
static bool stopping, more;
static bool (*after_turn)(void);
static void (*before_sleep)(void);
static bool (*poll_while)(void);
static struct source *dead;
static uint64_t poll_until, poll_ns, poll_most;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int loop_init(void)
{
	epfd = epoll_create1(EPOLL_CLOEXEC);
	return epfd < 0 ? -errno : 0;
}

int loop_add(struct source *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, src->fd, &ev) ? -errno : 0;
}

void loop_mod(struct source *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	epoll_ctl(epfd, EPOLL_CTL_MOD, src->fd, &ev);
}

void loop_del(struct source *src)
{
	if (src->fd < 0)
		return;
	epoll_ctl(epfd, EPOLL_CTL_DEL, src->fd, NULL);
	close(src->fd);
	src->fd = -1;
}

void loop_del_later(struct source *src)
{
	if (src->fd < 0)
		return;
	epoll_ctl(epfd, EPOLL_CTL_DEL, src->fd, NULL);
	/* the peer need not wait for the end */
	shutdown(src->fd, SHUT_RDWR);
	close_later(src->fd);
	src->fd = -1;
}

void loop_free(struct source *src, void *mem)
{
	loop_del(src);
	src->mem = mem;
	src->next_dead = dead;
	dead = src;
}

static void free_dead(void)
{
	while (dead) {
		struct source *src = dead;

		dead = src->next_dead;
		free(src->mem);
	}
}

void loop_stop(void)
{
	stopping = true;
}

void loop_after_turn(bool (*fn)(void))
{
	after_turn = fn;
}

void loop_before_sleep(void (*fn)(void))
{
	before_sleep = fn;
}

void loop_poll_while(uint64_t ns, bool (*fn)(void))
{
	poll_while = fn;
	poll_ns = poll_most = ns;
}

void loop_message(void)
{
	if (poll_ns)
		poll_until = now_ns() + poll_ns;
}

/* Yields the core to its sibling hardware thread, or saves power, for some tens of cycles. */
static void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");	/* "yield" is a no-op on cores with one hardware thread */
#endif
}

static int wait_events(struct epoll_event *ev)
{
	uint64_t from;
	int n;

	if (more)
		return epoll_wait(epfd, ev, BATCH, 0);
	if (poll_until) {
		bool worth = poll_while();

		do {
			n = epoll_wait(epfd, ev, BATCH, 0);
			if (n)
				return n;
			for (int i = 0; i < 16; i++)
				cpu_relax();
		} while (worth && now_ns() < poll_until);
		poll_until = 0;
	}
	if (before_sleep)
		before_sleep();
	from = now_ns();
	n = epoll_wait(epfd, ev, BATCH, -1);
	if (poll_most && n > 0)
		poll_ns = now_ns() - from < poll_most ? poll_most : poll_ns / 2;
	return n;
}

void loop_run(void)
{
	struct epoll_event ev[BATCH];

	while (!stopping) {
		int n = wait_events(ev);

		if (n < 0 && errno != EINTR) {
			say(LOG_ERROR, "epoll_wait: %m");
			return;
		}
		for (int i = 0; i < n; i++) {
			struct source *src = ev[i].data.ptr;

			/* it may have been removed by an earlier event of this turn */
			if (src->fd >= 0)
				src->ready(src, ev[i].events);
		}
		more = after_turn();
		free_dead();
	}
	free_dead();
}
