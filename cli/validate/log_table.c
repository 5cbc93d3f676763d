/* Outputs of nccl-tests as a table of collectives: the columns of published tables, one row a size. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "cli/validate/validate.h"
#include "topology/catalogue/device.h"
#include "topology/catalogue/system.h"

struct writing {
	const nccl_logs *logs;
	const char *system; /* NULL: what the logs say */
};

static void cell(const char *text, FILE *out)
{
	fputs(",\"", out);
	for (; *text; text++)
		fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
	fputc('"', out);
}

/* The file's name without folder and ending. */
static void name_log(const char *path, char out[64])
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	snprintf(out, 64, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* The column intra where the GPU alone says it: those whose hosts come with NVLink switches. Others: LOG_INTRA. */
static const char *joined(const struct nccl_log *l)
{
	char id[DEVICE_ID] = "", line[160];
	struct system_spec s;
	struct error none = {0};
	if (device_by_shown_name(l->gpu, 0, id, &none) || !id[0])
		return LOG_INTRA;
	snprintf(line, sizeof line, "gpu:8 %s", id);
	return system_load(line, &s, &none) == ST_OK && s.fabric == FABRIC_NVSWITCH ? "NVSwitch" : LOG_INTRA;
}

static void write_log(const struct nccl_log *l, const char *system, int64_t *before, FILE *out)
{
	char name[64];
	const char *intra = joined(l);
	name_log(l->path, name);
	for (size_t i = 0; i < l->rows.n; i++) {
		const struct nccl_log_row *row = &l->rows.at[i];
		fprintf(out, "\"%s-%" PRId64 "\",%s", name, ++*before, l->collective);
		cell(l->gpu, out);
		fprintf(out, ",%" PRId64 ",%" PRId64 ",%s,%s,%d.%d.%d,%" PRIu64 ",%s,%.9g,%s", l->ranks, l->hosts,
			intra, l->transport, l->version / 10000, l->version / 100 % 100, l->version % 100, row->bytes,
			row->type, 1e6 * row->time_s, l->one_process ? "true" : "false");
		cell(system ? system : "", out);
		cell(l->shared ? "ranks share a GPU: their times say nothing of the links" : "", out);
		fputc('\n', out);
	}
}

static void write_table(const void *of, FILE *out)
{
	const struct writing *w = of;
	fputs("id,collective,gpu,n_gpus,n_nodes,intra,inter,nccl_version,bytes,dtype,time_us_outofplace,one_process,"
	      "system,use\n",
		out);
	int64_t before = 0;
	for (size_t i = 0; i < w->logs->n; i++) {
		if (i && strcmp(w->logs->at[i].path, w->logs->at[i - 1].path) != 0)
			before = 0;
		write_log(&w->logs->at[i], w->system, &before, out);
	}
}

enum status log_table(const nccl_logs *logs, const char *system, struct csv *out, struct error *e)
{
	const struct writing w = {logs, system};
	char *text = NULL;
	size_t len = 0;
	enum status st = text_of(write_table, &w, "the rows of the logs", &text, &len, e);
	if (st) {
		free(text);
		return st;
	}
	return csv_parse(text, len, logs->at[0].path, out, e);
}
