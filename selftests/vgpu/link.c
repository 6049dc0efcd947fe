// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver API: the linker. Its "machine code" is an ELF header, a program header of our own and the
 * PTX that link.c of the rewriter makes: nobody but vgpu finds PTX in it, as nobody finds any in
 * real machine code.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu.h"

#define PT_VGPU		(PT_LOPROC + 0x76)
#define EM_VGPU		190		/* what machine code for NVIDIA's devices has */

struct CUlinkState_st {
	unsigned int cc;
	struct gsr_unit *units;
	unsigned int n;
	char *code;
	/* where the caller wants messages; kept until the end, as the driver does */
	char *log;
	size_t log_size;
};

static void options_of(struct CUlinkState_st *l, unsigned int n, CUjit_option *options,
		       void **values)
{
	for (unsigned int i = 0; i < n; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			l->log = values[i];
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			l->log_size = (uintptr_t)values[i];
	}
}

CUDADRV_API CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values,
				     CUlinkState *state)
{
	struct CUctx_st *ctx;
	struct CUlinkState_st *l;
	CUresult r = state && (!n || (options && values)) ? vg_enter_ctx(&ctx) :
		     CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	l = calloc(1, sizeof(*l));
	if (!l || !vg_handle_add(l, VG_LINK)) {
		free(l);
		return vg_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	l->cc = ctx->gpu->config.cc;
	options_of(l, n, options, values);
	*state = l;
	return vg_leave(CUDA_SUCCESS);
}

static CUresult add(CUlinkState l, CUjitInputType type, const void *data, size_t size)
{
	struct gsr_unit *grown;
	char *copy;

	if (!vg_handle_is(l, VG_LINK))
		return CUDA_ERROR_INVALID_HANDLE;
	if (l->code || !size)
		return CUDA_ERROR_INVALID_VALUE;
	/* machine code, objects, libraries: nothing here runs them */
	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (gsr_image_kind(data, size) != (type == CU_JIT_INPUT_PTX ? GSR_IMAGE_PTX :
					   GSR_IMAGE_FATBIN))
		return CUDA_ERROR_INVALID_IMAGE;
	copy = malloc(size);
	grown = copy ? realloc(l->units, (l->n + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(copy, data, size);
	l->units = grown;
	l->units[l->n].data = copy;
	l->units[l->n++].size = size;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data,
				      size_t size, const char *name, unsigned int n,
				      CUjit_option *options, void **values)
{
	CUresult r = data ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	return r ? r : vg_leave(add(state, type, data, size));
}

CUDADRV_API CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
				      unsigned int n, CUjit_option *options, void **values)
{
	char *data;
	size_t size;
	CUresult r = path ? vg_read_file(path, &data, &size) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = vg_enter();
	if (!r)
		r = vg_leave(add(state, type, data, size));
	free(data);
	return r;
}

static CUresult complete(struct CUlinkState_st *l, void **code, size_t *size)
{
	struct gsr_error err = { 0 };
	Elf64_Ehdr eh = { .e_ident = ELFMAG, .e_machine = EM_VGPU, .e_type = ET_EXEC,
			  .e_phoff = sizeof(eh), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1 };
	Elf64_Phdr ph = { .p_type = PT_VGPU, .p_offset = sizeof(eh) + sizeof(ph) };
	size_t n;
	char *ptx;

	eh.e_ident[EI_CLASS] = ELFCLASS64;
	if (gsr_program_ptx(NULL, 0, l->units, l->n, l->cc, &ptx, &n, &err)) {
		vg_say("link refused: %s", err.message);
		if (l->log && l->log_size)
			snprintf(l->log, l->log_size, "%s", err.message);
		return err.status == GSR_ERR_NO_PTX ? CUDA_ERROR_NO_BINARY_FOR_GPU :
		       CUDA_ERROR_INVALID_PTX;
	}
	ph.p_filesz = n;
	*size = ph.p_offset + n;
	l->code = malloc(*size);
	if (!l->code) {
		free(ptx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(l->code, &eh, sizeof(eh));
	memcpy(l->code + sizeof(eh), &ph, sizeof(ph));
	memcpy(l->code + ph.p_offset, ptx, n);
	free(ptx);
	*code = l->code;
	return CUDA_SUCCESS;
}

CUDADRV_API CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size)
{
	CUresult r = code && size ? vg_enter() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!vg_handle_is(state, VG_LINK))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	return vg_leave(state->code || !state->n ? CUDA_ERROR_INVALID_VALUE :
			complete(state, code, size));
}

CUDADRV_API CUresult cuLinkDestroy(CUlinkState state)
{
	CUresult r = vg_enter();

	if (r)
		return r;
	if (!vg_handle_is(state, VG_LINK))
		return vg_leave(CUDA_ERROR_INVALID_HANDLE);
	while (state->n--)
		free((void *)state->units[state->n].data);
	free(state->units);
	free(state->code);
	vg_handle_del(state);
	free(state);
	return vg_leave(CUDA_SUCCESS);
}

bool vg_linked_ptx(const void *image, size_t max, char **ptx, size_t *size)
{
	size_t n;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (gsr_image_kind(image, max) != GSR_IMAGE_ELF)
		return false;
	n = gsr_image_size(image, max);
	memcpy(&eh, image, sizeof(eh));
	if (!n || eh.e_machine != EM_VGPU || eh.e_phnum != 1)
		return false;
	memcpy(&ph, (const char *)image + eh.e_phoff, sizeof(ph));
	if (ph.p_type != PT_VGPU)
		return false;
	*ptx = malloc(ph.p_filesz + 1);
	if (!*ptx)
		return false;
	memcpy(*ptx, (const char *)image + ph.p_offset, ph.p_filesz);
	(*ptx)[ph.p_filesz] = 0;
	*size = ph.p_filesz;
	return true;
}
