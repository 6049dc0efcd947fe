// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the names in the runtime's PTX stand for: fields, as STRUCT.FIELD, and constants. Compiled
 * to assembly only, in which fragments.awk finds each as a line "->NAME VALUE". So the values are
 * the target's when this is cross-compiled.
 *
 * In: abi.h, the page's slot, the layout of $#me. Out: names and values. Assumes nothing.
 */
#include <linux/gsched.h>
#include "runtime.h"

#define VALUE(name, value)	__asm__ volatile("\n.ascii \"->" name " %c0\"" : : "i"(value))
#define CONSTANT(name)		VALUE(#name, name)
#define FIELD(of, name)		VALUE(#of "." #name, offsetof(struct gsr_##of, name))
#define SLOT(name)		VALUE("slot." #name, offsetof(struct gsched_cl_slot, name))

static const struct gsr_control *const control;

static __attribute__((used)) void offsets(void)
{
	/* the extra parameter, $#x */
	FIELD(launch, control);
	FIELD(launch, window);
	FIELD(launch, stat);
	VALUE("launch.grid.x", offsetof(struct gsr_launch, grid[0]));
	VALUE("launch.grid.y", offsetof(struct gsr_launch, grid[1]));
	VALUE("launch.grid.z", offsetof(struct gsr_launch, grid[2]));
	FIELD(launch, weight);
	FIELD(launch, poll_quarter);
	FIELD(launch, poll_clocks);
	FIELD(launch, fetch_least);
	FIELD(launch, fetch_ns);
	FIELD(launch, workers);
	FIELD(launch, flags);
	FIELD(launch, save);
	FIELD(launch, save_stride);
	FIELD(launch, save_per_sm);
	FIELD(launch, save_sms);
	FIELD(launch, first);
	FIELD(launch, ranges);
	VALUE("launch.step.x", offsetof(struct gsr_launch, step[0]));
	VALUE("launch.step.y", offsetof(struct gsr_launch, step[1]));
	VALUE("launch.step.z", offsetof(struct gsr_launch, step[2]));
	FIELD(launch, positions);
	FIELD(launch, last_counter);
	FIELD(launch, counters);
	FIELD(launch, rows);
	FIELD(launch, row_mask);
	FIELD(launch, row_shift);
	FIELD(launch, column_shift);
	FIELD(launch, width_mask);
	FIELD(launch, stripe_mask);
	FIELD(launch, fetch_first);
	VALUE("launch.divide.x.factor", offsetof(struct gsr_launch, divide[0].factor));
	VALUE("launch.divide.x.shift", offsetof(struct gsr_launch, divide[0].shift));
	VALUE("launch.divide.y.factor", offsetof(struct gsr_launch, divide[1].factor));
	VALUE("launch.divide.y.shift", offsetof(struct gsr_launch, divide[1].shift));
	FIELD(launch, last_copy);
	FIELD(launch, blocks);
	FIELD(launch, last_warp);
	FIELD(launch, each);
	FIELD(launch, half_column);
	CONSTANT(GSR_LAUNCH_NO_WINDOW);
	CONSTANT(GSR_LAUNCH_BY_INDEX);
	CONSTANT(GSR_LAUNCH_WHOLE);
	CONSTANT(GSR_LAUNCH_TOGETHER);
	/* how load_launch in position.ptx and ignore_window test them */
	_Static_assert(GSR_LAUNCH_WHOLE > (GSR_LAUNCH_BY_INDEX | GSR_LAUNCH_TOGETHER) &&
			       GSR_LAUNCH_NO_WINDOW == 1u << 31,
		       "the highest flag, and the sign");

	FIELD(control, relay);
	FIELD(control, next_poll);
	FIELD(control, exhausted);
	FIELD(control, done);
	FIELD(control, gate);
	FIELD(control, started);
	FIELD(control, left);
	FIELD(control, telling);
	FIELD(control, ranks);
	FIELD(control, sm);
	FIELD(control, counter);
	VALUE("counter.size", sizeof(control->counter[0]));
	FIELD(control, copy);
	VALUE("control.copy.until", offsetof(struct gsr_control, copy[0].until));
	VALUE("copy.window", offsetof(struct gsr_control, copy[0].window) -
			     offsetof(struct gsr_control, copy));
	VALUE("copy.until", offsetof(struct gsr_control, copy[0].until) -
			    offsetof(struct gsr_control, copy));
	VALUE("copy.size", sizeof(control->copy[0]));

	/* the page's slot, launch.stat */
	SLOT(left);
	SLOT(seen_limit);
	SLOT(start_ns);
	SLOT(end_ns);
	SLOT(finished);

	FIELD(save, waiting_count);
	FIELD(save, taken);
	FIELD(save, waiting);
	VALUE("save.size", sizeof(struct gsr_save));
	FIELD(record, ctaid);
	FIELD(ranges, taken_count);
	FIELD(ranges, taken);
	FIELD(ranges, left);
	FIELD(ranges, next);

	/* the worker's state, $#me */
	CONSTANT(GSR_TASK_CTAID);
	VALUE("GSR_TASK_CTAID_W", GSR_TASK_CTAID + 12);
	CONSTANT(GSR_TASK_RESUME);
	CONSTANT(GSR_RESTARTS_MAX);
	CONSTANT(GSR_TASK_NCTAID);
	CONSTANT(GSR_TASK_RAN);
	CONSTANT(GSR_TASK_INDEX);
	CONSTANT(GSR_TASK_NEAR);
	CONSTANT(GSR_TASK_LIMIT);
	CONSTANT(GSR_TASK_BIT);
	CONSTANT(GSR_TASK_TIME);
	CONSTANT(GSR_TASK_EARLY);
	CONSTANT(GSR_TASK_WORD);
	CONSTANT(GSR_TASK_COME);
	CONSTANT(GSR_TASK_ASIDE);
	VALUE("GSR_TASK_ASIDE_Z", GSR_TASK_ASIDE + 8);
	CONSTANT(GSR_TASK_REST);
	CONSTANT(GSR_TASK_REST_COUNT);
	CONSTANT(GSR_TASK_RELAY);
	CONSTANT(GSR_TASK_COUNTER);
	CONSTANT(GSR_TASK_RANGE);
	CONSTANT(GSR_TASK_RECORD);
	CONSTANT(GSR_TASK_RECORD_SM);
	CONSTANT(GSR_TASK_RECORD_MASK);
	CONSTANT(GSR_TASK_FLAG);
	CONSTANT(GSR_TASK_LOOK);
	CONSTANT(GSR_TASK_WON);
	CONSTANT(GSR_TASK_DEADLINE);
	CONSTANT(GSR_RESUME_START);
	CONSTANT(GSR_RESUME_BACK);
	CONSTANT(GSR_PHASES_NUMBER);
	CONSTANT(GSR_PHASES_SUMS);
	CONSTANT(GSR_WARP_EXITED);
	CONSTANT(GSR_WARP_ABSENT);
	CONSTANT(GSR_WARP_SIZE);
	CONSTANT(GSR_MBARRIERS_MAX);

	/* the worker finds copies by their line */
	_Static_assert(offsetof(struct gsr_control, relay) == 0 &&
			       offsetof(struct gsr_control, next_poll) ==
				       offsetof(struct gsr_control, copy[0].until) -
					       offsetof(struct gsr_control, copy) &&
			       offsetof(struct gsr_control, copy) % sizeof(control->copy[0]) == 0,
		       "as a copy");
	VALUE("COPY_SHIFT", __builtin_ctz(sizeof(control->copy[0])));
	VALUE("LAST_SM", GSR_SMS_MAX - 1);
	VALUE("SMS_MAX", GSR_SMS_MAX);
	CONSTANT(GSR_RANK_KNOWN);
	VALUE("LAST_RANK", (int)(GSR_RANK_KNOWN | (GSR_SMS_MAX - 1)));
	VALUE("LIMIT_MAX", GSR_SMS_MAX * 1024);		/* the window of the whole device */
	VALUE("NO_NUMBER", GSR_SMS_MAX * 2048 - 1);	/* of a worker outside of all windows */
}
