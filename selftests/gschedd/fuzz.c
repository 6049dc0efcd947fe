// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packets that are nearly right, from several connections that come and go: gschedd must neither
 * end nor stop serving. The same numbers every time; $GSCHED_FUZZ_SEED and $GSCHED_FUZZ_ROUNDS
 * change them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

#define PEERS	6

static uint64_t state = 1;

static uint32_t rnd(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

static uint64_t odd_number(void)
{
	static const uint64_t some[] = { 0, 1, 2, 31, 32, 33, 63, 64, 1024, 65535, INT32_MAX,
					 UINT32_MAX, INT64_MAX, UINT64_MAX };

	return rnd(3) ? rnd(8) : some[rnd(sizeof(some) / sizeof(some[0]))];
}

static size_t make_body(unsigned int type, uint8_t *body)
{
	static const char *const paths[] = { "", "a", "a/b", "a/b/c", "b", "../x", "a//b" };
	static const char *const files[] = { "capsm.max", "capsm.min", "gpu.weight", "gpu.priority",
					     "cgroup", "procs", "owner",
					     "gpu.stat", "capsm.reserve", "mode", "policy",
					     "switch_us", "max_overhead",
					     "max_slowdown", "gpu.band",
					     "gpu.latency_target_us", "memory.max",
					     "memory.current", "nothing" };
	static const char *const values[] = { "max", "4", "0", "1.5", "-1", "99", "", "/",
					      "spatial", "temporal", "auto", "hpf", "ffs", "wfq",
					      "srt", "corun", "1M", "1024T", "x" };
	struct gsched_submit sub = task(rnd(4), 1 + rnd(3), 1 + rnd(1000));
	struct gsched_complete com = { .size = sizeof(com), .slot = rnd(4), .seq = 1 + rnd(3),
				       .ran_ns = odd_number() };
	struct gsched_attach att = { .size = sizeof(att), .flags = rnd(8),
				     .channel_group = rnd(3) };
	struct gsched_report rep = { .size = sizeof(rep), .flags = rnd(GSCHED_REPORT__ALL + 2),
				     .activity = rnd(3), .memory = (uint64_t)rnd(4) << 20 };
	struct gsp_rewrite rew = { .size = sizeof(rew), .arch = 90, .image_size = rnd(200) };
	struct gsp_group *group = (void *)body;

	switch (type) {
	case GSP_SUBMIT:
		sub.flags = rnd(4) ? GSCHED_SUBMIT_NOWAIT : 0;
		if (!rnd(4)) {
			sub.tier = odd_number();
			sub.blocks_per_sm = odd_number();
			sub.blocks = odd_number();
			sub.predicted_ns = odd_number();
			sub.block_ns = odd_number();
		}
		memcpy(body, &sub, sizeof(sub));
		return sizeof(sub);
	case GSP_COMPLETE:
		memcpy(body, &com, sizeof(com));
		return sizeof(com);
	case GSP_REPORT:
		if (!rnd(4)) {
			rep.activity = odd_number();
			rep.slice_us = odd_number();
			rep.slice_error = odd_number();
			rep.memory = odd_number();
			rep.__reserved = odd_number();
		}
		memcpy(body, &rep, sizeof(rep));
		return sizeof(rep);
	case GSP_ATTACH:
		memcpy(att.uuid, uuid, sizeof(uuid));
		memcpy(body, &att, sizeof(att));
		return sizeof(att);
	case GSP_REWRITE:
		memcpy(body, &rew, sizeof(rew));
		return sizeof(rew);
	case GSP_STATUS:
		return 0;
	case GSP_MONITOR:
		memcpy(body, &(struct gsp_monitor) { .size = sizeof(struct gsp_monitor),
						     .flags = rnd(3) }, sizeof(struct gsp_monitor));
		return sizeof(struct gsp_monitor);
	case GSP_INFO:
		memcpy(body, &(struct gsched_info){ .size = sizeof(struct gsched_info) },
		       sizeof(struct gsched_info));
		return sizeof(struct gsched_info);
	}
	memset(body, 0, sizeof(*group));
	group->size = sizeof(*group);
	strcpy(group->path, paths[rnd(7)]);
	strcpy(group->file, files[rnd(sizeof(files) / sizeof(files[0]))]);
	strcpy(group->value, values[rnd(sizeof(values) / sizeof(values[0]))]);
	return sizeof(*group);
}

static void one_packet(int s, struct gsched_cl_page *page)
{
	static const unsigned int types[] = { GSP_INFO, GSP_ATTACH, GSP_SUBMIT, GSP_SUBMIT,
					      GSP_SUBMIT, GSP_COMPLETE, GSP_COMPLETE, GSP_REPORT,
					      GSP_REPORT, GSP_REWRITE, GSP_GROUP_CREATE,
					      GSP_GROUP_DELETE, GSP_GROUP_SET, GSP_GROUP_GET,
					      GSP_GROUP_BIND, GSP_STATUS, GSP_DEVICE_SET,
					      GSP_MONITOR };
	struct {
		struct gsp_header h;
		uint8_t body[GSP_BODY_MAX + 64];
	} p = { 0 };
	size_t len;
	int fd = -1;

	p.h.type = types[rnd(sizeof(types) / sizeof(types[0]))];
	p.h.cookie = rnd(1000);
	p.h.flags = !rnd(4);
	len = sizeof(p.h) + make_body(p.h.type, p.body);
	if (!rnd(8))
		((uint8_t *)&p)[rnd(len)] = rnd(256);
	if (!rnd(32))
		len = rnd(sizeof(p));
	if (p.h.type == GSP_REWRITE ? rnd(8) : !rnd(64)) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		if (ftruncate(fd, rnd(300)) || pwrite(fd, ".version 8.0\n.target sm_70\n",
						      27, 0) != 27)
			exit(1);
	}
	send_raw(s, &p, len, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	if (page)
		for (int i = 0; i < 4; i++)
			((uint32_t *)&page->slot[rnd(4)])[rnd(16)] = odd_number();
}

int main(void)
{
	const char *seed = getenv("GSCHED_FUZZ_SEED"), *n = getenv("GSCHED_FUZZ_ROUNDS");
	struct gsched_info info = { .size = sizeof(info) };
	struct gsched_cl_page *page[PEERS] = { 0 };
	int s[PEERS], rounds = n ? atoi(n) : 20000, err;
	struct reply r;

	if (seed)
		state = strtoull(seed, NULL, 0);
	daemon_start("--device", DEVICE, "--image-max", "1M", "--log-level", "error", NULL);
	for (int i = 0; i < PEERS; i++)
		s[i] = peer();
	for (int i = 0; i < rounds; i++) {
		int k = rnd(PEERS);

		/* all but the first read what comes */
		if (!k)
			fcntl(s[k], F_SETFL, O_NONBLOCK);
		one_packet(s[k], page[k]);
		while (k && receive(s[k], &r, 0)) {
			if (r.h.type == GSP_ATTACH && r.n_fds == 2 && !page[k]) {
				page[k] = mmap(NULL, sizeof(*page[k]), PROT_READ | PROT_WRITE,
					       MAP_SHARED, r.fd[1], 0);
				if (page[k] == MAP_FAILED)
					page[k] = NULL;
			}
			reply_free(&r);
		}
		if (!rnd(500)) {
			close(s[k]);
			if (page[k])
				munmap(page[k], sizeof(*page[k]));
			page[k] = NULL;
			s[k] = peer();
		}
		if (waitpid(daemon_pid, NULL, WNOHANG)) {
			daemon_pid = 0;
			ok(false, "gschedd ended after packet %d", i);
			return done_testing();
		}
	}
	ok(true, "%d packets", rounds);
	for (int i = 0; i < PEERS; i++)
		close(s[i]);
	s[0] = peer();
	err = call(s[0], GSP_INFO, &info, sizeof(info));
	is(err, 0, "gschedd serves as before");
	free(status_text());
	return done_testing();
}
