// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * gschedctl: the files of groups and devices, their values, and the remedy when the arbiter refuses
 * one.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "ctl_files.h"

#define NAME_CHARS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
#define NAME_LEN	63
#define LEVELS_MAX	7	/* GSC_GROUP_DEPTH_MAX counts the root, too */

const struct ctl_file ctl_group_files[] = {
	{ "capsm.max",
	  "write max or a number of SMs, above 0 and not above the device's (1.5 is possible)",
	  NULL },
	{ "capsm.min", "write a number of SMs, not above the device's (1.5 is possible)", NULL },
	{ "capsm.reserve", "write auto or a number of SMs, not above the device's "
	  "(1.5 is possible)", NULL },
	{ "gpu.weight", "write a number from 1 to 10000", NULL },
	{ "gpu.priority", "write a number from 0 to 99, the higher one more important", NULL },
	{ "gpu.band", "write a name of up to 31 of a-z, 0-9, '_', '-', or nothing for the parent's",
	  NULL },
	{ "gpu.latency_target_us", "write a number of microseconds up to 10000000, 0 for none",
	  NULL },
	{ "memory.max",
	  "write max or a number of bytes up to 1024T; K, M, G or T behind it is 1024 and so on",
	  NULL },
	{ "cgroup",
	  "write the path of a cgroup v2 directory, or nothing to unbind; the root group has none",
	  NULL },
	{ "procs", "write the number of a running process", NULL },
	{ "owner", "write a user's number; the root group has none", NULL },
	{ "capsm.current", NULL, NULL },
	{ "capsm.plan", NULL, NULL },
	{ "gpu.stat", NULL, NULL },
	{ "gpu.pressure", NULL, NULL },
	{ "gpu.events", NULL, NULL },
	{ "gpu.preemption", NULL, NULL },
	{ "memory.current", NULL, NULL },
	{ "memory.peak", NULL, NULL },
	{ 0 },
};

static bool mode_valid(const char *value)
{
	return !strcmp(value, "auto") || !strcmp(value, "spatial") || !strcmp(value, "temporal");
}

static bool number_valid(const char *value)
{
	char *end;

	errno = 0;
	return *value >= '0' && *value <= '9' && strtoull(value, &end, 10) <= UINT32_MAX && !*end &&
	       !errno;
}

const struct ctl_file ctl_device_files[] = {
	{ "policy", "policy is hpf, srt, ffs, wfq or corun", NULL },
	{ "plan",
	  "write none, or a time up to 60000 ms and GROUP=CAPSM pairs: each group once, none below "
	  "another, together not above the device", NULL },
	{ "switch_us",
	  "switch_us is 10 to 10000: what a switch between bands costs, in microseconds", NULL },
	{ "max_overhead",
	  "max_overhead is 5 to 500: per mille of the time that may go into switching", NULL },
	{ "max_slowdown",
	  "max_slowdown is 100 to 1000: per cent of its best time that a kernel may take on "
	  "SMs held for it", NULL },
	{ "mode", "mode is auto, spatial or temporal", mode_valid },
	{ "clients_max", "clients_max is a number", number_valid },
	{ 0 },
};

const struct ctl_file ctl_client_files[] = {
	{ "capsm.max",
	  "write max or a number of SMs, above 0 and not above the device's (1.5 is possible)",
	  NULL },
	{ "gpu.weight", "write a number from 1 to 10000", NULL },
	{ "gpu.priority", "write max, the group's, or a number from 0 to 99", NULL },
	{ 0 },
};

const struct ctl_file *ctl_file_find(const struct ctl_file *files, const char *name)
{
	for (; files->name; files++)
		if (!strcmp(files->name, name))
			return files;
	return NULL;
}

static const char *values_of(const struct ctl_file *files, const char *name)
{
	const struct ctl_file *file = name ? ctl_file_find(files, name) : NULL;

	return !file ? NULL : file->takes ? file->takes : "it can only be read";
}

/* The rules are the arbiter's: path_valid() of gschedd, and configfs with the module. */
const char *ctl_path_fault(const char *path)
{
	static const char rules[] =
		"a name is letters, digits, '_', '-' and '.', 63 at most and no '.' first, with "
		"'/' between levels, of which there are 7 below the root; it is not that of a file";
	unsigned int levels = 0;
	size_t len;

	for (; *path; path += len) {
		if (levels++ && *path++ != '/')
			return rules;
		len = strspn(path, NAME_CHARS);
		if (!len || len > NAME_LEN || *path == '.' || levels > LEVELS_MAX)
			return rules;
		for (const struct ctl_file *f = ctl_group_files; f->name; f++)
			if (strlen(f->name) == len && !strncmp(f->name, path, len))
				return rules;
	}
	return NULL;
}

int ctl_group_error(const char *where, const char *group, const char *file, const char *value)
{
	int err = errno;
	const char *what = strerror(err), *remedy = NULL, *fault = ctl_path_fault(group);

	/* then neither the file nor its value is what is wrong */
	if (fault && (err == EINVAL || err == ENOENT))
		file = value = NULL;
	switch (err) {
	case EINVAL:
		remedy = file ? values_of(ctl_group_files, file) : fault;
		break;
	case ENOENT:
		if (fault) {
			what = "no such group";
			remedy = fault;
		} else if (file && !values_of(ctl_group_files, file)) {
			what = "no such file";
			remedy = "see gschedctl group show";
		} else {
			file = value = NULL;
			what = "no such group";
			remedy = "make it: gschedctl group create";
		}
		break;
	case ENODEV:
		what = "no such device";
		remedy = "see gschedctl status; give gschedd devices with --device or --driver";
		break;
	case EACCES:
	case EROFS:
		remedy = file && !strcmp(file, "procs") ?
			"it is in a group that somebody else limits: only who owns the nearest "
			"group above both may move it; run gschedctl as root" :
			values_of(ctl_group_files, file);
		remedy = remedy ? remedy : "run gschedctl as root";
		break;
	case EPERM:
		remedy = file && !strcmp(file, "procs") ?
			"run gschedctl as root, or have root make you the group's owner (group set "
			"NAME owner=UID)" : "run gschedctl as root or as gschedd's user";
		break;
	case EBUSY:
		remedy = file && !strcmp(file, "gpu.band") ?
			"a running process cannot change its band: move the programs in it and "
			"below it out first, or end them and start them again afterwards" :
			"end or move its clients and delete the groups below it first";
		break;
	case ESRCH:
		remedy = "give the number of a running process";
		break;
	case ENOSPC:
		remedy = "delete what is not used";
		break;
	case EPIPE:
		what = "the arbiter has gone";
		remedy = "start gschedd";
		break;
	case ENAMETOOLONG:
		remedy = "use a shorter one";
		break;
	}
	ctl_error("%sgroup %s: %s%s%s%s%s%s%s%s", where, *group ? group : "/", file ? file : "",
		  file ? ": " : "", value ? "\"" : "", value ? value : "", value ? "\": " : "",
		  what, remedy ? "; " : "", remedy ? remedy : "");
	return CTL_FAIL;
}

int ctl_device_error(const char *where, const char *device, const char *file, const char *value)
{
	int err = errno;
	const char *what = strerror(err), *remedy = values_of(ctl_device_files, file);

	if (err == EPERM || err == EACCES) {
		remedy = "run gschedctl as root or as gschedd's user";
	} else if (err == ENODEV) {
		remedy = "see gschedctl status for the devices";
	} else if (!strcmp(file, "plan") && (err == ENOENT || err == ESRCH)) {
		what = "it names a group that there is not";
		remedy = "see gschedctl group list";
	} else if (err == ENOENT || !remedy) {
		remedy = "the files are mode, policy, plan, switch_us, max_overhead, max_slowdown "
			 "and clients_max";
	}
	ctl_error("%sdevice %s: %s: \"%s\": %s; %s", where, device ? device : "(first)", file,
		  value, what, remedy);
	return CTL_FAIL;
}

int ctl_client_error(const char *pid, const char *file, const char *value)
{
	int err = errno;
	const char *remedy = values_of(ctl_client_files, file);

	if (err == EPERM || err == EACCES)
		remedy = "who does not administrate may lower it, for own processes; run "
			 "gschedctl as root or as gschedd's user";
	else if (err == ESRCH)
		remedy = "no client has that pid: see gschedctl status, or name its --device";
	else if (err == ENODEV)
		remedy = "see gschedctl status for the devices";
	else if (err == ENOTTY)
		remedy = "gschedd is older than gschedctl: start the new one";
	else if (err == ENOENT || !remedy)
		remedy = "the files are capsm.max, gpu.weight and gpu.priority";
	ctl_error("client %s: %s%s%s%s: %s; %s", pid, file, value ? ": \"" : "", value ? value : "",
		  value ? "\"" : "", strerror(err), remedy);
	return CTL_FAIL;
}
