// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A machine with two GPUs, from end to end: gschedd with its own arbiter, the interposer, and a
 * program with a context on each. It is managed on both, by its group on each, and neither disturbs
 * the other. On the simulated machine CUDA's order of the devices is the PCI bus's backwards, so a
 * program's device 0 is gpu1 unless it asks for another order. Run from the root of the tree.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "libgsched/include/gsched.h"
#include "run.h"

#define SMS	8
#define CAPSM	1024

static char ctl[] = BUILD "/bin/gschedctl", program[] = BUILD "/test/libgsched/devices-app";
static char app[] = BUILD "/test/libgsched/app", ptx[] = "selftests/libgsched/kernels.ptx";
static char dir[] = "/tmp/gsched-devices-XXXXXX", sock[64], cache[64];
static pid_t gschedd;
static struct gsched *admin;

/* ---- gschedd ---- */

static bool gschedd_start(void)
{
	gschedd = fork();
	if (!gschedd) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(BUILD "/bin/gschedd", "gschedd", "--socket", sock, "--cache", cache,
		      "--driver", BUILD "/vgpu/libcuda.so.1", "--embedded", "--log-level",
		      "error", NULL);
		_exit(127);
	}
	for (unsigned int i = 0; i < 20000 && !(admin = gsched_open(NULL)); i++)
		usleep(1000);
	return admin;
}

static void gschedd_stop(void)
{
	int status;

	gsched_close(admin);
	admin = NULL;
	kill(gschedd, SIGTERM);
	waitpid(gschedd, &status, 0);
	ok(!status, "gschedd ends cleanly");
}

static void group(const char *device, const char *name, const char *file, const char *value)
{
	if (gsched_group_create(admin, device, name) && errno != EEXIST)
		abort();
	if (file && gsched_group_set(admin, device, name, file, value))
		abort();
}

/* What gschedd says of a program on one device */
struct state {
	bool there;
	char group[32];
	unsigned int block, launches;	/* @launches: of any kind */
	unsigned int unmanaged, limit, launched, left, slice_us, applied_us, slice_error;
	unsigned int evictions;		/* of its group */
};

static unsigned int number(const cJSON *in, const char *name)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(in, name);

	return n ? (unsigned int)n->valuedouble : 0;
}

static const char *text(const cJSON *in, const char *name)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(in, name));

	return s ? s : "";
}

static void look(const cJSON *device, pid_t pid, struct state *s)
{
	const cJSON *o, *slot;

	cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(device, "clients")) {
		if (number(o, "pid") != (unsigned int)pid)
			continue;
		s->there = true;
		snprintf(s->group, sizeof(s->group), "%s", text(o, "group"));
		s->block = number(cJSON_GetObjectItemCaseSensitive(o, "managed"), "block");
		s->unmanaged = number(o, "unmanaged");
		s->launches = s->block + s->unmanaged + number(o, "passed") +
			      number(cJSON_GetObjectItemCaseSensitive(o, "managed"), "launch");
		s->slice_us = number(o, "slice_us");
		s->applied_us = number(o, "applied_us");
		s->slice_error = number(o, "slice_error");
		cJSON_ArrayForEach(slot, cJSON_GetObjectItemCaseSensitive(o, "slots")) {
			s->limit = number(slot, "limit");
			s->launched = number(slot, "launched");
			s->left = number(slot, "left");
		}
	}
	cJSON_ArrayForEach(o, cJSON_GetObjectItemCaseSensitive(device, "groups"))
		if (s->there && !strcmp(text(o, "path"), s->group))
			s->evictions = number(cJSON_GetObjectItemCaseSensitive(o, "gpu.stat"),
					      "evictions");
}

static struct state state_of(const char *device, pid_t pid)
{
	char *json = gsched_status(admin);
	cJSON *root = cJSON_Parse(json ? json : "");
	const cJSON *d;
	struct state s = { 0 };

	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(root, "devices"))
		if (!strcmp(text(d, "name"), device))
			look(d, pid, &s);
	cJSON_Delete(root);
	free(json);
	return s;
}

static bool comes_to(const char *device, pid_t pid, bool (*is)(const struct state *s))
{
	struct state s;

	for (unsigned int i = 0; i < 15000; i++, usleep(2000)) {
		s = state_of(device, pid);
		if (is(&s))
			return true;
	}
	printf("# %s: there %d, group %s, block %u, unmanaged %u, limit %u, slice %u of %u, "
	       "error %u, evictions %u\n", device, s.there, s.group, s.block, s.unmanaged, s.limit,
	       s.applied_us, s.slice_us, s.slice_error, s.evictions);
	return false;
}

static bool has_two(const struct state *s) { return s->block > 2 && s->limit == 2 * CAPSM; }
static bool has_five(const struct state *s) { return s->block > 2 && s->limit == 5 * CAPSM; }
static bool has_all(const struct state *s) { return s->block > 2 && s->limit == SMS * CAPSM; }
static bool has_less(const struct state *s) { return s->limit && s->limit < SMS * CAPSM; }
static bool has_left(const struct state *s)
{
	return s->launched && s->left == s->launched && !s->limit;
}

static bool is_there(const struct state *s) { return s->there; }
static bool is_gone(const struct state *s) { return !s->there; }
static bool has_slice(const struct state *s)
{
	return s->there && s->applied_us && !s->slice_error;
}

/* ---- programs ---- */

static void start_in(struct run *r, char *name)
{
	char *const what[] = { ctl, "run", "--strict", "--group", name, "--", program, ptx, NULL };

	start(r, false, what);
}

/* Each of @orders is done, and answered, before the next */
static bool obeys(struct run *r, const char *orders)
{
	char order[3] = "", last[16];

	for (; *orders; orders += 2) {
		size_t from = r->len;

		memcpy(order, orders, 2);
		tell(r, order);
		snprintf(last, sizeof(last), " %c", order[1]);
		if (!answers(r, from, last) || !answers(r, from, "\n")) {
			printf("# %s is not answered\n", order);
			return false;
		}
	}
	return true;
}

/* Does @r end with what the same orders give without gsched? */
static void ends_as_alone(struct run *r, const char *orders, const char *what)
{
	static char *const native[] = { program, ptx, NULL };
	struct run alone;

	tell(r, "q");
	finish(r);
	start(&alone, false, native);
	if (!obeys(&alone, orders))
		printf("# alone it fails\n");
	tell(&alone, "q");
	finish(&alone);
	same(r, &alone, what);
}

static void quotas(void)
{
	struct state zero, one;
	struct run r;

	group("gpu0", "few", "capsm.max", "2");
	group("gpu1", "few", "capsm.max", "5");
	start_in(&r, "few");
	ok(obeys(&r, "n0n1s0s1"), "a program launches on two devices");
	ok(comes_to("gpu0", r.pid, has_two), "it has its group's two SMs of gpu0");
	ok(comes_to("gpu1", r.pid, has_five), "and five of gpu1");
	zero = state_of("gpu0", r.pid);
	one = state_of("gpu1", r.pid);
	ok(!strcmp(zero.group, "few") && !strcmp(one.group, "few"),
	   "gschedctl run has put it into the group on both");
	ok(obeys(&r, "r0r1t0t1"), "both go on");
	zero = state_of("gpu0", r.pid);
	one = state_of("gpu1", r.pid);
	ok(!zero.unmanaged && !one.unmanaged, "every launch is managed");
	ends_as_alone(&r, "n0n1s0s1r0r1t0t1", "quotas on two devices");
	ok(comes_to("gpu0", r.pid, is_gone) && comes_to("gpu1", r.pid, is_gone),
	   "it has left both");
}

static void eviction(void)
{
	char *const what[] = { ctl, "run", "--group", "top", "--", app, ptx, "asked", NULL };
	struct run low, top;

	group("gpu0", "low", NULL, NULL);
	group("gpu1", "low", NULL, NULL);
	group("gpu0", "top", "gpu.priority", "10");
	group("gpu1", "top", "gpu.priority", "10");
	start_in(&low, "low");
	obeys(&low, "n0n1s0s1");
	ok(comes_to("gpu0", low.pid, has_all) && comes_to("gpu1", low.pid, has_all),
	   "a program has all of two devices");
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	start(&top, false, what);
	unsetenv("CUDA_DEVICE_ORDER");
	unsetenv("CUDA_VISIBLE_DEVICES");
	says(&top, "ready\n");
	tell(&top, "r");
	ok(answers(&top, 0, "running\n"), "a more important one comes to gpu0");
	ok(comes_to("gpu0", low.pid, has_less), "and evicts the other there");
	ok(comes_to("gpu1", low.pid, has_all) && !state_of("gpu1", low.pid).evictions,
	   "but not on gpu1");
	ok(obeys(&low, "r0r1"), "which goes on with both");
	tell(&top, "x");
	ok(answers(&top, 0, "served\n"), "the important one is done");
	tell(&top, "q");
	finish(&top);
	ok(comes_to("gpu0", low.pid, has_all), "and the other has all of gpu0 again");
	obeys(&low, "t0t1");
	ends_as_alone(&low, "n0n1s0s1r0r1t0t1", "evicted on one of two devices");
}

/*
 * Calls that the driver lets wait for all contexts, with all their locks, or for that of another
 * device than the current one: tasks there, which are evicted and need wings to end, have to end
 * before it. The program's device 0 is gpu1.
 */
static void locks(const char *call, const char *what_for)
{
	char orders[] = "n0n1s0r0t0l0??w0";
	char *const what[] = { ctl, "run", "--group", "top", "--", app, ptx, "asked", NULL };
	struct run low, top;

	setenv("VGPU_LOCKS", "1", 1);
	setenv("GSCHED_QUIET_MS", "200", 1);
	if (gsched_device_set(admin, "gpu1", "mode", "temporal"))
		abort();
	start_in(&low, "low");
	obeys(&low, "n0n1s0r0t0");
	start(&top, false, what);
	says(&top, "ready\n");
	obeys(&low, "l0");
	tell(&top, "r");
	ok(answers(&top, 0, "running\n"), "another program has gpu1");
	ok(comes_to("gpu1", low.pid, has_left), "and one that uses both is evicted there");
	memcpy(orders + 12, call, 2);
	ok(obeys(&low, call), "%s nevertheless", what_for);
	tell(&top, "xq");
	finish(&top);
	ok(obeys(&low, "w0"), "and it goes on");
	ends_as_alone(&low, orders, "freed memory");
	gsched_device_set(admin, "gpu1", "mode", "spatial");
	unsetenv("VGPU_LOCKS");
	unsetenv("GSCHED_QUIET_MS");
}

/* One call that launches on both devices is a launch on each */
static void both(void)
{
	struct state before[2], s;
	struct run r;

	start_in(&r, "plain");
	obeys(&r, "n0n1");
	obeys(&r, "b0");
	before[0] = state_of("gpu0", r.pid);
	before[1] = state_of("gpu1", r.pid);
	ok(obeys(&r, "b0"), "one call launches on both devices");
	for (unsigned int i = 0; i < 2; i++) {
		s = state_of(i ? "gpu1" : "gpu0", r.pid);
		ok(s.launches == before[i].launches + 1 && !s.unmanaged,
		   "it is counted on gpu%u", i);
	}
	ends_as_alone(&r, "n0n1b0b0", "one call");
}

/* The contexts' ends: what is ours in them goes, and the other device does not notice. */
static void ends(void)
{
	static const char orders[] = "n0n1s0h1r0t0d0n0s0r0f1s1r1t0t1d1s0r0t0";
	struct run r;

	group("gpu0", "plain", NULL, NULL);
	group("gpu1", "plain", NULL, NULL);
	start_in(&r, "plain");
	ok(obeys(&r, "n0n1s0h1r0t0d0"), "a context goes while a kernel runs on the other device");
	ok(obeys(&r, "n0s0r0"), "there can be another one");
	ok(comes_to("gpu1", r.pid, has_all), "which is managed");
	ok(obeys(&r, "f1s1r1t0t1d1s0r0t0"), "the other device's goes, and this one goes on");
	ok(!state_of("gpu0", r.pid).unmanaged && !state_of("gpu1", r.pid).unmanaged,
	   "every launch was managed");
	ends_as_alone(&r, orders, "contexts that end");
}

/* On which device is a program that sees the devices @list in @order? */
static void sees(const char *list, const char *order, const char *device)
{
	static char *const what[] = {
		ctl, "run", "--group", "plain", "--", app, ptx, "asked", NULL,
	};
	struct run r;
	bool one;

	setenv("CUDA_VISIBLE_DEVICES", list, 1);
	if (order)
		setenv("CUDA_DEVICE_ORDER", order, 1);
	start(&r, false, what);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_DEVICE_ORDER");
	says(&r, "ready\n");
	tell(&r, "rx");
	says(&r, "served\n");
	one = comes_to(device, r.pid, is_there);
	ok(one && !state_of(!strcmp(device, "gpu0") ? "gpu1" : "gpu0", r.pid).there &&
	   !strcmp(state_of(device, r.pid).group, "plain"),
	   "CUDA_VISIBLE_DEVICES=%s%s%s: it is in its group on %s", list,
	   order ? ", CUDA_DEVICE_ORDER=" : "", order ? : "", device);
	tell(&r, "q");
	finish(&r);
}

static void uuid_of(unsigned int index, char uuid[64])
{
	char *json = gsched_status(admin);
	cJSON *root = cJSON_Parse(json ? json : "");
	const cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices");

	snprintf(uuid, 64, "GPU-%s", text(cJSON_GetArrayItem(devices, (int)index), "uuid"));
	cJSON_Delete(root);
	free(json);
}

static void visible(void)
{
	char uuid[2][64], only[64];

	sees("1", NULL, "gpu0");
	sees("1", "PCI_BUS_ID", "gpu1");
	sees("0,1", NULL, "gpu1");
	sees("1,0", "PCI_BUS_ID", "gpu1");
	for (unsigned int i = 0; i < 2; i++)
		uuid_of(i, uuid[i]);
	sees(uuid[0], NULL, "gpu0");
	sees(uuid[1], "PCI_BUS_ID", "gpu1");
	/* what tells them apart is behind "GPU-" and the first eight bytes */
	uuid[1][strlen("GPU-76677075-2d73-696d-") + 4] = '\0';
	sees(uuid[1], NULL, "gpu1");
	gschedd_stop();

	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	ok(gschedd_start() && gsched_devices(admin) == 1,
	   "a gschedd with CUDA_VISIBLE_DEVICES has the devices that it says");
	unsetenv("CUDA_VISIBLE_DEVICES");
	uuid_of(0, only);
	ok(!strncmp(only, uuid[1], strlen(uuid[1])), "by their place on the PCI bus");
	group(NULL, "plain", NULL, NULL);
	sees("0", NULL, "gpu0");
	gschedd_stop();
}

/* A MIG device has a UUID of its own; its channel groups are on its GPU, which has another one. */
static void mig(void)
{
	static char *const what[] = { "asked", NULL };
	char preload[256], cwd[200];
	struct run r;

	if (!getcwd(cwd, sizeof(cwd)))
		abort();
	setenv("VGPU_MIG", "1", 1);
	setenv("VGPU_MPS", "0", 1);
	gschedd_start();
	snprintf(preload, sizeof(preload), "%s/" BUILD "/vgpu/libvgpu-rm.so%s%s", cwd,
		 getenv("LD_PRELOAD") ? ":" : "", getenv("LD_PRELOAD") ? : "");
	setenv("LD_PRELOAD", preload, 1);
	start(&r, true, what);
	says(&r, "ready\n");
	tell(&r, "rx");
	ok(answers(&r, 0, "served\n"), "a program runs on a MIG device");
	ok(comes_to("gpu1", r.pid, has_slice),
	   "which is known by its UUID, and its time slice is set");
	tell(&r, "q");
	finish(&r);
	gschedd_stop();
}

int main(void)
{
	char clean[100];

	setenv("VGPU_SMS", "8", 1);
	setenv("VGPU_MPS", "1", 1);
	setenv("VGPU_DEVICES", "2", 1);
	/* kernels that are held for the test's sake close no SM to others */
	setenv("VGPU_CARVEOUT", "0", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_DEVICE_ORDER");
	if (!mkdtemp(dir))
		abort();
	setenv("VGPU_NAME", dir + strlen("/tmp/"), 1);
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	setenv("GSCHED_SOCKET", sock, 1);
	setenv("GSCHED_BACKEND", "daemon", 1);
	setenv("LD_LIBRARY_PATH", BUILD "/vgpu", 1);
	if (!gschedd_start()) {
		printf("Bail out! gschedd does not start\n");
		return 1;
	}
	quotas();
	eviction();
	locks("m1", "pinned memory of the other device can be freed");
	locks("x0", "memory of this device can be freed in the other one's context");
	locks("p0", "memory can be copied from this device to the other one");
	ends();
	both();
	visible();
	mig();
	snprintf(clean, sizeof(clean), "rm -rf %s /dev/shm/%s*", dir, dir + strlen("/tmp/"));
	if (system(clean))
		abort();
	return done();
}
