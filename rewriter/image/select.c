// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The choice of the PTX in an image that corresponds to what the device would run. The driver
 * prefers machine code to PTX. Then the twin has to come from the very PTX that was assembled into
 * that machine code: PTX for another architecture may be another program (__CUDA_ARCH__; kernels
 * that are empty below sm_90 are common). Machine code records the architecture of its PTX.
 *
 * In: an image and the device's architecture. Out: the PTX to rewrite, of relocatable programs that
 * of each unit, or the reason why there is none. Assumes nothing. Nothing here parses PTX: this
 * part runs in the program, join.c in the rewriting service.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fatbin.h"

#define CUINFO_TYPE	1000		/* note type: the virtual architecture of machine code */

/* sm_100, sm_100f, sm_100a: the more specific is preferred */
enum flavour { PLAIN, FAMILY, EXACT };
static const char *const suffix[] = { "", "f", "a" };

struct target {
	unsigned int arch;
	enum flavour flavour;
};

/* The machine code that the driver would choose */
struct code {
	bool any;
	struct target target;
	unsigned int from;		/* architecture of the PTX that it was assembled from */
};

static enum flavour flavour_of(const struct gsr_entry *e)
{
	return e->flags & GSR_FLAG_EXACT ? EXACT : e->flags & GSR_FLAG_FAMILY ? FAMILY : PLAIN;
}

/*
 * sm_90a runs on 9.0 only, sm_100f on 10.0 and later minor versions; other PTX on all later
 * architectures, other machine code on later minor versions
 */
static bool runs_on(struct target t, bool ptx, unsigned int arch)
{
	if (t.flavour == EXACT)
		return t.arch == arch;
	if (t.flavour == FAMILY || !ptx)
		return t.arch / 10 == arch / 10 && t.arch <= arch;
	return t.arch <= arch;
}

/* The .target of PTX; @otherwise if there is none */
static struct target target_of(const char *ptx, struct target otherwise)
{
	const char *t = strstr(ptx, ".target");
	struct target out = { 0 };
	unsigned long n;
	char *end;

	t = t ? strstr(t, "sm_") : NULL;
	n = t ? strtoul(t + 3, &end, 10) : 0;
	if (!n || n > 10000)
		return otherwise;
	out.arch = (unsigned int)n;
	out.flavour = *end == 'a' ? EXACT : *end == 'f' ? FAMILY : PLAIN;
	return out;
}

static bool is_better(struct target a, struct target b)
{
	return a.arch > b.arch || (a.arch == b.arch && a.flavour > b.flavour);
}

/* The virtual architecture in a note section; 0 none */
static unsigned int note_arch(const unsigned char *p, size_t size)
{
	while (size >= 12) {
		uint64_t name = (gsr_get(p, 4) + 3) & ~3ULL, desc = gsr_get(p + 4, 4),
			whole = 12 + name + ((desc + 3) & ~3ULL);

		if (whole > size)
			return 0;
		if (gsr_get(p + 8, 4) == CUINFO_TYPE && name >= 12 &&
		    !memcmp(p + 12, "NVIDIA Corp", 12) && desc >= 4)
			return (unsigned int)gsr_get(p + 12 + name + 2, 2);
		p += whole;
		size -= whole;
	}
	return 0;
}

/*
 * The virtual architecture that machine code was assembled from: in a note, or, in the older
 * format, in a byte of the ELF flags; 0 not known
 */
static unsigned int virtual_arch(const unsigned char *p, size_t size)
{
	unsigned int i, arch = 0;
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	if (size < sizeof(eh) || memcmp(p, ELFMAG, SELFMAG))
		return 0;
	memcpy(&eh, p, sizeof(eh));
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_shentsize != sizeof(sh) ||
	    eh.e_shoff > size || (size - eh.e_shoff) / sizeof(sh) < eh.e_shnum)
		return 0;
	for (i = 0; i < eh.e_shnum && !arch; i++) {
		memcpy(&sh, p + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_NOTE && sh.sh_offset <= size &&
		    sh.sh_size <= size - sh.sh_offset)
			arch = note_arch(p + sh.sh_offset, sh.sh_size);
	}
	return !arch && eh.e_ident[EI_ABIVERSION] <= 7 ? eh.e_flags >> 16 & 0xff : arch;
}

static void choose_code(const struct gsr_entry *list, unsigned int n, unsigned int arch,
			struct code *code, const struct gsr_entry **chosen)
{
	unsigned int i;

	memset(code, 0, sizeof(*code));
	for (i = 0; i < n; i++) {
		struct target t = { list[i].arch, flavour_of(&list[i]) };

		if (list[i].kind != GSR_KIND_ELF || !runs_on(t, false, arch) ||
		    (code->any && !is_better(t, code->target)))
			continue;
		code->any = true;
		code->target = t;
		*chosen = &list[i];
	}
}

/* Sets code->from: for machine code that cannot be read, the architecture that it runs on */
static void find_virtual_arch(const struct gsr_entry *e, struct code *code, uint64_t *budget)
{
	size_t size;
	char *elf;

	code->from = 0;
	if (!(e->flags & (GSR_FLAG_LZ4 | GSR_FLAG_ZSTD | GSR_FLAG_OLD))) {
		code->from = virtual_arch(e->payload, e->size);
	} else if (gsr_fatbin_unpack(e, budget, &elf, &size, NULL) == GSR_OK) {
		code->from = virtual_arch((const unsigned char *)elf, size);
		free(elf);
	}
	if (!code->from)
		code->from = code->target.arch;
}

/* The PTX of one entry. GSR_OK with *ptx NULL: it does not run on @arch */
static enum gsr_status take_entry(const struct gsr_entry *e, unsigned int arch, uint64_t *budget,
				  char **ptx, size_t *size, struct target *target,
				  struct gsr_error *err)
{
	struct target t = { e->arch, flavour_of(e) };
	enum gsr_status status;

	*ptx = NULL;
	if (!runs_on(t, true, arch))
		return GSR_OK;
	status = gsr_fatbin_unpack(e, budget, ptx, size, err);
	if (status != GSR_OK)
		return status;
	*size = strnlen(*ptx, *size);
	if (!gsr_is_ptx(*ptx, *size)) {
		free(*ptx);
		*ptx = NULL;
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "entry of a fat binary is marked as PTX and is not");
	}
	*target = target_of(*ptx, t);
	if (!runs_on(*target, true, arch)) {
		free(*ptx);
		*ptx = NULL;
	}
	return GSR_OK;
}

/* Highest architecture first, then the more specific, then the later entry */
static int by_target(const void *a, const void *b)
{
	const struct gsr_entry *x = *(const struct gsr_entry *const *)a,
		*y = *(const struct gsr_entry *const *)b;
	struct target s = { x->arch, flavour_of(x) }, t = { y->arch, flavour_of(y) };

	if (is_better(s, t) || is_better(t, s))
		return is_better(s, t) ? -1 : 1;
	return x > y ? -1 : x < y;
}

static enum gsr_status explain_no_ptx(const struct gsr_entry *list, unsigned int n,
				      const struct code *code, unsigned int ptx,
				      struct gsr_error *err)
{
	unsigned int i, lto = 0;

	for (i = 0; i < n; i++)
		lto += list[i].kind == GSR_KIND_LTO;
	if (ptx && code->any)
		return gsr_image_fail(err, GSR_ERR_NO_PTX,
				      "machine code for sm_%u%s was made of PTX for sm_%u%s, "
				      "which is not there", code->target.arch,
				      suffix[code->target.flavour], code->from,
				      suffix[code->target.flavour]);
	if (ptx)
		return gsr_image_fail(err, GSR_ERR_NO_PTX, "PTX for other architectures only");
	if (lto)
		return gsr_image_fail(err, GSR_ERR_NO_PTX,
				      "link-time optimisation code (-dlto) only, no PTX");
	return gsr_image_fail(err, GSR_ERR_NO_PTX, "machine code only, no PTX");
}

/*
 * Picks the first candidate that runs on @arch; @list is sorted by by_target(). Among candidates of
 * one architecture, the .target in the text decides which is most specific, not the entry's flags
 */
static enum gsr_status pick_ptx(const struct gsr_entry **list, unsigned int n,
				const struct code *code, unsigned int arch, uint64_t *budget,
				char **ptx, size_t *size, struct gsr_error *err)
{
	struct target best = { 0 }, t = { 0 };
	enum gsr_status status;
	unsigned int i;
	size_t m = 0;
	char *text;

	*ptx = NULL;
	for (i = 0; i < n; i++) {
		if (*ptx && list[i]->arch < best.arch)
			break;
		if (code->any && (list[i]->arch != code->from ||
				  flavour_of(list[i]) != code->target.flavour))
			continue;
		status = take_entry(list[i], arch, budget, &text, &m, &t, err);
		if (status != GSR_OK) {
			free(*ptx);
			*ptx = NULL;
			*size = 0;
			return status;
		}
		if (text && (!*ptx || is_better(t, best))) {
			free(*ptx);
			*ptx = text;
			*size = m;
			best = t;
		} else {
			free(text);
		}
	}
	return GSR_OK;
}

/* @linked: machine code of the program that the unit was linked into; NULL: the fat binary's own */
static enum gsr_status fatbin_ptx(const unsigned char *p, size_t max, unsigned int arch,
				  const struct code *linked, uint64_t *budget, char **ptx,
				  size_t *size, struct gsr_error *err)
{
	const struct gsr_entry **candidates = NULL, *chosen = NULL;
	unsigned int i, n, n_ptx = 0;
	struct gsr_entry *list;
	enum gsr_status status;
	struct code code;

	status = gsr_fatbin_entries(p, max, &list, &n, err);
	if (status != GSR_OK)
		return status;
	choose_code(list, n, arch, &code, &chosen);
	candidates = malloc((n + 1) * sizeof(*candidates));
	if (!candidates) {
		free(list);
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	}
	for (i = 0; i < n; i++)
		if (list[i].kind == GSR_KIND_PTX)
			candidates[n_ptx++] = &list[i];
	if (linked)
		code = *linked;
	else if (code.any && n_ptx)
		find_virtual_arch(chosen, &code, budget);
	qsort(candidates, n_ptx, sizeof(*candidates), by_target);
	status = pick_ptx(candidates, n_ptx, &code, arch, budget, ptx, size, err);
	if (status == GSR_OK && !*ptx)
		status = explain_no_ptx(list, n, &code, n_ptx, err);
	free(candidates);
	free(list);
	return status;
}

/* The machine code of a linked program that the device would run, in @code */
static enum gsr_status linked_code(const unsigned char *p, size_t max, unsigned int arch,
				   struct code *code, uint64_t *budget, struct gsr_error *err)
{
	const struct gsr_entry *chosen = NULL;
	struct gsr_entry *list;
	enum gsr_status status;
	unsigned int n;

	status = gsr_fatbin_entries(p, max, &list, &n, err);
	if (status != GSR_OK)
		return status;
	choose_code(list, n, arch, code, &chosen);
	if (code->any)
		find_virtual_arch(chosen, code, budget);
	free(list);
	return GSR_OK;
}

/*
 * The texts as one image: the header of fatbin.h, then each text with its NUL. Frees nothing of
 * @texts.
 */
static enum gsr_status pack_units(const struct gsr_unit *texts, unsigned int n, bool others,
				  char **image, size_t *size, struct gsr_error *err)
{
	struct gsr_units_header head = { GSR_UNITS_MAGIC, n, others };
	size_t all = sizeof(head);
	unsigned int i;
	char *to;

	for (i = 0; i < n; i++)
		all += texts[i].size + 1;
	to = malloc(all);
	if (!to)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	*image = to;
	*size = all;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (i = 0; i < n; i++) {
		if (texts[i].data)
			memcpy(to, texts[i].data, texts[i].size);
		to += texts[i].size;
		*to++ = 0;
	}
	return GSR_OK;
}

/* PTX as it is given, copied. */
static enum gsr_status copy_text(const void *image, size_t max, char **ptx, size_t *size,
				 struct gsr_error *err)
{
	size_t n = strnlen(image, max < GSR_TEXT_MAX + 1UL ? max : GSR_TEXT_MAX + 1UL);

	if (n > GSR_TEXT_MAX)
		return gsr_image_fail(err, GSR_ERR_LIMIT, "PTX larger than %u MiB",
				      GSR_TEXT_MAX >> 20);
	*ptx = malloc(n + 1);
	if (!*ptx)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	memcpy(*ptx, image, n);
	(*ptx)[n] = 0;
	*size = n;
	return GSR_OK;
}

enum gsr_status gsr_program_source(const void *linked, size_t linked_max,
				   const struct gsr_unit *units, unsigned int n_units,
				   unsigned int arch, char **source, size_t *size,
				   struct gsr_error *err)
{
	struct gsr_unit *texts = calloc(n_units + 1, sizeof(*texts));
	uint64_t budget = GSR_UNPACK_MAX;
	enum gsr_status status = GSR_OK;
	struct gsr_error first = { 0 }, why;
	struct code code = { 0 };
	unsigned int i, n = 0;

	*source = NULL;
	*size = 0;
	if (err)
		memset(err, 0, sizeof(*err));
	if (!texts)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	if (linked)
		status = linked_code(linked, linked_max, arch, &code, &budget, err);
	for (i = 0; i < n_units && status == GSR_OK; i++) {
		char *text = NULL;
		size_t m = 0;

		if (gsr_image_kind(units[i].data, units[i].size) == GSR_IMAGE_PTX) {
			status = copy_text(units[i].data, units[i].size, &text, &m, &why);
		} else {
			status = fatbin_ptx(units[i].data, units[i].size, arch,
					    linked && code.any ? &code : NULL, &budget, &text, &m,
					    &why);
		}
		if (status != GSR_OK && (first.status == GSR_OK || status != GSR_ERR_NO_PTX))
			first = why;
		/* kernels that need nothing of a unit without PTX are still complete */
		if (status == GSR_ERR_NO_PTX) {
			status = GSR_OK;
			continue;
		}
		if (text)
			texts[n++] = (struct gsr_unit){ text, m };
	}
	if (status == GSR_OK && n) {
		status = pack_units(texts, n, n < n_units || !linked, source, size, err);
	} else if (status == GSR_OK && n_units) {
		status = GSR_ERR_NO_PTX;
	} else if (status == GSR_OK) {
		status = gsr_image_fail(err, GSR_ERR_NO_PTX, "machine code only, no PTX");
	}
	if (status != GSR_OK && first.status == status && err)
		*err = first;		/* the first unit's reason */
	while (n--)
		free((void *)texts[n].data);
	free(texts);
	return status;
}

/*
 * A wrapper holds pointers into the program that registers it, and is as trusted as that program's
 * code. Version 2 is for relocatable programs: it points to the linked machine code, and to a
 * NULL-terminated array of the units' fat binaries.
 */
static enum gsr_status wrapper_source(const unsigned char *p, unsigned int arch, char **ptx,
				      size_t *size, struct gsr_error *err)
{
	uint32_t version = (uint32_t)gsr_get(p + 4, 4);
	const void *data = NULL, *const *files = NULL, *file;
	uint64_t budget = GSR_UNPACK_MAX;
	struct gsr_unit *units;
	enum gsr_status status;
	unsigned int n = 0, i;

	memcpy(&data, p + 8, sizeof(data));
	memcpy(&files, p + 16, sizeof(files));
	if (gsr_image_kind(data, SIZE_MAX) != GSR_IMAGE_FATBIN)
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "wrapper that does not point to a fat binary");
	if (version != 2)
		return fatbin_ptx(data, SIZE_MAX, arch, NULL, &budget, ptx, size, err);
	for (;; n++) {
		if (!files)
			break;
		memcpy(&file, &files[n], sizeof(file));
		if (!file)
			break;
		if (n == GSR_UNITS_MAX)
			return gsr_image_fail(err, GSR_ERR_LIMIT,
					      "relocatable program of more than %d units",
					      GSR_UNITS_MAX);
	}
	units = calloc(n + 1, sizeof(*units));
	if (!units)
		return gsr_image_fail(err, GSR_ERR_NOMEM, "out of memory");
	for (i = 0; i < n; i++) {
		memcpy(&units[i].data, &files[i], sizeof(file));
		units[i].size = SIZE_MAX;
	}
	status = gsr_program_source(data, SIZE_MAX, units, n, arch, ptx, size, err);
	free(units);
	return status;
}

enum gsr_status gsr_image_source(const void *image, size_t max, unsigned int arch, char **source,
				 size_t *size, struct gsr_error *err)
{
	uint64_t budget = GSR_UNPACK_MAX;

	*source = NULL;
	*size = 0;
	if (err)
		memset(err, 0, sizeof(*err));
	switch (gsr_image_kind(image, max)) {
	case GSR_IMAGE_PTX:
		return copy_text(image, max, source, size, err);
	case GSR_IMAGE_FATBIN:
		return fatbin_ptx(image, max, arch, NULL, &budget, source, size, err);
	case GSR_IMAGE_WRAPPER:
		if (max != SIZE_MAX)
			return gsr_image_fail(err, GSR_ERR_FORMAT,
					      "wrapper outside of the program that it points into");
		return wrapper_source(image, arch, source, size, err);
	case GSR_IMAGE_ELF:
		return gsr_image_fail(err, GSR_ERR_NO_PTX, "machine code only, no PTX");
	default:
		return gsr_image_fail(err, GSR_ERR_FORMAT,
				      "neither PTX, nor a fat binary, nor machine code");
	}
}
