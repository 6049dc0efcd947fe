// SPDX-License-Identifier: GPL-2.0-only
/* gpu.pressure, compared with floating point and a timer of two seconds, and gpu.events. */
#include <math.h>

#include "unit.h"

#define SEC	(1000 * MS)

static double shown(const struct gsc_group *g, const char *kind, const char *key)
{
	char buf[256], *line, *at;
	char find[32];

	EXPECT(gsc_group_show(g, GSC_FILE_GPU_PRESSURE, buf, sizeof(buf)) == (int)strlen(buf));
	line = strstr(buf, kind);
	snprintf(find, sizeof(find), " %s=", key);
	at = line ? strstr(line, find) : NULL;
	if (at && !strcmp(key, "total"))
		EXPECT(gsc_pressure_ns(g, !strcmp(kind, "full"), dev.now) / 1000 ==
		       (u64)strtod(at + strlen(find), NULL));
	return at ? strtod(at + strlen(find), NULL) : -1;
}

static void tick(u64 ns)
{
	clock_ns += ns;
	gsc_tick(&dev, clock_ns);
	checked();
}

static void format(void)
{
	EXPECT(shows(&group[0], GSC_FILE_GPU_PRESSURE,
		     "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		     "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"));
	EXPECT(shows(&group[0], GSC_FILE_GPU_EVENTS,
		     "evictions 0\nthrottled 0\ngated 0\noverdue 0\nlate 0\nrefused 0\nmemory_max 0\n"));
	EXPECT(store(&group[0], GSC_FILE_GPU_PRESSURE, "some 150000 1000000") == -EINVAL);
	EXPECT(store(&group[0], GSC_FILE_GPU_EVENTS, "0") == -EINVAL);
}

/* One of two waits, then both, then none: some, some and full, neither */
static void some_and_full(void)
{
	static struct gsc_group top;

	memset(&top, 0, sizeof(top));
	attach(2);
	EXPECT(!gsc_client_attach(&client[2], &group[1], GSCHED_ATTACH_MPS, 0, clock_ns));
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!submit(1, 0, BLOCK, 20) && !submit(2, 0, BLOCK, 20));
	EXPECT(!store(&group[0], GSC_FILE_CAPSM_MIN, "112"));
	tick(MS);
	EXPECT(shown(&group[1], "some", "total") == 0);
	/* 20 SMs are left for two: then all taken from both */
	EXPECT(!submit(0, 0, BLOCK, 131));
	EXPECT(client[1].current_units + client[2].current_units == SM);
	/* what is not in the books yet counts; time does not go back */
	EXPECT(gsc_pressure_ns(&group[1], GSC_PRESSURE_SOME, clock_ns + 3 * MS) == 3 * MS);
	EXPECT(gsc_pressure_ns(&group[1], GSC_PRESSURE_SOME, 0) == 0);
	tick(3 * MS);
	EXPECT(shown(&group[1], "some", "total") == 3000 && shown(&group[1], "full", "total") == 0);
	EXPECT(shown(&dev.root, "some", "total") == 3000 && shown(&dev.root, "full", "total") == 0);
	EXPECT(shown(&group[0], "some", "total") == 0);
	EXPECT(!submit(0, 1, BLOCK, 1000));
	EXPECT(client[1].current_units + client[2].current_units == 0);
	tick(5 * MS);
	EXPECT(shown(&group[1], "some", "total") == 8000 &&
	       shown(&group[1], "full", "total") == 5000);
	/* the device as a whole runs something */
	EXPECT(shown(&dev.root, "some", "total") == 8000 && shown(&dev.root, "full", "total") == 0);
	EXPECT(!complete(0, 0) && !complete(0, 1));
	tick(7 * MS);
	EXPECT(shown(&group[1], "some", "total") == 8000 &&
	       shown(&group[1], "full", "total") == 5000);
	/* another group from now on: what it was stays */
	EXPECT(!submit(0, 0, BLOCK, 1000));
	gsc_client_move(&client[1], &group[3], clock_ns);
	checked();
	tick(2 * MS);
	EXPECT(shown(&group[3], "full", "total") == 2000 &&
	       shown(&group[1], "full", "total") == 7000);
	gsc_client_detach(&client[1], clock_ns);
	gsc_client_detach(&client[2], clock_ns);
	checked();
	tick(2 * MS);
	EXPECT(shown(&group[3], "some", "total") == 2000 &&
	       shown(&group[1], "some", "total") == 10000);
}

/* Bands: who waits for a turn reports it */
static void waiting_for_a_turn(void)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY };

	for (int i = 0; i < 3; i++)
		EXPECT(!gsc_client_attach(&client[i], &group[i], GSCHED_ATTACH_SLICE,
					  10 + (u64)i, clock_ns));
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	req.activity = GSCHED_ACTIVITY_BUSY;
	EXPECT(!gsc_client_report(&client[1], &req, clock_ns));
	req.activity = GSCHED_ACTIVITY_WAITING;
	EXPECT(!gsc_client_report(&client[2], &req, clock_ns));
	checked();
	EXPECT(group[2].stats.events[GSC_EVENT_GATED] == 1 &&
	       !group[1].stats.events[GSC_EVENT_GATED]);
	tick(4 * MS);
	EXPECT(shown(&group[2], "full", "total") == 4000 && shown(&group[1], "some", "total") == 0);
	EXPECT(shown(&dev.root, "some", "total") == 4000 && shown(&dev.root, "full", "total") == 0);
	req.activity = GSCHED_ACTIVITY_IDLE;
	EXPECT(!gsc_client_report(&client[2], &req, clock_ns));
	tick(4 * MS);
	EXPECT(shown(&group[2], "some", "total") == 4000);
}

/*
 * The alternative: a timer each two seconds and floating point. Random times of waiting, from
 * microseconds to minutes
 */
static void averages(void)
{
	static const double window[3] = { 10, 60, 300 };
	static const char *const key[3] = { "avg10", "avg60", "avg300" };
	double average[3] = { 0 }, worst = 0, most = 0, part = 0;
	u64 rng = 12345, next = (clock_ns / (2 * SEC) + 1) * 2 * SEC, total = 0;
	bool waits = false;

	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!submit_block_ns(0, 0, BLOCK, 100000, 0, 0));
	for (int step = 0; step < 4000; step++) {
		u64 ns, end;

		rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
		ns = (rng >> 24) % (step % 100 == 7 ? 200 * SEC : step % 3 ? 5 * MS : 3 * SEC);
		end = clock_ns + ns;
		total += waits ? ns : 0;
		for (u64 at = clock_ns; at < end;) {
			u64 to = min(end, next);

			part += waits ? (double)(to - at) : 0;
			at = to;
			if (at != next)
				continue;
			for (int i = 0; i < 3; i++) {
				double kept = exp(-2 / window[i]);

				average[i] = average[i] * kept + part / 2e9 * 100 * (1 - kept);
			}
			part = 0;
			next += 2 * SEC;
		}
		tick(ns);
		for (int i = 0; i < 3; i++) {
			double got = shown(&group[1], "some", key[i]);

			worst = max(worst, fabs(got - average[i]));
			most = max(most, got);
			EXPECT(got >= 0 && got <= 100 && shown(&group[1], "full", key[i]) == got);
		}
		EXPECT((u64)shown(&group[1], "some", "total") == total / 1000);
		if (!waits)
			EXPECT(submit(1, 0, BLOCK, 100) == QUEUED);
		else
			EXPECT(!complete(1, 0));
		waits = !waits;
	}
	printf("# differ from floating point by up to %.2f %%, at most %.2f\n", worst, most);
	EXPECT(worst < 1.5 && most > 99.9);
}

/* It ends at 100 and at 0, and a long time is no long computation */
static void long_times(void)
{
	attach(2);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!submit(0, 0, BLOCK, 100000) && submit(1, 0, BLOCK, 100) == QUEUED);
	tick(3600 * SEC);
	EXPECT(shows(&group[1], GSC_FILE_GPU_PRESSURE,
		     "some avg10=100.00 avg60=100.00 avg300=100.00 total=3600000000\n"
		     "full avg10=100.00 avg60=100.00 avg300=100.00 total=3600000000\n"));
	EXPECT(!complete(1, 0));
	tick(20ULL * 365 * 86400 * SEC);
	EXPECT(shows(&group[1], GSC_FILE_GPU_PRESSURE,
		     "some avg10=0.00 avg60=0.00 avg300=0.00 total=3600000000\n"
		     "full avg10=0.00 avg60=0.00 avg300=0.00 total=3600000000\n"));
}

static void events(void)
{
	u64 before;

	attach(3);
	EXPECT(!store(&group[0], GSC_FILE_GPU_PRIORITY, "10"));
	EXPECT(!submit(1, 0, BLOCK, 100000));
	before = dev.n_events;
	EXPECT(!submit(0, 0, BLOCK, 100000));
	EXPECT(dev.n_events == before + 1);
	EXPECT(submit(1, 1, BLOCK, 100000) == QUEUED);
	EXPECT(dev.n_events == before + 2);
	EXPECT(shows(&group[1], GSC_FILE_GPU_EVENTS,
		     "evictions 1\nthrottled 1\ngated 0\noverdue 0\nlate 0\nrefused 0\nmemory_max 0\n"));
	EXPECT(!complete(0, 0) && !complete(1, 0) && !complete(1, 1));
	/* an opaque kernel of an equal that is not completed */
	EXPECT(!submit(1, 0, LAUNCH, 100000));
	EXPECT(submit(2, 0, BLOCK, 100000) == QUEUED);
	tick(600 * MS);
	tick(600 * MS);
	EXPECT(group[1].stats.events[GSC_EVENT_OVERDUE] == 1);
	EXPECT(shows(&dev.root, GSC_FILE_GPU_EVENTS,
		     "evictions 1\nthrottled 2\ngated 0\noverdue 1\nlate 0\nrefused 0\nmemory_max 0\n"));
	EXPECT(!complete(1, 0));
	/* one that takes far longer than it is predicted to */
	EXPECT(!submit_block_ns(0, 0, LAUNCH, 16, MS, 0));
	tick(5 * MS);
	tick(5 * MS);
	EXPECT(group[0].stats.events[GSC_EVENT_LATE] == 1 &&
	       !group[2].stats.events[GSC_EVENT_LATE]);
}

/* A trigger's window of ten seconds, in which launches wait from the second one on */
static void sliding_window(void)
{
	struct gsc_window window = { 0 };
	u64 at, grown, waited;

	for (at = SEC; at <= 40 * SEC; at += SEC) {
		waited = at - SEC;
		grown = gsc_window_grown(&window, 10 * SEC, waited, at);
		/* of the first window 9 s were waited, as evenly as is known */
		if (at <= 10 * SEC)
			EXPECT(grown == waited);
		else if (at < 20 * SEC)
			EXPECT(grown == at - 10 * SEC + 9 * (20 * SEC - at) / 10);
		else
			EXPECT(grown == 10 * SEC);
	}
	/* whoever looks late, after a year, has not waited for longer than a window */
	waited += 365ULL * 86400 * SEC;
	at += 365ULL * 86400 * SEC;
	gsc_window_grown(&window, 10 * SEC, waited, at);
	EXPECT(gsc_window_grown(&window, 10 * SEC, waited, at + 5 * SEC) == 5 * SEC);
}

int main(void)
{
	static const struct { const char *name; void (*run)(void); } tests[] = {
		TEST(format), TEST(some_and_full), TEST(waiting_for_a_turn), TEST(averages),
		TEST(long_times), TEST(events), TEST(sliding_window),
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		good = true;
		setup();
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
