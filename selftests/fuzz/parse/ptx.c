// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lexer, parser, printer: what parses is printed, parses again, and is the same tree. */
#include "../../rewriter/same.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gsr_module *a, *b;
	struct gsr_error err;
	char why[256], *text;
	size_t n;

	if (gsr_parse((const char *)data, size, "x", &a, &err) != GSR_OK) {
		MUST(!a && err.status != GSR_OK && err.message[0], "status %d", err.status);
		return 0;
	}
	text = gsr_print(a, &n);
	MUST(text && strlen(text) == n, "printed");
	MUST(gsr_parse(text, n, "y", &b, &err) == GSR_OK, "%s in\n%s", err.message, text);
	MUST(same_module(a, b, why, sizeof(why)), "%s in\n%s", why, text);
	free(text);
	gsr_module_free(a);
	gsr_module_free(b);
	return 0;
}
