// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the real driver: $GSCHED_CUDA_DRIVER, the directories of LD_LIBRARY_PATH, the linker's
 * cache, the usual directories. Never opens this library, whatever name leads to it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_open;			/* gi_real is valid */
static void *handle;
static struct stat self;

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

/* This library exports a dlopen() of its own (entry/open.c). */
gi_dlopen_fn *gi_dlopen_real(void)
{
	static gi_dlopen_fn *real;
	void *next;

	if (!__atomic_load_n(&real, __ATOMIC_ACQUIRE)) {
		next = dlsym(RTLD_NEXT, "dlopen");
		__atomic_store_n((void **)&real, next, __ATOMIC_RELEASE);
	}
	return real;
}

static bool try_open(const char *path)
{
	struct stat st;

	if (stat(path, &st) || (st.st_dev == self.st_dev && st.st_ino == self.st_ino))
		return false;
	handle = gi_dlopen_real()(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		gi_debug("%s", dlerror());
		return false;
	}
	gi_debug("driver %s", path);
	return true;
}

static bool try_dir(const char *dir, size_t len)
{
	char path[PATH_MAX];

	if (!len ||
	    snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, SONAME) >= (int)sizeof(path))
		return false;
	return try_open(path);
}

static bool try_dirs(const char *list)
{
	while (list && *list) {
		size_t n = strcspn(list, ":");

		if (try_dir(list, n))
			return true;
		list += n + (list[n] == ':');
	}
	return false;
}

/*
 * Searches the linker's cache of glibc 2.x: the new format, alone or behind the old one. Every
 * offset is checked.
 */
static bool search_cache(const char *map, size_t size)
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
		if (!strcmp(map + entry.key, SONAME) && try_open(map + entry.value))
			return true;
	}
	return false;
}

static bool try_cache(void)
{
	int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
	bool found = false;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size > 0) {
		map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			found = search_cache(map, st.st_size);
			munmap(map, st.st_size);
		}
	}
	close(fd);
	return found;
}

static bool find_driver(void)
{
	const char *env = getenv("GSCHED_CUDA_DRIVER");
	Dl_info info;

	if (dladdr((void *)try_open, &info) && info.dli_fname)
		stat(info.dli_fname, &self);
	if (env && *env)
		return try_open(env);
	return try_dirs(getenv("LD_LIBRARY_PATH")) || try_cache() ||
	       try_dirs(MULTIARCH ":/usr/lib64:/usr/lib:/usr/local/nvidia/lib64:/usr/lib/wsl/lib");
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
	if (!find_driver())
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
