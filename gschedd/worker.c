// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A process that serves rewrites. It hashes images and keeps the cache, but does not parse them.
 * Untrusted images are parsed by a sandboxed child, one per image, which can reach neither the
 * cache, which all users share, nor another image. If the child crashes, one request fails. If it
 * takes too long, the daemon kills both and starts another worker.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cache.h"
#include "gschedd.h"
#include "rewriter/gsr.h"
#include "sandbox.h"

#define MEMORY_MAX	(8ull << 30)	/* of address space */
#define FILE_MAX	(1ull << 30)
#define FDS_MAX		32
#define PTX_MAX		(128ull << 20)
#define RESULT_MAX	(512ull << 20)	/* twins and their description */

/* The child's result, in shared memory, read after it has ended */
struct result {
	uint32_t err, lasting, n_notes;
	struct note note[WORKER_NOTES];
	uint64_t ptx_size, description_size;
	char data[];			/* the twins, then their description */
};

static void limit_resources(void)
{
	struct rlimit core = { 0, 0 }, files = { FDS_MAX, FDS_MAX }, size = { FILE_MAX, FILE_MAX };

	prctl(PR_SET_NAME, "gschedd-rewrite");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/*
	 * freed memory is overwritten, so that a child finds nothing of other images in the memory
	 * that it inherits
	 */
	mallopt(M_PERTURB, 1);
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_FSIZE, &size);
	/* what is larger is refused */
	signal(SIGXFSZ, SIG_IGN);
#ifndef __SANITIZE_ADDRESS__	/* its shadow is terabytes */
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };

	setrlimit(RLIMIT_AS, &memory);
#endif
}

/* -1: gschedd has ended. */
static int receive_image(int sock, struct worker_request *req)
{
	int fds[GSP_MAX_FDS], flags = 0;
	unsigned int n_fds;

	if (recv_fds(sock, req, sizeof(*req), fds, &n_fds, &flags) == sizeof(*req) && n_fds == 1)
		return fds[0];
	close_all(fds, n_fds);
	return -1;
}

/* Copies the image, since its owner may change or truncate the file at any time. */
static char *copy_image(int fd, size_t size)
{
	char *image = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	size_t done = 0;

	if (image == MAP_FAILED)
		return NULL;
	while (done < size) {
		ssize_t n = pread(fd, image + done, size - done, done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int err = n ? errno : EINVAL;

			munmap(image, size + 1);
			errno = err;
			return NULL;
		}
		done += n;
	}
	return image;
}

static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

static void add_note(struct result *r, enum note_kind kind, const char *kernel, unsigned int points,
		     const char *reason)
{
	struct note *n;

	if (r->n_notes >= WORKER_NOTES)
		return;
	n = &r->note[r->n_notes++];
	n->kind = kind;
	n->points = points;
	copy_text(n->kernel, sizeof(n->kernel), kernel);
	copy_text(n->reason, sizeof(n->reason), reason ? reason : "");
}

/* For gschedctl status: kernels that are not preemptible and why; points of resumable twins. */
static void add_notes(struct result *r, const struct gsr_rewrite *rw, bool resumable)
{
	for (unsigned int i = 0; i < rw->n_kernels; i++) {
		const struct gsr_kernel *k = &rw->kernels[i];

		if (k->tier != GSR_TIER_BLOCK)
			add_note(r, NOTE_REFUSED, k->name, 0, k->reason);
		else if (resumable)
			add_note(r, NOTE_RESUMABLE, k->name, k->resume_points, k->resume_reason);
	}
}

static bool append_text(struct result *r, uint64_t *size, const void *data, size_t length)
{
	uint64_t used = r->ptx_size + r->description_size;

	if (length > RESULT_MAX - sizeof(*r) - used)
		return false;
	memcpy(r->data + used, data, length);
	*size = length;
	return true;
}

/*
 * Runs in the child. The kernel's name follows the image, and a NUL the name. err: 0, ENOEXEC with a
 * description that has the reason, or another errno. lasting: the result depends on the image only,
 * so it can be cached.
 */
static void rewrite_image(const char *image, const struct worker_request *req, struct result *r)
{
	const bool text = !(req->flags & GSP_REWRITE_DESCRIBE);
	struct gsr_options opts = {
		.size = sizeof(opts), .max_input = PTX_MAX,
		.kernel = req->name_size ? image + req->size : NULL,
		.resumable = req->flags & GSP_REWRITE_RESUMABLE,
		.restart = GSR_RESTART_INSTEAD,
		.modes = req->flags & GSP_REWRITE_MODES,
	};
	struct gsr_error err = { 0 };
	struct gsr_rewrite rw = { 0 };
	size_t source_size, length;
	char *source = NULL;
	void *description;
	enum gsr_status st;

	st = gsr_image_ptx(image, req->size, req->arch, &source, &source_size, &err);
	if (st == GSR_OK)
		st = gsr_rewrite_ptx(source, source_size, &opts, &rw, &err);
	r->lasting = st != GSR_ERR_NOMEM && st != GSR_ERR_LIMIT;
	if (st == GSR_ERR_NOMEM) {
		r->err = ENOMEM;
		return;
	}
	if (st == GSR_OK) {
		add_notes(r, &rw, opts.resumable);
		description = gsr_describe(&rw, &length);
	} else {
		err.status = st;
		add_note(r, NOTE_REFUSED, "*", 0, err.message);
		description = gsr_describe_error(&err, &length);
	}
	r->err = st == GSR_OK && rw.ptx ? 0 : ENOEXEC;
	if (!description ||
	    (!r->err && text && !append_text(r, &r->ptx_size, rw.ptx, rw.ptx_size)) ||
	    !append_text(r, &r->description_size, description, length))
		r->err = ENOMEM;
	if (r->err == ENOMEM)
		r->lasting = false;
}

static void run_child(const char *image, const struct worker_request *req, struct result *r)
{
	if (sandbox_enter())
		_exit(1);
	mallopt(M_PERTURB, 0);
	rewrite_image(image, req, r);
	_exit(0);
}

/* Whether the result is consistent. Nothing in it is trusted. */
static bool is_whole(const struct result *r)
{
	return r->ptx_size <= RESULT_MAX - sizeof(*r) &&
	       r->description_size <= RESULT_MAX - sizeof(*r) - r->ptx_size &&
	       r->n_notes <= WORKER_NOTES && (!r->err || r->err == ENOEXEC || r->err == ENOMEM);
}

/* The caller unmaps the result; NULL: errno, EIO: the child crashed. */
static struct result *rewrite_apart(const char *image, const struct worker_request *req)
{
	struct result *r = mmap(NULL, RESULT_MAX, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int status = 0, err = 0;
	pid_t pid;

	if (r == MAP_FAILED)
		return NULL;
	pid = fork();
	if (!pid)
		run_child(image, req, r);
	if (pid < 0) {
		err = errno;
	} else {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFSIGNALED(status))
			say(LOG_ERROR, "the rewriter was ended by signal %d (%s)", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
		else if (status)
			say(LOG_ERROR,
			    "the rewriter has no sandbox: it needs seccomp, or root that "
			    "may change its user");
		if (status || !is_whole(r))
			err = EIO;
	}
	if (!err)
		return r;
	munmap(r, RESULT_MAX);
	errno = err;
	return NULL;
}

static const struct cache_entry none;	/* for replies with an error */

/* @text: there is PTX, unless the reply is an error. */
static void send_reply(int sock, struct worker_reply *reply, const struct cache_entry *e, bool text)
{
	unsigned int n = 0;
	int fds[2];

	/* a refusal has only the description */
	if (!reply->err && text) {
		fds[n] = memfd_from("gsched-ptx", e->ptx, e->ptx_size);
		if (fds[n] < 0)
			reply->err = -fds[n];
		else
			n++;
	}
	if (!reply->err || reply->err == ENOEXEC) {
		fds[n] = memfd_from("gsched-desc", e->description, e->description_size);
		if (fds[n] < 0)
			reply->err = -fds[n];
		else
			n++;
	}
	if (reply->err && reply->err != ENOEXEC)
		for (; n; n--)
			close(fds[n - 1]);
	send_fds(sock, reply, sizeof(*reply), fds, n, 0);
	close_all(fds, n);
}

static void serve_hit(int sock, struct worker_reply *reply, struct cache_entry *e, bool text)
{
	size_t notes = e->notes_size / sizeof(reply->note[0]);

	reply->hit = 1;
	reply->err = e->err;
	reply->n_notes = notes < WORKER_NOTES ? notes : WORKER_NOTES;
	memcpy(reply->note, e->notes, reply->n_notes * sizeof(reply->note[0]));
	send_reply(sock, reply, e, text);
}

static void serve_miss(int sock, struct worker_reply *reply, const struct worker_request *req,
		       const char *image, const uint8_t *key)
{
	struct result *r = rewrite_apart(image, req);
	struct cache_entry e;

	if (!r) {
		reply->err = errno;
		send_reply(sock, reply, &none, false);
		return;
	}
	reply->err = r->err;
	reply->n_notes = r->n_notes;
	memcpy(reply->note, r->note, r->n_notes * sizeof(r->note[0]));
	e = (struct cache_entry){
		.err = r->err, .ptx = r->data, .ptx_size = r->ptx_size,
		.description = r->data + r->ptx_size, .description_size = r->description_size,
		.notes = (char *)r->note, .notes_size = r->n_notes * sizeof(r->note[0]),
	};
	if (r->lasting && (!e.err || e.err == ENOEXEC))
		cache_put(key, &e);
	send_reply(sock, reply, &e, !(req->flags & GSP_REWRITE_DESCRIBE));
	munmap(r, RESULT_MAX);
}

static void serve_request(int sock, const struct worker_request *req, int image_fd)
{
	struct worker_reply reply = { .id = req->id };
	size_t size = req->size + req->name_size;
	char *image = copy_image(image_fd, size);
	struct cache_entry e = { 0 };
	uint8_t key[CACHE_KEY];

	close(image_fd);
	if (!image) {
		reply.err = errno;
		send_reply(sock, &reply, &none, false);
		return;
	}
	cache_key(image, req->size, req->name_size, req->arch, req->flags, key);
	if (cache_get(key, &e))
		serve_hit(sock, &reply, &e, !(req->flags & GSP_REWRITE_DESCRIBE));
	else
		serve_miss(sock, &reply, req, image, key);
	free(e.ptx);
	munmap(image, size + 1);
}

int worker_main(int sock)
{
	struct worker_request req;
	int fd;

	limit_resources();
	if (opt.cache_dir) {
		int err = cache_open(opt.cache_dir, opt.cache_size);

		if (err == -EACCES)
			say(LOG_WARN,
			    "%s: not used: it must belong to this user and be closed to "
			    "others (chmod 700)", opt.cache_dir);
		else if (err)
			say(LOG_WARN, "%s: not used: %s", opt.cache_dir, strerror(-err));
	}
	while ((fd = receive_image(sock, &req)) >= 0)
		serve_request(sock, &req, fd);
	cache_close();
	return 0;
}
