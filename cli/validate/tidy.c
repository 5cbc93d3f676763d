/* Cells of published tables as people write them: blanks around, words for nothing, numbers with separators. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/quantity.h"
#include "cli/validate/validate.h"

/* ---- nothing ---- */

static const char *const nothing[] = {"-", "--", "---", "\xe2\x80\x93" /* en dash */, "\xe2\x80\x94" /* em dash */,
	"N/A", "NA", "n.a.", "NaN", "null", "?", "unknown", "not reported", "not printed", "not given", "unspecified"};

static bool is_nothing(const char *cell)
{
	size_t i = 0;
	while (i < COUNT(nothing) && strcasecmp(cell, nothing[i]) != 0)
		i++;
	return i < COUNT(nothing);
}

/* Returns the cell without blanks around it, for which its end is overwritten. */
static char *trim(char *cell)
{
	cell += strspn(cell, " \t");
	size_t n = strlen(cell);
	while (n > 0 && strchr(" \t\r", cell[n - 1]))
		n--;
	cell[n] = '\0';
	return cell;
}

/* ---- numbers ---- */

enum kind { PLAIN, LENGTH, RATE, TIME, GIGABYTES };

static const struct {
	const char *column;
	enum kind kind;
} numbers[] = {{"n_gpus", PLAIN}, {"gpus_per_node", PLAIN}, {"n_layers", PLAIN}, {"d_model", PLAIN}, {"n_heads", PLAIN},
	{"n_kv_heads", PLAIN}, {"d_ff", PLAIN}, {"vocab", PLAIN}, {"seq_len", LENGTH}, {"global_batch_seqs", PLAIN},
	{"micro_batch_seqs", PLAIN}, {"grad_accum", PLAIN}, {"dp", PLAIN}, {"tp", PLAIN}, {"pp", PLAIN}, {"vp", PLAIN},
	{"cp", PLAIN}, {"ep", PLAIN}, {"lora_rank", PLAIN}, {"step_time_s", TIME}, {"tokens_per_s", RATE},
	{"tokens_per_s_per_gpu", RATE}, {"mem_gb", GIGABYTES}};

/* Returns the entry of `numbers`; COUNT(numbers): it is no column of numbers. */
static size_t number_column(const char *column)
{
	size_t i = 0;
	while (i < COUNT(numbers) && strcmp(numbers[i].column, column) != 0)
		i++;
	return i;
}

void cells_tidy(struct csv *t)
{
	for (size_t i = 0; i < t->rows * t->columns; i++) {
		char *cell = trim(t->cell[i]);
		const char *column = t->name[i % t->columns];
		/* A table that has no virtual stages there says so: blank is what its framework does. */
		if (is_nothing(cell) || (strcasecmp(cell, "none") == 0 && number_column(column) < COUNT(numbers)))
			strcpy(cell, strcmp(column, "vp") == 0 ? "1" : "");
		t->cell[i] = cell;
	}
}

#define NUMBER 48

/* Copies a number without the commas between its thousands; false: it is too long, or a comma stands elsewhere. */
static bool without_commas(const char *cell, char out[NUMBER])
{
	size_t n = 0;
	const char *dot = strchr(cell, '.');
	for (const char *s = cell; *s; s++) {
		const bool thousands = *s == ',' && s > cell && isdigit((unsigned char)s[-1]) && (!dot || s < dot) &&
		                       strspn(s + 1, "0123456789") == 3;
		if (n + 1 == NUMBER || (*s == ',' && !thousands))
			return false;
		if (*s != ',')
			out[n++] = *s;
	}
	out[n] = '\0';
	return true;
}

/* Cuts the word off the end of a number, whatever the case; false: it does not end so. */
static bool cut(char *number, const char *word)
{
	const size_t n = strlen(number), len = strlen(word);
	if (n <= len || strcasecmp(number + n - len, word) != 0)
		return false;
	number[n - len] = '\0';
	trim(number);
	return true;
}

static bool parse(const char *cell, enum kind kind, double *out)
{
	char number[NUMBER], *end;
	cell += strspn(cell, "~"); /* about */
	if (!without_commas(cell, number))
		return false;
	static const char *const words[] = {"GPUs", "GPU", "tokens", "sequences", "seqs", "layers", "heads", "x"};
	for (size_t i = 0; i < COUNT(words); i++)
		cut(number, words[i]);
	double factor = 1;
	if (kind == LENGTH && cut(number, "K")) /* 8K is 8192 tokens, 128K 131072 */
		factor = 1024;
	else if (kind == RATE)
		factor = cut(number, "K") ? 1e3 : cut(number, "M") ? 1e6 : 1;
	else if (kind == GIGABYTES)
		cut(number, "GB");
	if (kind == TIME && isalpha((unsigned char)number[strlen(number) - (*number != '\0')]))
		return !quantity_parse(number, UNIT_SECOND, out, NULL) && *out >= 0;
	*out = strtod(number, &end) * factor;
	return isdigit((unsigned char)*number) && !*end && isfinite(*out) && (kind != PLAIN || *out == floor(*out)) &&
	       !strpbrk(number, "xX");
}

double cell_number(const struct csv *t, size_t row, const char *column)
{
	double value = 0;
	const size_t i = number_column(column);
	return parse(csv_get(t, row, column), i < COUNT(numbers) ? numbers[i].kind : PLAIN, &value) ? value : 0;
}

int64_t cell_whole(const struct csv *t, size_t row, const char *column)
{
	return (int64_t)fmax(-1e15, fmin(1e15, cell_number(t, row, column)));
}

enum status cells_check_numbers(const struct csv *t, size_t row, struct error *e)
{
	static const char *const accepted[] = {[PLAIN] = "a whole number, 1024 or 1,024",
		[LENGTH] = "a length, 8192 or 8K",
		[RATE] = "a rate, 3,700 or 3.7k",
		[TIME] = "a time, 1.25 (seconds) or 350 ms",
		[GIGABYTES] = "a number of GB"};
	for (size_t i = 0; i < COUNT(numbers); i++) {
		const char *cell = csv_get(t, row, numbers[i].column);
		double value;
		if (*cell && !parse(cell, numbers[i].kind, &value))
			return error_set(e, ST_INPUT, "%s: '%.40s' is no number (accepted: %s)", numbers[i].column,
				cell, accepted[numbers[i].kind]);
	}
	return ST_OK;
}
