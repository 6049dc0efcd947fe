// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rewrite service, its cache, and the process behind it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define LIMIT	(1 << 20)	/* --image-max */

static const char kernel[] =
	".version 8.0\n.target sm_70\n.address_size 64\n\n"
	".visible .entry fill(.param .u64 out)\n{\n"
	"\t.reg .b32 %r<6>;\n\t.reg .b64 %rd<5>;\n\n"
	"\tld.param.u64 %rd1, [out];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
	"\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\tmov.u32 %r3, %tid.x;\n"
	"\tmad.lo.s32 %r4, %r1, %r2, %r3;\n\tmul.wide.s32 %rd3, %r4, 4;\n"
	"\tadd.s64 %rd4, %rd2, %rd3;\n"
	"\tst.global.u32 [%rd4], %r4;\n\tret;\n}\n";

static int memfd(const void *data, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		exit(1);
	return fd;
}

/* A file's content with a NUL behind it */
struct data {
	char *p;			/* NULL: none came */
	size_t size;
};

static struct data data_of(int fd)
{
	struct data d;
	struct stat st;

	if (fstat(fd, &st) || !(d.p = calloc(1, st.st_size + 1)) ||
	    pread(fd, d.p, st.st_size, 0) != st.st_size)
		exit(1);
	d.size = st.st_size;
	return d;
}

static bool equal(const struct data *a, const struct data *b)
{
	return a->p && b->p && a->size == b->size && !memcmp(a->p, b->p, a->size);
}

/* Is it a description that holds @text? */
static bool describes(const struct data *d, const char *text)
{
	return d->p && d->size > 4 && !memcmp(d->p, "GSRD", 4) &&
	       memmem(d->p, d->size, text, strlen(text));
}

struct answer {
	struct data ptx, description;
};

static void answer_free(struct answer *a)
{
	free(a->ptx.p);
	free(a->description.p);
}

/* err; @kernel: one of the image's, "" all; @a: what came, for answer_free() */
static int rewrite_kernel(const void *image, size_t size, const char *kernel, unsigned int flags,
			  struct answer *a)
{
	struct gsp_rewrite req = { .size = sizeof(req), .arch = 90, .image_size = size,
				   .name_size = strlen(kernel), .flags = flags };
	int s = peer(), fd = memfd(image, size), err;
	struct reply r;

	if (write(fd, kernel, strlen(kernel)) != (ssize_t)strlen(kernel))
		exit(1);
	*a = (struct answer){ 0 };
	err = call_fds(s, GSP_REWRITE, &req, sizeof(req), fd, &r);
	if (r.n_fds == 2)
		a->ptx = data_of(r.fd[0]);
	if (r.n_fds)
		a->description = data_of(r.fd[r.n_fds - 1]);
	reply_free(&r);
	close(fd);
	close(s);
	return err;
}

static int rewrite(const void *image, size_t size, struct answer *a)
{
	return rewrite_kernel(image, size, "", 0, a);
}

static int rewrite_err(const void *image, size_t size)
{
	struct answer a;
	int err = rewrite(image, size, &a);

	answer_free(&a);
	return err;
}

static long number(const char *key)
{
	char want[64], *text = status_text(), *at;
	long n;

	snprintf(want, sizeof(want), "\"%s\":", key);
	at = strstr(text, want);
	n = at ? strtol(at + strlen(want), NULL, 10) : -1;
	free(text);
	return n;
}

/* Requests that are wrong. @want 0: right. */
static void request(int fd, struct gsp_rewrite req, int want, const char *what)
{
	struct reply r;
	int s = peer();

	is(call_fds(s, GSP_REWRITE, &req, sizeof(req), fd, &r), want, "%s", what);
	reply_free(&r);
	close(s);
	if (fd >= 0)
		close(fd);
}

static int reopened(int fd, int flags)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	close(fd);
	return again;
}

static void bad_requests(void)
{
	struct gsp_rewrite good = { .size = sizeof(good), .arch = 90,
				    .image_size = sizeof(kernel) - 1 }, req;
	char path[128];
	int pipe_fd[2], fd;
#define IMAGE	memfd(kernel, sizeof(kernel) - 1)
	request(-1, good, EINVAL, "no descriptor: EINVAL");
	req = good;
	req.flags = GSP_REWRITE__ALL + 1;
	request(IMAGE, req, EOPNOTSUPP, "unknown flag: EOPNOTSUPP");
	req = good;
	req.name_size = 1;
	request(IMAGE, req, EINVAL, "a name that does not follow: EINVAL");
	req.name_size = GSP_KERNEL_NAME_MAX + 1;
	request(IMAGE, req, EFBIG, "a huge name: EFBIG");
	req = good;
	req.arch = 0;
	request(IMAGE, req, EINVAL, "arch 0: EINVAL");
	req.arch = UINT32_MAX;
	request(IMAGE, req, EINVAL, "arch out of range: EINVAL");
	req = good;
	req.image_size = 0;
	request(IMAGE, req, EINVAL, "an empty image: EINVAL");
	req.image_size = good.image_size + 1;
	request(IMAGE, req, EINVAL, "an image longer than its file: EINVAL");
	req.image_size = LIMIT + 1;
	fd = IMAGE;
	if (ftruncate(fd, LIMIT + 1))
		exit(1);
	request(fd, req, EFBIG, "a huge image: EFBIG");
	req.image_size = UINT64_MAX;
	request(IMAGE, req, EFBIG, "a size beyond reason: EFBIG");

	if (pipe2(pipe_fd, O_CLOEXEC))
		exit(1);
	request(pipe_fd[0], good, EINVAL, "a pipe: EINVAL");
	close(pipe_fd[1]);
	request(open("/dev/zero", O_RDONLY), good, EINVAL, "a device: EINVAL");
	request(open("/tmp", O_RDONLY), good, EINVAL, "a directory: EINVAL");
	snprintf(path, sizeof(path), "/var/tmp/gschedd-image-%d", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, kernel, sizeof(kernel)) < 0)
		exit(1);
	unlink(path);
	if (fcntl(fd, F_GET_SEALS) >= 0) {
		close(fd);
		skip("/var/tmp is memory", "a file on a disk: EINVAL");
	} else {
		request(fd, good, EINVAL, "a file on a disk: EINVAL");
	}
	request(reopened(IMAGE, O_WRONLY), good, EBADF, "a descriptor that does not read: EBADF");
	request(IMAGE, good, 0, "all of it right");
}

static void refusals(void)
{
	static const char junk[] = "\177ELF and nothing more",
		broken[] = ".version 8.0\n.target sm_70\n.entry {{{";
	static const char unknown[] =
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .entry odd()\n{\n"
		"\tfrobnicate;\n\tret;\n}\n";
	struct answer a, again;
	char *text;

	is(rewrite(junk, sizeof(junk), &a), ENOEXEC, "not PTX: ENOEXEC");
	ok(!a.ptx.p && describes(&a.description, "PTX"), "with a description that says why");
	answer_free(&a);
	is(rewrite(unknown, sizeof(unknown) - 1, &a), ENOEXEC,
	   "a kernel that cannot be rewritten: ENOEXEC");
	ok(!a.ptx.p && describes(&a.description, "odd") &&
	   describes(&a.description, "unknown instruction"),
	   "with a description that has the kernel and why");
	answer_free(&a);
	is(rewrite(broken, sizeof(broken) - 1, &a), ENOEXEC, "broken PTX: ENOEXEC");
	ok(!a.ptx.p && describes(&a.description, ":3:"), "with a description that says where");
	is(rewrite(broken, sizeof(broken) - 1, &again), ENOEXEC, "and again");
	ok(equal(&a.description, &again.description), "with the same reason from the cache");
	answer_free(&a);
	answer_free(&again);
	text = status_text();
	ok(strstr(text, "\"refused\":[{\"kernel\":"), "the status lists what was refused");
	free(text);
}

/* The units of a relocatable program: a header, then their texts, each with its NUL. */
static void units(void)
{
	static const struct { uint32_t magic, n, others; } head = { 0x5553477f, 2, 1 };
	static const char caller[] =
		".version 8.0\n.target sm_70\n.address_size 64\n"
		".extern .func (.param .b32 r) five ();\n"
		".visible .entry calls(.param .u64 out)\n{\n"
		"\t.reg .b32 %r<2>;\n\t.reg .b64 %d<2>;\n\tld.param.u64 %d1, [out];\n"
		"\t{\n\t.param .b32 a;\n\tcall.uni (a), five, ();\n\tld.param.b32 %r1, [a];\n"
		"\t}\n\tst.global.u32 [%d1], %r1;\n\tret;\n}\n",
		callee[] = ".version 8.0\n.target sm_70\n.address_size 64\n"
		".visible .func (.param .b32 r) five ()\n{\n\tst.param.b32 [r], 5;\n\tret;\n}\n";
	char image[sizeof(head) + sizeof(caller) + sizeof(callee)];
	const size_t first = sizeof(head), second = first + sizeof(caller);
	struct answer a;

	memcpy(image, &head, sizeof(head));
	memcpy(image + first, caller, sizeof(caller));
	memcpy(image + second, callee, sizeof(callee));
	is(rewrite_kernel(image, sizeof(image), "calls", 0, &a), 0, "units are joined");
	ok(a.ptx.p && describes(&a.description, "calls"), "and one kernel's twin comes back");
	answer_free(&a);
	is(rewrite_err(image, sizeof(image) - 1), ENOEXEC, "the last text has no NUL: ENOEXEC");
	is(rewrite_err(image, second), ENOEXEC, "fewer texts than it says: ENOEXEC");
	image[4] = 1;
	is(rewrite_err(image, sizeof(image)), ENOEXEC, "more texts than it says: ENOEXEC");
	image[4] = 0;
	is(rewrite_err(image, sizeof(image)), ENOEXEC, "none: ENOEXEC");
	memset(image + 4, 0xff, 4);
	is(rewrite_err(image, sizeof(image)), ENOEXEC, "a billion: ENOEXEC");
	memcpy(image, &head, sizeof(head));
	memcpy(image + sizeof(image) - 8, "{{{", 3);
	is(rewrite_kernel(image, sizeof(image), "calls", 0, &a), ENOEXEC,
	   "a unit that cannot be parsed: ENOEXEC");
	ok(!a.ptx.p && describes(&a.description, "unit 2"), "with a description that says which");
	answer_free(&a);
}

static char *cache_dir(void)
{
	static char path[96];

	snprintf(path, sizeof(path), "%s/cache", dir);
	return path;
}

/* Runs fn on every entry; the number of entries. */
static int each_entry(void (*fn)(const char *path), long *bytes)
{
	DIR *d = opendir(cache_dir());
	struct dirent *e;
	char path[512];
	struct stat st;
	int n = 0;

	while (d && (e = readdir(d))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", cache_dir(), e->d_name);
		if (bytes && !stat(path, &st))
			*bytes += st.st_size;
		if (fn)
			fn(path);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void flip_last(const char *path)
{
	int fd = open(path, O_RDWR);
	off_t end = lseek(fd, -1, SEEK_END);
	char c;

	if (pread(fd, &c, 1, end) != 1)
		exit(1);
	c ^= 1;
	if (pwrite(fd, &c, 1, end) != 1)
		exit(1);
	close(fd);
}

static void cut(const char *path)
{
	if (truncate(path, 100))
		exit(1);
}

static void empty(const char *path)
{
	if (truncate(path, 0))
		exit(1);
}

/* Which nobody writes to */
static void make_pipe(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISFIFO(st.st_mode))
		return;
	if (unlink(path) || mkfifo(path, 0600))
		exit(1);
}

static void erase(const char *path)
{
	if (unlink(path))
		exit(1);
}

static void caching(void)
{
	static void (*const harm[])(const char *path) = { flip_last, cut, empty, make_pipe };
	char image[sizeof(kernel) + 64];
	struct answer a, b;
	long hits, size;
	struct stat st;
	int entries;
	int len = snprintf(image, sizeof(image), "%s// %s\n", kernel, "caching");

	ok(!stat(cache_dir(), &st) && (st.st_mode & 0777) == 0700,
	   "the cache's directory is closed to others");
	hits = number("hits");
	is(rewrite(image, len, &a), 0, "an image not seen before");
	ok(a.ptx.p && strstr(a.ptx.p, "fill__gsched") && describes(&a.description, "fill"),
	   "gives twins and a description");
	is(number("hits"), hits, "a miss");
	is(rewrite(image, len, &b), 0, "the same image");
	is(number("hits"), hits + 1, "a hit");
	ok(equal(&a.ptx, &b.ptx) && equal(&a.description, &b.description), "gives the same");
	answer_free(&b);
	for (size_t i = 0; i < sizeof(harm) / sizeof(harm[0]); i++) {
		hits = number("hits");
		each_entry(harm[i], NULL);
		is(rewrite(image, len, &b), 0, "with a damaged entry (%zu)", i);
		is(number("hits"), hits, "it is not believed");
		ok(equal(&a.ptx, &b.ptx) && equal(&a.description, &b.description),
		   "the result is right");
		answer_free(&b);
		is(rewrite_err(image, len), 0, "and then");
		is(number("hits"), hits + 1, "it is in the cache again");
	}
	answer_free(&a);
	each_entry(erase, NULL);
	is(rmdir(cache_dir()), 0, "its directory is removed");
	is(rewrite_err(image, len), 0, "then");
	hits = number("hits");
	is(rewrite_err(image, len), 0, "and again");
	is(number("hits"), hits + 1, "there is a new one");
	ok(!stat(cache_dir(), &st) && (st.st_mode & 0777) == 0700, "which is closed to others, too");

	daemon_stop(SIGTERM);
	daemon_start("--device", DEVICE, "--cache-size", "128K", NULL);
	is(rewrite_err(image, len), 0, "after a restart");
	is(number("hits"), 1, "the cache is still there");
	for (int i = 0; i < 20; i++) {
		len = snprintf(image, sizeof(image), "%s// %d\n", kernel, i);
		rewrite_err(image, len);
	}
	size = 0;
	entries = each_entry(NULL, &size);
	ok(entries > 0 && entries < 21 && size > 0 && size <= 128 * 1024,
	   "it stays below its bound: %d entries, %ld bytes", entries, size);
	hits = number("hits");
	is(rewrite_err(image, len), 0, "what was used last");
	is(number("hits"), hits + 1, "is still in it");
}

/* One kernel by itself, and what all of them are without their text */
static void parts(void)
{
	static const char *const names[] = { "fill", "drop" };
	char image[2 * sizeof(kernel)];
	struct answer a, b;
	int len = snprintf(image, sizeof(image), "%s%s", kernel, strstr(kernel, ".visible"));

	memcpy(strstr(strstr(image, names[0]) + 1, names[0]), names[1], strlen(names[1]));
	for (int i = 0; i < 2; i++) {
		long hits = number("hits");

		is(rewrite_kernel(image, len, names[i], 0, &a), 0, "%s alone", names[i]);
		ok(a.ptx.p && strstr(a.ptx.p, i ? "drop__gsched" : "fill__gsched") &&
		   !strstr(a.ptx.p, names[!i]) && describes(&a.description, names[i]) &&
		   !describes(&a.description, names[!i]), "its twin, and what it is");
		is(number("hits"), hits, "another one's is not taken for it");
		is(rewrite_kernel(image, len, names[i], 0, &b), 0, "and again");
		ok(number("hits") == hits + 1 && equal(&a.ptx, &b.ptx) &&
		   equal(&a.description, &b.description), "from the cache");
		answer_free(&a);
		answer_free(&b);
	}
	is(rewrite_kernel(image, len, "", GSP_REWRITE_DESCRIBE, &a), 0, "all of them");
	ok(!a.ptx.p && describes(&a.description, "fill") && describes(&a.description, "drop"),
	   "what they are, without their text");
	is(rewrite_kernel(image, len, "", GSP_REWRITE_DESCRIBE, &b), 0, "and again");
	ok(!b.ptx.p && equal(&a.description, &b.description), "from the cache");
	answer_free(&a);
	answer_free(&b);
	is(rewrite_kernel(image, len, "fil", 0, &a), ENOEXEC, "a kernel that is not there");
	ok(!a.ptx.p && a.description.p && !describes(&a.description, "fill"),
	   "with a description of nothing");
	answer_free(&a);
}

/* The options are part of the key, and reach the rewriter. */
static void options(void)
{
	char image[sizeof(kernel) + 64], *text;
	int len = snprintf(image, sizeof(image), "%s// %s\n", kernel, "options"), fd, s;
	struct gsp_rewrite req = { .size = sizeof(req), .arch = 90, .image_size = len,
				   .flags = GSP_REWRITE_RESUMABLE };
	long hits = number("hits");

	is(rewrite_err(image, len), 0, "an image without options");
	for (int i = 0; i < 4; i++) {
		struct reply r;

		s = peer();
		fd = memfd(image, len);
		req.flags = i < 2 ? GSP_REWRITE_RESUMABLE : GSP_REWRITE_MODES;
		is(call_fds(s, GSP_REWRITE, &req, sizeof(req), fd, &r), 0,
		   "the same image, %s (%d)", i < 2 ? "resumable" : "all modes", i % 2);
		is(r.n_fds, 2, "twins and their description");
		is(number("hits"), hits + (i + 1) / 2, i % 2 ? "now from the cache" :
		   "not what the cache has without the option");
		text = data_of(r.fd[0]).p;
		ok(!strstr(text, "by_index:") == (i < 2), "limits by worker in %s",
		   i < 2 ? "none" : "these twins");
		free(text);
		reply_free(&r);
		close(fd);
		close(s);
	}
	text = status_text();
	ok(strstr(text, "\"resumable\":[{\"kernel\":\"fill\",\"points\":"),
	   "the status says of its kernel how often it can be left");
	free(text);
}

/* The first one; 0: none */
static pid_t child_of(pid_t parent)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
	f = parent > 0 ? fopen(path, "re") : NULL;
	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

static void robustness(void)
{
	char image[sizeof(kernel) + 64];
	int len = snprintf(image, sizeof(image), "%s// %s\n", kernel, "robust"), s, fds[10];
	struct gsp_rewrite req = { .size = sizeof(req), .arch = 90, .image_size = len };
	struct reply r;
	unsigned int good = 0, busy = 0;
	pid_t pid;

	daemon_stop(SIGTERM);
	chmod(cache_dir(), 0755);
	daemon_start("--device", DEVICE, "--log-level", "error", NULL);
	is(rewrite_err(image, len), 0, "a cache that others can enter is not used");
	is(rewrite_err(image, len), 0, "rewriting goes on");
	is(number("hits"), 0, "without hits");
	pid = child_of(daemon_pid);
	ok(pid > 0 && !kill(pid, SIGKILL), "the rewriter is killed");
	for (int i = 0; i < 100; i++)
		if (!rewrite_err(image, len))
			good++;
	ok(good >= 99, "another one takes its place: %u of 100", good);

	/* many at once on one connection, which then goes away */
	s = peer();
	for (int i = 0; i < 10; i++) {
		fds[i] = memfd(image, len);
		send_req(s, GSP_REWRITE, 0, i, &req, sizeof(req), fds[i]);
		close(fds[i]);
	}
	for (int i = 0; i < 10 && receive(s, &r, 10000); i++) {
		busy += r.h.err == EBUSY;
		reply_free(&r);
	}
	ok(busy <= 2, "eight jobs at once are allowed, %u of 10 were turned away", busy);
	for (int i = 0; i < 8; i++) {
		fds[i] = memfd(image, len);
		send_req(s, GSP_REWRITE, 0, i, &req, sizeof(req), fds[i]);
		close(fds[i]);
	}
	close(s);
	is(rewrite_err(image, len), 0, "an asker that goes away leaves others in peace");
}

/* ---- the process that looks into images ---- */

#define KERNELS	1500	/* enough to be met at work */

/* An image that takes a while, and is like no other: to be freed */
static char *big_image(int number, size_t *size)
{
	static const char entry[] =
		".visible .entry f%d_%d(.param .u64 out)\n{\n\t.reg .b32 %%r<2>;\n"
		"\t.reg .b64 %%rd<3>;\n"
		"\tld.param.u64 %%rd1, [out];\n\tcvta.to.global.u64 %%rd2, %%rd1;\n"
		"\tmov.u32 %%r1, %%ctaid.x;\n"
		"\tst.global.u32 [%%rd2], %%r1;\n\tret;\n}\n";
	char *text = NULL;
	FILE *f = open_memstream(&text, size);

	fputs(".version 8.0\n.target sm_70\n.address_size 64\n", f);
	for (int i = 0; i < KERNELS; i++)
		fprintf(f, entry, number, i);
	fclose(f);
	return text;
}

/* Asks for one on a connection of its own, and does not wait */
static int ask(int number)
{
	size_t size;
	char *image = big_image(number, &size);
	struct gsp_rewrite req = { .size = sizeof(req), .arch = 90, .image_size = size };
	int s = peer(), fd = memfd(image, size);

	send_req(s, GSP_REWRITE, 0, 1, &req, sizeof(req), fd);
	close(fd);
	free(image);
	return s;
}

static int answer(int s)
{
	struct reply r;
	int err;

	if (!receive(s, &r, 60000))
		return -1;
	err = r.h.err;
	reply_free(&r);
	close(s);
	return err;
}

/* The child of a worker that is at work, stopped; 0: it was gone before that */
static pid_t catch(void)
{
	pid_t worker = 0, child = 0;

	for (int i = 0; i < 100000 && !child; i++) {
		worker = child_of(daemon_pid);
		child = child_of(worker);
		if (!child)
			usleep(100);
	}
	if (!child || kill(child, SIGSTOP))
		return 0;
	return child_of(worker) == child ? child : 0;
}

static bool has(pid_t pid, const char *what)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		found |= !strncmp(line, what, strlen(what));
	if (f)
		fclose(f);
	return found;
}

static int open_files(pid_t pid)
{
	char path[64];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += *e->d_name != '.';
	if (d)
		closedir(d);
	return n;
}

/*
 * It is in its sandbox. A build with a sanitizer, which has no filter, keeps the standard streams
 */
static bool is_apart(pid_t pid)
{
#ifdef __SANITIZE_ADDRESS__
	return open_files(pid) <= 3;
#else
	return has(pid, "Seccomp:\t2");
#endif
}

/*
 * The same for one that is in its sandbox, which is a moment after the fork. *@s: the connection
 * that asked; other images are tried
 */
static pid_t catch_apart(int *s)
{
	static int number = 300;

	for (int tries = 0; tries < 20; tries++) {
		pid_t pid;

		*s = ask(number++);
		pid = catch();
		if (pid && !is_apart(pid)) {
			kill(pid, SIGCONT);
			for (int i = 0; i < 10000 && child_of(child_of(daemon_pid)) == pid &&
			     !is_apart(pid); i++)
				usleep(100);
			kill(pid, SIGSTOP);
		}
		if (pid && is_apart(pid))
			return pid;
		answer(*s);
	}
	return 0;
}

static void apart(void)
{
	pid_t pid;
	int s;

	daemon_stop(SIGTERM);
	daemon_cpus = 1;
	daemon_start("--device", DEVICE, "--log-level", "error", NULL);
	pid = catch_apart(&s);
	ok(pid, "an image is looked at by a process of its own");
	ok(has(pid, "NoNewPrivs:\t1"), "without new privileges");
#ifdef __SANITIZE_ADDRESS__
	skip("not in this build", "and without system calls, but for memory and its end");
	skip("not in this build", "and without files");
#else
	ok(has(pid, "Seccomp:\t2"), "and without system calls, but for memory and its end");
	is(open_files(pid), 0, "and without files");
#endif
	if (getuid())
		skip("needs root", "as nobody");
	else
		ok(has(pid, "Uid:\t65534\t65534\t65534\t65534") &&
		   has(pid, "Gid:\t65534\t65534\t65534\t65534"), "as nobody");
	kill(pid, SIGSEGV);
	kill(pid, SIGCONT);
	is(answer(s), EIO, "it crashes: the request fails with EIO");
	is(answer(ask(1)), 0, "and the next one is served");

	pid = catch_apart(&s);
	kill(child_of(daemon_pid), SIGKILL);
	is(pid ? answer(s) : 0, EIO, "its worker is killed: EIO");
	is(answer(ask(2)), 0, "another one takes its place");
}

#define JOBS	6

static void hog(int ready)
{
	int s[JOBS], n = 0;

	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		_exit(1);
	for (int i = 0; i < JOBS; i++)
		s[i] = ask(100 + i);
	/* queued: each has asked something else after it, and has the answer */
	for (int i = 0; i < JOBS; i++) {
		struct gsched_info info = { .size = sizeof(info) };

		n += call(s[i], GSP_INFO, &info, sizeof(info)) == 0;
	}
	if (write(ready, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	for (int i = 0; i < JOBS; i++)
		answer(s[i]);
	_exit(0);
}

/* One worker, one user with many images, and another one with one */
static void fairness(void)
{
	int pipe_fd[2], n = 0, served;
	pid_t pid, held;

	if (getuid()) {
		skip("needs root", "users take turns");
		return;
	}
	if (pipe2(pipe_fd, O_CLOEXEC))
		exit(1);
	served = number("served");
	pid = fork();
	if (!pid)
		hog(pipe_fd[1]);
	held = catch();
	is(read(pipe_fd[0], &n, sizeof(n)) == sizeof(n) ? n : -1, JOBS,
	   "a user has many images to be rewritten");
	n = ask(200);
	kill(held, SIGCONT);
	is(answer(n), 0, "another user has one");
	served = number("served") - served;
	ok(served < JOBS, "which is not last: %d were served by then, it included", served);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	daemon_start("--device", DEVICE, "--image-max", "1M", "--log-level", "error", NULL);
	bad_requests();
	refusals();
	units();
	caching();
	parts();
	options();
	robustness();
	apart();
	fairness();
	return done_testing();
}
