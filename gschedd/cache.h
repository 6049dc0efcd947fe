/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rewriter's results on disk, a file each, named by the hash of all that they depend on. A file that is not whole is
 * dropped, never believed. Several processes may share a directory: files appear by rename.
 */
#ifndef GSCHEDD_CACHE_H
#define GSCHEDD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_KEY	32

struct cache_entry {
	uint32_t err;			/* 0, or ENOEXEC for a refusal: the description says why */
	char *ptx, *description, *notes;	/* one allocation, at ptx */
	size_t ptx_size, description_size, notes_size;
};

int cache_open(const char *dir, uint64_t max);		/* -errno; without it every get is a miss */
bool cache_get(const uint8_t key[CACHE_KEY], struct cache_entry *e);	/* caller frees e->ptx */
void cache_put(const uint8_t key[CACHE_KEY], const struct cache_entry *e);
void cache_close(void);

/* Of an image for an architecture with options (GSP_REWRITE_*), by this build of the rewriter. */
void cache_key(const void *image, size_t size, uint32_t arch, uint32_t flags, uint8_t key[CACHE_KEY]);

#endif /* GSCHEDD_CACHE_H */
