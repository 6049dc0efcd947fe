// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two devices in one process: which ones it sees, and that each has its own SMs, memory, contexts
 * and faults
 */
#include "test-driver.h"

static CUcontext at_device[2];
static CUmodule modules[2];
static CUfunction spins[2], sets[2];

static bool both(void)
{
	int n;

	CHECK(prepare());
	OK(cuDeviceGetCount(&n));
	CHECK(n == 2);
	for (int i = 0; i < 2; i++) {
		OK(cuDevicePrimaryCtxRetain(&at_device[i], i));
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuModuleLoadData(&modules[i], kernels));
		OK(cuModuleGetFunction(&spins[i], modules[i], "spin"));
		OK(cuModuleGetFunction(&sets[i], modules[i], "set"));
	}
	CHECK(at_device[0] == ctx && at_device[1] != ctx);
	return true;
}

static bool properties(void)
{
	CUcontext c;
	CUuuid a, b;
	char id[2][16], other[16];
	CUdevice d;
	int bus[2], can = 1;

	CHECK(both());
	IS(INVALID_DEVICE, cuDeviceGet(&d, 2));
	IS(INVALID_DEVICE, cuCtxCreate(&c, NULL, 0, 2));
	OK(cuDeviceGetUuid(&a, 0));
	OK(cuDeviceGetUuid(&b, 1));
	CHECK(memcmp(&a, &b, sizeof(a)));
	for (int i = 0; i < 2; i++) {
		OK(cuDeviceGetPCIBusId(id[i], sizeof(id[i]), i));
		OK(cuDeviceGetByPCIBusId(&d, id[i]));
		CHECK(d == i);
		OK(cuDeviceGetAttribute(&bus[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuCtxGetDevice(&d));
		CHECK(d == i);
		snprintf(other, sizeof(other), "0000:%02X:00.0", (unsigned int)bus[i]);
		CHECK(!strcmp(other, id[i]));
	}
	CHECK(bus[0] != bus[1]);
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(!can);
	IS(INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, 2));
	return true;
}

/* 64 MiB each */
static bool memory(void)
{
	size_t before, after, total;
	CUdeviceptr p[2], q;
	int ordinal;

	CHECK(both());
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuMemGetInfo(&before, &total));
		OK(cuMemAlloc(&p[i], 40 << 20));
		OK(cuMemGetInfo(&after, &total));
		CHECK(total == 64 << 20 && before - after == 40 << 20);
		IS(OUT_OF_MEMORY, cuMemAlloc(&q, 40 << 20));
		OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[i]));
		CHECK(ordinal == i);
	}
	/* whichever is current */
	OK(cuMemFree(p[0]));
	OK(cuCtxSetCurrent(at_device[0]));
	OK(cuMemAlloc(&q, 40 << 20));
	return true;
}

/* The first device is full and stays so */
static bool at_once(void)
{
	CUdeviceptr flag, word;
	uint32_t v = 3;
	CUstream s[2];
	CUevent e;

	CHECK(both());
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	}
	OK(cuCtxSetCurrent(at_device[0]));
	OK(cuEventCreate(&e, 0));
	flag = at(0);
	OK(run(spins[0], 64, 512, s[0], (void *[]){ &flag }));
	OK(cuEventRecord(e, s[0]));
	word = at(1);
	IS(INVALID_HANDLE, run(sets[0], 1, 1, s[1], (void *[]){ &word, &v }));
	IS(INVALID_HANDLE, run(sets[1], 1, 1, s[0], (void *[]){ &word, &v }));
	OK(cuCtxSetCurrent(at_device[1]));
	OK(run(sets[1], 1, 1, s[1], (void *[]){ &word, &v }));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 3);
	IS(NOT_READY, cuStreamQuery(s[0]));
	/* an event of one holds a stream of the other back */
	v = 4;
	OK(cuStreamWaitEvent(s[1], e, 0));
	OK(run(sets[1], 1, 1, s[1], (void *[]){ &word, &v }));
	IS(NOT_READY, cuStreamQuery(s[1]));
	CHECK(host[1] == 3);
	host[0] = 1;
	OK(cuStreamSynchronize(s[1]));
	CHECK(host[1] == 4);
	return true;
}

static bool copies(void)
{
	uint32_t in[16], out[16] = { 0 };
	CUdeviceptr p[2];
	CUdevice d;
	CUstream s;

	CHECK(both());
	for (unsigned int i = 0; i < 16; i++)
		in[i] = i * 7 + 1;
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuMemAlloc(&p[i], sizeof(in)));
	}
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamGetDevice(s, &d));
	CHECK(d == 1);
	OK(cuMemcpyHtoD(p[0], in, sizeof(in)));
	OK(cuMemcpyPeer(p[1], at_device[1], p[0], at_device[0], sizeof(in)));
	OK(cuMemcpyDtoH(out, p[1], sizeof(in)));
	CHECK(!memcmp(in, out, sizeof(in)));
	OK(cuMemsetD32(p[1], 9, 16));
	OK(cuMemcpyDtoD(p[0], p[1], sizeof(in)));
	OK(cuMemcpyPeerAsync(p[1], at_device[1], p[0], at_device[0], sizeof(in), s));
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH(out, p[1], sizeof(in)));
	CHECK(out[0] == 9 && out[15] == 9);
	IS(INVALID_CONTEXT, cuMemcpyPeer(p[1], (CUcontext)s, p[0], at_device[0], sizeof(in)));
	return true;
}

/* A kernel is one handle on all devices, a variable is each device's own */
static bool libraries(void)
{
	static const char text[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				   ".visible .global .align 4 .u32 word = 5;\n"
		".visible .entry bump()\n{\n.reg .b32 %r1; .reg .b64 %rd1;\n"
		"mov.u64 %rd1, word; ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; "
		"st.global.u32 [%rd1], %r1; ret;\n}\n";
	CUdeviceptr word[2];
	CUlibrary library;
	CUfunction f[2];
	CUkernel k;
	uint32_t v;
	int regs;

	CHECK(both());
	OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, library, "bump"));
	OK(cuKernelGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 1));
	IS(INVALID_DEVICE, cuKernelGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 2));
	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(at_device[i]));
		OK(cuLibraryGetGlobal(&word[i], NULL, library, "word"));
		OK(cuKernelGetFunction(&f[i], k));
		for (int j = 0; j <= i; j++)
			OK(run((CUfunction)k, 1, 1, NULL, NULL));
		OK(cuMemcpyDtoH(&v, word[i], 4));
		CHECK(v == 6 + (uint32_t)i);
	}
	CHECK(f[0] != f[1] && word[0] != word[1]);
	OK(run(f[1], 1, 1, NULL, NULL));
	IS(INVALID_HANDLE, run(sets[0], 1, 1, NULL, NULL));
	OK(cuCtxSynchronize());
	OK(cuLibraryUnload(library));
	IS(INVALID_HANDLE, run((CUfunction)k, 1, 1, NULL, NULL));
	return true;
}

/*
 * One device's kernel writes to the other one's memory: that is the end of its contexts, the
 * other's go on
 */
static bool faults(void)
{
	CUdeviceptr p;
	uint32_t v = 1;

	CHECK(both());
	OK(cuMemAlloc(&p, 64));
	OK(cuCtxSetCurrent(at_device[0]));
	OK(run(sets[0], 1, 1, NULL, (void *[]){ &p, &v }));
	IS(ILLEGAL_ADDRESS, cuCtxSynchronize());
	IS(ILLEGAL_ADDRESS, cuMemAlloc(&p, 64));
	OK(cuCtxSetCurrent(at_device[1]));
	OK(run(sets[1], 1, 1, NULL, (void *[]){ &p, &v }));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&v, p, 4));
	CHECK(v == 1);
	return true;
}

/* Each lock is of a context: one device's does not hold the other's calls */
static bool unloads(void)
{
	CUdeviceptr flag, p;

	CHECK(both());
	flag = at(0);
	OK(run(spins[1], 1, 32, NULL, (void *[]){ &flag }));
	OK(cuCtxSetCurrent(at_device[0]));
	OK(cuMemAlloc(&p, 64));
	OK(cuMemFree(p));
	OK(cuModuleUnload(modules[0]));
	OK(cuCtxSynchronize());
	host[0] = 1;
	OK(cuCtxSetCurrent(at_device[1]));
	OK(cuCtxSynchronize());
	return true;
}

static struct { CUuuid uuid[2]; } *known;

static bool keep(void)
{
	OK(cuInit(0));
	OK(cuDeviceGetUuid(&known->uuid[0], 0));
	OK(cuDeviceGetUuid(&known->uuid[1], 1));
	return true;
}

static bool sees(int a, int b)
{
	int list[2] = { a, b }, n, wanted = (a >= 0) + (b >= 0);
	CUuuid u;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&n));
	CHECK(n == wanted);
	for (int i = 0; i < n; i++) {
		OK(cuDeviceGetUuid(&u, i));
		CHECK(!memcmp(&u, &known->uuid[list[i]], sizeof(u)));
	}
	CHECK(prepare());
	OK(set(NULL, 1, 8));
	OK(cuCtxSynchronize());
	CHECK(host[1] == 8);
	return true;
}

static bool sees_0_1(void)
{
	return sees(0, 1);
}

static bool sees_1_0(void)
{
	return sees(1, 0);
}

static bool sees_1(void)
{
	return sees(1, -1);
}

static bool sees_0(void)
{
	return sees(0, -1);
}

static bool sees_none(void)
{
	IS(NO_DEVICE, cuInit(0));
	return true;
}

static void visible(const char *list, bool (*test)(void), const char *name)
{
	char env[256];

	snprintf(env, sizeof(env), "VGPU_DEVICES=2 CUDA_VISIBLE_DEVICES=%s", list);
	driver_test(env, test, name);
}

void devices_tests(void)
{
	char text[128] = "GPU-";
	const unsigned char *u;

	driver_test("VGPU_DEVICES=2", properties,
		    "two devices, with UUIDs and PCI addresses of their own");
	driver_test("VGPU_DEVICES=2", memory, "each has its memory");
	driver_test("VGPU_DEVICES=2", at_once, "kernels on both at once; events between them");
	driver_test("VGPU_DEVICES=2", copies, "copies between them");
	driver_test("VGPU_DEVICES=2", libraries,
		    "a library's kernels run on both, its variables are each one's own");
	driver_test("VGPU_DEVICES=2", faults,
		    "neither touches the other's memory, nor shares its faults");
	driver_test("VGPU_DEVICES=2", unloads,
		    "what waits for one's work does not wait for the other's");
	known = test_shared(sizeof(*known));
	driver_test("VGPU_DEVICES=2", keep, "UUIDs");
	visible("0,1", sees_0_1, "CUDA_VISIBLE_DEVICES: both");
	visible("1,0", sees_1_0, "CUDA_VISIBLE_DEVICES: in the other order");
	visible("1", sees_1, "CUDA_VISIBLE_DEVICES: the second only");
	driver_test("VGPU_DEVICES=2 CUDA_DEVICE_ORDER=PCI_BUS_ID", sees_1_0,
		    "CUDA_DEVICE_ORDER: by the PCI bus");
	driver_test("VGPU_DEVICES=2 CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1", sees_0,
		    "CUDA_VISIBLE_DEVICES is by that order");
	driver_test("VGPU_DEVICES=2 CUDA_DEVICE_ORDER=FASTEST_FIRST", sees_0_1,
		    "CUDA_DEVICE_ORDER: as by default");
	visible("0,7,1", sees_0, "CUDA_VISIBLE_DEVICES: what is none ends the list");
	visible("", sees_none, "CUDA_VISIBLE_DEVICES: none");
	visible("1,1", sees_none, "CUDA_VISIBLE_DEVICES: one twice");
	u = (const unsigned char *)known->uuid[1].bytes;
	for (int i = 0; i < 16; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%02x%s", u[i],
			 strchr("\3\5\7\11", i) && i ? "-" : "");
	visible(text, sees_1, "CUDA_VISIBLE_DEVICES: by UUID");
	text[4 + 8 + 1 + 4 + 1 + 4 + 1 + 4] = '\0';
	visible(text, sees_1, "CUDA_VISIBLE_DEVICES: by the beginning of a UUID");
	visible("GPU-", sees_none, "CUDA_VISIBLE_DEVICES: a beginning that both have");
}
