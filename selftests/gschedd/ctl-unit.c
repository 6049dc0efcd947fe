// SPDX-License-Identifier: LGPL-2.1-or-later
/* What gschedctl status takes from gschedd when the module arbitrates. */
#include <stdlib.h>
#include <string.h>
#include "gschedd/ctl_mps.h"
#include "harness.h"

static const char module[] =
	"{\"backend\":\"module\",\"devices\":["
	"{\"name\":\"gpu0\",\"uuid\":\"aa\",\"clients\":[{\"pid\":5},{\"pid\":7}]},"
	"{\"name\":\"gpu1\",\"uuid\":\"bb\",\"clients\":[]},"
	"{\"name\":\"gpu2\",\"uuid\":\"cc\",\"clients\":[]}]}";
static const char daemon_text[] =
	"{\"backend\":\"module\",\"devices\":[],\"rewrites\":{\"served\":3},\"mps\":{\"program\":\"p\",\"servers\":[]},"
	"\"processes\":{\"aa\":[{\"pid\":5,\"comm\":\"five\"},{\"pid\":6,\"comm\":\"six\"},{\"pid\":7,\"comm\":\"seven\"}],"
	"\"bb\":[]}}";

static void merged(const char *from, const char *want, const char *what)
{
	cJSON *root = cJSON_Parse(module), *daemon = from ? cJSON_Parse(from) : NULL;
	char *text;

	ctl_take_from_daemon(root, daemon);
	text = cJSON_PrintUnformatted(root);
	ok(text && strstr(text, want), "%s: %s", what, text);
	free(text);
	cJSON_Delete(root);
	cJSON_Delete(daemon);
}

int main(void)
{
	merged(daemon_text, "{\"pid\":7}],\"unmanaged\":[{\"pid\":6,\"comm\":\"six\"}]}", "processes that are not the module's clients");
	merged(daemon_text, "\"uuid\":\"bb\",\"clients\":[],\"unmanaged\":[]}", "a GPU without any");
	merged(daemon_text, "\"uuid\":\"cc\",\"clients\":[]}", "a GPU that NVML does not know");
	merged(daemon_text, ",\"rewrites\":{\"served\":3},\"mps\":{\"program\":\"p\",\"servers\":[]}}", "rewrites and MPS servers");
	merged("{}", "\"uuid\":\"cc\",\"clients\":[]}]}", "a gschedd that says nothing of them");
	merged(NULL, "\"uuid\":\"cc\",\"clients\":[]}]}", "no gschedd");
	return done_testing();
}
