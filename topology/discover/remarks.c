/* The remarks that save money: what on this host runs below what was paid for, each with what it costs. A healthy machine gets none.
 *
 * GPUs with the same complaint share one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/catalogue/device.h"
#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define LIST 96
#define GB 1e9

/* nvmlClocksEventReasons: NVIDIA, NVML API Reference Guide. Not among them, because they are settings or rest: gpu_idle 0x1, applications_clocks 0x2, sync_boost 0x10, display_clocks 0x100. */
#define REASON_IDLE UINT64_C(0x1)
static const struct {
	uint64_t bit;
	const char *text;
} reasons[] = {
	{0x4, "the power cap"}, {0x8, "a hardware slowdown"}, {0x20, "temperature (driver)"}, {0x40, "temperature (hardware)"}, {0x80, "the power brake (supply)"},
};

struct advisor {
	struct graph *g;
	size_t n;              /* GPUs */
	struct device_spec *spec; /* of each; id "" where the catalogue has none */
	bool *in, *done;       /* scratch */
	char list[LIST];
	struct error *e;
};

static const struct vertex *gpu_at(const struct advisor *a, size_t i)
{
	return &a->g->vertex.at[a->g->gpu.at[i]];
}

/* Whether a lower PCIe generation and low clocks are rest. Known from the driver's mask or, where that lost the bit, from clocks far below the most. */
static bool is_idle(const struct gpu_facts *f)
{
	return (f->throttle & REASON_IDLE) || (f->clock_Hz > 0 && f->clock_Hz < f->clock_max_Hz / 2);
}

/* The GPUs from `first` on that `same` holds for, as a list; they are done with. */
static size_t gather(struct advisor *a, size_t first, bool (*same)(const struct vertex *, const struct vertex *))
{
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		a->in[i] = i >= first && !a->done[i] && same(gpu_at(a, first), gpu_at(a, i));
		a->done[i] |= a->in[i];
		n += a->in[i];
	}
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return n;
}

static void forget(struct advisor *a)
{
	memset(a->done, 0, a->n * sizeof *a->done);
}

/* By the catalogue where it knows both: sources spell the same product differently. */
static bool same_model(const struct vertex *x, const struct vertex *y)
{
	return x->gpu.device[0] && y->gpu.device[0] ? strcmp(x->gpu.device, y->gpu.device) == 0 : strcmp(x->name, y->name) == 0;
}

static bool same_slot(const struct vertex *x, const struct vertex *y)
{
	return x->gpu.pcie_gen == y->gpu.pcie_gen && x->gpu.pcie_gen_max == y->gpu.pcie_gen_max && x->gpu.pcie_width == y->gpu.pcie_width && x->gpu.pcie_width_max == y->gpu.pcie_width_max &&
	       is_idle(&x->gpu) == is_idle(&y->gpu);
}

static enum status remark_slots(struct advisor *a)
{
	enum status st = ST_OK;
	forget(a);
	for (size_t i = 0; i < a->n && !st; i++) {
		const struct gpu_facts *f = &gpu_at(a, i)->gpu;
		if (a->done[i])
			continue;
		size_t n = gather(a, i, same_slot);
		const char *runs = n == 1 ? "runs" : "run";
		int32_t top = f->pcie_gen_max > f->pcie_gen ? f->pcie_gen_max : f->pcie_gen;
		if (f->pcie_width > 0 && f->pcie_width < f->pcie_width_max)
			st = graph_remark(a->g, false, a->e, "%s %s PCIe x%d of x%d: %.3g GB/s each way instead of %.3g (reseat the card, check riser, slot and BIOS bifurcation)", a->list, runs, f->pcie_width, f->pcie_width_max,
					  rate_pcie(top, f->pcie_width).Bps / GB, rate_pcie(top, f->pcie_width_max).Bps / GB);
		if (!st && f->pcie_gen > 0 && f->pcie_gen < f->pcie_gen_max && !is_idle(f))
			st = graph_remark(a->g, false, a->e, "%s %s PCIe generation %d of %d: %.3g GB/s each way instead of %.3g%s", a->list, runs, f->pcie_gen, f->pcie_gen_max, rate_pcie(f->pcie_gen, f->pcie_width).Bps / GB,
					  rate_pcie(f->pcie_gen_max, f->pcie_width).Bps / GB, f->clock_Hz > 0 ? "" : " (an idle GPU may show a lower generation: look again under load)");
		/* What the slot can do against what the card can. */
		const struct device_spec *d = &a->spec[i];
		int32_t lanes = f->pcie_width_max > 0 ? f->pcie_width_max : f->pcie_width;
		if (st || f->pcie_gen_max <= 0 || lanes <= 0 || d->pcie_gen <= 0 || d->pcie_lanes <= 0)
			continue;
		double slot = rate_pcie(f->pcie_gen_max, lanes).Bps, card = rate_pcie((int32_t)d->pcie_gen, (int32_t)d->pcie_lanes).Bps;
		if (slot < 0.9 * card)
			st = graph_remark(a->g, false, a->e, "%s: a slot of PCIe generation %d x%d under a card of generation %d x%d (%s): %.3g GB/s each way instead of %.3g", a->list, f->pcie_gen_max, lanes, (int)d->pcie_gen,
					  (int)d->pcie_lanes, d->name, slot / GB, card / GB);
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
		const struct gpu_facts *f = &gpu_at(a, i)->gpu;
		if (a->done[i] || !(f->power_limit_W > 0) || !(f->power_limit_W < 0.98 * f->power_default_W))
			continue;
		size_t n = gather(a, i, same_power);
		st = graph_remark(a->g, false, a->e, "%s %s limited to %.0f W of %.0f W (-%.0f %%): large GEMMs clock down under the limit (nvidia-smi -pl %.0f restores it)", a->list, n == 1 ? "is" : "are", f->power_limit_W,
				  f->power_default_W, 100 * (1 - f->power_limit_W / f->power_default_W), f->power_default_W);
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
	return that_matter(x->gpu.throttle) == that_matter(y->gpu.throttle) && same_power(x, y) && !(y->gpu.throttle & REASON_IDLE);
}

/* Under load most GPUs run at the power cap that they were sold with, somewhat below their highest clock: that alone is no fault. */
#define CLOCK_AT_CAP 0.7
static enum status remark_clocks(struct advisor *a)
{
	enum status st = ST_OK;
	forget(a);
	for (size_t i = 0; i < a->n && !st; i++) {
		const struct gpu_facts *f = &gpu_at(a, i)->gpu;
		uint64_t mask = that_matter(f->throttle);
		if (a->done[i] || !mask || (f->throttle & REASON_IDLE))
			continue;
		char why[128] = "", clocks[64] = "";
		double ratio = 1;
		size_t n = gather(a, i, same_throttle), used = 0;
		for (size_t k = 0; k < a->n; k++) {
			const struct gpu_facts *o = &gpu_at(a, k)->gpu;
			if (a->in[k] && o->clock_Hz > 0 && o->clock_max_Hz > 0 && o->clock_Hz / o->clock_max_Hz < ratio)
				ratio = o->clock_Hz / o->clock_max_Hz;
		}
		if (mask == 0x4 && ratio > CLOCK_AT_CAP && !(f->power_limit_W < 0.98 * f->power_default_W))
			continue;
		for (size_t k = 0; k < COUNT(reasons); k++)
			if (mask & reasons[k].bit)
				used += (size_t)snprintf(why + used, sizeof why - used, "%s%s", used ? ", " : "", reasons[k].text);
		if (ratio < 1)
			snprintf(clocks, sizeof clocks, ": SM clock down to %.0f %% of its most", 100 * ratio);
		st = graph_remark(a->g, false, a->e, "%s %s held down by %s%s%s", a->list, n == 1 ? "is" : "are", why, clocks, mask & 0xE0 ? " (look at cooling and supply)" : "");
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
		if (!gpu_at(a, i)->name[0])
			return ST_OK; /* a source that does not name all GPUs */
		if (a->done[i])
			continue;
		gather(a, i, same_model);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.40s", used ? "; " : "", a->list, gpu_at(a, i)->name);
		used = used < sizeof text ? used : sizeof text - 1;
		double rate = a->spec[i].matrix_flop_per_s[DT_BF16] > 0 ? a->spec[i].matrix_flop_per_s[DT_BF16] : a->spec[i].vector_flop_per_s;
		slow = models == 0 || rate < slow ? rate : slow;
		fast = rate > fast ? rate : fast;
		models++;
	}
	if (models < 2)
		return ST_OK;
	if (slow > 0 && slow < fast)
		return graph_remark(a->g, false, a->e, "%s: synchronous training runs at the slowest's pace, %.0f %% of the fastest's", text, 100 * slow / fast);
	return graph_remark(a->g, false, a->e, "%s: synchronous training runs at the slowest's pace", text);
}

static bool has_nvlink(const struct graph *g, int32_t v)
{
	for (size_t i = 0; i < g->link.n; i++)
		if ((g->link.at[i].kind == LINK_NVLINK || g->link.at[i].kind == LINK_XGMI) && (g->link.at[i].a == v || g->link.at[i].b == v))
			return true;
	return false;
}

/* A dump that was cut does not show all links. */
static bool is_cut(const struct graph *g)
{
	size_t n = graph_entries(g);
	for (size_t i = 0; i < g->gpu.n && g->words; i++)
		for (size_t j = 0; j < g->gpu.n; j++)
			if (i != j && !g->words[i * n + j][0])
				return true;
	return false;
}

static double pair_Bps(const struct graph *g, int32_t a, int32_t b)
{
	struct route r;
	struct error ignored = {0};
	return graph_route(g, a, b, &r, &ignored) == ST_OK ? r.Bps : 0;
}

/* GPUs without any NVLink beside GPUs of the same name that have some. */
static enum status remark_bridges(struct advisor *a)
{
	size_t without = 0, with = 0, lone = 0;
	double joined = 0;
	if (is_cut(a->g))
		return ST_OK;
	for (size_t i = 0; i < a->n; i++) {
		a->in[i] = !has_nvlink(a->g, a->g->gpu.at[i]);
		without += a->in[i];
		lone = a->in[i] ? i : lone;
		if (!same_model(gpu_at(a, i), gpu_at(a, 0)))
			return ST_OK;
	}
	with = a->n - without;
	if (with == 0 || without == 0)
		return ST_OK;
	for (size_t i = 0; i < a->g->link.n; i++)
		if (a->g->link.at[i].kind == LINK_NVLINK && a->g->link.at[i].Bps > joined)
			joined = a->g->link.at[i].Bps;
	double alone = pair_Bps(a->g, a->g->gpu.at[lone], a->g->gpu.at[lone == 0 ? 1 : 0]);
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e, "%s %s no NVLink, the other %zu GPUs have: %.3g GB/s to their peers instead of %.3g (is a bridge missing or loose?)", a->list, without == 1 ? "has" : "have", with, alone / GB, joined / GB);
}

/* Fewer links to the NVLink switch than the others. */
static enum status remark_switch(struct advisor *a)
{
	double most = 0, least = 0;
	size_t n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < a->n; i++) {
			double sum = 0;
			for (size_t k = 0; k < a->g->link.n; k++) {
				const struct link *l = &a->g->link.at[k];
				if ((l->a == a->g->gpu.at[i] && a->g->vertex.at[l->b].kind == VERTEX_NVSWITCH) || (l->b == a->g->gpu.at[i] && a->g->vertex.at[l->a].kind == VERTEX_NVSWITCH))
					sum += l->Bps;
			}
			most = sum > most ? sum : most;
			a->in[i] = sum > 0 && sum < 0.99 * most;
			least = a->in[i] && (least == 0 || sum < least) ? sum : least;
			n += pass == 1 && a->in[i];
		}
	}
	if (n == 0 || is_cut(a->g))
		return ST_OK;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e, "%s %s fewer NVLinks to the switch than the others: %.3g GB/s instead of %.3g, and every collective waits for it", a->list, n == 1 ? "has" : "have", least / GB, most / GB);
}

static enum status remark_peers(struct advisor *a)
{
	double Bps = 0;
	bool any = false;
	memset(a->in, 0, a->n * sizeof *a->in);
	for (size_t i = 0; i < a->n; i++) {
		for (size_t j = i + 1; j < a->n; j++) {
			struct route r;
			struct error ignored = {0};
			if (graph_route(a->g, a->g->gpu.at[i], a->g->gpu.at[j], &r, &ignored) || !r.through_memory)
				continue;
			Bps = Bps > 0 && Bps < r.Bps ? Bps : r.Bps; /* the slowest pair's */
			a->in[i] = a->in[j] = any = true;
		}
	}
	if (!any)
		return ST_OK;
	join_gpu_list(a->list, sizeof a->list, a->in, a->n);
	return graph_remark(a->g, false, a->e, "%s: no peer-to-peer over PCIe (%s): what they exchange is written to host memory and read again, twice over PCIe, at %.3g GB/s on the farthest pair", a->list,
			    gpu_at(a, 0)->gpu.peer_known ? "the driver says so" : "the driver refuses it on these cards", Bps / GB);
}

/* Levels of GPU to NIC, nearest first. */
static int level(const char *word)
{
	static const char *const words[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(word, words[i]) == 0)
			return (int)i;
	return strcmp(word, "SOC") == 0 ? 4 : -1;
}

struct nearest {
	int level; /* -1: not known */
	int32_t nic;
	double Bps; /* SYS: of the way there */
};

static struct nearest nearest_nic(const struct advisor *a, size_t gpu)
{
	struct nearest best = {-1, -1, 0};
	for (size_t k = 0; k < a->g->nic.n; k++) {
		char word[GRAPH_WORD];
		struct error ignored = {0};
		if (graph_word(a->g, a->g->gpu.at[gpu], a->g->nic.at[k], word, &ignored))
			continue;
		int here = level(word);
		if (here < 0)
			return (struct nearest){-1, -1, 0};
		double Bps = here == 4 ? pair_Bps(a->g, a->g->gpu.at[gpu], a->g->nic.at[k]) : 0; /* of those across the socket, the fastest is what would be used */
		if (best.level < 0 || here < best.level || (here == best.level && Bps > best.Bps))
			best = (struct nearest){here, a->g->nic.at[k], Bps};
	}
	return best;
}

static bool same_cores(const struct vertex *x, const struct vertex *y)
{
	return (x->cores[0] && strcmp(x->cores, y->cores) == 0) || (x->numa >= 0 && x->numa == y->numa);
}

/* SYS is not always another socket: some processors show a domain for each root complex. It is taken for one only where GPUs of the same cores do not show it among themselves, and have no NIC nearer;
 * where no GPU is near a NIC, and the NIC's place is not known, only when such GPUs show other words of PCIe among themselves. */
static bool across_sockets(const struct advisor *a, const struct nearest *near, size_t gpu, bool any_near)
{
	const struct vertex *v = gpu_at(a, gpu), *nic = &a->g->vertex.at[near[gpu].nic];
	bool alike = true, told_apart = false;
	if (near[gpu].level != 4 || (v->numa >= 0 && nic->numa == v->numa))
		return false;
	for (size_t k = 0; k < a->n; k++) {
		char word[GRAPH_WORD];
		struct error ignored = {0};
		if (k == gpu)
			continue;
		alike &= same_cores(v, gpu_at(a, k));
		if (!same_cores(v, gpu_at(a, k)))
			continue;
		if (near[k].level >= 0 && near[k].level < 4)
			return false;
		if (graph_word(a->g, a->g->gpu.at[gpu], a->g->gpu.at[k], word, &ignored))
			continue;
		if (level(word) == 4)
			return false;
		told_apart |= level(word) >= 0;
	}
	return any_near || (v->numa >= 0 && nic->numa >= 0) || (alike && told_apart);
}

/* What the way crosses between CPUs, in words: parts of one package are NUMA nodes of it. */
static const char *crossed(const struct graph *g, int32_t a, int32_t b)
{
	struct route r;
	struct error ignored = {0};
	const char *what = "CPU socket or NUMA node";
	if (graph_route(g, a, b, &r, &ignored))
		return what;
	for (int32_t i = 0; i < r.n; i++) {
		const struct link *l = &g->link.at[r.link[i]];
		if (l->kind != LINK_SOCKET)
			continue;
		int32_t one = g->vertex.at[l->a].cpu.package, two = g->vertex.at[l->b].cpu.package;
		if (one >= 0 && two >= 0 && one != two)
			return "CPU socket";
		what = one >= 0 && one == two ? "NUMA node" : what;
	}
	return what;
}

static enum status remark_nics(struct advisor *a)
{
	struct nearest *near = calloc(a->n + 1, sizeof *near);
	size_t n = 0, first = 0;
	double good = 0;
	enum status st = near ? ST_OK : error_nomem(a->e, "nearest NICs");
	bool any_near = false;
	for (size_t i = 0; i < a->n && !st; i++) {
		near[i] = nearest_nic(a, i);
		any_near |= near[i].level >= 0 && near[i].level < 4;
	}
	for (size_t i = 0; i < a->n && !st; i++) {
		a->in[i] = across_sockets(a, near, i, any_near);
		first = a->in[i] && n == 0 ? i : first;
		n += a->in[i];
		if (near[i].level >= 0 && near[i].level < 4) {
			double here = pair_Bps(a->g, a->g->gpu.at[i], near[i].nic);
			good = here > good ? here : good;
		}
	}
	if (!st && n > 0) {
		const struct vertex *nic = &a->g->vertex.at[near[first].nic];
		double socket = near[first].Bps;
		if (!(good > 0))
			good = rate_pcie(gpu_at(a, first)->gpu.pcie_gen_max, gpu_at(a, first)->gpu.pcie_width).Bps;
		join_gpu_list(a->list, sizeof a->list, a->in, a->n);
		if (socket < 0.95 * good) /* else the NIC or its slot is the limit from either side */
			st = graph_remark(a->g, false, a->e, "%s reach%s no NIC without crossing to another %s (nearest: %s%s%s): %.3g GB/s%s over that link instead of %.3g from the same one", a->list, n == 1 ? "es" : "",
					  crossed(a->g, a->g->gpu.at[first], near[first].nic), nic->label, nic->name[0] ? " " : "", nic->name, socket / GB, n > 1 ? " for all of them" : "", good / GB);
	}
	free(near);
	return st;
}

enum status join_remarks(struct graph *g, struct error *e)
{
	static enum status (*const all[])(struct advisor *) = {remark_slots, remark_bridges, remark_switch, remark_peers, remark_nics, remark_mixture, remark_power, remark_clocks};
	struct advisor a = {.g = g, .n = g->gpu.n, .e = e};
	a.spec = calloc(a.n + 1, sizeof *a.spec);
	a.in = calloc(a.n + 1, sizeof *a.in);
	a.done = calloc(a.n + 1, sizeof *a.done);
	enum status st = a.spec && a.in && a.done ? ST_OK : error_nomem(e, "remarks");
	for (size_t i = 0; i < a.n && !st; i++)
		if (gpu_at(&a, i)->gpu.device[0])
			st = device_load(gpu_at(&a, i)->gpu.device, &a.spec[i], e);
	for (size_t i = 0; i < COUNT(all) && !st; i++)
		st = all[i](&a);
	free(a.spec);
	free(a.in);
	free(a.done);
	return st;
}
