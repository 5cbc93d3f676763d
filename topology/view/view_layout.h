/* Where each vertex of one host stands in its picture. Private to topology/view/.
 *
 * The PCI trees below the CPUs stand beside each other as panels, GPUs and NICs in one row at their feet, and as many
 * panels in a line as fit; lines stand below each other.
 */
#ifndef STEPSIM_TOPOLOGY_VIEW_VIEW_LAYOUT_H
#define STEPSIM_TOPOLOGY_VIEW_VIEW_LAYOUT_H

#include "topology/graph/graph.h"

struct spot {
	int32_t parent, parent_link; /* in the PCI tree; -1: a root */
	int32_t depth, panel;        /* panel -1: drawn once a line, or not at all (NVLink switches, the network) */
	double x, y, w, h;           /* of the box: left, top */
};

struct panel {
	int32_t root, line;
	double x, w;
};

struct line_of_panels {
	double x0, x1; /* its panels */
	double top, leaves, nvlink, network,
		end; /* y of the row of CPUs, of GPUs and NICs, of the zones below them, and of its end */
	double arcs; /* height of the zone of NVLinks between GPUs */
	bool has_network;
	bool barred; /* a bar of NVLinks between the GPUs and the network: the NICs' wire goes around it */
};

struct picture {
	const struct graph *g;
	struct spot *spot; /* one a vertex */
	VEC(struct panel) panel;
	VEC(struct line_of_panels) line;
	bool compact;  /* more leaves than fit with words in them: labels stand upright, details are left out */
	bool switched; /* there are NVLink switches */
	size_t direct; /* links between GPUs */
	bool bundled;  /* too many of those to draw each: one bar stands for them */
	double narrowest[VERTEX_KINDS]; /* box of each kind: boxes of one kind are named alike */
	double width, height;
};

#define LAYOUT_MARGIN 24.0
#define LAYOUT_ARCS 48  /* more links between GPUs are bundled; 8 GPUs in all pairs have 28 */
#define LAYOUT_BAR 34.0 /* height of NVLink switches and of the network */

/* How far below the GPUs an NVLink between two that stand at these x hangs. */
double picture_arc_depth(double from, double to);

enum status picture_make(const struct graph *g, struct picture *out, struct error *e);
void picture_free(struct picture *l);

#endif
