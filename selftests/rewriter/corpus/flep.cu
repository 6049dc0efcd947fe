// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of FLEP's table 1, written anew from what they compute. MM and VA are matmul
// (shared.cu) and vecadd (grids.cu).

/* CFD: fluxes of a finite volume solver, one cell a thread, four neighbours each */
extern "C" __global__ void cfd(const unsigned int *next, const float *normal, const float *v,
			       float *flux, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float rho = v[i] + 1, mx = v[n + i], my = v[2 * n + i], mz = v[3 * n + i],
	      e = v[4 * n + i] + 2;
	float ux = mx / rho, uy = my / rho, uz = mz / rho;
	float p = 0.4f * (e - 0.5f * rho * (ux * ux + uy * uy + uz * uz)),
	      c = sqrtf(fabsf(1.4f * p / rho));
	float f0 = 0, f1 = 0, f2 = 0, f3 = 0, f4 = 0;

#pragma unroll 1
	for (unsigned int k = 0; k < 4; k++) {
		unsigned int j = next[k * n + i];
		float nx = normal[3 * k * n + i], ny = normal[(3 * k + 1) * n + i],
		      nz = normal[(3 * k + 2) * n + i];
		float area = sqrtf(nx * nx + ny * ny + nz * nz);

		if (j < n) {
			float r2 = v[j] + 1, x2 = v[n + j], y2 = v[2 * n + j], z2 = v[3 * n + j],
			      e2 = v[4 * n + j] + 2;
			float vx = x2 / r2, vy = y2 / r2, vz = z2 / r2;
			float p2 = 0.4f * (e2 - 0.5f * r2 * (vx * vx + vy * vy + vz * vz));
			float c2 = sqrtf(fabsf(1.4f * p2 / r2));
			float factor = -0.2f * area * 0.5f * (fabsf(ux) + fabsf(vx) + c + c2);
			float u = 0.5f * (nx * (ux + vx) + ny * (uy + vy) + nz * (uz + vz));

			f0 += factor * (rho - r2) + u * (rho + r2);
			f1 += factor * (mx - x2) + u * (mx + x2) + nx * (p + p2);
			f2 += factor * (my - y2) + u * (my + y2) + ny * (p + p2);
			f3 += factor * (mz - z2) + u * (mz + z2) + nz * (p + p2);
			f4 += factor * (e - e2) + u * (e + e2 + p + p2);
		} else {
			/* a wall: pressure only */
			f1 += nx * p;
			f2 += ny * p;
			f3 += nz * p;
		}
	}
	flux[i] = f0;
	flux[n + i] = f1;
	flux[2 * n + i] = f2;
	flux[3 * n + i] = f3;
	flux[4 * n + i] = f4;
}

/* NN: distance of every record from one place */
extern "C" __global__ void nn(const float2 *record, float *distance, unsigned int n, float lat,
			      float lng)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		distance[i] = sqrtf((lat - record[i].x) * (lat - record[i].x) +
				    (lng - record[i].y) * (lng - record[i].y));
}

/*
 * PF: several rows of a shortest path at once; the valid part of a block shrinks from both sides
 * row by row
 */
extern "C" __global__ void pf(const unsigned int *wall, const unsigned int *from, unsigned int *to,
			      int cols, int rows)
{
	__shared__ unsigned int prev[256], now[256];
	int t = threadIdx.x, width = blockDim.x - 2 * rows, x = (int)blockIdx.x * width + t - rows;
	bool inside = x >= 0 && x < cols, computed = false;

	prev[t] = inside ? from[x] : ~0u;
	__syncthreads();
	for (int i = 0; i < rows; i++) {
		computed = t > i && t < (int)blockDim.x - 1 - i && inside;
		if (computed)
			now[t] = min(prev[t], min(prev[t - 1], prev[t + 1])) +
				 (wall[i * cols + x] & 15);
		__syncthreads();
		if (i == rows - 1)
			break;
		prev[t] = computed ? now[t] : ~0u;
		__syncthreads();
	}
	if (computed && t >= rows && t < (int)blockDim.x - rows)
		to[x] = now[t];
}

/* PL: a particle filter draws anew: each particle looks for its place in the sums of weights */
extern "C" __global__ void pl(const unsigned int *sums, const float *x, const float *y, float *nx,
			      float *ny, unsigned int n, unsigned int particles, unsigned int most)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= particles)
		return;
	unsigned int u = (i * 2654435761u >> 4) % most, k;

	for (k = 0; k < n - 1; k++)
		if (sums[k] >= u)
			break;
	nx[i] = x[k] + u;
	ny[i] = y[k];
}

/* MD: Lennard-Jones forces from a list of neighbours */
extern "C" __global__ void md(const float4 *position, const unsigned int *neighbour, float4 *force,
			      unsigned int n, unsigned int neighbours, float cut)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float4 p = position[i], f = { 0, 0, 0, 0 };

	for (unsigned int k = 0; k < neighbours; k++) {
		float4 q = position[neighbour[k * n + i]];
		float x = p.x - q.x, y = p.y - q.y, z = p.z - q.z,
		      r2 = x * x + y * y + z * z + 0.125f;

		if (r2 < cut) {
			float inv = 1 / r2, r6 = inv * inv * inv, s = inv * r6 * (1.5f * r6 - 2.0f);

			f.x += x * s;
			f.y += y * s;
			f.z += z * s;
		}
	}
	force[i] = f;
}

/* SPMV: compressed rows, a warp a row */
extern "C" __global__ void spmv(const float *value, const unsigned int *col,
				const unsigned int *row, const float *x, float *y, unsigned int n)
{
	unsigned int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
	float sum = 0;

	if (r >= n)
		return;
	for (unsigned int k = row[r] + lane; k < row[r + 1]; k += 32)
		sum += value[k] * x[col[k]];
	for (int d = 16; d; d >>= 1)
		sum += __shfl_down_sync(~0u, sum, d);
	if (!lane)
		y[r] = sum;
}
