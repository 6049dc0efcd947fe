// SPDX-License-Identifier: LGPL-2.1-or-later
/* The stand-in arbiter's rewriting service, as gschedd's worker does it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rewriter/gsr.h"
#include "arbiter.h"

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("part", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

int real_rewriter(const struct gsp_rewrite *req, int image_fd, int *out, unsigned int *n)
{
	struct gsr_options opts = {
		.size = sizeof(opts), .resumable = req->flags & GSP_REWRITE_RESUMABLE,
		.modes = req->flags & GSP_REWRITE_MODES,
	};
	size_t size = req->image_size + req->name_size, length, source_size;
	char *image = calloc(1, size + 1), *source = NULL;
	struct gsr_rewrite rw = { 0 };
	struct gsr_error err;
	void *description;
	int error = 0;

	*n = 0;
	if (!image || pread(image_fd, image, size, 0) != (ssize_t)size)
		abort();
	opts.kernel = req->name_size ? image + req->image_size : NULL;
	if (gsr_image_ptx(image, req->image_size, req->arch, &source, &source_size, &err) ||
	    gsr_rewrite_ptx(source, source_size, &opts, &rw, &err))
		description = gsr_describe_error(&err, &length);
	else
		description = gsr_describe(&rw, &length);
	if (!rw.ptx)
		error = ENOEXEC;
	else if (!(req->flags & GSP_REWRITE_DESCRIBE))
		out[(*n)++] = file_of(rw.ptx, rw.ptx_size);
	out[(*n)++] = file_of(description, length);
	free(description);
	gsr_rewrite_free(&rw);
	free(source);
	free(image);
	return error;
}
