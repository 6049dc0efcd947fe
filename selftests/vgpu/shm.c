// SPDX-License-Identifier: LGPL-2.1-or-later
/* The shared memory object of a simulated GPU: see shm.h */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "shm.h"

#define MAGIC 0x76677032u	/* layout version: change it with struct vg_device */

static bool fail(char *err, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool fail(char *err, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, size, fmt, ap);
	va_end(ap);
	return false;
}

static bool env_number(const char *name, uint64_t *value, uint64_t low, uint64_t high, char *err,
		       size_t err_size)
{
	const char *s = getenv(name);
	char *end;
	unsigned long long v;

	if (!s || !*s)
		return true;
	errno = 0;
	v = strtoull(s, &end, 0);
	if (*s == '-' || errno || *end || v < low || v > high)
		return fail(err, err_size, "$%s is \"%s\": give a number from %llu to %llu", name,
			    s, (unsigned long long)low, (unsigned long long)high);
	*value = v;
	return true;
}

bool vg_config_from_env(struct vg_config *c, char *err, size_t err_size)
{
	uint64_t sms = 8, threads = 512, blocks = 16, slice = 20000, change = 200, cc = 90,
		mem = 2048, carveout = 1, smem = 100;

	if (!env_number("VGPU_SMS", &sms, 1, VG_SMS_MAX, err, err_size) ||
	    !env_number("VGPU_SM_THREADS", &threads, 32, 2048, err, err_size) ||
	    !env_number("VGPU_SM_BLOCKS", &blocks, 1, 32, err, err_size) ||
	    !env_number("VGPU_SM_SHARED_KB", &smem, 16, 228, err, err_size) ||
	    !env_number("VGPU_CARVEOUT", &carveout, 0, 1, err, err_size) ||
	    !env_number("VGPU_TIMESLICE_US", &slice, 1, 10000000, err, err_size) ||
	    !env_number("VGPU_SWITCH_US", &change, 0, 1000000, err, err_size) ||
	    !env_number("VGPU_CC", &cc, 50, 200, err, err_size) ||
	    !env_number("VGPU_MEM_MB", &mem, 1, 1 << 20, err, err_size))
		return false;
	*c = (struct vg_config) {
		.sms = (uint32_t)sms, .sm_threads = (uint32_t)threads,
			.sm_blocks = (uint32_t)blocks, .sm_regs = 65536,
		.sm_smem = (uint32_t)smem << 10, .carveout = (uint32_t)carveout, .cc = (uint32_t)cc,
		.timeslice_ns = slice * 1000, .switch_ns = change * 1000, .mem = mem << 20,
	};
	return true;
}

bool vg_devices_from_env(unsigned int *n, unsigned int max, char *err, size_t err_size)
{
	uint64_t v = 1;

	if (!env_number("VGPU_DEVICES", &v, 1, max, err, err_size))
		return false;
	*n = (unsigned int)v;
	return true;
}

const char *vg_mps_directory(void)
{
	const char *s = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return s && *s ? s : "/tmp/nvidia-mps";
}

/* Through a descriptor of the directory, as the path of a socket is short */
int vg_mps_connect(const char *directory)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, e;

	if (dir < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/control", dir);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a))) {
		e = errno;
		close(fd);
		errno = e;
		fd = -1;
	}
	e = errno;
	close(dir);
	errno = e;
	return fd;
}

int vg_mps_server(void)
{
	static const char command[] = "get_server_list\n";
	int fd = vg_mps_connect(vg_mps_directory()), server = -1;
	char reply[32] = "";
	size_t n = 0;
	ssize_t r;

	if (fd < 0)
		return -1;
	if (send(fd, command, sizeof(command) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(command) - 1) {
		do {
			r = read(fd, reply + n, sizeof(reply) - 1 - n);
			n += r > 0 ? (size_t)r : 0;
		} while (r > 0 && n < sizeof(reply) - 1);
		server = atoi(reply);
	}
	close(fd);
	return server > 0 ? (int)syscall(SYS_pidfd_open, server, 0) : -1;
}

bool vg_key_from_env(uint64_t *key, char *err, size_t err_size)
{
	const char *mps = getenv("VGPU_MPS"), *directory = vg_mps_directory();
	char path[PATH_MAX];
	int fd;

	*key = VG_NO_MPS;
	if (!mps || !*mps)
		mps = "1";
	if (!strcmp(mps, "0"))
		return true;
	if (strcmp(mps, "1") && strcmp(mps, "auto"))
		return fail(err, err_size, "$VGPU_MPS is \"%s\": give 0, 1 or auto", mps);
	/* tells the daemon of a client, so that it starts a server */
	fd = vg_mps_connect(directory);
	if (fd >= 0)
		close(fd);
	else if (!strcmp(mps, "auto"))
		return true;
	/* one directory has many names */
	*key = 0xcbf29ce484222325ULL;
	for (const char *s = realpath(directory, path) ?: directory; *s; s++)
		*key = (*key ^ (unsigned char)*s) * 0x100000001b3ULL;
	*key += *key == VG_NO_MPS;
	return true;
}

const char *vg_shm_name(unsigned int index, char *buf, size_t size)
{
	const char *env = getenv("VGPU_NAME");
	size_t n;

	if (env && *env)
		snprintf(buf, size, "/%s", *env == '/' ? env + 1 : env);
	else
		snprintf(buf, size, "/vgpu-%u", (unsigned int)getuid());
	n = strlen(buf);
	if (index)
		snprintf(buf + n, size - n, ".%u", index);
	return buf;
}

static void init_mutex(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
}

static bool anyone(const struct vg_device *d)
{
	for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
		if (d->proc[i].used)
			return true;
	return false;
}

/* Called with the file locked: nobody else makes or changes the device's shape meanwhile */
static bool prepare(struct vg_device *d, bool fresh, const char *name,
		    const struct vg_config *config, char *err, size_t err_size)
{
	if (fresh || !d->magic) {	/* 0: whoever made it died half way */
		init_mutex(&d->lock);
		for (uint32_t i = 0; i < VG_PROCS_MAX; i++)
			init_mutex(&d->proc[i].alive);
		vg_sched_init(d, config);
		d->size = sizeof(*d);
		d->magic = MAGIC;
		return true;
	}
	if (d->magic != MAGIC || d->size != sizeof(*d))
		return fail(err, err_size, "/dev/shm%s is not this version's: remove it", name);
	vg_shm_lock(d);
	vg_shm_reap_dead(d, VG_NOBODY);
	if (!anyone(d))
		vg_sched_init(d, config);
	else if (memcmp(&d->config, config, sizeof(*config)))
		fprintf(stderr, "vgpu: the device /dev/shm%s is in use and keeps its shape: %u "
			"SMs, slices of %llu us\n", name, d->config.sms,
			(unsigned long long)d->config.timeslice_ns / 1000);
	vg_shm_unlock(d);
	return true;
}

struct vg_device *vg_shm_map(const char *name, const struct vg_config *config, char *err,
			     size_t err_size)
{
	struct vg_device *d = NULL;
	struct stat st;
	bool fresh;
	int fd, rc;

	fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0) {
		fail(err, err_size, "cannot open /dev/shm%s: %s; is a tmpfs mounted on /dev/shm?",
		     name, strerror(errno));
		return NULL;
	}
	do
		rc = flock(fd, LOCK_EX);
	while (rc && errno == EINTR);
	if (rc || fstat(fd, &st)) {
		fail(err, err_size, "cannot lock /dev/shm%s: %s", name, strerror(errno));
		goto out;
	}
	fresh = st.st_size == 0;
	if (!fresh && (size_t)st.st_size != sizeof(*d)) {
		fail(err, err_size, "/dev/shm%s is not this version's: remove it", name);
		goto out;
	}
	if (fresh && ftruncate(fd, sizeof(*d))) {
		fail(err, err_size, "cannot size /dev/shm%s: %s", name, strerror(errno));
		goto out;
	}
	d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (d == MAP_FAILED) {
		d = NULL;
		fail(err, err_size, "cannot map /dev/shm%s: %s", name, strerror(errno));
		goto out;
	}
	if (!prepare(d, fresh, name, config, err, err_size)) {
		vg_shm_unmap(d);
		d = NULL;
	}
out:
	/* the mapping keeps the open file, and with it the lock */
	flock(fd, LOCK_UN);
	close(fd);
	return d;
}

void vg_shm_unmap(struct vg_device *d)
{
	munmap(d, sizeof(*d));
}

int vg_shm_enter(struct vg_device *d, uint64_t key)
{
	int slot = -1;

	vg_shm_lock(d);
	vg_shm_reap_dead(d, VG_NOBODY);
	for (int i = 0; i < VG_PROCS_MAX && slot < 0; i++) {
		struct vg_proc *p = &d->proc[i];
		int r;

		if (p->used)
			continue;
		r = pthread_mutex_trylock(&p->alive);
		if (r == EOWNERDEAD)
			pthread_mutex_consistent(&p->alive);
		else if (r)
			continue;
		p->pid = getpid();
		p->mem = 0;
		p->feeding = 0;
		vg_sched_join(d, (uint32_t)i, key);
		p->used = 1;	/* last: it is what makes the group exist */
		slot = i;
	}
	vg_shm_unlock(d);
	return slot;
}

uint64_t vg_shm_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void vg_shm_leave(struct vg_device *d, uint32_t proc)
{
	vg_procs wake;

	vg_shm_lock(d);
	vg_sched_reap(d, proc);
	wake = vg_sched_dispatch(d) | vg_sched_update(d, vg_shm_now());
	pthread_mutex_unlock(&d->proc[proc].alive);
	vg_shm_unlock(d);
	vg_shm_wake(d, wake);
}

static bool reap_dead(struct vg_device *d, uint32_t self)
{
	bool found = false;

	for (uint32_t i = 0; i < VG_PROCS_MAX; i++) {
		struct vg_proc *p = &d->proc[i];
		int r;

		if (!p->used || i == self)
			continue;
		r = pthread_mutex_trylock(&p->alive);
		if (r == EBUSY && !(kill(p->pid, 0) && errno == ESRCH))
			continue;
		if (r == EOWNERDEAD)
			pthread_mutex_consistent(&p->alive);
		vg_sched_reap(d, i);
		if (r != EBUSY)
			pthread_mutex_unlock(&p->alive);
		found = true;
	}
	return found;
}

/* What waited for the dead ones' SMs, or for their turn, goes on */
static void hand_over(struct vg_device *d)
{
	vg_shm_wake(d, vg_sched_dispatch(d) | vg_sched_update(d, vg_shm_now()));
}

void vg_shm_reap_dead(struct vg_device *d, uint32_t self)
{
	if (reap_dead(d, self))
		hand_over(d);
}

void vg_shm_lock(struct vg_device *d)
{
	if (pthread_mutex_lock(&d->lock) == EOWNERDEAD) {
		pthread_mutex_consistent(&d->lock);
		reap_dead(d, VG_NOBODY);
		vg_sched_repair(d);
		hand_over(d);
	}
}

void vg_shm_unlock(struct vg_device *d)
{
	pthread_mutex_unlock(&d->lock);
}

static void futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void vg_shm_wake(struct vg_device *d, vg_procs who)
{
	for (uint32_t i = 0; who; i++, who >>= 1) {
		if (!(who & 1))
			continue;
		__atomic_add_fetch(&d->proc[i].wake, 1, __ATOMIC_SEQ_CST);
		futex(&d->proc[i].wake, FUTEX_WAKE, INT32_MAX, NULL);
	}
}

uint32_t vg_shm_wakes(struct vg_device *d, uint32_t proc)
{
	return __atomic_load_n(&d->proc[proc].wake, __ATOMIC_SEQ_CST);
}

void vg_shm_wait(struct vg_device *d, uint32_t proc, uint32_t seen, uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000) };

	futex(&d->proc[proc].wake, FUTEX_WAIT, seen, &t);
}
