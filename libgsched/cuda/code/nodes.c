// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Priorities of graphs' kernels. A graph runs with the priority of the stream that it is launched
 * in, unless it is instantiated with CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, as PyTorch's
 * are: then each kernel has its node's. In a group with a priority these are mapped as those of
 * streams are, but only while the driver instantiates the graph or updates its instance. So the
 * program never sees other nodes, or other priorities of them, than its own. It may not use the
 * graph in another thread meanwhile, by CUDA's rules.
 */
#include <stdlib.h>
#include <string.h>
#include "code/code.h"

static void lift_node(struct gi_lifted *l, const struct gi_ctx *cx, CUgraphNode node)
{
	CUkernelNodeAttrValue value;
	struct gi_lifted_node *grown;
	int asked;

	memset(&value, 0, sizeof(value));
	if (gi_real.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value))
		return;
	asked = value.priority;
	value.priority = asked > cx->least || asked < cx->greatest ? asked :
			 gi_lift_priority(cx, asked);
	if (value.priority == asked)
		return;
	if (l->n == l->room) {
		grown = realloc(l->nodes, (2 * l->room + 64) * sizeof(*grown));
		if (!grown)
			return;
		l->nodes = grown;
		l->room = 2 * l->room + 64;
	}
	if (!gi_real.cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value))
		l->nodes[l->n++] = (struct gi_lifted_node){ node, asked };
}

/* Bodies of conditional nodes are not reached: the driver does not return them. */
static void lift_graph(struct gi_lifted *l, const struct gi_ctx *cx, CUgraph graph)
{
	CUgraphNode *nodes = NULL;
	CUgraphNodeType type;
	CUgraph child;
	size_t n = 0, i;

	if (!gi_real.cuGraphGetNodes(graph, NULL, &n) && n)
		nodes = calloc(n, sizeof(*nodes));
	if (!nodes || gi_real.cuGraphGetNodes(graph, nodes, &n))
		n = 0;
	for (i = 0; i < n; i++) {
		if (gi_real.cuGraphNodeGetType(nodes[i], &type))
			continue;
		if (type == CU_GRAPH_NODE_TYPE_KERNEL)
			lift_node(l, cx, nodes[i]);
		else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
			 !gi_real.cuGraphChildGraphNodeGetGraph(nodes[i], &child))
			lift_graph(l, cx, child);
	}
	free(nodes);
}

struct gi_lifted gi_nodes_lift(CUgraph graph, bool lift)
{
	struct gi_lifted l = { .lifted = lift };
	struct gi_ctx *cx = lift ? gi_current() : NULL;

	if (cx)
		lift_graph(&l, cx, graph);
	return l;
}

void gi_nodes_restore(struct gi_lifted *l)
{
	CUkernelNodeAttrValue value;

	while (l->n) {
		memset(&value, 0, sizeof(value));
		value.priority = l->nodes[--l->n].asked;
		gi_real.cuGraphKernelNodeSetAttribute(l->nodes[l->n].node,
						      CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
	}
	free(l->nodes);
	l->nodes = NULL;
}
