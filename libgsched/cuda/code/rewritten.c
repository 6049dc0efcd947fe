// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What gschedd's rewriting service makes of an image: what its kernels are, and one kernel in one
 * form at a time, as it is loaded. The program does not look into PTX; it only takes it out of its
 * container, that of each unit of a relocatable program, which the service joins. For the twin
 * worker.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

/*
 * The longest twin, about 33 000 lines, which the driver compiles in some seconds. The program's
 * work in the context is held back meanwhile: a kernel of Blender's Cycles with 190 000 lines would
 * take minutes.
 */
#define PTX_MAX		(1u << 20)

/* The input, kept while forms may be needed. No lock held; @image is being worked on. */
static bool take_source(struct gi_image *image, unsigned int arch, char *why, size_t size)
{
	struct gsr_error err = { 0 };
	size_t source_size = 0;
	char *source = NULL;

	if (image->source)
		return true;
	if (image->raw &&
	    gsr_image_source(image->raw, SIZE_MAX, arch, &source, &source_size, &err))
		source = NULL;
	if (!source)
		snprintf(why, size, "%s", err.message[0] ? err.message : "no PTX in the image");
	pthread_mutex_lock(&gi_lock);
	image->source = source;
	image->source_size = source_size;
	free(image->raw_copy);
	image->raw = image->raw_copy = NULL;
	pthread_mutex_unlock(&gi_lock);
	return source;
}

/* The answer is @desc, and @twin of @twin_size if @ask wants it and there is one. */
static enum gi_answer ask_service(const struct gi_image *image,
				  const struct gsched_rewrite_opts *ask, char **twin,
				  size_t *twin_size, struct gsr_rewrite *desc, char *why,
				  size_t size)
{
	struct gsr_error err = { 0 };
	size_t length = 0;
	void *description = NULL;
	enum gi_answer answer;

	if (gsched_rewrite_with(image->source, image->source_size, ask, twin, twin_size,
				&description, &length) && errno != ENOEXEC) {
		snprintf(why, size, "gschedd does not rewrite it: %s", strerror(errno));
		return errno == ENOTCONN || errno == ETIMEDOUT || errno == EBUSY ||
				       errno == EDQUOT ? GI_ANSWER_LATER : GI_ANSWER_NO;
	}
	/* that of an image without twins has the reasons */
	answer = description && !gsr_read_description(description, length, desc, &err) ?
			 GI_ANSWER_YES : GI_ANSWER_NO;
	if (answer == GI_ANSWER_NO) {
		snprintf(why, size, "gschedd: %s", description ? err.message : "refused");
		free(*twin);
		*twin = NULL;
	}
	free(description);
	return answer;
}

/* An image without any twin. gi_lock held. */
static void set_unusable(struct gi_image *image, const char *why)
{
	snprintf(image->why, sizeof(image->why), "%s", why);
	image->state = GI_IMAGE_NONE;
	free(image->source);
	image->source = NULL;
}

void gi_image_describe(struct gi_image *image)
{
	const struct gsched_rewrite_opts ask = {
		.size = sizeof(ask), .arch = image->arch, .modes = gi_needs_modes(),
		.describe = true,
	};
	struct gsr_rewrite desc = { 0 };
	enum gi_answer answer = GI_ANSWER_NO;
	char *none, why[sizeof(image->why)];
	size_t none_size;

	if (image->state != GI_IMAGE_NEW)
		return;
	if (take_source(image, image->arch, why, sizeof(why)))
		answer = ask_service(image, &ask, &none, &none_size, &desc, why, sizeof(why));
	pthread_mutex_lock(&gi_lock);
	if (answer == GI_ANSWER_YES && desc.n_kernels) {
		image->desc = desc;
		image->state = GI_IMAGE_READY;
	} else if (answer != GI_ANSWER_LATER) {
		gsr_rewrite_free(&desc);
		set_unusable(image, answer == GI_ANSWER_YES ? "no kernels" : why);
	}
	gi_image_recount(image);
	pthread_mutex_unlock(&gi_lock);
}

/* Why a kernel has no twin, as far as the image's description says. */
static const char *refusal(const struct gi_image *image, const char *kernel)
{
	unsigned int i;

	if (image->state == GI_IMAGE_NONE)
		return image->why;
	if (image->state == GI_IMAGE_NEW)
		return NULL;
	for (i = 0; i < image->desc.n_kernels; i++)
		if (!strcmp(image->desc.kernels[i].name, kernel))
			return image->desc.kernels[i].tier == GSR_TIER_BLOCK ? NULL :
			       image->desc.kernels[i].reason;
	return "not in the module's PTX";
}

/* Why the form cannot be had, by its own description. */
static const char *form_refusal(const struct gi_rewritten *r)
{
	const struct gsr_kernel *k = r->desc.kernels;

	if (!r->desc.n_kernels)
		return "not in the module's PTX";
	if (r->too_long)
		return "its twin is too long: the program would wait while it is compiled";
	if (k->tier != GSR_TIER_BLOCK || !r->ptx)
		return k->reason;
	if (r->id == GI_RESUMABLE && !k->resume_points)
		return k->resume_reason ? k->resume_reason : "nowhere to leave it";
	return NULL;
}

/* gi_lock held. */
static struct gi_rewritten *find_rewritten(const struct gi_image *image, const char *kernel,
					   enum gi_form_id id)
{
	struct gi_rewritten *r;

	for (r = image->rewritten; r; r = r->next)
		if (r->id == id && !strcmp(r->name, kernel))
			break;
	return r;
}

enum gi_answer gi_image_kernel_form(struct gi_image *image, unsigned int arch, const char *kernel,
				    enum gi_form_id id, struct gi_rewritten **form, char *why,
				    size_t size)
{
	const struct gsched_rewrite_opts ask = {
		.size = sizeof(ask), .arch = arch, .resumable = id == GI_RESUMABLE,
		.modes = gi_needs_modes(), .kernel = kernel,
	};
	const char *no = refusal(image, kernel);
	enum gi_answer answer;
	struct gi_rewritten *r;
	size_t ptx_size;

	if (no) {
		snprintf(why, size, "%s", no);
		return GI_ANSWER_NO;
	}
	pthread_mutex_lock(&gi_lock);
	r = find_rewritten(image, kernel, id);
	pthread_mutex_unlock(&gi_lock);
	if (!r) {
		if (!take_source(image, arch, why, size)) {
			pthread_mutex_lock(&gi_lock);
			set_unusable(image, why);
			gi_image_recount(image);
			pthread_mutex_unlock(&gi_lock);
			return GI_ANSWER_NO;
		}
		r = calloc(1, sizeof(*r) + strlen(kernel) + 1);
		if (!r)
			return GI_ANSWER_LATER;
		r->id = id;
		strcpy(r->name, kernel);
		answer = ask_service(image, &ask, &r->ptx, &ptx_size, &r->desc, why, size);
		if (answer != GI_ANSWER_YES) {
			free(r);
			return answer;
		}
		r->too_long = r->ptx && ptx_size > PTX_MAX;
		if (r->too_long) {
			free(r->ptx);
			r->ptx = NULL;
		}
		pthread_mutex_lock(&gi_lock);
		r->next = image->rewritten;
		image->rewritten = r;
		pthread_mutex_unlock(&gi_lock);
	}
	no = form_refusal(r);
	if (no)
		snprintf(why, size, "%s", no);
	*form = r;
	return no ? GI_ANSWER_NO : GI_ANSWER_YES;
}

void gi_rewritten_free(struct gi_image *image)
{
	struct gi_rewritten *r;

	while ((r = image->rewritten)) {
		image->rewritten = r->next;
		gsr_rewrite_free(&r->desc);
		free(r->ptx);
		free(r);
	}
	gsr_rewrite_free(&image->desc);
	free(image->source);
}
