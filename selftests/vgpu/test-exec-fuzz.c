// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Mangled PTX: words of the corpus are dropped, doubled, swapped and replaced. Whatever comes out
 * is refused, faults, or runs; it never crashes. vgpu-exec-fuzz [ROUNDS] [SEED]
 */
#include <glob.h>
#include "test-exec.h"

static uint64_t rng;

static unsigned int roll(unsigned int n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned int)((rng * 0x2545f4914f6cdd1dull >> 33) % n);
}

static bool deny(uint64_t addr, size_t size, bool write)
{
	return false;
}

static const char *const bits[] = {
	".u8", ".s16", ".b64", ".f32", ".f64", ".f16", ".pred", ".v4", ".v2", ".shared", ".local",
	".param", ".global", ".const", ".sat", ".cc",
	"%r1", "%rd1", "%p1", "%f1", "%tid.x", "%ctaid", "{", "}", "[", "]", "(", ")", ",", ";",
	"-1", "0", "0x7fffffffffffffff", "4294967296",
	"!", "_", "|", "bar.sync 0;", "ret;", "ld", "st", "atom", "call", "bra", "mov", "<99999>",
	"[1000000]", "= {1, 2, 3}", "generic(x)",
};

static size_t mangle(char *text, size_t n, size_t room)
{
	unsigned int times = roll(3) ? 1 : 1 + roll(4);

	while (times-- && n > 40) {
		size_t at = roll((unsigned int)n), len = 0, to;
		const char *w = bits[roll(sizeof(bits) / sizeof(*bits))];

		while (at && !strchr(" \t\n,;.", text[at]))
			at--;
		while (at + len < n && len < 40 && (!len || !strchr(" \t\n,;.", text[at + len])))
			len++;
		switch (roll(4)) {
		case 0:
			memmove(text + at, text + at + len, n - at - len);
			n -= len;
			break;
		case 1:
			if (n + len >= room)
				break;
			memmove(text + at + len, text + at, n - at);
			n += len;
			break;
		case 2:
			to = roll((unsigned int)(n - len));
			for (size_t k = 0; k < len; k++) {
				char c = text[at + k];

				text[at + k] = text[to + k];
				text[to + k] = c;
			}
			break;
		default:
			if (n + strlen(w) >= room)
				break;
			memmove(text + at + strlen(w), text + at, n - at);
			memcpy(text + at, w, strlen(w));
			n += strlen(w);
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 6000, i, refused = 0,
		loaded = 0, ran = 0, faulted = 0;
	static uint8_t params[1 << 16];
	static char text[1 << 18];
	char err[512];
	glob_t g;

	rng = argc > 2 ? strtoull(argv[2], NULL, 0) | 1 : 88172645463325252ull;
	vgpu_access_ok = deny;
	if (glob("selftests/rewriter/corpus/*.ptx", 0, NULL, &g))
		return fprintf(stderr, "no corpus: run from the top of the tree\n"), 2;
	for (i = 0; i < rounds; i++) {
		FILE *f = fopen(g.gl_pathv[roll((unsigned int)g.gl_pathc)], "r");
		struct vgpu_kernel *k[64];
		struct vgpu_module *m;
		unsigned int n, j;
		size_t size;

		if (!f)
			return 2;
		size = fread(text, 1, sizeof(text) / 2, f);
		fclose(f);
		size = mangle(text, size, sizeof(text));
		m = vgpu_module_load(text, size, err, sizeof(err));
		if (!m) {
			refused++;
			continue;
		}
		loaded++;
		n = vgpu_module_kernels(m, k, 64);
		for (j = 0; j < n && j < 64; j++) {
			struct vgpu_launch l = { .kernel = k[j], .grid = { 2, 1, 1 },
						 .block = { 40, 1, 1 }, .dynamic_shared = 64,
						 .params = params, .nsmid = 2, .seed = i };
			struct vgpu_block *b;

			if (vgpu_kernel_info(k[j])->param_size > sizeof(params))
				continue;
			b = vgpu_block_new(&l, (unsigned int[3]){ 1 }, 1);
			if (vgpu_block_run(b, 20000, NULL) == VGPU_FAULT)
				faulted++;
			else
				ran++;
			vgpu_block_free(b);
		}
		vgpu_module_free(m);
	}
	globfree(&g);
	ok(refused && loaded && ran && faulted,
	   "%u texts: %u refused, %u loaded; %u kernels ran, %u faulted", rounds, refused, loaded,
	   ran, faulted);
	return done();
}
