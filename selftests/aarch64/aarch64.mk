# SPDX-License-Identifier: LGPL-2.1-or-later
ifneq ($(CROSS),)
$(SYSROOT): selftests/aarch64/sysroot
	$(call Q,APT)$< $@
	@touch $@

# What qemu-user takes for / where it has a file: the cross compiler's C library
ROOT := $(B)/root
$(B)/obj/selftests/aarch64/exec.o: CPPFLAGS += -DROOT='"$(CURDIR)/$(ROOT)"' -DLIBRARY='"$(CURDIR)/$(B)/libexec-qemu.so"'
$(B)/libexec-qemu.so: $(call objs,selftests/aarch64/exec.c)
	$(call Q,LD)$(CC) $(LDFLAGS) -shared -o $@ $^

$(ROOT)/lib:
	@mkdir -p $(@D)
	$(call Q,GEN)ln -sfn /usr/$(CROSS)-linux-gnu/lib $@
endif
