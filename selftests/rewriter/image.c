// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fat binaries: plain, lz4 and zstd entries, the choice by architecture, and headers that lie. */
#include <lz4.h>
#include <zstd.h>
#include "test.h"

struct fat {
	unsigned char *p;
	size_t n;
};

static void put(unsigned char *p, uint64_t v, unsigned int bytes)
{
	while (bytes--) {
		*p++ = (unsigned char)v;
		v >>= 8;
	}
}

static struct fat fat_new(void)
{
	struct fat f = { calloc(1, 1 << 20), 16 };

	put(f.p, 0xba55ed50, 4);
	put(f.p + 4, 1, 2);
	put(f.p + 6, 16, 2);
	return f;
}

enum { PLAIN = 0, LZ4 = 1 << 13, ZSTD = 1 << 15 };

static void fat_add(struct fat *f, unsigned int kind, unsigned int arch, unsigned int flags, const char *text)
{
	unsigned char *h = f->p + f->n, *d = h + 64;
	size_t len = strlen(text), n = len;

	if (flags == LZ4)
		n = (size_t)LZ4_compress_default(text, (char *)d, (int)len, 1 << 16);
	else if (flags == ZSTD)
		n = ZSTD_compress(d, 1 << 16, text, len, 3);
	else
		memcpy(d, text, len);
	put(h, kind, 2);
	put(h + 2, 0x101, 2);
	put(h + 4, 64, 4);
	put(h + 8, (n + 7) & ~7ul, 8);
	put(h + 16, flags ? n : 0, 4);
	put(h + 28, arch, 4);
	put(h + 40, flags | 0x11, 8);
	put(h + 56, flags ? len : 0, 8);
	f->n += 64 + ((n + 7) & ~7ul);
	put(f->p + 8, f->n - 16, 8);
}

static const char *ptx_for(const char *target)
{
	static char buf[4][512];
	static unsigned int i;
	char *b = buf[i++ % 4];

	snprintf(b, 512, "//\n.version 8.0\n.target %s\n.address_size 64\n.visible .entry k() { ret; }\n"
		 "// %0200d\n", target, 0);
	return b;
}

/* NULL: as expected. @want: target expected, or NULL and @status */
static bool gives(const void *image, size_t n, unsigned int arch, const char *want, enum gsr_status status)
{
	struct gsr_error err;
	char *ptx, *t;
	size_t size;
	enum gsr_status s = gsr_image_ptx(image, n, arch, &ptx, &size, &err);
	bool good;

	if (s != GSR_OK) {
		good = !want && s == status && !ptx && err.status == s && err.message[0];
	} else {
		t = strstr(ptx, ".target ");
		good = want && t && !strncmp(t + 8, want, strlen(want)) && t[8 + strlen(want)] == '\n' && strlen(ptx) == size;
	}
	if (!good)
		printf("# got %d %s\n", s, err.message);
	free(ptx);
	return good;
}

static void forms(void)
{
	static const unsigned int flags[] = { PLAIN, LZ4, ZSTD };
	static const char *const names[] = { "plain", "lz4", "zstd" };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct fat f = fat_new();
		struct { uint32_t magic, version; const void *data, *files; } w = { 0x466243b1, 1, f.p, NULL };

		fat_add(&f, 2, 90, PLAIN, "machine code");
		fat_add(&f, 1, 75, flags[i], ptx_for("sm_75"));
		fat_add(&f, 1, 90, flags[i], ptx_for("sm_90"));
		fat_add(&f, 1, 100, flags[i], ptx_for("sm_100a"));
		fat_add(&f, 1, 100, flags[i], ptx_for("sm_100"));
		ok(gives(f.p, f.n, 90, "sm_90", GSR_OK), "%s: the same architecture", names[i]);
		ok(gives(f.p, f.n, 89, "sm_75", GSR_OK), "%s: the highest below", names[i]);
		ok(gives(f.p, SIZE_MAX, 90, "sm_90", GSR_OK), "%s: length from the header", names[i]);
		ok(gives(f.p, f.n, 120, "sm_100", GSR_OK), "%s: sm_100a does not run on sm_120", names[i]);
		ok(gives(f.p, f.n, 70, NULL, GSR_ERR_NO_PTX), "%s: all newer", names[i]);
		ok(gives(&w, sizeof(w), 90, "sm_90", GSR_OK), "%s: through the wrapper", names[i]);
		ok(gsr_image_size(f.p, f.n) == f.n && gsr_image_size(f.p, f.n - 1) == 0, "%s: size", names[i]);
		free(f.p);
	}
}

static void lies(void)
{
	struct fat f = fat_new();
	unsigned char *h = f.p + 16;

	fat_add(&f, 2, 90, PLAIN, "machine code");
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_NO_PTX), "machine code only");
	f.n = 16;
	fat_add(&f, 1, 90, ZSTD, ptx_for("sm_90"));
	put(h + 56, 1, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "zstd: smaller than it is");
	put(h + 56, 300 << 20, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_LIMIT), "zstd: above 256 MiB");
	put(h + 56, 1 << 20, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "zstd: larger than it is");
	f.n = 16;
	fat_add(&f, 1, 90, LZ4, ptx_for("sm_90"));
	put(h + 56, strlen(ptx_for("sm_90")) - 1, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "lz4: smaller than it is");
	put(h + 56, 200 << 20, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "lz4: more than lz4 can");
	put(h + 56, 1 << 12, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "lz4: larger than it is");
	put(h + 16, 1 << 20, 4);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "compressed size above the entry's");
	f.n = 16;
	fat_add(&f, 1, 90, PLAIN, ptx_for("sm_90"));
	put(h + 8, UINT64_MAX - 8, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "entry that wraps around");
	f.n = 16;
	fat_add(&f, 1, 90, PLAIN, ptx_for("sm_90"));
	put(h + 4, 0, 4);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "entry without a header");
	put(h + 4, 64, 4);
	put(f.p + 8, UINT64_MAX, 8);
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "binary that wraps around");
	f.n = 16;
	fat_add(&f, 1, 90, PLAIN, "neither PTX nor anything else, but long enough for an entry");
	ok(gives(f.p, f.n, 90, NULL, GSR_ERR_FORMAT), "marked as PTX and is not");
	ok(gives("", 0, 90, NULL, GSR_ERR_FORMAT), "nothing");
	ok(gives("P", SIZE_MAX, 90, NULL, GSR_ERR_FORMAT), "one character and its NUL");
	free(f.p);
}

static void harm(void)
{
	struct fat f = fat_new();
	unsigned int i, good = 0, bit;
	struct gsr_error err;
	unsigned char *copy;
	size_t size;
	char *ptx;

	fat_add(&f, 1, 75, LZ4, ptx_for("sm_75"));
	fat_add(&f, 1, 90, ZSTD, ptx_for("sm_90"));
	for (i = 0; i < f.n; i++) {
		copy = malloc(i ? i : 1);
		memcpy(copy, f.p, i);
		good += gsr_image_ptx(copy, i, 90, &ptx, &size, &err) == GSR_OK;
		free(ptx);
		free(copy);
	}
	ok(!good, "truncated at each byte: an error");
	copy = malloc(f.n);
	for (i = 0; i < f.n; i++)
		for (bit = 0; bit < 8; bit++) {
			memcpy(copy, f.p, f.n);
			copy[i] ^= (unsigned char)(1 << bit);
			good += gsr_image_ptx(copy, f.n, 90, &ptx, &size, &err) == GSR_OK || err.message[0];
			free(ptx);
		}
	ok(good == f.n * 8, "each bit flipped: text or an error that says what");
	free(copy);
	free(f.p);
}

int main(void)
{
	forms();
	lies();
	harm();
	return done();
}
