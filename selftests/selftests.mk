# SPDX-License-Identifier: LGPL-2.1-or-later
include selftests/programs/programs.mk
include selftests/forms/forms.mk
include selftests/faults/faults.mk

# The main job, as `make demo` runs it: on the simulated GPU with the embedded arbiter, then with
# the module in QEMU
.PHONY: demo
demo: deps
	+$(MAKE) demo-built
.PHONY: demo-built
demo-built: all modules
	selftests/demo/demo daemon drv
	@echo
	@echo "The same with the kernel module, in QEMU (without KVM this takes a few minutes):"
	selftests/demo/qemu

# build/test/demo-BACKEND-FORM
$(B)/test/demo-%: selftests/demo/tap
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\nB=%s exec selftests/demo/tap %s\n' $(B) '$(subst -, ,$*)' \
		>$@
	@chmod +x $@

FAST_TESTS += $(B)/test/demo-daemon-drv
TESTS += $(addprefix $(B)/test/demo-,daemon-drv daemon-rt module-drv)
$(B)/test/demo-module-drv: modules

# selftests/bench/bands, on the simulated GPU
$(B)/test/bench-bands: selftests/bench/bands.d/test.py
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || '\
	'{ echo "1..0 # SKIP no python3"; exit; }\nB=%s exec %s\n' $(B) $< >$@
	@chmod +x $@
FAST_TESTS += $(B)/test/bench-bands
TESTS += $(B)/test/bench-bands
ALONE += $(addprefix $(B)/test/demo-,daemon-drv daemon-rt module-drv)
