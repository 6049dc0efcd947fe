// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Textures. Coordinates and filters follow the appendix on texture fetching of the CUDA programming
 * guide: with a linear filter the weight of a neighbour has 8 bits of fraction, to the nearest.
 * There is one level, so .level and .grad read it.
 */
#include <math.h>
#include <stdlib.h>
#include "exec_tex_priv.h"

#define OBJECTS_MAX	65536
#define TEXTURE_HANDLE	0x0074000000000000ull
#define SURFACE_HANDLE	0x0073000000000000ull

/* Freed ones stay for kernels that still look at them, in a list */
struct object {
	struct vgpu_texture t;
	struct object *retired;
};
static struct object *objects[2][OBJECTS_MAX];
static struct object *retired;
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned int vgpu_format_size(unsigned int format)
{
	switch (format) {
	case VGPU_FORMAT_U8: case VGPU_FORMAT_S8: return 1;
	case VGPU_FORMAT_U16: case VGPU_FORMAT_S16: case VGPU_FORMAT_F16: return 2;
	case VGPU_FORMAT_U32: case VGPU_FORMAT_S32: case VGPU_FORMAT_F32: return 4;
	default: return 0;
	}
}

uint64_t vgpu_texture_new(const struct vgpu_texture *t, bool surface)
{
	struct object *o = malloc(sizeof(*o));
	uint64_t handle = 0;
	unsigned int i;

	if (!o)
		return 0;
	o->t = *t;
	pthread_mutex_lock(&objects_lock);
	for (i = 1; i < OBJECTS_MAX && objects[surface][i]; i++)
		;
	if (i < OBJECTS_MAX) {
		__atomic_store_n(&objects[surface][i], o, __ATOMIC_RELEASE);
		handle = (surface ? SURFACE_HANDLE : TEXTURE_HANDLE) + i;
	}
	pthread_mutex_unlock(&objects_lock);
	if (!handle)
		free(o);
	return handle;
}

const struct vgpu_texture *vgpu_texture_get(uint64_t handle, bool surface)
{
	uint64_t i = handle - (surface ? SURFACE_HANDLE : TEXTURE_HANDLE);
	struct object *o = i < OBJECTS_MAX ? __atomic_load_n(&objects[surface][i],
							     __ATOMIC_ACQUIRE) : NULL;

	return o ? &o->t : NULL;
}

bool vgpu_texture_free(uint64_t handle, bool surface)
{
	uint64_t i = handle - (surface ? SURFACE_HANDLE : TEXTURE_HANDLE);
	struct object *o;

	pthread_mutex_lock(&objects_lock);
	o = i < OBJECTS_MAX ? objects[surface][i] : NULL;
	if (o) {
		__atomic_store_n(&objects[surface][i], NULL, __ATOMIC_RELEASE);
		o->retired = retired;
		retired = o;
	}
	pthread_mutex_unlock(&objects_lock);
	return o;
}

static uint64_t handle_of(const struct xctx *x, const struct xtex *t, unsigned int lane)
{
	if (!t->reference)
		return src(x, t->handle)[lane];
	return x->b->l.references ? x->b->l.references[t->reference - 1] : 0;
}

static const struct vgpu_texture *object(struct xctx *x, const struct xinsn *in,
					 const struct xtex *t, unsigned int lane, bool surface)
{
	uint64_t handle = handle_of(x, t, lane);
	const struct vgpu_texture *o = vgpu_texture_get(handle, surface);
	unsigned int dims;

	if (!o) {
		exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "0x%llx is no %s object",
			      (unsigned long long)handle, surface ? "surface" : "texture");
		return NULL;
	}
	dims = o->image.depth ? 3 : o->image.height ? 2 : 1;
	if (t->dims != dims || t->layered != (o->image.layers != 0)) {
		exec_fault(x, in, "the object has %u dimensions%s", dims,
			   o->image.layers ? " and layers" : "");
		return NULL;
	}
	return o;
}

/* Four channels, as f32 or as integers of 32 bits */
struct texel {
	float f[4];
	uint32_t i[4];
};

static bool fetch(struct xctx *x, const struct xinsn *in, const struct vgpu_texture *t,
		  const int64_t at[3], unsigned int layer, struct texel *out)
{
	const struct vgpu_image *im = &t->image;
	unsigned int size = vgpu_format_size(im->format), c;
	const uint8_t *p = im->data + (size_t)at[0] * size * im->channels +
			   (size_t)at[1] * im->pitch +
		(size_t)(im->layers ? layer : at[2]) * im->slice;

	memset(out, 0, sizeof(*out));
	out->f[3] = 1;
	out->i[3] = 1;
	if (!im->owned && !exec_global_ok(x->b, (uintptr_t)p, (size_t)size * im->channels, false)) {
		exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "the texture's memory at %p is gone",
			      (const void *)p);
		return false;
	}
	for (c = 0; c < im->channels; c++) {
		uint32_t v = 0;
		float f;

		memcpy(&v, p + c * size, size);
		switch (im->format) {
		case VGPU_FORMAT_U8: f = (float)v / 255; break;
		case VGPU_FORMAT_U16: f = (float)v / 65535; break;
		case VGPU_FORMAT_S8:
			v = (uint32_t)(int8_t)v;
			f = fmaxf((float)(int32_t)v / 127, -1);
			break;
		case VGPU_FORMAT_S16:
			v = (uint32_t)(int16_t)v;
			f = fmaxf((float)(int32_t)v / 32767, -1);
			break;
		case VGPU_FORMAT_F16: f = (float)half_to_f64((uint16_t)v, false); break;
		default: f = as_f32(v);
		}
		if (t->srgb && im->format == VGPU_FORMAT_U8 && c < 3)
			f = f <= 0.04045f ? f / 12.92f : powf((f + 0.055f) / 1.055f, 2.4f);
		/* integers that are not to be normalised, seen through a float */
		if (t->as_integer && im->format != VGPU_FORMAT_F16 && im->format != VGPU_FORMAT_F32)
			f = as_f32(v);
		out->f[c] = f;
		out->i[c] = im->format == VGPU_FORMAT_F16 ? f32_bits(f) : v;
	}
	return true;
}

/* Where index @i of a row of @n lies; -1: outside, where the border is */
static int64_t wrapped(enum vgpu_address mode, int64_t i, int64_t n, bool linear)
{
	if (i >= 0 && i < n)
		return i;
	if (linear)
		return -1;
	switch (mode) {
	case VGPU_ADDRESS_WRAP:
		i %= n;
		return i < 0 ? i + n : i;
	case VGPU_ADDRESS_MIRROR:
		i %= 2 * n;
		i = i < 0 ? i + 2 * n : i;
		return i < n ? i : 2 * n - 1 - i;
	case VGPU_ADDRESS_CLAMP: return i < 0 ? 0 : n - 1;
	default: return -1;
	}
}

static unsigned int side(const struct vgpu_image *im, unsigned int d)
{
	unsigned int n = d == 0 ? im->width : d == 1 ? im->height : im->depth;

	return n ? n : 1;
}

static bool texel(struct xctx *x, const struct xinsn *in, const struct vgpu_texture *t,
		  unsigned int dims, const int64_t index[3], unsigned int layer, struct texel *out)
{
	int64_t at[3] = { 0, 0, 0 };
	unsigned int d;

	for (d = 0; d < dims; d++) {
		enum vgpu_address mode = t->address[d];

		/* the first two are for normalised coordinates only */
		if (!t->normalized && (mode == VGPU_ADDRESS_WRAP || mode == VGPU_ADDRESS_MIRROR))
			mode = VGPU_ADDRESS_CLAMP;
		at[d] = wrapped(mode, index[d], side(&t->image, d), t->image.linear);
		if (at[d] < 0) {
			bool border = !t->image.linear;

			for (unsigned int c = 0; c < 4; c++) {
				out->f[c] = border ? t->border[c] : 0;
				out->i[c] = border ? f32_bits(t->border[c]) : 0;
			}
			return true;
		}
	}
	return fetch(x, in, t, at, layer, out);
}

static double floor_index(double v)
{
	v = floor(v);
	return v != v ? 0 : v > 0x1p40 ? 0x1p40 : v < -0x1p40 ? -0x1p40 : v;
}

/* The eight, four or two neighbours of a point, weighed; or its one texel */
static bool sample(struct xctx *x, const struct xinsn *in, const struct xtex *xt,
		   const struct vgpu_texture *t, unsigned int lane, struct texel *out)
{
	bool filter = t->linear_filter && xt->fp_coords && xt->type == T_F32 && !t->as_integer;
	unsigned int d, k, c, layer = 0;
	double frac[3] = { 0, 0, 0 };
	int64_t base[3] = { 0, 0, 0 };

	for (d = 0; d < xt->dims; d++) {
		uint32_t v = (uint32_t)src(x, xt->coord[d])[lane];
		double p;

		if (!xt->fp_coords) {
			base[d] = (int32_t)v;
			continue;
		}
		p = t->normalized ? (double)as_f32(v) * side(&t->image, d) : (double)as_f32(v);
		if (filter) {
			p -= 0.5;
			frac[d] = floor((p - floor(p)) * 256 + 0.5) / 256;
		}
		base[d] = (int64_t)floor_index(p);
	}
	if (xt->layered) {
		layer = (uint32_t)src(x, xt->coord[3])[lane];
		layer = layer >= t->image.layers ? t->image.layers - 1 : layer;
	}
	if (!filter)
		return texel(x, in, t, xt->dims, base, layer, out);
	memset(out, 0, sizeof(*out));
	for (k = 0; k < 1u << xt->dims; k++) {
		int64_t at[3];
		double w = 1;
		struct texel one;

		for (d = 0; d < 3; d++) {
			at[d] = base[d] + (k >> d & 1);
			if (d < xt->dims)
				w *= k >> d & 1 ? frac[d] : 1 - frac[d];
		}
		if (w == 0)
			continue;
		if (!texel(x, in, t, xt->dims, at, layer, &one))
			return false;
		for (c = 0; c < 4; c++)
			out->f[c] += (float)(w * one.f[c]);
	}
	return true;
}

enum xresult x_tex(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xtex *xt = in->ext;
	unsigned int c;

	for (uint32_t k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k);
		const struct vgpu_texture *t = object(x, in, xt, i, false);
		struct texel r;

		if (!t || !sample(x, in, xt, t, i, &r))
			return X_FAULT;
		for (c = 0; c < xt->n; c++)
			dst(x, xt->value[c])[i] = xt->type == T_F32 ? f32_bits(r.f[c]) :
						  xt->type == T_F16 ?
				half_from_f64(r.f[c], false, R_RN) : r.i[c];
	}
	pred_set(x, xt->resident, m, m);
	return X_NEXT;
}

/*
 * The four texels that a linear filter would weigh, counterclockwise from the lower left: one
 * component of each
 */
enum xresult x_tld4(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	static const int8_t dx[] = { 0, 1, 1, 0 }, dy[] = { 1, 1, 0, 0 };
	const struct xtex *xt = in->ext;

	for (uint32_t k = m; k; k &= k - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(k), c, d, layer = 0;
		const struct vgpu_texture *t = object(x, in, xt, i, false);
		int64_t base[3] = { 0, 0, 0 }, at[3] = { 0, 0, 0 };
		struct texel r;

		if (!t)
			return X_FAULT;
		for (d = 0; d < 2; d++) {
			double p = as_f32(src(x, xt->coord[d])[i]);

			base[d] = (int64_t)floor_index((t->normalized ? p * side(&t->image, d) :
							p) - 0.5);
		}
		if (xt->layered) {
			layer = (uint32_t)src(x, xt->coord[3])[i];
			layer = layer >= t->image.layers ? t->image.layers - 1 : layer;
		}
		for (c = 0; c < 4; c++) {
			at[0] = base[0] + dx[c];
			at[1] = base[1] + dy[c];
			if (!texel(x, in, t, 2, at, layer, &r))
				return X_FAULT;
			dst(x, xt->value[c])[i] = xt->type == T_F32 ? f32_bits(r.f[xt->component]) :
						  r.i[xt->component];
		}
	}
	pred_set(x, xt->resident, m, m);
	return X_NEXT;
}

/*
 * Where a surface access goes; x counts bytes. *out is NULL for what is outside and to be left out;
 * false: faulted.
 */
static bool surface(struct xctx *x, const struct xinsn *in, const struct xtex *xt,
		    unsigned int lane, size_t bytes, uint8_t **out)
{
	const struct vgpu_texture *t = object(x, in, xt, lane, true);
	int64_t at[3] = { 0, 0, 0 }, n;
	unsigned int d, layer = 0;
	bool outside = false;
	uint8_t *p;

	*out = NULL;
	if (!t)
		return false;
	for (d = 0; d < xt->dims; d++) {
		n = side(&t->image, d);
		at[d] = (int32_t)src(x, xt->coord[d])[lane];
		if (!d) {
			n = n * vgpu_format_size(t->image.format) * t->image.channels -
			    (int64_t)bytes + 1;
			if (at[0] % (int64_t)bytes) {
				exec_fault_as(x, in, VGPU_FAULT_MISALIGNED,
					      "byte %lld of a row, %zu at once, thread %u",
					      (long long)at[0], bytes, x->w->id * LANES + lane);
				return false;
			}
		}
		if (at[d] < 0 || at[d] >= n) {
			outside = true;
			at[d] = at[d] < 0 ? 0 : n - 1;
		}
	}
	if (xt->layered) {
		layer = (uint32_t)src(x, xt->coord[3])[lane];
		outside |= layer >= t->image.layers;
		layer = layer >= t->image.layers ? t->image.layers - 1 : layer;
	}
	if (outside && xt->outside == OUT_TRAP) {
		exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "outside of the surface, thread %u",
			      x->w->id * LANES + lane);
		return false;
	}
	if (outside && xt->outside == OUT_ZERO)
		return true;
	p = t->image.data + at[0] + (size_t)at[1] * t->image.pitch +
	    (size_t)(t->image.layers ? layer : at[2]) * t->image.slice;
	if (!t->image.owned && !exec_global_ok(x->b, (uintptr_t)p, bytes, true)) {
		exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "the surface's memory at %p is gone",
			      (void *)p);
		return false;
	}
	*out = p;
	return true;
}

enum xresult x_suld(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xtex *xt = in->ext;
	size_t size = xtype_size(xt->type);
	unsigned int c;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint8_t *p;

		if (!surface(x, in, xt, i, size * xt->n, &p))
			return X_FAULT;
		for (c = 0; c < xt->n; c++) {
			uint64_t v = 0;

			if (p)
				memcpy(&v, p + c * size, size);
			dst(x, xt->value[c])[i] = v;
		}
	}
	return X_NEXT;
}

enum xresult x_sust(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xtex *xt = in->ext;
	size_t size = xtype_size(xt->type);
	unsigned int c;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint8_t *p;

		if (!surface(x, in, xt, i, size * xt->n, &p))
			return X_FAULT;
		for (c = 0; p && c < xt->n; c++)
			memcpy(p + c * size, &src(x, xt->value[c])[i], size);
	}
	return X_NEXT;
}

enum xresult x_sured(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	const struct xtex *xt = in->ext;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		uint8_t *p;

		if (!surface(x, in, xt, i, xtype_size(xt->type), &p))
			return X_FAULT;
		if (p)
			atom_apply(xt->op, xt->type, p, src(x, xt->value[0])[i], 0, false);
	}
	return X_NEXT;
}

static enum xresult ask(struct xctx *x, const struct xinsn *in, uint32_t m, bool of_surface)
{
	const struct xtex *xt = in->ext;

	for (; m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m);
		const struct vgpu_texture *t = vgpu_texture_get(handle_of(x, xt, i), of_surface);
		uint32_t v;

		if (!t)
			return exec_fault_as(x, in, VGPU_FAULT_ADDRESS, "0x%llx is no %s object",
					     (unsigned long long)handle_of(x, xt, i),
					     of_surface ? "surface" : "texture");
		switch (xt->query) {
		case Q_WIDTH: v = t->image.width; break;
		case Q_HEIGHT: v = t->image.height; break;
		case Q_DEPTH: v = t->image.depth; break;
		case Q_ARRAY_SIZE: v = t->image.layers; break;
		case Q_NORMALIZED: v = t->normalized; break;
		default: v = 1;
		}
		dst(x, xt->value[0])[i] = v;
	}
	return X_NEXT;
}

enum xresult x_txq(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return ask(x, in, m, false);
}

enum xresult x_suq(struct xctx *x, const struct xinsn *in, uint32_t m)
{
	return ask(x, in, m, true);
}
