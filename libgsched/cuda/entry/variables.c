// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Libraries whose variables have the names of the driver's functions, such as Slang's and those
 * made with cuew: they open the driver themselves and keep its functions in `cuInit` and so on.
 * What is preloaded is searched before them, so they would write over the interposer's code.
 * Opened with RTLD_DEEPBIND they find their own variables first.
 *
 * In: the file that is to be opened. Those that it needs are looked at where it says that they lie,
 * as a Python package does for its libraries. Not seen: such a library that is found by other
 * means, or that the program itself is linked with.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "entry/open.h"

#define VARIABLE	"cuInit"
#define FILES_MAX	64
#define DEPTH_MAX	8		/* the caller's stack may be small */

struct file {
	const unsigned char *map;
	size_t size;
	const Elf64_Phdr *segments;
	unsigned int n_segments;
	uint64_t strings, strings_size, symbols, hash, path;
};

/* Those that were looked at */
struct seen {
	dev_t dev[FILES_MAX];
	ino_t ino[FILES_MAX];
	unsigned int n, depth;
};

/* The file may be damaged: NULL if it does not hold @size bytes there, or they are not aligned. */
static const void *at(const struct file *f, uint64_t address, uint64_t size, uint64_t align)
{
	unsigned int i;

	for (i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *s = &f->segments[i];
		uint64_t from = address - s->p_vaddr, offset = s->p_offset + from;

		if (s->p_type == PT_LOAD && address >= s->p_vaddr && from < s->p_filesz &&
		    offset <= f->size && size <= f->size - offset && offset % align == 0)
			return f->map + offset;
	}
	return NULL;
}

static const char *string_at(const struct file *f, uint64_t offset)
{
	const char *s = offset < f->strings_size ? at(f, f->strings, f->strings_size, 1) : NULL;

	return s && memchr(s + offset, 0, f->strings_size - offset) ? s + offset : NULL;
}

static const Elf64_Dyn *next_dynamic(const struct file *f, uint64_t *address)
{
	const Elf64_Dyn *d = at(f, *address, sizeof(*d), 8);

	*address += sizeof(*d);
	return d && d->d_tag != DT_NULL ? d : NULL;
}

/* The address of the dynamic section; 0: it is no library */
static uint64_t read_headers(struct file *f)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)f->map;
	uint64_t dynamic = 0, address;
	const Elf64_Dyn *d;
	unsigned int i;

	if (f->size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phoff % 8 ||
	    header->e_phoff > f->size ||
	    (f->size - header->e_phoff) / sizeof(Elf64_Phdr) < header->e_phnum)
		return 0;
	f->segments = (const Elf64_Phdr *)(f->map + header->e_phoff);
	f->n_segments = header->e_phnum;
	for (i = 0; i < f->n_segments; i++)
		if (f->segments[i].p_type == PT_DYNAMIC)
			dynamic = f->segments[i].p_vaddr;
	for (address = dynamic; dynamic && (d = next_dynamic(f, &address));) {
		if (d->d_tag == DT_STRTAB)
			f->strings = d->d_un.d_ptr;
		else if (d->d_tag == DT_STRSZ)
			f->strings_size = d->d_un.d_val;
		else if (d->d_tag == DT_SYMTAB)
			f->symbols = d->d_un.d_ptr;
		else if (d->d_tag == DT_GNU_HASH)
			f->hash = d->d_un.d_ptr;
		else if (d->d_tag == DT_RUNPATH || (d->d_tag == DT_RPATH && !f->path))
			f->path = d->d_un.d_val;
	}
	return dynamic;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (unsigned char)*name++;
	return h;
}

static bool is_variable(const struct file *f, uint64_t number)
{
	const Elf64_Sym *s = at(f, f->symbols + number * sizeof(*s), sizeof(*s), 8);
	const char *name = s ? string_at(f, s->st_name) : NULL;

	return name && !strcmp(name, VARIABLE) && s->st_shndx != SHN_UNDEF &&
	       ELF64_ST_TYPE(s->st_info) == STT_OBJECT;
}

/* By the hash table of the GNU linkers: its header, a filter, buckets, chains */
static bool has_variable(const struct file *f)
{
	const struct { uint32_t n_buckets, first, n_filter, shift; } *h;
	const uint32_t *word;
	uint32_t hash = hash_of(VARIABLE), number;
	uint64_t buckets, chains;

	h = f->hash ? at(f, f->hash, sizeof(*h), 4) : NULL;
	if (!h || !h->n_buckets)
		return false;
	buckets = f->hash + sizeof(*h) + h->n_filter * sizeof(uint64_t);
	chains = buckets + h->n_buckets * sizeof(*word);
	word = at(f, buckets + hash % h->n_buckets * sizeof(*word), sizeof(*word), 4);
	if (!word || *word < h->first)
		return false;
	for (number = *word;; number++) {
		word = at(f, chains + (uint64_t)(number - h->first) * sizeof(*word),
			  sizeof(*word), 4);
		if (!word)
			return false;
		if ((*word | 1) == (hash | 1) && is_variable(f, number))
			return true;
		if (*word & 1)
			return false;
	}
}

static bool look_at(const char *path, struct seen *seen);

/* In the directories of @paths; $ORIGIN is that of the library at @origin */
static bool look_at_needed(const char *needed, const char *paths, const char *origin,
			   struct seen *seen)
{
	const char *slash = strrchr(origin, '/'), *end;
	char path[PATH_MAX];
	size_t token;
	int n;

	for (; *paths; paths = end + (*end == ':')) {
		end = strchrnul(paths, ':');
		token = !strncmp(paths, "$ORIGIN", 7) ? 7 :
			!strncmp(paths, "${ORIGIN}", 9) ? 9 : 0;
		n = snprintf(path, sizeof(path), "%.*s%.*s/%s",
			     token && slash ? (int)(slash - origin) : 0, origin,
			     (int)(end - paths - (ptrdiff_t)token), paths + token, needed);
		if (n < (int)sizeof(path) && !access(path, R_OK))
			return look_at(path, seen);
	}
	return false;
}

static bool look_into(struct file *f, const char *path, struct seen *seen)
{
	uint64_t address = read_headers(f);
	const char *paths, *needed;
	const Elf64_Dyn *d;

	if (!address)
		return false;
	if (has_variable(f))
		return true;
	paths = f->path ? string_at(f, f->path) : NULL;
	while (paths && (d = next_dynamic(f, &address))) {
		needed = d->d_tag == DT_NEEDED ? string_at(f, d->d_un.d_val) : NULL;
		if (needed && !strchr(needed, '/') && look_at_needed(needed, paths, path, seen))
			return true;
	}
	return false;
}

static bool look_at(const char *path, struct seen *seen)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	struct file f = { 0 };
	unsigned int i = FILES_MAX;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		for (i = 0; i < seen->n; i++)
			if (seen->dev[i] == st.st_dev && seen->ino[i] == st.st_ino)
				break;
	if (i == seen->n && i < FILES_MAX && seen->depth < DEPTH_MAX) {
		seen->dev[i] = st.st_dev;
		seen->ino[i] = st.st_ino;
		seen->n++;
		seen->depth++;
		f.size = st.st_size;
		map = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			f.map = map;
			found = look_into(&f, path, seen);
			munmap(map, f.size);
		}
		seen->depth--;
	}
	close(fd);
	return found;
}

bool gi_has_driver_variables(const char *path)
{
	int before = gi_cancel_disable();
	struct seen seen;
	bool found;

	seen.n = 0;
	seen.depth = 0;
	found = look_at(path, &seen);
	gi_cancel_restore(before);
	if (found)
		gi_debug("%s: variables with the names of the driver's functions: RTLD_DEEPBIND",
			 path);
	return found;
}
