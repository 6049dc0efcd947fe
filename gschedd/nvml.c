// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists the processes on the GPUs by NVML. Those that are neither attached nor an MPS server of
 * gschedd are not managed. While bands give way at once, the arbiter learns whether such programs
 * keep a GPU busy.
 *
 * Queries are made for status requests, and each second while bands give way, by a separate
 * process, because a driver may hang. It stays for some seconds, so that NVML is not started anew.
 * The status waits for an answer, a second at most, and uses it for a second. The library is
 * optional; its declarations here follow NVIDIA's NVML API reference (nvmlProcessInfo_t of the _v3
 * calls, nvmlProcessUtilizationSample_t).
 */
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "gschedd.h"

#define FRESH_NS	1000000000ull
#define ABSENT_NS	(10 * FRESH_NS)	/* until a missing library is looked for again */
#define SYSFS		"/sys/class/gsched"
#define DEADLINE_S	1
#define WATCH_S		1
#define STAY_NS		(10 * FRESH_NS)	/* the process ends after so long without a question */
#define SAMPLE_US	1500000ull	/* age of the oldest utilization sample that counts */
#define BUSY_PERCENT	20		/* of the device's time: then its unmanaged programs are busy */
#define DEVICES		64
#define PROCESSES	256

struct nvml_info {
	unsigned int pid;
	unsigned long long bytes;	/* all ones: unknown */
	unsigned int gpu_instance, compute_instance;
};
typedef int nvml_list(void *device, unsigned int *n, struct nvml_info *infos);

struct nvml_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;	/* percent */
};
typedef int nvml_utilization(void *device, struct nvml_sample *samples, unsigned int *n,
			     unsigned long long since_us);

struct process {
	uint32_t device;		/* index into uuid[] */
	uint32_t pid;
	uint32_t percent;		/* of the device's time, lately */
	uint64_t bytes;
	char comm[48];
};

/* A message */
struct answer {
	uint32_t there;			/* the library exists */
	uint32_t n;
	uint64_t known;			/* bit i: NVML has the GPU uuid[i] */
	struct process process[PROCESSES];
};

struct waiter {
	struct list_head node;
	struct conn *conn;
	struct gsp_header h;
};

static uint8_t uuid[DEVICES][GSCHED_UUID_SIZE];	/* devices of the current or last query */
static unsigned int n_uuid;
static struct answer last, incoming;
static uint64_t fresh_until, asked_ns;
static bool asked;			/* and not answered yet */
static struct source result = { .fd = -1 }, deadline = { .fd = -1 }, watch = { .fd = -1 };
static bool say_missing;		/* the next child says it if there is no library */
static pid_t child_pid;			/* 0: none; a killed child may take a while to end */
static struct list_head waiters = { &waiters, &waiters };

static void name_process(void *lib, struct process *p)
{
	int (*get_name)(unsigned int pid, char *name, unsigned int size) =
		dlsym(lib, "nvmlSystemGetProcessName");
	char name[256] = "";
	struct proc_stat st;
	const char *base;

	if (!proc_stat((pid_t)p->pid, &st)) {
		snprintf(p->comm, sizeof(p->comm), "%.47s", st.comm);
		return;
	}
	/* a process of another pid namespace */
	if (!get_name || get_name(p->pid, name, sizeof(name)))
		return;
	name[sizeof(name) - 1] = '\0';
	base = strrchr(name, '/');
	snprintf(p->comm, sizeof(p->comm), "%.47s", base ? base + 1 : name);
}

static void add_processes(void *lib, struct answer *a, unsigned int device, void *handle,
			  const char *call)
{
	static struct nvml_info infos[PROCESSES];
	unsigned int n = PROCESSES;
	nvml_list *list;
	char name[64];

	snprintf(name, sizeof(name), "%s_v3", call);
	list = dlsym(lib, name);
	if (!list) {
		snprintf(name, sizeof(name), "%s_v2", call);	/* the same structure */
		list = dlsym(lib, name);
	}
	if (!list || list(handle, &n, infos))
		return;
	for (unsigned int i = 0; i < n && i < PROCESSES && a->n < PROCESSES; i++) {
		struct process *p = &a->process[a->n];
		bool twice = false;

		for (unsigned int k = 0; k < a->n; k++)
			twice |= a->process[k].device == device &&
				 a->process[k].pid == infos[i].pid;
		if (twice || !infos[i].pid)
			continue;
		*p = (struct process){ .device = device, .pid = infos[i].pid,
				       .bytes = infos[i].bytes };
		name_process(lib, p);
		a->n++;
	}
}

static void add_percents(void *lib, struct answer *a, unsigned int device, void *handle)
{
	nvml_utilization *samples_of = dlsym(lib, "nvmlDeviceGetProcessUtilization");
	static struct nvml_sample samples[PROCESSES];
	unsigned int n = PROCESSES;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!samples_of || samples_of(handle, samples, &n, (uint64_t)now.tv_sec * 1000000 +
				      (uint64_t)now.tv_nsec / 1000 - SAMPLE_US))
		return;
	for (unsigned int i = 0; i < n && i < PROCESSES; i++)
		for (unsigned int k = 0; k < a->n; k++)
			if (a->process[k].device == device && a->process[k].pid == samples[i].pid &&
			    samples[i].sm <= 100)
				a->process[k].percent = samples[i].sm;
}

/* Runs in the child. @lib: NULL if it cannot be used. */
static void answer_query(void *lib, struct answer *a)
{
	int (*count)(unsigned int *), (*by_uuid)(const char *, void **);
	unsigned int n = 0;
	void *handle;
	char text[64];

	count = lib ? dlsym(lib, "nvmlDeviceGetCount_v2") : NULL;
	by_uuid = lib ? dlsym(lib, "nvmlDeviceGetHandleByUUID") : NULL;
	if (!count || !by_uuid)
		return;
	a->there = 1;
	for (unsigned int i = 0; !count(&n) && n && i < n_uuid; i++) {
		strcpy(text, "GPU-");
		uuid_text(uuid[i], text + 4);
		if (by_uuid(text, &handle)) {
			memcpy(text, "MIG-", 4);
			if (by_uuid(text, &handle))
				continue;
		}
		a->known |= 1ull << i;
		add_processes(lib, a, i, handle, "nvmlDeviceGetComputeRunningProcesses");
		add_processes(lib, a, i, handle, "nvmlDeviceGetMPSComputeRunningProcesses");
		add_percents(lib, a, i, handle);
	}
}

/* The child: an answer for each byte. */
static void answer_queries(int fd)
{
	void *lib = dlopen(opt.nvml, RTLD_NOW | RTLD_LOCAL);
	int (*init)(void) = lib ? dlsym(lib, "nvmlInit_v2") : NULL, (*shutdown)(void);
	char question;

	if (!lib && say_missing)
		say(LOG_ERROR, "no NVML: %s", dlerror());
	if (!init || init())
		lib = NULL;
	while (read(fd, &question, 1) == 1) {
		memset(&incoming, 0, sizeof(incoming));
		answer_query(lib, &incoming);
		if (write(fd, &incoming, sizeof(incoming)) != sizeof(incoming))
			break;
	}
	shutdown = lib ? dlsym(lib, "nvmlShutdown") : NULL;
	if (shutdown)
		shutdown();
}

/* On any device: NVML names a client of an MPS server on all devices that the server has. */
static bool is_attached(uint32_t pid)
{
	struct conn *conn;

	list_for_each_entry(conn, &conns, node)
		if (conn->client && (uint32_t)conn->pid == pid)
			return true;
	return false;
}

static bool is_unmanaged(uint32_t pid)
{
	return (pid_t)pid != getpid() && !is_attached(pid) && !mps_owns((pid_t)pid);
}

/* ---- the module's devices ---- */

static int module_file(const char *device, const char *file, int flags)
{
	char path[160];

	snprintf(path, sizeof(path), SYSFS "/%s/%s", device, file);
	return open(path, flags | O_CLOEXEC);
}

static bool module_is_sliced(const char *device)
{
	int fd = module_file(device, "mode_current", O_RDONLY);
	char text[32] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && !strcmp(text, "sliced\n");
}

static bool module_has(uint32_t pid)
{
	char task[32];
	int fd = -1;

	snprintf(task, sizeof(task), "tasks/%u", pid);
	for (unsigned int i = 0; i < n_uuid && fd < 0; i++)
		fd = module_file(opt.decl[i].name, task, O_PATH);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void tell_module(const char *device, bool busy)
{
	int fd = module_file(device, "unmanaged_busy", O_RDWR);
	char now = 0;

	if (fd < 0)
		return;
	if (read(fd, &now, 1) == 1 && now != '0' + busy &&
	    pwrite(fd, busy ? "1" : "0", 1, 0) != 1)
		say(LOG_WARN, "%s: unmanaged_busy: %m", device);
	close(fd);
}

/* ---- whether programs that are not managed keep a device busy ---- */

/*
 * If NVML names none of the attached programs, its process ids are of another namespace, and which
 * programs are not managed cannot be told.
 */
static bool unmanaged_busy_on(unsigned int device)
{
	unsigned int percent = 0;
	bool ours = false;

	for (unsigned int i = 0; i < last.n; i++) {
		const struct process *p = &last.process[i];

		if (p->device != device)
			continue;
		if (is_unmanaged(p->pid) &&
		    !(opt.arbiter == ARBITER_MODULE && module_has(p->pid)))
			percent += p->percent;
		else
			ours = true;
	}
	return ours && percent >= BUSY_PERCENT;
}

static void tell_arbiter(void)
{
	struct device *dev;

	for (unsigned int i = 0; opt.arbiter == ARBITER_MODULE && i < n_uuid; i++)
		tell_module(opt.decl[i].name,
			    last.known & 1ull << i && unmanaged_busy_on(i));
	list_for_each_entry(dev, &devices, node) {
		bool busy = false;

		for (unsigned int i = 0; i < n_uuid; i++)
			if (last.known & 1ull << i &&
			    !memcmp(uuid[i], dev->decl.uuid, GSCHED_UUID_SIZE))
				busy = unmanaged_busy_on(i);
		if (busy == dev->core.unmanaged_busy)
			continue;
		gsc_device_set_unmanaged(&dev->core, busy, now_ns());
		device_settle(dev);
	}
}

static void set_timer(const struct source *timer, unsigned int first, unsigned int interval)
{
	struct itimerspec its = { .it_value.tv_sec = first, .it_interval.tv_sec = interval };

	timerfd_settime(timer->fd, 0, &its, NULL);
}

static int open_timer(struct source *timer, void (*ready)(struct source *, uint32_t))
{
	int err;

	if (timer->fd >= 0)
		return 0;
	timer->ready = ready;
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	err = timer->fd < 0 ? -errno : loop_add(timer, EPOLLIN);
	if (err)
		loop_del(timer);
	return err;
}

static void end_child(void)
{
	loop_del(&result);
	if (child_pid > 0) {
		kill(child_pid, SIGKILL);
		if (waitpid(child_pid, NULL, WNOHANG) == child_pid)
			child_pid = 0;
	}
}

/* There is an answer, or there will be none: status replies use what is known now. */
static void answer_waiters(void)
{
	struct waiter *w, *next;

	asked = false;
	if (deadline.fd >= 0)
		set_timer(&deadline, 0, 0);
	list_for_each_entry_safe(w, next, &waiters, node) {
		list_del_init(&w->node);
		status_reply(w->conn, &w->h);
		free(w);
	}
	tell_arbiter();
}

static void no_answer(uint64_t again_ns)
{
	end_child();
	memset(&last, 0, sizeof(last));
	fresh_until = now_ns() + again_ns;
	answer_waiters();
}

static void result_ready(struct source *src, uint32_t events)
{
	ssize_t n = read(src->fd, &incoming, sizeof(incoming));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(incoming) || incoming.n > PROCESSES || !incoming.there) {
		no_answer(ABSENT_NS);
		return;
	}
	last = incoming;
	fresh_until = now_ns() + FRESH_NS;
	answer_waiters();
}

static void deadline_ready(struct source *src, uint32_t events)
{
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n) || !asked)
		return;
	say(LOG_WARN, "%s does not answer: status does not tell which programs are not managed",
	    opt.nvml);
	no_answer(ABSENT_NS);
}

/* True: they are not those of the last query. */
static bool collect_uuids(void)
{
	uint8_t before[DEVICES][GSCHED_UUID_SIZE];
	unsigned int n_before = n_uuid;
	struct device *dev;

	memcpy(before, uuid, sizeof(before));
	n_uuid = 0;
	if (opt.arbiter == ARBITER_MODULE) {
		for (; n_uuid < opt.n_decl && n_uuid < DEVICES; n_uuid++)
			memcpy(uuid[n_uuid], opt.decl[n_uuid].uuid, GSCHED_UUID_SIZE);
	} else {
		list_for_each_entry(dev, &devices, node)
			if (n_uuid < DEVICES)
				memcpy(uuid[n_uuid++], dev->decl.uuid, GSCHED_UUID_SIZE);
	}
	return n_before != n_uuid || memcmp(before, uuid, n_uuid * sizeof(uuid[0]));
}

static int start_child(void)
{
	int fds[2], err;

	if (child_pid > 0 && waitpid(child_pid, NULL, WNOHANG) != child_pid)
		return -EBUSY;
	child_pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	child_pid = fork();
	if (!child_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* it must not keep others' connections open */
		if (dup2(fds[1], 3) == 3 && !close_range(4, ~0u, 0))
			answer_queries(3);
		_exit(0);
	}
	err = child_pid < 0 ? -errno : 0;
	close(fds[1]);
	result.fd = fds[0];
	result.ready = result_ready;
	if (!err)
		err = loop_add(&result, EPOLLIN);
	if (err)
		end_child();
	return err;
}

static void watch_ready(struct source *src, uint32_t events);

static void keep_watch(void)
{
	struct itimerspec its;

	if (open_timer(&watch, watch_ready) || timerfd_gettime(watch.fd, &its) ||
	    its.it_value.tv_sec || its.it_value.tv_nsec)
		return;
	set_timer(&watch, WATCH_S, WATCH_S);
}

static int ask(void)
{
	bool others = collect_uuids();
	int err = open_timer(&deadline, deadline_ready);

	if (err || asked)
		return err;
	if (result.fd >= 0 && others)
		end_child();
	if (others)
		memset(&last, 0, sizeof(last));
	err = result.fd < 0 ? start_child() : 0;
	if (!err && send(result.fd, "", 1, MSG_NOSIGNAL) != 1) {
		err = -EIO;
		end_child();
	}
	if (err)
		return err;
	asked = true;
	asked_ns = now_ns();
	set_timer(&deadline, DEADLINE_S, 0);
	keep_watch();		/* it ends the process when that is not needed any more */
	return 0;
}

static bool needs_watch(void)
{
	struct device *dev;

	for (unsigned int i = 0; opt.arbiter == ARBITER_MODULE && i < opt.n_decl; i++)
		if (module_is_sliced(opt.decl[i].name))
			return true;
	list_for_each_entry(dev, &devices, node)
		if (dev->core.n_lower)
			return true;
	return false;
}

static void watch_ready(struct source *src, uint32_t events)
{
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n))
		return;
	if (needs_watch()) {
		if (now_ns() >= fresh_until)
			ask();
		return;
	}
	/* a status may still want the process */
	if (asked || now_ns() - asked_ns < STAY_NS)
		return;
	end_child();
	/* a killed child is waited for; the module does not say when its bands change */
	if (!child_pid && opt.arbiter != ARBITER_MODULE)
		set_timer(&watch, 0, 0);
}

/* Starts the process before it is asked, as only the process can say that there is no library. */
static void start_early(void)
{
	collect_uuids();
	say_missing = true;
	if (!start_child())
		keep_watch();	/* it ends the process unless somebody asks */
	say_missing = false;
}

void nvml_watch(void)
{
	if (*opt.nvml && opt.nvml_given)
		start_early();
	if (*opt.nvml && (opt.arbiter == ARBITER_MODULE || needs_watch()))
		keep_watch();
}

bool nvml_wait(struct conn *conn, const struct gsp_header *h)
{
	struct waiter *w;

	if (!*opt.nvml || now_ns() < fresh_until)
		return false;
	/* a connection waits only once: its further requests are answered with what is known */
	list_for_each_entry(w, &waiters, node)
		if (w->conn == conn)
			return false;
	w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	if (ask()) {
		free(w);
		return false;
	}
	w->conn = conn;
	w->h = *h;
	list_add_tail(&w->node, &waiters);
	return true;
}

void nvml_conn_gone(struct conn *conn)
{
	struct waiter *w, *next;

	list_for_each_entry_safe(w, next, &waiters, node)
		if (w->conn == conn) {
			list_del_init(&w->node);
			free(w);
		}
}

void nvml_exit(void)
{
	/* nobody will look any more */
	memset(&last, 0, sizeof(last));
	answer_waiters();
	end_child();
	loop_del(&deadline);
	loop_del(&watch);
}

static void add_list(cJSON *in, const char *key, unsigned int device, const struct conn *to)
{
	cJSON *list = cJSON_AddArrayToObject(in, key), *o;
	struct proc_stat st;

	for (unsigned int i = 0; i < last.n; i++) {
		struct process *p = &last.process[i];

		if (p->device != device || !is_unmanaged(p->pid))
			continue;
		if (!to->admin && (proc_stat((pid_t)p->pid, &st) || !status_shows(to, st.uid)))
			continue;
		o = cJSON_CreateObject();
		cJSON_AddItemToArray(list, o);
		cJSON_AddNumberToObject(o, "pid", p->pid);
		p->comm[sizeof(p->comm) - 1] = '\0';
		for (char *c = p->comm; *c; c++)
			*c = *c < 0x20 || *c > 0x7e ? '?' : *c;
		cJSON_AddStringToObject(o, "comm", p->comm);
		if (p->bytes != UINT64_MAX)
			cJSON_AddNumberToObject(o, "mib", (double)(p->bytes >> 20));
		cJSON_AddNumberToObject(o, "busy_percent", p->percent);
	}
}

void nvml_status_device(struct cJSON *o, const struct device *dev, const struct conn *to)
{
	for (unsigned int i = 0; i < n_uuid; i++)
		if (last.known & 1ull << i && !memcmp(uuid[i], dev->decl.uuid, GSCHED_UUID_SIZE))
			add_list(o, "unmanaged", i, to);
}

void nvml_status(struct cJSON *root, const struct conn *to)
{
	cJSON *o;
	char text[64];

	if (opt.arbiter != ARBITER_MODULE || !last.there)
		return;
	o = cJSON_AddObjectToObject(root, "processes");
	for (unsigned int i = 0; i < n_uuid; i++) {
		uuid_text(uuid[i], text);
		if (last.known & 1ull << i)
			add_list(o, text, i, to);
	}
}
