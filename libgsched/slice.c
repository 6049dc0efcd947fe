// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Channel groups and their time slices (slice.h), and calls that allocate device memory (memory.h).
 * Numbers and structures are the driver's ABI: NVIDIA's open kernel modules, nvos.h, nv_escape.h,
 * ctrla06c.h, ctrl2080gpu.h, ctrl2080gr.h.
 *
 * Objects of the resource manager form trees: client (root), device, and below it subdevices and
 * channel groups. The table holds the process's objects of these classes, so that a group leads to
 * its GPU. table_lock protects it. It is a leaf lock, and is held across our own control calls, so
 * that these and the removal of a group exclude each other.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "memory.h"
#include "slice.h"

#define RM_MAGIC		'F'
#define RM_FREE			0x29
#define RM_CONTROL		0x2a
#define RM_ALLOC		0x2b

#define CLASS_DEVICE		0x0080
#define CLASS_SUBDEVICE		0x2080
#define CLASS_GROUP		0xa06c	/* KEPLER_CHANNEL_GROUP_A, on every GPU since Kepler */
#define CLASS_MEMORY		0x0040	/* NV01_MEMORY_LOCAL_USER: in the device's memory */

#define NO_MEMORY		0x51	/* NV_ERR_NO_MEMORY */

#define CMD_SET_TIMESLICE	0xa06c0103
#define CMD_SET_PREEMPTION	0x20801210	/* NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE */
#define CMD_GET_GID_INFO	0x2080014a
#define GID_BINARY		2

#define CONTROL_MAJOR		195
#define CONTROL_MINOR		255

#define MPS_PIPE_DEFAULT	"/tmp/nvidia-mps"

#define OBJECTS			1024
#define DEVICES			64

struct rm_control {
	uint32_t client, object, cmd, flags;
	uint64_t params;
	uint32_t size, status;
};

/* NVOS21 and NVOS64 begin alike; their size tells where the status is */
struct rm_alloc {
	uint32_t client, parent, object, class;
	uint64_t params;
};

/* NV_MEMORY_ALLOCATION_PARAMS, as far as it is the same in all drivers */
struct rm_memory {
	uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, coverage[2], __pad;
	uint64_t range[2];
	uint64_t size;			/* libcuda asks for multiples of 2 MiB */
};

struct rm_free {
	uint32_t client, parent, object, status;
};

/* Set by libcuda for each group on its subdevice, just before the slice; ctrl2080gr.h */
struct rm_preemption {
	uint32_t flags, group, graphics, compute;
	uint64_t route[2];
};

/* rm_preemption.compute: COMPUTE_CTA; libcuda's choice is CILP, 2 */
#define AT_BLOCK_END	1

struct gid_info {
	uint32_t index, flags, length;
	uint8_t data[256];
};

struct object {
	uint32_t client, parent, handle, class;	/* class 0: free entry */
	int fd;
	uint8_t uuid[16];	/* of a device, if @known */
	bool known;
	/* groups */
	bool compute;		/* libcuda has set its slice: it runs kernels */
	uint64_t own_us;	/* libcuda's choice */
	uint64_t us;		/* in force */
	uint32_t mode_object;	/* subdevice of libcuda's call for @mode; 0: none was seen */
	struct rm_preemption mode;	/* libcuda's choice */
	bool block_end;		/* in force */
};

/* What is wanted for a device's present and future groups */
struct wish {
	uint8_t uuid[16];
	uint32_t us;
	uint32_t refused;	/* NV_STATUS of the last refusal */
	bool block_end;
};

void (*gsched_slice_seen)(const uint8_t uuid[16]);

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object table[OBJECTS];
static unsigned int n_objects;		/* entries in use are below it */
static struct wish wishes[DEVICES];
static unsigned int n_wishes;
static _Atomic(int (*)(int, unsigned long, ...)) next_ioctl;

static int call_next(int fd, unsigned long request, void *arg)
{
	int (*fn)(int, unsigned long, ...) = atomic_load_explicit(&next_ioctl,
								  memory_order_relaxed);

	if (!fn) {
		void *sym = dlsym(RTLD_NEXT, "ioctl");

		memcpy(&fn, &sym, sizeof(fn));
		if (!fn) {
			errno = ENOSYS;
			return -1;
		}
		atomic_store_explicit(&next_ioctl, fn, memory_order_relaxed);
	}
	return fn(fd, request, arg);
}

static bool is_control_node(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) == CONTROL_MAJOR &&
	       minor(st.st_rdev) == CONTROL_MINOR;
}

/* ---- the table; table_lock is held ---- */

static struct object *find_object(uint32_t client, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < n_objects; i++)
		if (table[i].class && table[i].client == client && table[i].handle == handle)
			return &table[i];
	return NULL;
}

static void add_object(int fd, const struct rm_alloc *a)
{
	struct object *o = find_object(a->client, a->object);
	unsigned int i;

	for (i = 0; !o && i < OBJECTS; i++)
		if (!table[i].class)
			o = &table[i];
	if (!o)
		return;		/* the table is full: the newest groups keep the driver's slice */
	if (o >= table + n_objects)
		n_objects = o - table + 1;
	*o = (struct object){
		.client = a->client, .parent = a->parent, .handle = a->object,
		.class = a->class, .fd = fd,
	};
}

/* Removes an object with all its descendants; a client with all its objects. */
static void drop_object(uint32_t client, uint32_t handle)
{
	struct object *o;

	for (o = table; o < table + n_objects; o++) {
		if (!o->class || o->client != client ||
		    (handle != client && o->handle != handle && o->parent != handle))
			continue;
		o->class = 0;
		if (o->handle != handle && handle != client)
			drop_object(client, o->handle);
	}
	while (n_objects && !table[n_objects - 1].class)
		n_objects--;
}

static uint32_t rm_control_call(const struct object *o, uint32_t handle, uint32_t cmd, void *params,
				uint32_t size)
{
	struct rm_control c = {
		.client = o->client, .object = handle, .cmd = cmd, .params = (uintptr_t)params,
		.size = size,
	};

	/* the descriptor's number may have been reused for another file */
	if (!is_control_node(o->fd) ||
	    call_next(o->fd, _IOWR(RM_MAGIC, RM_CONTROL, struct rm_control), &c))
		return UINT32_MAX;
	return c.status;
}

/* The GPU of a device object, queried once; NULL: unknown. */
static const uint8_t *uuid_of_device(uint32_t client, uint32_t device)
{
	struct object *dev = find_object(client, device), *o;
	struct gid_info gid = { .flags = GID_BINARY };

	if (!dev || dev->class != CLASS_DEVICE)
		return NULL;
	for (o = table; !dev->known && o < table + n_objects; o++) {
		if (o->class != CLASS_SUBDEVICE || o->client != dev->client ||
		    o->parent != dev->handle ||
		    rm_control_call(o, o->handle, CMD_GET_GID_INFO, &gid, sizeof(gid)) ||
		    gid.length != sizeof(dev->uuid))
			continue;
		memcpy(dev->uuid, gid.data, sizeof(dev->uuid));
		dev->known = true;
	}
	return dev->known ? dev->uuid : NULL;
}

static const uint8_t *uuid_of(const struct object *group)
{
	return uuid_of_device(group->client, group->parent);
}

static struct wish *wish_of(const uint8_t *uuid, bool make)
{
	unsigned int i;

	for (i = 0; i < n_wishes; i++)
		if (!memcmp(wishes[i].uuid, uuid, sizeof(wishes[i].uuid)))
			return &wishes[i];
	if (!make || n_wishes == DEVICES)
		return NULL;
	memcpy(wishes[n_wishes].uuid, uuid, sizeof(wishes[0].uuid));
	wishes[n_wishes].us = 0;
	wishes[n_wishes].refused = 0;
	wishes[n_wishes].block_end = false;
	return &wishes[n_wishes++];
}

static uint32_t set_slice(struct object *group, uint64_t us)
{
	uint64_t value = us;
	uint32_t status;

	if (group->us == us)
		return 0;
	status = rm_control_call(group, group->handle, CMD_SET_TIMESLICE, &value, sizeof(value));
	if (!status)
		group->us = us;
	return status;
}

/*
 * A group whose mode cannot be changed keeps libcuda's, with which it can be switched at any time.
 */
static void set_mode(struct object *group, bool block_end)
{
	struct rm_preemption mode = group->mode;

	if (!group->mode_object || group->block_end == block_end)
		return;
	if (block_end)
		mode.compute = AT_BLOCK_END;
	if (!rm_control_call(group, group->mode_object, CMD_SET_PREEMPTION, &mode, sizeof(mode)))
		group->block_end = block_end;
}

/* ---- calls of libcuda ---- */

/* Where the driver puts the status of an RM_ALLOC; NULL: neither structure that is known */
static uint32_t *alloc_status(unsigned long request, void *a)
{
	switch (_IOC_SIZE(request)) {
	case 32:
		return (void *)((char *)a + 28);
	case 48:
		return (void *)((char *)a + 40);
	default:
		return NULL;
	}
}

/* @uuid: of the GPU on which @a allocates memory. False: it does not, or the GPU is not known. */
static bool allocates_memory(int fd, unsigned long request, struct rm_alloc *a, uint8_t uuid[16])
{
	const uint8_t *known;

	if (a->class != CLASS_MEMORY || !a->params || !alloc_status(request, a) ||
	    !is_control_node(fd))
		return false;
	pthread_mutex_lock(&table_lock);
	known = uuid_of_device(a->client, a->parent);
	if (known)
		memcpy(uuid, known, 16);
	pthread_mutex_unlock(&table_lock);
	return known;
}

static int allocate_memory(int fd, unsigned long request, struct rm_alloc *a, const uint8_t *uuid)
{
	const uint64_t size = ((const struct rm_memory *)(uintptr_t)a->params)->size;
	int rc, err;

	if (!gsched_memory_charge(uuid, size)) {
		*alloc_status(request, a) = NO_MEMORY;
		return 0;
	}
	rc = call_next(fd, request, a);
	err = errno;
	if (rc || *alloc_status(request, a)) {
		gsched_memory_uncharge(uuid, size);
	} else {
		gsched_memory_add(a->client, a->parent, a->object, uuid, size);
	}
	errno = err;
	return rc;
}

static void after_alloc(int fd, unsigned long request, struct rm_alloc *a)
{
	const uint32_t *status = alloc_status(request, a);

	if (a->class != CLASS_DEVICE && a->class != CLASS_SUBDEVICE && a->class != CLASS_GROUP)
		return;
	if (!status || *status || !is_control_node(fd))
		return;
	pthread_mutex_lock(&table_lock);
	add_object(fd, a);
	pthread_mutex_unlock(&table_lock);
}

/* libcuda sets the slice of a group that runs kernels. If a wish is known, it is set instead. */
static int libcuda_sets_slice(int fd, unsigned long request, struct rm_control *c)
{
	struct rm_control ours = *c;
	const uint8_t *uuid = NULL;
	uint8_t seen[16];
	struct object *group;
	struct wish *wish;
	uint64_t asked, us;
	bool first = false;
	int rc;

	memcpy(&asked, (const void *)(uintptr_t)c->params, sizeof(asked));
	pthread_mutex_lock(&table_lock);
	group = find_object(c->client, c->object);
	if (!group || group->class != CLASS_GROUP) {
		pthread_mutex_unlock(&table_lock);
		return call_next(fd, request, c);
	}
	uuid = uuid_of(group);
	wish = uuid ? wish_of(uuid, false) : NULL;
	us = wish && wish->us ? wish->us : asked;
	ours.params = (uintptr_t)&us;
	rc = call_next(fd, request, &ours);
	if (!rc && ours.status && wish && us != asked) {
		wish->refused = ours.status;
		us = asked;
		ours = *c;
		ours.params = (uintptr_t)&us;
		rc = call_next(fd, request, &ours);
	}
	c->status = ours.status;
	if (!rc && !ours.status) {
		first = !group->compute;
		group->compute = true;
		group->own_us = asked;
		group->us = us;
		set_mode(group, wish && wish->block_end);
	}
	if (uuid)
		memcpy(seen, uuid, sizeof(seen));
	pthread_mutex_unlock(&table_lock);
	if (first && uuid && gsched_slice_seen)
		gsched_slice_seen(seen);
	return rc;
}

static int libcuda_sets_mode(int fd, unsigned long request, struct rm_control *c)
{
	struct rm_preemption mode;
	struct object *group;
	int rc;

	memcpy(&mode, (const void *)(uintptr_t)c->params, sizeof(mode));
	pthread_mutex_lock(&table_lock);
	rc = call_next(fd, request, c);
	group = find_object(c->client, mode.group);
	if (!rc && !c->status && group && group->class == CLASS_GROUP) {
		group->mode_object = c->object;
		group->mode = mode;
		group->block_end = false;
	}
	pthread_mutex_unlock(&table_lock);
	return rc;
}

/* Removed first, so that no thread sets a slice by a handle that is being reused. */
static int free_object(int fd, unsigned long request, struct rm_free *f)
{
	const struct rm_free freed = *f;
	const struct object *o;
	struct gsched_held *held;
	bool parent = freed.object == freed.client;
	int rc, err;

	pthread_mutex_lock(&table_lock);
	o = find_object(freed.client, freed.object);
	parent = parent || (o && o->class == CLASS_DEVICE);
	if (parent || o)
		drop_object(freed.client, freed.object);
	pthread_mutex_unlock(&table_lock);
	held = gsched_memory_remove(freed.client, freed.object, parent);
	rc = call_next(fd, request, f);
	err = errno;
	gsched_memory_removed(held, !rc && !f->status);
	errno = err;
	return rc;
}

static int rm_ioctl(int fd, unsigned long request, void *arg)
{
	uint8_t uuid[16];
	int rc, err;

	switch (_IOC_NR(request)) {
	case RM_ALLOC:
		if (arg && allocates_memory(fd, request, arg, uuid))
			return allocate_memory(fd, request, arg, uuid);
		rc = call_next(fd, request, arg);
		if (!rc && arg) {
			err = errno;
			after_alloc(fd, request, arg);
			errno = err;
		}
		return rc;
	case RM_FREE:
		if (arg && _IOC_SIZE(request) == sizeof(struct rm_free))
			return free_object(fd, request, arg);
		break;
	case RM_CONTROL: {
		struct rm_control *c = arg;

		if (c && _IOC_SIZE(request) == sizeof(*c) && c->cmd == CMD_SET_TIMESLICE &&
		    c->params && c->size == sizeof(uint64_t) && is_control_node(fd))
			return libcuda_sets_slice(fd, request, c);
		if (c && _IOC_SIZE(request) == sizeof(*c) && c->cmd == CMD_SET_PREEMPTION &&
		    c->params && c->size == sizeof(struct rm_preemption) && is_control_node(fd))
			return libcuda_sets_mode(fd, request, c);
		break;
	}
	default:
		break;
	}
	return call_next(fd, request, arg);
}

int gsched_slice_ioctl(int fd, unsigned long request, void *arg)
{
	if (__builtin_expect(_IOC_TYPE(request) != RM_MAGIC ||
			     _IOC_DIR(request) != (_IOC_READ | _IOC_WRITE), 1))
		return call_next(fd, request, arg);
	return rm_ioctl(fd, request, arg);
}

/* ---- our own calls ---- */

/* @us NULL: only query. table_lock is held. */
static int each_group(const uint8_t *uuid, const uint32_t *us, bool block_end,
		      struct gsched_slice *to)
{
	const uint8_t *on;
	struct wish *wish = wish_of(uuid, us);
	struct object *o;
	uint32_t status;

	memset(to, 0, sizeof(*to));
	if (us && wish) {
		wish->us = *us;
		wish->refused = 0;
		wish->block_end = block_end;
	}
	for (o = table; o < table + n_objects; o++) {
		if (o->class != CLASS_GROUP || !o->compute)
			continue;
		on = uuid_of(o);
		if (!on || memcmp(on, uuid, 16))
			continue;
		to->groups++;
		if (us) {
			status = set_slice(o, *us ? *us : o->own_us);
			if (status && wish)
				wish->refused = status;
			set_mode(o, block_end);
		}
		to->us = o->us;
		to->block_end = o->block_end;
	}
	to->status = wish ? wish->refused : 0;
	to->error = !to->groups ? ENODEV : to->status ? EIO : 0;
	return to->error;
}

int gsched_slice_set(const uint8_t uuid[16], uint32_t us, bool block_end, struct gsched_slice *to)
{
	int rc;

	pthread_mutex_lock(&table_lock);
	rc = each_group(uuid, &us, block_end, to);
	pthread_mutex_unlock(&table_lock);
	return rc;
}

int gsched_slice_get(const uint8_t uuid[16], struct gsched_slice *to)
{
	int rc;

	pthread_mutex_lock(&table_lock);
	rc = each_group(uuid, NULL, false, to);
	pthread_mutex_unlock(&table_lock);
	return rc;
}

uint64_t gsched_slice_mps_group(void)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct stat st;
	uint64_t id;

	/* the inode, because containers see the same directory by other names */
	if (stat(dir && *dir ? dir : MPS_PIPE_DEFAULT, &st))
		return 0;
	id = (uint64_t)st.st_ino * 0x9e3779b97f4a7c15ull ^ (uint64_t)st.st_dev << 32 ^ geteuid();
	return id ? id : 1;
}

/* The child inherits the descriptors, but the groups are its parent's. */
static void after_fork(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	memcpy(&table_lock, &unlocked, sizeof(table_lock));
	n_objects = 0;
	memset(table, 0, sizeof(table));
	n_wishes = 0;
}

__attribute__((constructor)) static void start(void)
{
	pthread_atfork(NULL, NULL, after_fork);
}
