// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cache.h"
#include "gschedd.h"
#include "rewriter/abi.h"

#define MAGIC		"GSCHEDC2"	/* version of the entries' format */
#define ENTRY_MAX	(1ull << 30)
#define NAME_LEN	(2 * CACHE_KEY)

struct file_head {
	char magic[8];
	uint32_t err, pad;
	uint64_t ptx_size, description_size, notes_size;
	uint8_t sum[CACHE_KEY];		/* hash of the key, the fields above, and the rest */
};

struct victim {
	char name[NAME_LEN + 1];
	uint64_t size;
	struct timespec used;
};

static int dir_fd = -1;
static const char *dir_path;
static uint64_t dir_max, max_size, total;
static uint64_t unseen;	/* bytes stored since the last count; other workers store too */

/* The linker's build id identifies the build of the rewriter. */
static int add_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr);
		size_t left = ph->p_memsz;

		while (ph->p_type == PT_NOTE && left >= sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *n = (const void *)p;
			size_t len = sizeof(*n) + ((n->n_namesz + 3) & ~3u) +
				     ((n->n_descsz + 3) & ~3u);

			if (len > left)
				break;
			if (n->n_type == NT_GNU_BUILD_ID)
				SHA256Update(arg, (const uint8_t *)p, len);
			p += len;
			left -= len;
		}
	}
	return 1;	/* the first object is this program */
}

void cache_key(const void *image, size_t size, size_t name_size, uint32_t arch, uint32_t flags,
	       uint8_t key[CACHE_KEY])
{
	uint64_t words[5] = { GSR_ABI_VERSION, arch, flags, size, name_size };
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)MAGIC, sizeof(MAGIC));
	dl_iterate_phdr(add_build_id, &ctx);
	SHA256Update(&ctx, (const uint8_t *)words, sizeof(words));
	SHA256Update(&ctx, image, size + name_size);
	SHA256Final(key, &ctx);
}

static void sum_of(const uint8_t *key, const struct file_head *h, const struct cache_entry *e,
		   uint8_t *sum)
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, key, CACHE_KEY);
	SHA256Update(&ctx, (const uint8_t *)h, offsetof(struct file_head, sum));
	SHA256Update(&ctx, (const uint8_t *)e->ptx, h->ptx_size);
	SHA256Update(&ctx, (const uint8_t *)e->description, h->description_size);
	SHA256Update(&ctx, (const uint8_t *)e->notes, h->notes_size);
	SHA256Final(sum, &ctx);
}

static void name_of(const uint8_t *key, char *name)
{
	for (int i = 0; i < CACHE_KEY; i++)
		sprintf(name + 2 * i, "%02x", key[i]);
}

static bool is_entry(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == NAME_LEN;
}

static DIR *open_dir(void)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Adds up the entries' sizes; removes partial files of killed processes, older than an hour. */
static void count_entries(void)
{
	DIR *dir = open_dir();
	struct dirent *d;
	struct stat st;

	total = 0;
	while (dir && (d = readdir(dir))) {
		if (fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (is_entry(d->d_name))
			total += st.st_size;
		else if (!strncmp(d->d_name, "tmp.", 4) && time(NULL) - st.st_mtime > 3600)
			unlinkat(dir_fd, d->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

int cache_open(const char *path, uint64_t max)
{
	struct stat st;
	int err;

	dir_path = path;
	dir_max = max;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	/* write access to it gives control of what runs on the GPU for all users */
	if (fstat(dir_fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & 077)
		err = -EACCES;
	else
		err = 0;
	if (err) {
		close(dir_fd);
		dir_fd = -1;
		return err;
	}
	max_size = max - max / 16;	/* leaves room for what four workers store between counts */
	count_entries();
	return 0;
}

void cache_close(void)
{
	if (dir_fd >= 0)
		close(dir_fd);
	dir_fd = -1;
}

static bool read_all(int fd, void *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, (char *)buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

static bool write_all(int fd, const void *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(fd, (const char *)buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

bool cache_get(const uint8_t key[CACHE_KEY], struct cache_entry *e)
{
	struct cache_entry found = { 0 };
	char name[NAME_LEN + 1];
	uint8_t sum[CACHE_KEY];
	struct stat st = { 0 };
	struct file_head h;
	int fd;

	if (dir_fd < 0)
		return false;
	name_of(key, name);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !read_all(fd, &h, sizeof(h)) ||
	    memcmp(h.magic, MAGIC, sizeof(h.magic)) || h.ptx_size > ENTRY_MAX ||
	    h.description_size > ENTRY_MAX || h.notes_size > ENTRY_MAX ||
	    (h.err && h.err != ENOEXEC) ||
	    (uint64_t)st.st_size !=
	    sizeof(h) + h.ptx_size + h.description_size + h.notes_size)
		goto corrupt;
	found = (struct cache_entry){ .err = h.err, .ptx_size = h.ptx_size,
				      .description_size = h.description_size,
				      .notes_size = h.notes_size };
	found.ptx = malloc(st.st_size - sizeof(h) + 1);
	if (!found.ptx) {
		close(fd);
		return false;
	}
	found.description = found.ptx + h.ptx_size;
	found.notes = found.description + h.description_size;
	if (!read_all(fd, found.ptx, st.st_size - sizeof(h)))
		goto corrupt;
	sum_of(key, &h, &found, sum);
	if (memcmp(sum, h.sum, sizeof(sum)))
		goto corrupt;
	*e = found;
	futimens(fd, NULL);	/* marks the use, which determines the order of removal */
	close(fd);
	return true;

corrupt:
	say(LOG_WARN, "cache entry %s is damaged: dropped", name);
	if (!unlinkat(dir_fd, name, 0))
		total -= total < (uint64_t)st.st_size ? total : (uint64_t)st.st_size;
	free(found.ptx);
	close(fd);
	return false;
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct victim *)a)->used,
		*y = &((const struct victim *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/*
 * Counts the entries' size. If it is too much, removes those that were not used for longest, down
 * to nine tenths of the bound, so that not every store has to do this. Keeps @newest, because the
 * clock of files, with ticks of some ms, may not tell it from the entries before it.
 */
static void evict_entries(const char *newest)
{
	DIR *dir = open_dir();
	struct victim *v = NULL;
	size_t n = 0, room = 0;
	struct dirent *d;
	struct stat st;
	bool too_much;

	if (!dir)
		return;
	total = 0;
	while ((d = readdir(dir))) {
		if (!is_entry(d->d_name) || fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		total += st.st_size;
		if (n == room) {
			struct victim *more =
				realloc(v, (room = room ? 2 * room : 64) * sizeof(*v));

			if (!more)
				break;
			v = more;
		}
		memcpy(v[n].name, d->d_name, NAME_LEN + 1);
		v[n].size = st.st_size;
		v[n++].used = st.st_mtim;
	}
	closedir(dir);
	too_much = total > max_size;
	if (v)
		qsort(v, n, sizeof(*v), by_use);
	unseen = 0;
	for (size_t i = 0; i < n && too_much && total > max_size / 10 * 9; i++)
		if (strcmp(v[i].name, newest) && !unlinkat(dir_fd, v[i].name, 0))
			total -= v[i].size;
	free(v);
}

static int create_file(const char *name)
{
	return openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void cache_put(const uint8_t key[CACHE_KEY], const struct cache_entry *e)
{
	struct file_head h = { .magic = MAGIC, .err = e->err, .ptx_size = e->ptx_size,
			       .description_size = e->description_size,
			       .notes_size = e->notes_size };
	uint64_t size = sizeof(h) + e->ptx_size + e->description_size + e->notes_size;
	char name[NAME_LEN + 1], tmp[64];
	static unsigned int serial;
	bool ok;
	int fd;

	if (dir_fd < 0 || size > max_size / 10 * 9 || size > ENTRY_MAX)
		return;
	sum_of(key, &h, e, h.sum);
	name_of(key, name);
	snprintf(tmp, sizeof(tmp), "tmp.%d.%u", (int)getpid(), serial++);
	fd = create_file(tmp);
	/* somebody has removed the directory, to empty the cache */
	if (fd < 0 && errno == ENOENT) {
		cache_close();
		fd = cache_open(dir_path, dir_max) ? -1 : create_file(tmp);
	}
	if (fd < 0)
		return;
	ok = write_all(fd, &h, sizeof(h)) && write_all(fd, e->ptx, e->ptx_size) &&
	     write_all(fd, e->description, e->description_size) &&
	     write_all(fd, e->notes, e->notes_size);
	close(fd);
	if (!ok || renameat(dir_fd, tmp, dir_fd, name)) {
		unlinkat(dir_fd, tmp, 0);
		return;
	}
	total += size;
	unseen += size;
	if (total > max_size || unseen > max_size / 64)
		evict_entries(name);
}
