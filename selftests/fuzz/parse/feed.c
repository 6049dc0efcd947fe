// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * feed NAME FILE-OR-DIRECTORY...: the target without libFuzzer, one TAP result for each argument.
 */
#include <dirent.h>
#include <sys/stat.h>
#include "fuzz.h"

#define FILE_MAX	(16u << 20)

/* A buffer of just the input's size, so that a sanitizer sees each byte read behind it */
static int feed(const char *path)
{
	FILE *f = fopen(path, "re");
	uint8_t *room = malloc(FILE_MAX), *p;
	size_t n;

	if (!f || !room) {
		printf("# %s: cannot be read\n", path);
		if (f)
			fclose(f);
		free(room);
		return -1;
	}
	n = fread(room, 1, FILE_MAX, f);
	fclose(f);
	p = malloc(n ? n : 1);
	if (!p)
		abort();
	memcpy(p, room, n);
	free(room);
	/* a target that ends here is named by the last line */
	printf("# %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(p, n);
	free(p);
	return 0;
}

static int feed_all(const char *dir, unsigned int *n)
{
	struct dirent **list;
	char path[4096];
	int i, bad = 0, count = scandir(dir, &list, NULL, alphasort);

	for (i = 0; i < count; i++) {
		if (list[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
			bad |= feed(path);
			++*n;
		}
		free(list[i]);
	}
	if (count >= 0)
		free(list);
	return bad;
}

int main(int argc, char **argv)
{
	int i, bad, failed = 0;
	unsigned int n;
	struct stat st;

	if (argc < 3) {
		fprintf(stderr, "usage: %s NAME FILE-OR-DIRECTORY...\n", argv[0]);
		return 2;
	}
	for (i = 2; i < argc; i++) {
		n = 0;
		if (!stat(argv[i], &st) && S_ISDIR(st.st_mode)) {
			bad = feed_all(argv[i], &n);
			bad |= !n;
		} else {
			bad = feed(argv[i]);
			n = 1;
		}
		printf("%sok %d - %s: %u inputs of %s\n", bad ? "not " : "", i - 1, argv[1],
		       n, argv[i]);
		failed |= bad;
	}
	printf("1..%d\n", argc - 2);
	return failed != 0;
}
