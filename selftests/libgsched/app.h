/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program app.c: what its steps share, and those that are in other files */
#ifndef SELFTESTS_LIBGSCHED_APP_H
#define SELFTESTS_LIBGSCHED_APP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "libgsched/cuda/base/cudadrv.h"

#define BLOCKS	192
#define THREADS	64
#define N	60
#define HELD	8
#define FEW	16

extern CUdevice dev;
extern CUcontext ctx;
extern char *image;

void check(CUresult rc, const char *what);
#define DO(call) check(call, #call)

CUdeviceptr buffer(size_t words);
uint64_t hash_of(CUdeviceptr p, size_t words);	/* of what was there; it is freed */
void show(const char *step, uint64_t h);
void say(const char *what);
/* Says what it has done, and goes on when a byte has come on standard input */
void stop_at(const char *what);
void launch_graph(CUfunction f, unsigned int blocks, CUstream s, void **params);
void launch_work(CUfunction f, CUstream s, CUdeviceptr p, uint32_t n, uint32_t seed);

/* app-held.c */
void held(CUmodule m, bool behind);
void asked(CUmodule m);
void beside(CUmodule m);
void covered(CUmodule m);
void dependent(CUmodule m);

/* app-graphs.c */
/* What a kernel goes with */
enum owner { OF_MODULE, OF_LIBRARY, OF_CONTEXT, OF_GRAPH };

void dependents(CUmodule m);
void replay(CUmodule m, unsigned int blocks);
void updated(CUmodule m);
void reused(CUmodule m);
void renewed(enum owner owner);

#endif
