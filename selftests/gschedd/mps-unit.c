// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names, back-off, and directories that gschedd --mps takes or refuses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gschedd/mps_proc.h"
#include "harness.h"

static char top[64];

static const char *below(const char *name)
{
	static char path[4][256];
	static unsigned int next;

	snprintf(path[next % 4], sizeof(path[0]), "%s/%s", top, name);
	return path[next++ % 4];
}

static void refused(const char *path, int err, const char *text, const char *what)
{
	char reason[MPS_REASON] = "";

	is(mps_dir_prepare(path, reason, sizeof(reason)), err, "%s", what);
	ok(strstr(reason, text), "and it says so: %s", reason);
}

static void names(void)
{
	static const char *const bad[] = { "", "A", "a b", "a/b", "..", "a.", "\xc3\xa9", "a\n",
					   "abcdefghijklmnopqrstuvwxyz012345" };

	ok(mps_band_valid("blue") && mps_band_valid("a-b_9") &&
	   mps_band_valid("abcdefghijklmnopqrstuvwxyz01234"), "names");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!mps_band_valid(bad[i]), "no name, %zu", i);
	is(mps_backoff_s(0), 0, "no failure, no back-off");
	for (unsigned int i = 1; i <= 5; i++)
		is(mps_backoff_s(i), 1 << (i - 1), "failure %u", i);
	is(mps_backoff_s(6), 30, "and never more than 30 s");
	is(mps_backoff_s(4000000000u), 30, "however often");
}

static void programs(void)
{
	char buf[4096], path[256], small[4];

	close(open(below("tool"), O_CREAT | O_WRONLY, 0755));
	close(open(below("text"), O_CREAT | O_WRONLY, 0644));
	snprintf(path, sizeof(path), "relative:/nowhere:%s:/bin", top);
	ok(mps_find_program("tool", path, buf, sizeof(buf)) && !strcmp(buf, below("tool")),
	   "found in the path");
	ok(mps_find_program(below("tool"), NULL, buf, sizeof(buf)), "found by its path");
	ok(!mps_find_program("text", path, buf, sizeof(buf)),
	   "a file that is not executable is no program");
	ok(!mps_find_program("none", path, buf, sizeof(buf)) &&
	   !mps_find_program("tool", NULL, buf, sizeof(buf)) &&
	   !mps_find_program("tool", "", buf, sizeof(buf)), "what is not there is not found");
	ok(!mps_find_program(top, NULL, buf, sizeof(buf)), "a directory is no program");
	ok(!mps_find_program(below("tool"), NULL, small, sizeof(small)),
	   "nor is a name that is too long for the buffer");
}

static void directories(void)
{
	char reason[MPS_REASON] = "", longer[200];
	struct stat st;

	is(mps_dir_prepare(below("one/mps"), reason, sizeof(reason)), 0,
	   "made, with the directory above it");
	ok(!stat(below("one/mps"), &st) && (st.st_mode & 07777) == 0711,
	   "others may pass, not look");
	is(mps_dir_prepare(below("one/mps"), reason, sizeof(reason)), 0, "taken again");
	refused("mps", -EINVAL, "absolute", "a relative path");
	refused("/", -EINVAL, "absolute", "the root directory");
	refused(below("one/"), -EINVAL, "last", "a path with a slash at its end");
	if (symlink(below("one"), below("link")))
		perror("symlink");
	refused(below("link"), -ELOOP, "symbolic link", "a symbolic link");
	refused(below("text"), -ENOTDIR, "not a directory", "a file");
	refused(below("no/where/mps"), -ENOENT, "--mps-dir", "a directory that cannot be made");
	mkdir(below("open"), 0700);
	chmod(below("open"), 0777);
	refused(below("open/mps"), -EPERM, "sticky", "a directory above that others may write to");
	chmod(below("open"), 01777);
	is(mps_dir_prepare(below("open/mps"), reason, sizeof(reason)), 0,
	   "with the sticky bit it will do");
	chmod(below("open/mps"), 0770);
	refused(below("open/mps"), -EPERM, "chmod", "a directory that a group may write to");
	if (geteuid()) {
		skip("needs root", "another user's directory");
	} else {
		mkdir(below("other"), 0755);
		if (chown(below("other"), 65534, 65534))
			perror("chown");
		refused(below("other"), -EPERM, "uid 65534", "another user's directory");
		refused(below("other/mps"), -EPERM, "uid 65534", "a directory in another user's");
	}
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	refused(longer, -ENAMETOOLONG, "shorter", "a path that is too long");
}

static void identities(void)
{
	struct mps_id id = { .uid = geteuid(), .gid = getegid(), .band = "blue" };
	char reason[MPS_REASON] = "", line[MPS_REASON], longer[128];
	struct stat st;
	FILE *f;

	is(mps_id_prepare(&id, below("one/mps"), reason, sizeof(reason)), 0, "a user's directory");
	snprintf(longer, sizeof(longer), "%s/one/mps/%u/blue", top, (unsigned int)geteuid());
	ok(!strcmp(id.base, longer) && !strncmp(id.pipe, longer, strlen(longer)) &&
	   strstr(id.pipe, "/blue/pipe") && strstr(id.log, "/blue/log"), "its parts");
	*strrchr(longer, '/') = '\0';
	ok(!stat(longer, &st) && (st.st_mode & 07777) == 0700, "is for that user only");
	chmod(longer, 0755);
	ok(!mps_id_prepare(&id, below("one/mps"), reason, sizeof(reason)) && !stat(longer, &st) &&
	   (st.st_mode & 07777) == 0700, "and is closed again");
	ok(!mps_listening(&id), "nobody listens there");
	is(mps_pid_file(&id), 0, "nobody serves it");
	mps_last_line(&id, line, sizeof(line));
	is(*line, 0, "nothing was said");
	mkdir(id.base, 0700);
	mkdir(id.log, 0700);
	mkdir(id.pipe, 0700);
	snprintf(longer, sizeof(longer), "%.110s/control.out", id.log);
	f = fopen(longer, "w");
	fputs("one\ntwo \x1b[1m three\n\n", f);
	fclose(f);
	mps_last_line(&id, line, sizeof(line));
	ok(!strcmp(line, "two ?[1m three"), "the last line, printable: %s", line);
	unlink(longer);
	if (symlink("/etc/passwd", longer))
		perror("symlink");
	mps_last_line(&id, line, sizeof(line));
	is(*line, 0, "links are not followed");
	snprintf(longer, sizeof(longer),
		 "%.60s/0123456789012345678901234567890123456789012345678901234", top);
	is(mps_id_prepare(&id, longer, reason, sizeof(reason)), -ENAMETOOLONG,
	   "too long for a socket's address");
	ok(strstr(reason, "--mps-dir"), "and it says so: %s", reason);
}

int main(void)
{
	test_dir();
	snprintf(top, sizeof(top), "%s", dir);
	names();
	programs();
	directories();
	identities();
	return done_testing();
}
