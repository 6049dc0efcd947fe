/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gschedctl simulate: the decision core against a simulated device, in virtual time. sim_cases.c
 * and sim_read.c read a scenario, sim_gpu.c is the device, sim_run.c is the programs, the arbiter
 * and the clock, sim_stat.c the statistics, and sim_expect.c compares them with what is expected.
 * No part has a policy of its own: all decisions are the core's.
 *
 * Times are in ns from the begin of a run, unless a name says otherwise. Nothing here prints.
 */
#ifndef GSCHED_SIM_H
#define GSCHED_SIM_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/core.h"

#define SIM_ERROR_SIZE		512
#define SIM_LAUNCHES_MAX	1000000		/* of a run */
#define SIM_EVENTS_MAX		50000000	/* likewise: some seconds of work */
/* The policy that is none: leftover dispatch by the hardware, first come first served */
#define SIM_BASELINE		"mps"
/* Without MPS: the driver's time slices */
#define SIM_TIME_SLICING	"time-slicing"
#define SIM_DRIVER_SLICE_US	2048

struct sim_kernel {
	const char *name;
	uint64_t blocks, block_ns;
	uint32_t per_sm;		/* blocks that an SM hosts */
	bool opaque;			/* tier launch: not preemptible */
};

struct sim_group {
	const char *name;		/* "/" the root group */
	const cJSON *files;		/* FILE: text, checked */
	int parent;			/* index; -1 the root group */
};

enum sim_pace { SIM_CLOSED, SIM_PERIOD, SIM_POISSON };

struct sim_client {
	const char *base;		/* name in the file, and */
	uint32_t copy;			/* which copy of it, from 1; 0: it is the only one */
	int group;			/* index; -1 the root group */
	bool own_group;			/* a group of its own below that */
	const struct sim_kernel **kernels;	/* launched in turn */
	size_t n_kernels;
	enum sim_pace pace;
	uint64_t start;			/* first launch */
	uint64_t interval;		/* gap, period or mean time between arrivals */
	uint64_t in_flight;		/* launches at once, in a closed loop */
	uint64_t count;			/* launches; UINT64_MAX until the run ends */
	double predicted;		/* factor of the true time; 0: nothing is predicted */
	uint64_t seed;
};

struct sim_policy {
	const char *name, *policy;
	int mode;			/* as gsc_device_set_mode() takes it */
	const char *param[GSC_PARAM_COUNT];	/* NULL: the default */
};

/* One case of a scenario file. Texts are in @tree */
struct sim_scenario {
	cJSON *tree;
	const char *about;
	uint32_t sms;
	bool mps;
	/* delays: until a smaller window is seen, until workers start, of a switch of bands */
	uint64_t evict, launch, switched;
	double overhead;		/* of the preemptible form, a part of a block-task's time */
	uint64_t duration;		/* 0: until all is done */
	struct sim_kernel *kernels;
	struct sim_group *groups;
	struct sim_client *clients;
	struct sim_policy *runs;
	size_t n_kernels, n_groups, n_clients, n_runs;
};

/*
 * @tree: one case, see sim_cases(); the scenario owns it from now on, also after an error. -1 with
 * "FILE: path: what is wrong and what to write" in @error
 */
int sim_read(struct sim_scenario *s, const char *file, cJSON *tree, char error[SIM_ERROR_SIZE]);
void sim_free(struct sim_scenario *s);

/*
 * The cases of a file: without "cases" one. Each is a copy in which names of its variables, behind
 * a '$', are replaced by their values.
 */
struct sim_cases {
	cJSON *root;
	size_t n;
	cJSON **variables;		/* of each case an object; all of them freed with this */
};

int sim_cases(struct sim_cases *cases, const char *file, const char *text, size_t size,
	      char error[SIM_ERROR_SIZE]);
cJSON *sim_case_tree(const struct sim_cases *cases, size_t i);	/* NULL out of memory */
void sim_case_name(const cJSON *variables, char *buf, size_t size);	/* "a=NN b=VA" */
void sim_cases_free(struct sim_cases *cases);

struct sim_client_result {
	uint64_t launches;		/* that ended */
	/* of their latency, from arrival to end; NAN without any */
	double mean_us, p50_us, p99_us;
	double share;			/* of the device's capacity times time */
	uint64_t evictions;		/* windows of its kernels that became smaller or moved */
	double ntt;			/* to the same launches of the client alone (NAN) */
};

struct sim_result {
	struct sim_client_result *clients;	/* as in the scenario */
	size_t n_clients;
	double antt, stp;		/* sim_stat.h; NAN if a client has no launch that ended */
	double utilisation;		/* part of capacity times time that was used */
	double makespan_us;		/* end of the last launch */
	uint64_t decisions;		/* commits of the core */
};

/* Latencies of a client's launches, in their order */
struct sim_samples {
	uint64_t *ns;
	size_t n, size;
};

/*
 * What each client's launches take that has the device for itself, without gsched: @alone[i] of
 * client i, to be freed by sim_samples_free() either way. -1 with the reason in @error: it does not
 * end
 */
int sim_alone(const struct sim_scenario *s, const char *file, struct sim_samples *alone,
	      char error[SIM_ERROR_SIZE]);
void sim_samples_free(struct sim_samples *samples);
/*
 * Runs the scenario under @run; @alone is of sim_alone(). -1 with the reason in @error: the run
 * does not end, or needs what is not simulated. The result is to be freed either way.
 */
int sim_run(const struct sim_scenario *s, const struct sim_policy *run, const char *file,
	    const struct sim_samples *alone, struct sim_result *result, char error[SIM_ERROR_SIZE]);
void sim_result_free(struct sim_result *result);

/* One line of "expect" */
struct sim_check {
	const char *run, *client, *value;	/* client NULL: a value of the device */
	const char *other;		/* run that the value is compared with, NULL none */
	bool speedup;			/* by its value over this one's, not the reverse */
	const char *of;			/* mean, min or max over the cases */
	const cJSON *only;		/* variables of the one case that it is about; NULL all */
	double at_least, at_most, paper;	/* NAN: none */
	const char *why;
	char name[160];			/* "mean of ntt of a under hpf" */
};

/*
 * @scenarios: of all cases. @results: of case i, run r: results[i * n_runs + r]. NAN: there is no
 * such value
 */
double sim_check_value(const struct sim_check *check, const struct sim_scenario *scenarios,
		       const struct sim_cases *cases, const struct sim_result *results);
bool sim_check_met(const struct sim_check *check, double value);
/* Those of the file; *checks is freed by the caller */
int sim_checks(const struct sim_scenario *s, const struct sim_cases *cases, const char *file,
	       struct sim_check **checks, size_t *n, char error[SIM_ERROR_SIZE]);

#endif /* GSCHED_SIM_H */
