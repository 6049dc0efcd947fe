/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl simulate: the decision core with a simulated device, in virtual time. sim_cases.c and
 * sim_read.c read a scenario; sim_gpu.c is the device; sim_run.c has the programs, the arbiter and
 * the clock; sim_stat.c the statistics; sim_expect.c compares them with the expectations. None of
 * them has a policy of its own: all decisions are the core's.
 *
 * Times are in ns from the start of a run, unless a name says otherwise. Nothing here prints.
 */
#ifndef GSCHED_SIM_H
#define GSCHED_SIM_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/core.h"

#define SIM_ERROR_SIZE		512
#define SIM_LAUNCHES_MAX	1000000		/* per run */
#define SIM_EVENTS_MAX		50000000	/* per run: some seconds of computation */
/* Baseline without a policy: leftover dispatch by the hardware, first come, first served */
#define SIM_BASELINE		"mps"
/* Baseline without MPS: the driver's time slices */
#define SIM_TIME_SLICING	"time-slicing"
/* hpf, and the QoS planner makes plans */
#define SIM_QOS			"qos"
#define SIM_DRIVER_SLICE_US	2048

struct sim_kernel {
	const char *name;
	uint64_t blocks, block_ns;
	uint32_t per_sm;		/* blocks that fit an SM */
	bool opaque;			/* tier launch: not preemptible */
	uint32_t intensity;		/* GSCHED_INTENSITY_* */
};

struct sim_group {
	const char *name;		/* "/": the root group */
	const cJSON *files;		/* FILE: text; checked */
	int parent;			/* index; -1: the root group */
};

enum sim_pace { SIM_CLOSED, SIM_PERIOD, SIM_POISSON };

struct sim_client {
	const char *base;		/* name in the file */
	uint32_t copy;			/* number of the copy, from 1; 0: the only one */
	int group;			/* index; -1: the root group */
	bool own_group;			/* it has a group of its own below that */
	const struct sim_kernel **kernels;	/* launched in rotation */
	size_t n_kernels;
	enum sim_pace pace;
	uint64_t start;			/* first launch */
	uint64_t interval;		/* gap, period or mean time between arrivals */
	uint64_t in_flight;		/* most launches at a time, in a closed loop */
	uint64_t count;			/* launches; UINT64_MAX: until the run ends */
	double predicted;		/* factor on the true time; 0: no prediction */
	uint64_t seed;
};

struct sim_policy {
	const char *name, *policy;
	const char *plan;		/* for the device's file plan, NULL: none */
	int mode;			/* argument of gsc_device_set_mode() */
	const char *param[GSC_PARAM_COUNT];	/* NULL: the default */
};

/* One case of a scenario file. Strings belong to @tree. */
struct sim_scenario {
	cJSON *tree;
	const char *about;
	uint32_t sms;
	bool mps;
	/* delays: until a smaller window is seen; until workers start; of a switch of bands */
	uint64_t evict, launch, switched;
	/* of the preemptible form, as a fraction of a block-task's time */
	double overhead;
	uint64_t duration;		/* 0: until everything is done */
	struct sim_kernel *kernels;
	struct sim_group *groups;
	struct sim_client *clients;
	struct sim_policy *runs;
	size_t n_kernels, n_groups, n_clients, n_runs;
};

/*
 * @tree: one case, see sim_cases(); the scenario owns it, even after an error. -1 with "FILE: path:
 * what is wrong and what to write" in @error.
 */
int sim_read(struct sim_scenario *s, const char *file, cJSON *tree, char error[SIM_ERROR_SIZE]);
void sim_free(struct sim_scenario *s);

/*
 * The cases of a file; one, if it has no "cases". Each is a copy in which '$' and the name of a
 * variable are replaced by its value.
 */
struct sim_cases {
	cJSON *root;
	size_t n;
	cJSON **variables;		/* an object per case; freed with this */
};

int sim_cases(struct sim_cases *cases, const char *file, const char *text, size_t size,
	      char error[SIM_ERROR_SIZE]);
cJSON *sim_case_tree(const struct sim_cases *cases, size_t i);	/* NULL: out of memory */
void sim_case_name(const cJSON *variables, char *buf, size_t size);	/* "a=NN b=VA" */
void sim_cases_free(struct sim_cases *cases);

struct sim_client_result {
	uint64_t launches;		/* completed ones */
	/* latency from arrival to end; NAN if there are no launches */
	double mean_us, p50_us, p99_us;
	double share;			/* of the device's capacity times time */
	uint64_t evictions;		/* how often windows of its kernels shrank */
	/* relative to the same launches of the client alone (NAN) */
	double ntt;
};

struct sim_result {
	struct sim_client_result *clients;	/* in the scenario's order */
	size_t n_clients;
	double antt, stp;		/* sim_stat.h; NAN if a client completed no launch */
	double utilisation;		/* used fraction of capacity times time */
	double makespan_us;		/* end of the last launch */
	uint64_t decisions;		/* commits of the core */
};

/* Latencies of a client's launches, in order */
struct sim_samples {
	uint64_t *ns;
	size_t n, size;
};

/*
 * Simulates each client alone on the device, without gsched: @alone[i] for client i, to be freed by
 * sim_samples_free() in either case. -1 with the reason in @error: it does not end.
 */
int sim_alone(const struct sim_scenario *s, const char *file, struct sim_samples *alone,
	      char error[SIM_ERROR_SIZE]);
void sim_samples_free(struct sim_samples *samples);
/*
 * Runs the scenario under @run; @alone is from sim_alone(). -1 with the reason in @error: the run
 * does not end, or needs a feature that is not simulated. The result must be freed in either case.
 */
int sim_run(const struct sim_scenario *s, const struct sim_policy *run, const char *file,
	    const struct sim_samples *alone, struct sim_result *result, char error[SIM_ERROR_SIZE]);
void sim_result_free(struct sim_result *result);

/* One line of "expect" */
struct sim_check {
	const char *run, *client, *value;	/* client NULL: a value of the device */
	const char *other;		/* run to compare the value with; NULL: none */
	bool speedup;			/* the other's value divided by this one, not the reverse */
	const char *of;			/* mean, min or max over the cases */
	const cJSON *only;		/* variables of the only case that it is about; NULL: all */
	double at_least, at_most, paper;	/* NAN: none */
	const char *why;
	char name[160];			/* "mean of ntt of a under hpf" */
};

/*
 * @scenarios: of all cases. @results: results[i * n_runs + r] for case i, run r. NAN: the value
 * does not exist.
 */
double sim_check_value(const struct sim_check *check, const struct sim_scenario *scenarios,
		       const struct sim_cases *cases, const struct sim_result *results);
bool sim_check_met(const struct sim_check *check, double value);
/* The checks of the file; the caller frees *checks. */
int sim_checks(const struct sim_scenario *s, const struct sim_cases *cases, const char *file,
	       struct sim_check **checks, size_t *n, char error[SIM_ERROR_SIZE]);

#endif /* GSCHED_SIM_H */
