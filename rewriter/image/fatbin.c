// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of module images. A fat binary is a header of 16 bytes and a sequence of entries
 * without gaps: a header, then a payload padded to 8 bytes. Each entry is PTX or machine code for
 * one architecture, plain or compressed. The format, as observed in the output of nvcc 12 and 13:
 *   0 u16 kind                   4 u32 bytes of the header    8 u64 bytes of the payload, padded
 *  16 u32 compressed bytes      24 u16 minor, 26 u16 major   28 u32 architecture
 *  40 u64 flags                 56 u64 bytes when uncompressed
 *  20 u32 0, or the place in the header of options such as --compile-only (u32 offset, u32 bytes)
 * The input is not trusted: every size is checked against its surroundings.
 *
 * In: an image. Out: its kind and size, the entries of a fat binary and their uncompressed
 * payload. Assumes nothing.
 */
#include <elf.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "fatbin.h"

#define WRAPPER_MAGIC	0x466243b1u
#define FATBIN_MAGIC	0xba55ed50u
#define WRAPPER_SIZE	24
#define HEADER_SIZE	16
#define ENTRY_MIN	64
#define LZ4_RATIO	256		/* most bytes that one byte of lz4 expands to */
#define OFFSET_MAX	(1ULL << 32)	/* of what an ELF file's tables refer to */

enum gsr_status gsr_image_fail(struct gsr_error *err, enum gsr_status status, const char *fmt, ...)
{
	static const char where[] = "<image>: ";
	va_list ap;

	if (err) {
		memset(err, 0, sizeof(*err));
		err->status = status;
		strcpy(err->message, where);
		va_start(ap, fmt);
		vsnprintf(err->message + sizeof(where) - 1,
			  sizeof(err->message) - sizeof(where) + 1, fmt, ap);
		va_end(ap);
	}
	return status;
}

uint64_t gsr_get(const unsigned char *p, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

/* PTX begins with .version after white space and comments; reads no further than needed */
bool gsr_is_ptx(const char *s, size_t max)
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
			for (i += 2; i < max && s[i] &&
			     !(s[i] == '*' && i + 1 < max && s[i + 1] == '/'); i++)
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
	if (magic == FATBIN_MAGIC && max >= HEADER_SIZE)
		return GSR_IMAGE_FATBIN;
	if (magic == WRAPPER_MAGIC && max >= WRAPPER_SIZE)
		return GSR_IMAGE_WRAPPER;
	if (magic == 0x464c457fu && max >= sizeof(Elf64_Ehdr))
		return GSR_IMAGE_ELF;
	if (magic == GSR_UNITS_MAGIC && max >= sizeof(struct gsr_units_header))
		return GSR_IMAGE_UNITS;
	return gsr_is_ptx(image, max) ? GSR_IMAGE_PTX : GSR_IMAGE_UNKNOWN;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The size of machine code: the end of the last thing that its tables refer to */
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
	if (eh.e_shoff > OFFSET_MAX || eh.e_phoff > OFFSET_MAX)
		return 0;
	table = eh.e_shoff + (uint64_t)eh.e_shnum * sizeof(sh);
	end = max_u64(end, max_u64(table, eh.e_phoff + (uint64_t)eh.e_phnum * sizeof(ph)));
	if (end > max)
		return 0;
	for (i = 0; i < eh.e_shnum; i++) {
		memcpy(&sh, p + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_NOBITS || sh.sh_type == SHT_NULL)
			continue;
		if (sh.sh_offset > OFFSET_MAX || sh.sh_size > OFFSET_MAX)
			return 0;
		end = max_u64(end, sh.sh_offset + sh.sh_size);
	}
	for (i = 0; i < eh.e_phnum; i++) {
		memcpy(&ph, p + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_offset > OFFSET_MAX || ph.p_filesz > OFFSET_MAX)
			return 0;
		end = max_u64(end, ph.p_offset + ph.p_filesz);
	}
	return end > max ? 0 : end;
}

size_t gsr_fatbin_size(const unsigned char *p, size_t max)
{
	uint64_t head, size;

	if (max < HEADER_SIZE || gsr_get(p, 4) != FATBIN_MAGIC || gsr_get(p + 4, 2) != 1)
		return 0;
	head = gsr_get(p + 6, 2);
	size = gsr_get(p + 8, 8);
	if (head < HEADER_SIZE || size > max || head > max - size)
		return 0;
	return head + size;
}

size_t gsr_image_size(const void *image, size_t max)
{
	switch (gsr_image_kind(image, max)) {
	case GSR_IMAGE_PTX:
		return strnlen(image, max);
	case GSR_IMAGE_FATBIN:
		return gsr_fatbin_size(image, max);
	case GSR_IMAGE_WRAPPER:
		return WRAPPER_SIZE;
	case GSR_IMAGE_ELF:
		return elf_size(image, max);
	default:
		return 0;
	}
}

/* Reads the entry at *@pos of @end bytes and advances *@pos. NULL, or what is wrong */
static const char *next_entry(const unsigned char *base, size_t *pos, size_t end,
			      struct gsr_entry *e)
{
	const unsigned char *p = base + *pos;
	uint64_t head;

	if (end - *pos < ENTRY_MIN)
		return "truncated entry in a fat binary";
	head = gsr_get(p + 4, 4);
	if (head < ENTRY_MIN || head > end - *pos)
		return "entry of a fat binary with a header larger than the binary";
	e->kind = (unsigned int)gsr_get(p, 2);
	e->size = gsr_get(p + 8, 8);
	e->compressed = gsr_get(p + 16, 4);
	e->arch = (unsigned int)gsr_get(p + 28, 4);
	e->flags = gsr_get(p + 40, 8);
	e->uncompressed = gsr_get(p + 56, 8);
	e->payload = p + head;
	if (e->size > end - *pos - head)
		return "entry of a fat binary larger than the binary";
	*pos += head + e->size;
	return NULL;
}

enum gsr_status gsr_fatbin_entries(const unsigned char *p, size_t max, struct gsr_entry **out,
				   unsigned int *n, struct gsr_error *err)
{
	size_t end = gsr_fatbin_size(p, max), pos, room = 0;
	struct gsr_entry *list = NULL, *grown;
	enum gsr_status status = GSR_OK;
	const char *wrong;

	*out = NULL;
	*n = 0;
	if (!end)
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "fat binary with an impossible size, or truncated");
	for (pos = gsr_get(p + 6, 2); pos < end && status == GSR_OK; ++*n) {
		if (*n == GSR_ENTRIES_MAX) {
			status = gsr_image_fail(err, GSR_ERR_LIMIT,
						"fat binary of more than %d entries",
						GSR_ENTRIES_MAX);
			break;
		}
		if (*n == room) {
			room = room ? room * 2 : 16;
			grown = realloc(list, room * sizeof(*list));
			if (!grown) {
				status = gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
				break;
			}
			list = grown;
		}
		wrong = next_entry(p, &pos, end, &list[*n]);
		if (wrong)
			status = gsr_image_fail(err, GSR_ERR_FORMAT, "%s", wrong);
	}
	if (status == GSR_OK) {
		*out = list;
		return GSR_OK;
	}
	free(list);
	*n = 0;
	return status;
}

enum gsr_status gsr_fatbin_unpack(const struct gsr_entry *e, uint64_t *budget, char **data,
				  size_t *size, struct gsr_error *err)
{
	bool packed = e->flags & (GSR_FLAG_LZ4 | GSR_FLAG_ZSTD | GSR_FLAG_OLD);
	uint64_t in = packed ? e->compressed : e->size, out = packed ? e->uncompressed : e->size;
	char *text;

	if (e->flags & GSR_FLAG_OLD)
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "entry compressed in a way nvcc no longer uses; "
				      "compile it again");
	if (!in || in > e->size)
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "entry of a fat binary: compressed size larger "
				      "than the entry");
	if (out > GSR_TEXT_MAX)
		return gsr_image_fail(err, GSR_ERR_LIMIT,
				      "entry of a fat binary larger than %u MiB",
				      GSR_TEXT_MAX >> 20);
	if (out > *budget)
		return gsr_image_fail(err, GSR_ERR_LIMIT,
				      "fat binary of which more than %u MiB would have to "
				      "be uncompressed", GSR_UNPACK_MAX >> 20);
	if ((e->flags & GSR_FLAG_LZ4 && out / LZ4_RATIO > in) ||
	    (e->flags & GSR_FLAG_ZSTD &&
	     ZSTD_getFrameContentSize(e->payload, in) != ZSTD_CONTENTSIZE_UNKNOWN &&
	     ZSTD_getFrameContentSize(e->payload, in) != out))
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "entry of a fat binary: the header lies about its size");
	text = malloc(out + 1);
	if (!text)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	*budget -= out;
	if (e->flags & GSR_FLAG_LZ4) {
		int n = LZ4_decompress_safe((const char *)e->payload, text, (int)in, (int)out);

		if (n < 0 || (uint64_t)n != out)
			goto corrupt;
	} else if (e->flags & GSR_FLAG_ZSTD) {
		size_t n = ZSTD_decompress(text, out, e->payload, in);

		if (ZSTD_isError(n) || n != out)
			goto corrupt;
	} else {
		memcpy(text, e->payload, out);
	}
	text[out] = 0;
	*data = text;
	*size = out;
	return GSR_OK;
corrupt:
	free(text);
	return gsr_image_fail(err, GSR_ERR_FORMAT,
			      "entry of a fat binary: corrupt compressed data");
}
