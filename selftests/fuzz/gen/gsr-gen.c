// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random valid kernels as PTX: gsr-gen [--seed N] [--count N] [--weight NAME=N] [--dir DIR]
 * [--list]
 */
#include <stdlib.h>
#include <string.h>
#include "gen.h"

static const char usage[] =
	"usage: gsr-gen [--seed N] [--count N] [--weight NAME=N] [--dir DIR]\n"
	"  --seed N         of the first kernel (1); the next has the next\n"
	"  --count N        kernels (1)\n"
	"  --weight NAME=N  how often a feature is chosen; --weight list names them\n"
	"  --dir DIR        write DIR/gen_SEED.ptx and .launch, as in selftests/rewriter/corpus; "
	"else all goes to stdout\n";

static bool write_files(struct gen_kernel *k, const char *ptx, const char *dir)
{
	char path[4096];
	bool good;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.ptx", dir, k->launch.kernel);
	f = fopen(path, "w");
	good = f && fputs(ptx, f) >= 0;
	good = f && !fclose(f) && good;
	snprintf(path, sizeof(path), "%s/%s.launch", dir, k->launch.kernel);
	f = good ? fopen(path, "w") : NULL;
	if (f)
		gen_print_launch(k, f);
	return f && !fclose(f);
}

int main(int argc, char **argv)
{
	unsigned long long seed = 1, count = 1, i;
	const char *dir = NULL;
	struct gen_options o;
	int a;

	gen_options_init(&o);
	for (a = 1; a + 1 < argc; a += 2) {
		if (!strcmp(argv[a], "--seed")) {
			seed = strtoull(argv[a + 1], NULL, 0);
		} else if (!strcmp(argv[a], "--count")) {
			count = strtoull(argv[a + 1], NULL, 0);
		} else if (!strcmp(argv[a], "--dir")) {
			dir = argv[a + 1];
		} else if (!strcmp(argv[a], "--weight") && !strcmp(argv[a + 1], "list")) {
			for (i = 0; i < GEN_FEATURE_COUNT; i++)
				printf("%s=%u\n", gen_feature_name[i], gen_feature_weight[i]);
			return 0;
		} else if (strcmp(argv[a], "--weight") || !gen_options_weight(&o, argv[a + 1])) {
			break;
		}
	}
	if (a < argc) {
		fputs(usage, stderr);
		return 2;
	}
	for (i = 0; i < count; i++) {
		struct gen_kernel *k = gen_kernel_new(seed + i, &o);
		char *ptx = k ? gen_print(k) : NULL;
		bool good = ptx;

		if (good && dir) {
			good = write_files(k, ptx, dir);
		} else if (good) {
			printf("// ");
			gen_print_launch(k, stdout);
			fputs(ptx, stdout);
		}
		free(ptx);
		gen_kernel_free(k);
		if (!good)
			return perror(dir ? dir : "gsr-gen"), 1;
	}
	return 0;
}
