// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The public interface: chooses the transport, and converts between its structures and the ABI's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "transport.h"
#include "proto.h"

static const char *socket_path(const struct gsched_open_opts *opts)
{
	const char *env;

	if (opts &&
	    opts->size >= offsetof(struct gsched_open_opts, socket) + sizeof(opts->socket) &&
	    opts->socket)
		return opts->socket;
	env = secure_getenv("GSCHED_SOCKET");
	return env && *env ? env : GSP_SOCKET_DEFAULT;
}

static enum gsched_backend wanted_backend(const struct gsched_open_opts *opts)
{
	const char *env;

	if (opts &&
	    opts->size >= offsetof(struct gsched_open_opts, backend) + sizeof(opts->backend) &&
	    opts->backend != GSCHED_BACKEND_ANY)
		return opts->backend;
	env = secure_getenv("GSCHED_BACKEND");
	if (env && !strcmp(env, "daemon"))
		return GSCHED_BACKEND_DAEMON;
	if (env && !strcmp(env, "module"))
		return GSCHED_BACKEND_MODULE;
	return GSCHED_BACKEND_ANY;
}

struct gsched *gsched_open(const struct gsched_open_opts *opts)
{
	enum gsched_backend backend = wanted_backend(opts);
	struct gsched *g;
	int err;

	if (opts && opts->size < sizeof(opts->size)) {
		errno = EINVAL;
		return NULL;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->fd = g->poll_fd = -1;
	g->socket = strdup(socket_path(opts));
	if (!g->socket)
		goto free_g;
	switch (backend) {
	case GSCHED_BACKEND_MODULE:
		if (gsched_module_open(g))
			goto free_socket;
		break;
	case GSCHED_BACKEND_DAEMON:
		if (gsched_socket_open(g))
			goto free_socket;
		break;
	case GSCHED_BACKEND_ANY:
		/*
		 * A device node that must not be opened is an answer too: do not bypass the arbiter
		 * that is in charge.
		 */
		if (gsched_module_open(g) &&
		    ((errno != ENOENT && errno != ENXIO && errno != ENODEV) ||
		     gsched_socket_open(g)))
			goto free_socket;
		break;
	default:
		errno = EINVAL;
		goto free_socket;
	}
	return g;

free_socket:
	err = errno;
	free(g->socket);
	errno = err;
free_g:
	err = errno;
	free(g);
	errno = err;
	return NULL;
}

void gsched_close(struct gsched *g)
{
	if (!g)
		return;
	if (g->arb)
		munmap((void *)g->arb, sizeof(*g->arb));
	if (g->cl)
		munmap(g->cl, sizeof(*g->cl));
	g->ops->close(g);
	free(g->socket);
	free(g);
}

void gsched_abandon(struct gsched *g)
{
	if (g->sock)
		gsched_socket_abandon(g);
	else
		gsched_fd_close(g->fd);
	/*
	 * The module's mappings are not inherited, so their addresses may belong to something else
	 * by now.
	 */
	if (g->ops->backend == GSCHED_BACKEND_DAEMON && g->arb) {
		munmap((void *)g->arb, sizeof(*g->arb));
		munmap(g->cl, sizeof(*g->cl));
	}
}

bool gsched_intact(const struct gsched *g)
{
	if (gsched_fd_ours(g->fd) && (!g->sock || gsched_socket_intact(g)))
		return true;
	errno = EPIPE;
	return false;
}

enum gsched_backend gsched_backend(const struct gsched *g)
{
	return g->ops->backend;
}

int gsched_fd(const struct gsched *g)
{
	return g->poll_fd;
}

int gsched_map_pages(struct gsched *g, const struct gsched_attach *req, int arb_fd, int cl_fd)
{
	void *arb, *cl;

	if (req->arb_size < sizeof(*g->arb) || req->cl_size < sizeof(*g->cl)) {
		errno = EPROTO;
		return -1;
	}
	arb = mmap(NULL, sizeof(*g->arb), PROT_READ, MAP_SHARED, arb_fd, req->arb_offset);
	if (arb == MAP_FAILED)
		return -1;
	cl = mmap(NULL, sizeof(*g->cl), PROT_READ | PROT_WRITE, MAP_SHARED, cl_fd, req->cl_offset);
	if (cl == MAP_FAILED) {
		int err = errno;

		munmap(arb, sizeof(*g->arb));
		errno = err;
		return -1;
	}
	g->arb = arb;
	g->cl = cl;
	return 0;
}

static void to_attach(struct gsched_attach *req, const unsigned char uuid[16],
		      const struct gsched_attach_opts *opts)
{
	*req = (struct gsched_attach){
		.size = sizeof(*req),
		.flags = (opts->mps ? GSCHED_ATTACH_MPS : 0) |
			 (opts->slice ? GSCHED_ATTACH_SLICE : 0) |
			 (opts->server ? GSCHED_ATTACH_SERVER : 0),
		.channel_group = opts->channel_group,
	};
	memcpy(req->uuid, uuid, sizeof(req->uuid));
}

int gsched_attach_with(struct gsched *g, const unsigned char uuid[16],
		       const struct gsched_attach_opts *opts, struct gsched_device_info *info)
{
	struct gsched_attach_opts known = { 0 };
	struct gsched_attach req;

	if (opts->size < sizeof(opts->size)) {
		errno = EINVAL;
		return -1;
	}
	if (g->attach.size) {
		errno = EBUSY;
		return -1;
	}
	memcpy(&known, opts, opts->size < sizeof(known) ? opts->size : sizeof(known));
	to_attach(&req, uuid, &known);
	if (g->ops->attach(g, &req))
		return -1;
	g->attach = req;
	if (info) {
		info->client_id = req.client_id;
		info->sms = req.sms;
		info->mode = req.mode;
		info->priority = req.priority;
	}
	return 0;
}

int gsched_attach(struct gsched *g, const unsigned char uuid[16], bool mps,
		  struct gsched_device_info *info)
{
	const struct gsched_attach_opts opts = { .size = sizeof(opts), .mps = mps };

	return gsched_attach_with(g, uuid, &opts, info);
}

int gsched_report(struct gsched *g, const struct gsched_report_info *report)
{
	struct gsched_report_info known = { 0 };
	struct gsched_report req = { .size = sizeof(req) };

	if (report->size < sizeof(report->size)) {
		errno = EINVAL;
		return -1;
	}
	if (!g->attach.size) {
		errno = ENOTCONN;
		return -1;
	}
	memcpy(&known, report, report->size < sizeof(known) ? report->size : sizeof(known));
	if (known.activity > GSCHED_ACTIVITY_BUSY || known.slice_error < 0) {
		errno = EINVAL;
		return -1;
	}
	if (known.has_activity) {
		req.flags |= GSCHED_REPORT_ACTIVITY;
		req.activity = known.activity;
	}
	if (known.has_slice) {
		req.flags |= GSCHED_REPORT_SLICE;
		req.slice_us = known.slice_us;
		req.slice_error = (__u32)known.slice_error;
	}
	if (known.has_streams) {
		req.flags |= GSCHED_REPORT_STREAMS;
		req.prioritised = known.prioritised;
	}
	if (known.has_blocks) {
		req.flags |= GSCHED_REPORT_BLOCKS;
		req.block_us = known.block_us;
	}
	return g->ops->report(g, &req, false);
}

int gsched_memory(struct gsched *g, uint64_t bytes, bool asks, struct gsched_memory_info *info)
{
	struct gsched_report req = {
		.size = sizeof(req), .memory = bytes,
		.flags = GSCHED_REPORT_MEMORY | (asks ? GSCHED_REPORT_ASKS : 0),
	};
	struct gsched_memory_info known;

	if (bytes > GSCHED_MEMORY_MAX || (info && info->size < sizeof(info->size))) {
		errno = EINVAL;
		return -1;
	}
	if (!g->attach.size) {
		errno = ENOTCONN;
		return -1;
	}
	if (g->ops->report(g, &req, asks || info))
		return -1;
	if (info) {
		known = (struct gsched_memory_info){ info->size, req.memory_max, req.memory_room };
		memcpy(info, &known, info->size < sizeof(known) ? info->size : sizeof(known));
	}
	return 0;
}

const void *gsched_arb_page(const struct gsched *g, size_t *size)
{
	if (size)
		*size = g->arb ? sizeof(*g->arb) : 0;
	return g->arb;
}

void *gsched_cl_page(const struct gsched *g, size_t *size)
{
	if (size)
		*size = g->cl ? sizeof(*g->cl) : 0;
	return g->cl;
}

static void to_submit(struct gsched_submit *req, const struct gsched_task *task, uint64_t stream,
		      unsigned int flags)
{
	*req = (struct gsched_submit){
		.size = sizeof(*req), .flags = flags, .slot = task->slot, .seq = task->seq,
		.tier = task->tier, .blocks_per_sm = task->blocks_per_sm, .blocks = task->blocks,
		.predicted_ns = task->predicted_ns, .block_ns = task->block_ns, .stream = stream,
		.intensity = task->intensity,
	};
}

int gsched_submit(struct gsched *g, struct gsched_task *task)
{
	return gsched_submit_stream(g, task, 0);
}

int gsched_submit_stream(struct gsched *g, struct gsched_task *task, uint64_t stream)
{
	struct gsched_submit req;

	to_submit(&req, task, stream, 0);
	if (g->ops->submit(g, &req, false))
		return -1;
	task->window = req.window;
	return 0;
}

int gsched_submit_async(struct gsched *g, const struct gsched_task *task)
{
	return gsched_submit_stream_async(g, task, 0);
}

int gsched_submit_stream_async(struct gsched *g, const struct gsched_task *task, uint64_t stream)
{
	struct gsched_submit req;

	to_submit(&req, task, stream, GSCHED_SUBMIT_NOWAIT);
	return g->ops->submit(g, &req, true);
}

int gsched_complete(struct gsched *g, unsigned int slot, unsigned int seq, uint64_t ran_ns,
		    bool cancel)
{
	struct gsched_complete req = {
		.size = sizeof(req), .flags = cancel ? GSCHED_COMPLETE_CANCEL : 0,
		.slot = slot, .seq = seq, .ran_ns = ran_ns,
	};

	return g->ops->complete(g, &req);
}

int gsched_event_read(struct gsched *g, struct gsched_event_info *event)
{
	struct gsched_event ev;
	int rc = gsched_intact(g) ? g->ops->event(g, &ev) : -1;

	if (rc > 0) {
		event->type = ev.type;
		event->slot = ev.slot;
		event->seq = ev.seq;
		event->window = ev.window;
		event->time_ns = ev.time_ns;
	}
	return rc;
}

int gsched_check(struct gsched *g)
{
	if (!gsched_intact(g))
		return -1;
	return g->ops->check ? g->ops->check(g) : 0;
}

/* "a/b" without empty, "." or ".." parts and not absolute, since it becomes a path in configfs. */
static bool path_ok(const char *path)
{
	const char *p = path;

	if (!*p)
		return true;
	for (;;) {
		size_t n = strcspn(p, "/");

		if (!n || p[0] == '.')
			return false;
		if (!p[n])
			return true;
		p += n + 1;
	}
}

static bool name_ok(const char *name)
{
	return *name && name[0] != '.' && !strchr(name, '/');
}

static int call_admin(struct gsched *g, enum gsched_admin what, const char *device,
		      const char *group, const char *file, const char *value, char *buf,
		      size_t size)
{
	if ((device && !name_ok(device)) || !path_ok(group) || (file && !name_ok(file))) {
		errno = EINVAL;
		return -1;
	}
	return g->ops->admin(g, what, device, group, file, value, buf, size);
}

int gsched_group_create(struct gsched *g, const char *device, const char *group)
{
	return call_admin(g, GSCHED_ADMIN_CREATE, device, group, NULL, NULL, NULL, 0);
}

int gsched_group_delete(struct gsched *g, const char *device, const char *group)
{
	return call_admin(g, GSCHED_ADMIN_DELETE, device, group, NULL, NULL, NULL, 0);
}

int gsched_group_set(struct gsched *g, const char *device, const char *group, const char *file,
		     const char *value)
{
	return call_admin(g, GSCHED_ADMIN_SET, device, group, file, value, NULL, 0);
}

int gsched_group_get(struct gsched *g, const char *device, const char *group, const char *file,
		     char *buf, size_t size)
{
	return call_admin(g, GSCHED_ADMIN_GET, device, group, file, NULL, buf, size);
}

int gsched_device_set(struct gsched *g, const char *device, const char *file, const char *value)
{
	return call_admin(g, GSCHED_ADMIN_DEVICE, device, "", file, value, NULL, 0);
}

int gsched_client_set(struct gsched *g, const char *device, int pid, const char *file,
		      const char *value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return call_admin(g, GSCHED_ADMIN_CLIENT, device, text, file, value, NULL, 0);
}

int gsched_client_get(struct gsched *g, const char *device, int pid, const char *file, char *buf,
		      size_t size)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return call_admin(g, GSCHED_ADMIN_CLIENT_GET, device, text, file, NULL, buf, size);
}

int gsched_device_delete(struct gsched *g, const unsigned char uuid[16], bool force)
{
	struct gsched_device_del req = { .size = sizeof(req),
					 .flags = force ? GSCHED_DEVICE_DEL_FORCE : 0 };

	memcpy(req.uuid, uuid, sizeof(req.uuid));
	return g->ops->device_del(g, &req);
}

int gsched_devices(struct gsched *g)
{
	struct gsched_info what = { .size = sizeof(what) };

	return g->ops->info(g, &what) ? -1 : (int)what.devices;
}

char *gsched_status(struct gsched *g)
{
	return g->ops->status(g);
}

int gsched_monitor(struct gsched *g, bool tasks)
{
	if (g->ops->monitor)
		return g->ops->monitor(g, tasks);
	errno = EOPNOTSUPP;
	return -1;
}
