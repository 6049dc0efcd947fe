// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The engine: the one thread of a process that plays one device. It moves the streams on, takes up
 * the blocks that sched.c placed for this process, steps them in turn, and sleeps when there is
 * nothing to do.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pool.h"

#define STEPS		2048u		/* thread-instructions a block runs in one turn */
#define STEP_NS		10u		/* about what one takes, for slices that end earlier */
#define LOOK_NS		10000000u	/* how often to look for processes that died */

struct resident {
	struct vgpu_block *block;
	struct vg_op *op;
	unsigned int sm;
};

__thread struct vg_gpu *vg_here;

/* Of the engine on whose thread they are */
static __thread struct resident *residents;
static __thread size_t n_residents, max_residents, cursor;
static __thread uint64_t last_look;
static __thread bool feeding;		/* what our slot says: see struct vg_proc */

static atomic_bool stopping;

/*
 * Host functions run on a thread of their own, as they may take long and may wait for other streams
 */
static pthread_cond_t host_work = PTHREAD_COND_INITIALIZER;
static struct vg_op *host_queue[64];
static unsigned int host_first, host_n;
static bool host_running;

void vg_kick(void)
{
	for (unsigned int i = 0; i < vg.n_gpus; i++) {
		struct vg_gpu *g = &vg.gpu[i];

		atomic_fetch_add(&g->kicks, 1);
		if (g->running)
			vg_shm_wake(g->device, 1u << g->proc);
	}
}

static void *host_main(void *arg)
{
	pthread_mutex_lock(&vg.lock);
	for (;;) {
		struct vg_op *op;
		struct CUstream_st *s;

		while (!host_n)
			pthread_cond_wait(&host_work, &vg.lock);
		op = host_queue[host_first];
		host_first = (host_first + 1) % 64;
		host_n--;
		s = op->stream;
		pthread_mutex_unlock(&vg.lock);
		if (op->host.fn)
			op->host.fn(op->host.user);
		else
			op->host.callback(s == s->ctx->legacy ? NULL : s, CUDA_SUCCESS,
					  op->host.user);
		pthread_mutex_lock(&vg.lock);
		vg_op_finish(op);
		vg_kick();
	}
	return NULL;
}

static void host_hand_over(struct vg_op *op)
{
	pthread_attr_t attr;
	pthread_t t;

	if (op->host.running || host_n == 64)
		return;
	if (!host_running) {
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		host_running = !pthread_create(&t, &attr, host_main, NULL);
		pthread_attr_destroy(&attr);
		if (!host_running)
			return;
	}
	op->host.running = true;
	host_queue[(host_first + host_n++) % 64] = op;
	pthread_cond_signal(&host_work);
}

static void copy2d(const struct vg_op *op)
{
	for (size_t z = 0; z < op->copy2d.depth; z++)
		for (size_t y = 0; y < op->copy2d.height; y++)
			memmove(op->copy2d.dst + z * op->copy2d.dst_plane +
				y * op->copy2d.dst_pitch,
				op->copy2d.src + z * op->copy2d.src_plane +
				y * op->copy2d.src_pitch, op->copy2d.width);
}

static void set(const struct vg_op *op)
{
	for (size_t y = 0; y < op->set.height; y++) {
		char *row = op->set.dst + y * op->set.pitch;

		if (op->set.element == 1)
			memset(row, (int)op->set.value, op->set.width);
		for (size_t x = 0; op->set.element > 1 && x < op->set.width; x++)
			memcpy(row + x * op->set.element, &op->set.value, op->set.element);
	}
}

static void write_value(const struct vg_op *op)
{
	if (op->value.bytes == 4)
		__atomic_store_n((uint32_t *)(uintptr_t)op->value.addr, (uint32_t)op->value.value,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)(uintptr_t)op->value.addr, op->value.value,
				 __ATOMIC_RELEASE);
}

/* What needs no vg.lock; the operation stays its stream's head meanwhile, so nobody touches it */
static void work_unlocked(struct vg_op *op)
{
	pthread_mutex_unlock(&vg.lock);
	switch (op->kind) {
	case VG_OP_COPY:
		memmove(op->copy.dst, op->copy.staged ? op->copy.staged : op->copy.src,
			op->copy.size);
		break;
	case VG_OP_COPY2D:
		copy2d(op);
		break;
	default:
		set(op);
		break;
	}
	pthread_mutex_lock(&vg.lock);
}

/* Put the kernel into the shared queue */
static bool submit(struct vg_op *op)
{
	const unsigned int *g = op->kernel.launch.grid;
	uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];
	vg_procs wake;

	vg_shm_lock(vg_here->device);
	op->kernel.entry = vg_sched_submit(vg_here->device, vg_here->proc, &op->kernel.need, blocks,
					   op->kernel.priority);
	wake = vg_sched_dispatch(vg_here->device) | vg_sched_update(vg_here->device, vg_now());
	vg_shm_unlock(vg_here->device);
	vg_shm_wake(vg_here->device, wake & ~(1u << vg_here->proc));
	return op->kernel.entry >= 0;
}

static bool kernel_over(struct vg_op *op)
{
	const unsigned int *g = op->kernel.launch.grid;
	vg_procs wake;

	if (op->kernel.done < (uint64_t)g[0] * g[1] * g[2])
		return false;
	vg_shm_lock(vg_here->device);
	vg_here->device->proc[vg_here->proc].feeding = feeding = true;
	vg_sched_remove(vg_here->device, op->kernel.entry);
	wake = vg_sched_dispatch(vg_here->device);
	vg_shm_unlock(vg_here->device);
	vg_shm_wake(vg_here->device, wake & ~(1u << vg_here->proc));
	return true;
}

/* Try to bring @op, which its stream has come to, to its end, or a kernel to the device */
static bool advance_one(struct vg_op *op)
{
	if (op->kind == VG_OP_KERNEL && op->kernel.entry >= 0) {
		if (!kernel_over(op))
			return false;
		vg_op_finish(op);
		return true;
	}
	if (!vg_op_ready(op))
		return false;
	switch (op->kind) {
	case VG_OP_KERNEL:
		return submit(op);
	case VG_OP_HOST:
		host_hand_over(op);
		return false;
	case VG_OP_COPY:
	case VG_OP_COPY2D:
	case VG_OP_SET:
		work_unlocked(op);
		break;
	case VG_OP_ALLOC:
		vg_graph_mem_allocated(op->alloc.mem);
		break;
	case VG_OP_FREE:
		if (!vg_pool_freed(op->free.ptr) && !vg_graph_mem_freed(op->free.ptr))
			vg_mem_free(op->free.ptr, false);
		break;
	case VG_OP_WRITE_VALUE:
		write_value(op);
		break;
	default:
		break;
	}
	vg_op_finish(op);
	return true;
}

/*
 * Try to move any stream on. Kernels go to the device in the order they were issued in, in whatever
 * stream, however many the engine finds when it looks; they go last, as what stands before an
 * earlier one may be over by then.
 */
static bool advance_any(bool *values)
{
	struct vg_op *first = NULL;

	*values = false;
	for (struct CUctx_st *c = vg.contexts; c; c = c->next)
		for (struct CUstream_st *s = c->gpu == vg_here ? c->streams : NULL; s;
		     s = s->next) {
			if (s->head && s->head->kind == VG_OP_GRAPH && !vg_runnable(s, NULL) &&
			    vg_op_ready(s->head)) {
				vg_run_start(s->head);
				return true;
			}
			for (struct vg_op *op = vg_runnable(s, NULL); op; op = vg_runnable(s, op)) {
				if (op->kind == VG_OP_WAIT_VALUE)
					*values = true;
				if (op->kind != VG_OP_KERNEL || op->kernel.entry >= 0) {
					if (advance_one(op))
						/* the stream may be gone, and the list another */
						return true;
				} else if ((!first || op->seq < first->seq) && vg_op_ready(op)) {
					first = op;
				}
			}
		}
	return first && advance_one(first);
}

/* All streams as far as they go */
static bool advance(bool *values)
{
	bool moved = false;

	pthread_mutex_lock(&vg.lock);
	while (advance_any(values))
		moved = true;
	vg_region_quiet();
	pthread_mutex_unlock(&vg.lock);
	return moved;
}

/*
 * The streams are as far as they go. If no kernel followed those that ended, our group has no more
 * work and the next one's turn begins. Between two kernels of a stream it does not.
 */
static void fed(void)
{
	vg_procs wake;

	if (!feeding)
		return;
	vg_shm_lock(vg_here->device);
	vg_here->device->proc[vg_here->proc].feeding = feeding = false;
	wake = vg_sched_update(vg_here->device, vg_now());
	vg_shm_unlock(vg_here->device);
	vg_shm_wake(vg_here->device, wake & ~(1u << vg_here->proc));
}

static void drop_all(void)
{
	for (size_t i = 0; i < n_residents; i++)
		vgpu_block_free(residents[i].block);
	n_residents = 0;
	vg_shm_lock(vg_here->device);
	for (int i = 0; i < VG_KERNELS_MAX; i++)
		if (vg_here->device->entry[i].used &&
		    vg_here->device->entry[i].proc == vg_here->proc)
			vg_sched_remove(vg_here->device, i);
	vg_shm_wake(vg_here->device, vg_sched_dispatch(vg_here->device) |
		    vg_sched_update(vg_here->device, vg_now()));
	vg_shm_unlock(vg_here->device);
}

static CUresult fault_code(enum vgpu_fault fault)
{
	switch (fault) {
	case VGPU_FAULT_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case VGPU_FAULT_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
	case VGPU_FAULT_INSTRUCTION: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case VGPU_FAULT_ASSERT: return CUDA_ERROR_ASSERT;
	case VGPU_FAULT_DEADLOCK: return CUDA_ERROR_LAUNCH_TIMEOUT;
	default: return CUDA_ERROR_LAUNCH_FAILED;
	}
}

/* Everything that this process has under way on the device ends, every later call returns @r */
static void lose(CUresult r)
{
	drop_all();
	pthread_mutex_lock(&vg.lock);
	vg_here->sticky = r;
	for (struct CUctx_st *c = vg.contexts; c; c = c->next)
		for (struct CUstream_st *s = c->gpu == vg_here ? c->streams : NULL, *next;
		     s; s = next) {
			next = s->next;
			/* a host function that runs is ended by its thread */
			while (s->head && !(s->head->kind == VG_OP_HOST && s->head->host.running)) {
				bool last = !s->head->next;

				if (s->head->kind != VG_OP_GRAPH)
					vg_op_finish(s->head);
				else if (!vg_run_abort(s->head))
					break;
				if (last)
					break;
			}
		}
	pthread_cond_broadcast(&vg.changed);
	pthread_mutex_unlock(&vg.lock);
}

/* Does a stream wait for a word that nobody has written? */
static bool waits_for_word(void)
{
	bool waits = false;

	pthread_mutex_lock(&vg.lock);
	for (struct CUctx_st *c = vg.contexts; c; c = c->next)
		for (struct CUstream_st *s = c->gpu == vg_here ? c->streams : NULL; s; s = s->next)
			for (struct vg_op *op = s->head; op; op = op->next)
				waits |= op->kind == VG_OP_WAIT_VALUE && !vg_value_reached(op);
	pthread_mutex_unlock(&vg.lock);
	return waits;
}

/* A kernel of this process did what none may */
static void fault(const char *kernel, enum vgpu_fault kind, const char *text)
{
	CUresult r = fault_code(kind);
	const char *name = "";

	cuGetErrorName(r, &name);
	vg_say("kernel %s: %s: %s", kernel, text, name);
	/* As measured: the driver's handler of assertions does not return before, under MPS */
	while (kind == VGPU_FAULT_ASSERT && vg.key != VG_NO_MPS && waits_for_word())
		usleep(1000);
	lose(r);
}

/*
 * Which block starts as the @n-th. Hardware starts them in about the order of their numbers;
 * programs may rely on it
 */
static uint64_t block_at(const struct vgpu_launch *l, uint64_t n)
{
	uint64_t total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], step, a, b, r;

	if (!vg.shuffle || total < 2)
		return n;
	/* a step that has no divisor in common with their number goes through all of them */
	for (step = 1 + l->seed % (total - 1);; step = step % total + 1) {
		for (a = total, b = step; b; a = b, b = r)
			r = a % b;
		if (a == 1)
			break;
	}
	return (n % total * (unsigned __int128)step + (l->seed >> 20) % total) % total;
}

static bool add_resident(struct vg_op *op, unsigned int sm)
{
	const struct vgpu_launch *l = &op->kernel.launch;
	uint64_t i = block_at(l, op->kernel.taken++);
	unsigned int ctaid[3] = { (unsigned int)(i % l->grid[0]),
				  (unsigned int)(i / l->grid[0] % l->grid[1]),
				  (unsigned int)(i / l->grid[0] / l->grid[1]) };
	struct vgpu_block *b;

	if (n_residents == max_residents) {
		size_t n = max_residents ? 2 * max_residents : 64;
		struct resident *r = realloc(residents, n * sizeof(*r));

		if (!r)
			return false;
		residents = r;
		max_residents = n;
	}
	b = vgpu_block_new(l, ctaid, sm);
	if (!b)
		return false;
	residents[n_residents++] = (struct resident){ b, op, sm };
	return true;
}

static bool take_blocks_of(struct vg_op *op)
{
	bool ok = true;

	while (ok && op->kind == VG_OP_KERNEL && op->kernel.entry >= 0 &&
	       __atomic_load_n(&vg_here->device->entry[op->kernel.entry].fresh_blocks,
			       __ATOMIC_RELAXED)) {
		int sm;

		vg_shm_lock(vg_here->device);
		sm = vg_sched_take(vg_here->device, op->kernel.entry);
		vg_shm_unlock(vg_here->device);
		if (sm < 0)
			break;
		ok = add_resident(op, (unsigned int)sm);
	}
	return ok;
}

/* Take up the blocks that were placed for our kernels */
static void take_blocks(void)
{
	bool ok = true;

	pthread_mutex_lock(&vg.lock);
	for (struct CUctx_st *c = vg.contexts; c; c = c->next)
		for (struct CUstream_st *s = c->gpu == vg_here ? c->streams : NULL; s; s = s->next)
			for (struct vg_op *op = vg_runnable(s, NULL); ok && op;
			     op = vg_runnable(s, op))
				ok = take_blocks_of(op);
	pthread_mutex_unlock(&vg.lock);
	if (!ok)
		fault("(any)", VGPU_FAULT_LAUNCH, "no host memory for a block");
}

/* The MPS server, and what is said of it is not said yet */
static bool server_is_dead(void)
{
	struct pollfd p = { .fd = vg.server, .events = POLLIN };
	bool said;

	if (vg.server < 0 || poll(&p, 1, 0) <= 0)
		return false;
	pthread_mutex_lock(&vg.lock);
	said = vg_here->sticky;
	pthread_mutex_unlock(&vg.lock);
	return !said;
}

static void look_for_dead(uint64_t now)
{
	if (now - last_look < LOOK_NS)
		return;
	last_look = now;
	vg_shm_lock(vg_here->device);
	vg_shm_reap_dead(vg_here->device, vg_here->proc);
	vg_shm_unlock(vg_here->device);
	if (server_is_dead())
		lose(CUDA_ERROR_MPS_RPC_FAILURE);
}

static bool active(void)
{
	return __atomic_load_n(&vg_here->device->active,
			       __ATOMIC_ACQUIRE) == vg_here->device->proc[vg_here->proc].group;
}

static bool alone(void)
{
	return __atomic_load_n(&vg_here->device->alone, __ATOMIC_RELAXED);
}

static uint64_t slice_end(void)
{
	return __atomic_load_n(&vg_here->device->slice_end, __ATOMIC_RELAXED);
}

/* How many thread-instructions a block may run now, 0: our turn is over */
static unsigned int allowance(void)
{
	uint64_t end, now;

	if (!active())
		return 0;
	if (alone())
		return STEPS;
	end = slice_end();
	now = vg_now();
	if (now >= end)
		return 0;
	return end - now < STEPS * STEP_NS ? (unsigned int)((end - now) / STEP_NS) + 1 : STEPS;
}

static bool our_turn(void)
{
	vg_procs wake;
	bool ours;

	/* in the middle of it there is nothing to decide */
	if (__atomic_load_n(&vg_here->device->turn_start, __ATOMIC_RELAXED) && allowance())
		return true;
	vg_shm_lock(vg_here->device);
	ours = vg_sched_turn(vg_here->device, vg_here->proc, vg_now(), &wake);
	vg_shm_unlock(vg_here->device);
	vg_shm_wake(vg_here->device, wake);
	return ours;
}

static void block_over(size_t i)
{
	struct vg_op *op = residents[i].op;
	vg_procs wake;

	vg_shm_lock(vg_here->device);
	vg_sched_done(vg_here->device, op->kernel.entry, residents[i].sm);
	wake = vg_sched_dispatch(vg_here->device);
	vg_shm_unlock(vg_here->device);
	vg_shm_wake(vg_here->device, wake & ~(1u << vg_here->proc));
	vgpu_block_free(residents[i].block);
	residents[i] = residents[--n_residents];
	op->kernel.done++;
}

/* One turn for each resident block, or less if there is something else to see to */
static void step(uint32_t seen)
{
	for (size_t n = n_residents; n && n_residents; n--) {
		unsigned int steps = allowance();
		enum vgpu_result r;
		uint64_t done;
		size_t i;

		if (!steps)
			return;
		if (cursor >= n_residents)
			cursor = 0;
		i = cursor++;
		r = vgpu_block_run(residents[i].block, steps, &done);
		if (r == VGPU_FAULT) {
			char text[1024];

			snprintf(text, sizeof(text), "%s", vgpu_block_error(residents[i].block));
			fault(residents[i].op->kernel.function->info->name,
			      vgpu_block_fault(residents[i].block), text);
			return;
		}
		if (r == VGPU_DONE) {
			block_over(i);
			return;
		}
		if (atomic_load(&vg_here->kicks) ||
		    vg_shm_wakes(vg_here->device, vg_here->proc) != seen || atomic_load(&stopping))
			return;
	}
}

/* How long nothing can happen without a wake */
static uint64_t patience(bool values, bool waiting, uint64_t idle_since, uint64_t now)
{
	if (n_residents) {	/* not our turn, or the switch to us is not over */
		uint64_t end = active() ? __atomic_load_n(&vg_here->device->ready_at,
							  __ATOMIC_RELAXED) : slice_end();

		if (end <= now)
			return 1000;
		return end - now < LOOK_NS ? end - now : LOOK_NS;
	}
	if (values)		/* memory that anyone may write: look often at first */
		return now - idle_since < 20000000 ? 50000 : 1000000;
	return waiting ? LOOK_NS : 1000000000;
}

static bool queued(void)
{
	bool any;

	vg_shm_lock(vg_here->device);
	any = vg_here->device->proc[vg_here->proc].kernels;
	vg_shm_unlock(vg_here->device);
	return any;
}

static void *engine(void *arg)
{
	uint64_t idle_since = 0;
	int slot;

	vg_here = arg;
	slot = vg_shm_enter(vg_here->device, vg.key);
	pthread_mutex_lock(&vg.lock);
	vg_here->proc = slot < 0 ? VG_NOBODY : (uint32_t)slot;
	vg_here->config = vg_here->device->config;
	vg_here->running = slot >= 0;
	vg_here->entered = true;
	pthread_cond_broadcast(&vg.changed);
	pthread_mutex_unlock(&vg.lock);
	if (slot < 0)
		return NULL;
	while (!atomic_load(&stopping)) {
		uint32_t seen = vg_shm_wakes(vg_here->device, vg_here->proc);
		bool values, moved, waiting;
		uint64_t now;

		atomic_store(&vg_here->kicks, 0);
		moved = advance(&values);
		fed();
		take_blocks();
		now = vg_now();
		look_for_dead(now);
		if (n_residents && our_turn()) {
			step(seen);
			idle_since = 0;
			continue;
		}
		if (moved) {
			idle_since = 0;
			continue;
		}
		if (!idle_since)
			idle_since = now;
		waiting = queued();
		if (!atomic_load(&stopping) && !atomic_load(&vg_here->kicks))
			vg_shm_wait(vg_here->device, vg_here->proc, seen,
				    patience(values, waiting, idle_since, now));
	}
	for (size_t i = 0; i < n_residents; i++)
		vgpu_block_free(residents[i].block);
	n_residents = 0;
	free(residents);
	residents = NULL;
	max_residents = 0;
	vg_shm_leave(vg_here->device, vg_here->proc);
	return NULL;
}

CUresult vg_engine_start(struct vg_gpu *g)
{
	if (g->running)
		return CUDA_SUCCESS;
	g->entered = false;
	if (pthread_create(&g->thread, NULL, engine, g))
		return CUDA_ERROR_OPERATING_SYSTEM;
	while (!g->entered)
		pthread_cond_wait(&vg.changed, &vg.lock);
	if (!g->running) {
		pthread_join(g->thread, NULL);
		vg_say("all %u process slots of the device are taken", VG_PROCS_MAX);
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	}
	return CUDA_SUCCESS;
}

void vg_engine_stop(void)
{
	atomic_store(&stopping, true);
	vg_kick();
	for (unsigned int i = 0; i < vg.n_gpus; i++) {
		if (vg.gpu[i].running)
			pthread_join(vg.gpu[i].thread, NULL);
		vg.gpu[i].running = false;
	}
}
