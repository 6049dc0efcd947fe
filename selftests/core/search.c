// SPDX-License-Identifier: GPL-2.0-only
/*
 * All sequences of a few events on a tiny device, for every policy: attach, detach, submit, adopt,
 * complete, cancel, report, the timer. After each event the invariants hold and no capacity is
 * lost; from where a sequence ends every task gets to its end, and where a policy promises that
 * nobody starves, each gets capacity however busy the others are. A state that was seen before is
 * not searched again, unless more events may follow than did then; times are no part of it.
 */
#include "unit.h"

#define TINY_SMS	4
#define CLIENTS		3
#define USED_SLOTS	2
#define SEEN_BITS	20
/* ends of sequences from which starvation is looked for: it takes long */
#define STARVE_EVERY	32
#define STARVE_ROUNDS	400		/* of a ms: turns of wfq are 8 ms at equal weights */
#define DRAIN_ROUNDS	1000		/* of a ms: lower bands have turns of up to 100 */

enum kind { SMALL, LARGE, OPAQUE, ADOPTED, N_KINDS };
enum { ATTACH, SUBMIT, FIRST_ENDS = SUBMIT + N_KINDS, LAST_ENDS, REPORT, N_OF_CLIENT };
#define N_EVENTS	(CLIENTS * N_OF_CLIENT + 1)	/* the last one: time passes */

struct snapshot {
	struct gsc_device dev;
	struct gsc_group group[CLIENTS];
	struct gsc_client client[CLIENTS];
	struct gsc_task task[CLIENTS][USED_SLOTS];
	u64 now;
};

struct setting {
	const char *policy;
	const char *name;
	u32 flags;
	s32 mode;
	int depth;
	bool by_priority, fair;
	const char *plan;	/* its allocation, under policy plan: groups "0" to "2" */
	u32 most[CLIENTS];	/* SMs that it gives each of them at most */
};

static const struct setting *setting;
static struct { u64 hash; int left; } *seen;
static u64 n_states, n_ends, n_starve, n_waits, n_evicted;
static u32 seq;
static const char *failure;
static int path[16], path_length;

static void save(struct snapshot *s)
{
	s->dev = dev;
	memcpy(s->group, group, sizeof(s->group));
	memcpy(s->client, client, sizeof(s->client));
	for (int c = 0; c < CLIENTS; c++)
		for (u32 slot = 0; slot < USED_SLOTS; slot++)
			if (client[c].task[slot])
				s->task[c][slot] = *client[c].task[slot];
	s->now = clock_ns;
}

static void restore(const struct snapshot *s)
{
	dev = s->dev;
	memcpy(group, s->group, sizeof(s->group));
	memcpy(client, s->client, sizeof(s->client));
	for (int c = 0; c < CLIENTS; c++)
		for (u32 slot = 0; slot < USED_SLOTS; slot++)
			if (client[c].task[slot])
				*client[c].task[slot] = s->task[c][slot];
	clock_ns = s->now;
}

static void fails(const char *why)
{
	if (failure)
		return;
	failure = why;
	printf("# %s, %s: %s after events", setting->policy, setting->name, why);
	for (int i = 0; i < path_length; i++)
		printf(" %d", path[i]);
	printf("\n");
}

static u64 mixed(u64 hash, u64 value)
{
	hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
	hash *= 0xbf58476d1ce4e5b9ULL;
	return hash ^ hash >> 29;
}

static u64 hash_of_client(u64 hash, const struct gsc_client *c)
{
	const struct gsc_task *t;

	if (!c->dev)
		return mixed(hash, 1);
	hash = mixed(hash, (u64)c->lease << 32 | c->hold_units);
	hash = mixed(hash, (u64)c->hold_got << 32 | c->arb.flags);
	hash = mixed(hash, (u64)c->activity << 34 | (u64)(c->band == dev.drain) << 33 |
		     (u64)(c->band == dev.turn) << 32 | (u32)(c->hold_until > dev.now));
	list_for_each_entry(t, &c->tasks, peer) {
		hash = mixed(hash, t->blocks << 8 | t->tier << 4 | t->state << 1 | t->adopted);
		hash = mixed(hash, t->window);
		hash = mixed(hash, (u64)t->rank << 8 | t->slot);
	}
	return mixed(hash, 2);
}

/* True: it was searched with as many events or more to follow */
static bool was_seen(int left)
{
	const struct gsc_band *band;
	const struct gsc_task *t;
	u64 hash = dev.timer != 0;
	size_t at;

	for (int c = 0; c < CLIENTS; c++)
		hash = hash_of_client(hash, &client[c]);
	list_for_each_entry(band, &dev.bands, node)
		list_for_each_entry(t, &band->tasks, node)
			hash = mixed(hash, (u64)(t->client - client) << 8 | t->slot);
	hash |= 1;
	for (at = hash >> (64 - SEEN_BITS); seen[at].hash; at = (at + 1) % (1 << SEEN_BITS)) {
		if (seen[at].hash != hash)
			continue;
		if (seen[at].left >= left)
			return true;
		break;
	}
	seen[at].hash = hash;
	seen[at].left = left;
	n_states++;
	return false;
}

static struct gsc_task *first_of(struct gsc_client *c)
{
	return list_empty(&c->tasks) ? NULL : list_first_entry(&c->tasks, struct gsc_task, peer);
}

static bool submits(struct gsc_client *c, enum kind kind)
{
	static const u64 blocks[] = { [SMALL] = 1, [LARGE] = 1000, [OPAQUE] = 2, [ADOPTED] = 1000 };
	struct gsched_submit req = make_submit(0, ++seq, kind == OPAQUE ? LAUNCH : BLOCK,
					       blocks[kind]);
	int ret;

	while (req.slot < USED_SLOTS && gsc_task_in(c, req.slot))
		req.slot++;
	if (req.slot == USED_SLOTS)
		return false;
	req.predicted_ns = kind == SMALL ? 50 * US : 3 * MS;
	req.block_ns = 100 * US;
	ret = kind == ADOPTED ? gsc_adopt(c, &req, clock_ns, clock_ns) : gsc_submit(c, &req, clock_ns);
	if (ret && ret != QUEUED)
		fails("a submit was refused");
	return true;
}

/* A task that waits is cancelled */
static void ends(struct gsc_task *t)
{
	struct gsched_complete req = make_complete(t->slot, t->seq);

	req.flags = t->state == GSC_TASK_WAITING ? GSCHED_COMPLETE_CANCEL : 0;
	req.ran_ns = 50 * US;
	if (gsc_complete(t->client, &req, clock_ns))
		fails("a complete was refused");
}

/* Lower bands say whether they are busy: that is what turns go by */
static bool reports(struct gsc_client *c)
{
	struct gsched_report req = { .size = sizeof(req), .flags = GSCHED_REPORT_ACTIVITY };

	if (!(c->arb.flags & GSCHED_ARB_REPORT))
		return false;
	req.activity = c->activity == GSCHED_ACTIVITY_IDLE ? GSCHED_ACTIVITY_BUSY :
		       GSCHED_ACTIVITY_IDLE;
	if (gsc_client_report(c, &req, clock_ns))
		fails("a report was refused");
	return true;
}

static void attaches(int c)
{
	memset(&client[c], 0, sizeof(client[c]));
	if (gsc_client_attach(&client[c], &group[c], setting->flags, 0, clock_ns))
		fails("an attach was refused");
}

/* Time passes until the timer, or a ms */
static void time_passes(void)
{
	clock_ns = dev.timer && dev.timer < clock_ns + MS ? max(dev.timer, clock_ns) :
		   clock_ns + MS;
	gsc_tick(&dev, clock_ns);
}

/* False: there is nothing to do */
static bool happens(int event)
{
	struct gsc_client *c = &client[event / N_OF_CLIENT];
	int what = event % N_OF_CLIENT;

	if (event == N_EVENTS - 1) {
		time_passes();
		return true;
	}
	clock_ns += 10 * US;
	if (what == ATTACH) {
		if (c->dev)
			gsc_client_detach(c, clock_ns);
		else
			attaches(event / N_OF_CLIENT);
		return true;
	}
	if (!c->dev)
		return false;
	if (what < FIRST_ENDS)
		return submits(c, what - SUBMIT);
	if (what == REPORT)
		return reports(c);
	if (!c->n_tasks || (what == LAST_ENDS && c->n_tasks < 2))
		return false;
	ends(what == FIRST_ENDS ? first_of(c) : list_last_entry(&c->tasks, struct gsc_task, peer));
	return true;
}

/* What its group may have, by the plan as long as it is in force */
static u32 most_of(const struct gsc_client *c)
{
	return dev.policy == &gsc_policy_plan ? setting->most[c - client] * SM : U32_MAX;
}

/*
 * With rewritten kernels only: if SMs are idle and not held, every client has a window as large as
 * its largest kernel, or as a plan allows
 */
static void check_lost(const struct gsc_band *band)
{
	const struct gsc_client *c;
	const struct gsc_task *t;
	u32 used = 0, most;

	if ((dev.mode == GSCHED_MODE_TEMPORAL && band != dev.turn) || band->late ||
	    band->flags & GSCHED_ARB_CLOSED)
		return;
	list_for_each_entry(t, &band->tasks, node)
		if (t->tier != GSCHED_TIER_BLOCK)
			return;
	list_for_each_entry(c, &band->members, member)
		used += (c->current_units + c->hold_got + SM - 1) / SM;
	if (used >= dev.sms)
		return;
	list_for_each_entry(c, &band->members, member) {
		most = 0;
		/*
		 * where bands take turns, one that came after another band's does not prolong the
		 * turn
		 */
		list_for_each_entry(t, &c->tasks, peer)
			if (t->state == GSC_TASK_RUNNING || dev.mode != GSCHED_MODE_TEMPORAL)
				most = max(most, t->demand);
		if (c->current_units < min(most, most_of(c)))
			fails("capacity is lost");
	}
}

static bool shares(const struct gsc_client *a, const struct gsc_client *b)
{
	return a->band == b->band || dev.mode == GSCHED_MODE_TEMPORAL;
}

/* Nobody has a window while somebody more important, who shares with it, has nothing */
static void check_inversion(void)
{
	for (int a = 0; a < CLIENTS; a++) {
		const struct gsc_task *t = client[a].dev ? first_of(&client[a]) : NULL;

		if (!t || t->window)
			continue;
		for (int b = 0; b < CLIENTS; b++)
			if (client[b].dev && shares(&client[a], &client[b]) &&
			    group[b].priority < group[a].priority && client[b].window)
				fails("somebody less important has what one more important needs");
	}
}

static void check_state(void)
{
	const struct gsc_band *band;

	if (gsc_check(&dev))
		fails("an invariant");
	if (dev.faulty)
		fails(dev.fault);
	list_for_each_entry(band, &dev.bands, node)
		check_lost(band);
	if (setting->by_priority)
		check_inversion();
	for (int c = 0; c < CLIENTS; c++)
		if (client[c].dev && first_of(&client[c])) {
			n_waits += first_of(&client[c])->state == GSC_TASK_WAITING;
			n_evicted += first_of(&client[c])->state == GSC_TASK_RUNNING &&
				     !first_of(&client[c])->window;
		}
}

/* What runs ends, all in all. Programs say the truth about being busy now */
static void check_end(void)
{
	for (int round = 0; round < DRAIN_ROUNDS; round++) {
		bool tasks = false;

		for (int c = 0; c < CLIENTS; c++) {
			struct gsc_task *t = client[c].dev ? first_of(&client[c]) : NULL;

			if (client[c].dev && (t != NULL) ==
			    (client[c].activity == GSCHED_ACTIVITY_IDLE))
				reports(&client[c]);
			if (t && t->window)
				ends(t);
			tasks |= t != NULL;
		}
		if (!tasks)
			return;
		time_passes();
	}
	fails("a task is stuck");
}

/*
 * The others always have two kernels, the one new as soon as the other one ends, a millisecond each
 */
static void check_starvation(int victim)
{
	if (!client[victim].dev || !first_of(&client[victim]))
		return;
	n_starve++;
	for (int round = 0; round < STARVE_ROUNDS; round++) {
		if (first_of(&client[victim])->window)
			return;
		for (int c = 0; c < CLIENTS; c++) {
			struct gsc_task *t = client[c].dev && c != victim ? first_of(&client[c]) :
					     NULL;

			if (t && t->window)
				ends(t);
			while (client[c].dev && c != victim && submits(&client[c], LARGE))
				;
		}
		time_passes();
	}
	fails("a task starves");
}

static void search(int left)
{
	struct snapshot *s;

	if (was_seen(left) || failure)
		return;
	check_state();
	s = malloc(sizeof(*s));
	if (!s)
		exit(1);
	save(s);
	for (int event = 0; left && event < N_EVENTS && !failure; event++) {
		path[path_length++] = event;
		if (happens(event))
			search(left - 1);
		path_length--;
		restore(s);
	}
	if (!left) {
		check_end();
		restore(s);
		for (int c = 0; setting->fair && !(n_ends % STARVE_EVERY) && c < CLIENTS; c++) {
			check_starvation(c);
			restore(s);
		}
		n_ends++;
	}
	free(s);
}

static struct gsc_group *find(void *arg, const char *path, size_t len)
{
	return len == 1 && *path >= '0' && *path < '0' + CLIENTS ? &group[*path - '0'] : NULL;
}

static void search_all(const struct setting *with)
{
	static const char *const priority[] = { "10", "0", "0" },
		*const weight[] = { "100", "100", "300" };
	char name[128];

	setting = with;
	failure = NULL;
	good = true;
	n_states = n_ends = n_starve = n_waits = n_evicted = 0;
	path_length = 0;
	memset(seen, 0, sizeof(*seen) << SEEN_BITS);
	setup();
	EXPECT(!gsc_device_set_mode(&dev, with->mode, clock_ns));
	dev.sms = TINY_SMS;
	EXPECT(with->plan ? !gsc_device_plan(&dev, with->plan, find, NULL, clock_ns) :
			    !gsc_device_set_policy(&dev, with->policy, clock_ns));
	for (int c = 0; c < CLIENTS; c++) {
		EXPECT(!gsc_group_store(&group[c], GSC_FILE_GPU_PRIORITY, priority[c], clock_ns));
		EXPECT(!gsc_group_store(&group[c], GSC_FILE_GPU_WEIGHT, weight[c], clock_ns));
		attaches(c);
	}
	search(with->depth);
	printf("# %s, %s: %llu states, %llu ends; %llu searches for starvation; first tasks waited "
	       "%llu times, were evicted %llu\n", with->policy, with->name, n_states, n_ends,
	       n_starve, n_waits, n_evicted);
	snprintf(name, sizeof(name), "%s, %s: all of %d events", with->policy, with->name,
		 with->depth);
	ok(good && !failure && n_ends && n_waits + n_evicted && (n_starve || !with->fair) &&
	    n_states < (1 << SEEN_BITS) * 3 / 4, name);
}

#define MPS	GSCHED_ATTACH_MPS
#define SLICED	GSCHED_ATTACH_SLICE
#define TEMPORAL GSCHED_MODE_TEMPORAL

static const struct setting settings[] = {
	{ "hpf", "one band", MPS, -1, 6, true, false, NULL, { 0 } },
	{ "hpf", "bands with slices", SLICED, -1, 6, true, false, NULL, { 0 } },
	{ "hpf", "one band at a time", 0, TEMPORAL, 6, true, false, NULL, { 0 } },
	{ "srt", "one band", MPS, -1, 6, true, false, NULL, { 0 } },
	{ "srt", "one band at a time", 0, TEMPORAL, 6, true, false, NULL, { 0 } },
	{ "ffs", "one band", MPS, -1, 5, false, true, NULL, { 0 } },
	{ "ffs", "one band at a time", 0, TEMPORAL, 6, false, true, NULL, { 0 } },
	{ "wfq", "one band", MPS, -1, 6, false, true, NULL, { 0 } },
	{ "wfq", "one band at a time", 0, TEMPORAL, 6, false, true, NULL, { 0 } },
	{ "corun", "one band", MPS, -1, 6, false, true, NULL, { 0 } },
	{ "plan", "one band", MPS, -1, 5, false, true, "60000 0=1-3 1=2", { 3, 2, TINY_SMS } },
	{ "plan", "one band, until it expires", MPS, -1, 5, false, false, "2 0=1 1=2-3",
	  { 1, 3, TINY_SMS } },
	{ "plan", "one band at a time", 0, TEMPORAL, 5, false, true, "60000 0=1-3 1=2",
	  { 3, 2, TINY_SMS } },
};

int main(int argc, char **argv)
{
	seen = malloc(sizeof(*seen) << SEEN_BITS);
	if (!seen)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (argc < 2 || !strcmp(argv[1], settings[i].policy))
			search_all(&settings[i]);
	free(seen);
	return done();
}
