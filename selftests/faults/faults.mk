# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs and gschedd killed and stopped at random moments. Many more: selftests/faults/run --count 1000
$(B)/test/faults: selftests/faults/run $(FORMS)/drv $(FORMS)/kernels.ptx
	@mkdir -p $(@D)
	$(call Q,GEN)printf '#!/bin/sh\ncommand -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit; }\nB=%s exec %s --count 60 --steps 10\n' $(B) $< >$@
	@chmod +x $@
TESTS += $(B)/test/faults
