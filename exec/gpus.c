#include "exec/gpus.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/version.h"
#include "exec/calibrate.h"

bool gpus_here(void)
{
	const struct cuda_room *room;
	struct cuda_facts facts;
	struct error ignored = {0};
	/* NVIDIA's driver makes this file; without it opening the libraries would cost half a second to find nothing. */
	if (access("/dev/nvidiactl", F_OK) != 0 || cuda_room_open(&room, &ignored))
		return false;
	room->facts(&facts);
	return facts.devices > 0;
}

/* One GPU a rank by local rank; CUDA_VISIBLE_DEVICES has been heeded by CUDA itself. */
static enum status choose_gpu(struct session *s, struct gpus *g, bool share_gpu, struct error *e)
{
	const struct session_info *info = &s->info;
	struct cuda_facts facts;
	enum status st = cuda_room_open(&g->room, e);
	if (st)
		return st;
	g->room->facts(&facts);
	g->doubles = facts.doubles;
	if (facts.devices < 1)
		return error_set(e, ST_RUN, "no CUDA device on %s: %s", info->host, facts.why_none[0] ? facts.why_none : "none is visible");
	g->shared = info->ranks_per_host > facts.devices;
	if (g->shared && !share_gpu)
		return error_set(e, ST_RUN, "%" PRId64 " ranks on %s, which has %d GPU%s: start at most one rank a GPU, or set run.share_gpu for a run that checks correctness and measures nothing", info->ranks_per_host, info->host,
		                 facts.devices, facts.devices == 1 ? "" : "s");
	g->device = (int)(info->local_rank % facts.devices);
	if ((st = g->room->gpu(g->device, &g->gpu, e)))
		return st;
	if (g->gpu.in_use && !share_gpu)
		return error_set(e, ST_RUN, "GPU %d of %s (%s) is used by another process: times would mean nothing (run.share_gpu allows it)", g->device, info->host, g->gpu.name);
	return ST_OK;
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
	enum status st = s->info.rank == 0 ? g->room->nccl_id(id, &why) : ST_OK;
	st = session_agree(s, st, &why);
	if (!st && (st = session_broadcast(s, id, sizeof id, e)))
		return st;
	if (!st)
		st = session_agree(s, g->room->nccl_world(id, s->info.ranks, s->info.rank, g->device, g->timeout_s, &g->world, &why), &why);
	if (st) {
		comm_destroy(&g->world);
		if (s->info.rank == 0)
			log_warn("NCCL cannot serve: %s; collectives go through host memory and MPI, and their times say nothing about NCCL", why.text);
	}
	return ST_OK;
}

enum status session_use_gpus(struct session *s, bool share_gpu, double timeout_s, struct error *e)
{
	struct gpus *g = calloc(1, sizeof *g);
	enum status st = g ? ST_OK : error_nomem(e, "the rank's GPU");
	if (g)
		g->timeout_s = timeout_s;
	watchdog_arm(s->watchdog, "set-up of the GPUs");
	if (!st)
		st = choose_gpu(s, g, share_gpu, e);
	if ((st = session_agree(s, st, e)) || (st = session_agree(s, join_world(s, g, e), e))) {
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
	struct gpus *g = s->gpus;
	int64_t member = s->info.rank / stride % size;
	if (g->world.ops)
		return g->room->nccl_split(&g->world, (int32_t)(s->info.rank - member * stride), (int32_t)member, out, e);
	struct comm host = {0};
	enum status st = comm_create_mpi(s, size, stride, &host, e);
	if (!st && (st = g->room->staged(&host, g->timeout_s, out, e)))
		comm_destroy(&host);
	return st;
}

/* Versions as the libraries encode them (cli/version.c). */
void gpus_profile_key(const struct gpus *g, struct profile_key *k)
{
	const struct work_device d = {.gpu = true, .sms = g->gpu.sms};
	struct cuda_facts f;
	g->room->facts(&f);
	snprintf(k->stepsim, sizeof k->stepsim, "%s, grid %08x", STEPSIM_VERSION, calibration_checksum(&d));
	snprintf(k->backend, sizeof k->backend, "cuda");
	snprintf(k->cpu, sizeof k->cpu, "%s, %d SMs", g->gpu.name, g->gpu.sms);
	snprintf(k->mpi, sizeof k->mpi, "NCCL %d.%d.%d, driver %d.%d", f.nccl / 10000, f.nccl / 100 % 100, f.nccl % 100, f.driver / 1000, f.driver % 1000 / 10);
	snprintf(k->blas, sizeof k->blas, "cuBLASLt %d, cuDNN %d.%d.%d", f.cublas, f.cudnn / 10000, f.cudnn / 100 % 100, f.cudnn % 100);
	snprintf(k->binding, sizeof k->binding, "one GPU a rank");
	k->cores_per_rank = 1;
}

void gpus_close(struct gpus *g)
{
	if (!g)
		return;
	comm_destroy(&g->world);
	free(g);
}
