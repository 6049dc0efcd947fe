/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fat binaries and machine code made by hand, for the tests of the image reader. */
#ifndef REWRITER_FAT_H
#define REWRITER_FAT_H

#include <elf.h>
#include <lz4.h>
#include <zstd.h>
#include "test.h"

#define FAT_ROOM	(1 << 20)

struct fat {
	unsigned char *p;
	size_t n;
};

enum { PLAIN = 0, LZ4 = 1 << 13, ZSTD = 1 << 15, PACKED = LZ4 | ZSTD, EXACT = 1 << 20,
       FAMILY = 1 << 21 };
enum { PTX = 1, CODE = 2, LTO = 8 };

static inline void put(unsigned char *p, uint64_t v, unsigned int bytes)
{
	while (bytes--) {
		*p++ = (unsigned char)v;
		v >>= 8;
	}
}

static inline struct fat fat_new(void)
{
	struct fat f = { calloc(1, FAT_ROOM), 16 };

	put(f.p, 0xba55ed50, 4);
	put(f.p + 4, 1, 2);
	put(f.p + 6, 16, 2);
	return f;
}

/* flags: PLAIN, LZ4 or ZSTD, and EXACT or FAMILY */
static inline void fat_bytes(struct fat *f, unsigned int kind, unsigned int arch,
			     unsigned int flags, const void *data, size_t len)
{
	unsigned char *h = f->p + f->n, *d = h + 64;
	size_t n = len;

	if (flags & LZ4)
		n = (size_t)LZ4_compress_default(data, (char *)d, (int)len, 1 << 16);
	else if (flags & ZSTD)
		n = ZSTD_compress(d, 1 << 16, data, len, 3);
	else
		memcpy(d, data, len);
	put(h, kind, 2);
	put(h + 2, 0x101, 2);
	put(h + 4, 64, 4);
	put(h + 8, (n + 7) & ~7ul, 8);
	put(h + 16, flags & PACKED ? n : 0, 4);
	put(h + 28, arch, 4);
	put(h + 40, flags | 0x11, 8);
	put(h + 56, flags & PACKED ? len : 0, 8);
	f->n += 64 + ((n + 7) & ~7ul);
	put(f->p + 8, f->n - 16, 8);
}

static inline void fat_add(struct fat *f, unsigned int kind, unsigned int arch, unsigned int flags,
			   const char *text)
{
	fat_bytes(f, kind, arch, flags, text, strlen(text));
}

/*
 * Machine code for @arch made of PTX for @from: nothing but what says so. A note, as toolkits of
 * late have it, or @old, in the header's flags.
 */
static inline void fat_code(struct fat *f, unsigned int arch, unsigned int flags,
			    unsigned int from, bool old)
{
	struct {
		Elf64_Ehdr eh;
		struct {
			uint32_t name, desc, type;
			char owner[12];
			uint16_t version, arch;
			uint32_t toolkit;
		} note[2];
		Elf64_Shdr sh[2];
	} code = { 0 };

	memcpy(code.eh.e_ident, ELFMAG, SELFMAG);
	code.eh.e_ident[EI_CLASS] = ELFCLASS64;
	code.eh.e_ident[EI_ABIVERSION] = old ? 7 : 8;
	code.eh.e_type = ET_EXEC;
	code.eh.e_machine = 190;
	code.eh.e_flags = old ? from << 16 | 0x500 | arch : arch << 8;
	code.eh.e_shentsize = sizeof(code.sh[0]);
	code.eh.e_shnum = old ? 0 : 2;
	code.eh.e_shoff = old ? 0 : (uint64_t)((char *)code.sh - (char *)&code);
	for (int i = 0; i < 2; i++) {
		code.note[i].name = 12;
		code.note[i].desc = 8;
		code.note[i].type = i ? 1000 : 2000;
		memcpy(code.note[i].owner, "NVIDIA Corp", 12);
		code.note[i].version = 2;
		code.note[i].arch = (uint16_t)(i ? from : 7);
	}
	code.sh[1].sh_type = SHT_NOTE;
	code.sh[1].sh_offset = (uint64_t)((char *)code.note - (char *)&code);
	code.sh[1].sh_size = sizeof(code.note);
	fat_bytes(f, CODE, arch, flags, &code, sizeof(code));
}

/* A kernel for @target; each text of its own */
static inline const char *ptx_for(const char *target)
{
	static char buf[8][512];
	static unsigned int i;
	char *b = buf[i++ % 8];

	snprintf(b, 512, "//\n.version 8.0\n.target %s\n.address_size 64\n"
		 ".visible .entry k() { ret; }\n"
		 "// %0200d\n", target, 0);
	return b;
}

/*
 * Does the image give PTX for the target @want, or, NULL, an error of @status whose message
 * contains @why?
 */
static inline bool gives_why(const void *image, size_t n, unsigned int arch, const char *want,
			     enum gsr_status status, const char *why)
{
	struct gsr_error err;
	char *ptx, *t;
	size_t size;
	enum gsr_status s = gsr_image_ptx(image, n, arch, &ptx, &size, &err);
	bool good;

	if (s != GSR_OK) {
		good = !want && s == status && !ptx && err.status == s && err.message[0] &&
		       strstr(err.message, why);
	} else {
		t = strstr(ptx, ".target ");
		good = want && t && !strncmp(t + 8, want, strlen(want)) &&
		       t[8 + strlen(want)] == '\n' && strlen(ptx) == size;
		if (!good)
			printf("# got %.40s\n", t ? t : ptx);
	}
	if (!good)
		printf("# got %d %s\n", s, err.message);
	free(ptx);
	return good;
}

static inline bool gives(const void *image, size_t n, unsigned int arch, const char *want,
			 enum gsr_status status)
{
	return gives_why(image, n, arch, want, status, "");
}

#endif /* REWRITER_FAT_H */
