// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gsrewrite IN -o OUT.ptx [--explain] [--json] [--dump=PASS] [--arch N] [--image N] [--kernel NAME]
 * [--resumable] [--restart] [--modes]: rewrites the kernels of PTX, a fat binary or an executable.
 * Exit status: 0 at least one kernel was rewritten, 1 none could be, 2 the input is malformed or
 * cannot be read, 64 usage.
 *
 * In: the command line and files. Out: the twins' PTX, a report. Assumes nothing.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gsrewrite.h"

enum { EXIT_NONE = 1, EXIT_BAD = 2 };

struct args {
	const char *in, *out, *dump, *kernel;
	bool explain, json, resumable, restart, modes;
	unsigned int arch, image;
};

/* PTX extracted from the input: an executable may hold several modules */
struct text {
	char *ptx;
	size_t size;
};

struct texts {
	struct text *list;
	unsigned int n;
	char why[sizeof(((struct gsr_error *)NULL)->message)];	/* the last failure */
	bool bad;		/* there was a failure other than an image without PTX */
};

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "write the rewritten PTX there (- for the standard output)",
	  0 },
	{ "explain", 'e', NULL, 0, "print each kernel's tier and the reason", 0 },
	{ "json", 'j', NULL, 0, "print the description as JSON", 0 },
	{ "dump", 'd', "PASS", 0, "print each kernel as it is after a pass", 0 },
	{ "arch", 'a', "N", 0, "choose PTX for sm_N from a fat binary (default 90)", 0 },
	{ "kernel", 'k', "NAME", 0, "the twin of this kernel only", 0 },
	{ "image", 'i', "N", 0, "of several modules in an executable, the Nth only", 0 },
	{ "resumable", 'r', NULL, 0, "twins that can also leave a block in its middle", 0 },
	{ "restart", 's', NULL, 0, "twins that leave a block in its middle and begin it again", 0 },
	{ "modes", 'm', NULL, 0, "twins for static dispatch and limits by worker", 0 },
	{ 0 }
};

/* Rejects the name of a pass that does not exist, and lists those that do */
static void check_pass(const char *name, struct argp_state *state)
{
	char list[512] = "";
	size_t at = 0;
	unsigned int i;

	for (i = 0; gsr_pass_name(i); i++) {
		if (!strcmp(gsr_pass_name(i), name))
			return;
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, " %s",
					       gsr_pass_name(i));
	}
	argp_error(state, "--dump=%s: no such pass; the passes are%s", name, list);
}

static error_t parse_arg(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	unsigned long n;
	char *end;

	switch (key) {
	case 'o':
		a->out = arg;
		return 0;
	case 'e':
		a->explain = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case 'r':
		a->resumable = true;
		return 0;
	case 's':
		a->restart = true;
		return 0;
	case 'm':
		a->modes = true;
		return 0;
	case 'k':
		a->kernel = arg;
		return 0;
	case 'd':
		check_pass(arg, state);
		a->dump = arg;
		return 0;
	case 'a':
		n = strtoul(arg, &end, 10);
		if (*end || end == arg || n < 10 || n > 999)
			argp_error(state, "--arch %s: a number such as 90 expected", arg);
		a->arch = (unsigned int)n;
		return 0;
	case 'i':
		n = strtoul(arg, &end, 10);
		if (*end || end == arg || !n || n > 1000000)
			argp_error(state, "--image %s: a number from 1 on expected", arg);
		a->image = (unsigned int)n;
		return 0;
	case ARGP_KEY_ARG:
		if (a->in)
			argp_error(state, "more than one input");
		a->in = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->in)
			argp_error(state, "no input");
		if (!a->out && !a->explain && !a->json && !a->dump)
			argp_error(state, "nothing to do: give -o, --explain, --json or --dump");
		if (a->dump && (a->explain || a->json || (a->out && !strcmp(a->out, "-"))))
			argp_error(state, "--dump needs the standard output for itself");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_arg,
	.args_doc = "IN",
	.doc = "Rewrite CUDA kernels so that they can be preempted between blocks.\vIN is PTX, a "
	       "fat binary or an executable.",
};

/* Reads a file and adds a NUL; malloc'd. NULL with errno */
static unsigned char *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "re");
	unsigned char *p = NULL, *grown;
	size_t room = 0, n;

	*size = 0;
	if (!f)
		return NULL;
	do {
		if (room - *size < 2) {
			room = room ? room * 2 : 1 << 16;
			grown = realloc(p, room);
			if (!grown)
				goto fail;
			p = grown;
		}
		n = fread(p + *size, 1, room - *size - 1, f);
		*size += n;
	} while (n);
	if (ferror(f))
		goto fail;
	fclose(f);
	p[*size] = 0;
	return p;
fail:
	free(p);
	fclose(f);
	return NULL;
}

/* To be called after printing, while errno is that of it; says what is wrong once. */
static int check_stdout(void)
{
	static bool said;
	int err = errno;

	if (fflush(stdout))
		err = errno;
	else if (!ferror(stdout))
		return 0;
	if (!said)
		fprintf(stderr, "gsrewrite: standard output: %s\n", strerror(err));
	said = true;
	return EXIT_BAD;
}

static int write_out(const char *path, const char *text, size_t size)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
	bool bad;

	if (!f) {
		fprintf(stderr, "gsrewrite: %s: %s\n", path, strerror(errno));
		return EXIT_BAD;
	}
	bad = fwrite(text, 1, size, f) != size;
	if (f == stdout)
		return check_stdout();
	bad |= fclose(f) != 0;
	if (bad)
		fprintf(stderr, "gsrewrite: %s: %s\n", path, strerror(errno));
	return bad ? EXIT_BAD : 0;
}

static void write_dump(void *arg, const char *text, size_t size)
{
	fwrite(text, 1, size, arg);
}

static int rewrite(const struct args *a, const char *ptx, size_t size)
{
	struct gsr_options opts = { .size = sizeof(opts), .name = a->in,
				    .resumable = a->resumable || a->restart,
				    .restart = !a->restart   ? GSR_RESTART_NEVER :
					       a->resumable ? GSR_RESTART_INSTEAD :
							      GSR_RESTART_ALWAYS,
				    .modes = a->modes, .kernel = a->kernel, .dump_pass = a->dump,
				    .dump = write_dump, .dump_arg = stdout };
	struct gsr_rewrite rw;
	struct gsr_error err;
	int status;

	if (gsr_rewrite_ptx(ptx, size, &opts, &rw, &err) != GSR_OK) {
		fprintf(stderr, "gsrewrite: %s\n", err.message);
		return EXIT_BAD;
	}
	status = rw.ptx ? 0 : EXIT_NONE;
	if (a->dump && check_stdout())
		status = EXIT_BAD;
	if (a->explain && (!gsr_explain(ptx, &rw) || check_stdout()))
		status = EXIT_BAD;
	if (a->json) {
		char *json = gsr_explain_json(ptx, &rw);

		if (json)
			puts(json);
		if (!json || check_stdout())
			status = EXIT_BAD;
		free(json);
	}
	if (!rw.ptx)
		fprintf(stderr, "gsrewrite: %s: no kernel could be rewritten%s\n", a->in,
			a->explain || a->json ? "" : "; --explain says why");
	else if (a->out && write_out(a->out, rw.ptx, rw.ptx_size))
		status = EXIT_BAD;
	gsr_rewrite_free(&rw);
	return status;
}

static void add_text(struct texts *t, enum gsr_status status, char *ptx, size_t size,
		     const struct gsr_error *err)
{
	struct text *grown;

	if (status != GSR_OK) {
		snprintf(t->why, sizeof(t->why), "%s",
			 err->message[0] == '<' && strstr(err->message, ": ") ?
				 strstr(err->message, ": ") + 2 :
				 err->message);
		t->bad |= status != GSR_ERR_NO_PTX;
		return;
	}
	grown = realloc(t->list, (t->n + 1) * sizeof(*grown));
	if (!grown) {
		free(ptx);
		snprintf(t->why, sizeof(t->why), "out of memory");
		t->bad = true;
		return;
	}
	t->list = grown;
	t->list[t->n++] = (struct text){ ptx, size };
}

/*
 * Adds the PTX of an executable: of each fat binary that is a module, and of the units of a
 * relocatable program, linked into one module.
 */
static void add_program(struct texts *t, const unsigned char *image, size_t size, unsigned int arch)
{
	struct gsr_unit *units = NULL, *grown, one;
	size_t off, len, pos = 0, n;
	unsigned int n_units = 0;
	enum gsr_status status;
	struct gsr_error err;
	char *ptx;

	if (gsr_elf_section(image, size, GSR_SECTION_WHOLE, &off, &len))
		while (gsr_next_fatbin(image + off, len, &pos, &one)) {
			status = gsr_image_ptx(one.data, one.size, arch, &ptx, &n, &err);
			add_text(t, status, ptx, n, &err);
		}
	if (!gsr_elf_section(image, size, GSR_SECTION_UNITS, &off, &len))
		return;
	for (pos = 0; gsr_next_fatbin(image + off, len, &pos, &one); units[n_units++] = one) {
		grown = realloc(units, (n_units + 1) * sizeof(*units));
		if (!grown) {
			free(units);
			snprintf(t->why, sizeof(t->why), "out of memory");
			t->bad = true;
			return;
		}
		units = grown;
	}
	if (n_units) {
		status = gsr_program_ptx(NULL, 0, units, n_units, arch, &ptx, &n, &err);
		add_text(t, status, ptx, n, &err);
	}
	free(units);
}

static int rewrite_all(const struct args *a, const struct texts *t)
{
	int rc = EXIT_NONE, one;
	unsigned int i;

	if (!t->n || t->bad) {
		fprintf(stderr, "gsrewrite: %s: %s\n", a->in, t->why);
		return EXIT_BAD;
	}
	if (a->image > t->n) {
		fprintf(stderr, "gsrewrite: %s: --image %u of %u\n", a->in, a->image, t->n);
		return EXIT_BAD;
	}
	if (a->out && t->n > 1 && !a->image) {
		fprintf(stderr,
			"gsrewrite: %s: PTX of %u modules; choose one with --image 1 to %u\n",
			a->in, t->n, t->n);
		return EXIT_BAD;
	}
	for (i = 0; i < t->n; i++) {
		if (a->image && i != a->image - 1)
			continue;
		one = rewrite(a, t->list[i].ptx, t->list[i].size);
		rc = one == EXIT_BAD || rc == EXIT_BAD ? EXIT_BAD : one == 0 ? 0 : rc;
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct args a = { .arch = 90 };
	struct texts t = { .why = "machine code only, no PTX" };
	enum gsr_status status;
	struct gsr_error err;
	unsigned char *image;
	size_t size, n;
	char *ptx;
	int rc;

	/* libc's variable: one defined here would be hidden from it by -fvisibility=hidden */
	argp_program_version = "gsrewrite 0.1";
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	image = load(a.in, &size);
	if (!image) {
		fprintf(stderr, "gsrewrite: %s: %s\n", a.in, strerror(errno));
		return EXIT_BAD;
	}
	if (gsr_image_kind(image, size) == GSR_IMAGE_ELF) {
		add_program(&t, image, size, a.arch);
	} else {
		status = gsr_image_ptx(image, size, a.arch, &ptx, &n, &err);
		add_text(&t, status, ptx, n, &err);
	}
	rc = rewrite_all(&a, &t);
	while (t.n--)
		free(t.list[t.n].ptx);
	free(t.list);
	free(image);
	return rc;
}
