/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What it costs a GPU to go from one process to another: two processes take turns, a short kernel
 * each, launched and waited for. Prints one JSON line: medians of a kernel by one process alone and
 * in turns, and their difference. usage: switch [ITERS [TURNS]]
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "selftests/programs/common.h"

#define WARM	100

struct shared {
	_Atomic unsigned int turn;	/* whose: even the parent's, odd the child's */
	_Atomic unsigned int ready;
};

static uint64_t kernel(struct dev_buf *out, unsigned int iters)
{
	uint64_t from = now_ns();

	dev_launch(1, 1, 32, out, iters, 1);
	dev_sync();
	return now_ns() - from;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(uint64_t *ns, unsigned int n)
{
	unsigned int mid = n / 2;

	qsort(ns, n, sizeof(*ns), compare);
	return (double)ns[mid] / 1e3;
}

/* The parent alternates with nobody first: the child begins when it gives it the turn */
static void take_turns(struct shared *sh, struct dev_buf *out, unsigned int iters, unsigned int who,
		       unsigned int turns, uint64_t *ns)
{
	unsigned int i;

	for (i = 0; i < turns; i++) {
		while (sh->turn != 2 * i + who)
			sched_yield();
		ns[i] = kernel(out, iters);
		sh->turn = 2 * i + who + 1;
	}
}

int main(int argc, char **argv)
{
	unsigned int iters = argc > 1 ? number(argv[1], "ITERS") : 100, turns = argc > 2 ?
			     number(argv[2], "TURNS") : 1000, i;
	struct shared *sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t *ns = calloc(turns + WARM + 1u, sizeof(*ns));
	struct dev_buf *out;
	double alone, both;
	pid_t child;

	if (sh == MAP_FAILED || !ns || turns < 1) {
		fprintf(stderr, "switch: out of memory, or no turns\n");
		exit(1);
	}
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(1);
	}
	dev_init(argv[0], 0);
	out = dev_alloc(4);
	for (i = 0; i < WARM; i++)
		kernel(out, iters);
	sh->ready++;
	while (sh->ready < 2)
		sched_yield();
	if (!child) {
		take_turns(sh, out, iters, 1, turns, ns);
		exit(0);
	}
	for (i = 0; i < turns; i++)
		ns[i] = kernel(out, iters);
	alone = median_us(ns, turns);
	take_turns(sh, out, iters, 0, turns, ns);
	waitpid(child, NULL, 0);
	both = median_us(ns, turns);
	printf("{\"alone_us\":%.1f,\"in_turns_us\":%.1f,\"switch_us\":%.1f}\n", alone, both,
	       both - alone);
	free(ns);
	return 0;
}
