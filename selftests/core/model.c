// SPDX-License-Identifier: GPL-2.0-only
/*
 * The division of capacity against a model that was written from its definition alone: at each
 * group, from the root down, weighted max-min among what is directly below it; nobody below its
 * capsm.min as far as it has a use for that, or above its capsm.max or what it can use. The model
 * divides real numbers, the core whole SMs: rounding takes less than one SM at each level, and what
 * it takes from all that share there may go to the one of the greatest weight. Nothing is lost:
 * the sum is exact. Random trees of groups, all clients of equal rank in one band, one kernel each.
 */
#include "world.h"

#define GROUPS	12
#define CLIENTS	24

/* A group, or a client, which has no children. Node 0 is the root */
struct node {
	int parent, level;
	double weight, least, most;	/* as set, and as far as there is a use for it */
	double got;
};

static struct gsc_device dev;
static struct gsc_group group[GROUPS];
static struct gsc_client client[CLIENTS];
static struct node node[GROUPS + CLIENTS];
static int n_nodes;
static u64 rng, clock_ns = MS;

static u32 below(u32 n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (u32)((rng * 0x2545F4914F6CDD1DULL >> 11) % n);
}

static const struct gsc_ops ops = { .new_task = op_new_task };

static double at_level(const struct node *x, double level)
{
	double part = level * x->weight;

	part = part > x->most ? x->most : part;
	return part < x->least ? x->least : part;
}

static double sum_below(int parent, double level)
{
	double sum = 0;

	for (int i = 1; i < n_nodes; i++)
		if (node[i].parent == parent)
			sum += level < 0 ? node[i].most : at_level(&node[i], level);
	return sum;
}

static void divide(int parent)
{
	double low = 0, high = 2000, amount = node[parent].got;
	bool all = sum_below(parent, -1) <= amount;

	for (int i = 0; i < 100; i++) {
		double mid = (low + high) / 2;

		if (sum_below(parent, mid) > amount)
			high = mid;
		else
			low = mid;
	}
	for (int i = 1; i < n_nodes; i++) {
		if (node[i].parent != parent)
			continue;
		node[i].got = all ? node[i].most : at_level(&node[i], low);
		divide(i);
	}
}

/* What rounding may add: at each level less than one SM of each of the others there */
static int surplus(const struct node *x)
{
	int n = 0;

	for (; x != node; x = &node[x->parent])
		for (int i = 1; i < n_nodes; i++)
			n += node[i].parent == x->parent;
	return n;
}

/* Children come after their parents: what they can use is known before */
static void solve(void)
{
	for (int i = n_nodes - 1; i >= 0; i--) {
		double use = sum_below(i, -1);

		if (i < GROUPS && use < node[i].most)
			node[i].most = use;
		if (node[i].least > node[i].most)
			node[i].least = node[i].most;
	}
	node[0].got = node[0].most;
	divide(0);
}

static void set(int g, enum gsc_file file, u32 value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	if (gsc_group_store(&group[g], file, text, clock_ns))
		exit(1);
}

static void make_groups(void)
{
	u32 left = dev.sms, value;

	n_nodes = GROUPS;
	memset(node, 0, sizeof(node));
	node[0].most = dev.sms;
	for (int g = 1; g < GROUPS; g++) {
		int parent = below(2) ? (int)below((u32)g) : 0;

		if (node[parent].level == 4)
			parent = 0;
		node[g] = (struct node){ .parent = parent, .level = node[parent].level + 1,
					 .weight = 100, .most = dev.sms };
		if (gsc_group_init(&group[g], parent ? &group[parent] : &dev.root))
			exit(1);
		if (below(2)) {
			node[g].weight = 1 + below(below(2) ? 10000 : 300);
			set(g, GSC_FILE_GPU_WEIGHT, (u32)node[g].weight);
		}
		if (below(3) == 0) {
			node[g].most = 1 + below(dev.sms);
			set(g, GSC_FILE_CAPSM_MAX, (u32)node[g].most);
		}
		/* of groups directly below the root, and never more than there is */
		value = parent ? 0 : below(dev.sms / 3 + 1);
		if (value && value <= left && value <= node[g].most && below(2)) {
			left -= value;
			node[g].least = value;
			set(g, GSC_FILE_CAPSM_MIN, value);
		}
	}
}

static void make_clients(void)
{
	u32 n = 1 + below(CLIENTS);

	for (u32 c = 0; c < n; c++) {
		struct gsched_submit req = make_submit(0, 1, GSCHED_TIER_BLOCK,
						       below(2) ? 100000 : 1 + below(dev.sms));
		int home = (int)below(GROUPS);
		u64 most = min(req.blocks, (u64)dev.sms);

		/* users of their own, or they would share what one has */
		client[c].user = c;
		gsc_client_attach(&client[c], home ? &group[home] : &dev.root, GSCHED_ATTACH_MPS, 0,
				  clock_ns);
		gsc_submit(&client[c], &req, clock_ns);
		node[n_nodes++] = (struct node){
			.parent = home, .level = node[home].level + 1, .weight = 100,
			.most = most,
		};
	}
	gsc_commit(&dev, clock_ns);
}

/* False: the core gave out something else */
static bool try(u64 seed, const char *policy)
{
	static const u32 sizes[] = { 132, 8, 3, 16, 64, 1024 };
	double sum = 0, off;
	bool good = true;

	rng = seed * 0x9E3779B97F4A7C15ULL + 1;
	memset(&dev, 0, sizeof(dev));
	memset(group, 0, sizeof(group));
	memset(client, 0, sizeof(client));
	if (gsc_device_init(&dev, &ops, sizes[seed % 6]) ||
	    gsc_device_set_policy(&dev, policy, clock_ns))
		exit(1);
	make_groups();
	make_clients();
	solve();
	for (int i = GROUPS; i < n_nodes; i++) {
		double got = (double)client[i - GROUPS].window / SM;

		off = got - node[i].got;
		sum += got;
		if (off < -node[i].level - 1e-6 || off > surplus(&node[i])) {
			printf("# seed %llu, %s: client %d of %d has %g SMs and not %g\n", seed,
			       policy, i - GROUPS, n_nodes - GROUPS, got, node[i].got);
			good = false;
		}
	}
	off = sum - node[0].got;
	if (off < -1e-6 || off > 1e-6) {
		printf("# seed %llu, %s: all have %g SMs and not %g\n", seed, policy, sum,
		       node[0].got);
		good = false;
	}
	return good && !gsc_check(&dev);
}

/* Equals under each of these policies */
int main(int argc, char **argv)
{
	static const char *const policies[] = { "hpf", "ffs" };
	const char *events = getenv("CORE_EVENTS");
	u64 seeds = events ? strtoull(events, NULL, 0) / 100 : 3000, seed;
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		bool good = true;

		for (seed = 1; seed <= seeds; seed++)
			good &= try(seed, policies[i]);
		snprintf(name, sizeof(name), "%s divides like the model", policies[i]);
		ok(good, "%s", name);
	}
	return done();
}
