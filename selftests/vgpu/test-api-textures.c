// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arrays, texture and surface objects and references through the driver API. */
#include "test-api.h"

static const char text[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	/* out[t] = tex2D(h, at[2 t], at[2 t + 1]) */
	".visible .entry read2(.param .u64 h, .param .u64 out, .param .u64 at)\n{\n"
	".reg .b32 %r<4>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
	"ld.param.u64 %rd1, [h]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [at]; "
	"mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;\n"
	"add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4; add.s64 %rd3, %rd3, %rd4; "
	"ld.global.v2.f32 {%f1, %f2}, [%rd3];\n"
	"tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}]; "
	"st.global.f32 [%rd2], %f3; ret;\n}\n"
	".visible .entry read1(.param .u64 h, .param .u64 out)\n{\n"
	".reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
	"ld.param.u64 %rd1, [h]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; "
	"mul.wide.u32 %rd4, %r1, 4; add.s64 %rd2, %rd2, %rd4;\n"
	"tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}]; add.s32 %r2, %r2, %r3; "
	"st.global.u32 [%rd2], %r2; ret;\n}\n"
	".visible .entry fill(.param .u64 h)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
	"ld.param.u64 %rd1, [h]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2; "
	"mad.lo.u32 %r4, %r2, 100, %r1;\n"
	"sust.b.2d.b32.trap [%rd1, {%r3, %r2}], %r4; ret;\n}\n"
	/* out[t] = line[t] + board[t], which is 7 then */
	".global .texref line; .visible .global .surfref board; .global .u32 plain;\n"
	".visible .entry named(.param .u64 out)\n{\n"
	".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;\n"
	"ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; "
	"add.s64 %rd2, %rd2, %rd4; shl.b32 %r2, %r1, 2;\n"
	"suld.b.1d.b32.trap %r3, [board, {%r2}]; mov.u32 %r4, 7; "
	"sust.b.1d.b32.trap [board, {%r2}], %r4;\n"
	"tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [line, {%r1}]; add.s32 %r3, %r3, %r4; "
	"txq.width.b32 %r4, [line]; mul.lo.s32 %r4, %r4, 1000;\n"
	"add.s32 %r3, %r3, %r4; st.global.u32 [%rd2], %r3; ret;\n}\n";

static CUfunction read2, read1, fill, named;
static CUmodule m;

static bool arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = { 5, 3, CU_AD_FORMAT_FLOAT, 1 }, got;
	CUDA_ARRAY3D_DESCRIPTOR d3 = { 4, 4, 2, CU_AD_FORMAT_UNSIGNED_INT8, 2, 0 }, got3;
	CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY, .WidthInBytes = 20, .Height = 3 };
	CUDA_MEMCPY3D c3 = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType =
			     CU_MEMORYTYPE_HOST, .srcXInBytes = 2, .srcY = 1, .srcZ = 1,
			     .WidthInBytes = 6, .Height = 3, .Depth = 1 };
	float in[3][5], out[5];
	uint8_t bytes[2][4][8], back[3][6];
	size_t before, after, total;
	CUarray a, a3;
	unsigned int i;

	OK(cuMemGetInfo(&before, &total));
	OK(cuArrayCreate(&a, &d));
	OK(cuArrayGetDescriptor(&got, a));
	CHECK(got.Width == 5 && got.Height == 3 && got.Format == CU_AD_FORMAT_FLOAT &&
	      got.NumChannels == 1);
	for (i = 0; i < 15; i++)
		in[i / 5][i % 5] = (float)i;
	c.srcHost = in;
	c.dstArray = a;
	OK(cuMemcpy2D(&c));
	c.Height = 4;
	IS(INVALID_VALUE, cuMemcpy2D(&c));
	c.Height = 3;
	c.dstXInBytes = 4;
	IS(INVALID_VALUE, cuMemcpy2D(&c));
	memset(out, 0, sizeof(out));
	OK(cuMemcpyAtoH(out, a, 4, 12));
	CHECK(out[0] == 1 && out[2] == 3 && out[3] == 0);
	out[0] = 42;
	OK(cuMemcpyHtoA(a, 16, out, 4));
	OK(cuMemcpyAtoA(a, 0, a, 16, 4));
	OK(cuMemcpyAtoH(out, a, 0, 20));
	CHECK(out[0] == 42 && out[1] == 1 && out[4] == 42);
	IS(INVALID_VALUE, cuMemcpyAtoH(out, a, 4, 20));
	OK(cuArray3DCreate(&a3, &d3));
	OK(cuArray3DGetDescriptor(&got3, a3));
	CHECK(got3.Width == 4 && got3.Height == 4 && got3.Depth == 2 && got3.NumChannels == 2 &&
	      !got3.Flags);
	for (i = 0; i < 64; i++)
		bytes[i / 32][i / 8 % 4][i % 8] = (uint8_t)i;
	OK(cuMemcpy3D(&(CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = bytes,
					.srcPitch = 8, .srcHeight = 4,
					.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a3,
					.WidthInBytes = 8, .Height = 4, .Depth = 2 }));
	c3.srcArray = a3;
	c3.dstHost = back;
	c3.dstPitch = 6;
	c3.dstHeight = 3;
	OK(cuMemcpy3D(&c3));
	CHECK(back[0][0] == 42 && back[2][5] == 63);
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(a3));
	IS(INVALID_HANDLE, cuArrayDestroy(a));
	IS(INVALID_HANDLE, cuMemcpyAtoH(out, a, 0, 4));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
	d.NumChannels = 3;
	IS(INVALID_VALUE, cuArrayCreate(&a, &d));
	d3.Flags = 4;
	IS(NOT_SUPPORTED, cuArray3DCreate(&a3, &d3));
	return true;
}

static bool textures(void)
{
	CUDA_ARRAY_DESCRIPTOR d = { 4, 2, CU_AD_FORMAT_FLOAT, 1 };
	CUDA_TEXTURE_DESC t = { .addressMode = { CU_TR_ADDRESS_MODE_CLAMP,
						 CU_TR_ADDRESS_MODE_CLAMP },
						 .filterMode = CU_TR_FILTER_MODE_LINEAR }, tgot;
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY }, got;
	static const float image[2][4] = { { 0, 1, 2, 3 }, { 10, 11, 12, 13 } };
	CUtexObject h, h2;
	CUdeviceptr mem, out, at;
	size_t pitch;
	float *f;
	CUarray a;

	OK(cuMemAlloc(&mem, 4096));
	OK(cuMemAllocPitch(&at, &pitch, 16, 2, 4));
	OK(cuMemcpyHtoD(at, image[0], 16));
	OK(cuMemcpyHtoD(at + pitch, image[1], 16));
	out = (CUdeviceptr)(uintptr_t)(host + 512);
	f = (float *)(uintptr_t)(host + 520);
	memcpy(f, (float[]){ 1, 1, 3.5f, 1.5f, 0.5f, 0.75f }, 24);
	OK(cuArrayCreate(&a, &d));
	OK(cuMemcpy2D(&(CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = image,
					.dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a,
					.WidthInBytes = 16, .Height = 2 }));
	r.res.array.hArray = a;
	OK(cuTexObjectCreate(&h, &r, &t, NULL));
	OK(cuTexObjectGetResourceDesc(&got, h));
	OK(cuTexObjectGetTextureDesc(&tgot, h));
	CHECK(got.resType == CU_RESOURCE_TYPE_ARRAY && got.res.array.hArray == a &&
	      tgot.filterMode == CU_TR_FILTER_MODE_LINEAR);
	f = (float *)(uintptr_t)(host + 512);
	OK(run(read2, 1, 3, NULL, (void *[]){ &h, &out, (CUdeviceptr[]){ out + 32 } }));
	OK(cuCtxSynchronize());
	CHECK(f[0] == 5.5f && f[1] == 13 && f[2] == 2.5f);
	r = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_PITCH2D };
	r.res.pitch2D.devPtr = at;
	r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
	r.res.pitch2D.numChannels = 1;
	r.res.pitch2D.width = 4;
	r.res.pitch2D.height = 2;
	r.res.pitch2D.pitchInBytes = pitch;
	t.filterMode = CU_TR_FILTER_MODE_POINT;
	OK(cuTexObjectCreate(&h2, &r, &t, NULL));
	OK(run(read2, 1, 3, NULL, (void *[]){ &h2, &out, (CUdeviceptr[]){ out + 32 } }));
	/* it stays for the launch before */
	OK(cuTexObjectDestroy(h2));
	IS(INVALID_VALUE, cuTexObjectDestroy(h2));
	OK(cuCtxSynchronize());
	CHECK(f[0] == 11 && f[1] == 13 && f[2] == 0);
	IS(INVALID_VALUE, cuTexObjectGetTextureDesc(&tgot, h2));
	r.res.pitch2D.pitchInBytes = 17;
	IS(INVALID_VALUE, cuTexObjectCreate(&h2, &r, &t, NULL));
	/* linear memory: pairs of integers */
	OK(cuMemcpyHtoD(mem, (uint32_t[]){ 1, 2, 3, 4 }, 16));
	r = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_LINEAR };
	r.res.linear.devPtr = mem;
	r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
	r.res.linear.numChannels = 2;
	r.res.linear.sizeInBytes = 16;
	OK(cuTexObjectCreate(&h2, &r, &t, NULL));
	OK(run(read1, 1, 3, NULL, (void *[]){ &h2, &out }));
	OK(cuCtxSynchronize());
	CHECK(host[512] == 3 && host[513] == 7 && host[514] == 0);
	OK(cuTexObjectDestroy(h2));
	t.filterMode = CU_TR_FILTER_MODE_LINEAR;
	IS(INVALID_VALUE, cuTexObjectCreate(&h2, &r, &t, NULL));
	t.filterMode = CU_TR_FILTER_MODE_POINT;
	r.res.linear.sizeInBytes = 1 << 20;
	IS(INVALID_VALUE, cuTexObjectCreate(&h2, &r, &t, NULL));
	r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	IS(NOT_SUPPORTED, cuTexObjectCreate(&h2, &r, &t, NULL));
	OK(cuTexObjectDestroy(h));
	OK(cuArrayDestroy(a));
	OK(cuMemFree(mem));
	OK(cuMemFree(at));
	return true;
}

static bool surfaces(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { 8, 3, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 2 };
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY }, got;
	uint32_t out[3][8];
	CUsurfObject h;
	CUarray a, plain;

	OK(cuArray3DCreate(&a, &d));
	d.Flags = 0;
	OK(cuArray3DCreate(&plain, &d));
	r.res.array.hArray = plain;
	IS(INVALID_VALUE, cuSurfObjectCreate(&h, &r));
	r.res.array.hArray = a;
	OK(cuSurfObjectCreate(&h, &r));
	OK(cuSurfObjectGetResourceDesc(&got, h));
	CHECK(got.resType == CU_RESOURCE_TYPE_ARRAY && got.res.array.hArray == a);
	OK(run(fill, 3, 8, NULL, (void *[]){ &h }));
	OK(cuMemcpy2D(&(CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a,
					.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out,
					.WidthInBytes = 32, .Height = 3 }));
	CHECK(out[0][0] == 0 && out[0][7] == 7 && out[2][5] == 205);
	OK(cuSurfObjectDestroy(h));
	IS(INVALID_VALUE, cuSurfObjectDestroy(h));
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(plain));
	return true;
}

/* What is bound to a reference is taken at the launch */
static bool references(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = { 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 2 };
	CUdeviceptr mem, got, out = (CUdeviceptr)(uintptr_t)(host + 512),
		gate = (CUdeviceptr)(uintptr_t)(host + 600);
	CUaddress_mode mode;
	CUarray_format format;
	unsigned int flags;
	CUtexref t, again;
	CUsurfref s;
	CUstream stream;
	size_t offset = 1;
	CUarray a;
	int n;

	OK(cuModuleGetTexRef(&t, m, "line"));
	OK(cuModuleGetTexRef(&again, m, "line"));
	CHECK(t == again);
	OK(cuModuleGetSurfRef(&s, m, "board"));
	IS(NOT_FOUND, cuModuleGetTexRef(&again, m, "board"));
	IS(NOT_FOUND, cuModuleGetTexRef(&again, m, "plain"));
	IS(NOT_FOUND, cuModuleGetSurfRef(&s, m, "none"));
	IS(INVALID_HANDLE, cuModuleGetTexRef(&again, (CUmodule)named, "line"));
	OK(cuTexRefGetFormat(&format, &n, t));
	OK(cuTexRefGetFlags(&flags, t));
	OK(cuTexRefGetAddressMode(&mode, t, 2));
	CHECK(format == CU_AD_FORMAT_FLOAT && n == 1 && !flags && mode == CU_TR_ADDRESS_MODE_CLAMP);
	IS(INVALID_VALUE, cuTexRefGetAddress(&got, t));
	IS(INVALID_VALUE, cuTexRefGetAddressMode(&mode, t, 3));
	IS(INVALID_HANDLE, cuTexRefSetFlags((CUtexref)s, 0));
	OK(cuMemAlloc(&mem, 2048));
	OK(cuMemcpyHtoD(mem, (uint32_t[]){ 10, 20, 30, 40 }, 16));
	OK(cuMemcpyHtoD(mem + 1024, (uint32_t[]){ 500, 600, 700, 800 }, 16));
	OK(cuArray3DCreate(&a, &d));
	OK(cuMemcpyHtoA(a, 0, (uint32_t[]){ 1, 2, 3, 4 }, 16));
	OK(cuTexRefSetFormat(t, CU_AD_FORMAT_UNSIGNED_INT32, 1));
	IS(INVALID_VALUE, cuTexRefSetFormat(t, CU_AD_FORMAT_UNSIGNED_INT32, 3));
	OK(cuTexRefSetAddress(&offset, t, mem, 16));
	CHECK(!offset);
	OK(cuTexRefGetAddress(&got, t));
	CHECK(got == mem);
	IS(INVALID_VALUE, cuSurfRefSetArray(s, a, 1));
	OK(cuSurfRefSetArray(s, a, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	host[600] = 0;
	OK(cuStreamWaitValue32(stream, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(run(named, 1, 4, stream, (void *[]){ &out }));
	IS(INVALID_VALUE, cuTexRefSetAddress(NULL, t, mem + 1024 + 8, 8));
	OK(cuTexRefSetAddress(&offset, t, mem + 1024 + 8, 8));
	CHECK(offset == 8);
	__atomic_store_n(&host[600], 1, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
	CHECK(host[512] == 4011 && host[515] == 4044);
	OK(run(named, 1, 4, stream, (void *[]){ &out }));
	OK(cuStreamSynchronize(stream));
	CHECK(host[512] == 4507 && host[515] == 4807);
	OK(cuStreamDestroy(stream));
	OK(cuArrayDestroy(a));
	OK(cuMemFree(mem));
	return true;
}

static bool load(void)
{
	OK(cuModuleLoadData(&m, text));
	OK(cuModuleGetFunction(&read2, m, "read2"));
	OK(cuModuleGetFunction(&read1, m, "read1"));
	OK(cuModuleGetFunction(&fill, m, "fill"));
	OK(cuModuleGetFunction(&named, m, "named"));
	return true;
}

void textures_tests(void)
{
	ok(load() && arrays(), "arrays: descriptors, copies of rows and boxes");
	ok(textures(), "textures: arrays, pitched and linear memory");
	ok(surfaces(), "surfaces");
	ok(references(), "texture and surface references");
}
