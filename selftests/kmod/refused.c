// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is refused changes nothing. After each wrong value of each file, and each wrong field of
 * each call, all that can be set or that the arbiter decides is read again. Before, everything is
 * given another value than its default, so that a reset is noticed, too.
 */
#include <dirent.h>

#include "common.h"
#include "kselftest_harness.h"
#include "netlink.h"

#define ROOT	CONFIG "/" DEV_NAME
#define DEVICE	SYSFS "/" DEV_NAME
#define TASKS	DEVICE "/tasks"
#define CG	"/sys/fs/cgroup/gsched-test"
#define SLOT	3
#define SEQ	9

/* As text, since that says best what is different */
struct state {
	size_t len;
	char text[24 << 10];
	struct gsched_arb_page arb;
};

FIXTURE(refused) {
	int admin, fd, other;
	struct gsched_attach req;
	const volatile struct gsched_arb_page *arb;
};

static struct state before, after;

static const char *const group_files[] = {
	"capsm.max", "capsm.min", "capsm.reserve", "gpu.weight", "gpu.priority", "gpu.band",
	"gpu.latency_target_us", "memory.max", "procs", "cgroup", "owner", "capsm.current",
	"capsm.plan", "memory.current", "memory.peak",
};

static const char *const device_files[] = {
	"mode", "policy", "plan", "switch_us", "max_overhead", "max_slowdown", "clients_max",
	"unmanaged_busy", "mode_current", "policy_fault", "sms", "uuid",
};

static const char *const task_files[] = {
	"capsm.max", "gpu.weight", "gpu.priority", "group", "lease", "band", "comm", "usage",
};

__attribute__((format(printf, 2, 3)))
static void say(struct state *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(s->text + s->len, sizeof(s->text) - s->len, format, args);
	va_end(args);
	if (n < 0 || s->len + n >= sizeof(s->text))
		abort();
	s->len += n;
}

static void say_file(struct state *s, const char *path)
{
	char text[4096], *time;
	int ret = slurp(text, sizeof(text), "%s", path);

	/* a plan's rest of time, and times used */
	time = strstr(text, " ms more");
	if (time)
		while (time > text && time[-1] != ' ')
			*--time = '#';
	time = strstr(text, "\nusage_usec");
	if (time)
		*time = '\0';
	say(s, "%s: %d %s\n", path, ret < 0 ? ret : 0, text);
}

static void say_names(struct state *s, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	say(s, "%s:", path);
	while (dir && (entry = readdir(dir)))
		say(s, " %s", entry->d_name);
	say(s, "\n");
	if (dir)
		closedir(dir);
}

static void look(const FIXTURE_DATA(refused) *self, struct state *s)
{
	static const char *const dirs[] = { ROOT, ROOT "/a", ROOT "/a/b" };
	struct gsched_info info = { .size = sizeof(info) };
	char path[256];
	unsigned int i, j;

	s->len = 0;
	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		for (j = 0; j < ARRAY_SIZE(group_files); j++) {
			snprintf(path, sizeof(path), "%s/%s", dirs[i], group_files[j]);
			say_file(s, path);
		}
	for (i = 0; i < ARRAY_SIZE(device_files); i++) {
		snprintf(path, sizeof(path), DEVICE "/%s", device_files[i]);
		say_file(s, path);
	}
	for (i = 0; i < ARRAY_SIZE(task_files); i++) {
		snprintf(path, sizeof(path), TASKS "/%d/%s", getpid(), task_files[i]);
		say_file(s, path);
	}
	say_file(s, DEBUGFS "/" DEV_NAME "/slots");
	say_names(s, CONFIG);
	say_names(s, ROOT);
	say_names(s, ROOT "/a");
	say_names(s, ROOT "/a/b");
	say_names(s, SYSFS);
	say_names(s, TASKS);
	say(s, "devices: %d %u\n", xioctl(self->admin, GSCHED_IOC_INFO, &info), info.devices);
	memcpy(&s->arb, (const void *)self->arb, sizeof(s->arb));
}

static const char *line_at(const char *text, size_t at, char *line, size_t size)
{
	while (at && text[at - 1] != '\n')
		at--;
	snprintf(line, size, "%.*s", (int)strcspn(text + at, "\n"), text + at);
	return line;
}

/* @ret is what @what came to */
static void refused(struct __test_metadata *_metadata, const FIXTURE_DATA(refused) *self,
		    const char *what, int expected, int ret)
{
	char old[512], new[512];
	size_t at = 0;

	EXPECT_EQ(expected, ret) TH_LOG("%s", what);
	look(self, &after);
	EXPECT_EQ(0, memcmp(&before.arb, &after.arb, sizeof(before.arb)))
		TH_LOG("%s: the arbiter's page changed", what);
	while (before.text[at] && before.text[at] == after.text[at])
		at++;
	EXPECT_EQ(before.text[at], after.text[at]) {
		TH_LOG("%s: \"%s\" became \"%s\"", what,
		       line_at(before.text, at, old, sizeof(old)),
		       line_at(after.text, at, new, sizeof(new)));
	}
	before = after;
}

#define REFUSED(_what, _expected, _ret) refused(_metadata, self, _what, _expected, _ret)

static int report(int fd)
{
	struct gsched_report req = {
		.size = sizeof(req), .flags = GSCHED_REPORT__ALL, .slice_us = 2048,
		.activity = GSCHED_ACTIVITY_BUSY, .prioritised = 1, .block_us = 100,
		.memory = 5 << 20,
	};

	return xioctl(fd, GSCHED_IOC_REPORT, &req);
}

FIXTURE_SETUP(refused)
{
	static const char *const set[][2] = {
		{ ROOT "/capsm.max", "15.5" }, { ROOT "/gpu.weight", "90" },
		{ ROOT "/a/capsm.max", "12.5" }, { ROOT "/a/capsm.min", "2" },
		{ ROOT "/a/capsm.reserve", "1" }, { ROOT "/a/gpu.weight", "300" },
		{ ROOT "/a/gpu.priority", "7" }, { ROOT "/a/gpu.latency_target_us", "9000000" },
		{ ROOT "/memory.max", "1T" }, { ROOT "/a/memory.max", "9M" },
		{ ROOT "/a/gpu.band", "red" }, { ROOT "/a/cgroup", "/gsched-test" },
		{ ROOT "/a/owner", "65534" }, { ROOT "/a/procs", "0" },
		{ ROOT "/a/b/owner", "65533" }, { ROOT "/a/b/cgroup", "/gsched-test/deep" },
		{ DEVICE "/mode", "spatial" },
		{ DEVICE "/policy", "srt" }, { DEVICE "/switch_us", "300" },
		{ DEVICE "/max_overhead", "70" }, { DEVICE "/max_slowdown", "300" },
		{ DEVICE "/clients_max", "77" },
	};
	unsigned int i;

	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	mkdir(CG, 0755);
	mkdir(CG "/deep", 0755);
	ASSERT_EQ(0, mkdir(ROOT "/a", 0755));
	ASSERT_EQ(0, mkdir(ROOT "/a/b", 0755));
	for (i = 0; i < ARRAY_SIZE(set); i++)
		ASSERT_EQ(0, put(set[i][1], "%s", set[i][0])) TH_LOG("%s", set[i][0]);
	self->fd = gopen();
	self->other = gopen();
	ASSERT_EQ(0, attach_band(self->fd, GSCHED_ATTACH_SLICE, 5, &self->req));
	self->arb = map_arb(self->fd, &self->req);
	ASSERT_NE(MAP_FAILED, self->arb);
	ASSERT_EQ(0, put("11.5", TASKS "/%d/capsm.max", getpid()));
	ASSERT_EQ(0, put("40", TASKS "/%d/gpu.weight", getpid()));
	ASSERT_EQ(0, put("5", TASKS "/%d/gpu.priority", getpid()));
	ASSERT_EQ(0, report(self->fd));
	ASSERT_EQ(0, submit(self->fd, SLOT, SEQ, GSCHED_SUBMIT_NOWAIT));
	look(self, &before);
}

FIXTURE_TEARDOWN(refused)
{
	munmap((void *)self->arb, self->req.arb_size);
	close(self->fd);
	close(self->other);
	rmdir(ROOT "/a/b");
	rmdir(ROOT "/a");
	rmdir(CG "/deep");
	rmdir(CG);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/* Files of the client begin with '@' */
static const char *path_of(const char *file)
{
	static char path[256];

	if (*file != '@')
		return file;
	snprintf(path, sizeof(path), TASKS "/%d/%s", getpid(), file + 1);
	return path;
}

struct bad {
	const char *file, *text;
	int error;
};

static void refuse_text(struct __test_metadata *_metadata, const FIXTURE_DATA(refused) *self,
			const char *file, const char *text, int error)
{
	char what[512];

	snprintf(what, sizeof(what), "%s = %.40s", path_of(file), text);
	refused(_metadata, self, what, -error, put(text, "%s", path_of(file)));
}

TEST_F_TIMEOUT(refused, numbers, 300)
{
	static const char *const numbers[] = {
		"\n", "x", "-1", "4x", "4 4", "1e3", "0x4", "1..5", "4\n5\n", "max 4", " 4",
		"99999999999999999999",
	};
	static const char *const files[] = {
		ROOT "/capsm.max", ROOT "/capsm.min", ROOT "/gpu.weight", ROOT "/a/capsm.max",
		ROOT "/a/capsm.min", ROOT "/a/capsm.reserve", ROOT "/a/gpu.weight",
		ROOT "/a/gpu.priority", ROOT "/a/gpu.latency_target_us", ROOT "/memory.max",
		ROOT "/a/memory.max", ROOT "/a/owner", DEVICE "/switch_us", DEVICE "/max_overhead",
		DEVICE "/max_slowdown", DEVICE "/clients_max", "@capsm.max", "@gpu.weight",
		"@gpu.priority",
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		for (j = 0; j < ARRAY_SIZE(numbers); j++)
			refuse_text(_metadata, self, files[i], numbers[j],
				    strlen(numbers[j]) > 19 && strstr(files[i], "clients_max") ?
				    ERANGE : EINVAL);
}

TEST_F_TIMEOUT(refused, values, 300)
{
	static const struct bad bad[] = {
		{ ROOT "/a/capsm.max", "0", EINVAL }, { ROOT "/a/capsm.max", "17", EINVAL },
		{ ROOT "/a/capsm.max", "16.001", EINVAL }, { ROOT "/a/capsm.max", "auto", EINVAL },
		{ ROOT "/a/capsm.min", "17", EINVAL }, { ROOT "/a/capsm.min", "auto", EINVAL },
		{ ROOT "/a/capsm.reserve", "17", EINVAL },
		{ ROOT "/a/capsm.reserve", "max", EINVAL },
		{ ROOT "/a/gpu.weight", "0", EINVAL }, { ROOT "/a/gpu.weight", "1.5", EINVAL },
		{ ROOT "/a/gpu.weight", "10001", EINVAL }, { ROOT "/a/gpu.weight", "max", EINVAL },
		{ ROOT "/a/gpu.priority", "100", EINVAL },
		{ ROOT "/a/gpu.priority", "max", EINVAL },
		{ ROOT "/a/gpu.latency_target_us", "10000001", EINVAL },
		{ ROOT "/a/gpu.latency_target_us", "max", EINVAL },
		{ ROOT "/a/memory.max", "K", EINVAL }, { ROOT "/a/memory.max", "4P", EINVAL },
		{ ROOT "/a/memory.max", "4KB", EINVAL }, { ROOT "/a/memory.max", "1.5G", EINVAL },
		{ ROOT "/a/memory.max", "1025T", EINVAL },
		{ ROOT "/a/memory.max", "1125899906842625", EINVAL },
		{ ROOT "/a/memory.max", "18014398509481985K", EINVAL },
		{ ROOT "/a/memory.max", "auto", EINVAL },
		{ ROOT "/a/gpu.band", "Red", EINVAL }, { ROOT "/a/gpu.band", "a b", EINVAL },
		{ ROOT "/a/gpu.band", "a/b", EINVAL }, { ROOT "/a/gpu.band", "a\n\n", EINVAL },
		{ ROOT "/a/gpu.band", "abcdefghijklmnopqrstuvwxyz012345", EINVAL },
		/* there is a client */
		{ ROOT "/a/gpu.band", "green", EBUSY }, { ROOT "/a/gpu.band", "\n", EBUSY },
		{ ROOT "/gpu.band", "green", EBUSY },
		{ ROOT "/a/procs", "x", EINVAL }, { ROOT "/a/procs", "-1", EINVAL },
		{ ROOT "/a/procs", "\n", EINVAL }, { ROOT "/a/procs", "1 1", EINVAL },
		{ ROOT "/a/procs", "4194304", ESRCH }, { ROOT "/a/b/procs", "4194304", ESRCH },
		{ ROOT "/a/cgroup", "gsched-test", EINVAL },
		{ ROOT "/a/cgroup", "/no/such/cgroup", ENOENT },
		{ ROOT "/a/b/cgroup", "/gsched-test", EBUSY },
		{ ROOT "/a/b/cgroup", "deep", EINVAL },
		{ ROOT "/a/b/cgroup", "/gsched-test/no", ENOENT },
		{ ROOT "/cgroup", "/gsched-test", EBUSY },
		{ ROOT "/a/owner", "4294967295", EINVAL },
		{ ROOT "/a/owner", "4294967296", EINVAL },
		{ ROOT "/owner", "65534", EINVAL },
		{ DEVICE "/mode", "both", EINVAL }, { DEVICE "/mode", "sliced", EINVAL },
		{ DEVICE "/mode", "Auto", EINVAL }, { DEVICE "/mode", "\n", EINVAL },
		{ DEVICE "/mode", "auto x", EINVAL },
		{ DEVICE "/policy", "none", EINVAL }, { DEVICE "/policy", "chaos", EINVAL },
		{ DEVICE "/policy", "plan", EINVAL }, { DEVICE "/policy", "HPF", EINVAL },
		{ DEVICE "/policy", "hpf wfq", EINVAL }, { DEVICE "/policy", "[hpf]", EINVAL },
		{ DEVICE "/policy", "\n", EINVAL },
		{ DEVICE "/policy", "a-name-much-longer-than-any-policy-has", EINVAL },
		{ DEVICE "/plan", "\n", EINVAL }, { DEVICE "/plan", "500", EINVAL },
		{ DEVICE "/plan", "0 a=1", EINVAL }, { DEVICE "/plan", "60001 a=1", EINVAL },
		{ DEVICE "/plan", "500 a", EINVAL }, { DEVICE "/plan", "500 a=0", EINVAL },
		{ DEVICE "/plan", "500 a=17", EINVAL }, { DEVICE "/plan", "500 a=1 a=2", EINVAL },
		{ DEVICE "/plan", "500 a=1 a/b=1", EINVAL }, { DEVICE "/plan", "500 /=1", EINVAL },
		{ DEVICE "/plan", "500 nowhere=1", ENOENT }, { DEVICE "/plan", "nonex", EINVAL },
		{ DEVICE "/switch_us", "9", EINVAL }, { DEVICE "/switch_us", "10001", EINVAL },
		{ DEVICE "/max_overhead", "4", EINVAL }, { DEVICE "/max_overhead", "501", EINVAL },
		{ DEVICE "/max_slowdown", "99", EINVAL },
		{ DEVICE "/max_slowdown", "1001", EINVAL },
		{ DEVICE "/clients_max", "4294967296", ERANGE },
		{ DEVICE "/unmanaged_busy", "\n", EINVAL }, { DEVICE "/unmanaged_busy", "2", EINVAL },
		{ DEVICE "/unmanaged_busy", "x", EINVAL }, { DEVICE "/unmanaged_busy", "-1", EINVAL },
		{ "@capsm.max", "0", EINVAL }, { "@capsm.max", "17", EINVAL },
		{ "@gpu.weight", "0", EINVAL }, { "@gpu.weight", "10001", EINVAL },
		{ "@gpu.priority", "100", EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		refuse_text(_metadata, self, bad[i].file, bad[i].text, bad[i].error);
}

/* While a plan is in force, and while programs that gsched does not see are busy */
TEST_F(refused, values_beside_a_plan)
{
	static const struct bad bad[] = {
		{ DEVICE "/plan", "500", EINVAL }, { DEVICE "/plan", "0 a=1", EINVAL },
		{ DEVICE "/plan", "500 a=17", EINVAL }, { DEVICE "/plan", "500 a=1 a=2", EINVAL },
		{ DEVICE "/plan", "500 nowhere=1", ENOENT },
		{ DEVICE "/policy", "none", EINVAL }, { DEVICE "/policy", "plan", EINVAL },
	};
	static const char *const texts[] = { "\n", "2", "x", "-1" };
	unsigned int i;
	char text[16];

	ASSERT_EQ(0, put("60000 a=4", DEVICE "/plan"));
	look(self, &before);
	ASSERT_NE(NULL, strstr(before.text, " [plan]"));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		refuse_text(_metadata, self, bad[i].file, bad[i].text, bad[i].error);
	ASSERT_EQ(0, put("none", DEVICE "/plan"));
	/* with another band turns are taken: only the file is looked at */
	ASSERT_EQ(0, put("1", DEVICE "/unmanaged_busy"));
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		EXPECT_EQ(-EINVAL, put(texts[i], DEVICE "/unmanaged_busy"));
		slurp(text, sizeof(text), DEVICE "/unmanaged_busy");
		EXPECT_STREQ("1", text);
	}
}

/* A NUL ends the text for whoever parses it: what is behind it would not be looked at */
TEST_F_TIMEOUT(refused, shapes, 300)
{
	static const struct { const char *file, *good; } files[] = {
		{ ROOT "/a/capsm.max", "3" }, { ROOT "/a/capsm.min", "3" },
		{ ROOT "/a/capsm.reserve", "3" }, { ROOT "/a/gpu.weight", "3" },
		{ ROOT "/a/gpu.priority", "3" }, { ROOT "/a/gpu.band", "red" },
		{ ROOT "/a/gpu.latency_target_us", "3" }, { ROOT "/a/memory.max", "3G" },
		{ ROOT "/a/procs", "0" }, { ROOT "/a/cgroup", "/" }, { ROOT "/a/owner", "3" },
		{ DEVICE "/mode", "temporal" }, { DEVICE "/policy", "hpf" },
		{ DEVICE "/plan", "500 a=3" }, { DEVICE "/switch_us", "400" },
		{ DEVICE "/max_overhead", "80" }, { DEVICE "/max_slowdown", "400" },
		{ DEVICE "/clients_max", "80" }, { DEVICE "/unmanaged_busy", "1" },
		{ "@capsm.max", "3" }, { "@gpu.weight", "3" }, { "@gpu.priority", "3" },
	};
	char big[3000], text[32], what[512];
	unsigned int i;
	int fd, ret;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		refuse_text(_metadata, self, files[i].file, big, EINVAL);
		snprintf(what, sizeof(what), "%s = %s and a NUL", path_of(files[i].file),
			 files[i].good);
		memset(text, 0, sizeof(text));
		strcpy(text, files[i].good);
		text[strlen(text) + 1] = 'x';
		fd = open(path_of(files[i].file), O_WRONLY | O_CLOEXEC);
		ASSERT_LE(0, fd) TH_LOG("%s", what);
		ret = write(fd, text, strlen(text) + 2) < 0 ? -errno : 0;
		close(fd);
		REFUSED(what, -EINVAL, ret);
	}
}

/* By their modes, which root passes, or by themselves */
TEST_F(refused, read_only_files)
{
	static const char *const files[] = {
		CONFIG "/features", ROOT "/a/capsm.current", ROOT "/a/capsm.plan",
		ROOT "/a/gpu.stat", ROOT "/a/gpu.pressure", ROOT "/a/gpu.events",
		ROOT "/a/gpu.preemption", ROOT "/a/memory.current", ROOT "/a/memory.peak",
		DEVICE "/uuid", DEVICE "/sms", DEVICE "/mode_current",
		DEVICE "/policy_fault", DEVICE "/stat", DEVICE "/events", "@comm", "@group",
		"@lease", "@usage", "@preemption", "@managed", "@unmanaged", "@resumable", "@wings",
		"@band", "@passed", "@held_ns", "@paced_ns", "@why",
		DEBUGFS "/" DEV_NAME "/slots", DEBUGFS "/" DEV_NAME "/bands",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		ASSERT_EQ(0, access(path_of(files[i]), F_OK)) TH_LOG("%s", files[i]);
		REFUSED(files[i], 1, put("1", "%s", path_of(files[i])) < 0);
	}
}

static int make(const char *path)
{
	return mkdir(path, 0755) ? -errno : 0;
}

static int drop(const char *path)
{
	return rmdir(path) ? -errno : 0;
}

TEST_F(refused, directories)
{
	REFUSED("a second a", -EEXIST, make(ROOT "/a"));
	REFUSED("a blank", -EINVAL, make(ROOT "/x y"));
	REFUSED("no parent", -ENOENT, make(ROOT "/nowhere/c"));
	REFUSED("a file's name", -EEXIST, make(ROOT "/a/procs"));
	REFUSED("a device", -EPERM, make(CONFIG "/gpu9"));
	REFUSED("a group below", -ENOTEMPTY, drop(ROOT "/a"));
	REFUSED("the root group", -EPERM, drop(ROOT));
}

static int nobody_writes(void *arg)
{
	return put("1", "%s", (const char *)arg);
}

/* The files of a client are its user's, who may only lower what they say */
static int nobody_raises(void *arg)
{
	return put("12", "%s", (const char *)arg);
}

static int nobody_makes(void *arg)
{
	return make(ROOT "/b");
}

/* Group a is nobody's: its procs may be written, by whoever owns the process */
TEST_F(refused, rights)
{
	static const struct { const char *file; int error; } files[] = {
		{ ROOT "/a/capsm.max", EACCES }, { ROOT "/a/capsm.min", EACCES },
		{ ROOT "/a/capsm.reserve", EACCES }, { ROOT "/a/gpu.weight", EACCES },
		{ ROOT "/a/gpu.priority", EACCES }, { ROOT "/a/gpu.band", EACCES },
		{ ROOT "/a/gpu.latency_target_us", EACCES }, { ROOT "/a/memory.max", EACCES },
		{ ROOT "/a/cgroup", EACCES },
		{ ROOT "/a/owner", EACCES }, { ROOT "/a/procs", EPERM }, { ROOT "/procs", EACCES },
		{ DEVICE "/mode", EACCES }, { DEVICE "/policy", EACCES },
		{ DEVICE "/plan", EACCES }, { DEVICE "/switch_us", EACCES },
		{ DEVICE "/max_overhead", EACCES }, { DEVICE "/max_slowdown", EACCES },
		{ DEVICE "/clients_max", EACCES }, { DEVICE "/unmanaged_busy", EACCES },
	};
	static const char *const own[] = { "@capsm.max", "@gpu.priority" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		REFUSED(files[i].file, -files[i].error,
			as_nobody(nobody_writes, (void *)files[i].file));
	for (i = 0; i < ARRAY_SIZE(own); i++) {
		char path[256];

		strcpy(path, path_of(own[i]));
		REFUSED(own[i], -EACCES, as_nobody(nobody_raises, path));
		ASSERT_EQ(0, chown(path, 65534, 65534));
		REFUSED(own[i], -EPERM, as_nobody(nobody_raises, path));
	}
	REFUSED("mkdir", -EACCES, as_nobody(nobody_makes, NULL));
}

/* The request is not written to either */
static void refuse_call(struct __test_metadata *_metadata, const FIXTURE_DATA(refused) *self,
			int fd, unsigned long nr, const void *req, size_t size, int error,
			const char *what)
{
	unsigned char sent[512] = { 0 };

	memcpy(sent, req, size);
	refused(_metadata, self, what, -error, xioctl(fd, nr, sent));
	EXPECT_EQ(0, memcmp(sent, req, size)) TH_LOG("%s: the request was written to", what);
}

/* One field of a request that is else good */
#define FIELD(_fd, _nr, _good, _field, _value, _error) do { \
	typeof(_good) _req = _good; \
	_req._field = _value; \
	refuse_call(_metadata, self, _fd, _nr, &_req, sizeof(_req), _error, \
		    #_nr " " #_field " = " #_value); \
} while (0)

TEST_F(refused, sizes_of_calls)
{
#define EXACTLY(type) sizeof(struct type), sizeof(struct type)
	/* least: of an older structure that is accepted, too */
	static const struct { unsigned long nr; unsigned int size, least; } calls[] = {
		{ GSCHED_IOC_INFO, EXACTLY(gsched_info) },
		{ GSCHED_IOC_DEVICE_ADD, EXACTLY(gsched_device_add) },
		{ GSCHED_IOC_DEVICE_DEL, EXACTLY(gsched_device_del) },
		{ GSCHED_IOC_ATTACH, EXACTLY(gsched_attach) },
		{ GSCHED_IOC_SUBMIT, EXACTLY(gsched_submit) },
		{ GSCHED_IOC_COMPLETE, EXACTLY(gsched_complete) },
		{ GSCHED_IOC_REPORT, sizeof(struct gsched_report),
		  offsetof(struct gsched_report, __reserved) },
	};
#undef EXACTLY
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		union {
			unsigned int size;
			unsigned char bytes[256];
		} req = { .size = 0 };

		refuse_call(_metadata, self, self->fd, calls[i].nr, &req, sizeof(req), EINVAL,
			    "no size");
		req.size = calls[i].least - 1;
		refuse_call(_metadata, self, self->fd, calls[i].nr, &req, sizeof(req), EINVAL,
			    "short");
		req.size = calls[i].size + 8;
		req.bytes[calls[i].size + 7] = 1;
		refuse_call(_metadata, self, self->fd, calls[i].nr, &req, sizeof(req), E2BIG,
			    "tail");
		req.size = 1 << 30;
		refuse_call(_metadata, self, self->fd, calls[i].nr, &req, sizeof(req), E2BIG,
			    "huge");
		REFUSED("null", -EFAULT, xioctl(self->fd, calls[i].nr, NULL));
		REFUSED("kernel", -EFAULT, xioctl(self->fd, calls[i].nr, (void *)-8UL));
	}
}

TEST_F(refused, calls_about_devices)
{
	static const unsigned char none[GSCHED_UUID_SIZE] = "no such device!";
	struct gsched_info info = { .size = sizeof(info) };
	struct gsched_device_add add = { .size = sizeof(add), .sms = 4, .name = "other" };
	struct gsched_device_del del = { .size = sizeof(del) };

	FIELD(self->admin, GSCHED_IOC_INFO, info, flags, 1, EOPNOTSUPP);
	FIELD(self->admin, GSCHED_IOC_INFO, info, __reserved, 1, EOPNOTSUPP);
	memcpy(add.uuid, none, sizeof(none));
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, flags, 1, EOPNOTSUPP);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, __reserved, 1, EOPNOTSUPP);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, sms, 0, EINVAL);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, sms, GSCHED_SMS_MAX + 1, EINVAL);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, name[0], 0, EINVAL);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, name[0], '/', EINVAL);
	FIELD(self->admin, GSCHED_IOC_DEVICE_ADD, add, name[4], 'R', EINVAL);
	strcpy(add.name, DEV_NAME);
	refuse_call(_metadata, self, self->admin, GSCHED_IOC_DEVICE_ADD, &add, sizeof(add), EEXIST,
		    "add: a name that is taken");
	memset(add.name, 'x', sizeof(add.name));
	refuse_call(_metadata, self, self->admin, GSCHED_IOC_DEVICE_ADD, &add, sizeof(add), EINVAL,
		    "add: a name without an end");
	strcpy(add.name, "other");
	memcpy(add.uuid, dev_uuid, sizeof(dev_uuid));
	refuse_call(_metadata, self, self->admin, GSCHED_IOC_DEVICE_ADD, &add, sizeof(add), EEXIST,
		    "add: a UUID that is taken");
	memcpy(del.uuid, dev_uuid, sizeof(dev_uuid));
	refuse_call(_metadata, self, self->admin, GSCHED_IOC_DEVICE_DEL, &del, sizeof(del), EBUSY,
		    "delete: used");
	FIELD(self->admin, GSCHED_IOC_DEVICE_DEL, del, flags, GSCHED_DEVICE_DEL__ALL + 1,
	      EOPNOTSUPP);
	/* the groups are in the way, also of force */
	FIELD(self->admin, GSCHED_IOC_DEVICE_DEL, del, flags, GSCHED_DEVICE_DEL_FORCE, EBUSY);
	memcpy(del.uuid, none, sizeof(none));
	refuse_call(_metadata, self, self->admin, GSCHED_IOC_DEVICE_DEL, &del, sizeof(del), ENOENT,
		    "delete: no such device");
}

TEST_F(refused, calls_of_a_client)
{
	struct gsched_attach join = { .size = sizeof(join) };
	struct gsched_submit task = { .size = sizeof(task), .flags = GSCHED_SUBMIT_NOWAIT,
				      .slot = 1, .seq = 1, .blocks_per_sm = 1, .blocks = 1000 };
	struct gsched_complete done = { .size = sizeof(done), .slot = SLOT, .seq = SEQ };
	struct gsched_report tell = {
		.size = sizeof(tell), .flags = GSCHED_REPORT__ALL, .slice_us = 35,
		.slice_error = 5, .block_us = 77, .memory = 6 << 20,
	};

	FIELD(self->other, GSCHED_IOC_ATTACH, join, flags, 0, ENOENT);
	memcpy(join.uuid, dev_uuid, sizeof(dev_uuid));
	FIELD(self->other, GSCHED_IOC_ATTACH, join, flags, GSCHED_ATTACH__ALL + 1, EOPNOTSUPP);
	FIELD(self->other, GSCHED_IOC_ATTACH, join, __reserved, 1, EOPNOTSUPP);
	FIELD(self->other, GSCHED_IOC_ATTACH, join, uuid[0], 0, ENOENT);
	FIELD(self->fd, GSCHED_IOC_ATTACH, join, flags, GSCHED_ATTACH_MPS, EBUSY);
	FIELD(self->other, GSCHED_IOC_SUBMIT, task, flags, 0, ENOTCONN);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, flags, GSCHED_SUBMIT__ALL + 1, EOPNOTSUPP);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, slot, GSCHED_SLOTS, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, slot, ~0u, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, slot, SLOT, EBUSY);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, seq, 0, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, tier, GSCHED_TIER_SLICE, EOPNOTSUPP);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, tier, GSCHED_TIER_LAUNCH + 1, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, intensity, GSCHED_INTENSITY__MAX + 1, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, blocks_per_sm, 0, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, blocks_per_sm, 33, EINVAL);
	FIELD(self->fd, GSCHED_IOC_SUBMIT, task, blocks, 0, EINVAL);
	FIELD(self->other, GSCHED_IOC_COMPLETE, done, flags, 0, ENOTCONN);
	FIELD(self->fd, GSCHED_IOC_COMPLETE, done, flags, GSCHED_COMPLETE__ALL + 1, EOPNOTSUPP);
	FIELD(self->fd, GSCHED_IOC_COMPLETE, done, slot, GSCHED_SLOTS, EINVAL);
	FIELD(self->fd, GSCHED_IOC_COMPLETE, done, slot, SLOT + 1, ENOENT);
	FIELD(self->fd, GSCHED_IOC_COMPLETE, done, seq, SEQ + 1, ENOENT);
	FIELD(self->other, GSCHED_IOC_REPORT, tell, flags, 0, ENOTCONN);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, flags, GSCHED_REPORT__ALL + 1, EOPNOTSUPP);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, activity, GSCHED_ACTIVITY_BUSY + 1, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, slice_error, 4096, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, prioritised, 2, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, __reserved, 1, EOPNOTSUPP);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, flags, GSCHED_REPORT_ASKS, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, memory, GSCHED_MEMORY_MAX + 1, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, memory, ~0ULL, EINVAL);
	FIELD(self->fd, GSCHED_IOC_REPORT, tell, memory, (9 << 20) + 1, EDQUOT);
	/* and all of that is good without the wrong field */
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_REPORT, &tell));
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_SUBMIT, &task));
	EXPECT_EQ(0, xioctl(self->fd, GSCHED_IOC_COMPLETE, &done));
	EXPECT_EQ(0, xioctl(self->other, GSCHED_IOC_ATTACH, &join));
}

static int write_text(int fd, const char *text)
{
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Each on the same file, which has no trigger afterwards */
TEST_F(refused, triggers)
{
	static const char *const bad[] = {
		"", "some", "some 1", "some 100000 499999", "some 0 500000",
		"some 500001 500000", "any 100000 500000", "some 100000 500000 1",
	};
	int pressure = open(ROOT "/a/gpu.pressure", O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = self->other, .events = POLLIN | POLLPRI };
	char text[128];
	unsigned int i;

	ASSERT_LE(0, pressure);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		snprintf(text, sizeof(text), "%d %s", pressure, bad[i]);
		REFUSED(text, -EINVAL, write_text(self->other, text));
		/* of a file that is neither a client's nor a trigger's */
		EXPECT_EQ(1, poll(&p, 1, 0)) TH_LOG("%s", text);
		EXPECT_EQ(POLLERR, p.revents) TH_LOG("%s", text);
	}
	snprintf(text, sizeof(text), "%d some 100000 500000", pressure);
	REFUSED("of a client", -EBUSY, write_text(self->fd, text));
	EXPECT_EQ(0, write_text(self->other, text));
	REFUSED("a second one", -EBUSY, write_text(self->other, text));
	EXPECT_EQ(0, poll(&p, 1, 0));
	close(pressure);
}

static int answer(int nl, const struct nl_request *req)
{
	return nl_send(nl, req, req->head.nlmsg_len) ?: nl_answers(nl, NULL, NULL, NULL);
}

/* Dumps have one attribute; nothing can be set */
TEST_F(refused, netlink)
{
	int nl = nl_open(), family = nl_family(nl, NULL, NULL), i;
	const uint32_t word = 1;
	struct nl_request req;
	char what[64];

	ASSERT_LT(0, family);
	for (i = 1; i <= GSCHED_A_MAX + 1; i++) {
		req = nl_request(family, GSCHED_CMD_TASK_GET, NLM_F_DUMP);
		nl_add(&req, i, &word, sizeof(word));
		snprintf(what, sizeof(what), "attribute %d", i);
		REFUSED(what, i == GSCHED_A_DEVICE ? -ENODEV : -EINVAL, answer(nl, &req));
	}
	for (i = 0; i <= GSCHED_CMD_MAX + 1; i++) {
		req = nl_request(family, i, 0);
		snprintf(what, sizeof(what), "command %d", i);
		REFUSED(what, -EOPNOTSUPP, answer(nl, &req));
	}
	close(nl);
}

TEST_HARNESS_MAIN
