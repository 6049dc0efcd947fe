// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl: manages groups, quotas and status of gsched, and runs programs under it. */
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"

#define PROGRAM	"gschedctl"

static int ctl_help(struct ctl *ctl, int argc, char **argv);
static int ctl_version(struct ctl *ctl, int argc, char **argv);

static const struct command {
	const char *name;		/* one or two words */
	const char *args, *help;
	int (*fn)(struct ctl *ctl, int argc, char **argv);
	int min, max;			/* number of arguments; max -1: any number */
	const struct argp *options;	/* the command's own */
	bool program;			/* options after its first argument are the program's */
} commands[] = {
	{ "run", "-- PROGRAM [ARG...]\n--env", "run a CUDA program under gsched, in a group",
	  ctl_run, .max = -1, .options = &ctl_run_options, .program = true },
	{ "group create", "NAME", "make a group; a/b is b below a",
	  ctl_group_create, .min = 1, .max = 1 },
	{ "group list", NULL, "the groups of the device, a line each",
	  ctl_group_list, .options = &ctl_output_options },
	{ "group set", "NAME FILE=VALUE...",
	  "write files of a group, such as capsm.max=4 gpu.priority=0",
	  ctl_group_set, .min = 2, .max = -1 },
	{ "group get", "NAME FILE", "print one file of a group",
	  ctl_group_get, .min = 2, .max = 2 },
	{ "group show", "[NAME]", "print all files of a group, or of every group",
	  ctl_group_show, .max = 1 },
	{ "group delete", "NAME", "remove a group without clients and groups below it",
	  ctl_group_delete, .min = 1, .max = 1 },
	{ "client set", "PID FILE=VALUE...",
	  "write files of one process, such as capsm.max=4 gpu.priority=0",
	  ctl_client_set, .min = 2, .max = -1 },
	{ "client get", "PID FILE", "print one file of a process",
	  ctl_client_get, .min = 2, .max = 2 },
	{ "device list", NULL, "the devices, a line each",
	  ctl_device_list, .options = &ctl_output_options },
	{ "device set", "[NAME] FILE=VALUE...",
	  "write files of a device, such as policy=ffs clients_max=8",
	  ctl_device_set, .min = 1, .max = -1 },
	{ "device delete", "NAME", "forget a device",
	  ctl_device_delete, .min = 1, .max = 1, .options = &ctl_device_delete_options },
	{ "showconf", NULL, "print the settings of devices and groups, as setconf takes them",
	  ctl_showconf, .max = 0 },
	{ "setconf", "FILE\n-", "make the groups and settings that showconf printed, all or none",
	  ctl_setconf, .min = 1, .max = 1 },
	{ "simulate", "SCENARIO...",
	  "what a policy and quotas would do with some programs, without a GPU",
	  ctl_simulate, .min = 1, .max = -1, .options = &ctl_simulate_options },
	{ "status", NULL, "devices, groups, clients, and why a kernel is not preemptible",
	  ctl_status, .options = &ctl_output_options },
	{ "watch", NULL, "status again and again",
	  ctl_watch, .options = &ctl_watch_options },
	{ "monitor", NULL, "what there is, then what happens, a line each",
	  ctl_monitor, .options = &ctl_monitor_options },
	{ "metrics", NULL, "all numbers of the status, for Prometheus",
	  ctl_metrics, .max = 0 },
	{ "qos", NULL, "divide the SMs so that latency targets are met, until it is ended",
	  ctl_qos, .max = 0, .options = &ctl_qos_options },
	{ "help", "[COMMAND]", "what there is, or how a command is used",
	  ctl_help, .max = 2 },
	{ "version", NULL, "print the version",
	  ctl_version, .max = 0 },
};
#define N_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

void ctl_error(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	fputs(PROGRAM ": ", stderr);
	ctl_put_safely(stderr, text ? text : fmt);
	fputc('\n', stderr);
	free(text);
}

/* ---- options ---- */

static const struct argp_option common_options[] = {
	{ "device", 'd', "NAME", 0, "The device (default: the first)", 0 },
	{ "socket", 's', "PATH", 0, "The socket of gschedd (default $GSCHED_SOCKET)", 0 },
	{ "backend", 'b', "module|daemon", 0,
	  "The arbiter (default: the module if it is loaded)", 0 },
	{ NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static error_t common_option(int key, char *arg, struct argp_state *state)
{
	struct ctl *ctl = state->input;

	switch (key) {
	case 'd':
		ctl->device = arg;
		return 0;
	case 's':
		ctl->open.socket = arg;
		return 0;
	case 'b':
		if (!strcmp(arg, "module"))
			ctl->open.backend = GSCHED_BACKEND_MODULE;
		else if (!strcmp(arg, "daemon"))
			ctl->open.backend = GSCHED_BACKEND_DAEMON;
		else
			argp_error(state, "--backend %s: it is module or daemon", arg);
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp common = { .options = common_options, .parser = common_option };

/* What argp leaves: the arguments of main() or of a command */
struct rest {
	struct ctl *ctl;
	const struct command *command;	/* NULL: gschedctl itself */
	int argc;
	char **argv;
};

static error_t take_rest(int key, char *arg, struct argp_state *state)
{
	struct rest *rest = state->input;
	int min, max;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = rest->ctl;
		if (rest->command && rest->command->options)
			state->child_inputs[1] = rest->ctl;
		return 0;
	case ARGP_KEY_ARGS:
		rest->argc = state->argc - state->next;
		rest->argv = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		min = rest->command ? rest->command->min : 1;
		max = rest->command ? rest->command->max : -1;
		if (rest->argc < min || (max >= 0 && rest->argc > max))
			argp_usage(state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- commands ---- */

/* Prints the commands whose first word is @word, NULL: all. Returns how many. */
static unsigned int list_commands(FILE *to, const char *word)
{
	size_t len = word ? strlen(word) : 0;
	unsigned int n = 0;

	for (size_t i = 0; i < N_COMMANDS; i++) {
		const char *name = commands[i].name;

		if (word && (strncmp(name, word, len) || (name[len] && name[len] != ' ')))
			continue;
		fprintf(to, "  %-14s %s\n", name, commands[i].help);
		n++;
	}
	return n;
}

static char *insert_commands(int key, const char *text, void *input)
{
	size_t size;
	char *out = NULL;
	FILE *f;

	if (key != ARGP_KEY_HELP_PRE_DOC)
		return (char *)text;
	f = open_memstream(&out, &size);
	if (!f)
		return (char *)text;
	fprintf(f, "%s\n\nCommands:\n", text);
	list_commands(f, NULL);
	fputs("\n" PROGRAM " help COMMAND says more of one.", f);
	fclose(f);
	return out;
}

/* Parses the command's options and runs it. argv[0] is the last word of its name. */
static int run_command(struct ctl *ctl, const struct command *command, int argc, char **argv)
{
	struct argp_child children[] = {
		{ command->options, 0, NULL, 0 },
		{ &common, 0, "Of every command:", 1 },
		{ 0 },
	};
	struct argp argp = {
		.parser = take_rest, .args_doc = command->args, .doc = command->help,
		.children = command->options ? children : children + 1,
	};
	struct rest rest = { .ctl = ctl, .command = command };
	char name[64];

	snprintf(name, sizeof(name), PROGRAM " %s", command->name);
	argv[0] = name;
	if (argp_parse(&argp, argc, argv, command->program ? ARGP_IN_ORDER : 0, NULL, &rest))
		return CTL_USAGE;
	return command->fn(ctl, rest.argc, rest.argv);
}

/* @words: how many arguments its name takes. */
static const struct command *find_command(int argc, char **argv, int *words)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		const char *name = commands[i].name;
		size_t len = strcspn(name, " ");

		if (strlen(argv[0]) != len || strncmp(argv[0], name, len))
			continue;
		*words = name[len] ? 2 : 1;
		if (!name[len] || (argc > 1 && !strcmp(argv[1], name + len + 1)))
			return &commands[i];
	}
	return NULL;
}

static int no_command(int argc, char **argv)
{
	if (!list_commands(stderr, argv[0]))
		ctl_error("%s: no such command; see " PROGRAM " help", argv[0]);
	else if (argc > 1)
		ctl_error("%s %s: no such command; those of %s are above", argv[0], argv[1],
			  argv[0]);
	else
		ctl_error("%s: what? Its commands are above", argv[0]);
	return CTL_USAGE;
}

static const struct argp_child main_children[] = { { &common, 0, NULL, 0 }, { 0 } };
static const struct argp main_argp = {
	.parser = take_rest,
	.args_doc = "COMMAND [ARG...]",
	.children = main_children,
	.help_filter = insert_commands,
	.doc = "Run CUDA programs under gsched, and control its groups.",
};

static int ctl_help(struct ctl *ctl, int argc, char **argv)
{
	char self[] = PROGRAM, option[] = "--help", *ask[] = { self, option, NULL };
	const struct command *command;
	struct rest rest = { .ctl = ctl };
	int words;

	if (!argc)
		return argp_parse(&main_argp, 2, ask, 0, NULL, &rest) ? CTL_FAIL : 0;
	command = find_command(argc, argv, &words);
	if (command && words == argc)
		return run_command(ctl, command, 2, ask);
	return argc == 1 && list_commands(stdout, argv[0]) ? 0 : no_command(argc, argv);
}

static int ctl_version(struct ctl *ctl, int argc, char **argv)
{
	puts(argp_program_version);
	return 0;
}

static bool asks_for_help(const char *arg)
{
	return !strcmp(arg, "-h") || !strcmp(arg, "-?") || !strcmp(arg, "--help");
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .open.size = sizeof(ctl.open) };
	struct rest rest = { .ctl = &ctl };
	char self[] = PROGRAM, *none[] = { self, NULL };
	const struct command *command;
	int words, rc;

	setlocale(LC_CTYPE, "");
	argp_err_exit_status = CTL_USAGE;
	argp_program_version = PROGRAM " 0.1";
	if (!argc) {
		argc = 1;
		argv = none;
	}
	argv[0] = self;
	if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &rest))
		return CTL_USAGE;
	command = find_command(rest.argc, rest.argv, &words);
	if (command)
		rc = run_command(&ctl, command, rest.argc - words + 1, rest.argv + words - 1);
	else if (rest.argc == 2 && asks_for_help(rest.argv[1]) &&
		 list_commands(stdout, rest.argv[0]))
		rc = 0;
	else
		rc = no_command(rest.argc, rest.argv);
	if (fflush(stdout) || ferror(stdout)) {
		ctl_error("output: %s", strerror(errno));
		return CTL_FAIL;
	}
	return rc;
}
