/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rewriter's results on disk, one file each, named by the hash of everything they depend on. A
 * file with a wrong checksum is dropped, never used. Several processes may share a directory,
 * because files appear by rename.
 */
#ifndef GSCHEDD_CACHE_H
#define GSCHEDD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_KEY	32

struct cache_entry {
	uint32_t err;			/* 0; or ENOEXEC: refused, the description has the reason */
	char *ptx, *description, *notes;	/* one allocation, at ptx */
	size_t ptx_size, description_size, notes_size;
};

/*
 * -errno; without it every cache_get() misses. @dir is kept: a directory that is removed is made
 * again.
 */
int cache_open(const char *dir, uint64_t max);
bool cache_get(const uint8_t key[CACHE_KEY], struct cache_entry *e);	/* caller frees e->ptx */
void cache_put(const uint8_t key[CACHE_KEY], const struct cache_entry *e);
void cache_close(void);

/*
 * The key of an image, which a kernel's name of @name_size bytes follows, for an architecture and
 * GSP_REWRITE_* flags, with this rewriter's build.
 */
void cache_key(const void *image, size_t size, size_t name_size, uint32_t arch, uint32_t flags,
	       uint8_t key[CACHE_KEY]);

#endif /* GSCHEDD_CACHE_H */
