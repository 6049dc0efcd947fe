// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the real driver: $GSCHED_CUDA_DRIVER, then where the dynamic linker looks, which are the
 * program's own run path, LD_LIBRARY_PATH, the linker's cache, and the usual directories. Never
 * opens this library, whatever name leads to it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"

#define SONAME		"libcuda.so.1"
#define CACHE		"/etc/ld.so.cache"
#define CACHE_OLD	"ld.so-1.7.0"
#define CACHE_NEW	"glibc-ld.so.cache1.1"
#if defined(__x86_64__)
#define CACHE_FLAGS	0x0303		/* FLAG_X8664_LIB64 | FLAG_ELF_LIBC6 */
#define MULTIARCH	"/usr/lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define CACHE_FLAGS	0x0a03		/* FLAG_AARCH64_LIB64 | FLAG_ELF_LIBC6 */
#define MULTIARCH	"/usr/lib/aarch64-linux-gnu"
#else
#error "add the architecture's flags in ld.so.cache (glibc: ldconfig.h) and its library directory"
#endif

struct gi_real gi_real;

static pthread_once_t once = PTHREAD_ONCE_INIT, found_once = PTHREAD_ONCE_INIT;
static bool is_open;			/* gi_real and @opened are valid */
static void *handle;
static struct stat opened, found;	/* the driver's file; the one that is expected to be it */

static CUresult missing(void)
{
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult no_driver(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

bool gi_driver_lacks(const void *fn)
{
	return fn == (const void *)missing;
}

/* This library exports functions of these names itself (entry/open.c). */
static void *next_function(void **known, const char *name)
{
	void *next = __atomic_load_n(known, __ATOMIC_ACQUIRE);

	if (!next) {
		next = dlsym(RTLD_NEXT, name);
		__atomic_store_n(known, next, __ATOMIC_RELEASE);
	}
	return next;
}

gi_dlopen_fn *gi_dlopen_real(void)
{
	static void *real;

	return (gi_dlopen_fn *)next_function(&real, "dlopen");
}

gi_dlmopen_fn *gi_dlmopen_real(void)
{
	static void *real;

	return (gi_dlmopen_fn *)next_function(&real, "dlmopen");
}

/* A function that gets the candidates in their order; it returns true for the one that it takes. */
typedef bool take_fn(const char *path);

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* This library is no candidate. */
static bool is_candidate(const char *path, struct stat *st)
{
	struct stat self;
	Dl_info info;

	return !stat(path, st) && !(dladdr((void *)is_candidate, &info) && info.dli_fname &&
				    !stat(info.dli_fname, &self) && same_file(st, &self));
}

static bool take_stat(const char *path)
{
	struct stat st;

	if (!is_candidate(path, &st))
		return false;
	found = st;
	return true;
}

static bool take_open(const char *path)
{
	struct stat st;

	if (!is_candidate(path, &st))
		return false;
	handle = gi_dlopen_real()(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		gi_debug("%s", dlerror());
		return false;
	}
	opened = st;
	gi_debug("driver %s", path);
	return true;
}

static bool try_dir(const char *dir, size_t len, take_fn *take)
{
	char path[PATH_MAX];

	if (!len ||
	    snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, SONAME) >= (int)sizeof(path))
		return false;
	return take(path);
}

static bool try_dirs(const char *list, take_fn *take)
{
	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (try_dir(list, n, take))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/*
 * Searches the linker's cache of glibc 2.x: the new format, alone or behind the old one. Every
 * offset is checked.
 */
static bool search_cache(const char *map, size_t size, take_fn *take)
{
	struct { int32_t flags; uint32_t key, value, osversion; uint64_t hwcap; } entry;
	struct {
		char magic[20];
		uint32_t n, strings;
		uint8_t flags, pad[3];
		uint32_t extension, unused[3];
	} head;
	size_t base = 0, i;

	if (size > 16 && !memcmp(map, CACHE_OLD, sizeof(CACHE_OLD) - 1)) {
		uint32_t n;

		memcpy(&n, map + 12, sizeof(n));
		base = (16 + (size_t)n * 12 + 7) & ~(size_t)7;
	}
	if (base > size || size - base < sizeof(head))
		return false;
	memcpy(&head, map + base, sizeof(head));
	if (memcmp(head.magic, CACHE_NEW, sizeof(head.magic)))
		return false;
	map += base;
	size -= base;
	for (i = 0; i < head.n && sizeof(head) + (i + 1) * sizeof(entry) <= size; i++) {
		memcpy(&entry, map + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (entry.flags != CACHE_FLAGS || entry.key >= size || entry.value >= size ||
		    strnlen(map + entry.key, size - entry.key) == size - entry.key ||
		    strnlen(map + entry.value, size - entry.value) == size - entry.value)
			continue;
		if (!strcmp(map + entry.key, SONAME) && take(map + entry.value))
			return true;
	}
	return false;
}

static bool try_cache(take_fn *take)
{
	int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
	bool taken = false;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			taken = search_cache(map, st.st_size, take);
			munmap(map, st.st_size);
		}
	}
	close(fd);
	return taken;
}

/* One of those that the linker searches last, after the cache */
static bool is_usual(const char *dir)
{
	return !strncmp(dir, "/lib", 4) || !strncmp(dir, "/usr/lib", 8);
}

/*
 * The linker's own list, since it does not notice if the program has changed LD_LIBRARY_PATH. The
 * usual directories are at the end of it.
 */
static bool try_linker_dirs(take_fn *take)
{
	void *program = gi_dlopen_real()(NULL, RTLD_LAZY);
	Dl_serinfo *list, head;
	bool taken = false;
	unsigned int i, n;

	if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &head))
		return false;
	list = malloc(head.dls_size);
	if (list && !dlinfo(program, RTLD_DI_SERINFOSIZE, list) &&
	    !dlinfo(program, RTLD_DI_SERINFO, list)) {
		for (n = list->dls_cnt; n && is_usual(list->dls_serpath[n - 1].dls_name); n--)
			;
		for (i = 0; i < n && !taken; i++)
			taken = try_dir(list->dls_serpath[i].dls_name,
					strlen(list->dls_serpath[i].dls_name), take);
	}
	free(list);
	return taken;
}

static bool find_driver(take_fn *take)
{
	const char *env = getenv("GSCHED_CUDA_DRIVER");

	if (env && *env)
		return take(env);
	return try_linker_dirs(take) || try_cache(take) ||
	       try_dirs(MULTIARCH ":/usr/lib64:/usr/lib:/usr/local/nvidia/lib64:/usr/lib/wsl/lib",
			take);
}

static void look_for_driver(void)
{
	find_driver(take_stat);
}

bool gi_driver_is(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
		return same_file(&st, &opened);
	pthread_once(&found_once, look_for_driver);
	return same_file(&st, &found);
}

static void resolve_symbol(void *fn, const char *symbol)
{
	void *sym = handle ? dlsym(handle, symbol) : NULL;

	if (!sym)
		sym = handle ? (void *)missing : (void *)no_driver;
	memcpy(fn, &sym, sizeof(sym));
}

static void open_driver(void)
{
	if (!find_driver(take_open))
		gi_debug("no CUDA driver found: set GSCHED_CUDA_DRIVER to its libcuda.so.1");
#define GI_FN_PLAIN(symbol)
#define GI_FN_PTSZ(symbol) resolve_symbol(&gi_real.symbol##_ptsz, #symbol "_ptsz");
#define GI_FN_PTDS(symbol) resolve_symbol(&gi_real.symbol##_ptds, #symbol "_ptds");
#define CUFN(name, suffix, since, stream, params) \
	resolve_symbol(&gi_real.name##suffix, #name #suffix); \
	GI_FN_##stream(name##suffix)
#include "cudafuncs.h"
	GI_MORE_FUNCTIONS(CUFN)
#undef CUFN
#undef GI_FN_PLAIN
#undef GI_FN_PTSZ
#undef GI_FN_PTDS
	__atomic_store_n(&is_open, handle != NULL, __ATOMIC_RELEASE);
}

bool gi_driver(void)
{
	pthread_once(&once, open_driver);
	return __atomic_load_n(&is_open, __ATOMIC_ACQUIRE);
}

void *gi_driver_symbol(const char *name)
{
	void *fn;

	if (!gi_driver())
		return NULL;
	fn = dlsym(handle, name);
	if (!fn)
		gi_debug("%s: the driver has no such function", name);
	return fn ? fn : (void *)missing;
}
