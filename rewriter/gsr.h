/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rewriter's interface: PTX in, PTX with persistent, preemptible twins out, and a description
 * of every kernel.
 *
 * No global state: calls on different objects may run in different threads. Nothing here prints,
 * exits or reads the environment. Errors come back as a status and a message "NAME:LINE:COLUMN:
 * what; remedy" in struct gsr_error.
 */
#ifndef GSR_H
#define GSR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi.h"

enum gsr_status {
	GSR_OK = 0,
	GSR_ERR_SYNTAX,		/* not PTX as we know it */
	GSR_ERR_FORMAT,		/* not a fat binary, or a lying one */
	GSR_ERR_NOMEM,
	GSR_ERR_LIMIT,		/* larger than we are willing to take */
	GSR_ERR_NO_PTX,		/* machine code only */
	GSR_ERR_UNSUPPORTED,	/* no kernel could be rewritten */
};

struct gsr_error {
	enum gsr_status status;
	unsigned int line, column;	/* 1-based, 0 none */
	char message[256];		/* file, line, what, remedy */
};

/* = GSCHED_TIER_* */
enum gsr_tier { GSR_TIER_BLOCK = 0, GSR_TIER_SLICE = 1, GSR_TIER_LAUNCH = 2 };

/*
 * What instructions were inserted for; those in functions that several kernels call are counted for
 * the first of them
 */
enum gsr_insertion {
	GSR_INSERTED_IDS,		/* where block ids and the grid's size are read */
	GSR_INSERTED_VARIABLES,		/* where variables of the module are named */
	GSR_INSERTED_SITES,		/* at barriers and warp-wide instructions that finished
					 * threads must take part in */
	GSR_INSERTED_MBARRIERS,		/* where mbarriers are made, to take them down again */
	GSR_INSERTED_RESUME,		/* at the heads of loops where a block-task can be left */
	GSR_INSERTED_EXITS,		/* where threads end in functions, and behind the calls of
					 * these */
	GSR_INSERTED_LOOP,		/* around the body: the worker's life, the meeting at its
					 * end, saving and loading */
	GSR_INSERTIONS
};

/*
 * Where a parameter lies in a buffer that begins aligned, in bytes. Drivers may place one that is
 * aligned to more than 16 bytes elsewhere in theirs, so twins are launched with pointers to each.
 */
struct gsr_param {
	size_t offset, size;
};

/* One kernel of a module. Strings live as long as the gsr_rewrite. */
struct gsr_kernel {
	const char *name;		/* mangled, as in PTX */
	enum gsr_tier tier;
	const char *reason;		/* why this tier; "rewritten" for tier block */
	unsigned int params;		/* number of original parameters */
	const struct gsr_param *layout;	/* of these; the twin has them at the same places */
	size_t param_size;		/* bytes of the original parameter buffer */
	size_t launch_offset;		/* offset of struct gsr_launch in the new parameter
					 * buffer */
	unsigned int barriers;		/* barrier instructions in the body (and in what it
					 * calls) */
	unsigned int returns;		/* returns and exits turned into jumps */
	bool early_return;		/* threads may finish while others still use barriers */
	bool warp_rows;			/* the twin may be launched only if the block's x is a
					 * multiple of 32 */
	bool waits;			/* it may wait for other blocks: only the counter's order
					 * runs those that it waits for */
	unsigned int static_shared;	/* bytes added */
	unsigned int dynamic_shared;	/* bytes added behind the program's: gsr_dynamic_shared() */
	unsigned int inserted[GSR_INSERTIONS];	/* instructions */
	unsigned int sites;		/* barriers and warp-wide instructions that became meetings
					 * at the end of the body, or in shared memory */
	/* with gsr_options.resumable */
	unsigned int resume_points;	/* 0: this twin can leave between block-tasks only */
	bool restarts;			/* a block-task that was left there begins again */
	const char *resume_reason;	/* why there are none, or which loops have none; NULL:
					 * nothing to say */
	unsigned int save_fixed;	/* bytes of a record without dynamic shared memory and
					 * threads */
	unsigned int save_thread;	/* bytes a thread */
	const unsigned int *variables;	/* of the rewrite's, those that the twin uses, each once */
	unsigned int n_variables;
	/*
	 * Whoever launches the twin passes at references_offset, for each of these, the handle
	 * (u64) of a texture or surface object that reads and writes what is bound to it at the
	 * task's launch; wings take the same.
	 */
	const struct gsr_reference *references;
	unsigned int n_references;
	size_t references_offset;
};

/* A texture or surface reference of the original module */
struct gsr_reference {
	const char *name;
	bool surface;
};

#define GSR_VARIABLES_MAX	4096u
#define GSR_REFERENCES_MAX	256u	/* of a kernel, as many as CUDA allows */

/*
 * A word of the twins' table: the address of a variable of the original module that they use; or,
 * with @function, the number that the function has there, which is what the variable held at
 * @offset before anybody wrote to it
 */
enum gsr_space { GSR_SPACE_GLOBAL, GSR_SPACE_CONST };

struct gsr_variable {
	const char *name;
	enum gsr_space space;
	uint64_t size;			/* bytes; 0 not known here */
	bool copied;			/* nobody writes it, and the twins have a copy for when the
					 * original is not found */
	const char *function;		/* NULL: the address is meant */
	uint64_t offset;
};

struct gsr_rewrite {
	char *ptx;			/* NUL-terminated: the twins only, a module of its own; NULL
					 * if there are none */
	size_t ptx_size;		/* without the NUL */
	struct gsr_kernel *kernels;	/* every entry of the input, in its order; with
					 * gsr_options.kernel that one, if it is there */
	unsigned int n_kernels;
	const char *addresses;		/* the twins' table: an array of u64 in constant memory;
					 * NULL if there are no variables */
	struct gsr_variable *variables;	/* by their place in the table: its words */
	unsigned int n_variables;
	void *arena;			/* private */
};

/*
 * Twins that leave a block-task in its middle may forget it there and begin it again later, where
 * that leaves the same memory: nothing is saved, and its time is lost
 */
enum gsr_restart {
	GSR_RESTART_NEVER,
	GSR_RESTART_INSTEAD,		/* kernels that cannot be resumed */
	GSR_RESTART_ALWAYS,		/* none is resumed */
};

struct gsr_options {
	size_t size;			/* sizeof(struct gsr_options) */
	const char *name;		/* for messages; NULL "<ptx>" */
	size_t max_input;		/* 0: 256 MiB */
	bool resumable;			/* twins that can also leave a block-task in its middle:
					 * they cost a little more */
	enum gsr_restart restart;	/* only with resumable */
	bool modes;			/* twins for GSR_LAUNCH_BY_INDEX and gsr_launch.ranges:
					 * others ignore these */
	const char *kernel;		/* NULL: all. Else only this one's twin is made, the
					 * description has only this kernel, and there is no line
					 * information */
	unsigned int look;		/* instructions between two checks whether to leave; 0: a
					 * good default */
	/*
	 * For debugging: @dump gets the text of each kernel as it is after the pass of that name
	 * (gsr_pass_name()). The texts of all calls together are one module.
	 */
	const char *dump_pass;		/* NULL: none */
	void (*dump)(void *arg, const char *text, size_t size);
	void *dump_arg;
	/*
	 * For tests: check the text after each pass. What a pass did wrong becomes the reason of
	 * its kernel.
	 */
	bool verify;
};

/* Name of the @i-th pass that a kernel goes through, from 0 on; NULL: there are no more */
const char *gsr_pass_name(unsigned int i);

/*
 * Dynamic shared memory of the twin where the program gives the original @dynamic bytes. Where
 * static shared memory has no room for the twin's words they stand at its end.
 */
static inline size_t gsr_dynamic_shared(const struct gsr_kernel *k, size_t dynamic)
{
	return k->dynamic_shared ? (dynamic + 15) / 16 * 16 + k->dynamic_shared : dynamic;
}

/*
 * struct gsr_launch.save_stride for blocks of @threads with @dynamic bytes of dynamic shared memory
 */
static inline size_t gsr_save_stride(const struct gsr_kernel *k, size_t threads, size_t dynamic)
{
	dynamic = k->restarts ? 0 : dynamic;
	return (k->save_fixed + (dynamic + 15) / 16 * 16 + threads * k->save_thread + 15) / 16 * 16;
}

/* In which order block-tasks are fetched; either way the lower numbers come about first */
enum gsr_order {
	GSR_ORDER_STRIPES,	/* @workers run neighbours, then those behind them, as the hardware
				 * would start them */
	GSR_ORDER_STRICT,	/* none before a lower one: for kernels that may wait for others
				 * (gsr_kernel.waits) */
};

struct gsr_launch;
/*
 * Once @a's grid, of at most GSR_BLOCKS_MAX blocks, and workers are set. @depth: block-tasks that a
 * worker is to fetch at once, as far as is known;
 * 0 it is not, and each begins with one.
 */
void gsr_launch_order(struct gsr_launch *a, enum gsr_order order, unsigned int workers,
		      unsigned int depth);

struct gsr_control;
/* As it must be before a task's first launch with the window @window */
void gsr_control_init(struct gsr_control *c, uint64_t window);

/*
 * Rewrite one PTX module. @ptx needs no NUL. On GSR_OK @out is filled and owned by the caller
 * (gsr_rewrite_free); kernels that cannot be rewritten are listed with tier launch and the reason.
 * On any other status @out is zeroed.
 */
enum gsr_status gsr_rewrite_ptx(const char *ptx, size_t size, const struct gsr_options *opts,
				struct gsr_rewrite *out, struct gsr_error *err);
void gsr_rewrite_free(struct gsr_rewrite *rw);

/*
 * Who loads the twins beside the original's module fills their table before the first launch: it
 * reads the n_variables words at rw->addresses in the twins' module, has the addresses entered, and
 * writes the words back. @find gives a variable's address and size in the original's module, by
 * name. @first gives the word that was at @offset in the variable before anybody wrote to it: no
 * kernel of the module does, but the host may have; false: not known any more. @missing[i] is set
 * where there is neither an original nor a copy, or no number: twins that need it must not run.
 */
typedef bool gsr_find_fn(void *arg, const char *name, uint64_t *address, uint64_t *size);
typedef bool gsr_first_fn(void *arg, const char *name, uint64_t offset, uint64_t *word);
void gsr_fill_addresses(const struct gsr_rewrite *rw, gsr_find_fn *find, gsr_first_fn *first,
			void *arg, uint64_t *table, bool *missing);
/* The first that is missing to @k; NULL none */
const struct gsr_variable *gsr_missing_variable(const struct gsr_rewrite *rw,
						const struct gsr_kernel *k, const bool *missing);

/*
 * The description without the PTX, and why there is none, in the form that gschedd's cache and its
 * protocol carry (malloc'd, caller frees; NULL: no memory), and back. What is read may be anything:
 * on GSR_OK @out is filled, but for the PTX, and owned by the caller; otherwise it is zeroed and
 * @err (or NULL) says why there are no twins, or that this is no description (GSR_ERR_FORMAT).
 */
void *gsr_describe(const struct gsr_rewrite *rw, size_t *size);
void *gsr_describe_error(const struct gsr_error *err, size_t *size);
enum gsr_status gsr_read_description(const void *data, size_t size, struct gsr_rewrite *out,
				     struct gsr_error *err);

/*
 * Module images: what cuModuleLoadData, cuLibraryLoadData take: PTX text, a fat binary
 * (0xBA55ED50), its wrapper (0x466243b1), or machine code (ELF). Or the texts of a relocatable
 * program's units, as gsr_image_source() returns them.
 */
enum gsr_image_kind { GSR_IMAGE_UNKNOWN, GSR_IMAGE_PTX, GSR_IMAGE_FATBIN, GSR_IMAGE_WRAPPER,
		      GSR_IMAGE_ELF, GSR_IMAGE_UNITS };

/*
 * @max bounds every read. For images whose length the caller does not know (cuModuleLoadData passes
 * none) give SIZE_MAX: the length is then taken from the NUL or the header. Only then a wrapper is
 * followed: its pointers mean something in the process alone that has it.
 */
enum gsr_image_kind gsr_image_kind(const void *image, size_t max);
size_t gsr_image_size(const void *image, size_t max);	/* 0 unknown */

/*
 * The PTX of an image that says what @arch (90 for sm_90) would run: that of which the machine code
 * for it was made, or, if there is none, what the driver would compile: the highest target not
 * above it, sm_90a and sm_100f only where they fit. malloc'd and NUL-terminated, caller frees.
 * Reads uncompressed, lz4 and zstd entries. The units of a relocatable program (-rdc=true: wrapper
 * version 2) come joined into one. GSR_ERR_NO_PTX with the reason if there is none.
 */
enum gsr_status gsr_image_ptx(const void *image, size_t max, unsigned int arch, char **ptx,
			      size_t *size, struct gsr_error *err);

/*
 * The same without parsing any PTX, so for the program itself: the PTX, or, of a relocatable
 * program, an image of kind GSR_IMAGE_UNITS, which gsr_image_ptx() takes elsewhere. malloc'd and
 * NUL-terminated if it is PTX, caller frees. An image of that kind is refused.
 */
enum gsr_status gsr_image_source(const void *image, size_t max, unsigned int arch, char **source,
				 size_t *size, struct gsr_error *err);

/*
 * A relocatable program: the fat binary with the linked machine code (NULL: none), and fat binaries
 * or PTX of its units.
 */
struct gsr_unit {
	const void *data;
	size_t size;
};

/* a variable that says that the program has code of which there is no PTX */
#define GSR_OTHER_UNITS "__gsched_other_units"
enum gsr_status gsr_program_ptx(const void *linked, size_t linked_max, const struct gsr_unit *units,
				unsigned int n_units, unsigned int arch, char **ptx, size_t *size,
				struct gsr_error *err);
/* The units not joined, as for gsr_image_source(). */
enum gsr_status gsr_program_source(const void *linked, size_t linked_max,
				   const struct gsr_unit *units, unsigned int n_units,
				   unsigned int arch, char **source, size_t *size,
				   struct gsr_error *err);

/* PTX modules joined into one, as a linker does it: link.c. Line information is dropped. */
enum gsr_status gsr_link_ptx(const struct gsr_unit *texts, unsigned int n, char **ptx, size_t *size,
			     struct gsr_error *err);

#endif /* GSR_H */
