// SPDX-License-Identifier: GPL-2.0-only
/*
 * The quota files: which one, the device's SMs less one, the text. What is stored is shown, and
 * what is shown stores the same; what is refused changes nothing.
 */
#include "kmod/core/core.h"
#include "fuzz.h"

static void op_set_window(struct gsc_task *task, enum gsc_change why)
{
}

static void op_set_lease(struct gsc_client *c, u32 old)
{
}

static void op_arm_timer(struct gsc_device *d, u64 when)
{
}

static void op_done(struct gsc_task *task)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gsc_ops ops = {
		.set_window = op_set_window, .set_lease = op_set_lease, .arm_timer = op_arm_timer,
		.done = op_done,
	};
	static struct gsc_device dev;
	static struct gsc_group group;
	char before[1024], shown[1024], again[1024], text[512];
	enum gsc_file file;
	size_t n;
	int i;

	if (size < 2)
		return 0;
	/* the name of a file, or what could be one */
	n = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	memcpy(text, data, n);
	text[n] = 0;
	i = gsc_file_find(text);
	MUST(i == -ENOENT || (i >= 0 && i < GSC_FILE_COUNT && !strcmp(gsc_file_name[i], text)),
	     "%d", i);

	file = data[0] % (GSC_FILE_COUNT + 1);
	memset(&dev, 0, sizeof(dev));
	memset(&group, 0, sizeof(group));
	MUST(!gsc_device_init(&dev, &ops, data[1] + 1u) && !gsc_group_init(&group, &dev.root),
	     "set up");
	n = size - 2 < sizeof(text) - 1 ? size - 2 : sizeof(text) - 1;
	memcpy(text, data + 2, n);
	text[n] = 0;
	i = gsc_group_show(&group, file, before, sizeof(before));
	MUST((i > 0) == (file < GSC_FILE_COUNT), "show says %d", i);
	i = gsc_group_store(&group, file, text, 1000);
	MUST(i == 0 || i == -EINVAL, "%d", i);
	MUST(i || gsc_file_writable(file), "file %d is not to be written", file);
	if (file == GSC_FILE_COUNT)
		return 0;
	MUST(gsc_group_show(&group, file, shown, sizeof(shown)) == (int)strlen(shown), "shown");
	if (i)
		MUST(!strcmp(before, shown), "refused '%s', and %s is now %s", text, before, shown);
	else
		MUST(!gsc_group_store(&group, file, shown, 2000), "'%s' gives %s, which is refused",
		     text, shown);
	MUST(gsc_group_show(&group, file, again, sizeof(again)) > 0 && !strcmp(shown, again),
	     "%s is %s", shown, again);
	gsc_commit(&dev, 2000);
	MUST(!gsc_check(&dev), "invariant %d after '%s'", gsc_check(&dev), text);
	return 0;
}
