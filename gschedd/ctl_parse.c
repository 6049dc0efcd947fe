// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl setconf: parses text into changes. Accesses nothing but its arguments. */
#include <stdlib.h>
#include <string.h>
#include "ctl_files.h"
#include "ctl_parse.h"

#define SPACE	" \t\r"

static char *trim_spaces(char *s)
{
	char *end;

	s += strspn(s, SPACE);
	for (end = s + strlen(s); end > s && strchr(SPACE, end[-1]); end--)
		;
	*end = '\0';
	return s;
}

static const char *add_change(struct ctl_parsed *p, struct ctl_change change)
{
	struct ctl_change *more;

	/* the array doubles at each power of two */
	if (!(p->n & (p->n - 1))) {
		more = reallocarray(p->changes, p->n ? 2 * p->n : 1, sizeof(*more));
		if (!more)
			return "out of memory";
		p->changes = more;
	}
	change.line = p->line;
	p->changes[p->n++] = change;
	return NULL;
}

/* Parses what all changes of the section share. */
static const char *parse_section(struct ctl_parsed *p, char *s, struct ctl_change *section)
{
	char *word[3] = { NULL }, *close = strchr(s, ']'), *save = NULL;
	int n = 0;

	if (!close || close[1])
		return "a section is [device NAME] or [group DEVICE GROUP]";
	*close = '\0';
	for (s = strtok_r(s + 1, SPACE, &save); s; s = strtok_r(NULL, SPACE, &save)) {
		if (n == 3)
			return "a section is [device NAME] or [group DEVICE GROUP]";
		word[n++] = s;
	}
	if (n == 2 && !strcmp(word[0], "device")) {
		*section = (struct ctl_change){ .kind = CTL_SET_DEVICE, .device = word[1] };
		return NULL;
	}
	if (n != 3 || strcmp(word[0], "group"))
		return "a section is [device NAME] or [group DEVICE GROUP]";
	*section = (struct ctl_change){
		.kind = CTL_CREATE_GROUP,
		.device = word[1],
		.group = word[2] + strspn(word[2], "/"),
	};
	/* the root group exists already */
	if (*section->group && add_change(p, *section))
		return "out of memory";
	section->kind = CTL_SET_GROUP;
	return NULL;
}

static const char *parse_file(struct ctl_parsed *p, char *s, struct ctl_change change)
{
	const struct ctl_file *file;
	char *value = strchr(s, '=');

	if (!value)
		return "write FILE=VALUE";
	*value++ = '\0';
	if (!change.device)
		return "there is no section above it";
	change.file = trim_spaces(s);
	change.value = trim_spaces(value);
	file = ctl_file_find(change.kind == CTL_SET_DEVICE ? ctl_device_files : ctl_group_files,
			     change.file);
	p->what = change.file;
	if (!file)
		return change.kind == CTL_SET_DEVICE ?
			"no such file of a device" : "no such file of a group";
	if (!file->takes)
		return "the file can only be read";
	return add_change(p, change);
}

void ctl_parse(char *text, size_t size, struct ctl_parsed *parsed)
{
	struct ctl_change section = { .device = NULL };
	char *next, *s;

	*parsed = (struct ctl_parsed){ .what = "" };
	for (char *end = text + size; text < end; text = next) {
		parsed->line++;
		parsed->what = "";
		next = memchr(text, '\n', end - text);
		next = next ? next + 1 : end + 1;
		next[-1] = '\0';
		if (strlen(text) != (size_t)(next - 1 - text)) {
			parsed->error = "a NUL byte: this is no text";
			return;
		}
		s = trim_spaces(text);
		if (*s == '[')
			parsed->error = parse_section(parsed, s, &section);
		else if (*s && *s != '#')
			parsed->error = parse_file(parsed, s, section);
		if (parsed->error)
			return;
	}
}
