/* Lists of Megatron-LM's command line, which it evaluates as Python: --linear-attention-freq "([1]*3+[0])*12" and
 * --moe-layer-freq "([0]*3+[1]*58)" have a number for each layer (megatron/training/arguments.py, moe_freq_type and
 * la_freq_type). A single number n stands for every n-th layer: the last of n has attention, the first experts. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "step/import/import.h"

#define LAYERS_MOST 512
#define NESTED 8

struct list {
	const char *at;
	char value[LAYERS_MOST + 1]; /* digits */
	size_t n;
	bool good;
};

static void blanks(struct list *l) { l->at += strspn(l->at, " "); }

static bool takes(struct list *l, char c)
{
	blanks(l);
	const bool found = *l->at == c;
	l->at += found;
	return found;
}

/* Reads "58" or "(61-3)". */
static long count(struct list *l)
{
	char *end;
	const bool brackets = takes(l, '(');
	blanks(l);
	long n = strtol(l->at, &end, 10);
	l->good &= isdigit((unsigned char)*l->at) != 0;
	l->at = end;
	while (brackets && l->good && (takes(l, '-') || takes(l, '+'))) {
		const bool minus = l->at[-1] == '-';
		blanks(l);
		const long more = strtol(l->at, &end, 10);
		l->good &= end != l->at && more >= 0 && more <= LAYERS_MOST;
		l->at = end;
		n += minus ? -more : more;
	}
	l->good &= (!brackets || takes(l, ')')) && n >= 0 && n <= LAYERS_MOST;
	return n;
}

/* Repeats what stands from `from` on n times in all. */
static void repeat(struct list *l, size_t from, long n)
{
	const size_t size = l->n - from;
	l->n = n == 0 ? from : l->n;
	for (long i = 1; i < n && l->good; i++) {
		l->good &= l->n + size <= LAYERS_MOST;
		if (!l->good)
			return;
		memcpy(l->value + l->n, l->value + from, size);
		l->n += size;
	}
}

static void sum(struct list *l, int depth)
{
	do {
		const size_t from = l->n;
		if (takes(l, '(')) {
			l->good &= depth < NESTED;
			if (l->good)
				sum(l, depth + 1);
			l->good &= takes(l, ')');
		} else if (takes(l, '[')) {
			do {
				blanks(l);
				l->good &= (*l->at == '0' || *l->at == '1') && l->n < LAYERS_MOST;
				if (l->good)
					l->value[l->n++] = *l->at++;
			} while (l->good && takes(l, ','));
			l->good &= takes(l, ']');
		} else {
			l->good = false;
		}
		while (l->good && takes(l, '*'))
			repeat(l, from, count(l));
	} while (l->good && takes(l, '+'));
}

/* Reads a list, or a number, which `every` becomes then. Returns what stands behind; NULL: it is neither. */
static const char *read(const char *text, struct list *out, long *every)
{
	char *end;
	*out = (struct list){.at = text, .good = true};
	blanks(out);
	*every = strtol(out->at, &end, 10);
	if (end != out->at && *every > 0 && *every <= LAYERS_MOST && (!*end || *end == ' '))
		return end;
	*every = 0;
	sum(out, 0);
	out->value[out->n] = '\0';
	blanks(out);
	return out->good && out->n > 0 ? out->at : NULL;
}

/* Shortens a text to its period. */
static size_t period(const char *text, size_t n)
{
	size_t p = 1;
	while (n % p != 0 || strncmp(text, text + p, n - p) != 0)
		p++;
	return p;
}

bool list_value(const char *text, enum key_id key, bool all_experts, char out[KEY_VALUE_MAX])
{
	struct list first, second = {.good = true};
	long every, experts = 0;
	const char *rest = read(text, &first, &every);
	if (!rest)
		return false;
	if (key == KEY_model_first_dense_layers) {
		const size_t dense = strspn(first.value, "0");
		snprintf(out, KEY_VALUE_MAX, "%zu", dense);
		return first.n > 0 && !*rest && strspn(first.value + dense, "1") == first.n - dense;
	}
	if (key == KEY_model_moe_layer_freq) {
		const size_t p = first.n ? period(first.value, first.n) : (size_t)every;
		snprintf(out, KEY_VALUE_MAX, "%zu", p);
		return !*rest && (first.n == 0 || (first.value[0] == '1' && strcspn(first.value + 1, "1") + 1 >= p));
	}
	/* the mixers of layers, and behind a blank which have experts */
	rest += strspn(rest, " ");
	if (*rest && (!(rest = read(rest, &second, &experts)) || *rest))
		return false;
	const size_t n = first.n ? first.n : second.n;
	char pattern[2 * LAYERS_MOST];
	if (n == 0 || (second.n && second.n != n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const bool linear = first.n ? first.value[i] == '1' : (long)(i + 1) % every != 0;
		const bool has = second.n ? second.value[i] == '1' : experts > 0 ? (long)i % experts == 0 : all_experts;
		pattern[2 * i] = linear ? 'G' : '*';
		pattern[2 * i + 1] = has ? 'E' : '-';
	}
	const size_t length = period(pattern, 2 * n);
	if (length >= LAYER_PATTERN)
		return false;
	snprintf(out, KEY_VALUE_MAX, "%.*s", (int)length, pattern);
	return true;
}

/* Replaces `count` of the letters M evenly, the first behind `each` of them (megatron/core/ssm/
 * mamba_hybrid_layer_allocation.py, _allocate_auto). */
static void spread(char *pattern, size_t n, char letter, double each)
{
	double x = each;
	for (size_t i = 0; i < n; i++) {
		if (pattern[i] != 'M')
			continue;
		if (x < 0.5)
			pattern[i] = letter;
		x += x < 0.5 ? each : -1;
	}
}

bool shares_value(const char *text, const char *layers, char out[KEY_VALUE_MAX])
{
	char *rest, *end;
	const double attention = strtod(text, &rest), mlp = strtod(rest, &end);
	const long n = layers ? strtol(layers, NULL, 10) : 0;
	if (rest == text || end == rest || *end || !(attention >= 0 && mlp >= 0 && attention + mlp <= 1) || n < 1 ||
		n >= LAYER_PATTERN || n >= KEY_VALUE_MAX)
		return false;
	const double attend = nearbyint((double)n * attention), others = (double)n - attend,
		     mlps = nearbyint((double)n * mlp);
	memset(out, 'M', (size_t)n);
	out[n] = '\0';
	spread(out, (size_t)n, '*', others / (attend + 1));
	if (mlps > 0)
		spread(out, (size_t)n, '-', (others - mlps) / mlps);
	return true;
}
