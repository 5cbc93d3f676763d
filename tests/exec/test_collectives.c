/* Every collective, as an op of a role made by hand, through the host device, MPI and the verification of runs: mpirun
 * -np N test_collectives. Exit code 0 when every element is right. */
#include <stdio.h>
#include <stdlib.h>

#include "exec/host/device.h"
#include "exec/session.h"
#include "exec/verify.h"

#define ELEMENTS 12012 /* divides by 1 to 4, 6 and 7; not a whole number of the verification's pieces */
#define CONFIG \
	"model: {layers: 1, hidden: 32, heads: 4, vocab: 32, seq_len: 8}\n" \
	"train: {global_batch: 12, micro_batch: 1, dtype: fp32}\n" \
	"parallel: {strategy: ddp}\n"

static void broken(void *ctx, const char *text) { watchdog_fail(((struct session *)ctx)->watchdog, text); }

/* Buffer 0 is read, buffer 1 written. */
static bool fill_role(struct role *r)
{
	bool good = true;
	for (int i = 0; i < 2; i++)
		good = good && vec_push(&r->buffers, ((struct buffer){.component = COMP_BUFFERS,
							     .dtype = DT_FP32,
							     .bytes = 4 * ELEMENTS,
							     .persistent = true}));
	for (int c = 0; c < COLL_OF_GROUPS; c++) {
		struct op op = {.kind = OP_COLLECTIVE,
			.lane = LANE_COMM,
			.coll = (uint8_t)c,
			.dtype = DT_FP32,
			.out_dtype = DT_FP32,
			.group = DIM_DP,
			.micro = -1,
			.layer = -1,
			.bucket = -1,
			.what = "test",
			.collective = {ELEMENTS}};
		op.arg0 = (uint32_t)r->args.n;
		for (int a = 0; a < 2; a++)
			good = good && vec_push(&r->args, ((struct view){.buffer = a}));
		good = good && vec_push(&r->ops, op);
	}
	return good;
}

int main(void)
{
	struct error e = {ST_OK, ""};
	struct session *s = NULL;
	struct config config;
	struct program *p = NULL;
	struct role role = {0};
	struct device device = {0};
	uint64_t offsets[2] = {0, (4 * ELEMENTS + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN};
	struct layout layout = {.offset_B = offsets, .total_B = 2 * offsets[1]};
	enum status st = session_open(30, &s, &e);
	if (st)
		goto out;
	const struct session_info *info = session_info(s);
	struct device_job job = {.role = &role,
		.layout = &layout,
		.heads = 1,
		.loss_scale = 1,
		.beacon = watchdog_beacon(s->watchdog),
		.cores = info->cores_per_rank,
		.oversubscribed = info->oversubscribed,
		.broken = broken,
		.broken_ctx = s};
	if ((st = config_parse(CONFIG, sizeof CONFIG - 1, "test", NULL, 0, &config, &e)) ||
		(st = config_resolve(&config, info->ranks, &e)) || (st = program_build(&config, &p, &e)))
		goto out;
	st = fill_role(&role) ? comm_create_mpi(s, info->ranks, 1, &job.comm[LANE_COMM][DIM_DP], &e)
	                      : error_nomem(&e, "the role");
	if (st || (st = host_device_create(&device, &e)) || (st = device.ops->load(device.ctx, &job, &e)))
		goto out;
	watchdog_arm(s->watchdog, "verification");
	st = session_agree(s, verify_collectives(&p->mesh, &job, &device, info->rank, &e), &e);
	watchdog_disarm(s->watchdog);
	comm_destroy(&job.comm[LANE_COMM][DIM_DP]);
out:
	if (st)
		fprintf(stderr, "test_collectives: %s\n", e.text);
	device_destroy(&device);
	vec_free(&role.ops);
	vec_free(&role.args);
	vec_free(&role.buffers);
	program_destroy(p);
	session_close(s);
	return (int)st;
}
