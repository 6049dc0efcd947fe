// SPDX-License-Identifier: GPL-2.0-only
/* Every file that the module makes is in docs/abi with its mode, and nothing else is there. */
#include <dirent.h>

#include "common.h"
#include "kselftest_harness.h"

#define GROUP	CONFIG "/" DEV_NAME "/a"
#define DEVICE	SYSFS "/" DEV_NAME

FIXTURE(abi) {
	int admin, fd;
	char task[128];
};

FIXTURE_SETUP(abi)
{
	self->admin = test_device();
	ASSERT_GE(self->admin, 0);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	self->fd = gopen();
	ASSERT_EQ(0, attach(self->fd, 0));
	snprintf(self->task, sizeof(self->task), DEVICE "/tasks/%d", getpid());
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
	rmdir(GROUP);
	EXPECT_EQ(0, del_device(self->admin, dev_uuid));
	close(self->admin);
}

/* The driver core's own */
static bool is_common(const char *name)
{
	return !strcmp(name, "uevent") || !strcmp(name, "dev");
}

/* The mode that @page says for the file @name of directory @what; -1 it is not there */
static int documented(const char *page, const char *what, const char *name)
{
	size_t len = strlen(what);
	FILE *f = fopen(page, "re");
	char line[512];
	int mode = -1;
	bool here = false;

	if (!f)
		return -errno;
	while (mode < 0 && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "What:\t\t", 7)) {
			here = !strncmp(line + 7, what, len) && line[7 + len] == '/' &&
			       !strcmp(line + 8 + len, name);
		} else if (here && !strncmp(line, "Access:\t\t", 9)) {
			mode = (int)strtol(line + 9, NULL, 8);
		}
	}
	fclose(f);
	return mode;
}

static int count_documented(const char *page, const char *what)
{
	size_t len = strlen(what);
	FILE *f = fopen(page, "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !strncmp(line, "What:\t\t", 7) && !strncmp(line + 7, what, len) &&
		     line[7 + len] == '/' && !strchr(line + 8 + len, '/');
	if (f)
		fclose(f);
	return n;
}

/* Returns how many files of @dir are wrong, or documented and not there; each is printed */
static int wrong(const char *dir, const char *page, const char *what)
{
	int bad = 0, n = 0, mode;
	struct dirent *entry;
	DIR *d = opendir(dir);
	char path[512];
	struct stat st;

	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (lstat(path, &st) || !S_ISREG(st.st_mode) || is_common(entry->d_name))
			continue;
		n++;
		mode = documented(page, what, entry->d_name);
		if (mode != (int)(st.st_mode & 07777)) {
			printf("# %s: mode %o, %s says %o\n", path, st.st_mode & 07777, page, mode);
			bad++;
		}
	}
	closedir(d);
	if (n != count_documented(page, what)) {
		printf("# %s: %d files, %s has %d\n", dir, n, page, count_documented(page, what));
		bad++;
	}
	return bad;
}

TEST_F(abi, device)
{
	EXPECT_EQ(0, wrong(DEVICE, "docs/abi/sysfs-class-gsched", "/sys/class/gsched/<device>"));
}

TEST_F(abi, client)
{
	EXPECT_EQ(0, wrong(self->task, "docs/abi/sysfs-class-gsched",
			   "/sys/class/gsched/<device>/tasks/<pid>"));
}

TEST_F(abi, tables)
{
	EXPECT_EQ(0, wrong(DEBUGFS "/" DEV_NAME, "docs/abi/debugfs-gsched", DEBUGFS "/<device>"));
}

TEST_F(abi, group)
{
	EXPECT_EQ(0, wrong(GROUP, "docs/abi/configfs-gsched",
			   "/sys/kernel/config/gsched/<device>/<group>"));
}

TEST_F(abi, features)
{
	char text[256];

	EXPECT_EQ(0, wrong(CONFIG, "docs/abi/configfs-gsched", "/sys/kernel/config/gsched"));
	slurp(text, sizeof(text), CONFIG "/features");
	EXPECT_STREQ("lease force bands memory", text);
	EXPECT_EQ(-EACCES, put("lease", CONFIG "/features"));
	/* a device's directory would be there, too */
	EXPECT_EQ(-EEXIST, add_device(self->admin, "features",
				      (const unsigned char *)"some-other-gpu\0", 4));
}

TEST_HARNESS_MAIN
