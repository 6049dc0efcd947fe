/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the interposer chooses for each launch of a twin. Benchmarks measure twins with the same. */
#ifndef GI_TUNING_H
#define GI_TUNING_H

#define GI_LONG_NS		200000	/* shorter kernels are not worth preempting */
#define GI_POLL_NS		2000
#define GI_FETCH_NS		10000
#define GI_FETCH_MAX		256
/*
 * Kernels whose block-tasks take longer are worth the resumable form: it costs several percent (H200), and eviction is
 * not much sooner than the end of shorter ones.
 */
#define GI_RESUME_NS		400000
/*
 * What a worker of the resumable form needs to leave: it looks once in about 50 us where the SM is full, and writes the state
 * of its block to memory.
 */
#define GI_LEAVE_NS		70000

#endif /* GI_TUNING_H */
