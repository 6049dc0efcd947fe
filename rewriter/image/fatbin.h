/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Internal to the image reader: fatbin.c parses containers, select.c chooses among their entries,
 * join.c takes the chosen ones, link.c links translation units.
 */
#ifndef GSR_FATBIN_H
#define GSR_FATBIN_H

#include "rewriter/gsr.h"

/* most bytes of an uncompressed entry, and of a linked program */
#define GSR_TEXT_MAX	(256u << 20)
/* most bytes that one call may uncompress, including what it discards */
#define GSR_UNPACK_MAX	(512u << 20)
#define GSR_ENTRIES_MAX	4096		/* entries of a fat binary */
#define GSR_UNITS_MAX	65536		/* translation units of a program */

/* Kinds of entries, and those of their flags that matter here */
#define GSR_KIND_PTX	1
#define GSR_KIND_ELF	2
#define GSR_KIND_LTO	8		/* -dlto: only linker and driver can read it */
#define GSR_FLAG_OLD	(1ULL << 12)	/* NVIDIA's own compression; nvcc no longer writes it */
#define GSR_FLAG_LZ4	(1ULL << 13)
#define GSR_FLAG_ZSTD	(1ULL << 15)
#define GSR_FLAG_EXACT	(1ULL << 20)	/* sm_90a: for this architecture only */
#define GSR_FLAG_FAMILY	(1ULL << 21)	/* sm_100f: for this family only */

/* GSR_IMAGE_UNITS: this header, then @n texts, each with its NUL */
#define GSR_UNITS_MAGIC	0x5553477fu

struct gsr_units_header {
	uint32_t magic, n;
	uint32_t others;		/* 1: the program has, or may have, units without PTX */
};

struct gsr_entry {
	const unsigned char *payload;
	uint64_t size, compressed, uncompressed, flags;
	unsigned int kind, arch;
};

uint64_t gsr_get(const unsigned char *p, unsigned int bytes);	/* little endian, at any address */
enum gsr_status gsr_image_fail(struct gsr_error *err, enum gsr_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool gsr_is_ptx(const char *s, size_t max);

/* Bytes of a fat binary with its header; 0: it is none, or exceeds @max */
size_t gsr_fatbin_size(const unsigned char *p, size_t max);
/* Its entries, at most GSR_ENTRIES_MAX, malloc'd */
enum gsr_status gsr_fatbin_entries(const unsigned char *p, size_t max, struct gsr_entry **out,
				   unsigned int *n, struct gsr_error *err);
/* An entry's bytes, malloc'd, with a NUL added; charges *budget, the bytes still allowed */
enum gsr_status gsr_fatbin_unpack(const struct gsr_entry *e, uint64_t *budget, char **data,
				  size_t *size, struct gsr_error *err);

#endif /* GSR_FATBIN_H */
