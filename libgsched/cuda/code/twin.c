// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes twins in the background, kernel by kernel as needed, because the driver compiles them. One
 * worker thread has them made by gschedd (rewritten.c), whose cache all programs share, loads them
 * beside the original's module, and limits their registers where they would reduce the occupancy.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "code/code.h"

#define SYMBOL_MAX	1024
#define IDLE_NS		200000000	/* how long a program's work is held back for a pause */
#define TRIES		3		/* ... for so many new kernels in a row without success */
#define PAUSE_POLL_NS		1000000		/* poll interval for a pause of the program's own */
#define POLL_PART		50		/* polls take one part of so many of the time */
#define ASK_AGAIN_NS		1000000000	/* until a service that was not there is asked */

struct gi_pause gi_twin_pause;

static pthread_cond_t job_queued = PTHREAD_COND_INITIALIZER;		/* gi_lock */
static pthread_cond_t job_done;					/* gi_lock; CLOCK_MONOTONIC */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool worker_runs;						/* gi_lock */
static struct gi_func *first_job, **last_job = &first_job;	/* gi_lock */
static struct gi_image *first_image, **last_image = &first_image;	/* gi_lock */
static struct gi_image *busy_image;				/* gi_lock */
static struct gi_ctx *busy_cx;					/* gi_lock */
static _Atomic bool stopped;			/* the process exits */
static _Atomic bool in_driver;			/* the worker is */
/* Contexts are not destroyed while modules are unloaded. Taken before gi_lock. */
static pthread_mutex_t unload_lock = PTHREAD_MUTEX_INITIALIZER;

/* The twin's name in PTX */
static bool symbol_of(const struct gsr_kernel *k, char *to)
{
	return snprintf(to, SYMBOL_MAX, "%s" GSR_SUFFIX, k->name) < SYMBOL_MAX;
}

/* The twin that is being made */
struct twin_job {
	struct gi_image *image;
	struct gi_rewritten *form;
	const struct gsr_kernel *kernel;	/* its description */
	struct gi_ctx *cx;		/* the current one */
};

/* Loads the module, once per register limit. NULL: it does not load. */
static struct gi_loaded *load_twin(const struct twin_job *t, unsigned int max_regs)
{
	CUjit_option option = CU_JIT_MAX_REGISTERS;
	struct gi_loaded *l;
	CUresult rc;
	void *value;

	pthread_mutex_lock(&gi_lock);
	for (l = t->form->loaded; l; l = l->next)
		if (l->cx == t->cx && l->max_regs == max_regs)
			break;
	pthread_mutex_unlock(&gi_lock);
	if (l)
		return l->module ? l : NULL;
	if (atomic_load(&stopped))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->cx = t->cx;
	l->max_regs = max_regs;
	value = (void *)(uintptr_t)max_regs;
	rc = gi_real.cuModuleLoadDataEx(&l->module, t->form->ptx, max_regs ? 1 : 0, &option, &value);
	if (rc) {
		l->module = NULL;
		gi_why(t->cx->client, "the driver does not load the twin (error %d): tier launch",
		       rc);
	} else if (!gi_share(t->image, t->cx, &t->form->desc, t->kernel, l->module, &l->missing)) {
		gi_real.cuModuleUnload(l->module);
		l->module = NULL;
		gi_why(t->cx->client,
		       "the twin's table of addresses cannot be filled: tier launch");
	}
	pthread_mutex_lock(&gi_lock);
	l->next = t->form->loaded;
	t->form->loaded = l;
	pthread_mutex_unlock(&gi_lock);
	return l->module ? l : NULL;
}

static int func_attribute(CUfunction f, CUfunction_attribute what)
{
	int v = 0;

	return gi_real.cuFuncGetAttribute(&v, what, f) ? 0 : v;
}

/* Whether @twin has a lower occupancy than @original at some usual block size. */
static bool loses_occupancy(CUfunction original, CUfunction twin)
{
	static const int sizes[] = { 64, 128, 256, 512, 1024 };
	int most = func_attribute(original, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), a, b;
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (most && sizes[i] > most)
			break;
		if (gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&a, original,
									sizes[i], 0) ||
		    gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor(&b, twin, sizes[i], 0))
			continue;
		if (b < a)
			return true;
	}
	return false;
}

static CUfunction load(const struct twin_job *t, CUfunction original, char *why, size_t size)
{
	CUfunction twin = NULL, capped = NULL;
	struct gi_loaded *l;
	const struct gsr_variable *variable;
	char symbol[SYMBOL_MAX];
	int sm_regs = 0, sm_threads = 0;

	if (!symbol_of(t->kernel, symbol))
		return NULL;
	l = load_twin(t, 0);
	variable = l && l->missing ? gsr_missing_variable(&t->form->desc, t->kernel, l->missing)
				   : NULL;
	if (variable && variable->function)
		snprintf(why, size, "not known which number %.100s had in its variable %.100s",
			 variable->function, variable->name);
	else if (variable)
		snprintf(why, size, "the driver does not find its variable %.200s", variable->name);
	if (!l || variable || gi_real.cuModuleGetFunction(&twin, l->module, symbol))
		return NULL;
	if (!loses_occupancy(original, twin))
		return twin;
	gi_real.cuDeviceGetAttribute(&sm_regs, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
				     t->cx->dev);
	gi_real.cuDeviceGetAttribute(&sm_threads,
				     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				     t->cx->dev);
	l = load_twin(t, gi_register_cap(
				 (unsigned int)func_attribute(original, CU_FUNC_ATTRIBUTE_NUM_REGS),
				 (unsigned int)sm_regs, (unsigned int)sm_threads));
	/* higher occupancy does not compensate for spills in every round */
	if (l && !gi_real.cuModuleGetFunction(&capped, l->module, symbol) &&
	    !loses_occupancy(original, capped) &&
	    func_attribute(capped, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) <=
		    func_attribute(twin, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES))
		return capped;
	return twin;
}

static CUfunction twin_of(const struct twin_job *t, CUfunction original, char *why, size_t size)
{
	bool own = gi_own_memory(true);
	CUfunction twin = load(t, original, why, size);

	gi_own_memory(own);
	return twin;
}

/* The most dynamic shared memory that the twin may have, beside its static; -1 unknown */
static int most_dynamic(const struct gi_func *fn, CUfunction twin)
{
	const CUdevice_attribute what = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
	int most = 0;

	if (gi_real.cuDeviceGetAttribute(&most, what, fn->cx->dev))
		return -1;
	return most - func_attribute(twin, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
}

void gi_twin_set_attribute(const struct gi_func *fn, const struct gsr_kernel *k, CUfunction twin,
			   CUfunction_attribute attribute, int value)
{
	bool dynamic = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0;
	int with = dynamic ? (int)gsr_dynamic_shared(k, (size_t)value) : value, most;

	if (!gi_real.cuFuncSetAttribute(twin, attribute, with) || !dynamic)
		return;
	/* programs ask for all that there is, and use less: the twin's own words leave enough */
	most = most_dynamic(fn, twin);
	if (most >= 0 && most < with)
		gi_real.cuFuncSetAttribute(twin, attribute, most);
}

/*
 * Copies the limits that the program may have set before the twin existed. Later ones come through
 * cuFuncSetAttribute().
 */
static void copy_attributes(struct gi_func *fn, const struct gsr_kernel *k, CUfunction twin)
{
	static const CUfunction_attribute what[] = {
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
	};
	unsigned int i;

	for (i = 0; i < sizeof(what) / sizeof(*what); i++) {
		bool carveout = what[i] == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
		int v, had;

		if (!gi_real.cuFuncGetAttribute(&v, what[i], fn->original) &&
		    !gi_real.cuFuncGetAttribute(&had, what[i], twin) &&
		    (v != had || (k->dynamic_shared && !carveout))) {
			gi_twin_set_attribute(fn, k, twin, what[i], v);
			if (carveout)
				atomic_store(&fn->own_carveout, true);
		}
	}
	if ((int)fn->named->cache >= 0)
		gi_real.cuFuncSetCacheConfig(twin, fn->named->cache);
}

/* A program that did not pause for its first kernels is not held back for each of the others. */
static bool wait_for_pause(struct gi_func *fn)
{
	static unsigned int in_vain;	/* consecutive failures; used by the worker only */
	bool patient = in_vain < TRIES || atomic_load(&fn->late), idle;

	idle = gi_twin_pause.context_begin(fn->cx, patient ? IDLE_NS : 0);
	in_vain = idle ? 0 : in_vain + 1;
	return idle;
}

/* false: the process exits, so no more calls of the driver. Otherwise leave_driver() follows. */
static bool enter_driver(void)
{
	atomic_store(&in_driver, true);
	if (!atomic_load(&stopped))
		return true;
	atomic_store(&in_driver, false);
	return false;
}

static void leave_driver(void)
{
	atomic_store(&in_driver, false);
}

/* No lock is held; the image and the context are marked busy, so neither is freed. */
static void make_form(struct gi_func *fn, enum gi_form_id id)
{
	struct gi_form *form = &fn->form[id];
	const char *name = fn->named->name;
	const struct gsr_kernel *k = NULL;
	struct gi_client *c = fn->cx->client;
	struct twin_job job = { .image = fn->named->image, .cx = fn->cx };
	CUfunction twin = NULL;
	bool idle = false, later = false;
	char why[288] = "";
	enum gi_answer answer;

	answer = gi_image_kernel_form(job.image, c->arch, name, id, &job.form, why, sizeof(why));
	if (!enter_driver())
		return;
	if (answer == GI_ANSWER_YES)
		job.kernel = k = job.form->desc.kernels;
	later = answer == GI_ANSWER_LATER;
	if (later)
		atomic_store(&fn->not_before, gi_now() + ASK_AGAIN_NS);
	else if (k && gi_real.cuCtxSetCurrent(fn->cx->handle))
		snprintf(why, sizeof(why), "its context cannot be entered");
	else if (k && !(idle = wait_for_pause(fn)))
		later = true;
	else if (k && !(twin = twin_of(&job, fn->original, why, sizeof(why))) && !why[0])
		snprintf(why, sizeof(why), "its twin does not load");
	if (later && !why[0])
		gi_why(c, "%s: its twin is loaded when the program's work pauses", name);
	else if (!twin)
		gi_why(c, "%s: %s: %s", name,
		       id == GI_RESUMABLE ? "preemptible at block-task ends only" : "tier launch",
		       why);
	pthread_mutex_lock(&gi_attribute_lock);
	if (twin) {
		copy_attributes(fn, k, twin);
		gi_real.cuFuncGetAttribute(&form->shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
					   twin);
	}
	pthread_mutex_lock(&gi_lock);
	if (twin) {
		/* all forms have the same parameters */
		fn->params = k->layout;
		fn->n_params = k->params;
		fn->param_size = k->param_size;
		form->function = twin;
		form->launch_offset = k->launch_offset;
		form->warp_rows = k->warp_rows;
		form->kernel = *k;
		form->everywhere = !k->resume_reason;
		gi_debug("%s: %s loaded", name, id == GI_RESUMABLE ? "resumable twin" : "twin");
	}
	atomic_store(&form->state, twin ? GI_TWIN_READY : later ? GI_TWIN_LATER : GI_TWIN_NONE);
	/* unless it is being unloaded */
	if (answer != GI_ANSWER_LATER && gi_image_find(job.image->handle) == job.image)
		gi_twin_image(job.image, c->arch);
	pthread_mutex_unlock(&gi_lock);
	pthread_mutex_unlock(&gi_attribute_lock);
	if (idle)
		gi_twin_pause.context_end(fn->cx);
	gi_real.cuCtxSetCurrent(NULL);
	leave_driver();
}

static void *twin_worker(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	pthread_setname_np(pthread_self(), "gsched-twin");
	gi_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&gi_lock);
	for (;;) {
		struct gi_image *image = first_image;
		struct gi_func *fn = first_job;

		if (fn) {
			first_job = fn->next_job;
			if (!first_job)
				last_job = &first_job;
			busy_image = fn->named->image;
			busy_cx = fn->cx;
			pthread_mutex_unlock(&gi_lock);
			make_form(fn, fn->job);
			gi_func_put(fn);
			pthread_mutex_lock(&gi_lock);
		} else if (image) {
			first_image = image->next_job;
			if (!first_image)
				last_image = &first_image;
			busy_image = image;
			pthread_mutex_unlock(&gi_lock);
			gi_image_describe(image);
			pthread_mutex_lock(&gi_lock);
			image->asked = image->state != GI_IMAGE_NEW;
		} else {
			pthread_cond_wait(&job_queued, &gi_lock);
			continue;
		}
		busy_image = NULL;
		busy_cx = NULL;
		pthread_cond_broadcast(&job_done);
	}
	return NULL;
}

static void init_conditions(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&job_done, &attr);
	pthread_condattr_destroy(&attr);
}

/* gi_lock held. */
static bool start_worker(void)
{
	sigset_t all, before;
	pthread_t thread;

	pthread_once(&once, init_conditions);
	if (!worker_runs) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		worker_runs = !pthread_create(&thread, NULL, twin_worker, NULL);
		if (worker_runs)
			pthread_detach(thread);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	pthread_cond_signal(&job_queued);
	return worker_runs;
}

void gi_twin_image(struct gi_image *image, unsigned int arch)
{
	if (image->asked || image->state != GI_IMAGE_NEW)
		return;
	image->asked = true;
	image->arch = arch;
	image->next_job = NULL;
	*last_image = image;
	last_image = &image->next_job;
	start_worker();
}

/*
 * A poll asks for each of the program's streams, of which there may be thousands, and may wait for
 * an event. So do those of all functions together not take much of the launches' time.
 */
static bool pauses_now(struct gi_ctx *cx, uint64_t now)
{
	static _Atomic uint64_t next;
	uint64_t end;
	bool idle;

	if (now < atomic_load_explicit(&next, memory_order_relaxed))
		return false;
	idle = gi_streams_idle(cx);
	end = gi_now();
	atomic_store_explicit(&next, end + (end - now) * POLL_PART, memory_order_relaxed);
	return idle;
}

/*
 * When it loads a module, the driver waits for all of the context's work, holding a lock that every
 * other call needs: a kernel that waits for the program would deadlock. So a twin is loaded in a
 * pause only. A program that always has work in its streams is sometimes made to pause.
 */
static bool time_to_load(struct gi_func *fn)
{
	uint32_t late = atomic_fetch_add(&fn->late, 1) + 1;
	uint64_t now = gi_now(), next = atomic_load(&fn->next_pause_poll);

	if (now < atomic_load_explicit(&fn->not_before, memory_order_relaxed))
		return false;
	/* the 8th launch, the 64th, the 512th, ... */
	if (late >= 8 && !(late & (late - 1)) && __builtin_ctz(late) % 3 == 0)
		return true;
	if (now < next ||
	    !atomic_compare_exchange_strong(&fn->next_pause_poll, &next, now + PAUSE_POLL_NS) ||
	    !pauses_now(fn->cx, now))
		return false;
	atomic_store(&fn->waited, false);
	return true;
}

/*
 * Requests a form in the background. The resumable form is requested only when the twin exists, so
 * a function is in the queue at most once.
 */
bool gi_form_ask(struct gi_func *fn, enum gi_form_id id)
{
	_Atomic int *state = &fn->form[id].state;
	int is = atomic_load_explicit(state, memory_order_acquire);

	if (is != GI_TWIN_UNASKED && (is != GI_TWIN_LATER || !time_to_load(fn)))
		return is == GI_TWIN_READY;
	pthread_mutex_lock(&gi_lock);
	is = atomic_load(state);
	/* a function that is about to be unloaded gets no twin any more */
	if ((is == GI_TWIN_UNASKED || is == GI_TWIN_LATER) && !atomic_load(&fn->dropped) &&
	    start_worker()) {
		/* well before the first twin, which has yet to be rewritten and loaded */
		atomic_store(&gi_hot.ordered, true);
		atomic_store(state, GI_TWIN_QUEUED);
		fn->job = id;
		fn->next_job = NULL;
		*last_job = gi_func_hold(fn);
		last_job = &fn->next_job;
	} else if (is == GI_TWIN_UNASKED) {
		atomic_store(state, GI_TWIN_NONE);
	}
	pthread_mutex_unlock(&gi_lock);
	return false;
}

/*
 * The launch that requests the twin waits for it, later ones only check. All launches of a process
 * together wait no longer than GSCHED_TWIN_WAIT_MS, since programs have hundreds of kernels.
 */
bool gi_twin_wait(struct gi_func *fn)
{
	static _Atomic uint64_t waited_ns;
	_Atomic int *state = &fn->form[GI_TWIN].state;
	uint64_t most, had, now, until;
	struct timespec ts;

	if (gi_form_ask(fn, GI_TWIN))
		return true;
	if (atomic_load(state) == GI_TWIN_QUEUED && !atomic_exchange(&fn->waited, true)) {
		most = gi_env("GSCHED_TWIN_WAIT_MS", 2000) * 1000000;
		had = atomic_load(&waited_ns);
		now = gi_now();
		until = now + (had < most ? most - had : 0);
		ts = (struct timespec){ .tv_sec = until / 1000000000,
					.tv_nsec = until % 1000000000 };
		pthread_mutex_lock(&gi_lock);
		while (atomic_load(state) == GI_TWIN_QUEUED)
			if (pthread_cond_timedwait(&job_done, &gi_lock, &ts) == ETIMEDOUT)
				break;
		pthread_mutex_unlock(&gi_lock);
		atomic_fetch_add(&waited_ns, gi_now() - now);
	}
	return atomic_load(state) == GI_TWIN_READY;
}

/* Moves the modules in @cx (NULL: all) to @list. gi_lock held. */
static void detach_modules(struct gi_rewritten *form, const struct gi_ctx *cx,
			   struct gi_loaded **list)
{
	struct gi_loaded **p = &form->loaded, *l;

	while ((l = *p)) {
		if (cx && l->cx != cx) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		l->next = *list;
		*list = l;
	}
}

/*
 * The driver waits for the device here. @shared: other code has tasks in the context; if these
 * cannot be quiesced, the module stays loaded.
 */
static void unload_twin(const struct gi_loaded *l, bool shared)
{
	if (gi_real.cuCtxSetCurrent(l->cx->handle))
		return;
	if (!shared || gi_twin_pause.tasks_begin(l->cx->client))
		gi_real.cuModuleUnload(l->module);
	if (shared)
		gi_twin_pause.tasks_end(l->cx->client);
}

static void unload_twins(struct gi_loaded *list, bool shared, bool destroyed)
{
	CUcontext before = NULL;
	struct gi_loaded *l;

	if (!list)
		return;
	gi_real.cuCtxGetCurrent(&before);
	while ((l = list)) {
		list = l->next;
		if (l->module && !destroyed)
			unload_twin(l, shared);
		free(l->missing);
		free(l);
	}
	if (!destroyed)
		gi_real.cuCtxSetCurrent(before);
}

void gi_twin_cancel(const struct gi_image *image, const struct gi_ctx *cx)
{
	struct gi_func **p = &first_job;
	struct gi_image **q = &first_image;

	pthread_once(&once, init_conditions);
	while (*p) {
		struct gi_func *fn = *p;

		if ((image && fn->named->image == image) || (cx && fn->cx == cx)) {
			*p = fn->next_job;
			atomic_store(&fn->form[fn->job].state, GI_TWIN_NONE);
			gi_func_put(fn);
		} else {
			p = &fn->next_job;
		}
	}
	last_job = p;
	while (*q && *q != image)
		q = &(*q)->next_job;
	if (image && *q)
		*q = image->next_job;
	while (*q)
		q = &(*q)->next_job;
	last_image = q;
	/* launches may wait for cancelled jobs */
	pthread_cond_broadcast(&job_done);
}

void gi_twin_unload(struct gi_image *image, struct gi_ctx *cx, bool destroyed)
{
	struct gi_loaded *list = NULL;
	int cancel = gi_cancel_disable();
	struct gi_rewritten *r;
	struct gi_image *i;

	pthread_mutex_lock(&unload_lock);
	pthread_mutex_lock(&gi_lock);
	gi_twin_cancel(image, cx);
	while ((image && busy_image == image) || (cx && busy_cx == cx))
		pthread_cond_wait(&job_done, &gi_lock);
	for (r = image ? image->rewritten : NULL; r; r = r->next)
		detach_modules(r, NULL, &list);
	for (i = image ? NULL : gi_image_next(NULL); i; i = gi_image_next(i))
		for (r = i->rewritten; r; r = r->next)
			detach_modules(r, cx, &list);
	pthread_mutex_unlock(&gi_lock);
	unload_twins(list, image, destroyed);
	pthread_mutex_unlock(&unload_lock);
	gi_cancel_restore(cancel);
}

void gi_twin_stop(uint64_t timeout_ns)
{
	uint64_t until = gi_now() + timeout_ns;

	atomic_store(&stopped, true);
	while (atomic_load(&in_driver) && gi_now() < until)
		usleep(50);
}

void gi_twin_reset(void)
{
	static const pthread_once_t again = PTHREAD_ONCE_INIT;
	static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&unload_lock, &unlocked, sizeof(unload_lock));
	memcpy(&once, &again, sizeof(once));
	memcpy(&job_queued, &fresh, sizeof(job_queued));
	first_job = NULL;
	last_job = &first_job;
	first_image = NULL;
	last_image = &first_image;
	busy_image = NULL;
	busy_cx = NULL;
	worker_runs = false;
	atomic_store(&in_driver, false);
}
