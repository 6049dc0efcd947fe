// SPDX-License-Identifier: LGPL-2.1-or-later
/* The driver's calls for texture and surface references, and for the arrays bound to them. */
#include "entry/waits.h"

CUresult cuModuleGetTexRef(CUtexref *t, CUmodule module, const char *name)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleGetTexRef(t, module, name);
	if (!rc)
		gi_reference_new(*t, module, name, false);
	return rc;
}

CUresult cuModuleGetSurfRef(CUsurfref *s, CUmodule module, const char *name)
{
	CUresult rc;

	GI_ENTER();
	rc = gi_real.cuModuleGetSurfRef(s, module, name);
	if (!rc)
		gi_reference_new(*s, module, name, true);
	return rc;
}

CUresult cuTexRefSetArray(CUtexref t, CUarray array, unsigned int flags)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array };

	GI_ENTER();
	gi_reference_begin();
	return gi_reference_bound(t, gi_real.cuTexRefSetArray(t, array, flags), array ? &d : NULL);
}

CUresult cuTexRefSetMipmappedArray(CUtexref t, CUmipmappedArray array, unsigned int flags)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
				 .res.mipmap.hMipmappedArray = array };

	GI_ENTER();
	gi_reference_begin();
	return gi_reference_bound(t, gi_real.cuTexRefSetMipmappedArray(t, array, flags),
				  array ? &d : NULL);
}

CUresult cuSurfRefSetArray(CUsurfref s, CUarray array, unsigned int flags)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array };

	GI_ENTER();
	gi_reference_begin();
	return gi_reference_bound(s, gi_real.cuSurfRefSetArray(s, array, flags), array ? &d : NULL);
}

/* The driver binds from an aligned address at or below @address, and returns the difference. */
CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref t, CUdeviceptr address, size_t size)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_LINEAR };
	CUdeviceptr base = 0;
	bool good;
	CUresult rc;

	GI_ENTER();
	gi_reference_begin();
	rc = gi_real.cuTexRefSetAddress_v2(offset, t, address, size);
	good = !rc && address && size && !gi_real.cuTexRefGetAddress_v2(&base, t) && base &&
	       base <= address;
	d.res.linear.devPtr = base;
	d.res.linear.sizeInBytes = size + (address - base);
	return gi_reference_bound(t, rc, good ? &d : NULL);
}

static CUresult bound_2d(CUtexref t, CUresult rc, const CUDA_ARRAY_DESCRIPTOR *a,
			 CUdeviceptr address, size_t pitch)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_PITCH2D };
	CUdeviceptr base = 0;
	bool good = !rc && a && address && !gi_real.cuTexRefGetAddress_v2(&base, t) &&
		    base == address;

	if (good) {
		d.res.pitch2D.devPtr = address;
		d.res.pitch2D.format = a->Format;
		d.res.pitch2D.numChannels = a->NumChannels;
		d.res.pitch2D.width = a->Width;
		d.res.pitch2D.height = a->Height;
		d.res.pitch2D.pitchInBytes = pitch;
	}
	return gi_reference_bound(t, rc, good ? &d : NULL);
}

CUresult cuTexRefSetAddress2D_v2(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *a, CUdeviceptr address,
				 size_t pitch)
{
	GI_ENTER();
	gi_reference_begin();
	return bound_2d(t, gi_real.cuTexRefSetAddress2D_v2(t, a, address, pitch), a,
			address, pitch);
}

CUresult cuTexRefSetAddress2D_v3(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *a, CUdeviceptr address,
				 size_t pitch)
{
	GI_ENTER();
	gi_reference_begin();
	return bound_2d(t, gi_real.cuTexRefSetAddress2D_v3(t, a, address, pitch), a,
			address, pitch);
}

#define SAMPLING(name, params, args) \
	CUresult name params \
	{ \
		GI_ENTER(); \
		gi_reference_begin(); \
		return gi_reference_sampled(t, gi_real.name args); \
	}
SAMPLING(cuTexRefSetFormat, (CUtexref t, CUarray_format format, int channels),
	 (t, format, channels))
SAMPLING(cuTexRefSetAddressMode, (CUtexref t, int dim, CUaddress_mode mode), (t, dim, mode))
SAMPLING(cuTexRefSetFilterMode, (CUtexref t, CUfilter_mode mode), (t, mode))
SAMPLING(cuTexRefSetMipmapFilterMode, (CUtexref t, CUfilter_mode mode), (t, mode))
SAMPLING(cuTexRefSetMipmapLevelBias, (CUtexref t, float bias), (t, bias))
SAMPLING(cuTexRefSetMipmapLevelClamp, (CUtexref t, float least, float most), (t, least, most))
SAMPLING(cuTexRefSetMaxAnisotropy, (CUtexref t, unsigned int most), (t, most))
SAMPLING(cuTexRefSetBorderColor, (CUtexref t, float *color), (t, color))
SAMPLING(cuTexRefSetFlags, (CUtexref t, unsigned int flags), (t, flags))

CUresult cuArrayDestroy(CUarray array)
{
	GI_ENTER();
	gi_reference_unbind(CU_RESOURCE_TYPE_ARRAY, array);
	return GI_CALL(cuArrayDestroy, array);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	GI_ENTER();
	gi_reference_unbind(CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, array);
	return GI_CALL(cuMipmappedArrayDestroy, array);
}
