// SPDX-License-Identifier: LGPL-2.1-or-later
// Virtual functions: the objects' tables are the original's, what is called is the twin's own.
/* Not rewritten, and in front: so functions have other numbers in the twins' module */
struct other {
	__device__ virtual unsigned int sum(unsigned int x, unsigned int y) { return x + y; }
	__device__ virtual unsigned int product(unsigned int x, unsigned int y) { return x * y; }
};

struct shape {
	unsigned int size;
	__device__ virtual unsigned int area(unsigned int x) = 0;
	__device__ virtual unsigned int edges() { return size + 1; }
};

struct square : shape {
	__device__ unsigned int area(unsigned int x) override { return size * size + x; }
	__device__ unsigned int edges() override { return 4 + blockIdx.x; }
};

struct circle : shape {
	__device__ unsigned int area(unsigned int x) override
	{
		if (x == 45)
			asm volatile("exit;");
		return 3 * size * size + x * gridDim.x;
	}
};

__device__ void *operator new(size_t, void *at, int) { return at; }
__device__ void operator delete(void *, void *, int) {}

__device__ shape *make(char *at, unsigned int i)
{
	shape *s = i % 3 ? (shape *)new (at, 0) square : (shape *)new (at, 0) circle;

	s->size = i;
	return s;
}

extern "C" __global__ void not_rewritten(unsigned int *out, char *at)
{
	unsigned int r;

	asm volatile("mov.u32 %0, %%envreg2;" : "=r"(r));
	out[threadIdx.x] = r;
	new (at, 0) other;
}

/* each thread calls the functions of another one's object, and one ends there */
extern "C" __global__ void shapes(char *out)
{
	unsigned int b = (blockIdx.z * gridDim.x + blockIdx.x) * blockDim.x, i = b + threadIdx.x,
		     j = b + (threadIdx.x + 7) % blockDim.x, *r = (unsigned int *)(out + 32 * i);

	make(out + 32 * i, i);
	__syncthreads();
	r[4] = ((shape *)(out + 32 * j))->edges();
	r[5] = ((shape *)(out + 32 * j))->area(threadIdx.x);
	r[6] = 1;
	__syncthreads();
	for (i = 0; i < 4 * blockDim.x && !threadIdx.x; i++)
		((unsigned int *)(out + 32 * (b + i / 4)))[i % 4] = 0;
}
