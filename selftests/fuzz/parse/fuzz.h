/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fuzz target is one function that is given bytes. It is built twice: with libFuzzer (`make
 * fuzz`), and with feed.c, which gives it the files that were kept (`make check`). What must hold
 * of any input is a MUST; it ends the process.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x, ...) do { \
	if (!(x)) { \
		fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #x); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		abort(); \
	} \
} while (0)

#endif /* FUZZ_H */
