// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Closes descriptors that clients have passed, and the connections that may have some unread, in
 * threads that do nothing else. close(2) may wait for as long as a client likes: for a TCP socket
 * with SO_LINGER whose peer does not read, or for a FUSE file system. A thread that waits so has
 * freed the descriptor's number already.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "gschedd.h"

#define THREADS_MAX	64
#define BACKLOG		32	/* so many wait for a thread before there is another one */
#define STACK		65536

struct item {
	struct item *next;
	int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* protects all below */
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct item *first, **end = &first;
static unsigned int n_items, n_threads;

static void *closer(void *arg)
{
	struct item *item;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!first) {
			/* one stays */
			if (n_threads > 1) {
				n_threads--;
				pthread_mutex_unlock(&lock);
				return arg;
			}
			pthread_cond_wait(&more, &lock);
		}
		item = first;
		first = item->next;
		if (!first)
			end = &first;
		n_items--;
		pthread_mutex_unlock(&lock);
		close(item->fd);
		free(item);
		pthread_mutex_lock(&lock);
	}
}

static bool start_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, closer, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return !err;
}

void close_later(int fd)
{
	struct item *item = malloc(sizeof(*item));
	bool start;

	if (!item) {
		close(fd);
		return;
	}
	*item = (struct item){ .fd = fd };
	pthread_mutex_lock(&lock);
	*end = item;
	end = &item->next;
	n_items++;
	start = !n_threads || (n_items >= BACKLOG && n_threads < THREADS_MAX);
	n_threads += start;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	if (!start || start_thread())
		return;
	/* the next one tries again */
	pthread_mutex_lock(&lock);
	n_threads--;
	pthread_mutex_unlock(&lock);
}
