/* The remarks that save money: what on this host runs below what was paid for, each with what it costs. A healthy
 * machine gets none.
 *
 * GPUs with the same complaint share one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "topology/catalogue/device.h"
#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/discover/nvml.h"
#include "topology/discover/remarks.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

/* nvmlClocksEventReasons: NVIDIA, NVML API Reference Guide. The table leaves out NVML_REASON_IDLE, which is rest, and
 * settings: applications_clocks 0x2, sync_boost 0x10, display_clocks 0x100. */
static const struct {
	uint64_t bit;
	const char *text;
} reasons[] = {
	{0x4, "the power cap"},
	{0x8, "a hardware slowdown"},
	{0x20, "temperature (driver)"},
	{0x40, "temperature (hardware)"},
	{0x80, "the power brake (supply)"},
};

/* Whether a lower PCIe generation and low clocks are rest. Known from the driver's mask or, where that lost the bit,
 * from clocks far below the most. */
static bool is_idle(const struct gpu_facts *f)
{
	return (f->throttle & NVML_REASON_IDLE) || (f->clock_Hz > 0 && f->clock_Hz < f->clock_max_Hz / 2);
}

/* The GPUs from `first` on that `same` holds for, as a list; they are done with. */
static size_t gather(struct advisor *a, size_t first, bool (*same)(const struct vertex *, const struct vertex *))
{
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		a->in[i] = i >= first && !a->done[i] && same(advisor_gpu(a, first), advisor_gpu(a, i));
		a->done[i] |= a->in[i];
		n += a->in[i];
	}
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return n;
}

static void forget(struct advisor *a) { memset(a->done, 0, a->n * sizeof *a->done); }

/* By the catalogue where it knows both: sources spell the same product differently. */
bool advisor_same_model(const struct vertex *x, const struct vertex *y)
{
	return x->gpu.device[0] && y->gpu.device[0] ? strcmp(x->gpu.device, y->gpu.device) == 0
	                                            : strcmp(x->name, y->name) == 0;
}

static bool same_slot(const struct vertex *x, const struct vertex *y)
{
	return x->gpu.pcie_gen == y->gpu.pcie_gen && x->gpu.pcie_gen_max == y->gpu.pcie_gen_max &&
	       x->gpu.pcie_width == y->gpu.pcie_width && x->gpu.pcie_width_max == y->gpu.pcie_width_max &&
	       is_idle(&x->gpu) == is_idle(&y->gpu);
}

static enum status remark_slots(struct advisor *a)
{
	enum status st = ST_OK;
	forget(a);
	for (size_t i = 0; i < a->n && !st; i++) {
		const struct gpu_facts *f = &advisor_gpu(a, i)->gpu;
		if (a->done[i])
			continue;
		size_t n = gather(a, i, same_slot);
		const char *runs = n == 1 ? "runs" : "run";
		int32_t top = f->pcie_gen_max > f->pcie_gen ? f->pcie_gen_max : f->pcie_gen;
		if (f->pcie_width > 0 && f->pcie_width < f->pcie_width_max)
			st = graph_remark(a->g, false, a->e,
				"%s %s PCIe x%d of x%d: %.3g GB/s each way instead of %.3g (reseat the card, check "
				"riser, slot and BIOS bifurcation)",
				a->list, runs, f->pcie_width, f->pcie_width_max, rate_pcie(top, f->pcie_width).Bps / GB,
				rate_pcie(top, f->pcie_width_max).Bps / GB);
		if (!st && f->pcie_gen > 0 && f->pcie_gen < f->pcie_gen_max && !is_idle(f))
			st = graph_remark(a->g, false, a->e,
				"%s %s PCIe generation %d of %d: %.3g GB/s each way instead of %.3g%s", a->list, runs,
				f->pcie_gen, f->pcie_gen_max, rate_pcie(f->pcie_gen, f->pcie_width).Bps / GB,
				rate_pcie(f->pcie_gen_max, f->pcie_width).Bps / GB,
				f->clock_Hz > 0 ? ""
						: " (an idle GPU may show a lower generation: look again under load)");
		/* Compares the rate of the slot with that of the card. */
		const struct device_spec *d = &a->spec[i];
		int32_t lanes = f->pcie_width_max > 0 ? f->pcie_width_max : f->pcie_width;
		if (st || f->pcie_gen_max <= 0 || lanes <= 0 || d->pcie_gen <= 0 || d->pcie_lanes <= 0)
			continue;
		double slot = rate_pcie(f->pcie_gen_max, lanes).Bps,
		       card = rate_pcie((int32_t)d->pcie_gen, (int32_t)d->pcie_lanes).Bps;
		if (slot < 0.9 * card)
			st = graph_remark(a->g, false, a->e,
				"%s: a slot of PCIe generation %d x%d under a card of generation %d x%d (%s): %.3g "
				"GB/s each way instead of %.3g",
				a->list, f->pcie_gen_max, lanes, (int)d->pcie_gen, (int)d->pcie_lanes, d->name,
				slot / GB, card / GB);
	}
	return st;
}

static bool same_power(const struct vertex *x, const struct vertex *y)
{
	return x->gpu.power_limit_W == y->gpu.power_limit_W && x->gpu.power_default_W == y->gpu.power_default_W;
}

static enum status remark_power(struct advisor *a)
{
	enum status st = ST_OK;
	forget(a);
	for (size_t i = 0; i < a->n && !st; i++) {
		const struct gpu_facts *f = &advisor_gpu(a, i)->gpu;
		if (a->done[i] || !(f->power_limit_W > 0) || !(f->power_limit_W < 0.98 * f->power_default_W))
			continue;
		size_t n = gather(a, i, same_power);
		st = graph_remark(a->g, false, a->e,
			"%s %s limited to %.0f W of %.0f W (-%.0f %%): large GEMMs clock down under the limit "
			"(nvidia-smi -pl %.0f restores it)",
			a->list, n == 1 ? "is" : "are", f->power_limit_W, f->power_default_W,
			100 * (1 - f->power_limit_W / f->power_default_W), f->power_default_W);
	}
	return st;
}

static uint64_t that_matter(uint64_t mask)
{
	uint64_t all = 0;
	for (size_t i = 0; i < COUNT(reasons); i++)
		all |= reasons[i].bit;
	return mask & all;
}

static bool same_throttle(const struct vertex *x, const struct vertex *y)
{
	return that_matter(x->gpu.throttle) == that_matter(y->gpu.throttle) && same_power(x, y) &&
	       !(y->gpu.throttle & NVML_REASON_IDLE);
}

/* Under load most GPUs run at the power cap that they were sold with, somewhat below their highest clock: that alone is
 * no fault. */
#define CLOCK_AT_CAP 0.7
static enum status remark_clocks(struct advisor *a)
{
	enum status st = ST_OK;
	forget(a);
	for (size_t i = 0; i < a->n && !st; i++) {
		const struct gpu_facts *f = &advisor_gpu(a, i)->gpu;
		uint64_t mask = that_matter(f->throttle);
		if (a->done[i] || !mask || (f->throttle & NVML_REASON_IDLE))
			continue;
		char why[128] = "", clocks[64] = "";
		double ratio = 1;
		size_t n = gather(a, i, same_throttle), used = 0;
		for (size_t k = 0; k < a->n; k++) {
			const struct gpu_facts *o = &advisor_gpu(a, k)->gpu;
			if (a->in[k] && o->clock_Hz > 0 && o->clock_max_Hz > 0 && o->clock_Hz / o->clock_max_Hz < ratio)
				ratio = o->clock_Hz / o->clock_max_Hz;
		}
		if (mask == 0x4 && ratio > CLOCK_AT_CAP && !(f->power_limit_W < 0.98 * f->power_default_W))
			continue;
		for (size_t k = 0; k < COUNT(reasons); k++)
			if (mask & reasons[k].bit)
				used += (size_t)snprintf(why + used, sizeof why - used, "%s%s", used ? ", " : "",
					reasons[k].text);
		if (ratio < 1)
			snprintf(clocks, sizeof clocks, ": SM clock down to %.0f %% of its most", 100 * ratio);
		st = graph_remark(a->g, false, a->e, "%s %s held down by %s%s%s", a->list, n == 1 ? "is" : "are", why,
			clocks, mask & 0xE0 ? " (look at cooling and supply)" : "");
	}
	return st;
}

static enum status remark_mixture(struct advisor *a)
{
	char text[160] = "";
	double slow = 0, fast = 0;
	size_t models = 0, used = 0;
	forget(a);
	for (size_t i = 0; i < a->n; i++) {
		if (!advisor_gpu(a, i)->name[0])
			return ST_OK; /* a source that does not name all GPUs */
		if (a->done[i])
			continue;
		gather(a, i, advisor_same_model);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.40s", used ? "; " : "", a->list,
			advisor_gpu(a, i)->name);
		used = used < sizeof text ? used : sizeof text - 1;
		double rate = a->spec[i].matrix_flop_per_s[DT_BF16] > 0 ? a->spec[i].matrix_flop_per_s[DT_BF16]
		                                                        : a->spec[i].vector_flop_per_s;
		slow = models == 0 || rate < slow ? rate : slow;
		fast = rate > fast ? rate : fast;
		models++;
	}
	if (models < 2)
		return ST_OK;
	if (slow > 0 && slow < fast)
		return graph_remark(a->g, false, a->e,
			"%s: synchronous training runs at the slowest's pace, %.0f %% of the fastest's", text,
			100 * slow / fast);
	return graph_remark(a->g, false, a->e, "%s: synchronous training runs at the slowest's pace", text);
}

enum status join_remarks(struct graph *g, struct error *e)
{
	static enum status (*const all[])(struct advisor *) = {remark_slots, remark_bridges, remark_pair, remark_switch,
		remark_peers, remark_nics, remark_mixture, remark_power, remark_clocks};
	struct advisor a = {.g = g, .n = g->gpu.n, .e = e};
	a.spec = calloc(a.n + 1, sizeof *a.spec);
	a.in = calloc(a.n + 1, sizeof *a.in);
	a.done = calloc(a.n + 1, sizeof *a.done);
	a.router = router_create(g);
	enum status st = a.spec && a.in && a.done && a.router ? ST_OK : error_nomem(e, "remarks");
	for (size_t i = 0; i < a.n && !st; i++)
		if (advisor_gpu(&a, i)->gpu.device[0])
			st = device_load(advisor_gpu(&a, i)->gpu.device, &a.spec[i], e);
	for (size_t i = 0; i < COUNT(all) && !st; i++)
		st = all[i](&a);
	router_destroy(a.router);
	free(a.spec);
	free(a.in);
	free(a.done);
	return st;
}
