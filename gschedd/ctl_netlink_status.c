// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The part of the module's status that is in no file: bands and tasks, from dumps of its netlink
 * family, in the format of gschedd's status. Each user is shown what is theirs. Without the family,
 * as in another network namespace, that part is missing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/gsched_netlink.h>
#include "ctl.h"
#include "ctl_json.h"
#include "ctl_monitor.h"

static cJSON *status;		/* that line() adds to */

/* A number of a dumped object is there as text */
static const char *digits(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsRaw(v) ? v->valuestring : "0";
}

/* Exact up to 2^53 */
static double number(const cJSON *o, const char *key)
{
	return strtod(digits(o, key), NULL);
}

static void copy_numbers(cJSON *to, const cJSON *from, const char *const *keys)
{
	for (; *keys; keys++)
		if (cJSON_HasObjectItem(from, *keys))
			cJSON_AddNumberToObject(to, *keys, number(from, *keys));
}

static cJSON *device_of(const cJSON *o)
{
	cJSON *d;

	cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(status, "devices"))
		if (!strcmp(ctl_string(d, "name"), ctl_string(o, "device")))
			return d;
	return NULL;
}

/* The clients that the status has in the band, its server left out */
static void add_members(cJSON *band, const cJSON *device)
{
	cJSON *pids = cJSON_AddArrayToObject(band, "clients");
	const cJSON *c;

	cJSON_ArrayForEach(c, ctl_list(device, "clients"))
		if (!strcmp(ctl_string(c, "band"), ctl_string(band, "name")) &&
		    ctl_number(c, "pid") != ctl_number(band, "server"))
			cJSON_AddItemToArray(pids, cJSON_CreateNumber(ctl_number(c, "pid")));
}

static void add_band(cJSON *device, const cJSON *o)
{
	static const char *const keys[] = { "priority", "slice_us", "applied_us", "slice_error",
					    NULL };
	cJSON *bands = cJSON_GetObjectItemCaseSensitive(device, "bands"), *b;
	cJSON *band = cJSON_CreateObject();

	/* a dump that was interrupted is made again */
	cJSON_ArrayForEach(b, bands)
		if (!strcmp(ctl_string(b, "name"), ctl_string(o, "band"))) {
			cJSON_DetachItemViaPointer(bands, b);
			cJSON_Delete(b);
			break;
		}
	cJSON_AddItemToArray(bands, band);
	cJSON_AddStringToObject(band, "name", ctl_string(o, "band"));
	if (cJSON_HasObjectItem(o, "pid"))
		cJSON_AddNumberToObject(band, "server", number(o, "pid"));
	add_members(band, device);
	copy_numbers(band, o, keys);
	cJSON_AddNumberToObject(band, "weight", number(o, "weight_milli") / 1000);
	cJSON_AddBoolToObject(band, "block_end", number(o, "block_end") != 0);
	cJSON_AddStringToObject(band, "activity", ctl_string(o, "activity"));
	cJSON_AddBoolToObject(band, "turn", number(o, "turn") != 0);
	cJSON_AddStringToObject(band, "why", ctl_string(o, "why"));
}

static int tier_of(const cJSON *o)
{
	static const char *const tier[] = { "block", "slice" };

	for (int i = 0; i < 2; i++)
		if (!strcmp(ctl_string(o, "tier"), tier[i]))
			return i;
	return 2;
}

static void add_task(cJSON *device, const cJSON *o)
{
	static const char *const keys[] = { "slot", "seq", "blocks", "limit", "seen", "launched",
					    "left", "start_ns", NULL };
	cJSON *slots = NULL, *slot, *c;

	cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(device, "clients"))
		if (ctl_number(c, "id") == number(o, "client"))
			slots = cJSON_GetObjectItemCaseSensitive(c, "slots");
	/* it came since the clients were listed */
	if (!slots)
		return;
	cJSON_ArrayForEach(slot, slots)
		if (ctl_number(slot, "slot") == number(o, "slot")) {
			cJSON_DetachItemViaPointer(slots, slot);
			cJSON_Delete(slot);
			break;
		}
	slot = cJSON_CreateObject();
	cJSON_AddItemToArray(slots, slot);
	copy_numbers(slot, o, keys);
	cJSON_AddNumberToObject(slot, "tier", tier_of(o));
	if (cJSON_HasObjectItem(o, "state"))
		cJSON_AddStringToObject(slot, "state", ctl_string(o, "state"));
	/* it has more digits than a double */
	if (cJSON_HasObjectItem(o, "stream"))
		cJSON_AddStringToObject(slot, "stream", digits(o, "stream"));
}

static bool line(const cJSON *o)
{
	cJSON *device = device_of(o);

	if (device && !strcmp(ctl_string(o, "object"), "band"))
		add_band(device, o);
	else if (device)
		add_task(device, o);
	return true;
}

void ctl_netlink_status(cJSON *root)
{
	static const uint8_t cmds[] = { GSCHED_CMD_BAND_GET, GSCHED_CMD_TASK_GET };
	cJSON *devices = cJSON_GetObjectItemCaseSensitive(root, "devices"), *d, *c;

	cJSON_ArrayForEach(d, devices)
		cJSON_AddArrayToObject(d, "bands");
	status = root;
	if (ctl_netlink_dump(&(struct monitor) { .line = line }, cmds, sizeof(cmds)))
		cJSON_ArrayForEach(d, devices)
			cJSON_DeleteItemFromObjectCaseSensitive(d, "bands");
	status = NULL;
	cJSON_ArrayForEach(d, devices)
		cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(d, "clients"))
			cJSON_DeleteItemFromObjectCaseSensitive(c, "id");
}
