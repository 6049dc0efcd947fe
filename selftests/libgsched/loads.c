// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each way to load a kernel, under the interposer on vgpu: the result is that of the program alone,
 * and a twin ran.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter.h"
#include "run.h"

static struct fake f;
static char file[64];

/* What loads-app says, or "" */
static const char *load(struct run *r, bool preload, const char *way)
{
	char *const what[] = { BUILD "/test/libgsched/loads-app", (char *)way, file, NULL };

	run(preload, what, r);
	if (!r->status)
		return r->text;
	printf("# %s%s: status %x\n", way, preload ? " under the interposer" : "", r->status);
	return "";
}

/* The same under the interposer, whose service that is. fake_stop() follows. */
static void load_served(struct run *r, const char *way, fake_rewriter *service)
{
	fake_start(&f);
	f.rewriter = service;
	f.sms = 4;
	f.lease = GSCHED_LEASE_NONE;
	load(r, true, way);
	fake_wait(&f, &f.detached, 1);
}

/* A service that does not understand the last unit, which the driver's linker does. */
static int half_rewriter(const struct gsp_rewrite *req, int image_fd, int *out, unsigned int *n)
{
	if (pwrite(image_fd, "{{{", 3, (off_t)req->image_size - 8) != 3)
		abort();
	return real_rewriter(req, image_fd, out, n);
}

/* Twins that are longer than they are: each ends in a comment of a MiB */
static int long_rewriter(const struct gsp_rewrite *req, int image_fd, int *out, unsigned int *n)
{
	static char comment[1 << 20] = "\n//";
	int error = real_rewriter(req, image_fd, out, n);

	memset(comment + 3, ' ', sizeof(comment) - 3);
	if (*n == 2 && (lseek(out[0], 0, SEEK_END) < 0 ||
			write(out[0], comment, sizeof(comment)) != sizeof(comment)))
		abort();
	return error;
}

/* The original runs, and the client's page says why. */
static void refused(const char *alone, const char *way, fake_rewriter *service, const char *what,
		    const char *why)
{
	static struct run r;

	load_served(&r, way, service);
	ok(!r.status && !strcmp(r.text, alone), "%s: %s: results as alone", way, what);
	ok(f.cl && !f.cl->header.managed[GSCHED_TIER_BLOCK] &&
	   f.cl->header.managed[GSCHED_TIER_LAUNCH] && strstr(f.cl->header.why, why),
	   "%s: the original ran: %.60s", way, f.cl ? f.cl->header.why : "no page");
	fake_stop(&f);
}

/* The driver compiles the twin when the program ends, and must not shut down meanwhile. */
static void ends_early(void)
{
	static struct run first, r;
	const char *alone = load(&first, false, "once-data");

	setenv("GSCHED_TWIN_WAIT_MS", "1", 1);
	setenv("VGPU_LOAD_US", "300000", 1);
	load_served(&r, "once-data", real_rewriter);
	ok(!r.status && !strcmp(r.text, alone), "an end before the twin is there: as alone");
	fake_stop(&f);
	unsetenv("VGPU_LOAD_US");
	unsetenv("GSCHED_TWIN_WAIT_MS");
}

int main(void)
{
	static const char *const ways[] = {
		"data", "data-ex", "fat", "fat-binary", "wrapper", "file", "fat-file", "library",
		"library-file", "units", "link",
		"link-mixed", "link-file", "early-library", "early-library-file", "early-units",
	};
	static struct run first, r;
	const char *alone;
	char shm[64];

	snprintf(file, sizeof(file), "/tmp/gsched-loads-%d", getpid());
	snprintf(shm, sizeof(shm), "/dev/shm/gsched-loads-%d", getpid());
	setenv("VGPU_NAME", shm + strlen("/dev/shm/"), 1);
	setenv("VGPU_SMS", "4", 1);
	alone = load(&first, false, "data");
	ok(alone[0], "the program alone: %.16s", alone);
	for (unsigned int i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		ok(!strcmp(load(&r, false, ways[i]), alone), "%s: alone", ways[i]);
		load_served(&r, ways[i], real_rewriter);
		ok(!r.status && !strcmp(r.text, alone), "%s: results as alone", ways[i]);
		if (!ok(f.cl && f.cl->header.managed[GSCHED_TIER_BLOCK] >= 3,
			"%s: launches of tier block", ways[i]))
			printf("# %s\n", f.cl ? f.cl->header.why : "no page");
		fake_stop(&f);
	}
	refused(alone, "units", half_rewriter, "a unit is not parsed", "unit 2");
	refused(alone, "link", half_rewriter, "a unit is not parsed", "unit 2");
	/* the driver would compile it for a long time, and the program would wait */
	refused(alone, "data", long_rewriter, "a twin that is too long", "too long");
	ends_early();
	unlink(file);
	unlink(shm);
	return done();
}
