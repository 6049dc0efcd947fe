// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists the processes on the GPUs by NVML. Those that are neither attached nor an MPS server of
 * gschedd are not managed.
 *
 * The query is made for a status request, in a separate process, because a driver may hang. The
 * status waits for it, a second at most; an answer is used for a second. The library is optional;
 * its declarations here follow NVIDIA's NVML API reference (nvmlProcessInfo_t of the _v3 calls).
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
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gschedd.h"

#define FRESH_NS	1000000000ull
#define ABSENT_NS	(10 * FRESH_NS)	/* until a missing library is looked for again */
#define DEADLINE_S	1
#define DEVICES		64
#define PROCESSES	256

struct nvml_info {
	unsigned int pid;
	unsigned long long bytes;	/* all ones: unknown */
	unsigned int gpu_instance, compute_instance;
};
typedef int nvml_list(void *device, unsigned int *n, struct nvml_info *infos);

struct process {
	uint32_t device;		/* index into uuid[] */
	uint32_t pid;
	uint64_t bytes;
	char comm[48];
};

/* Written by the child in one piece, since it fits in a pipe. */
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
static size_t received;
static uint64_t fresh_until;
static struct source result = { .fd = -1 }, deadline = { .fd = -1 };
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

/* Runs in the child. */
static void answer_query(struct answer *a)
{
	void *lib = dlopen(opt.nvml, RTLD_NOW | RTLD_LOCAL), *handle;
	int (*init)(void), (*shutdown)(void), (*count)(unsigned int *),
		(*by_uuid)(const char *, void **);
	unsigned int n = 0;
	char text[64];

	init = lib ? dlsym(lib, "nvmlInit_v2") : NULL;
	count = lib ? dlsym(lib, "nvmlDeviceGetCount_v2") : NULL;
	by_uuid = lib ? dlsym(lib, "nvmlDeviceGetHandleByUUID") : NULL;
	shutdown = lib ? dlsym(lib, "nvmlShutdown") : NULL;
	if (!init || !count || !by_uuid || init())
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
	}
	if (shutdown)
		shutdown();
}

static void set_deadline(unsigned int seconds)
{
	struct itimerspec its = { .it_value.tv_sec = seconds };

	timerfd_settime(deadline.fd, 0, &its, NULL);
}

/* There is an answer, or there will be none: status replies use what is known now. */
static void answer_waiters(void)
{
	struct waiter *w, *next;

	set_deadline(0);
	loop_del(&result);
	if (child_pid > 0) {
		kill(child_pid, SIGKILL);
		if (waitpid(child_pid, NULL, WNOHANG) == child_pid)
			child_pid = 0;
	}
	list_for_each_entry_safe(w, next, &waiters, node) {
		list_del_init(&w->node);
		status_reply(w->conn, &w->h);
		free(w);
	}
}

static void result_ready(struct source *src, uint32_t events)
{
	ssize_t n = read(src->fd, (char *)&incoming + received, sizeof(incoming) - received);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		received += (size_t)n;
		if (received < sizeof(incoming))
			return;
	}
	if (received == sizeof(incoming) && incoming.n <= PROCESSES)
		last = incoming;
	else
		memset(&last, 0, sizeof(last));
	fresh_until = now_ns() + (last.there ? FRESH_NS : ABSENT_NS);
	answer_waiters();
}

static void deadline_ready(struct source *src, uint32_t events)
{
	uint64_t n;

	if (read(src->fd, &n, sizeof(n)) != sizeof(n) || result.fd < 0)
		return;
	say(LOG_WARN, "%s does not answer: status does not tell which programs are not managed",
	    opt.nvml);
	memset(&last, 0, sizeof(last));
	fresh_until = now_ns() + ABSENT_NS;
	answer_waiters();
}

static void collect_uuids(void)
{
	struct device *dev;

	n_uuid = 0;
	if (opt.arbiter == ARBITER_MODULE) {
		for (; n_uuid < opt.n_decl && n_uuid < DEVICES; n_uuid++)
			memcpy(uuid[n_uuid], opt.decl[n_uuid].uuid, GSCHED_UUID_SIZE);
		return;
	}
	list_for_each_entry(dev, &devices, node)
		if (n_uuid < DEVICES)
			memcpy(uuid[n_uuid++], dev->decl.uuid, GSCHED_UUID_SIZE);
}

static int start_child(void)
{
	int fds[2], err;

	if (child_pid > 0 && waitpid(child_pid, NULL, WNOHANG) != child_pid)
		return -EBUSY;
	child_pid = 0;
	if (deadline.fd < 0) {
		deadline.ready = deadline_ready;
		deadline.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		err = deadline.fd < 0 ? -errno : loop_add(&deadline, EPOLLIN);
		if (err) {
			loop_del(&deadline);
			return err;
		}
	}
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	collect_uuids();
	memset(&last, 0, sizeof(last));	/* it may have been about other devices */
	child_pid = fork();
	if (!child_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(&incoming, 0, sizeof(incoming));
		answer_query(&incoming);
		_exit(write(fds[1], &incoming, sizeof(incoming)) == sizeof(incoming) ? 0 : 1);
	}
	err = child_pid < 0 ? -errno : 0;
	close(fds[1]);
	result.fd = fds[0];
	result.ready = result_ready;
	received = 0;
	if (!err)
		err = loop_add(&result, EPOLLIN);
	if (err) {
		loop_del(&result);
		return err;
	}
	set_deadline(DEADLINE_S);
	return 0;
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
	if (result.fd < 0 && start_child()) {
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
	answer_waiters();
	if (child_pid > 0)
		waitpid(child_pid, NULL, WNOHANG);
	loop_del(&deadline);
}

static bool is_attached(const struct device *dev, uint32_t pid)
{
	struct conn *conn;

	list_for_each_entry(conn, &conns, node)
		if (conn->client && conn->client->dev == dev && (uint32_t)conn->pid == pid)
			return true;
	return false;
}

static void add_list(cJSON *in, const char *key, unsigned int device, const struct device *dev,
		     const struct conn *to)
{
	cJSON *list = cJSON_AddArrayToObject(in, key), *o;
	struct proc_stat st;

	for (unsigned int i = 0; i < last.n; i++) {
		struct process *p = &last.process[i];

		if (p->device != device || (pid_t)p->pid == getpid() ||
		    (dev && is_attached(dev, p->pid)) || mps_owns((pid_t)p->pid))
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
	}
}

void nvml_status_device(struct cJSON *o, const struct device *dev, const struct conn *to)
{
	for (unsigned int i = 0; i < n_uuid; i++)
		if (last.known & 1ull << i && !memcmp(uuid[i], dev->decl.uuid, GSCHED_UUID_SIZE))
			add_list(o, "unmanaged", i, dev, to);
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
			add_list(o, text, i, NULL, to);
	}
}
