// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What libgsched/cuda/code/ keeps of the program's modules and kernels, without a driver: values
 * that the driver uses again, and functions that somebody uses while they are dropped.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter.h"
#include "code/code.h"
#include "selftests/tap.h"

#define ROUNDS 1000

static struct gsched_arb_page arb;
static struct gsched_cl_page cl;
static struct gi_client client = { .arb = &arb, .cl = &cl, .arch = 90 };
static __thread CUcontext current;
static unsigned long long objects;

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry a()\n{\nret;\n}\n";

/* ---- the driver ---- */

static CUresult get_current(CUcontext *ctx)
{
	*ctx = current;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext ctx)
{
	current = ctx;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *dev)
{
	*dev = 0;
	return CUDA_SUCCESS;
}

static CUresult occupancy(int *n, CUfunction f, int threads, size_t shared)
{
	*n = 1024 / threads;
	return CUDA_SUCCESS;
}

static unsigned int records;

static CUresult stream_query(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult event_new(CUevent *event, unsigned int flags)
{
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	records++;
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	return CUDA_ERROR_NOT_READY;
}

static CUresult event_gone(CUevent event)
{
	return CUDA_SUCCESS;
}

static CUresult surface_new(CUsurfObject *object, const CUDA_RESOURCE_DESC *desc)
{
	*object = ++objects;
	return CUDA_SUCCESS;
}

static CUresult surface_gone(CUsurfObject object)
{
	return CUDA_SUCCESS;
}

static bool begin_pause(struct gi_client *c)
{
	return true;
}

static void end_pause(struct gi_client *c)
{
}

static bool idle(struct gi_ctx *cx, uint64_t ns)
{
	return cx && ns;
}

static void busy(struct gi_ctx *cx)
{
	(void)cx;
}

static bool made(struct gi_client *c)
{
	return true;
}

static void *handle(uintptr_t n)
{
	return (void *)n;
}

static struct gi_ctx *enter(uintptr_t context)
{
	struct gi_ctx *cx;

	set_current(handle(context));
	cx = gi_current();
	if (!cx)
		abort();
	cx->client = &client;
	return cx;
}

static void leave(struct gi_ctx *cx)
{
	pthread_mutex_lock(&gi_lock);
	gi_funcs_drop(NULL, cx);
	gi_images_drop_context(cx);
	gi_ctx_forget(cx);
	pthread_mutex_unlock(&gi_lock);
	free(cx);
}

static void unload(uintptr_t image)
{
	struct gi_image *i = gi_image_take(handle(image));

	if (!i)
		abort();
	gi_image_drop(i, false);
}

static bool is_image(uintptr_t module, uintptr_t image)
{
	struct gi_image *i;
	bool is;

	pthread_mutex_lock(&gi_lock);
	i = gi_image_find(handle(module));
	is = image ? i && i->handle == handle(image) : !i;
	pthread_mutex_unlock(&gi_lock);
	return is;
}

/* ---- values used again ---- */

static bool is_kernel(uintptr_t function, struct gi_ctx *cx, uintptr_t image, const char *name)
{
	struct gi_func *fn = gi_func_get(handle(function), cx);
	bool is = name ? fn->named && !strcmp(fn->named->name, name) &&
				  fn->named->image->handle == handle(image)
		       : !fn->named;

	gi_func_put(fn);
	return is;
}

static void names(void)
{
	struct gi_ctx *cx = enter(1), *other;

	gi_image_loaded(handle(0x100), false, ptx, sizeof(ptx), false);
	gi_image_loaded(handle(0x101), false, ptx, sizeof(ptx), false);
	gi_image_kernel(handle(0x200), false, handle(0x100), "a");
	ok(is_kernel(0x200, cx, 0x100, "a"), "a function of a module");
	gi_image_kernel(handle(0x200), false, handle(0x101), "a");
	ok(is_kernel(0x200, cx, 0x101, "a"), "its value is another module's function of that name");
	gi_image_kernel(handle(0x200), false, handle(0x101), "b");
	ok(is_kernel(0x200, cx, 0x101, "b"), "or another function");
	gi_image_kernel(handle(0x200), false, handle(0x1ff), "c");
	ok(is_kernel(0x200, cx, 0, NULL), "or of a module that is not known");
	gi_image_kernel(handle(0x200), false, handle(0x100), "a");
	ok(is_kernel(0x200, cx, 0x100, "a"), "and known again");
	unload(0x100);
	ok(is_kernel(0x200, cx, 0, NULL), "not known once its module is gone");

	gi_image_loaded(handle(0x110), true, ptx, sizeof(ptx), false);
	gi_image_kernel(handle(0x210), true, handle(0x110), "a");
	other = enter(2);
	gi_image_module(handle(0x110), handle(0x102));
	gi_name_function(handle(0x210), handle(0x211));
	ok(is_kernel(0x211, other, 0x110, "a") && is_image(0x102, 0x110),
	   "a library's function and module in a context");
	leave(other);
	set_current(cx->handle);
	ok(is_kernel(0x211, cx, 0, NULL) && is_image(0x102, 0), "are gone with it");
	ok(is_image(0x110, 0x110), "but not the library");
	gi_image_loaded(handle(0x101), false, ptx, sizeof(ptx), false);
	gi_image_kernel(handle(0x201), false, handle(0x101), "a");
	unload(0x101);
	ok(is_image(0x101, 0), "one of two modules that had the same value is not left");
	unload(0x110);
	leave(cx);
}

/* Of @n images: each found by its handle and by its library's module, and met once in a walk */
static unsigned int missing(unsigned int n, unsigned int left, bool modules)
{
	struct gi_image *image;
	unsigned int i, met = 0, bad = 0;

	for (i = 0; i < n; i++) {
		bad += !is_image(0x10000 + 16 * i, 0x10000 + 16 * i);
		bad += i % 3 == 0 && !is_image(0x80000 + 16 * i, modules ? 0x10000 + 16 * i : 0);
	}
	pthread_mutex_lock(&gi_lock);
	for (image = gi_image_next(NULL); image; image = gi_image_next(image))
		met++;
	pthread_mutex_unlock(&gi_lock);
	return bad + (met != left);
}

static void many_images(void)
{
	struct gi_ctx *cx = enter(1), *other = enter(2);
	unsigned int i, n = 3000, bad = 0;

	for (i = 0; i < n; i++) {
		set_current(handle(i % 3 == 1 ? 2 : 1));
		gi_image_loaded(handle(0x10000 + 16 * i), i % 3 == 0, ptx, sizeof(ptx), false);
		if (i % 3 == 0)
			gi_image_module(handle(0x10000 + 16 * i), handle(0x80000 + 16 * i));
	}
	bad = missing(n, n, true);
	ok(!bad, "%u modules and libraries are found by their handles: %u are not", n, bad);
	gi_images_drop(other->handle);
	leave(other);
	for (i = bad = 0; i < n; i++)
		bad += !is_image(0x10000 + 16 * i, i % 3 == 1 ? 0 : 0x10000 + 16 * i);
	ok(!bad, "but for those that went with a context");
	for (i = 1; i < n; i++)
		if (i % 3 != 1)
			unload(0x10000 + 16 * i);
	ok(!missing(1, 1, true), "one is left");
	leave(cx);
	ok(!missing(1, 1, false), "which outlives its context, but not its module");
	cx = enter(1);
	unload(0x10000);
	ok(is_image(0x10000, 0) && !missing(0, 0, true), "none is left");
	leave(cx);
}

static void references(void)
{
	struct gsr_reference reference = { .name = "s", .surface = true };
	struct gi_form form = { .kernel = { .n_references = 1, .references = &reference } };
	const CUDA_RESOURCE_DESC desc = { .resType = CU_RESOURCE_TYPE_ARRAY };
	struct gi_ctx *cx = enter(1);
	struct gi_bound *bound;
	struct gi_func *fn;

	gi_image_loaded(handle(0x100), false, ptx, sizeof(ptx), false);
	gi_image_loaded(handle(0x101), false, ptx, sizeof(ptx), false);
	gi_image_kernel(handle(0x201), false, handle(0x101), "a");
	gi_reference_new(handle(0x300), handle(0x100), "s", true);
	gi_reference_new(handle(0x300), handle(0x101), "s", true);
	gi_reference_begin();
	gi_reference_bound(handle(0x300), CUDA_SUCCESS, &desc);
	fn = gi_func_get(handle(0x201), cx);
	bound = gi_bound_take(fn, &form);
	ok(bound != NULL, "a reference whose value another module's had");
	gi_bound_put(bound, false);
	gi_func_put(fn);
	unload(0x100);
	unload(0x101);
	leave(cx);
}

/* ---- users ---- */

static void held(void)
{
	struct gi_ctx *cx = enter(1);
	struct gi_image *image;
	struct gi_shape *shape;
	struct gi_func *fn;

	gi_image_loaded(handle(0x100), false, ptx, sizeof(ptx), false);
	gi_image_kernel(handle(0x200), false, handle(0x100), "a");
	fn = gi_func_get(handle(0x200), cx);
	shape = gi_shape_get(fn, 7, 64, 0);
	image = gi_image_take(handle(0x100));
	ok(image && !gi_image_unused(image),
	   "an image is in use while a launch has one of its functions");
	ok(!strcmp(fn->named->name, "a") && shape->blocks == 7, "and the launch goes on with it");
	ok(!gi_form_ask(fn, GI_TWIN) && fn->form[GI_TWIN].state == GI_TWIN_NONE,
	   "but does not ask for a twin any more");
	ok(is_kernel(0x200, cx, 0, NULL), "the next one does not find it");
	gi_func_put(fn);
	ok(gi_image_unused(image), "nobody uses it then");
	gi_image_drop(image, false);
	leave(cx);
}

static _Atomic bool stop;
static _Atomic unsigned int wrong, found;

static void *launches(void *arg)
{
	struct gi_ctx *cx = arg;

	set_current(cx->handle);
	while (!stop) {
		struct gi_func *fn = gi_func_get(handle(0x200), cx);

		if (fn->handle != handle(0x200) ||
		    (fn->named && strcmp(fn->named->name, "a") != 0) ||
		    gi_shape_get(fn, 7, 64, 0)->blocks != 7)
			wrong++;
		found += fn->named != NULL;
		gi_func_put(fn);
	}
	return NULL;
}

static void raced(void)
{
	struct gi_ctx *cx = enter(1);
	pthread_t thread[3];
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, launches, cx);
	for (i = 0; i < ROUNDS || !found; i++) {
		gi_image_loaded(handle(0x100), false, ptx, sizeof(ptx), false);
		gi_image_kernel(handle(0x200), false, handle(0x100), "a");
		/* other functions take the memory of those that were dropped */
		gi_func_put(gi_func_get(handle(0x300 + i % 5), cx));
		unload(0x100);
		if (i % 5 == 0) {
			pthread_mutex_lock(&gi_lock);
			gi_funcs_drop(NULL, cx);
			pthread_mutex_unlock(&gi_lock);
		}
	}
	stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ok(!wrong, "threads look up a function that comes and goes: %u times another one", wrong);
	leave(cx);
}

/* ---- twins ---- */

static char loaded[65536];
static unsigned int n_loaded;

static CUresult load(CUmodule *module, const void *image, unsigned int n, CUjit_option *options,
		     void **values)
{
	snprintf(loaded, sizeof(loaded), "%s", (const char *)image);
	*module = handle(0x500 + n_loaded++);
	return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *f, CUmodule m, const char *name)
{
	*f = (CUfunction)m;
	return strstr(loaded, name) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult module_unload(CUmodule m)
{
	n_loaded--;
	return CUDA_SUCCESS;
}

static unsigned int count(const char *what)
{
	const char *at = loaded;
	unsigned int n = 0;

	for (; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* A hundred kernels, every other one of which calls one of two functions */
static char *many(void)
{
	static const char function[] =
		".func (.param .b32 r) %s(.param .b32 a)\n{\n.reg .b32 %%r<3>;\n"
		"ld.param.b32 %%r1, [a];\n"
		"mul.lo.u32 %%r2, %%r1, %%r1;\nst.param.b32 [r], %%r2;\nret;\n}\n";
	static const char kernel[] =
		".visible .entry k%u(.param .u64 p)\n{\n.reg .b32 %%r<4>;\n.reg .b64 %%d<3>;\n"
		"ld.param.u64 %%d1, [p];\n"
		"mov.u32 %%r1, %%ctaid.x;\n{\n.param .b32 x;\n.param .b32 y;\n"
		"st.param.b32 [x], %%r1;\ncall.uni (y), %s, (x);\n"
		"ld.param.b32 %%r2, [y];\n}\nmul.wide.u32 %%d2, %%r1, 4;\n"
		"add.u64 %%d1, %%d1, %%d2;\nst.global.u32 [%%d1], %%r2;\nret;\n}\n";
	char *text = malloc(131072), *at = text;
	unsigned int i;

	if (!text)
		abort();
	at += sprintf(at, ".version 8.0\n.target sm_70\n.address_size 64\n");
	at += sprintf(at, function, "even");
	at += sprintf(at, function, "odd");
	for (i = 0; i < 100; i++)
		at += sprintf(at, kernel, i, i % 2 ? "odd" : "even");
	return text;
}

static struct fake service;	/* which rewrites */

/* The twin has been tried. */
static int tried(struct gi_func *fn)
{
	while (!gi_twin_wait(fn) && fn->form[GI_TWIN].state == GI_TWIN_QUEUED)
		;
	return fn->form[GI_TWIN].state;
}

/* Until the image's description is there; false after ten seconds */
static bool described(unsigned long long image)
{
	unsigned int i;
	bool there = false;

	for (i = 0; i < 10000 && !there; i++) {
		pthread_mutex_lock(&gi_lock);
		there = gi_image_find(handle(image))->state != GI_IMAGE_NEW;
		pthread_mutex_unlock(&gi_lock);
		usleep(1000);
	}
	return there;
}

static void twins(void)
{
	struct gi_ctx *cx = enter(1);
	struct gi_func *fn;
	char *text = many();

	gi_real.cuModuleLoadDataEx = load;
	gi_real.cuModuleGetFunction = get_function;
	gi_real.cuModuleUnload = module_unload;
	gi_image_loaded(handle(0x100), false, text, strlen(text) + 1, false);
	free(text);
	gi_image_kernel(handle(0x207), false, handle(0x100), "k7");
	fn = gi_func_get(handle(0x207), cx);
	ok(tried(fn) == GI_TWIN_LATER && !n_loaded, "no rewriting service: no twin yet");
	fake_start(&service);
	service.rewriter = real_rewriter;
	ok(tried(fn) == GI_TWIN_LATER && !service.rewrites, "which is not asked for at each launch");
	atomic_store(&fn->not_before, 0);
	ok(tried(fn) == GI_TWIN_READY && n_loaded == 1,
	   "a kernel of a hundred gets its twin when there is one");
	ok(described(0x100), "and the program learns of all of them");
	ok(service.rewrites == 2 && service.last_rewrite.flags & GSP_REWRITE_DESCRIBE,
	   "in two requests");
	ok(count(".entry") == 1 && strstr(loaded, "k7" GSR_SUFFIX) && !strstr(loaded, "even"),
	   "and the driver is given no other: %u kernels", count(".entry"));
	ok(fn->n_params == 1 && fn->params[0].size == 8, "its parameters are known");
	gi_func_put(fn);
	gi_image_kernel(handle(0x208), false, handle(0x100), "k8");
	fn = gi_func_get(handle(0x208), cx);
	tried(fn);
	ok(service.rewrites == 3 && service.last_rewrite.name_size == strlen("k8"),
	   "another one in one more");
	ok(n_loaded == 2 && count(".entry") == 1 && strstr(loaded, "k8" GSR_SUFFIX) &&
		   !strstr(loaded, "odd"),
	   "by itself");
	gi_func_put(fn);
	unload(0x100);
	ok(!n_loaded, "both are unloaded with the module");
	leave(cx);
}

/* ---- which programs need their launches looked up ---- */

static void rewritable(void)
{
	static const char code[] = "neither PTX nor anything else";
	static const char old[] =
		".version 8.0\n.target sm_60\n.address_size 64\n.visible .entry a()\n{\nret;\n}\n";
	struct gi_ctx *cx = enter(1);
	int before = gi_hot.rewritable;

	gi_image_loaded(handle(0x100), false, code, sizeof(code), false);
	gi_image_kernel(handle(0x200), false, handle(0x100), "a");
	ok(gi_hot.rewritable == before, "code without PTX: launches need no look");
	gi_image_loaded(handle(0x101), false, ptx, sizeof(ptx), false);
	ok(gi_hot.rewritable == before, "nor with PTX whose kernels the program does not ask for");
	gi_image_kernel(handle(0x201), false, handle(0x101), "a");
	gi_image_kernel(handle(0x202), false, handle(0x101), "b");
	ok(gi_hot.rewritable == before + 1, "with kernels of it they do");
	unload(0x101);
	unload(0x100);
	ok(gi_hot.rewritable == before, "until that is unloaded");
	arb.header.flags = 0;
	gi_image_loaded(handle(0x102), false, old, sizeof(old), false);
	gi_image_kernel(handle(0x203), false, handle(0x102), "a");
	ok(described(0x102) && gi_hot.rewritable == before,
	   "or it is known that none of them can be rewritten");
	unload(0x102);
	arb.header.flags = GSCHED_ARB_PRIVATE;
	fake_stop(&service);
	leave(cx);
}

/* ---- pauses ---- */

/*
 * Twins that are loaded when the program pauses: to find out takes time, which may not be that of
 * every launch. A thread's own default stream is busy.
 */
static void pauses(void)
{
	struct gi_ctx *cx = enter(1);
	struct gi_func *fn[8];
	unsigned int i, asked = 0;
	uint64_t until;

	cx->per_thread = true;
	for (i = 0; i < 8; i++) {
		fn[i] = gi_func_get(handle(0x500 + i), cx);
		atomic_store(&fn[i]->form[GI_TWIN].state, GI_TWIN_LATER);
		/* not the 8th launch, the 64th, and so on */
		atomic_store(&fn[i]->late, 0x80000001);
	}
	for (until = gi_now() + 200000000; gi_now() < until; asked++)
		gi_form_ask(fn[asked % 8], GI_TWIN);
	ok(records && records <= 8, "%u launches look %u times whether the program pauses", asked,
	   records);
	for (i = 0; i < 8; i++)
		gi_func_put(fn[i]);
	leave(cx);
}

/* ---- shapes ---- */

static void shapes(void)
{
	struct gi_ctx *cx = enter(1);
	struct gi_func *fn = gi_func_get(handle(0x400), cx);
	const struct gi_shape *shape;
	unsigned int i, bad = 0, missing = 0;

	for (i = 1; i <= 1000; i++) {
		shape = gi_shape_get(fn, i, 64, 0);
		bad += !shape || shape->threads != 64 || shape->blocks > i ||
		       shape->blocks * 2 <= i;
	}
	ok(!bad, "a thousand grids: each has a shape of about its size");
	shape = gi_shape_get(fn, 1, 512, 0);
	ok(shape && shape->threads == 512 && shape->original_m == 2,
	   "other blocks have a shape of their own");
	shape = gi_shape_get(fn, 9, 64, 1024);
	ok(shape && shape->shared == 1024, "and so has other shared memory");
	for (i = 1; i <= 1000; i++) {
		shape = gi_shape_get(fn, 5, 32, 4 * i);
		bad += shape && shape->shared != 4 * i;
		missing += !shape;
	}
	ok(!bad && missing, "too many of these: none, rather than a wrong one");
	gi_func_put(fn);
	leave(cx);
}

int main(void)
{
	setenv("GSCHED_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
	setenv("GSCHED_SOCKET", "/nonexistent/socket", 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	gi_driver();
	gi_real.cuCtxGetCurrent = get_current;
	gi_real.cuCtxSetCurrent = set_current;
	gi_real.cuCtxGetDevice = get_device;
	gi_real.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy;
	gi_real.cuStreamQuery = stream_query;
	gi_real.cuEventCreate = event_new;
	gi_real.cuEventRecord = event_record;
	gi_real.cuEventQuery = event_query;
	gi_real.cuEventDestroy_v2 = event_gone;
	gi_real.cuSurfObjectCreate = surface_new;
	gi_real.cuSurfObjectDestroy = surface_gone;
	gi_twin_pause = (struct gi_pause){ begin_pause, end_pause, idle, busy };
	gi_client_made = made;
	pthread_mutex_init(&client.lock, NULL);
	/* so that nothing is rewritten */
	arb.header.flags = GSCHED_ARB_PRIVATE;
	names();
	many_images();
	references();
	held();
	raced();
	twins();
	rewritable();
	pauses();
	shapes();
	return done();
}
