// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The process that rewrites. It reads what strangers wrote, so it is apart from the arbiter: its memory is bounded, and
 * if it dies or takes too long, one request fails and the next one starts it again.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cache.h"
#include "gschedd.h"
#include "rewriter/gsr.h"

#define MEMORY_MAX	(8ull << 30)	/* of address space */
#define FILE_MAX	(1ull << 30)
#define FDS_MAX		32
#define PTX_MAX		(128ull << 20)

static void confine(void)
{
	struct rlimit core = { 0, 0 }, files = { FDS_MAX, FDS_MAX }, size = { FILE_MAX, FILE_MAX };

	prctl(PR_SET_NAME, "gschedd-rewrite");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_FSIZE, &size);
#ifndef __SANITIZE_ADDRESS__	/* its shadow is terabytes */
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };

	setrlimit(RLIMIT_AS, &memory);
#endif
}

static int receive(int sock, struct worker_request *req)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = req, .iov_len = sizeof(*req) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm;
	ssize_t n;
	int fd;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	cm = n == sizeof(*req) ? CMSG_FIRSTHDR(&msg) : NULL;
	if (!cm)
		return -1;	/* gschedd ended */
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	return fd;
}

/* A copy: its owner may change or truncate the file at any time. */
static char *copy_image(int fd, size_t size)
{
	char *image = malloc(size + 1);
	size_t done = 0;

	while (image && done < size) {
		ssize_t n = pread(fd, image + done, size - done, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EINVAL;
			free(image);
			return NULL;
		}
		done += n;
	}
	if (image)
		image[size] = '\0';
	return image;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static void add_note(struct worker_reply *reply, enum note_kind kind, const char *kernel, unsigned int points,
		     const char *reason)
{
	struct note *n;

	if (reply->n_notes >= WORKER_NOTES)
		return;
	n = &reply->note[reply->n_notes++];
	n->kind = kind;
	n->points = points;
	copy_text(n->kernel, sizeof(n->kernel), kernel);
	copy_text(n->reason, sizeof(n->reason), reason ? reason : "");
}

/* For gschedctl status: what is not preemptible and why; of resumable twins, how often. */
static void add_notes(struct worker_reply *reply, const struct gsr_rewrite *rw, bool resumable)
{
	for (unsigned int i = 0; i < rw->n_kernels; i++) {
		const struct gsr_kernel *k = &rw->kernels[i];

		if (k->tier != GSR_TIER_BLOCK)
			add_note(reply, NOTE_REFUSED, k->name, 0, k->reason);
		else if (resumable)
			add_note(reply, NOTE_RESUMABLE, k->name, k->resume_points, k->resume_reason);
	}
}

/* The same of what came from the cache. */
static void add_cached_notes(struct worker_reply *reply, const struct cache_entry *e, bool resumable)
{
	struct gsr_rewrite rw;
	struct gsr_error err;

	if (gsr_rewrite_from_json(e->json, e->json_size, &rw, &err))
		return;
	add_notes(reply, &rw, resumable);
	gsr_rewrite_free(&rw);
}

/* The description of an image of which nothing could be rewritten. */
static char *refusal_json(const struct gsr_error *err)
{
	cJSON *o = cJSON_CreateObject();
	char *text;

	cJSON_AddStringToObject(o, "error", err->message);
	cJSON_AddNumberToObject(o, "status", err->status);
	cJSON_AddArrayToObject(o, "kernels");
	text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	return text;
}

/* 0, ENOEXEC with @json filled, or another errno; @lasting: the same image will always give the same. */
static int rewrite(const char *image, const struct worker_request *req, struct worker_reply *reply, char **ptx,
		   size_t *ptx_size, char **json, bool *lasting)
{
	struct gsr_options opts = {
		.size = sizeof(opts), .max_input = PTX_MAX, .resumable = req->flags & GSP_REWRITE_RESUMABLE,
	};
	struct gsr_error err = { 0 };
	struct gsr_rewrite rw = { 0 };
	char *source = NULL;
	size_t source_size;
	enum gsr_status st;

	st = gsr_image_ptx(image, req->size, req->arch, &source, &source_size, &err);
	if (st == GSR_OK)
		st = gsr_rewrite_ptx(source, source_size, &opts, &rw, &err);
	free(source);
	*lasting = st != GSR_ERR_NOMEM && st != GSR_ERR_LIMIT;
	if (st != GSR_OK) {
		if (st == GSR_ERR_NOMEM)
			return ENOMEM;
		err.status = st;
		add_note(reply, NOTE_REFUSED, "*", 0, err.message);
		*json = refusal_json(&err);
		return *json ? ENOEXEC : ENOMEM;
	}
	add_notes(reply, &rw, opts.resumable);
	*json = gsr_rewrite_to_json(&rw);
	if (*json && rw.ptx) {
		*ptx = malloc(rw.ptx_size + 1);
		if (*ptx) {
			memcpy(*ptx, rw.ptx, rw.ptx_size);
			(*ptx)[rw.ptx_size] = '\0';
			*ptx_size = rw.ptx_size;
		}
	}
	st = !*json || (rw.ptx && !*ptx) ? ENOMEM : rw.ptx ? 0 : ENOEXEC;
	gsr_rewrite_free(&rw);
	return st;
}

static void serve(int sock, const struct worker_request *req, int image_fd)
{
	struct worker_reply reply = { .id = req->id };
	char *image = copy_image(image_fd, req->size), *ptx = NULL, *json = NULL;
	struct cache_entry e = { 0 };
	uint8_t key[CACHE_KEY];
	unsigned int n_fds = 0;
	bool lasting = false;
	int fds[2];

	close(image_fd);
	if (!image) {
		reply.err = errno;
		send_fds(sock, &reply, sizeof(reply), NULL, 0, 0);
		return;
	}
	cache_key(image, req->size, req->arch, req->flags, key);
	if (cache_get(key, &e)) {
		reply.hit = 1;
		reply.err = e.err;
		add_cached_notes(&reply, &e, req->flags & GSP_REWRITE_RESUMABLE);
	} else {
		reply.err = rewrite(image, req, &reply, &ptx, &e.ptx_size, &json, &lasting);
		e.err = reply.err;
		e.ptx = ptx;
		e.json = json;
		e.json_size = json ? strlen(json) : 0;
		if (lasting && (!e.err || e.err == ENOEXEC))
			cache_put(key, &e);
	}
	free(image);
	/* a refusal carries the description alone */
	if (!reply.err) {
		fds[n_fds] = memfd_from("gsched-ptx", e.ptx, e.ptx_size);
		if (fds[n_fds] < 0)
			reply.err = -fds[n_fds];
		else
			n_fds++;
	}
	if (!reply.err || reply.err == ENOEXEC) {
		fds[n_fds] = memfd_from("gsched-json", e.json, e.json_size);
		if (fds[n_fds] < 0)
			reply.err = -fds[n_fds];
		else
			n_fds++;
	}
	if (reply.err && reply.err != ENOEXEC)
		for (; n_fds; n_fds--)
			close(fds[n_fds - 1]);
	send_fds(sock, &reply, sizeof(reply), fds, n_fds, 0);
	for (; n_fds; n_fds--)
		close(fds[n_fds - 1]);
	if (reply.hit) {
		free(e.ptx);
	} else {
		free(ptx);
		free(json);
	}
}

int worker_main(int sock)
{
	struct worker_request req;
	int fd;

	confine();
	if (opt.cache_dir) {
		int err = cache_open(opt.cache_dir, opt.cache_size);

		if (err == -EACCES)
			say(LOG_WARN, "%s: not used: it must belong to this user and be closed to others (chmod 700)",
			    opt.cache_dir);
		else if (err)
			say(LOG_WARN, "%s: not used: %s", opt.cache_dir, strerror(-err));
	}
	while ((fd = receive(sock, &req)) >= 0)
		serve(sock, &req, fd);
	cache_close();
	return 0;
}
