// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fat binaries in executables and objects: a section holds a sequence of them, each aligned to 8
 * bytes.
 *
 * In: the bytes of an ELF file. Out: a section, and the fat binaries in it. Assumes nothing.
 */
#include <elf.h>
#include <string.h>
#include "gsrewrite.h"

/* Is [off, off + n) inside of @size? */
static bool inside(uint64_t off, uint64_t n, size_t size)
{
	return off <= size && n <= size - off;
}

bool gsr_elf_section(const unsigned char *p, size_t size, const char *want, size_t *off,
		     size_t *len)
{
	size_t n = strlen(want) + 1;
	Elf64_Ehdr eh;
	Elf64_Shdr sh, names;
	unsigned int i;

	if (size < sizeof(eh))
		return false;
	memcpy(&eh, p, sizeof(eh));
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_shentsize != sizeof(sh) ||
	    !inside(eh.e_shoff, (uint64_t)eh.e_shnum * sizeof(sh), size) ||
	    eh.e_shstrndx >= eh.e_shnum)
		return false;
	memcpy(&names, p + eh.e_shoff + eh.e_shstrndx * sizeof(sh), sizeof(sh));
	if (!inside(names.sh_offset, names.sh_size, size))
		return false;
	for (i = 0; i < eh.e_shnum; i++) {
		memcpy(&sh, p + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type == SHT_NOBITS || !inside(sh.sh_name, n, names.sh_size) ||
		    memcmp(p + names.sh_offset + sh.sh_name, want, n) ||
		    !inside(sh.sh_offset, sh.sh_size, size))
			continue;
		*off = sh.sh_offset;
		*len = sh.sh_size;
		return true;
	}
	return false;
}

bool gsr_next_fatbin(const unsigned char *section, size_t len, size_t *pos, struct gsr_unit *out)
{
	size_t n;

	/* there is padding between the fat binaries of different objects */
	while (*pos < len && !section[*pos])
		++*pos;
	if (*pos >= len)
		return false;
	n = gsr_image_size(section + *pos, len - *pos);
	if (!n)
		n = len - *pos;		/* malformed: the image reader will report it */
	*out = (struct gsr_unit){ section + *pos, n };
	*pos += n;
	return true;
}
