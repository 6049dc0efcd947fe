/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texture and surface objects of the interpreter: what cuTexObjectCreate and its kin make, and tex,
 * suld and their kin read. The handle is what a kernel has in its 64-bit register.
 */
#ifndef VGPU_EXEC_TEX_H
#define VGPU_EXEC_TEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of an image; the numbers are CUarray_format's */
enum vgpu_format {
	VGPU_FORMAT_U8 = 0x01, VGPU_FORMAT_U16 = 0x02, VGPU_FORMAT_U32 = 0x03,
	VGPU_FORMAT_S8 = 0x08, VGPU_FORMAT_S16 = 0x09,
	VGPU_FORMAT_S32 = 0x0a, VGPU_FORMAT_F16 = 0x10, VGPU_FORMAT_F32 = 0x20,
};
unsigned int vgpu_format_size(unsigned int format);	/* of a channel; 0: no such format */

struct vgpu_image {
	uint8_t *data;
	unsigned int width, height, depth;	/* in elements; 0: it has no such dimension */
	unsigned int layers;			/* 0: not layered */
	size_t pitch, slice;			/* bytes from row to row, from plane or layer to the
						 * next */
	unsigned int channels;
	enum vgpu_format format;
	bool linear;				/* a run of memory: what lies outside is 0 */
	bool owned;				/* an array: the memory is the driver's */
};

enum vgpu_address { VGPU_ADDRESS_WRAP, VGPU_ADDRESS_CLAMP, VGPU_ADDRESS_MIRROR,
		    VGPU_ADDRESS_BORDER };

struct vgpu_texture {
	struct vgpu_image image;
	enum vgpu_address address[3];
	bool linear_filter, normalized, as_integer, srgb;
	float border[4];
};

/* 0: out of memory. A surface is a texture that only its image counts of */
uint64_t vgpu_texture_new(const struct vgpu_texture *t, bool surface);
/* NULL: there is none */
const struct vgpu_texture *vgpu_texture_get(uint64_t handle, bool surface);
bool vgpu_texture_free(uint64_t handle, bool surface);

#endif /* VGPU_EXEC_TEX_H */
