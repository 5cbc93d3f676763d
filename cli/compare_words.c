#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/compare.h"

/* ---- systems ---- */

/* Cuts the size off "NAME@16", sixteen GPUs of NAME. */
static enum status cut_size(struct asked_system *a, struct error *e)
{
	char *at = strrchr(a->name, '@'), *end;
	if (!at)
		return ST_OK;
	a->gpus = strtol(at + 1, &end, 10);
	if (!isdigit((unsigned char)at[1]) || *end || a->gpus < 1 || a->gpus > 10000000)
		return error_set(e, ST_INPUT,
			"--systems %s: expected a number of GPUs from 1 to 10000000 behind @, such as dgx-h100@16",
			a->name);
	*at = '\0';
	return ST_OK;
}

static enum status add_system(const char *text, size_t len, asked_systems *out, struct error *e)
{
	struct asked_system a = {0};
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0)
		return error_set(e, ST_INPUT,
			"--systems: a name is empty; expected names, files or lines such as "
			"\"gpu:8 rtx4090\", separated by commas");
	if (len >= sizeof a.name)
		return error_set(e, ST_INPUT, "--systems %.40s...: longer than %zu characters", text,
			sizeof a.name - 1);
	memcpy(a.name, text, len);
	enum status st = cut_size(&a, e);
	if (!st && (st = system_load(a.name, &a.spec, e)))
		error_context(e, "--systems");
	if (!st && a.gpus && a.spec.nodes)
		st = error_set(e, ST_INPUT, "--systems %s@%lld: the line says how many hosts by itself (node:%lld)",
			a.name, (long long)a.gpus, (long long)a.spec.nodes);
	for (size_t i = 0; i < out->n && !st; i++)
		if (strcmp(out->at[i].name, a.name) == 0 && out->at[i].gpus == a.gpus)
			st = error_set(e, ST_INPUT, "--systems: %.*s stands twice", (int)len, text);
	if (!st && out->n == COMPARE_ROWS_MOST)
		st = error_set(e, ST_INPUT, "--systems: more than %d systems", COMPARE_ROWS_MOST);
	return st ? st : vec_push(out, a) ? ST_OK : error_nomem(e, "the systems");
}

enum status compare_read_systems(const char *const *lists, size_t n, asked_systems *out, struct error *e)
{
	enum status st =
		n ? ST_OK
		  : error_set(e, ST_INPUT,
			    "--systems A,B,... is missing: which systems are to be compared? (`stepsim list systems`)");
	for (size_t i = 0; i < n && !st; i++) {
		const char *p = lists[i];
		if (access(p, R_OK) == 0) {
			st = add_system(p, strlen(p), out, e);
			continue;
		}
		for (bool more = true; more && !st; p++) {
			size_t len = strcspn(p, ",");
			st = add_system(p, len, out, e);
			p += len;
			more = *p == ',';
		}
	}
	return st;
}

bool compare_asks_again(const asked_systems *asked, const struct asked_system *a)
{
	for (size_t i = 0; i < asked->n && a->gpus; i++)
		if (&asked->at[i] != a && strcmp(asked->at[i].name, a->name) == 0)
			return true;
	return false;
}

/* ---- the target ---- */

#define TARGET_MOST 1e18

/* Reads a quantity above 0, with or without blanks before its unit; sets *end behind it. The words "tokens" and "steps"
 * are none: they belong to what follows. */
static bool read_amount(const char *text, enum unit unit, double *out, const char **end)
{
	char *number_end, amount[64];
	struct error why;
	strtod(text, &number_end); /* finds the end alone: the quantity's own parser reads the number */
	const char *word = number_end + strspn(number_end, " ");
	const size_t letters = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	const bool counted = (letters == strlen("tokens") && strncmp(word, "tokens", letters) == 0) ||
	                     (letters == strlen("steps") && strncmp(word, "steps", letters) == 0);
	const char *stop = letters && !counted ? word + letters : number_end;
	if (snprintf(amount, sizeof amount, "%.*s", (int)(stop - text), text) >= (int)sizeof amount)
		return false;
	why = (struct error){0};
	const enum status st = unit == UNIT_SECOND ? quantity_parse_with_unit(amount, unit, out, &why)
	                                           : quantity_parse(amount, unit, out, &why);
	*end = stop;
	return !st && *out > 0;
}

bool compare_read_tokens(const char *text, double *tokens)
{
	const char *end = text;
	if (!read_amount(text, UNIT_TOKEN, tokens, &end))
		return false;
	end += strspn(end, " ");
	if (strncmp(end, "tokens", 6) == 0)
		end += 6;
	return !*end;
}

enum status compare_read_target(const char *text, double step_tokens, double *tokens, double *within_s, struct error *e)
{
	const char *p = text;
	*within_s = 0;
	while (*p == ' ')
		p++;
	if (!read_amount(p, UNIT_TOKEN, tokens, &p))
		goto wrong;
	if (*tokens > TARGET_MOST)
		return error_set(e, ST_INPUT, "--target %s: more than 1e18 tokens or steps", text);
	while (*p == ' ')
		p++;
	const bool steps = strncmp(p, "steps", 5) == 0;
	if (!steps && strncmp(p, "tokens", 6) != 0)
		goto wrong;
	if (steps && !(step_tokens > 0))
		return error_set(e, ST_INPUT,
			"--target %s: with train.batch_per_gpu each system's steps differ: give the tokens", text);
	p += steps ? 5 : 6;
	*tokens *= steps ? step_tokens : 1;
	while (*p == ' ')
		p++;
	if (!*p)
		return ST_OK;
	if (strncmp(p, "in ", 3) != 0)
		goto wrong;
	p += 3;
	while (*p == ' ')
		p++;
	if (!read_amount(p, UNIT_SECOND, within_s, &p))
		goto wrong;
	while (*p == ' ')
		p++;
	if (!*p)
		return ST_OK;
wrong:
	return error_set(e, ST_INPUT,
		"--target %s: expected \"TOKENS tokens in TIME\", such as \"15e12 tokens in 30d\", \"15e12 tokens\" or "
		"\"500k steps\"",
		text);
}
