// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Control calls: those that libcuda makes for its contexts, and the answers to them and to those of
 * others. See rm.h. Calls are made with vg.lock held; answers are given on any thread, also in such
 * a call, so they take a lock of their own, which comes after vg.lock and before the device's.
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

#define DEVICE		0x5c000001u	/* handles below a context's client object */
#define SUBDEVICE	0x5c000002u
#define GROUP		0x5c000010u
#define FIRST_CLIENT	0xc1d00001u
#define FIRST_HANDLE	0xcaf00001u

struct object {
	uint32_t client, handle, parent, class;
	struct vg_gpu *gpu;		/* of a device and what lies below it */
	uint64_t slice_us;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;		/* children behind their parents */
static size_t n_objects, max_objects;
static uint32_t clients, handles;
static bool open_for_calls;		/* the process has its slot on the device */
static int control_fd = -1;

static bool flag(const char *name)
{
	return !strcmp(getenv(name) ?: "0", "1");
}

static bool mps_server(void)
{
	return flag("VGPU_MPS_SERVER");
}

/* Answers. @client 0 finds none: it is no object's */

static struct object *find(uint32_t client, uint32_t handle)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].client == client && objects[i].handle == handle)
			return &objects[i];
	return NULL;
}

static uint32_t check_parent(uint32_t class, uint32_t parent_class, const void *params)
{
	uint32_t want;

	switch (class) {
	case NV01_DEVICE_0:
		want = NV01_ROOT_CLIENT;
		break;
	case NV20_SUBDEVICE_0:
	case KEPLER_CHANNEL_GROUP_A:
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
	if (class == KEPLER_CHANNEL_GROUP_A && vg.key != VG_NO_MPS && !mps_server())
		return NV_ERR_NOT_SUPPORTED;	/* its server's group is what it runs in */
	return NV_OK;
}

static uint32_t add(const struct object *o)
{
	if (n_objects == max_objects) {
		size_t n = max_objects ? 2 * max_objects : 16;
		struct object *more = realloc(objects, n * sizeof(*more));

		if (!more)
			return NV_ERR_INSUFFICIENT_RESOURCES;
		objects = more;
		max_objects = n;
	}
	objects[n_objects++] = *o;
	return NV_OK;
}

/* Handle 0: one is given */
static uint32_t rm_alloc(uint32_t root, uint32_t parent, uint32_t *handle, uint32_t class,
			 const void *params)
{
	struct object o = { .client = root, .parent = parent, .class = class };
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
	o.gpu = class == NV01_DEVICE_0 ? vg_gpu_at(*(const uint32_t *)params) : p->gpu;
	o.slice_us = o.gpu->config.timeslice_ns / 1000;
	return add(&o);
}

static uint32_t rm_free(uint32_t root, uint32_t handle)
{
	size_t kept = 0;

	if (!find(root, handle))
		return NV_ERR_INVALID_OBJECT_HANDLE;
	/* with what lies below it: the parents of that come earlier, so they are gone already */
	for (size_t i = 0; i < n_objects; i++) {
		struct object o = objects[i];
		bool parent_left = o.class == NV01_ROOT_CLIENT;

		for (size_t j = 0; j < kept && !parent_left; j++)
			parent_left = objects[j].client == o.client &&
				      objects[j].handle == o.parent;
		if (parent_left && !(o.client == root && o.handle == handle))
			objects[kept++] = o;
	}
	n_objects = kept;
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

/* libcuda's own calls. A failure has no consequence: the context works, with the default slice */

static uint32_t call_alloc(uint32_t root, uint32_t parent, uint32_t handle, uint32_t class,
			   void *params, uint32_t size)
{
	struct nv_alloc_rights a = {
		.root = root, .parent = parent, .object = handle, .class = class,
		.params = (uintptr_t)params, .params_size = size,
	};

	return ioctl(control_fd, NV_IOCTL_ALLOC_RIGHTS, &a) || a.status ? 0 : a.object;
}

static void call_free(uint32_t root, uint32_t parent, uint32_t handle)
{
	struct nv_free f = { .root = root, .parent = parent, .object = handle };

	if (handle && ioctl(control_fd, NV_IOCTL_FREE, &f))
		vg_say("the control call that frees object %x failed: %s", handle, strerror(errno));
}

static void (*find_register(void))(int, vgpu_rm_handler)
{
	return (void (*)(int, vgpu_rm_handler))dlsym(RTLD_DEFAULT, "vgpu_rm_register");
}

void vg_rm_open(struct CUctx_st *ctx)
{
	void (*rm_register)(int, vgpu_rm_handler) = find_register();
	struct nv_device_params device = { .device = ctx->gpu->index };
	struct nv_subdevice_params subdevice = { .subdevice = 0 };
	struct nv_group_params group = { .engine = 1 };
	struct nv_preemption mode = { .flags = NV2080_SET_CILP, .group = GROUP,
				      .compute = NV2080_COMPUTE_CILP };
	uint64_t slice_us = ctx->gpu->config.timeslice_ns / 1000;
	struct nv_control m = { .object = SUBDEVICE,
				.cmd = NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE,
				.params = (uintptr_t)&mode, .params_size = sizeof(mode) };
	struct nv_control c = { .object = GROUP, .cmd = NVA06C_CTRL_CMD_SET_TIMESLICE,
				.params = (uintptr_t)&slice_us, .params_size = sizeof(slice_us) };
	uint32_t root;

	if (!rm_register)
		return;
	if (control_fd < 0) {
		control_fd = memfd_create("nvidiactl", MFD_CLOEXEC);
		if (control_fd < 0) {
			vg_say("no descriptor for control calls: %s", strerror(errno));
			return;
		}
		rm_register(control_fd, answer);
	}
	pthread_mutex_lock(&lock);
	open_for_calls = true;
	pthread_mutex_unlock(&lock);
	ctx->rm_root = root = call_alloc(0, 0, 0, NV01_ROOT_CLIENT, NULL, 0);
	if (!root || !call_alloc(root, root, DEVICE, NV01_DEVICE_0, &device, sizeof(device)) ||
	    !call_alloc(root, DEVICE, SUBDEVICE, NV20_SUBDEVICE_0, &subdevice, sizeof(subdevice)))
		return;
	if ((vg.key != VG_NO_MPS && !mps_server()) ||
	    !call_alloc(root, DEVICE, GROUP, KEPLER_CHANNEL_GROUP_A, &group, sizeof(group)))
		return;
	ctx->rm_group = GROUP;
	c.client = m.client = root;
	if (ioctl(control_fd, NV_IOCTL_CONTROL, &m))
		vg_say("the control call that sets the preemption mode failed: %s",
		       strerror(errno));
	if (ioctl(control_fd, NV_IOCTL_CONTROL, &c))
		vg_say("the control call that sets the time slice failed: %s", strerror(errno));
}

void vg_rm_close(struct CUctx_st *ctx)
{
	if (!ctx->rm_root)
		return;
	call_free(ctx->rm_root, DEVICE, ctx->rm_group);
	call_free(ctx->rm_root, DEVICE, SUBDEVICE);
	call_free(ctx->rm_root, ctx->rm_root, DEVICE);
	call_free(ctx->rm_root, 0, ctx->rm_root);
	ctx->rm_root = ctx->rm_group = 0;
}

void vg_rm_stop(void)
{
	void (*rm_register)(int, vgpu_rm_handler) = find_register();

	if (control_fd >= 0 && rm_register)
		rm_register(-1, NULL);
	pthread_mutex_lock(&lock);
	open_for_calls = false;
	n_objects = 0;
	pthread_mutex_unlock(&lock);
}

/* The parent's descriptor answers nothing in a child of fork */
void vg_rm_child(void)
{
	pthread_mutex_init(&lock, NULL);
	open_for_calls = false;
	n_objects = 0;
}
