// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Control calls: those that libcuda makes for its contexts and memory, and the answers to them and
 * to those of others. See rm.h. Calls are made with vg.lock held; answers are given on any thread,
 * also in such a call, so they take a lock of their own, which comes after vg.lock and before the
 * device's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "rm.h"
#include "vgpu.h"

#define DEVICE(n)	(0x5c000001u + 2 * (n))	/* libcuda's handles, by the device's number */
#define SUBDEVICE(n)	(DEVICE(n) + 1)
#define FIRST_OWN	0x5c000100u		/* of groups and memory */
#define FIRST_CLIENT	0xc1d00001u
#define FIRST_HANDLE	0xcaf00001u		/* those that are given */
#define BUCKETS		4096u			/* programs have thousands of objects of memory */

struct object {
	uint32_t client, handle, class;	/* client 0: a free entry */
	uint32_t parent, next;		/* entries; next: of the bucket, or free; 0 none */
	struct vg_gpu *gpu;		/* of a device and what lies below it */
	uint64_t slice_us;
};

/* The answers' side; lock protects it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;		/* entry 0 is none */
static uint32_t n_objects = 1, max_objects, spare;	/* n_objects: with those in spare */
static uint32_t buckets[BUCKETS];	/* by client and handle */
static uint32_t clients, handles;
static bool open_for_calls;		/* the process has its slot on the device */

/* libcuda's side; vg.lock protects it */
static int control_fd = -1;
static uint32_t own_root;		/* the process's client object, 0 none yet */
static bool own_device[VG_GPUS_MAX];
static uint32_t own_handles;

static bool flag(const char *name)
{
	return !strcmp(getenv(name) ?: "0", "1");
}

static bool mps_server(void)
{
	return flag("VGPU_MPS_SERVER");
}

/* Answers. @client 0 finds none: it is no object's */

static uint32_t *bucket(uint32_t client, uint32_t handle)
{
	return &buckets[(client ^ handle) * 0x9e3779b1u / (UINT32_MAX / BUCKETS + 1)];
}

static struct object *find(uint32_t client, uint32_t handle)
{
	uint32_t i = client ? *bucket(client, handle) : 0;

	while (i && (objects[i].client != client || objects[i].handle != handle))
		i = objects[i].next;
	return i ? &objects[i] : NULL;
}

static void forget_all(void)
{
	memset(buckets, 0, sizeof(buckets));
	n_objects = 1;
	spare = 0;
}

static uint32_t check_parent(uint32_t class, uint32_t parent_class, const void *params)
{
	const struct nv_memory_params *memory = params;
	uint32_t want;

	switch (class) {
	case NV01_DEVICE_0:
		want = NV01_ROOT_CLIENT;
		break;
	case NV20_SUBDEVICE_0:
	case KEPLER_CHANNEL_GROUP_A:
	case NV01_MEMORY_LOCAL_USER:
		want = NV01_DEVICE_0;
		break;
	default:
		return NV_ERR_NOT_SUPPORTED;
	}
	if (parent_class != want)
		return NV_ERR_INVALID_ARGUMENT;
	if (class == NV01_DEVICE_0 && (!params || !vg_gpu_at(*(const uint32_t *)params)))
		return NV_ERR_INVALID_ARGUMENT;
	if (class == NV20_SUBDEVICE_0 && params && *(const uint32_t *)params)
		return NV_ERR_INVALID_ARGUMENT;
	if (class == NV01_MEMORY_LOCAL_USER && (!memory || !memory->size))
		return NV_ERR_INVALID_ARGUMENT;
	if (class == KEPLER_CHANNEL_GROUP_A && vg.key != VG_NO_MPS && !mps_server())
		return NV_ERR_NOT_SUPPORTED;	/* its server's group is what it runs in */
	return NV_OK;
}

/* Pointers to objects are invalid after it */
static uint32_t add(const struct object *o)
{
	uint32_t *first = bucket(o->client, o->handle), i = spare;

	if (i) {
		spare = objects[i].next;
	} else {
		if (n_objects >= max_objects) {
			uint32_t n = max_objects ? 2 * max_objects : 16;
			struct object *more = realloc(objects, n * sizeof(*more));

			if (!more)
				return NV_ERR_INSUFFICIENT_RESOURCES;
			objects = more;
			max_objects = n;
		}
		i = n_objects++;
	}
	objects[i] = *o;
	objects[i].next = *first;
	*first = i;
	return NV_OK;
}

/* The parent stays in its entry: rm_free() goes up from there */
static void drop(uint32_t i)
{
	uint32_t *p = bucket(objects[i].client, objects[i].handle);

	while (*p != i)
		p = &objects[*p].next;
	*p = objects[i].next;
	objects[i].client = 0;
	objects[i].next = spare;
	spare = i;
}

/* Handle 0: one is given */
static uint32_t rm_alloc(uint32_t root, uint32_t parent, uint32_t *handle, uint32_t class,
			 const void *params)
{
	struct object o = { .client = root, .class = class };
	const struct object *p;
	uint32_t status;

	if (class == NV01_ROOT_CLIENT) {
		if (!*handle)
			*handle = FIRST_CLIENT + clients++;
		if (find(*handle, *handle))
			return NV_ERR_INVALID_ARGUMENT;
		o.client = o.handle = *handle;
		return add(&o);
	}
	p = find(root, parent);
	if (!p)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	status = check_parent(class, p->class, params);
	if (status)
		return status;
	if (!*handle)
		*handle = FIRST_HANDLE + handles++;
	if (find(root, *handle))
		return NV_ERR_INVALID_ARGUMENT;
	o.handle = *handle;
	o.parent = (uint32_t)(p - objects);
	o.gpu = class == NV01_DEVICE_0 ? vg_gpu_at(*(const uint32_t *)params) : p->gpu;
	o.slice_us = o.gpu->config.timeslice_ns / 1000;
	return add(&o);
}

static uint32_t rm_free(uint32_t root, uint32_t handle)
{
	const struct object *o = find(root, handle);
	uint32_t top, at;

	if (!o)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	top = (uint32_t)(o - objects);
	if (o->class != NV01_ROOT_CLIENT && o->class != NV01_DEVICE_0) {
		drop(top);	/* nothing lies below it */
		return NV_OK;
	}
	for (uint32_t i = 1; i < n_objects; i++) {
		if (!objects[i].client)
			continue;
		for (at = i; at && at != top; at = objects[at].parent)
			;
		if (at)
			drop(i);
	}
	return NV_OK;
}

static uint32_t gid_info(const struct object *o, struct nv_gid_info *info)
{
	char text[41];
	uint8_t u[16];

	if (info->index)
		return NV_ERR_INVALID_ARGUMENT;
	vg_uuid(o->gpu->index, u);
	switch (info->flags & NV2080_GPU_GID_FORMAT) {
	case NV2080_GPU_GID_BINARY:
		memcpy(info->data, u, sizeof(u));
		info->length = sizeof(u);
		return NV_OK;
	case NV2080_GPU_GID_ASCII:
		vg_uuid_text(o->gpu->index, text);
		memcpy(info->data, text, sizeof(text));
		info->length = sizeof(text);
		return NV_OK;
	default:
		return NV_ERR_INVALID_ARGUMENT;
	}
}

static uint32_t set_slice(struct object *o, uint64_t us)
{
	vg_procs wake;

	if (!us || us > UINT32_MAX)
		return NV_ERR_INVALID_ARGUMENT;
	if (us != o->gpu->config.timeslice_ns / 1000 && flag("VGPU_RM_REFUSE"))
		return NV_ERR_INSUFFICIENT_PERMISSIONS;
	o->slice_us = us;
	vg_shm_lock(o->gpu->device);
	wake = vg_sched_set_slice(o->gpu->device, o->gpu->device->proc[o->gpu->proc].group,
				  us * 1000, vg_now());
	vg_shm_unlock(o->gpu->device);
	vg_shm_wake(o->gpu->device, wake);
	return NV_OK;
}

static uint32_t preempt(const struct object *o, const struct nv_preempt *p)
{
	vg_procs wake;

	if (p->manual_timeout && p->timeout_us > NVA06C_PREEMPT_MAX_US)
		return NV_ERR_INVALID_ARGUMENT;
	vg_shm_lock(o->gpu->device);
	wake = vg_sched_preempt(o->gpu->device, o->gpu->device->proc[o->gpu->proc].group, vg_now());
	vg_shm_unlock(o->gpu->device);
	vg_shm_wake(o->gpu->device, wake);
	return NV_OK;
}

/* Taken note of only: the simulated GPU switches at any instruction */
static uint32_t set_mode(const struct object *subdevice, const struct nv_preemption *p)
{
	const struct object *group = find(subdevice->client, p->group);

	if (!group || group->class != KEPLER_CHANNEL_GROUP_A)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	return p->flags == NV2080_SET_CILP && p->compute <= NV2080_COMPUTE_CILP ? NV_OK :
	       NV_ERR_INVALID_ARGUMENT;
}

static uint32_t rm_control(const struct nv_control *c)
{
	static const struct { uint32_t cmd, class, size; } known[] = {
		{ NVA06C_CTRL_CMD_SET_TIMESLICE, KEPLER_CHANNEL_GROUP_A, sizeof(uint64_t) },
		{ NVA06C_CTRL_CMD_GET_TIMESLICE, KEPLER_CHANNEL_GROUP_A, sizeof(uint64_t) },
		{ NVA06C_CTRL_CMD_PREEMPT, KEPLER_CHANNEL_GROUP_A, sizeof(struct nv_preempt) },
		{ NV2080_CTRL_CMD_GPU_GET_GID_INFO, NV20_SUBDEVICE_0, sizeof(struct nv_gid_info) },
		{ NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, NV20_SUBDEVICE_0,
		  sizeof(struct nv_preemption) },
	};
	struct object *o = find(c->client, c->object);
	void *params = (void *)(uintptr_t)c->params;
	size_t i;

	if (!o)
		return NV_ERR_INVALID_OBJECT_HANDLE;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].cmd == c->cmd)
			break;
	if (i == sizeof(known) / sizeof(known[0]) || known[i].class != o->class)
		return NV_ERR_NOT_SUPPORTED;
	if (!params || known[i].size != c->params_size)
		return NV_ERR_INVALID_ARGUMENT;
	switch (c->cmd) {
	case NVA06C_CTRL_CMD_SET_TIMESLICE:
		return set_slice(o, *(uint64_t *)params);
	case NVA06C_CTRL_CMD_GET_TIMESLICE:
		*(uint64_t *)params = o->slice_us;
		return NV_OK;
	case NVA06C_CTRL_CMD_PREEMPT:
		return preempt(o, params);
	case NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE:
		return set_mode(o, params);
	default:
		return gid_info(o, params);
	}
}

static int answer(unsigned long request, void *arg)
{
	struct nv_alloc_rights *rights = arg;
	struct nv_control *control = arg;
	struct nv_alloc *alloc = arg;
	struct nv_free *gone = arg;
	int e = 0;

	pthread_mutex_lock(&lock);
	if (!open_for_calls)
		e = ENODEV;
	else if (!arg)
		e = EFAULT;
	else if (request == NV_IOCTL_ALLOC)
		alloc->status = rm_alloc(alloc->root, alloc->parent, &alloc->object, alloc->class,
					 (void *)(uintptr_t)alloc->params);
	else if (request == NV_IOCTL_ALLOC_RIGHTS)
		rights->status = rm_alloc(rights->root, rights->parent, &rights->object,
					  rights->class, (void *)(uintptr_t)rights->params);
	else if (request == NV_IOCTL_FREE)
		gone->status = rm_free(gone->root, gone->object);
	else if (request == NV_IOCTL_CONTROL)
		control->status = rm_control(control);
	else
		e = EINVAL;
	pthread_mutex_unlock(&lock);
	errno = e ? e : errno;
	return e ? -1 : 0;
}

/* libcuda's own calls */

static uint32_t call_alloc(uint32_t root, uint32_t parent, uint32_t handle, uint32_t class,
			   void *params, uint32_t size)
{
	struct nv_alloc_rights a = {
		.root = root, .parent = parent, .object = handle, .class = class,
		.params = (uintptr_t)params, .params_size = size,
	};

	return ioctl(control_fd, NV_IOCTL_ALLOC_RIGHTS, &a) || a.status ? 0 : a.object;
}

/* A call that fails because the process exits is no error */
static void call_free(uint32_t parent, uint32_t handle)
{
	struct nv_free f = { .root = own_root, .parent = parent, .object = handle };
	bool say;
	int e;

	if (!handle || !ioctl(control_fd, NV_IOCTL_FREE, &f))
		return;
	e = errno;
	pthread_mutex_lock(&lock);
	say = open_for_calls;
	pthread_mutex_unlock(&lock);
	if (say)
		vg_say("the control call that frees object %x failed: %s", handle, strerror(e));
}

static void (*find_register(void))(int, vgpu_rm_handler)
{
	return (void (*)(int, vgpu_rm_handler))dlsym(RTLD_DEFAULT, "vgpu_rm_register");
}

/* false: the process makes no calls */
static bool calls_made(void)
{
	static bool absent;
	void (*rm_register)(int, vgpu_rm_handler);

	if (control_fd >= 0 || absent)
		return !absent;
	rm_register = find_register();
	absent = !rm_register;
	if (absent)
		return false;
	control_fd = memfd_create("nvidiactl", MFD_CLOEXEC);
	if (control_fd < 0) {
		vg_say("no descriptor for control calls: %s", strerror(errno));
		return false;
	}
	pthread_mutex_lock(&lock);
	open_for_calls = true;
	pthread_mutex_unlock(&lock);
	rm_register(control_fd, answer);
	return true;
}

/* Makes the process's client object, the device and its subdevice, if they are not there yet */
static bool device_open(const struct vg_gpu *gpu)
{
	struct nv_device_params device = { .device = gpu->index };
	struct nv_subdevice_params subdevice = { .subdevice = 0 };
	uint32_t n = gpu->number;

	if (own_device[n])
		return true;
	if (!own_root)
		own_root = call_alloc(0, 0, 0, NV01_ROOT_CLIENT, NULL, 0);
	if (!own_root || !call_alloc(own_root, own_root, DEVICE(n), NV01_DEVICE_0, &device,
				     sizeof(device)))
		return false;
	own_device[n] = call_alloc(own_root, DEVICE(n), SUBDEVICE(n), NV20_SUBDEVICE_0, &subdevice,
				   sizeof(subdevice));
	if (!own_device[n])
		call_free(own_root, DEVICE(n));
	return own_device[n];
}

bool vg_rm_take(const struct vg_gpu *gpu, uint64_t size, uint32_t *object)
{
	struct nv_memory_params p = {
		.size = (size + VG_MEMORY_GRANULE - 1) & ~(VG_MEMORY_GRANULE - 1),
		.alignment = VG_MEMORY_GRANULE,
	};

	*object = 0;
	if (!calls_made())
		return true;
	if (!device_open(gpu))
		return false;
	p.owner = own_root;
	*object = call_alloc(own_root, DEVICE(gpu->number), FIRST_OWN + own_handles++,
			     NV01_MEMORY_LOCAL_USER, &p, 0);
	return *object;
}

void vg_rm_give(const struct vg_gpu *gpu, uint32_t object)
{
	call_free(DEVICE(gpu->number), object);
}

/* If it fails, that has no consequence: the context works, with the default slice */
static void group_open(struct CUctx_st *ctx)
{
	uint64_t slice_us = ctx->gpu->config.timeslice_ns / 1000;
	struct nv_group_params group = { .engine = 1 };
	struct nv_preemption mode = { .flags = NV2080_SET_CILP, .compute = NV2080_COMPUTE_CILP };
	struct nv_control m = { .client = own_root, .object = SUBDEVICE(ctx->gpu->number),
				.cmd = NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE,
				.params = (uintptr_t)&mode, .params_size = sizeof(mode) };
	struct nv_control c = { .client = own_root, .cmd = NVA06C_CTRL_CMD_SET_TIMESLICE,
				.params = (uintptr_t)&slice_us, .params_size = sizeof(slice_us) };

	if (vg.key != VG_NO_MPS && !mps_server())
		return;
	ctx->rm_group = call_alloc(own_root, DEVICE(ctx->gpu->number), FIRST_OWN + own_handles++,
				   KEPLER_CHANNEL_GROUP_A, &group, sizeof(group));
	if (!ctx->rm_group)
		return;
	c.object = mode.group = ctx->rm_group;
	if (ioctl(control_fd, NV_IOCTL_CONTROL, &m))
		vg_say("the control call that sets the preemption mode failed: %s",
		       strerror(errno));
	if (ioctl(control_fd, NV_IOCTL_CONTROL, &c))
		vg_say("the control call that sets the time slice failed: %s", strerror(errno));
}

bool vg_rm_open(struct CUctx_st *ctx)
{
	if (!calls_made())
		return true;
	if (!device_open(ctx->gpu))
		return false;
	group_open(ctx);
	if (vg_rm_take(ctx->gpu, VG_CONTEXT_MEMORY, &ctx->rm_memory))
		return true;
	vg_rm_close(ctx);
	return false;
}

void vg_rm_close(struct CUctx_st *ctx)
{
	call_free(DEVICE(ctx->gpu->number), ctx->rm_memory);
	call_free(DEVICE(ctx->gpu->number), ctx->rm_group);
	ctx->rm_memory = ctx->rm_group = 0;
}

void vg_rm_stop(void)
{
	void (*rm_register)(int, vgpu_rm_handler) = find_register();

	pthread_mutex_lock(&lock);
	open_for_calls = false;
	forget_all();
	pthread_mutex_unlock(&lock);
	if (control_fd >= 0 && rm_register)
		rm_register(-1, NULL);
}

/*
 * The parent's descriptor answers nothing in a child of fork. It stays open: libvgpu-rm.so would
 * take another file with its number for it
 */
void vg_rm_child(void)
{
	pthread_mutex_init(&lock, NULL);
	open_for_calls = false;
	forget_all();
	control_fd = -1;
	own_root = 0;
	memset(own_device, 0, sizeof(own_device));
}
