// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>

void gsched_ask(struct vm_area_struct *vma);
void gsched_ask(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYWRITE);
}
