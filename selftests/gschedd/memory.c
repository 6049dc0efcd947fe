// SPDX-License-Identifier: LGPL-2.1-or-later
/* Device memory: what clients report, memory.max of their group and those above, who asks. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define MIB	(1ULL << 20)

static void bind_to(const char *group)
{
	if (group_call(GSP_GROUP_BIND, group, "procs", "0"))
		ok(false, "bind to %s", group);
}

/* @answer: NULL, or what the arbiter says of the limits; the call's error */
static int holds(struct peer_client *c, uint64_t bytes, uint32_t asks, struct gsched_report *answer)
{
	struct gsched_report req = { .size = sizeof(req), .memory = bytes,
				     .flags = GSCHED_REPORT_MEMORY | asks };
	int err = call(c->s, GSP_REPORT, &req, sizeof(req));

	if (answer)
		*answer = req;
	return err;
}

static int asks(struct peer_client *c, uint64_t bytes)
{
	return holds(c, bytes, GSCHED_REPORT_ASKS, NULL);
}

static unsigned long long number_of(const char *group, const char *file)
{
	return strtoull(group_file(group, file), NULL, 10);
}

static unsigned long long refusals(const char *group)
{
	const char *at = strstr(group_file(group, "gpu.events"), "\nmemory_max ");

	return at ? strtoull(at + strlen("\nmemory_max "), NULL, 10) : UINT64_MAX;
}

static bool limited(const struct peer_client *c)
{
	return __atomic_load_n(&c->arb->header.flags, __ATOMIC_ACQUIRE) & GSCHED_ARB_LIMITED;
}

/* Waits for what a process left behind to go, for at most ten seconds. */
static bool becomes(const char *group, unsigned long long bytes)
{
	for (int i = 0; i < 10000 && number_of(group, "memory.current") != bytes; i++)
		usleep(1000);
	return number_of(group, "memory.current") == bytes;
}

static void values(void)
{
	static const struct { const char *text, *shown; } good[] = {
		{ "0", "0\n" }, { "1", "1\n" }, { "4096\n", "4096\n" }, { "4K", "4096\n" },
		{ "3M\n", "3145728\n" }, { "2G", "2147483648\n" },
		{ "1T", "1099511627776\n" }, { "1024T", "1125899906842624\n" },
		{ "1125899906842624", "1125899906842624\n" }, { "max\n", "max\n" },
	};
	static const char *const bad[] = {
		"", "\n", "-1", "x", "K", "4P", "4KB", "4 K", "4KK", "1.5G", "0x10", "1e9", "maxx",
		"max 4", "auto", "1025T", "1048577G", "1125899906842625", "18446744073709551615",
		"99999999999999999999", "18014398509481985K",
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		is(group_call(GSP_GROUP_SET, "m", "memory.max", good[i].text), 0,
		   "memory.max: value %zu", i);
		ok(!strcmp(group_file("m", "memory.max"), good[i].shown), "reads as bytes");
	}
	group_call(GSP_GROUP_SET, "m", "memory.max", "7M");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is(group_call(GSP_GROUP_SET, "m", "memory.max", bad[i]), EINVAL,
		   "memory.max: bad value %zu: EINVAL", i);
	is(number_of("m", "memory.max"), 7 * MIB, "the old value stays");
	is(group_call(GSP_GROUP_SET, "m", "memory.current", "1"), EACCES,
	   "memory.current cannot be written: EACCES");
	is(group_call(GSP_GROUP_SET, "m", "memory.peak", "1"), EACCES, "nor can memory.peak");
	group_call(GSP_GROUP_SET, "m", "memory.max", "max");
}

static void counted(void)
{
	struct gsched_report answer = { 0 }, req = {
		.size = sizeof(req), .flags = GSCHED_REPORT_MEMORY, .memory = 70 * MIB,
	};
	struct gsched_submit sub = task(0, 1, 1);
	struct peer_client c, d;
	char want[64], *text;

	bind_to("m/a");
	attach(&c, 0);
	attach(&d, 0);
	is(holds(&c, 100 * MIB, 0, &answer), 0, "a client reports what it holds");
	ok(answer.memory_max == UINT64_MAX && answer.memory_room == UINT64_MAX,
	   "and learns that there is no limit");
	ok(!limited(&c), "which its page says, too");
	is(holds(&d, 50 * MIB, GSCHED_REPORT_ASKS, NULL), 0, "so whoever asks is allowed");
	is(number_of("m/a", "memory.current"), 150 * MIB, "the group has the sum");
	is(number_of("m", "memory.current"), 150 * MIB, "and the one above");
	is(number_of("", "memory.current"), 150 * MIB, "and the root group");
	is(number_of("m/b", "memory.current"), 0, "but not the one beside it");
	text = status_text();
	snprintf(want, sizeof(want), "\"memory\":%llu,", 100 * MIB);
	ok(strstr(text, want) && strstr(text, "\"memory.current\":\"157286400\""),
	   "the status has both");
	free(text);
	send_req(c.s, GSP_REPORT, GSP_FLAG_ASYNC, 1, &req, sizeof(req), -1);
	is(submit(&c, &sub), 0, "a report without a reply");
	is(number_of("m/a", "memory.current"), 120 * MIB, "counts as well");
	is(number_of("m/a", "memory.peak"), 150 * MIB, "the peak stays");
	detach(&c);
	ok(becomes("m/a", 50 * MIB), "a client that detaches holds nothing");
	detach(&d);
	ok(becomes("", 0) && becomes("m", 0) && becomes("m/a", 0), "nor does the last one");
	is(number_of("m", "memory.peak"), 150 * MIB, "the peak still stays");
}

static void refused(void)
{
	struct gsched_report answer = { 0 };
	struct peer_client c;
	unsigned long long before = refusals("m");

	bind_to("m/a");
	attach(&c, 0);
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "8M"), 0, "a limit");
	ok(limited(&c), "takes effect on a client that is there");
	is(holds(&c, 6 * MIB, GSCHED_REPORT_ASKS, &answer), 0, "below it a client may allocate");
	ok(answer.memory_max == 8 * MIB && answer.memory_room == 2 * MIB,
	   "and learns how much is left");
	is(asks(&c, 8 * MIB + 1), EDQUOT, "one byte too much: EDQUOT");
	is(number_of("m/a", "memory.current"), 6 * MIB, "and nothing is counted");
	ok(refusals("m/a") == 1 && refusals("m") == before + 1, "but the refusal is, in gpu.events");
	is(asks(&c, 8 * MIB), 0, "all of it");
	is(asks(&c, 8 * MIB), 0, "and the same again");
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "1M"), 0, "a limit below what is held");
	is(number_of("m/a", "memory.current"), 8 * MIB, "frees nothing");
	is(asks(&c, 8 * MIB + 1), EDQUOT, "it refuses");
	is(holds(&c, 7 * MIB, GSCHED_REPORT_ASKS, &answer), 0, "but for less than before");
	ok(answer.memory_max == MIB && !answer.memory_room, "nothing is left");
	is(holds(&c, 9 * MIB, 0, NULL), 0, "who does not ask is counted");
	is(number_of("m/a", "memory.current"), 9 * MIB, "above the limit");
	is(refusals("m/a"), 2, "which refuses nothing");
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "0"), 0, "a limit of 0");
	is(asks(&c, 0), 0, "allows to hold nothing");
	is(asks(&c, 1), EDQUOT, "nor anything else");
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "max"), 0, "no limit");
	ok(!limited(&c), "which is told");
	is(asks(&c, GSCHED_MEMORY_MAX), 0, "allows all");
	detach(&c);
}

/* A process of @group that holds so much until it is killed; returns when it does. */
static pid_t holder(const char *group, uint64_t bytes)
{
	struct peer_client c;
	int fd[2];
	char done = 0;
	pid_t pid;

	if (pipe(fd))
		exit(1);
	pid = fork();
	if (!pid) {
		bind_to(group);
		attach(&c, 0);
		if (asks(&c, bytes) || write(fd[1], "y", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(fd[1]);
	ok(read(fd[0], &done, 1) == 1, "a program in %s holds %llu bytes", group,
	   (unsigned long long)bytes);
	close(fd[0]);
	return pid;
}

static void nested(void)
{
	struct gsched_report answer = { 0 };
	struct peer_client c;
	pid_t other;

	is(group_call(GSP_GROUP_SET, "m", "memory.max", "10M"), 0, "a limit of the group above");
	other = holder("m/b", 6 * MIB);
	bind_to("m/a");
	attach(&c, 0);
	ok(limited(&c), "holds for those below it");
	is(asks(&c, 4 * MIB + 1), EDQUOT, "together: EDQUOT");
	is(holds(&c, 4 * MIB, GSCHED_REPORT_ASKS, &answer), 0, "the rest");
	ok(answer.memory_max == 10 * MIB && !answer.memory_room, "is used up");
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "20M"), 0, "a larger one below it");
	is(asks(&c, 5 * MIB), EDQUOT, "changes nothing");
	is(group_call(GSP_GROUP_SET, "m/a", "memory.max", "3M"), 0, "a smaller one");
	is(holds(&c, 2 * MIB, GSCHED_REPORT_ASKS, &answer), 0, "holds as well");
	ok(answer.memory_max == 3 * MIB && answer.memory_room == MIB, "and is the least");
	is(asks(&c, 4 * MIB), EDQUOT, "for this group");
	group_call(GSP_GROUP_SET, "m/a", "memory.max", "max");
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	ok(becomes("m/b", 0), "a program that is killed holds nothing");
	is(asks(&c, 10 * MIB), 0, "so another one may");
	is(group_call(GSP_GROUP_SET, "m/b", "memory.max", "1M"), 0, "a group with less room");
	bind_to("m/b");
	ok(becomes("m/b", 10 * MIB) && becomes("m/a", 0),
	   "a program that goes there takes along what it holds");
	is(number_of("m", "memory.current"), 10 * MIB, "which is below the same group");
	is(asks(&c, 10 * MIB + 1), EDQUOT, "and gets no more");
	bind_to("");
	ok(becomes("m", 0) && becomes("", 10 * MIB) && !limited(&c), "outside it has no limit");
	is(asks(&c, 20 * MIB), 0, "but all that it wants");
	detach(&c);
	ok(becomes("", 0), "and gives it back");
}

int main(void)
{
	daemon_start("--device", DEVICE, NULL);
	group_call(GSP_GROUP_CREATE, "m", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "m/a", NULL, NULL);
	group_call(GSP_GROUP_CREATE, "m/b", NULL, NULL);
	values();
	counted();
	refused();
	nested();
	return done_testing();
}
