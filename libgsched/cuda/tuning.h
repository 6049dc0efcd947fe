/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the interposer chooses for each launch of a twin. Benchmarks measure twins with the same. */
#ifndef GI_TUNING_H
#define GI_TUNING_H

#define GI_LONG_NS		200000	/* shorter kernels are not worth preempting */
#define GI_POLL_NS		2000
/*
 * A fetch costs a worker about 0.7 us (H200) and brings it block-tasks that follow each other, which suits caches. 10 us of work
 * are too little where block-tasks of 2 us run in 4000 workers; 30 us would be better still, but eviction waits that long.
 */
#define GI_FETCH_NS		20000
#define GI_FETCH_MAX		256
/*
 * Kernels whose block-tasks take longer are worth the resumable form where contexts take turns: eviction waits for a
 * block-task's end. The form costs several percent (H200), and shorter block-tasks end nearly as soon as they are saved.
 */
#define GI_RESUME_NS		400000
/*
 * What a worker of the resumable form needs to leave, reckoned and not measured by itself: GI_POLL_NS until one sees the window, as long until the others see it
 * in the relay, and the registers and shared memory of a full SM written to memory, 300 KB at an SM's share of the
 * bandwidth: about 10 us, doubled for luck.
 */
#define GI_LEAVE_NS		20000

/*
 * The limit for a twin that would fit an SM less often than its original, in registers of a thread: as many as an SM has for each
 * thread that it can hold, or as the original uses, in the steps in which they are given out.
 */
static inline unsigned int gi_register_cap(unsigned int original, unsigned int sm_registers, unsigned int sm_threads)
{
	unsigned int even = sm_threads ? sm_registers / sm_threads / 8 * 8 : 0, used = (original + 7) / 8 * 8;

	return even > used ? even : used;
}

#endif /* GI_TUNING_H */
