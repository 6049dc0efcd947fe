// SPDX-License-Identifier: LGPL-2.1-or-later
/* Textures and surfaces by handle: coordinates, address modes, filters, formats. */
#include <math.h>
#include "exec_tex.h"
#include "test-exec.h"

/*
 * %rd1: output, %rd2: the handle, %rd3: arguments; each thread has 16 bytes of arguments in %f1 ..
 * %f4 and of output
 */
#define START HEAD ".visible .entry k(.param .u64 o, .param .u64 h, .param .u64 a)\n{\n" \
	".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; " \
	".reg .b16 %rs<4>;\n" \
	"ld.param.u64 %rd1, [o]; ld.param.u64 %rd2, [h]; ld.param.u64 %rd3, [a]; " \
	"mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 16;\n" \
	"add.s64 %rd1, %rd1, %rd4; add.s64 %rd3, %rd3, %rd4; " \
	"ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd3]; " \
	"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd3];\n"
#define END "\nst.global.v4.f32 [%rd1], {%f5, %f6, %f7, %f8};\nret;\n}\n"
#define ENDI "\nst.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};\nret;\n}\n"

static float out[64][4], in[64][4];
static uint32_t (*const iout)[4] = (uint32_t (*)[4])(void *)out,
	(*const iin)[4] = (uint32_t (*)[4])(void *)in;

static const char *run(const char *ptx, uint64_t handle, unsigned int threads)
{
	struct args a = { { (uintptr_t)out, handle, (uintptr_t)in } };

	memset(out, 0, sizeof(out));
	return run_text(ptx, 1, threads, 0, 0, &a);
}

static bool clean(const char *error)
{
	if (*error)
		printf("# %s\n", error);
	return !*error;
}

/* Run with arguments x (and y); the first component of each must be what is wanted */
static bool reads(const char *ptx, const struct vgpu_texture *t, unsigned int n,
		  const float (*args)[3], const float *want)
{
	uint64_t h = vgpu_texture_new(t, false);
	unsigned int i;
	bool good;

	for (i = 0; i < n; i++)
		memcpy(in[i], args[i], sizeof(args[i]));
	good = clean(run(ptx, h, n));
	for (i = 0; good && i < n; i++)
		if (out[i][0] != want[i]) {
			printf("# at %g %g %g: %.9g, should be %.9g\n", args[i][0], args[i][1],
			       args[i][2], out[i][0], want[i]);
			good = false;
		}
	return vgpu_texture_free(h, false) && good;
}

static const char tex1d[] = START "tex.1d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd2, {%f1}];" END;
static const char tex2d[] = START "tex.level.2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd2, "
				  "{%f1, %f2}], %f4;" END;
static const char tex3d[] = START "tex.3d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd2, {%f1, "
				  "%f2, %f3, %f3}];" END;
static const char layered[] = START "tex.a2d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd2, {%r4, "
				    "%f1, %f2, %f2}];" END;
static const char fetch[] = START "cvt.rzi.s32.f32 %r2, %f1; "
				  "tex.1d.v4.f32.s32 {%f5, %f6, %f7, %f8}, [%rd2, {%r2}];" END;

static void one_dimension(void)
{
	static float row[4] = { 10, 20, 30, 40 };
	struct vgpu_texture t = { .image = { .data = (uint8_t *)row, .width = 4, .channels = 1,
					     .format = VGPU_FORMAT_F32, .owned = true } };
	static const float plain[][3] = { { 0 }, { 0.99f }, { 1 }, { 3.5f }, { 4 }, { 100 },
					  { -0.1f } };
	static const float unit[][3] = { { 0 }, { 0.3f }, { 0.99f }, { 1 }, { 1.3f }, { -0.1f },
					 { 2.8f }, { -1.2f } };
	static const float smooth[][3] = { { 0.5f }, { 1 }, { 1.25f }, { 0 }, { 3.75f }, { 4.5f },
					   { 0.75f + 1 / 1024.0f } };

	t.address[0] = VGPU_ADDRESS_CLAMP;
	ok(reads(tex1d, &t, 7, plain, (float[]){ 10, 10, 20, 40, 40, 40, 10 }), "points, clamped");
	t.address[0] = VGPU_ADDRESS_WRAP;
	ok(reads(tex1d, &t, 7, plain, (float[]){ 10, 10, 20, 40, 40, 40, 10 }),
	   "wrap without normalised coordinates clamps");
	t.address[0] = VGPU_ADDRESS_BORDER;
	t.border[0] = 7;
	ok(reads(tex1d, &t, 7, plain, (float[]){ 10, 10, 20, 40, 7, 7, 7 }), "border");
	t.normalized = true;
	t.address[0] = VGPU_ADDRESS_WRAP;
	ok(reads(tex1d, &t, 8, unit, (float[]){ 10, 20, 40, 10, 20, 40, 40, 40 }),
	   "normalised, wrapped");
	t.address[0] = VGPU_ADDRESS_MIRROR;
	ok(reads(tex1d, &t, 8, unit, (float[]){ 10, 20, 40, 40, 30, 10, 40, 40 }),
	   "normalised, mirrored");
	t.normalized = false;
	t.address[0] = VGPU_ADDRESS_CLAMP;
	t.linear_filter = true;
	/* x - 0.5 = 0.25 + 1/1024: the fraction has 8 bits */
	ok(reads(tex1d, &t, 7, smooth, (float[]){ 10, 15, 17.5f, 10, 40, 40, 12.5f }),
	   "linear filter");
	t.address[0] = VGPU_ADDRESS_BORDER;
	t.border[0] = 0;
	ok(reads(tex1d, &t, 2, (const float[][3]){ { 0 }, { 4 } }, (float[]){ 5, 20 }),
	   "linear filter over the border");
	t.image.linear = true;
	ok(reads(fetch, &t, 6, (const float[][3]){ { 0 }, { 3 }, { 4 }, { -1 }, { 2 }, { 1000 } },
		 (float[]){ 10, 40, 0, 0, 30, 0 }),
	   "linear memory by integers: 0 outside");
}

static void more_dimensions(void)
{
	static float image[2][3][4];
	struct vgpu_texture t = { .image = { .data = (uint8_t *)image, .width = 3, .height = 3,
					     .pitch = 16, .slice = 48, .channels = 1,
					     .format = VGPU_FORMAT_F32, .owned = true },
				  .address = { VGPU_ADDRESS_CLAMP, VGPU_ADDRESS_CLAMP,
					       VGPU_ADDRESS_CLAMP } };
	unsigned int x, y, z;

	for (z = 0; z < 2; z++)
		for (y = 0; y < 3; y++)
			for (x = 0; x < 4; x++)
				image[z][y][x] = (float)(x + 10 * y + 100 * z);
	ok(reads(tex2d, &t, 3, (const float[][3]){ { 1.5f, 2.5f }, { 9, 0 }, { -1, 1 } },
		 (float[]){ 21, 2, 10 }), "two dimensions with a pitch");
	t.linear_filter = true;
	ok(reads(tex2d, &t, 3, (const float[][3]){ { 1, 1 }, { 2, 1.75f }, { 0, 3 } },
		 (float[]){ 5.5f, 14, 20 }), "bilinear");
	t.image.layers = 2;
	ok(reads(layered, &t, 3, (const float[][3]){ { 1, 1, 0 }, { 1, 1, 1.4e-45f },
						     { 1, 1, 1e-44f } },
		 (float[]){ 5.5f, 105.5f, 105.5f }),
	   "layers, clamped");
	t.image.layers = 0;
	t.image.depth = 2;
	ok(reads(tex3d, &t, 2, (const float[][3]){ { 1, 1, 1 }, { 1.5f, 0.5f, 1.25f } },
		 (float[]){ 55.5f, 76 }), "trilinear");
}

static void formats(void)
{
	static const uint8_t bytes[] = { 255, 51, 0x80, 0x7f, 0, 0xff, 0xff, 0, 0x3c };
	static const char ints[] = START "tex.1d.v4.s32.s32 {%r6, %r7, %r8, %r9}, [%rd2, {%r2}];"
		ENDI;
	static const char gather[] = START "tld4.r.2d.v4.u32.f32 {%r6, %r7, %r8, %r9}, "
					   "[%rd2, {%f1, %f2}];" ENDI;
	static const uint32_t grid[2][2] = { { 1, 2 }, { 3, 4 } };
	struct vgpu_texture t = { .image = { .data = (uint8_t *)(uintptr_t)bytes, .width = 9,
					     .channels = 1, .format = VGPU_FORMAT_U8,
					     .owned = true },
				  .address = { VGPU_ADDRESS_CLAMP, VGPU_ADDRESS_CLAMP } };
	uint64_t h;
	bool good;

	ok(reads(tex1d, &t, 2, (const float[][3]){ { 0 }, { 1 } }, (float[]){ 1, 0.2f }),
	   "u8, normalised");
	t.image.format = VGPU_FORMAT_S8;
	ok(reads(tex1d, &t, 3, (const float[][3]){ { 2 }, { 3 }, { 4 } }, (float[]){ -1, 1, 0 }),
	   "s8, normalised");
	t.image.format = VGPU_FORMAT_F16;
	t.image.data = (uint8_t *)(uintptr_t)bytes + 7;
	t.image.width = 1;
	ok(reads(tex1d, &t, 1, (const float[][3]){ { 0 } }, (float[]){ 1 }), "f16");
	t.image.data = (uint8_t *)(uintptr_t)bytes;
	t.image.format = VGPU_FORMAT_S8;
	t.image.channels = 2;
	t.image.width = 4;
	t.as_integer = true;
	iin[0][0] = 1;
	h = vgpu_texture_new(&t, false);
	good = clean(run(ints, h, 1));
	ok(good && iout[0][0] == 0xffffff80 && iout[0][1] == 0x7f && iout[0][2] == 0,
	   "two channels of s8 as integers");
	vgpu_texture_free(h, false);
	t.image = (struct vgpu_image){ .data = (uint8_t *)(uintptr_t)grid, .width = 2, .height = 2,
				       .pitch = 8, .channels = 1, .format = VGPU_FORMAT_U32,
				       .owned = true };
	in[0][0] = in[0][1] = 1;
	h = vgpu_texture_new(&t, false);
	ok(clean(run(gather, h, 1)) && iout[0][0] == 3 && iout[0][1] == 4 && iout[0][2] == 2 &&
	   iout[0][3] == 1, "tld4");
	vgpu_texture_free(h, false);
}

static void surfaces(void)
{
	static uint32_t data[2][4];
	struct vgpu_texture t = { .image = { .data = (uint8_t *)data, .width = 4, .height = 2,
					     .pitch = 16, .channels = 1, .format = VGPU_FORMAT_U32,
					     .owned = true } };
	static const char both[] = START
		"sust.b.2d.b32.trap [%rd2, {%r2, %r3}], %r4; "
		"suld.b.2d.v2.b32.trap {%r6, %r7}, [%rd2, {8, 1}]; "
		"suld.b.2d.b8.clamp %rs1, [%rd2, {100, 0}];\n"
		"cvt.u32.u16 %r8, %rs1; suld.b.2d.b32.zero %r9, [%rd2, {16, 0}]; "
		"sust.b.2d.v2.b32.zero [%rd2, {-8, 0}], {%r2, %r2};\n"
		"sured.b.add.2d.u32.trap [%rd2, {4, 0}], %r4;" ENDI;
	static const char ask[] = START "suq.width.b32 %r6, [%rd2]; suq.height.b32 %r7, [%rd2]; "
					"suq.depth.b32 %r8, [%rd2]; mov.u32 %r9, 5;" ENDI;
	static const char outside[] = START "suld.b.2d.b32.trap %r6, [%rd2, {%r2, 0}];" ENDI;
	uint64_t h = vgpu_texture_new(&t, true);

	data[0][1] = 40;
	data[0][3] = 0xaa000000;
	data[1][2] = 7;
	data[1][3] = 9;
	memcpy(iin[0], (uint32_t[]){ 12, 1, 77, 0 }, 16);
	ok(clean(run(both, h, 1)) && data[1][3] == 77 && data[0][1] == 117 && data[0][0] == 0 &&
	   iout[0][0] == 7 && iout[0][1] == 77 && iout[0][2] == 0xaa && !iout[0][3],
	   "surface stores, loads, reductions; clamp and zero");
	ok(clean(run(ask, h, 1)) && iout[0][0] == 4 && iout[0][1] == 2 && iout[0][2] == 0,
	   "surface queries");
	iin[0][0] = 16;
	ok(strstr(run(outside, h, 1), "outside of the surface"), "fault: outside of a surface");
	iin[0][0] = 2;
	ok(strstr(run(outside, h, 1), "byte 2 of a row"), "fault: a misaligned surface load");
	ok(vgpu_texture_free(h, true) && !vgpu_texture_free(h, true), "a surface is freed once");
	ok(strstr(run(outside, h, 1), "is no surface object"), "fault: no surface");
	ok(strstr(run(tex1d, 17, 1), "0x11 is no texture object"), "fault: no texture");
	h = vgpu_texture_new(&t, false);
	ok(strstr(run(tex1d, h, 1), "has 2 dimensions"), "fault: another geometry");
	vgpu_texture_free(h, false);
	ok(strstr(run(START "tex.cube.v4.f32.f32 {%f5, %f6, %f7, %f8}, [%rd2, {%f1, "
		      "%f2, %f3, %f4}];" END, 0, 1), "unknown instruction tex.cube"),
	   "cube maps are refused by name");
}

int main(void)
{
	one_dimension();
	more_dimensions();
	formats();
	surfaces();
	return done();
}
