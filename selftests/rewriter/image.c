// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fat binaries: plain, lz4 and zstd entries, the choice by architecture, and headers that lie. */
#include "fat.h"

static void forms(void)
{
	static const unsigned int flags[] = { PLAIN, LZ4, ZSTD };
	static const char *const names[] = { "plain", "lz4", "zstd" };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct fat f = fat_new();
		struct { uint32_t magic, version; const void *data, *files; } w =
			{ 0x466243b1, 1, f.p, NULL };

		fat_add(&f, 2, 90, PLAIN, "machine code");
		fat_add(&f, 1, 75, flags[i], ptx_for("sm_75"));
		fat_add(&f, 1, 90, flags[i], ptx_for("sm_90"));
		fat_add(&f, 1, 100, flags[i], ptx_for("sm_100a"));
		fat_add(&f, 1, 100, flags[i], ptx_for("sm_100"));
		ok(gives(f.p, f.n, 90, "sm_90", GSR_OK), "%s: the same architecture", names[i]);
		ok(gives(f.p, f.n, 89, "sm_75", GSR_OK), "%s: the highest below", names[i]);
		ok(gives(f.p, SIZE_MAX, 90, "sm_90", GSR_OK),
		   "%s: length from the header", names[i]);
		ok(gives(f.p, f.n, 120, "sm_100", GSR_OK), "%s: sm_100a does not run on sm_120",
		   names[i]);
		ok(gives(f.p, f.n, 70, NULL, GSR_ERR_NO_PTX), "%s: all newer", names[i]);
		ok(gives(&w, SIZE_MAX, 90, "sm_90", GSR_OK), "%s: through the wrapper", names[i]);
		ok(gsr_image_size(f.p, f.n) == f.n && gsr_image_size(f.p, f.n - 1) == 0,
		   "%s: size", names[i]);
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

/* The driver takes machine code where it can: PTX must be what that was made of */
static void machine_code(void)
{
	static const unsigned int flags[] = { PLAIN, LZ4, ZSTD };
	static const char *const names[] = { "plain", "lz4", "zstd" };
	unsigned int i;
	struct fat f;

	for (i = 0; i < 3; i++) {
		f = fat_new();
		fat_code(&f, 90, flags[i], 75, false);
		fat_code(&f, 80, flags[i], 80, false);
		fat_code(&f, 70, flags[i], 70, true);
		fat_code(&f, 120, flags[i], 100, true);
		fat_add(&f, PTX, 70, flags[i], ptx_for("sm_70"));
		fat_add(&f, PTX, 75, flags[i], ptx_for("sm_75"));
		fat_add(&f, PTX, 86, flags[i], ptx_for("sm_86"));
		fat_add(&f, PTX, 90, flags[i], ptx_for("sm_90"));
		ok(gives(f.p, f.n, 90, "sm_75", GSR_OK), "%s: sm_90 code made of sm_75", names[i]);
		ok(gives_why(f.p, f.n, 89, NULL, GSR_ERR_NO_PTX,
			     "machine code for sm_80 was made of PTX for sm_80"),
		   "%s: sm_80 code on sm_89, its PTX is not there", names[i]);
		ok(gives(f.p, f.n, 75, "sm_70", GSR_OK), "%s: sm_70 code on sm_75, in the old form",
		   names[i]);
		ok(gives_why(f.p, f.n, 120, NULL, GSR_ERR_NO_PTX, "PTX for sm_100"),
		   "%s: made of another, in the old form", names[i]);
		ok(gives(f.p, f.n, 103, "sm_90", GSR_OK), "%s: no code: the highest PTX", names[i]);
		free(f.p);
	}
	f = fat_new();
	fat_add(&f, CODE, 90, PLAIN, "what cannot be read");
	fat_add(&f, PTX, 80, PLAIN, ptx_for("sm_80"));
	fat_add(&f, PTX, 90, PLAIN, ptx_for("sm_90"));
	ok(gives(f.p, f.n, 90, "sm_90", GSR_OK), "code that does not say: PTX for the same");
	ok(gives(f.p, f.n, 100, "sm_90", GSR_OK), "code of another generation does not run");
	free(f.p);
	f = fat_new();
	fat_add(&f, LTO, 90, PLAIN, "for the linker alone");
	ok(gives_why(f.p, f.n, 90, NULL, GSR_ERR_NO_PTX, "-dlto"),
	   "link-time optimisation code only");
	fat_add(&f, CODE, 90, PLAIN, "and code");
	fat_add(&f, 77, 90, PLAIN, "and what nobody knows");
	ok(gives_why(f.p, f.n, 90, NULL, GSR_ERR_NO_PTX, "-dlto"),
	   "entries of unknown kinds are passed over");
	free(f.p);
}

/* sm_90a is for 9.0, sm_100f for 10.x; where they fit they are better than sm_90, sm_100 */
static void particular(void)
{
	unsigned int marked;
	struct fat f;

	for (marked = 0; marked < 2; marked++) {
		const char *how = marked ? "marked" : "by its text";

		f = fat_new();
		fat_add(&f, PTX, 90, marked ? EXACT : 0, ptx_for("sm_90a"));
		fat_add(&f, PTX, 90, 0, ptx_for("sm_90"));
		fat_add(&f, PTX, 100, marked ? FAMILY | ZSTD : ZSTD, ptx_for("sm_100f"));
		fat_add(&f, PTX, 103, marked ? EXACT | LZ4 : LZ4, ptx_for("sm_103a"));
		ok(gives(f.p, f.n, 90, "sm_90a", GSR_OK), "%s: sm_90a before sm_90", how);
		ok(gives(f.p, f.n, 100, "sm_100f", GSR_OK), "%s: sm_100f on 10.0", how);
		ok(gives(f.p, f.n, 103, "sm_103a", GSR_OK), "%s: sm_103a on 10.3", how);
		ok(gives(f.p, f.n, 101, "sm_100f", GSR_OK), "%s: sm_100f on 10.1", how);
		ok(gives(f.p, f.n, 110, "sm_90", GSR_OK), "%s: neither on 11.0", how);
		ok(gives(f.p, f.n, 89, NULL, GSR_ERR_NO_PTX), "%s: none on 8.9", how);
		free(f.p);
	}
	f = fat_new();
	fat_code(&f, 90, EXACT, 90, false);
	fat_code(&f, 90, 0, 80, false);
	fat_add(&f, PTX, 80, 0, ptx_for("sm_80"));
	fat_add(&f, PTX, 90, 0, ptx_for("sm_90"));
	ok(gives_why(f.p, f.n, 90, NULL, GSR_ERR_NO_PTX, "machine code for sm_90a"),
	   "sm_90a code without its PTX");
	fat_add(&f, PTX, 90, EXACT, ptx_for("sm_90a"));
	ok(gives(f.p, f.n, 90, "sm_90a", GSR_OK), "sm_90a code with its PTX");
	free(f.p);
}

/* Memory is bounded: so many bytes an entry, so many in all, so many entries */
static void bombs(void)
{
	struct fat f = fat_new();
	size_t big = 200 << 20, n;
	char *text = malloc(big), *packed = malloc(1 << 18);
	unsigned int i;

	memset(text, '\n', big);
	n = (size_t)sprintf(text, ".version 8.0\n.target sm_90a\n");
	text[n] = '\n';
	n = ZSTD_compress(packed, 1 << 18, text, big, 1);
	free(text);
	for (i = 0; i < 3; i++) {
		fat_bytes(&f, PTX, 80, PLAIN, packed, n);
		put(f.p + f.n - ((n + 7) & ~7ul) - 64 + 16, n, 4);
		put(f.p + f.n - ((n + 7) & ~7ul) - 64 + 40, 0x11 | ZSTD, 8);
		put(f.p + f.n - ((n + 7) & ~7ul) - 64 + 56, big, 8);
	}
	ok(gives_why(f.p, f.n, 100, NULL, GSR_ERR_LIMIT, "512 MiB"),
	   "a second bomb behind a first");
	free(packed);
	f.n = 16;
	for (i = 0; i < 4097; i++)
		fat_add(&f, CODE, 90, PLAIN, "x");
	ok(gives_why(f.p, f.n, 90, NULL, GSR_ERR_LIMIT, "4096 entries"),
	   "more entries than any toolkit writes");
	free(f.p);
}

static void places(void)
{
	struct fat f = fat_new();
	unsigned char *odd = malloc(FAT_ROOM + 1);
	struct { uint32_t magic, version; const void *data, *files; } w =
		{ 0x466243b1, 1, NULL, NULL };
	unsigned char *h = f.p + 16;

	fat_code(&f, 90, ZSTD, 90, false);
	fat_add(&f, PTX, 90, LZ4, ptx_for("sm_90"));
	memcpy(odd + 1, f.p, f.n);
	ok(gives(odd + 1, f.n, 90, "sm_90", GSR_OK), "at an odd address");
	w.data = odd + 1;
	memcpy(odd + f.n + 2, &w, sizeof(w));
	ok(gives(odd + f.n + 2, SIZE_MAX, 90, "sm_90", GSR_OK), "so is its wrapper");
	ok(gives_why(&w, sizeof(w), 90, NULL, GSR_ERR_FORMAT, "outside"),
	   "a wrapper in a file is not followed");
	w.data = "neither";
	ok(gives(&w, SIZE_MAX, 90, NULL, GSR_ERR_FORMAT), "wrapper of something else");
	w.data = NULL;
	ok(gives(&w, SIZE_MAX, 90, NULL, GSR_ERR_FORMAT), "wrapper of nothing");
	/* text without a NUL up to the end of the entry, which is the end of the image */
	f.n = 16;
	fat_add(&f, PTX, 90, PLAIN, ".version 8.0\n.target sm_90\n.addr");
	put(h + 8, 33, 8);
	put(f.p + 8, 64 + 33, 8);
	free(odd);
	odd = malloc(16 + 64 + 33);
	memcpy(odd, f.p, 16 + 64 + 33);
	ok(gives(odd, 16 + 64 + 33, 90, "sm_90", GSR_OK), "text that nothing ends");
	/* a payload that reaches into the next entry's header */
	f.n = 16;
	fat_add(&f, PTX, 90, PLAIN, ptx_for("sm_90"));
	fat_add(&f, PTX, 75, PLAIN, ptx_for("sm_75"));
	put(h + 8, gsr_image_size(f.p, f.n) - 16 - 64, 8);
	ok(gives(f.p, f.n, 90, "sm_90", GSR_OK) && gives(f.p, f.n, 80, NULL, GSR_ERR_NO_PTX),
	   "an entry laid over the next swallows it");
	free(odd);
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
			good += gsr_image_ptx(copy, f.n, 90, &ptx, &size, &err) == GSR_OK ||
				err.message[0];
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
	machine_code();
	particular();
	bombs();
	places();
	harm();
	return done();
}
