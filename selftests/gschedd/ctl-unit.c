// SPDX-License-Identifier: LGPL-2.1-or-later
/* What gschedctl status takes from gschedd when the module arbitrates, and what setconf reads. */
#include <stdlib.h>
#include <string.h>
#include "gschedd/ctl_files.h"
#include "gschedd/ctl_mps.h"
#include "gschedd/ctl_parse.h"
#include "gschedd/ctl_table.h"
#include "harness.h"

static const char module[] =
	"{\"backend\":\"module\",\"devices\":["
	"{\"name\":\"gpu0\",\"uuid\":\"aa\",\"clients\":[{\"pid\":5},{\"pid\":7}]},"
	"{\"name\":\"gpu1\",\"uuid\":\"bb\",\"clients\":[{\"pid\":8}]},"
	"{\"name\":\"gpu2\",\"uuid\":\"cc\",\"clients\":[]}]}";
static const char daemon_text[] =
	"{\"backend\":\"module\",\"devices\":[],\"rewrites\":{\"served\":3},"
	"\"mps\":{\"program\":\"p\",\"servers\":[]},"
	"\"processes\":{\"aa\":[{\"pid\":5,\"comm\":\"five\"},{\"pid\":6,\"comm\":\"six\"},"
	"{\"pid\":7,\"comm\":\"seven\"},{\"pid\":8,\"comm\":\"eight\"}],"
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

/* The command's own is in its main file */
void ctl_error(const char *fmt, ...)
{
}

static const struct {
	const char *text;
	size_t size;			/* 0: to its end */
	unsigned int line, n;		/* of the error; how many changes before it */
	const char *error;		/* NULL: none */
} texts[] = {
	{ "", 0, 0, 0, NULL },
	{ "\n\n# nothing\n \t\r\n#", 0, 5, 0, NULL },
	{ "[device gpu0]\npolicy=hpf\n[group gpu0 /]\ncapsm.max=max", 0, 4, 2, NULL },
	{ " [ device  gpu0 ] \r\n policy = hpf \r\n", 0, 2, 1, NULL },
	{ "[group gpu0 /a/b]\ngpu.band=\ncgroup=/x=y z\n", 0, 3, 3, NULL },
	{ "[group gpu0 a]\n[group gpu0 a]\n", 0, 2, 2, NULL },
	{ "policy=hpf\n", 0, 1, 0, "there is no section above it" },
	{ "\n[device gpu0]\npolicy\n", 0, 3, 0, "write FILE=VALUE" },
	{ "[device gpu0]\n=1\n", 0, 2, 0, "no such file of a device" },
	{ "[device gpu0]\ncapsm.max=1\n", 0, 2, 0, "no such file of a device" },
	{ "[group gpu0 a]\ngpu.weight=1\npolicy=hpf\n", 0, 3, 2, "no such file of a group" },
	{ "[group gpu0 a]\ngpu.stat=1\n", 0, 2, 1, "the file can only be read" },
	{ "[", 0, 1, 0, "a section is" },
	{ "[]", 0, 1, 0, "a section is" },
	{ "[device]", 0, 1, 0, "a section is" },
	{ "[device a b]", 0, 1, 0, "a section is" },
	{ "[device a] b", 0, 1, 0, "a section is" },
	{ "[group gpu0]", 0, 1, 0, "a section is" },
	{ "[group gpu0 a b]", 0, 1, 0, "a section is" },
	{ "[group gpu0 a b c d]", 0, 1, 0, "a section is" },
	{ "[client 7]", 0, 1, 0, "a section is" },
	{ "[device gpu0]\npolicy=h\0pf\n", 26, 2, 0, "a NUL byte" },
	{ "\xff\xfe[\x80\n", 0, 1, 0, "write FILE=VALUE" },
};

static void parsed_texts(void)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t size = texts[i].size ? texts[i].size : strlen(texts[i].text);
		struct ctl_parsed parsed;
		char *text = malloc(size + 1);	/* so that a byte beyond it shows under ASan */

		memcpy(text, texts[i].text, size);
		text[size] = '\0';
		ctl_parse(text, size, &parsed);
		ok(parsed.line == texts[i].line && parsed.n == texts[i].n &&
		   !parsed.error == !texts[i].error &&
		   (!parsed.error || !strncmp(parsed.error, texts[i].error,
					      strlen(texts[i].error))),
		   "text %zu: line %u, %zu changes, %s", i, parsed.line, parsed.n,
		   parsed.error ? parsed.error : "no error");
		free(parsed.changes);
		free(text);
	}
}

/* What the last change of @text is */
static void parsed_last(const char *from, const char *group, const char *file, const char *value)
{
	struct ctl_parsed parsed;
	const struct ctl_change *c;
	char *text = strdup(from);

	ctl_parse(text, strlen(text), &parsed);
	c = parsed.n ? &parsed.changes[parsed.n - 1] : NULL;
	ok(c && !strcmp(c->device, "gpu0") && !strcmp(c->group, group) && !strcmp(c->file, file) &&
	   !strcmp(c->value, value), "group %s: %s is \"%s\"", group, file, value);
	free(parsed.changes);
	free(text);
}

static void bytes(void)
{
	static const struct { const char *text, *cell; } cells[] = {
		{ "0", "0" }, { "1023", "1023" }, { "1024", "1K" }, { "1536", "1.5K" },
		{ "10188", "9.9K" }, { "10189", "10K" }, { "1048051", "1023K" },
		{ "1048064", "1.0M" }, { "543162368", "518M" }, { "150000000000", "140G" },
		{ "1125899906842624", "1024T" }, { "max", "max" }, { "-", "-" }, { "", "" },
		{ "4x", "4x" },
	};
	char buf[CTL_BYTES_SIZE];

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		ok(!strcmp(ctl_bytes(cells[i].text, buf), cells[i].cell), "bytes: %s: %s",
		   cells[i].text, buf);
}

static void paths(void)
{
	static const struct { const char *path; bool good; } all[] = {
		{ "", true }, { "a", true }, { "a/b", true }, { "A-0_.z", true },
		{ "1/2/3/4/5/6/7", true }, { "a.b/c", true }, { "capsm", true },
		{ "capsm.maxx", true }, { "1/2/3/4/5/6/7/8", false }, { "/", false },
		{ "a/", false }, { "/a", false }, { "a//b", false }, { ".a", false },
		{ "a/.b", false }, { "a b", false }, { "a!", false }, { "\xc3\xa4", false },
		{ "procs", false }, { "a/owner/b", false }, { "capsm.max", false },
	};
	char name[65];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ok(!ctl_path_fault(all[i].path) == all[i].good, "group \"%s\": %s", all[i].path,
		   all[i].good ? "a name" : "none");
	memset(name, 'x', 64);
	name[64] = '\0';
	ok(ctl_path_fault(name) && !ctl_path_fault(name + 1), "63 characters at most");
}

int main(void)
{
	bytes();
	paths();
	parsed_texts();
	parsed_last("[group gpu0 /]\ncapsm.max=4", "", "capsm.max", "4");
	parsed_last("[group gpu0 //a/b]\ncgroup = /x = y \n", "a/b", "cgroup", "/x = y");
	parsed_last("[group gpu0 a]\ngpu.band=\n", "a", "gpu.band", "");

	merged(daemon_text, "{\"pid\":7}],\"unmanaged\":[{\"pid\":6,\"comm\":\"six\"}]}",
	       "processes that are not the module's clients, of this GPU or another one");
	merged(daemon_text, "\"clients\":[{\"pid\":8}],\"unmanaged\":[]}",
	       "a GPU without any");
	merged(daemon_text, "\"uuid\":\"cc\",\"clients\":[]}", "a GPU that NVML does not know");
	merged(daemon_text,
	       ",\"rewrites\":{\"served\":3},\"mps\":{\"program\":\"p\",\"servers\":[]}}",
	       "rewrites and MPS servers");
	merged("{}", "\"uuid\":\"cc\",\"clients\":[]}]}", "a gschedd that says nothing of them");
	merged(NULL, "\"uuid\":\"cc\",\"clients\":[]}]}", "no gschedd");
	return done_testing();
}
