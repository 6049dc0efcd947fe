// SPDX-License-Identifier: LGPL-2.1-or-later
/* gschedctl run: selects the MPS server of the program, by the band of its group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"

#define PIPE	"CUDA_MPS_PIPE_DIRECTORY"
#define LOG	"CUDA_MPS_LOG_DIRECTORY"
#define BAND	"GSCHED_BAND"	/* set with directories that gschedctl chose, not the user */

/* Whether an outer gschedctl run (or run -e) chose the directory in the environment. */
static bool chosen_by_us(const char *pipe)
{
	const char *band = getenv(BAND);
	char end[64];
	size_t len, end_len;

	if (!band || !*band)
		return false;
	end_len = (size_t)snprintf(end, sizeof(end), "/%s/pipe", band);
	len = strlen(pipe);
	return end_len < sizeof(end) && len > end_len && !strcmp(pipe + len - end_len, end);
}

static void unset_environment(void)
{
	unsetenv(PIPE);
	unsetenv(LOG);
	unsetenv(BAND);
}

int ctl_group_band(struct gsched *g, const char *device, const char *group, char *band,
		   size_t size)
{
	char path[256];

	*band = '\0';
	if (strlen(group) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(path, group);
	for (;;) {
		char *slash = strrchr(path, '/');

		if (gsched_group_get(g, device, path, "gpu.band", band, size))
			goto unknown;
		band[strcspn(band, "\n")] = '\0';
		if (*band || !*path)
			return 0;
		*(slash ? slash : path) = '\0';
	}

unknown:
	*band = '\0';
	return errno == ENOENT || errno == ENODEV ? 0 : -1;	/* ENOENT: a module without bands */
}

static int band_failed(const struct gsched_band_info *info, bool strict)
{
	ctl_error("%s%s: %s%s%s", *info->band ? "band " : "", *info->band ? info->band : "gschedd",
		  strerror(errno), *info->reason ? ": " : *info->band ? ": gschedd's log says more" :
		  "", info->reason);
	if (strict)
		return -1;
	ctl_error("without its MPS server: the program shares the GPU in time only (--strict "
		  "refuses that)");
	unset_environment();
	return 0;
}

/* For --strict: whether the group has a band, and so needs an MPS server. Prints that it has none. */
static bool lacks_server(struct gsched *g, const char *device, const char *group, const char *why)
{
	char band[64];

	if (ctl_group_band(g, device, group ? group : "", band, sizeof(band)) || !*band)
		return false;
	ctl_error("band %s: %s", band, why);
	return true;
}

int ctl_band(const struct ctl *ctl, struct gsched *g, const char *group, int pid, bool strict)
{
	struct gsched_band_opts opts = {
		.size = sizeof(opts), .socket = ctl->open.socket, .device = ctl->device,
		.group = group, .pid = pid,
	};
	struct gsched_band_info info = { .size = sizeof(info) };
	const char *own = getenv(PIPE);
	char band[64];

	/* with the module as arbiter, gschedd has no groups */
	if (gsched_backend(g) == GSCHED_BACKEND_MODULE) {
		if (ctl_group_band(g, ctl->device, group ? group : "", band, sizeof(band))) {
			ctl_error("group %s: gpu.band: %s", group && *group ? group : "/",
				  strerror(errno));
			return strict ? -1 : 0;
		}
		opts.band = band;
	}
	opts.no_start = own && *own && !chosen_by_us(own);
	if (strict && opts.no_start)
		return lacks_server(g, ctl->device, group, "$" PIPE " is set: the program would "
				    "use that MPS server; unset it") ? -1 : 0;
	/* a gschedd without bands, or none beside the module, is one without --mps */
	if (gsched_band(&opts, &info) && errno != ENOTTY && errno != ENOTCONN)
		return opts.no_start ? 0 : band_failed(&info, strict);
	if (opts.no_start) {
		if (*info.band)
			ctl_error("$" PIPE " is set: the program uses that MPS server and not the "
				  "one of band %s; unset it to change that", info.band);
		return 0;
	}
	unset_environment();
	if (!*info.pipe)
		return strict && lacks_server(g, ctl->device, group, "there is no MPS server: "
					      "start gschedd with --mps") ? -1 : 0;
	return setenv(PIPE, info.pipe, 1) || setenv(LOG, info.log, 1) ||
	       setenv(BAND, info.band, 1) ? -1 : 0;
}
