# SPDX-License-Identifier: LGPL-2.1-or-later
ifneq ($(CROSS),)
$(SYSROOT): selftests/aarch64/sysroot
	$(call Q,APT)$< $@
	@touch $@
endif
