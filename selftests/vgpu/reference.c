// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: texture and surface references of modules. What is bound to one, and how it is
 * sampled, is taken when a kernel is launched: as an object that lives as long as the launch. Those
 * of cuTexRefCreate and mipmapped arrays are not simulated.
 */
#include <stdlib.h>
#include <string.h>
#include "exec_tex.h"
#include "vgpu.h"

#define ALIGNMENT	512	/* of linear memory under a texture */

struct vg_reference {
	struct vg_reference *next;	/* the module's */
	const char *name;		/* the PTX's */
	bool surface, bound;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUarray_format format;
	unsigned int channels;
};

static struct vg_reference *of(void *handle)
{
	return handle;
}

static CUresult get(CUmodule module, const char *name, bool surface, void **out)
{
	struct vg_reference *r;
	bool is_surface;
	CUresult rc = out && name ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	if (!vg_handle_is(module, VG_MODULE))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	if (!vgpu_module_reference(module->image, name, &is_surface) || is_surface != surface)
		return vg_leave(CUDA_ERROR_NOT_FOUND);
	for (r = module->references; r && strcmp(r->name, name); r = r->next)
		;
	if (!r) {
		r = calloc(1, sizeof(*r) + strlen(name) + 1);
		if (!r || !vg_handle_add(r, surface ? VG_SURFREF : VG_TEXREF)) {
			free(r);
			return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
		}
		r->name = strcpy((char *)(r + 1), name);
		r->surface = surface;
		r->format = CU_AD_FORMAT_FLOAT;
		r->channels = 1;
		for (int i = 0; i < 3; i++)
			r->texture.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
		r->next = module->references;
		module->references = r;
	}
	*out = r;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuModuleGetTexRef(CUtexref *out, CUmodule module, const char *name)
{
	return get(module, name, false, (void **)out);
}

CUDADRV_API CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule module, const char *name)
{
	return get(module, name, true, (void **)out);
}

void vg_references_drop(struct CUmod_st *m)
{
	while (m->references) {
		struct vg_reference *r = m->references;

		m->references = r->next;
		vg_handle_del(r);
		free(r);
	}
}

bool vg_references_take(const struct CUfunc_st *f, uint64_t **handles)
{
	unsigned int i, n = f->info->n_references;
	CUresult rc;

	*handles = NULL;
	if (!n)
		return true;
	*handles = calloc(n, sizeof(**handles));
	for (i = 0; *handles && i < n; i++) {
		const struct vg_reference *r;

		for (r = f->module->references; r && strcmp(r->name, f->info->reference[i]);
		     r = r->next)
			;
		if (r && r->bound)
			(*handles)[i] = vg_object(&r->resource,
						  r->surface ? NULL : &r->texture, &rc);
	}
	return *handles;
}

void vg_references_put(uint64_t *handles, unsigned int n)
{
	while (handles && n--)
		if (!vgpu_texture_free(handles[n], false))
			vgpu_texture_free(handles[n], true);
	free(handles);
}

static CUresult enter(void *handle, enum vg_type type)
{
	CUresult rc = vg_enter();

	if (!rc && !vg_handle_is(handle, type))
		rc = vg_leave(CUDA_ERROR_INVALID_HANDLE);
	return rc;
}

static CUresult bind(void *handle, const CUDA_RESOURCE_DESC *resource, bool bound)
{
	of(handle)->resource = *resource;
	of(handle)->bound = bound;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefSetArray(CUtexref t, CUarray array, unsigned int flags)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_ARRAY3D_DESCRIPTOR a;
	CUresult rc = flags == CU_TRSA_OVERRIDE_FORMAT ? cuArray3DGetDescriptor_v2(&a, array) :
		      CUDA_ERROR_INVALID_VALUE;

	rc = rc ? rc : enter(t, VG_TEXREF);
	if (rc)
		return rc;
	d.res.array.hArray = array;
	of(t)->format = a.Format;
	of(t)->channels = a.NumChannels;
	return bind(t, &d, true);
}

CUDADRV_API CUresult cuSurfRefSetArray(CUsurfref s, CUarray array, unsigned int flags)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUDA_ARRAY3D_DESCRIPTOR a;
	CUresult rc = flags ? CUDA_ERROR_INVALID_VALUE : cuArray3DGetDescriptor_v2(&a, array);

	rc = rc ? rc : enter(s, VG_SURFREF);
	if (rc)
		return rc;
	d.res.array.hArray = array;
	return bind(s, &d, true);
}

CUDADRV_API CUresult cuTexRefSetMipmappedArray(CUtexref t, CUmipmappedArray array,
					       unsigned int flags)
{
	return vg_unsimulated("cuTexRefSetMipmappedArray");
}

CUDADRV_API CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref t, CUdeviceptr address,
					   size_t size)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_LINEAR };
	size_t off = address % ALIGNMENT;
	CUresult rc = enter(t, VG_TEXREF);

	if (rc)
		return rc;
	if (off && !offset)
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	if (offset)
		*offset = off;
	d.res.linear.devPtr = address - off;
	d.res.linear.sizeInBytes = size + off;
	d.res.linear.format = of(t)->format;
	d.res.linear.numChannels = of(t)->channels;
	return bind(t, &d, address && size);
}

CUDADRV_API CUresult cuTexRefSetAddress2D_v3(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *a,
					     CUdeviceptr address, size_t pitch)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_PITCH2D };
	CUresult rc = a && address % ALIGNMENT == 0 ? enter(t, VG_TEXREF) :
		      CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	d.res.pitch2D.devPtr = address;
	d.res.pitch2D.format = of(t)->format = a->Format;
	d.res.pitch2D.numChannels = of(t)->channels = a->NumChannels;
	d.res.pitch2D.width = a->Width;
	d.res.pitch2D.height = a->Height;
	d.res.pitch2D.pitchInBytes = pitch;
	return bind(t, &d, true);
}

CUDADRV_API CUresult cuTexRefSetAddress2D_v2(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *a,
					     CUdeviceptr address, size_t pitch)
{
	return cuTexRefSetAddress2D_v3(t, a, address, pitch);
}

CUDADRV_API CUresult cuTexRefGetAddress_v2(CUdeviceptr *address, CUtexref t)
{
	const CUDA_RESOURCE_DESC *d = &of(t)->resource;
	CUresult rc = address ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	if (!of(t)->bound || (d->resType != CU_RESOURCE_TYPE_LINEAR &&
			      d->resType != CU_RESOURCE_TYPE_PITCH2D))
		return vg_leave(CUDA_ERROR_INVALID_VALUE);
	*address = d->resType == CU_RESOURCE_TYPE_LINEAR ? d->res.linear.devPtr :
		   d->res.pitch2D.devPtr;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefSetFormat(CUtexref t, CUarray_format format, int channels)
{
	CUresult rc = vgpu_format_size(format) &&
		      (channels == 1 || channels == 2 || channels == 4) ? enter(t, VG_TEXREF) :
		      CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	of(t)->format = format;
	of(t)->channels = (unsigned int)channels;
	if (of(t)->resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		of(t)->resource.res.linear.format = format;
		of(t)->resource.res.linear.numChannels = (unsigned int)channels;
	}
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefGetFormat(CUarray_format *format, int *channels, CUtexref t)
{
	CUresult rc = format && channels ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	*format = of(t)->format;
	*channels = (int)of(t)->channels;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefSetAddressMode(CUtexref t, int dim, CUaddress_mode mode)
{
	CUresult rc = dim < 0 || dim > 2 || (unsigned int)mode > CU_TR_ADDRESS_MODE_BORDER ?
		      CUDA_ERROR_INVALID_VALUE : enter(t, VG_TEXREF);

	if (rc)
		return rc;
	of(t)->texture.addressMode[dim] = mode;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefGetAddressMode(CUaddress_mode *mode, CUtexref t, int dim)
{
	CUresult rc = !mode || dim < 0 || dim > 2 ? CUDA_ERROR_INVALID_VALUE : enter(t, VG_TEXREF);

	if (rc)
		return rc;
	*mode = of(t)->texture.addressMode[dim];
	return vg_leave(CUDA_SUCCESS);
}

/* The rest is kept as it is given */
#define KEPT(what, type, field) \
	CUDADRV_API CUresult cuTexRefSet##what(CUtexref t, type value) \
	{ \
		CUresult rc = enter(t, VG_TEXREF); \
		if (rc) \
			return rc; \
		of(t)->texture.field = value; \
		return vg_leave(CUDA_SUCCESS); \
	}
#define TOLD(what, type, field) \
	CUDADRV_API CUresult cuTexRefGet##what(type *value, CUtexref t) \
	{ \
		CUresult rc = value ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE; \
		if (rc) \
			return rc; \
		*value = of(t)->texture.field; \
		return vg_leave(CUDA_SUCCESS); \
	}
KEPT(FilterMode, CUfilter_mode, filterMode)
TOLD(FilterMode, CUfilter_mode, filterMode)
KEPT(MipmapFilterMode, CUfilter_mode, mipmapFilterMode)
TOLD(MipmapFilterMode, CUfilter_mode, mipmapFilterMode)
KEPT(MipmapLevelBias, float, mipmapLevelBias)
TOLD(MipmapLevelBias, float, mipmapLevelBias)
KEPT(MaxAnisotropy, unsigned int, maxAnisotropy)
TOLD(MaxAnisotropy, int, maxAnisotropy)
KEPT(Flags, unsigned int, flags)
TOLD(Flags, unsigned int, flags)

CUDADRV_API CUresult cuTexRefSetMipmapLevelClamp(CUtexref t, float least, float most)
{
	CUresult rc = enter(t, VG_TEXREF);

	if (rc)
		return rc;
	of(t)->texture.minMipmapLevelClamp = least;
	of(t)->texture.maxMipmapLevelClamp = most;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefGetMipmapLevelClamp(float *least, float *most, CUtexref t)
{
	CUresult rc = least && most ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	*least = of(t)->texture.minMipmapLevelClamp;
	*most = of(t)->texture.maxMipmapLevelClamp;
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefSetBorderColor(CUtexref t, float *color)
{
	CUresult rc = color ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	memcpy(of(t)->texture.borderColor, color, sizeof(of(t)->texture.borderColor));
	return vg_leave(CUDA_SUCCESS);
}

CUDADRV_API CUresult cuTexRefGetBorderColor(float *color, CUtexref t)
{
	CUresult rc = color ? enter(t, VG_TEXREF) : CUDA_ERROR_INVALID_VALUE;

	if (rc)
		return rc;
	memcpy(color, of(t)->texture.borderColor, sizeof(of(t)->texture.borderColor));
	return vg_leave(CUDA_SUCCESS);
}
