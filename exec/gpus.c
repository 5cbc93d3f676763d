#include "exec/gpus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/version.h"
#include "exec/calibrate/calibrate.h"
#include "topology/catalogue/parameters.h"
#include "topology/discover/driver.h"

bool gpus_here(void)
{
	const struct cuda_backend *backend;
	struct cuda_facts facts = {0};
	struct driver_facts driver;
	struct error why = {0};
	/* Without a driver opening the libraries would cost half a second to find nothing. */
	if (!driver_shows_gpus(&driver))
		return false;
	if (!cuda_backend_open(&backend, &why)) {
		backend->facts(&facts);
		if (facts.devices > 0)
			return true;
	}
	const char *reason = why.text[0] ? why.text : facts.why_none[0] ? facts.why_none : "CUDA shows no device";
	if (getenv("CUDA_VISIBLE_DEVICES") && !why.text[0])
		log_detail("CUDA_VISIBLE_DEVICES=%s hides the GPUs (%s)", getenv("CUDA_VISIBLE_DEVICES"), reason);
	else
		log_warn("the GPUs here are not used, cores are (%s%s%s): %s", driver.shown,
			driver.version[0] ? ", driver " : "", driver.version, reason);
	return false;
}

/* Each lane needs a hardware queue of its own: with fewer (CUDA shows 8, Megatron-LM's users set 1) a stream whose turn
 * has not come holds up another behind it, and stages that wait for each other's messages wait for ever. Read when CUDA
 * starts. */
static void part_queues(void) { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }

/* One GPU a rank by local rank: the r-th of those that CUDA shows this process, which has heeded CUDA_VISIBLE_DEVICES
 * and CUDA_DEVICE_ORDER. A wrapper may have shown each rank another one. */
static enum status choose_gpu(struct session *s, struct gpus *g, struct error *e)
{
	const struct session_info *info = &s->info;
	struct cuda_facts facts;
	part_queues();
	enum status st = cuda_backend_open(&g->backend, e);
	if (st)
		return st;
	g->backend->facts(&facts);
	g->doubles = facts.doubles;
	if (facts.devices < 1)
		return error_set(e, ST_RUN, "no CUDA device on %s: %s", info->host,
			facts.why_none[0] ? facts.why_none : "none is visible");
	g->device = (int)(info->local_rank % facts.devices);
	return g->backend->address(g->device, g->gpu.pci, e);
}

/* Ranks may see different devices under the same number: addresses say whether two of a host have one GPU. */
static enum status find_shared(struct session *s, char (*pci)[GRAPH_PCI], bool share_gpu, bool *shared, struct error *e)
{
	const struct session_info *info = &s->info;
	int64_t gpus = 0, twin[2] = {-1, -1};
	for (int64_t r = 0; r < info->ranks; r++) {
		int64_t k = 0;
		while (k < r && (s->host_of[k] != s->host_of[r] || strcmp(pci[k], pci[r]) != 0))
			k++;
		if (s->host_of[r] != s->host_of[info->rank])
			continue;
		gpus += k == r;
		if (k < r && twin[0] < 0) {
			twin[0] = k;
			twin[1] = r;
		}
	}
	enum status st = ST_OK;
	double any = twin[0] >= 0;
	if (twin[0] >= 0 && !share_gpu)
		st = error_set(e, ST_RUN,
			"%" PRId64 " ranks on %s, which has %" PRId64 " GPU%s for them (ranks %" PRId64 " and %" PRId64
			" both have %s): start at most one rank a GPU, or set run.share_gpu for a run that checks "
			"correctness and measures nothing",
			info->ranks_per_host, info->host, gpus, gpus == 1 ? "" : "s", twin[0], twin[1], pci[twin[1]]);
	if ((st = session_agree(s, st, e)) || (st = session_sum(s, &any, 1, e)))
		return st;
	*shared = any > 0;
	return ST_OK;
}

/* Each rank on its GPU, and at that GPU's cores before CUDA and NCCL make threads and host memory. */
static enum status take_gpu(struct session *s, struct gpus *g, bool share_gpu, struct error *e)
{
	const struct session_info *info = &s->info;
	char(*pci)[GRAPH_PCI] = calloc((size_t)info->ranks, sizeof *pci);
	enum status st = pci ? choose_gpu(s, g, e) : error_nomem(e, "the ranks' GPUs");
	if ((st = session_agree(s, st, e)) || (st = session_gather_all(s, g->gpu.pci, GRAPH_PCI, pci, e)) ||
		(st = find_shared(s, pci, share_gpu, &g->shared, e)) || (st = session_place_at_gpus(s, pci, e)))
		goto out;
	watchdog_arm(s->watchdog, "set-up of the GPUs");
	st = g->backend->gpu(g->device, &g->gpu, e);
	if (!st && g->gpu.in_use && !share_gpu)
		st = error_set(e, ST_RUN,
			"GPU %d of %s (%s) is used by another process: times would mean nothing (run.share_gpu allows "
			"it)",
			g->device, info->host, g->gpu.name);
	/* Times of ranks that share a GPU mean nothing, whatever its clocks do. */
	if (!st && !g->shared && !(st = g->backend->sampler_open(g->gpu.pci, &g->sampler, e)) && !g->sampler)
		log_detail("NVML does not answer: clocks and power of the GPUs are not known");
	st = session_agree(s, st, e);
out:
	free(pci);
	return st;
}

/* NCCL takes two ranks on one GPU only when they seem to be on different hosts. */
static void part_hosts(const struct session *s)
{
	char id[96];
	snprintf(id, sizeof id, "%s-%" PRId64, s->info.host, s->info.rank);
	setenv("NCCL_HOSTID", id, 1);
}

static enum status join_world(struct session *s, struct gpus *g, struct error *e)
{
	unsigned char id[NCCL_ID_B] = {0};
	struct error why = {0};
	if (s->info.ranks == 1)
		return ST_OK;
	if (g->shared)
		part_hosts(s);
	enum status st = s->info.rank == 0 ? g->backend->nccl_id(id, &why) : ST_OK;
	st = session_agree(s, st, &why);
	if (!st && (st = session_broadcast(s, id, sizeof id, e)))
		return st;
	if (!st)
		st = session_agree(s,
			g->backend->nccl_world(id, s->info.ranks, s->info.rank, g->device, g->timeout_s, &g->world,
				&why),
			&why);
	if (st) {
		comm_destroy(&g->world);
		if (s->info.rank == 0)
			log_warn("NCCL cannot serve: %s; collectives go through host memory and MPI, and their times "
				 "say nothing about NCCL",
				why.text);
	}
	return ST_OK;
}

static enum status set_work(struct gpus *g, struct error *e)
{
	const struct parameters *x;
	enum status st = parameters_load(&x, e);
	if (!st)
		g->work = (struct work_device){.gpu = true,
			.sms = g->gpu.sms,
			.tiles = {x->gpu.tile_step, x->gpu.tile, x->gpu.split_k, x->gpu.attention_tile}};
	return st;
}

enum status session_use_gpus(struct session *s, bool share_gpu, double timeout_s, struct error *e)
{
	struct gpus *g = calloc(1, sizeof *g);
	enum status st = session_agree(s, g ? ST_OK : error_nomem(e, "the rank's GPU"), e);
	if (!st)
		g->timeout_s = timeout_s;
	if (st || (st = take_gpu(s, g, share_gpu, e)) || (st = session_agree(s, set_work(g, e), e)) ||
		(st = session_agree(s, join_world(s, g, e), e))) {
		gpus_close(g);
		goto out;
	}
	s->gpus = g;
	s->info.gpus = true;
	s->info.gpu_shared = g->shared;
	s->info.gpu_doubles = g->doubles;
	s->info.gpu_mem_B = g->gpu.mem_B;
	snprintf(s->info.gpu, sizeof s->info.gpu, "%s", g->gpu.name);
out:
	watchdog_disarm(s->watchdog);
	return st;
}

enum status gpus_comm(struct session *s, int64_t size, int64_t stride, struct comm *out, struct error *e)
{
	int64_t member = s->info.rank / stride % size;
	return gpus_split(s, s->info.rank - member * stride, member, false, out, e);
}

enum status gpus_split(struct session *s, int64_t colour, int64_t key, bool pair, struct comm *out, struct error *e)
{
	struct gpus *g = s->gpus;
	if (g->world.ops)
		return g->backend->nccl_split(&g->world, (int32_t)colour, (int32_t)key, pair, out, e);
	struct comm host = {0};
	enum status st = comm_split_mpi(s, colour, key, &host, e);
	*out = (struct comm){0};
	if (!st && host.ops && (st = g->backend->staged(&host, g->timeout_s, out, e)))
		comm_destroy(&host);
	return st;
}

enum status gpus_meet(struct session *s, const struct comm *c, struct error *e)
{
	const struct gpus *g = s->gpus;
	struct cuda_scratch scratch = {0};
	if (!c->ops || !g->world.ops)
		return ST_OK;
	enum status st = g->backend->scratch_open(g->device, sizeof(float), &scratch, e);
	const struct comm_call call = {c->rank ? COLL_RECV : COLL_SEND, RED_SUM, DT_FP32, 1, scratch.memory[0],
		scratch.memory[1], scratch.queue};
	if (!st)
		st = comm_start(c, &call, e);
	for (bool idle = false, fine; !st && !idle;) {
		if (!(st = comm_test(c, &fine, e)))
			st = g->backend->scratch_idle(&scratch, &idle, e);
	}
	g->backend->scratch_close(&scratch);
	return st;
}

/* NCCL's own variable, for all the registrations that a program asks for (NCCL 2.19). */
static bool registers(const struct session *s)
{
	const char *set = getenv("NCCL_LOCAL_REGISTER");
	return s->gpus && s->gpus->world.ops && !s->gpus->shared && !(set && !strcmp(set, "0"));
}

static enum status register_all(struct gpus *g, const struct comm *comms, size_t n, void *at, uint64_t bytes,
	struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < n && !st; i++)
		if (comms[i].ops)
			st = g->backend->nccl_register(&comms[i], at, bytes, e);
	return st;
}

enum status gpus_register(struct session *s, const struct comm *comms, size_t n, void *at, uint64_t bytes,
	struct error *e)
{
	struct error why = {0};
	double without = 1;
	if (registers(s) && bytes > 0)
		without = register_all(s->gpus, comms, n, at, bytes, &why) != ST_OK;
	enum status st = session_sum(s, &without, 1, e);
	if (st || without == 0)
		return st;
	gpus_unregister(s, comms, n);
	if (registers(s) && bytes > 0)
		log_detail("NCCL copies what it sends: %s",
			why.status ? why.text : "another rank's memory is not registered");
	return ST_OK;
}

void gpus_unregister(struct session *s, const struct comm *comms, size_t n)
{
	for (size_t i = 0; i < n && registers(s); i++)
		if (comms[i].ops)
			s->gpus->backend->nccl_deregister(&comms[i]);
}

void gpus_sample_begin(struct session *s)
{
	if (s->gpus && s->gpus->sampler)
		s->gpus->backend->sample_begin(s->gpus->sampler);
}

void gpus_sample_end(struct session *s, struct gpu_samples *out)
{
	*out = (struct gpu_samples){0};
	if (s->gpus && s->gpus->sampler)
		s->gpus->backend->sample_end(s->gpus->sampler, out);
}

enum status gpus_clocks(struct session *s, const struct gpu_samples *mine, struct result_clocks *out, struct error *e)
{
	struct gpu_samples *all = malloc((size_t)s->info.ranks * sizeof *all);
	enum status st = session_agree(s, all ? ST_OK : error_nomem(e, "the samples of the GPUs' clocks"), e);
	if (!st && !(st = session_gather_all(s, mine, sizeof *mine, all, e)))
		clocks_sum(all, s->info.ranks, out);
	free(all);
	return st;
}

/* Versions as the libraries encode them (cli/version.c). */
void gpus_profile_key(const struct gpus *g, struct profile_key *k)
{
	struct cuda_facts f;
	g->backend->facts(&f);
	snprintf(k->stepsim, sizeof k->stepsim, "%s, grid %08x", STEPSIM_VERSION, calibration_checksum(&g->work));
	snprintf(k->backend, sizeof k->backend, "cuda");
	snprintf(k->cpu, sizeof k->cpu, "%s, %d SMs", g->gpu.name, g->gpu.sms);
	snprintf(k->mpi, sizeof k->mpi, "NCCL %d.%d.%d, driver %d.%d", f.nccl / 10000, f.nccl / 100 % 100, f.nccl % 100,
		f.driver / 1000, f.driver % 1000 / 10);
	snprintf(k->blas, sizeof k->blas, "cuBLASLt %d, cuDNN %d.%d.%d", f.cublas, f.cudnn / 10000, f.cudnn / 100 % 100,
		f.cudnn % 100);
	snprintf(k->binding, sizeof k->binding, "one GPU a rank");
	k->cores_per_rank = 1;
}

void gpus_close(struct gpus *g)
{
	if (!g)
		return;
	if (g->backend)
		g->backend->sampler_close(g->sampler);
	comm_destroy(&g->world);
	free(g);
}
