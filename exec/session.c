#include "exec/session.h"

#include <cblas.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/launch.h"
#include "base/version.h"
#include "exec/affinity.h"
#include "exec/calibrate/calibrate.h"
#include "exec/gpus.h"
#include "exec/mpi_check.h"

/* ---- waiting ---- */

#define YIELD_S 200e-6
#define SHORT_S 10e-3

enum status session_wait(struct session *s, MPI_Request *request, struct error *e)
{
	double begin_s = clock_s();
	for (;;) {
		int done = 0;
		enum status st = MPI_CHECK(MPI_Test(request, &done, MPI_STATUS_IGNORE), e);
		if (st || done)
			return st;
		double waited_s = clock_s() - begin_s;
		if (waited_s < YIELD_S && !s->info.oversubscribed) {
			sched_yield();
		} else {
			struct timespec nap = {0, waited_s < SHORT_S ? 20000 : 500000};
			nanosleep(&nap, NULL);
		}
	}
}

enum status session_barrier(struct session *s, struct error *e)
{
	MPI_Request r;
	enum status st = MPI_CHECK(MPI_Ibarrier(s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

enum status session_gather_all(struct session *s, const void *mine, size_t n, void *all, struct error *e)
{
	MPI_Request r;
	enum status st = MPI_CHECK(MPI_Iallgather(mine, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

static enum status reduce(struct session *s, double *x, size_t n, MPI_Op op, struct error *e)
{
	MPI_Request r;
	enum status st = MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, x, (int)n, MPI_DOUBLE, op, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

enum status session_sum(struct session *s, double *x, size_t n, struct error *e) { return reduce(s, x, n, MPI_SUM, e); }

enum status session_max(struct session *s, double *x, size_t n, struct error *e) { return reduce(s, x, n, MPI_MAX, e); }

enum status session_broadcast(struct session *s, void *bytes, size_t n, struct error *e)
{
	if (n > INT_MAX)
		return error_set(e, ST_RUN, "%zu bytes are too many for one broadcast", n);
	MPI_Request r;
	enum status st = MPI_CHECK(MPI_Ibcast(bytes, (int)n, MPI_BYTE, 0, s->world, &r), e);
	return st ? st : session_wait(s, &r, e);
}

enum status session_agree(struct session *s, enum status st, struct error *e)
{
	enum status worst = st, comm;
	int mine = (int)st, *all = malloc((size_t)s->info.ranks * sizeof *all);
	if (!all)
		return error_nomem(e, "the ranks' states");
	if ((comm = session_gather_all(s, &mine, sizeof mine, all, e))) {
		worst = comm;
		goto out;
	}
	int64_t speaker = -1;
	for (int64_t i = 0; i < s->info.ranks; i++) {
		if ((enum status)all[i] > worst)
			worst = (enum status)all[i];
		if (all[i] != ST_OK && speaker < 0)
			speaker = i;
	}
	if (speaker < 0)
		goto out;
	struct error told = {ST_OK, ""};
	if (speaker == s->info.rank && e)
		told = *e;
	MPI_Request r;
	if ((comm = MPI_CHECK(MPI_Ibcast(&told, (int)sizeof told, MPI_BYTE, (int)speaker, s->world, &r), e)) ||
		(comm = session_wait(s, &r, e))) {
		worst = comm;
		goto out;
	}
	if (!st)
		error_set(e, worst, "%s", told.text[0] ? told.text : "another rank failed without a word");
out:
	free(all);
	return worst;
}

/* ---- opening ---- */

/* Two ranks are on one host when they see the same processes and the same shared memory. The name alone does not say
 * it: containers and network namespaces share names. */
struct card {
	char host[64];
	uint64_t processes, memory;
	int64_t pid;
};

static struct card card_of_this_process(void)
{
	struct card c;
	memset(&c, 0, sizeof c);
	struct stat st;
	gethostname(c.host, sizeof c.host - 1);
	if (!stat("/proc/self/ns/pid", &st))
		c.processes = st.st_ino;
	if (!stat("/dev/shm", &st))
		c.memory = st.st_dev;
	c.pid = getpid();
	return c;
}

static bool same_host(const struct card *a, const struct card *b)
{
	return !strcmp(a->host, b->host) && a->processes == b->processes && a->memory == b->memory;
}

/* Numbers the hosts; returns the card of the first rank of this host. */
static const struct card *group_hosts(struct session *s, const struct card *cards)
{
	struct session_info *info = &s->info;
	int64_t leader = 0;
	for (int64_t r = 0; r < info->ranks; r++) {
		int64_t first = 0;
		while (!same_host(&cards[first], &cards[r]))
			first++;
		memcpy(s->host_name[r], cards[r].host, sizeof s->host_name[r]);
		s->host_of[r] = first == r ? (int32_t)info->hosts++ : s->host_of[first];
		if (same_host(&cards[r], &cards[info->rank])) {
			leader = first;
			info->local_rank += r < info->rank;
			info->ranks_per_host++;
		}
	}
	snprintf(info->host, sizeof info->host, "%s", cards[info->rank].host);
	return &cards[leader];
}

/* Open MPI's mpirun ends the job by itself when a rank leaves with a status other than 0, and MPI_Abort would print a
 * banner behind the reason. srun may go on. */
static void abort_job(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

/* The board of this host: its first rank makes it, the others open it, then the name goes. */
static enum status open_board(struct session *s, const struct card *leader, struct error *e)
{
	char name[96];
	snprintf(name, sizeof name, "/stepsim-%lld-%llx", (long long)leader->pid,
		(unsigned long long)leader->processes);
	bool first = s->info.local_rank == 0;
	enum status st = first ? board_create(name, s->info.ranks_per_host, &s->board, e) : ST_OK;
	st = session_agree(s, st, e);
	if (!st && !first)
		st = board_open(name, s->info.ranks_per_host, &s->board, e);
	st = session_agree(s, st, e);
	if (first && s->board)
		board_unlink(name);
	return st;
}

static enum status open_watchdog(struct session *s, double timeout_s, struct error *e)
{
	struct board_slot *slot = &s->board->slot[s->info.local_rank];
	slot->rank = s->info.rank;
	affinity_read(&slot->affinity);
	board_doing(slot, "set-up");
	atomic_store(&slot->pid, getpid());
	struct watchdog_site site = {.board = s->board,
		.slot = s->info.local_rank,
		.rank0_here = s->host_of[s->info.rank] == 0,
		.second_host = s->host_of[s->info.rank] == 1,
		.timeout_s = timeout_s,
		.heartbeat = s->heartbeat,
		.heard = s->info.hosts > 1,
		.end_job = s->under_mpirun ? NULL : abort_job};
	snprintf(site.host, sizeof site.host, "%s", s->info.host);
	return watchdog_start(&site, &s->watchdog, e);
}

enum status session_allowed(const struct session *s, char ***out, struct error *e)
{
	enum status st = ST_OK;
	bool asked = false;
	char **lists = calloc((size_t)s->board->slots, sizeof *lists);
	if (!lists)
		return error_nomem(e, "the ranks' CPUs");
	for (int64_t i = 0; i < s->board->slots; i++)
		asked |= s->board->slot[i].affinity.asked;
	for (int64_t i = 0; !st && i < s->board->slots; i++) {
		const struct affinity *a = &s->board->slot[i].affinity;
		st = affinity_text(asked ? a->own : a->launcher, &lists[i], e);
	}
	*out = lists;
	if (st) {
		session_allowed_free(s, lists);
		*out = NULL;
	}
	return st;
}

void session_allowed_free(const struct session *s, char **lists)
{
	for (int64_t i = 0; lists && i < s->board->slots; i++)
		free(lists[i]);
	free(lists);
}

/* The placement of this rank among those of its host. */
static enum status choose_placement(struct session *s, struct placement *out, struct error *e)
{
	struct session_info *info = &s->info;
	char **allowed = NULL;
	struct placement *placements = calloc((size_t)info->ranks_per_host, sizeof *placements);
	enum status st = placements ? ST_OK : error_nomem(e, "the ranks' places");
	if (st || (st = session_allowed(s, &allowed, e)) ||
		(st = placement_choose(NULL, (const char *const *)allowed, info->ranks_per_host, false, false,
			 placements, e)))
		goto out;
	*out = placements[info->local_rank];
out:
	session_allowed_free(s, allowed);
	free(placements);
	return st;
}

enum status session_bind(struct session *s, const struct placement *placement, const char *text, struct error *e)
{
	struct session_info *info = &s->info;
	enum status st = affinity_bind(placement->cores, e);
	if (st)
		return st;
	info->cores_per_rank = placement->n_cores;
	info->oversubscribed = placement->shared;
	s->host_cores = placement->host_cores;
	if (placement->shared)
		snprintf(info->binding, sizeof info->binding, "%lld ranks share %lld cores",
			(long long)info->ranks_per_host, (long long)placement->host_cores);
	else
		snprintf(info->binding, sizeof info->binding, "%lld of %lld cores a rank",
			(long long)placement->n_cores, (long long)placement->host_cores);
	memcpy(s->placement, text, PLACEMENT_TEXT);
	return ST_OK;
}

static enum status bind(struct session *s, struct error *e)
{
	char text[PLACEMENT_TEXT];
	struct placement *placement = calloc(1, sizeof *placement);
	enum status st = placement ? ST_OK : error_nomem(e, "the rank's place");
	if (st || (st = choose_placement(s, placement, e)))
		goto out;
	placement_text(placement, NULL, s->info.host, s->info.rank, text);
	st = session_bind(s, placement, text, e);
	/* The device's pool shares a product out among the cores, and each of its threads calls BLAS for its part:
	 * BLAS's own workers would spin on those cores after each call. */
	openblas_set_num_threads(1);
out:
	free(placement);
	return st;
}

enum status session_gather_placements(struct session *s, struct error *e)
{
	bool root = s->info.rank == 0;
	free(s->placements);
	s->placements = root ? malloc((size_t)s->info.ranks * sizeof *s->placements) : NULL;
	enum status st = session_agree(s, root && !s->placements ? error_nomem(e, "the ranks' places") : ST_OK, e);
	if (st)
		return st;
	MPI_Request r;
	st = MPI_CHECK(MPI_Igather(s->placement, PLACEMENT_TEXT, MPI_BYTE, s->placements, PLACEMENT_TEXT, MPI_BYTE, 0,
			       s->world, &r),
		e);
	return st ? st : session_wait(s, &r, e);
}

void session_name_libraries(struct session_info *info)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;
	MPI_Get_library_version(version, &length);
	version[strcspn(version, ",\n")] = 0;
	for (char *tab; (tab = strchr(version, '\t'));) /* MPICH's */
		*tab = ' ';
	snprintf(info->mpi, sizeof info->mpi, "%.63s", version);
	snprintf(info->blas, sizeof info->blas, "%.80s %.40s", openblas_get_config(), openblas_get_corename());
}

/* Algorithms of Open MPI 4 that a run takes unless its user has chosen others. By itself it reduces in place along a
 * binomial tree, whatever the size: each link is idle in one direction at a time. Its linear all-gather does the same
 * over TCP, where a rank's permission to send lies behind the data that it sends itself. These two send no more than
 * 2(n-1)/n and (n-1)/n of the buffer, both ways at once (Thakur, Rabenseifner, Gropp 2005, IJHPCA 19(1)). */
static const struct {
	const char *variable, *value;
} algorithms[] = {
	{"OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3"}, /* Rabenseifner's */
	{"OMPI_MCA_coll_libnbc_iallgather_algorithm", "2"}, /* recursive doubling; linear where n is no power of two */
};

/* Memory that ranks of a host share. System V's goes with the last of them, however it ends: Open MPI marks it so.
 * Files in /dev/shm, which it prefers, stay when mpirun is killed. mpirun passes its own preference as a hint. */
static void prefer_vanishing_memory(void)
{
	if (getenv("OMPI_MCA_shmem"))
		return;
	setenv("OMPI_MCA_shmem_sysv_priority", "90", 0);
	unsetenv("OMPI_MCA_shmem_RUNTIME_QUERY_hint");
}

static enum status start_mpi(struct session *s, struct error *e)
{
	struct launch launch;
	launch_read(&launch);
	if (launch.launched && !launch.pmi)
		return error_set(e, ST_RUN,
			"srun started %lld tasks that MPI cannot connect: mpirun does, or `srun --mpi=pmix`",
			(long long)launch.ranks);
	if (!launch.launched) {
		/* A process started by hand needs no runtime daemon beside it; nor does a single task of srun's, which
		 * Open MPI would take for one of a job. */
		setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
		unsetenv("SLURM_NODELIST");
	}
	for (size_t i = 0; i < COUNT(algorithms); i++)
		setenv(algorithms[i].variable, algorithms[i].value, 0);
	prefer_vanishing_memory();
	int provided = 0, rank, size;
	enum status st = MPI_CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided), e);
	if (st)
		return st;
	if (provided < MPI_THREAD_MULTIPLE)
		return error_set(e, ST_RUN, "this MPI library does not support MPI_THREAD_MULTIPLE");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if ((st = MPI_CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &s->world), e)))
		return st;
	MPI_Comm_set_errhandler(s->world, MPI_ERRORS_RETURN);
	MPI_Comm_rank(s->world, &rank);
	MPI_Comm_size(s->world, &size);
	s->info.rank = rank;
	s->info.ranks = size;
	return ST_OK;
}

enum status session_open(double timeout_s, struct session **out, struct error *e)
{
	enum status st = ST_OK;
	struct card *cards = NULL;
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return error_nomem(e, "the session");
	s->world = MPI_COMM_NULL;
	s->under_mpirun = getenv("OMPI_COMM_WORLD_SIZE") != NULL;
	if ((st = start_mpi(s, e)))
		goto out;
	cards = calloc((size_t)s->info.ranks, sizeof *cards);
	s->host_of = calloc((size_t)s->info.ranks, sizeof *s->host_of);
	s->host_name = calloc((size_t)s->info.ranks, sizeof *s->host_name);
	if (!cards || !s->host_of || !s->host_name) {
		st = error_nomem(e, "the list of ranks");
		goto out;
	}
	struct card mine = card_of_this_process();
	if ((st = session_gather_all(s, &mine, sizeof mine, cards, e)))
		goto out;
	const struct card *leader = group_hosts(s, cards);
	if ((st = open_board(s, leader, e)) || (st = session_agree(s, heartbeat_open(s, &s->heartbeat, e), e)) ||
		(st = session_agree(s, open_watchdog(s, timeout_s, e), e)))
		goto out;
	if ((st = session_agree(s, bind(s, e), e)) || (st = session_gather_placements(s, e)))
		goto out;
	session_name_libraries(&s->info);
	*out = s;
out:
	free(cards);
	if (st)
		session_close(s);
	return st;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	/* From here on this rank may go; the watchdog still looks after the others, whom MPI_Finalize waits for. */
	if (s->watchdog)
		atomic_store(&s->board->slot[s->info.local_rank].state, BOARD_FINISHED);
	gpus_close(s->gpus);
	if (s->world != MPI_COMM_NULL)
		MPI_Comm_free(&s->world);
	int initialized = 0;
	MPI_Initialized(&initialized);
	if (initialized)
		MPI_Finalize();
	watchdog_stop(s->watchdog);
	heartbeat_close(s->heartbeat);
	board_close(s->board);
	graph_destroy(s->graph);
	free(s->placements);
	free(s->host_of);
	free(s->host_name);
	free(s);
}

/* ---- small things ---- */

void session_timeout(struct session *s, double timeout_s) { watchdog_timeout(s->watchdog, timeout_s); }

const struct session_info *session_info(const struct session *s) { return &s->info; }

const char *session_placement(const struct session *s, int64_t rank) { return s->placements[rank]; }

const char *session_host_name(const struct session *s, int64_t rank) { return s->host_name[rank]; }

void session_profile_key(const struct session *s, struct profile_key *k)
{
	memset(k, 0, sizeof *k);
	k->ranks_per_host = s->info.ranks_per_host;
	k->ranks = s->info.ranks;
	if (s->gpus) {
		gpus_profile_key(s->gpus, k);
		return;
	}
	struct host_facts facts;
	struct error ignored = {ST_OK, ""};
	/* Without hwloc's facts the key still tells hosts apart, by name. */
	const char *cpu = host_facts_read(&facts, &ignored) ? s->info.host : facts.cpu;
	snprintf(k->stepsim, sizeof k->stepsim, "%s, grid %08x", STEPSIM_VERSION, calibration_checksum(NULL));
	snprintf(k->backend, sizeof k->backend, "host");
	snprintf(k->cpu, sizeof k->cpu, "%s", cpu);
	snprintf(k->mpi, sizeof k->mpi, "%s", s->info.mpi);
	snprintf(k->blas, sizeof k->blas, "%s", s->info.blas);
	snprintf(k->binding, sizeof k->binding, "%s", s->info.binding);
	k->cores_per_rank = s->info.cores_per_rank;
}
