// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy srt: of equals the one whose kernel has the least to do, unless a preemption costs more
 * than it gains.
 */
#include "unit.h"

/* @clients equals of one band, or each a band in temporal mode */
static void begin(int clients, bool temporal)
{
	setup();
	EXPECT(!gsc_device_set_policy(&dev, "srt", clock_ns));
	if (temporal)
		EXPECT(!gsc_device_set_mode(&dev, GSCHED_MODE_TEMPORAL, clock_ns));
	for (int c = 0; c < clients; c++)
		EXPECT(!gsc_client_attach(&client[c], &group[c], temporal ? 0 : GSCHED_ATTACH_MPS,
					  0, clock_ns));
}

/* A kernel that fills the device for @ns */
static void launch(int c, u64 ns, u64 block_ns)
{
	submit_block_ns(c, 0, BLOCK, 100000, ns, block_ns);
}

static bool has_all(int c)
{
	return task(c, 0)->state == GSC_TASK_RUNNING && task(c, 0)->window == SMS * SM;
}

static void pass(u64 ns)
{
	clock_ns += ns;
	gsc_tick(&dev, clock_ns);
	checked();
	EXPECT(!dev.faulty);
}

static bool says(int c, const char *what)
{
	char text[160] = "";

	gsc_client_why(&client[c], text, sizeof(text));
	if (strstr(text, what))
		return true;
	printf("# %s\n", text);
	return false;
}

static void shorter_one_first(void)
{
	for (int temporal = 0; temporal < 2; temporal++) {
		begin(3, temporal);
		launch(0, 10 * MS, 50 * US);
		EXPECT(has_all(0));
		EXPECT(says(0, "no other program of its priority has a kernel"));
		launch(1, 2 * MS, 50 * US);
		EXPECT(has_all(1) && !task(0, 0)->window);
		EXPECT(says(1, "its kernel has the least to go: 2000 us"));
		launch(2, MS, 50 * US);
		EXPECT(has_all(2) && !task(1, 0)->window);
		pass(MS / 2);
		EXPECT(says(1, "has 2000 us to go and waits for shorter ones, since 500 us"));
		complete(2, 0);
		EXPECT(has_all(1));
		complete(1, 0);
		EXPECT(has_all(0));
	}
}

/*
 * T_r(running) > T_r(new) + overhead, by what the running one's block-tasks take and, between
 * bands, the switch
 */
static void preemption_has_to_be_worth_it(void)
{
	static const struct {
		bool temporal;
		u64 block_ns, shorter;
		bool preempts;
	} cases[] = {
		{ false, 0, 970 * US, true }, { false, 0, 990 * US, false },
		{ false, 500 * US, 470 * US, true }, { false, 500 * US, 490 * US, false },
		{ true, 0, 780 * US, true }, { true, 0, 800 * US, false },
		{ true, 500 * US, 280 * US, true }, { true, 500 * US, 300 * US, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(2, cases[i].temporal);
		launch(0, MS, cases[i].block_ns);
		launch(1, cases[i].shorter, 0);
		EXPECT(has_all(1) == cases[i].preempts && has_all(0) != cases[i].preempts);
		if (!cases[i].preempts)
			EXPECT(says(0, "but a preemption costs"));
	}
}

/* What was launched under a lease has less to do by the time that it has run */
static void adopted_has_the_rest_to_do(void)
{
	static const u64 had[] = { 9 * MS, 2 * MS };

	for (size_t i = 0; i < ARRAY_SIZE(had); i++) {
		struct gsched_submit req = make_submit(0, 1, BLOCK, 100000);

		begin(2, false);
		clock_ns += 10 * MS;
		req.predicted_ns = 10 * MS;
		EXPECT(!gsc_adopt(&client[0], &req, clock_ns - had[i], clock_ns));
		launch(1, 5 * MS, 50 * US);
		EXPECT(has_all(i) && says(0, i ? "has 8000 us to go" : "the least to go: 1000 us"));
	}
}

/* Client 0 runs a kernel of @ns by itself that it said would take @word */
static void run_alone(u64 word, u64 ns)
{
	launch(0, word, 0);
	EXPECT(has_all(0));
	pass(ns);
	EXPECT(!complete(0, 0));
}

/* Who claims less than the truth comes before an equal once, and waits for it the next time */
static void a_lie_gains_nothing(void)
{
	for (int temporal = 0; temporal < 2; temporal++) {
		u64 first = 0;

		begin(2, temporal);
		for (int i = 0; i < 10; i++) {
			/* 5 ms each, whatever is said, and what it takes to begin and to tell of the end */
			launch(1, 5 * MS, 0);
			launch(0, 1, 0);
			first += has_all(0);
			if (has_all(0)) {
				pass(5 * MS + 50 * US);
				complete(0, 0);
				EXPECT(has_all(1));
				pass(5 * MS + 50 * US);
				complete(1, 0);
			} else {
				pass(5 * MS + 50 * US);
				complete(1, 0);
				EXPECT(has_all(0));
				pass(5 * MS + 50 * US);
				complete(0, 0);
			}
			EXPECT(client[0].data.srt.overrun_ns == 5 * MS - 1);
			EXPECT(!client[1].data.srt.overrun_ns);
		}
		EXPECT(first == 1);
	}
}

/* Nor is it forgotten for kernels that are withdrawn, or by going to another group */
static void a_lie_is_remembered(void)
{
	begin(2, false);
	run_alone(1, 5 * MS);
	for (int i = 0; i < 20; i++) {
		struct gsched_complete req = make_complete(0, 1);

		launch(0, MS, 0);
		req.flags = GSCHED_COMPLETE_CANCEL;
		EXPECT(!gsc_complete(&client[0], &req, clock_ns));
	}
	gsc_client_move(&client[0], &group[3], clock_ns);
	launch(1, 2 * MS, 0);
	launch(0, MS, 0);
	EXPECT(has_all(1));
	/* one that took as long as it was said to settles that */
	complete(1, 0);
	pass(MS);
	complete(0, 0);
	launch(1, 2 * MS, 0);
	launch(0, MS, 0);
	EXPECT(has_all(0));
}

/* A word that is kept, nearly, or too long, costs nothing later */
static void honest_predictions(void)
{
	static const struct { u64 word, ns; } cases[] = {
		{ MS, MS }, { MS, MS + 50 * US }, { 5 * MS, MS }, { 0, MS }, { ~0ULL, MS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(2, false);
		run_alone(cases[i].word, cases[i].ns);
		EXPECT(!client[0].data.srt.overrun_ns);
	}
}

/* What evictions of a client took takes the place of the constant */
static void measured_overhead(void)
{
	for (int slow = 0; slow < 2; slow++) {
		begin(2, false);
		client[0].evict_ns[0] = slow ? 100 * US : 5 * US;
		launch(0, MS, 100 * US);
		launch(1, slow ? 810 * US : 890 * US, 0);
		EXPECT(has_all(1) == !slow);
		begin(2, false);
		client[0].evict_ns[0] = slow ? 100 * US : 5 * US;
		launch(0, MS, 100 * US);
		launch(1, slow ? 790 * US : 900 * US, 0);
		EXPECT(has_all(1) == slow);
	}
}

/* What counts is what is left, also of one that was preempted */
static void remaining_time_counts(void)
{
	begin(3, false);
	launch(0, 10 * MS, 0);
	pass(8 * MS);
	launch(1, 3 * MS, 0);
	EXPECT(has_all(0));
	launch(2, MS, 0);
	EXPECT(has_all(2));
	pass(MS / 2);
	EXPECT(!task(0, 0)->window);
	complete(2, 0);
	EXPECT(has_all(0));
	pass(MS);
	complete(0, 0);
	EXPECT(has_all(1));
}

/* One that runs longer than predicted gives way in the end */
static void wrong_prediction(void)
{
	for (int temporal = 0; temporal < 2; temporal++) {
		begin(2, temporal);
		launch(0, MS, 0);
		launch(1, 1500 * US, 0);
		EXPECT(has_all(0) && dev.timer);
		for (int i = 0; i < 10 && !has_all(1); i++) {
			clock_ns = dev.timer;
			pass(0);
		}
		/* 2 ms in all is not worth a preemption, 4 ms is */
		EXPECT(has_all(1) && clock_ns == (1000 + 2) * MS);
	}
}

static void unknown_length(void)
{
	begin(2, false);
	launch(0, 0, 0);
	launch(1, MS / 2, 0);
	EXPECT(has_all(1));
	complete(1, 0);
	launch(1, 3 * MS, 0);
	EXPECT(has_all(0));
}

static void priority_comes_first(void)
{
	for (int temporal = 0; temporal < 2; temporal++) {
		begin(3, temporal);
		EXPECT(!store(&group[2], GSC_FILE_GPU_PRIORITY, "10"));
		launch(0, MS, 0);
		launch(2, 100 * MS, 0);
		EXPECT(has_all(2));
		launch(1, US, 0);
		EXPECT(has_all(2));
		complete(2, 0);
		EXPECT(has_all(1));
	}
}

/* What the shortest one cannot fill goes to the next one */
static void rest_is_used(void)
{
	begin(3, false);
	launch(0, 10 * MS, 0);
	launch(1, 5 * MS, 0);
	submit_block_ns(2, 0, BLOCK, 32, MS, 0);
	EXPECT(task(2, 0)->window == 32 * SM);
	EXPECT(task(1, 0)->window == 100 * SM && !task(0, 0)->window);
}

static void opaque_kernel_stays(void)
{
	begin(2, false);
	submit_block_ns(0, 0, LAUNCH, 100000, 100 * MS, 0);
	launch(1, MS, 0);
	EXPECT(task(0, 0)->state == GSC_TASK_RUNNING);
	EXPECT(says(0, "its kernel cannot be preempted"));
}

/* FLEP's measure: the mean of turnaround time over time alone, of kernels that arrive together */
/* Nor is its band's turn taken from it, however short what waits */
static void opaque_kernel_keeps_its_turn(void)
{
	begin(2, true);
	EXPECT(!submit_block_ns(0, 0, LAUNCH, 100000, 10 * MS, 0));
	launch(1, MS, 50 * US);
	pass(MS);
	EXPECT(dev.turn == client[0].band && task(1, 0)->state == GSC_TASK_WAITING);
	EXPECT(!complete(0, 0));
	EXPECT(dev.turn == client[1].band && has_all(1));
}

static void mean_slowdown(void)
{
	static const u64 length[] = { 40, 10, 1, 4 };
	double slowdown[2] = { 0, 0 };

	for (int srt = 0; srt < 2; srt++) {
		u64 left[4], begun;
		int n = 4;

		begin(4, false);
		if (!srt)
			EXPECT(!gsc_device_set_policy(&dev, "hpf", clock_ns));
		begun = clock_ns;
		for (int c = 0; c < 4; c++) {
			launch(c, length[c] * MS, 20 * US);
			left[c] = length[c] * MS * SMS * SM;
		}
		while (n && clock_ns < begun + 1000 * MS) {
			pass(10 * US);
			for (int c = 0; c < 4; c++) {
				u64 had = left[c] ? task(c, 0)->window * 10 * US : 0;

				if (!left[c])
					continue;
				left[c] -= min(left[c], had);
				if (left[c])
					continue;
				slowdown[srt] += (double)(clock_ns - begun) /
						 (double)(length[c] * MS) / 4;
				complete(c, 0);
				n--;
			}
		}
		EXPECT(!n);
	}
	printf("# mean slowdown %.2f, with hpf %.2f\n", slowdown[1], slowdown[0]);
	EXPECT(slowdown[1] < 1.3 && slowdown[0] > 2);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	TEST(shorter_one_first), TEST(adopted_has_the_rest_to_do),
	TEST(preemption_has_to_be_worth_it), TEST(a_lie_gains_nothing), TEST(a_lie_is_remembered),
	TEST(honest_predictions), TEST(measured_overhead), TEST(remaining_time_counts),
	TEST(wrong_prediction),
	TEST(unknown_length), TEST(priority_comes_first), TEST(rest_is_used),
	TEST(opaque_kernel_stays), TEST(opaque_kernel_keeps_its_turn), TEST(mean_slowdown),
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		good = true;
		tests[i].run();
		ok(good, "%s", tests[i].name);
	}
	return done();
}
