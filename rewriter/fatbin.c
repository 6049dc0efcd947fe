// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Module images. A fat binary is a header of 16 bytes and entries without gaps: header, payload padded to 8 bytes. Each
 * entry is PTX or machine code for one architecture, as it is or compressed (learnt from what nvcc 12 and 13 write):
 *   0 u16 kind (1 PTX, 2 ELF)   4 u32 bytes of the header    8 u64 bytes of the payload, padded
 *  16 u32 compressed bytes     24 u16 minor, 26 u16 major   28 u32 architecture
 *  40 u64 flags                56 u64 bytes when uncompressed
 * Nothing in it is believed: every size is checked against what surrounds it.
 */
#include <elf.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "gsr.h"

#define WRAPPER_MAGIC	0x466243b1u
#define FATBIN_MAGIC	0xba55ed50u
#define FLAG_OLD	(1ULL << 12)	/* a compression of its own that nvcc no longer writes */
#define FLAG_LZ4	(1ULL << 13)
#define FLAG_ZSTD	(1ULL << 15)
#define KIND_PTX	1
#define ENTRY_MIN	64
#define TEXT_MAX	(256u << 20)
#define LZ4_RATIO	256		/* no byte of lz4 makes more */

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *files;
};

struct fat_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct entry {
	const unsigned char *payload;
	uint64_t size, compressed, uncompressed, flags;
	unsigned int kind, arch;
};

static enum gsr_status fail(struct gsr_error *err, enum gsr_status status, const char *what)
{
	if (err) {
		memset(err, 0, sizeof(*err));
		err->status = status;
		snprintf(err->message, sizeof(err->message), "<image>: %s", what);
	}
	return status;
}

static uint64_t get(const unsigned char *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* PTX: ".version" behind white space and comments. Stops at the first byte that cannot be either. */
static bool is_ptx(const char *s, size_t max)
{
	static const char word[] = ".version";
	size_t i = 0, k;

	for (;;) {
		while (i < max && s[i] && strchr(" \t\r\n\f\v", s[i]))
			i++;
		if (i >= max || !s[i])
			return false;
		if (s[i] == '/' && i + 1 < max && s[i + 1] == '/') {
			while (i < max && s[i] && s[i] != '\n')
				i++;
		} else if (s[i] == '/' && i + 1 < max && s[i + 1] == '*') {
			for (i += 2; i < max && s[i] && !(s[i] == '*' && i + 1 < max && s[i + 1] == '/'); i++)
				;
			if (i >= max || !s[i])
				return false;
			i += 2;
		} else {
			break;
		}
	}
	for (k = 0; word[k]; k++)
		if (i + k >= max || s[i + k] != word[k])
			return false;
	return true;
}

enum gsr_image_kind gsr_image_kind(const void *image, size_t max)
{
	const unsigned char *p = image;
	uint32_t magic = 0;
	unsigned int i;

	if (!image || !max)
		return GSR_IMAGE_UNKNOWN;
	/* byte by byte, so that a short text is not read past its NUL */
	for (i = 0; i < 4 && i < max && (i == 0 || p[i - 1]); i++)
		magic |= (uint32_t)p[i] << 8 * i;
	if (magic == FATBIN_MAGIC && max >= sizeof(struct fat_header))
		return GSR_IMAGE_FATBIN;
	if (magic == WRAPPER_MAGIC && max >= sizeof(struct wrapper))
		return GSR_IMAGE_WRAPPER;
	if (magic == 0x464c457fu && max >= sizeof(Elf64_Ehdr))
		return GSR_IMAGE_ELF;
	return is_ptx(image, max) ? GSR_IMAGE_PTX : GSR_IMAGE_UNKNOWN;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Machine code: the end of whatever its tables name */
static size_t elf_size(const unsigned char *p, size_t max)
{
	uint64_t end = sizeof(Elf64_Ehdr), table;
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	Elf64_Phdr ph;
	unsigned int i;

	memcpy(&eh, p, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || (eh.e_shnum && eh.e_shentsize != sizeof(sh)) ||
	    (eh.e_phnum && eh.e_phentsize != sizeof(ph)))
		return 0;
	if (eh.e_shoff > TEXT_MAX * 16ULL || eh.e_phoff > TEXT_MAX * 16ULL)
		return 0;
	table = eh.e_shoff + (uint64_t)eh.e_shnum * sizeof(sh);
	end = max_u64(end, max_u64(table, eh.e_phoff + (uint64_t)eh.e_phnum * sizeof(ph)));
	if (end > max)
		return 0;
	for (i = 0; i < eh.e_shnum; i++) {
		memcpy(&sh, p + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL)
			continue;
		if (sh.sh_offset > TEXT_MAX * 16ULL || sh.sh_size > TEXT_MAX * 16ULL)
			return 0;
		end = max_u64(end, sh.sh_offset + sh.sh_size);
	}
	for (i = 0; i < eh.e_phnum; i++) {
		memcpy(&ph, p + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_offset > TEXT_MAX * 16ULL || ph.p_filesz > TEXT_MAX * 16ULL)
			return 0;
		end = max_u64(end, ph.p_offset + ph.p_filesz);
	}
	return end > max ? 0 : end;
}

/* Bytes of a fat binary with its header, 0 if it is none or does not fit @max */
static size_t fatbin_size(const unsigned char *p, size_t max)
{
	uint64_t head, size;

	if (max < sizeof(struct fat_header) || get(p, 4) != FATBIN_MAGIC || get(p + 4, 2) != 1)
		return 0;
	head = get(p + 6, 2);
	size = get(p + 8, 8);
	if (head < sizeof(struct fat_header) || size > max || head > max - size)
		return 0;
	return head + size;
}

size_t gsr_image_size(const void *image, size_t max)
{
	switch (gsr_image_kind(image, max)) {
	case GSR_IMAGE_PTX:
		return strnlen(image, max);
	case GSR_IMAGE_FATBIN:
		return fatbin_size(image, max);
	case GSR_IMAGE_WRAPPER:
		return sizeof(struct wrapper);
	case GSR_IMAGE_ELF:
		return elf_size(image, max);
	default:
		return 0;
	}
}

/* The entry at *@pos of @end bytes; moves *@pos. NULL: fine, else what is wrong */
static const char *next_entry(const unsigned char *base, size_t *pos, size_t end, struct entry *e)
{
	const unsigned char *p = base + *pos;
	uint64_t head;

	if (end - *pos < ENTRY_MIN)
		return "truncated entry in a fat binary";
	head = get(p + 4, 4);
	if (head < ENTRY_MIN || head > end - *pos)
		return "entry of a fat binary with a header larger than the binary";
	e->kind = (unsigned int)get(p, 2);
	e->size = get(p + 8, 8);
	e->compressed = get(p + 16, 4);
	e->arch = (unsigned int)get(p + 28, 4);
	e->flags = get(p + 40, 8);
	e->uncompressed = get(p + 56, 8);
	e->payload = p + head;
	if (e->size > end - *pos - head)
		return "entry of a fat binary larger than the binary";
	*pos += head + e->size;
	return NULL;
}

static enum gsr_status unpack(const struct entry *e, char **ptx, size_t *size, struct gsr_error *err)
{
	bool packed = e->flags & (FLAG_LZ4 | FLAG_ZSTD | FLAG_OLD);
	uint64_t in = packed ? e->compressed : e->size, out = packed ? e->uncompressed : e->size;
	char *text;

	if (e->flags & FLAG_OLD)
		return fail(err, GSR_ERR_FORMAT, "PTX compressed in a way nvcc no longer uses; compile it again");
	if (!in || in > e->size)
		return fail(err, GSR_ERR_FORMAT, "PTX of a fat binary: compressed size larger than the entry");
	if (out > TEXT_MAX)
		return fail(err, GSR_ERR_LIMIT, "PTX of a fat binary larger than 256 MiB");
	if ((e->flags & FLAG_LZ4 && out / LZ4_RATIO > in) ||
	    (e->flags & FLAG_ZSTD && ZSTD_getFrameContentSize(e->payload, in) != ZSTD_CONTENTSIZE_UNKNOWN &&
	     ZSTD_getFrameContentSize(e->payload, in) != out))
		return fail(err, GSR_ERR_FORMAT, "PTX of a fat binary: the header lies about its size");
	text = malloc(out + 1);
	if (!text)
		return fail(err, GSR_ERR_NOMEM, "out of memory");
	if (e->flags & FLAG_LZ4) {
		int n = LZ4_decompress_safe((const char *)e->payload, text, (int)in, (int)out);

		if (n < 0 || (uint64_t)n != out)
			goto corrupt;
	} else if (e->flags & FLAG_ZSTD) {
		size_t n = ZSTD_decompress(text, out, e->payload, in);

		if (ZSTD_isError(n) || n != out)
			goto corrupt;
	} else {
		memcpy(text, e->payload, out);
	}
	text[out] = 0;
	*size = strnlen(text, out);
	if (!is_ptx(text, *size)) {
		free(text);
		return fail(err, GSR_ERR_FORMAT, "entry of a fat binary is marked as PTX and is not");
	}
	*ptx = text;
	return GSR_OK;
corrupt:
	free(text);
	return fail(err, GSR_ERR_FORMAT, "PTX of a fat binary: corrupt compressed data");
}

/* .target sm_90a runs on 9.0 only, sm_100f on 10.x only; others on whatever is newer */
static bool target_runs_on(const char *ptx, unsigned int arch)
{
	const char *t = strstr(ptx, ".target");
	unsigned long n;
	char *end;

	t = t ? strstr(t, "sm_") : NULL;
	if (!t)
		return true;
	n = strtoul(t + 3, &end, 10);
	if (*end == 'a')
		return n == arch;
	if (*end == 'f')
		return n / 10 == arch / 10 && n <= arch;
	return n <= arch;
}

static enum gsr_status fatbin_ptx(const unsigned char *p, size_t max, unsigned int arch, char **ptx, size_t *size,
				  struct gsr_error *err)
{
	size_t end = fatbin_size(p, max), start, pos;
	uint64_t below = ((uint64_t)arch + 1) << 32, key, best_key;
	struct entry e, best = { 0 };
	uint32_t index;
	enum gsr_status status;
	bool any = false, found;
	const char *wrong;

	if (!end)
		return fail(err, GSR_ERR_FORMAT, "fat binary with an impossible size, or truncated");
	start = get(p + 6, 2);
	/* the highest target first, then the next lower one if that one is for another machine only */
	for (;;) {
		found = false;
		best_key = 0;
		for (pos = start, index = 0; pos < end; index++) {
			wrong = next_entry(p, &pos, end, &e);
			if (wrong)
				return fail(err, GSR_ERR_FORMAT, wrong);
			if (e.kind != KIND_PTX)
				continue;
			any = true;
			key = (uint64_t)e.arch << 32 | index;
			if (key < below && (!found || key > best_key)) {
				best = e;
				best_key = key;
				found = true;
			}
		}
		if (!found)
			return fail(err, GSR_ERR_NO_PTX, any ? "PTX for newer architectures only" : "machine code only, no PTX");
		status = unpack(&best, ptx, size, err);
		if (status != GSR_OK)
			return status;
		if (target_runs_on(*ptx, arch))
			return GSR_OK;
		free(*ptx);
		*ptx = NULL;
		below = best_key;
	}
}

enum gsr_status gsr_image_ptx(const void *image, size_t max, unsigned int arch, char **ptx, size_t *size,
			      struct gsr_error *err)
{
	struct wrapper w;
	size_t n;

	*ptx = NULL;
	*size = 0;
	if (err)
		memset(err, 0, sizeof(*err));
	switch (gsr_image_kind(image, max)) {
	case GSR_IMAGE_PTX:
		n = strnlen(image, max);
		if (n > TEXT_MAX)
			return fail(err, GSR_ERR_LIMIT, "PTX larger than 256 MiB");
		*ptx = malloc(n + 1);
		if (!*ptx)
			return fail(err, GSR_ERR_NOMEM, "out of memory");
		memcpy(*ptx, image, n);
		(*ptx)[n] = 0;
		*size = n;
		return GSR_OK;
	case GSR_IMAGE_FATBIN:
		return fatbin_ptx(image, max, arch, ptx, size, err);
	case GSR_IMAGE_WRAPPER:
		/* it points into the program that registers it: as trusted as that program's own code */
		memcpy(&w, image, sizeof(w));
		if (gsr_image_kind(w.data, SIZE_MAX) != GSR_IMAGE_FATBIN)
			return fail(err, GSR_ERR_FORMAT, "wrapper that does not point to a fat binary");
		return fatbin_ptx(w.data, SIZE_MAX, arch, ptx, size, err);
	case GSR_IMAGE_ELF:
		return fail(err, GSR_ERR_NO_PTX, "machine code only, no PTX");
	default:
		return fail(err, GSR_ERR_FORMAT, "neither PTX, nor a fat binary, nor machine code");
	}
}
