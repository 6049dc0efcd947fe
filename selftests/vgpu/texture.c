// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: arrays, texture and surface objects. An array is device memory by rows; the
 * interpreter reads and writes it by the objects' handles (exec_tex.h). Mipmaps and cube maps are
 * not simulated.
 */
#include <stdlib.h>
#include <string.h>
#include "exec_tex.h"
#include "vgpu.h"

#define LAYERED		0x01	/* CUDA_ARRAY3D_* */
#define SURFACE_LDST	0x02
#define GATHER		0x08
#define READ_AS_INTEGER	0x01	/* CU_TRSF_* */
#define NORMALIZED	0x02
#define SRGB		0x10
#define NO_TRILINEAR	0x20

#define ALIGNMENT	512	/* of linear memory under a texture */
#define PITCH_ALIGNMENT	32

struct CUarray_st {
	struct CUarray_st *next;
	struct CUctx_st *ctx;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct vgpu_image image;
	CUdeviceptr mem;
};

struct texobject {
	struct texobject *next;
	uint64_t seq;		/* of what was issued before it was destroyed */
	uint64_t handle;
	bool surface;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
};

static struct CUarray_st *arrays;
static struct texobject *texobjects, *destroyed;

static struct CUarray_st **find_array(CUarray a)
{
	struct CUarray_st **p = &arrays;

	while (*p && *p != a)
		p = &(*p)->next;
	return p;
}

static void free_array(struct CUarray_st **p, bool memory)
{
	struct CUarray_st *a = *p;

	*p = a->next;
	if (memory)
		vg_mem_free(a->mem, false);
	free(a);
}

void vg_arrays_drop(struct CUctx_st *ctx)
{
	struct CUarray_st **p = &arrays;

	while (*p)
		if ((*p)->ctx == ctx)
			free_array(p, false);	/* the memory goes with the context's */
		else
			p = &(*p)->next;
}

/* Where @rows rows of @planes planes of an array lie, from @x bytes on */
CUresult vg_array_place(CUarray array, const size_t at[3], size_t width, size_t rows, size_t planes,
			char **base, size_t *pitch, size_t *plane)
{
	const struct CUarray_st *a = *find_array(array);
	size_t row, n;

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	row = (size_t)a->image.width * vgpu_format_size(a->image.format) * a->image.channels;
	n = a->image.depth ? a->image.depth : a->image.layers ? a->image.layers : 1;
	if (at[0] > row || width > row - at[0] ||
	    at[1] + rows > (a->image.height ? a->image.height : 1) || at[1] + rows < rows ||
	    at[2] + planes > n || at[2] + planes < planes)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = a->image.pitch;
	*plane = a->image.slice;
	*base = (char *)a->image.data + at[0] + at[1] * *pitch + at[2] * *plane;
	return CUDA_SUCCESS;
}

static bool elements_ok(CUarray_format format, unsigned int channels)
{
	return vgpu_format_size(format) && (channels == 1 || channels == 2 || channels == 4);
}

static CUresult array_new(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool layered = d->Flags & LAYERED;
	struct CUctx_st *ctx;
	struct CUarray_st *a;
	size_t planes = d->Depth ? d->Depth : 1, rows = d->Height ? d->Height : 1, size;
	CUresult r = vg_enter_ctx(&ctx);

	if (r)
		return r;
	if (!elements_ok(d->Format, d->NumChannels) || !d->Width || d->Width > 131072 ||
	    d->Height > 65536 || d->Depth > 16384 || (layered ? !d->Depth : d->Depth && !d->Height))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (d->Flags & ~(unsigned int)(LAYERED | SURFACE_LDST | GATHER))
		return vg_leave(vg_unsimulated("an array with these flags"));
	a = calloc(1, sizeof(*a));
	if (!a)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	a->ctx = ctx;
	a->desc = *d;
	a->image = (struct vgpu_image) {
		.width = (unsigned int)d->Width, .height = (unsigned int)d->Height,
			.depth = layered ? 0 : (unsigned int)d->Depth,
		.layers = layered ? (unsigned int)d->Depth : 0, .channels = d->NumChannels,
			.format = (enum vgpu_format)d->Format,
		.owned = true,
	};
	a->image.pitch = (d->Width * vgpu_format_size(d->Format) * d->NumChannels + 31) &
		~(size_t)31;
	a->image.slice = a->image.pitch * rows;
	r = __builtin_mul_overflow(a->image.slice, planes, &size) ? CUDA_ERROR_OUT_OF_MEMORY :
		vg_mem_alloc(ctx, size, VG_MEM_DEVICE, 0, &a->mem);
	if (r) {
		free(a);
		return vg_leave(r);
	}
	a->image.data = (uint8_t *)(uintptr_t)a->mem;
	a->next = arrays;
	arrays = a;
	*out = a;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return array && desc ? array_new(array, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	if (!array || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	return array_new(array, &(CUDA_ARRAY3D_DESCRIPTOR){ desc->Width, desc->Height, 0,
							    desc->Format, desc->NumChannels,
							    SURFACE_LDST });
}

static CUresult describe(CUarray array, CUDA_ARRAY3D_DESCRIPTOR *out)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!*find_array(array))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	*out = array->desc;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
	return desc ? describe(array, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult r = desc ? describe(array, &d) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*desc = (CUDA_ARRAY_DESCRIPTOR){ d.Width, d.Height, d.Format, d.NumChannels };
	return r;
}

CUDADRV_API CUresult cuArrayDestroy(CUarray array)
{
	struct CUarray_st **p;
	CUresult r = vg_enter();

	if (r)
		return r;
	p = find_array(array);
	if (!*p)
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	/* kernels and copies that use it come first */
	r = vg_wait_held(VG_HOLDER_ARRAY_DESTROY, (*p)->ctx);
	p = find_array(array);
	if (*p)
		free_array(p, true);
	return vg_leave(r);
}

/* Copies of a run of bytes are copies of one row */
static CUDA_MEMCPY2D row(size_t size)
{
	return (CUDA_MEMCPY2D){ .WidthInBytes = size, .Height = 1 };
}

static void from(CUDA_MEMCPY2D *c, CUmemorytype type, CUarray array, const void *host,
		 CUdeviceptr device, size_t offset)
{
	c->srcMemoryType = type;
	c->srcArray = array;
	c->srcHost = host;
	c->srcDevice = device;
	c->srcXInBytes = offset;
}

static void to(CUDA_MEMCPY2D *c, CUmemorytype type, CUarray array, void *host, CUdeviceptr device,
	       size_t offset)
{
	c->dstMemoryType = type;
	c->dstArray = array;
	c->dstHost = host;
	c->dstDevice = device;
	c->dstXInBytes = offset;
}

#define COPY(name, params, f, t, ...) \
	CUDADRV_API CUresult name params \
	{ \
		CUDA_MEMCPY2D c = row(n); \
		from f; \
		to t; \
		return cuMemcpy2D_v2(&c); \
	} \
	CUDADRV_API CUresult name##_ptds params \
	{ \
		CUDA_MEMCPY2D c = row(n); \
		from f; \
		to t; \
		return cuMemcpy2D_v2_ptds(&c); \
	}
#define COPY_ASYNC(name, params, f, t) \
	CUDADRV_API CUresult name params \
	{ \
		CUDA_MEMCPY2D c = row(n); \
		from f; \
		to t; \
		return cuMemcpy2DAsync_v2(&c, s); \
	} \
	CUDADRV_API CUresult name##_ptsz params \
	{ \
		CUDA_MEMCPY2D c = row(n); \
		from f; \
		to t; \
		return cuMemcpy2DAsync_v2_ptsz(&c, s); \
	}

COPY(cuMemcpyHtoA_v2, (CUarray a, size_t at, const void *p, size_t n),
     (&c, CU_MEMORYTYPE_HOST, NULL, p, 0, 0), (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at))
COPY(cuMemcpyAtoH_v2, (void *p, CUarray a, size_t at, size_t n),
     (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at), (&c, CU_MEMORYTYPE_HOST, NULL, p, 0, 0))
COPY(cuMemcpyDtoA_v2, (CUarray a, size_t at, CUdeviceptr p, size_t n),
     (&c, CU_MEMORYTYPE_DEVICE, NULL, NULL, p, 0), (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at))
COPY(cuMemcpyAtoD_v2, (CUdeviceptr p, CUarray a, size_t at, size_t n),
     (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at), (&c, CU_MEMORYTYPE_DEVICE, NULL, NULL, p, 0))
COPY(cuMemcpyAtoA_v2, (CUarray b, size_t bt, CUarray a, size_t at, size_t n),
     (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at), (&c, CU_MEMORYTYPE_ARRAY, b, NULL, 0, bt))
COPY_ASYNC(cuMemcpyHtoAAsync_v2, (CUarray a, size_t at, const void *p, size_t n, CUstream s),
	   (&c, CU_MEMORYTYPE_HOST, NULL, p, 0, 0), (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at))
COPY_ASYNC(cuMemcpyAtoHAsync_v2, (void *p, CUarray a, size_t at, size_t n, CUstream s),
	   (&c, CU_MEMORYTYPE_ARRAY, a, NULL, 0, at), (&c, CU_MEMORYTYPE_HOST, NULL, p, 0, 0))

static CUresult image_of(const CUDA_RESOURCE_DESC *d, struct vgpu_image *im)
{
	const struct CUarray_st *a;
	size_t texel;

	memset(im, 0, sizeof(*im));
	if (d->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (d->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		a = *find_array(d->res.array.hArray);
		if (!a)
			return CUDA_ERROR_INVALID_HANDLE;
		*im = a->image;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return vg_unsimulated("a texture of a mipmapped array");
	case CU_RESOURCE_TYPE_LINEAR:
		if (!elements_ok(d->res.linear.format, d->res.linear.numChannels) ||
		    d->res.linear.devPtr % ALIGNMENT ||
		    !vg_region_covers(d->res.linear.devPtr, d->res.linear.sizeInBytes))
			return CUDA_ERROR_INVALID_VALUE;
		texel = (size_t)vgpu_format_size(d->res.linear.format) * d->res.linear.numChannels;
		if (d->res.linear.sizeInBytes / texel > 1u << 27 ||
		    d->res.linear.sizeInBytes < texel)
			return CUDA_ERROR_INVALID_VALUE;
		im->data = (uint8_t *)(uintptr_t)d->res.linear.devPtr;
		im->width = (unsigned int)(d->res.linear.sizeInBytes / texel);
		im->format = (enum vgpu_format)d->res.linear.format;
		im->channels = d->res.linear.numChannels;
		im->linear = true;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_PITCH2D:
		texel = (size_t)vgpu_format_size(d->res.pitch2D.format) *
			d->res.pitch2D.numChannels;
		if (!elements_ok(d->res.pitch2D.format, d->res.pitch2D.numChannels) ||
		    d->res.pitch2D.devPtr % ALIGNMENT ||
		    d->res.pitch2D.pitchInBytes % PITCH_ALIGNMENT || !d->res.pitch2D.width ||
		    d->res.pitch2D.width > 131072 || !d->res.pitch2D.height ||
		    d->res.pitch2D.height > 65536 ||
		    d->res.pitch2D.pitchInBytes < d->res.pitch2D.width * texel ||
		    !vg_region_covers(d->res.pitch2D.devPtr,
				      d->res.pitch2D.pitchInBytes * (d->res.pitch2D.height - 1) +
				      d->res.pitch2D.width * texel))
			return CUDA_ERROR_INVALID_VALUE;
		im->data = (uint8_t *)(uintptr_t)d->res.pitch2D.devPtr;
		im->width = (unsigned int)d->res.pitch2D.width;
		im->height = (unsigned int)d->res.pitch2D.height;
		im->pitch = d->res.pitch2D.pitchInBytes;
		im->format = (enum vgpu_format)d->res.pitch2D.format;
		im->channels = d->res.pitch2D.numChannels;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult sampler_of(const CUDA_TEXTURE_DESC *d, struct vgpu_texture *t)
{
	bool is_float = t->image.format == VGPU_FORMAT_F16 || t->image.format == VGPU_FORMAT_F32;
	bool wide = vgpu_format_size(t->image.format) == 4;
	unsigned int i;

	if (d->flags & ~(unsigned int)(READ_AS_INTEGER | NORMALIZED | SRGB | NO_TRILINEAR) ||
	    (unsigned int)d->filterMode > 1)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < 3; i++) {
		if ((unsigned int)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		t->address[i] = (enum vgpu_address)d->addressMode[i];
	}
	memcpy(t->border, d->borderColor, sizeof(t->border));
	t->linear_filter = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
	t->normalized = d->flags & NORMALIZED;
	t->srgb = d->flags & SRGB;
	/* integers of 32 bits are never made floats */
	t->as_integer = !is_float && (wide || d->flags & READ_AS_INTEGER);
	return t->linear_filter && (t->as_integer || t->image.linear) ? CUDA_ERROR_INVALID_VALUE :
	       CUDA_SUCCESS;
}

uint64_t vg_object(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
		   CUresult *r)
{
	struct vgpu_texture t = { 0 };
	uint64_t handle;

	*r = image_of(resource, &t.image);
	if (!*r && texture)
		*r = sampler_of(texture, &t);
	/* surfaces are of arrays that were made for them */
	if (!*r && !texture &&
	    (resource->resType != CU_RESOURCE_TYPE_ARRAY ||
	     !(resource->res.array.hArray->desc.Flags & SURFACE_LDST)))
		*r = CUDA_ERROR_INVALID_VALUE;
	if (*r)
		return 0;
	handle = vgpu_texture_new(&t, !texture);
	*r = handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return handle;
}

/*
 * A destroyed object stays for the work that was issued before, as FFmpeg's filters need it to. It
 * is not there for a kernel that is launched when all of that has ended.
 */
void vg_texobjects_reap(void)
{
	struct texobject **p = &destroyed, *o;

	while (*p) {
		o = *p;
		if (!vg_passed(o->seq)) {
			p = &o->next;
			continue;
		}
		*p = o->next;
		vgpu_texture_free(o->handle, o->surface);
		free(o);
	}
}

static CUresult object_new(uint64_t *out, const CUDA_RESOURCE_DESC *resource,
			   const CUDA_TEXTURE_DESC *texture)
{
	struct texobject *o;
	CUresult r = vg_enter();

	if (r)
		return r;
	vg_texobjects_reap();
	o = calloc(1, sizeof(*o));
	if (!o)
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	o->handle = vg_object(resource, texture, &r);
	if (r) {
		free(o);
		return vg_leave(r);
	}
	o->surface = !texture;
	o->resource = *resource;
	if (texture)
		o->texture = *texture;
	o->next = texobjects;
	texobjects = o;
	*out = o->handle;
	return vg_leave(CUDA_SUCCESS);
}

static struct texobject **find_object(uint64_t handle, bool surface)
{
	struct texobject **p = &texobjects;

	while (*p && ((*p)->handle != handle || (*p)->surface != surface))
		p = &(*p)->next;
	return p;
}

static CUresult object_free(uint64_t handle, bool surface)
{
	struct texobject **p, *o;
	CUresult r = vg_enter();

	if (r)
		return r;
	p = find_object(handle, surface);
	o = *p;
	if (!o)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*p = o->next;
	o->seq = vg.seq;
	o->next = destroyed;
	destroyed = o;
	vg_texobjects_reap();
	return vg_leave(CUDA_SUCCESS);
}

static CUresult object_describe(uint64_t handle, bool surface, CUDA_RESOURCE_DESC *resource,
				CUDA_TEXTURE_DESC *texture)
{
	const struct texobject *o;
	CUresult r = vg_enter();

	if (r)
		return r;
	o = *find_object(handle, surface);
	if (!o)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (resource)
		*resource = o->resource;
	if (texture)
		*texture = o->texture;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
				       const CUDA_TEXTURE_DESC *texture,
				       const CUDA_RESOURCE_VIEW_DESC *view)
{
	uint64_t handle = 0;
	CUresult r;

	if (!object || !resource || !texture)
		return CUDA_ERROR_INVALID_VALUE;
	if (view)
		return vg_unsimulated("a texture with a resource view");
	r = object_new(&handle, resource, texture);
	if (!r)
		*object = handle;
	return r;
}

CUDADRV_API CUresult cuTexObjectDestroy(CUtexObject object)
{
	return object_free(object, false);
}

CUDADRV_API CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *desc, CUtexObject object)
{
	return desc ? object_describe(object, false, desc, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *desc, CUtexObject object)
{
	return desc ? object_describe(object, false, NULL, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUDADRV_API CUresult cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	uint64_t handle = 0;
	CUresult r = object && resource ? object_new(&handle, resource, NULL) :
		     CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*object = handle;
	return r;
}

CUDADRV_API CUresult cuSurfObjectDestroy(CUsurfObject object)
{
	return object_free(object, true);
}

CUDADRV_API CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *desc, CUsurfObject object)
{
	return desc ? object_describe(object, true, desc, NULL) : CUDA_ERROR_INVALID_VALUE;
}
