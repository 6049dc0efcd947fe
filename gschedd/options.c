// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedd's options and their defaults. */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gschedd.h"

#define MiB		(1ull << 20)
#define CACHE_SIZE	(1024 * MiB)
#define IMAGE_MAX	(256 * MiB)

struct options opt = {
	.cache_size = CACHE_SIZE,
	.image_max = IMAGE_MAX,
	.driver = "libcuda.so.1",
	.policy = "hpf",
	.seed = 1,
	.mode = -1,
	.log_level = LOG_INFO,
	.mps_program = "nvidia-cuda-mps-control",
	.mps_dir = "/run/gsched/mps",
	.nvml = "libnvidia-ml.so.1",
	.mps_idle_s = 60,
	.mps_wait_s = 10,
	.poll_ns = UINT64_MAX,
	.worker_fd = -1,
};

enum {
	KEY_CACHE_SIZE = 256, KEY_DRIVER, KEY_EMBEDDED, KEY_MODULE, KEY_AUTO, KEY_POLL,
	KEY_FOREGROUND, KEY_LOG, KEY_POLICY,
	KEY_MODE, KEY_TRACE, KEY_WORKER, KEY_IMAGE_MAX, KEY_SEED, KEY_MPS, KEY_MPS_PROGRAM,
	KEY_MPS_DIR, KEY_MPS_IDLE, KEY_MPS_WAIT, KEY_NVML, KEY_STATE,
	KEY_QOS,
};

static const struct argp_option options[] = {
	{ "socket", 's', "PATH", 0, "Listen here (default $GSCHED_SOCKET, else "
	  GSP_SOCKET_DEFAULT ")", 0 },
	{ "cache", 'c', "DIR", 0, "Keep rewritten kernels here, \"\" nowhere (default "
	  "/var/cache/gsched for root, else $XDG_CACHE_HOME/gsched)", 0 },
	{ "cache-size", KEY_CACHE_SIZE, "BYTES", 0,
	  "Most that the cache may hold; K, M, G allowed (default 1G)", 0 },
	{ "state", KEY_STATE, "DIR", 0,
	  "Keep groups, quotas and bindings here over a restart, \"\" nowhere (default "
	  "$STATE_DIRECTORY)", 0 },
	{ "image-max", KEY_IMAGE_MAX, "BYTES", 0,
	  "Largest module that the rewrite service takes (default 256M)", 0 },
	{ "device", 'd', "NAME:UUID:SMS", 0,
	  "Arbitrate this device (repeatable); it need not be known to a driver", 1 },
	{ "driver", KEY_DRIVER, "PATH", 0,
	  "CUDA driver to ask for devices, \"\" none (default libcuda.so.1)", 1 },
	{ "nvml", KEY_NVML, "PATH", 0,
	  "NVML library to ask for programs that are not managed, \"\" none (default "
	  "libnvidia-ml.so.1)", 1 },
	{ "embedded", KEY_EMBEDDED, NULL, 0, "Arbitrate here", 2 },
	{ "module", KEY_MODULE, NULL, 0,
	  "The kernel module arbitrates: tell it the devices, serve rewriting", 2 },
	{ "auto", KEY_AUTO, NULL, 0,
	  "--module if " GSCHED_DEVICE_NODE " exists, else --embedded (default)", 2 },
	{ "policy", KEY_POLICY, "NAME", 0, "Policy of the devices (default hpf)", 3 },
	{ "seed", KEY_SEED, "N", 0, "What policy chaos draws from (default 1)", 3 },
	{ "mode", KEY_MODE, "MODE", 0, "auto, spatial or temporal (default auto)", 3 },
	{ "poll-us", KEY_POLL, "N", 0,
	  "Stay awake N us after a message while clients compete (default 50000 on 8 CPUs or "
	  "more, else 0)", 3 },
	{ "qos", KEY_QOS, NULL, 0, "Compute plans that meet latency targets: run gschedctl qos",
	  3 },
	{ "mps", KEY_MPS, NULL, 0, "Run an MPS control daemon for each user and band with programs",
	  4 },
	{ "mps-program", KEY_MPS_PROGRAM, "PATH", 0,
	  "The control daemon (default nvidia-cuda-mps-control in $PATH)", 4 },
	{ "mps-dir", KEY_MPS_DIR, "DIR", 0,
	  "Keep its sockets and logs here (default /run/gsched/mps)", 4 },
	{ "mps-idle", KEY_MPS_IDLE, "SECONDS", 0,
	  "End it that long after its last program (default 60)", 4 },
	{ "mps-wait", KEY_MPS_WAIT, "SECONDS", 0,
	  "Give one up that is not ready by then (default 10)", 4 },
	{ "trace", KEY_TRACE, "FILE", 0, "Write one JSON line for each grant, evict, grow and done",
	  5 },
	{ "foreground", KEY_FOREGROUND, NULL, 0, "Stay in the foreground (always so)", 5 },
	{ "log-level", KEY_LOG, "LEVEL", 0, "error, warn, info or debug (default info)", 5 },
	{ "worker", KEY_WORKER, "FD", OPTION_HIDDEN, NULL, 6 },
	{ 0 },
};

static int parse_size(const char *text, uint64_t *out)
{
	unsigned long long n;
	int shift = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	n = strtoull(text, &end, 10);
	switch (*end) {
	case 'K': shift = 10; end++; break;
	case 'M': shift = 20; end++; break;
	case 'G': shift = 30; end++; break;
	}
	if (*end || errno || n > UINT64_MAX >> shift)
		return -1;
	*out = n << shift;
	return 0;
}

static unsigned int parse_seconds(struct argp_state *state, const char *option, const char *text,
				  unsigned int least)
{
	uint64_t n = 0;

	if (parse_size(text, &n) || n < least || n > 86400)
		argp_error(state, "--%s %s: not a number of seconds from %u to 86400", option,
			   text, least);
	return n;
}

static int parse_device(const char *text, struct device_decl *d)
{
	const char *uuid = strchr(text, ':'), *sms = uuid ? strchr(uuid + 1, ':') : NULL;
	unsigned long n;
	char *end;

	if (!sms || uuid == text || uuid - text >= GSCHED_NAME_SIZE)
		return -1;
	memset(d, 0, sizeof(*d));
	memcpy(d->name, text, uuid - text);
	if (parse_uuid(uuid + 1, sms - uuid - 1, d->uuid) || !isdigit((unsigned char)sms[1]))
		return -1;
	n = strtoul(sms + 1, &end, 10);
	if (*end || !n || n > GSCHED_SMS_MAX)
		return -1;
	d->sms = n;
	return 0;
}

static int choose_word(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };
	static const char *const modes[] = { "temporal", "spatial", "auto", NULL };
	uint64_t n = 0;

	switch (key) {
	case 's':
		opt.socket = arg;
		break;
	case 'c':
		opt.cache_dir = arg;
		break;
	case KEY_STATE:
		opt.state_dir = arg;
		break;
	case KEY_CACHE_SIZE:
		if (parse_size(arg, &opt.cache_size))
			argp_error(state, "--cache-size %s: not a size; write for example 512M",
				   arg);
		break;
	case KEY_IMAGE_MAX:
		if (parse_size(arg, &opt.image_max) || !opt.image_max || opt.image_max > 4096 * MiB)
			argp_error(state, "--image-max %s: not a size up to 4G; write "
				   "for example 256M", arg);
		break;
	case 'd':
		if (opt.n_decl == DECLS_MAX)
			argp_error(state, "--device: more than %d devices", DECLS_MAX);
		if (parse_device(arg, &opt.decl[opt.n_decl++]))
			argp_error(state, "--device %s: write NAME:UUID:SMS, for example "
				   "gpu0:GPU-00112233-4455-6677-8899-aabbccddeeff:132", arg);
		break;
	case KEY_DRIVER:
		opt.driver = arg;
		opt.driver_given = true;
		break;
	case KEY_EMBEDDED:
		opt.arbiter = ARBITER_EMBEDDED;
		break;
	case KEY_MODULE:
		opt.arbiter = ARBITER_MODULE;
		break;
	case KEY_AUTO:
		opt.arbiter = ARBITER_AUTO;
		break;
	case KEY_POLICY:
		/* plan is in force only while there is one */
		if (!gsc_policy_find(arg) || !strcmp(arg, "plan"))
			argp_error(state, "--policy %s: it is hpf, srt, ffs, wfq or corun", arg);
		opt.policy = arg;
		opt.policy_given = true;
		break;
	case KEY_SEED:
		if (parse_size(arg, &opt.seed))
			argp_error(state, "--seed %s: not a number", arg);
		break;
	case KEY_MODE:
		opt.mode = choose_word(arg, modes);
		if (opt.mode < 0)
			argp_error(state, "--mode %s: it is auto, spatial or temporal", arg);
		if (opt.mode > GSCHED_MODE_SPATIAL)
			opt.mode = -1;
		opt.mode_given = true;
		break;
	case KEY_POLL:
		if (parse_size(arg, &n) || n > 1000000)
			argp_error(state, "--poll-us %s: not a number up to 1000000", arg);
		opt.poll_ns = n * 1000;
		break;
	case KEY_TRACE:
		opt.trace = arg;
		break;
	case KEY_NVML:
		opt.nvml = arg;
		opt.nvml_given = true;
		break;
	case KEY_QOS:
		opt.qos = true;
		break;
	case KEY_MPS:
		opt.mps = true;
		break;
	case KEY_MPS_PROGRAM:
		opt.mps_program = arg;
		break;
	case KEY_MPS_DIR:
		opt.mps_dir = arg;
		break;
	case KEY_MPS_IDLE:
		opt.mps_idle_s = parse_seconds(state, "mps-idle", arg, 0);
		break;
	case KEY_MPS_WAIT:
		opt.mps_wait_s = parse_seconds(state, "mps-wait", arg, 1);
		break;
	case KEY_FOREGROUND:
		break;
	case KEY_LOG:
		opt.log_level = isdigit((unsigned char)*arg) && !arg[1] ? *arg - '0' :
									  choose_word(arg, levels);
		if (opt.log_level < 0 || opt.log_level > LOG_DEBUG)
			argp_error(state, "--log-level %s: it is error, warn, info or debug", arg);
		break;
	case KEY_WORKER:
		opt.worker_fd = atoi(arg);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "%s: gschedd takes options only", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "The gsched daemon: arbitrates GPUs among CUDA programs and rewrites their kernels "
	       "so that they can be preempted.\vSee gschedd(8) and gsched(7).",
};

/* $XDG_CACHE_HOME/gsched; creates missing parent directories. */
static const char *default_cache(void)
{
	static char path[4096];
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return "/var/cache/gsched";
	if (base && *base == '/')
		snprintf(path, sizeof(path), "%s", base);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.cache", home);
	else
		return NULL;
	mkdir(path, 0700);
	if (strlen(path) + sizeof("/gsched") > sizeof(path))
		return NULL;
	return strcat(path, "/gsched");
}

/* systemd separates several directories by ":". */
static char *first_of(const char *dirs)
{
	return dirs ? strndup(dirs, strcspn(dirs, ":")) : NULL;
}

static void set_defaults(void)
{
	const char *env = getenv("GSCHED_SOCKET");
	cpu_set_t cpus;

	if (!opt.socket)
		opt.socket = env && *env ? env : GSP_SOCKET_DEFAULT;
	if (!opt.cache_dir && opt.worker_fd < 0)
		opt.cache_dir = default_cache();
	if (opt.cache_dir && !*opt.cache_dir)
		opt.cache_dir = NULL;
	if (!opt.state_dir)
		opt.state_dir = first_of(getenv("STATE_DIRECTORY"));
	if (opt.state_dir && !*opt.state_dir)
		opt.state_dir = NULL;
	if (opt.poll_ns == UINT64_MAX)
		opt.poll_ns = sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 8 ?
			      0 : 50000000;
	if (opt.arbiter == ARBITER_AUTO)
		opt.arbiter = access(GSCHED_DEVICE_NODE, F_OK) ? ARBITER_EMBEDDED : ARBITER_MODULE;
}

void options_parse(int argc, char **argv)
{
	argp_err_exit_status = 2;
	/* libc's variable: one defined here would be hidden from it by -fvisibility=hidden */
	argp_program_version = "gschedd 0.1";
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, NULL);
	set_defaults();
}
