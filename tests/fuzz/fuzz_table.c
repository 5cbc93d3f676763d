/* Mutation fuzzer of the reader of tables: fuzz_table SECONDS SEED. Built with the sanitizers.
 *
 * Each round takes one of the texts below, changes it a few times and reads it. A refusal must be one line with a
 * position; a table has a cell for each row and column, whose lines ascend, and refuses or finds each number.
 */
#include <string.h>

#include "base/array.h"
#include "base/csv.h"

#define TEXT_MAX 8192
#include "tests/fuzz/fuzz.h"
#define NAME "fuzz.csv"

static const char *const seeds[] = {
	"id,gpu,n_gpus,step_time_s,use\na,h100,8,1.25,tight\nb,a100,16,,order\n",
	("collective,gpu,n_gpus,bytes,time_us_outofplace\nall_reduce,h100,8,1048576,\"45.2\"\r\n"
	 "all_gather,h100,8,1e6,7\r\n"),
	"\"a,b\",\"c\"\"d\",e\n\"line\nend\",2,3\n,,\n",
	"id\n\n1\n",
};

static const char *const pieces[] = {",", "\"", "\"\"", "\n", "\r\n", "\r", " ", "id,", "1e999", "-1", "\xEF\xBB\xBF",
	"\xFF", "nan", "0x10", ";"};

static void mutate(struct text *t) { mutate_from(t, seeds, COUNT(seeds), pieces, COUNT(pieces)); }

static void check_refusal(const struct error *e)
{
	int line = 0, used = 0;
	check(e->status == ST_INPUT && !strchr(e->text, '\n'), "a refusal is wrong input, in one line");
	if (strstr(e->text, "zero byte"))
		return;
	check(sscanf(e->text, NAME ":%d: %n", &line, &used) == 1 && used > 0 && line >= 1 && e->text[used],
		"a message has a line and a text");
}

static void try_text(const struct text *t)
{
	static const char *const numbers[] = {"n_gpus", "step_time_s", "bytes", "time_us_outofplace", NULL};
	struct csv c = {0};
	struct error e = {ST_OK, ""};
	char *own = malloc(t->n + 1);
	if (!own)
		exit(1);
	memcpy(own, t->at, t->n);
	own[t->n] = 0;
	if (csv_parse(own, t->n, NAME, &c, &e)) {
		check_refusal(&e);
		return;
	}
	check(c.columns > 0, "a table has columns");
	for (size_t r = 0; r < c.rows; r++) {
		check(c.line[r] > (r ? c.line[r - 1] : 1), "lines ascend behind the header");
		for (size_t k = 0; k < c.columns; k++)
			check(c.cell[r * c.columns + k] != NULL &&
					csv_get(&c, r, c.name[k]) == c.cell[r * c.columns + csv_column(&c, c.name[k])],
				"each cell is found by its name");
	}
	if (csv_check_numbers(&c, numbers, &e))
		check_refusal(&e);
	csv_free(&c);
}

FUZZ_ONE(try_text)

int main(int argc, char **argv) { return fuzz_texts("fuzz_table", seeds, COUNT(seeds), mutate, try_text, argc, argv); }
