/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The few GPU calls that the example programs make, once over the driver API (dev_drv.c), once over
 * the runtime (dev_rt.cu).
 */
#ifndef PROGRAMS_DEV_H
#define PROGRAMS_DEV_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dev_buf;
struct dev_graph;

/*
 * Each prints a message and ends the program on failure: these are examples of programs that know
 * nothing of gsched.
 */
void dev_init(const char *argv0, int high_priority);
unsigned int dev_sms(void);
struct dev_buf *dev_alloc(size_t bytes);		/* zeroed */
void dev_read(void *host, const struct dev_buf *buf, size_t bytes);
void dev_launch(unsigned int grid_x, unsigned int grid_y, unsigned int threads, struct dev_buf *out,
		unsigned int iters, unsigned int seed);
void dev_sync(void);
unsigned int dev_blocks_per_sm(unsigned int threads);
/* Launches between the two become a graph instead of running; one at a time */
void dev_capture_begin(void);
struct dev_graph *dev_capture_end(void);
void dev_graph_launch(struct dev_graph *graph);
void dev_graph_free(struct dev_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
