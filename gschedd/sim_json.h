/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gschedctl simulate: strict reading of JSON objects, by a table of their keys. */
#ifndef GSCHED_SIM_JSON_H
#define GSCHED_SIM_JSON_H

#include "sim.h"

#define SIM_PATH_SIZE	160

enum sim_type { SIM_NUMBER, SIM_WHOLE, SIM_TEXT, SIM_FLAG, SIM_OBJECT, SIM_ARRAY, SIM_ANY };

/* A key; if the object does not have it, @to is unchanged */
struct sim_key {
	const char *name;
	enum sim_type type;
	void *to;			/* double, uint64_t, const char *, bool, const cJSON * */
	const char *takes;		/* description of valid values */
	bool required;
	double least, most;		/* of numbers */
};

struct sim_reader {
	const char *file;
	char *error;			/* SIM_ERROR_SIZE; keeps the first error */
	bool failed;
};

/* Sets the error to "FILE: PATH: " and the text; always false. */
bool sim_refuse(struct sim_reader *r, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* @keys end with an empty name. False: a key is unknown, duplicate, missing, or has a bad value. */
bool sim_read_object(struct sim_reader *r, const cJSON *o, const char *path,
		     const struct sim_key *keys);
/* Appends a key or an index to @path. */
void sim_path(char to[SIM_PATH_SIZE], const char *path, const char *key);
void sim_path_at(char to[SIM_PATH_SIZE], const char *path, size_t index);

#endif /* GSCHED_SIM_JSON_H */
