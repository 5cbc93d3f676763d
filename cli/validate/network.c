/* Networks of published tables: counts times rates, and classes of fabrics. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/phrase.h"
#include "cli/validate/lists.h"

/* Units of a rate in Gb/s; the first that the text begins with counts, whatever the case where no byte is meant. */
static const struct {
	const char *word;
	double Gbps;
	bool cased;
} units[] = {{"GB/s", 8, true}, {"GBps", 8, true}, {"Gbps", 1, false}, {"Gb/s", 1, false}, {"Gbit/s", 1, false},
	{"GbE", 1, true}, {"Gb", 1, true}, {"Tbps", 1000, false}, {"Tb/s", 1000, false}, {"Tbit/s", 1000, false},
	{"G", 1, true}, {"T", 1000, true}};

/* Returns what is behind the unit at `s`, with its factor; NULL: there is none. */
static const char *pass_unit(const char *s, double *Gbps)
{
	for (size_t i = 0; i < COUNT(units); i++) {
		const size_t len = strlen(units[i].word);
		if ((units[i].cased ? strncmp : strncasecmp)(s, units[i].word, len) == 0 &&
			!isalpha((unsigned char)s[len])) {
			*Gbps = units[i].Gbps;
			return s + len;
		}
	}
	return NULL;
}

/* Returns what is behind a word that makes the number before it a count; NULL: there is none. */
static const char *pass_times(const char *s)
{
	static const char *const signs[] = {"x", "X", "*", "\xc3\x97" /* the sign of multiplication */, "NICs", "HCAs"};
	for (size_t i = 0; i < COUNT(signs); i++) {
		const size_t len = strlen(signs[i]);
		if (strncmp(s, signs[i], len) == 0 && !isalpha((unsigned char)s[len]))
			return s + len;
	}
	return NULL;
}

/* Returns what is behind a word that is a count ("dual-port HDR100"); NULL: there is none. */
static const char *pass_count_word(const char *s, double *count)
{
	static const char *const words[] = {"single", "dual", "triple", "quad"}; /* 1 and on */
	for (size_t i = 0; i < COUNT(words); i++)
		if (strncasecmp(s, words[i], strlen(words[i])) == 0 && !isalpha((unsigned char)s[strlen(words[i])])) {
			*count = (double)(i + 1);
			return s + strlen(words[i]);
		}
	return NULL;
}

static const char *pass_blanks(const char *s) { return s + strspn(s, " "); }

struct found {
	double count, rate_Gbps; /* 0: not there */
	const char *behind;      /* the rate */
};

/* Rates of NICs as sold: behind a count they are Gb/s without a unit ("4x200"). */
static bool is_nic_rate(double value)
{
	static const double rates[] = {10, 25, 40, 50, 100, 200, 400, 800};
	size_t i = 0;
	while (i < COUNT(rates) && rates[i] != value)
		i++;
	return i < COUNT(rates);
}

/* Reads the number at `s`: a rate if a unit follows, a count if "x" does. Returns what is behind it. */
static const char *read_number(const char *s, struct found *f)
{
	char *end;
	double factor;
	const double value = strtod(s, &end);
	const char *rest = pass_blanks(end), *behind;
	if (f->rate_Gbps == 0 && (behind = pass_unit(rest, &factor))) {
		f->rate_Gbps = value * factor;
		f->behind = behind;
		return behind;
	}
	if (f->count == 0 && (behind = pass_times(rest))) {
		f->count = value;
		return behind;
	}
	if (f->rate_Gbps == 0 && f->count > 0 && !isalpha((unsigned char)*end) && is_nic_rate(value)) {
		f->rate_Gbps = value;
		f->behind = end;
	}
	return end;
}

/* Reads a generation of InfiniBand ("NDR", "HDR100") at `s`. */
static bool read_generation(const struct word_lists *lists, const char *s, struct found *f)
{
	for (size_t i = 0; i < lists->generation.n; i++) {
		const struct generation *g = &lists->generation.at[i];
		const char *behind = s + strlen(g->name);
		if (strncasecmp(s, g->name, strlen(g->name)) != 0 || isalpha((unsigned char)*behind))
			continue;
		char *end;
		const double own = strtod(behind, &end);
		const bool has_own = isdigit((unsigned char)*behind);
		f->rate_Gbps = has_own ? own : g->Gbps;
		f->behind = has_own ? end : behind;
		return true;
	}
	return false;
}

/* Finds the first rate, and a count before or right behind it. lists: generations count too; NULL: they do not. */
static struct found find(const char *cell, const struct word_lists *lists)
{
	struct found f = {0};
	bool inside = false; /* a word: no digit of ConnectX-7 or A100 is meant */
	for (const char *s = cell; *s && f.rate_Gbps == 0;) {
		if (!inside && isdigit((unsigned char)*s)) {
			s = read_number(s, &f);
			continue;
		}
		if (!inside && lists && read_generation(lists, s, &f))
			break;
		const char *behind = inside || f.count > 0 ? NULL : pass_count_word(s, &f.count);
		if (behind) {
			s = behind;
			continue;
		}
		inside = isalpha((unsigned char)*s) || (inside && (isdigit((unsigned char)*s) || *s == '-'));
		s++;
	}
	const char *times = f.rate_Gbps > 0 ? pass_times(pass_blanks(f.behind)) : NULL;
	if (times && f.count == 0)
		f.count = strtod(pass_blanks(times), NULL);
	return f;
}

/* A host's total: one NIC a GPU, or a single one where none is sold at a GPU's share ("25Gbps/node" on 8 GPUs). */
static struct nics of_host(double total_Gbps, int64_t gpus)
{
	const double share_Gbps = total_Gbps / (double)gpus;
	return is_nic_rate(total_Gbps) && !is_nic_rate(share_Gbps) ? (struct nics){1, total_Gbps}
	                                                           : (struct nics){gpus, share_Gbps};
}

bool network_read(const struct word_lists *lists, const char *cell, int64_t gpus, struct nics *out)
{
	struct found f = find(cell, NULL);
	const bool by_generation = f.rate_Gbps <= 0;
	if (by_generation)
		f = find(cell, lists);
	/* "2x HDR (400 Gbps aggregated)": the count is of what makes up the host's total */
	if (f.rate_Gbps > 0 && (strcasestr(f.behind, "aggregate") || strcasestr(f.behind, "total")))
		f.count = 0;
	const bool each = f.rate_Gbps > 0 && (strcasestr(f.behind, "/GPU") || strcasestr(f.behind, "per GPU"));
	*out = (struct nics){0};
	if (f.rate_Gbps <= 0 || f.count > 1024 || f.count != floor(f.count) || (by_generation && f.count == 0 && !each))
		return false; /* a generation alone says no number of NICs */
	if (f.count > 0)
		*out = (struct nics){(int64_t)f.count * (each ? gpus : 1), f.rate_Gbps};
	else
		*out = each ? (struct nics){gpus, f.rate_Gbps} : of_host(f.rate_Gbps, gpus);
	return true;
}

/* ---- fabrics ---- */

static bool has_word(const char *text, const char *word)
{
	for (bool inside = false; *text; inside = isalnum((unsigned char)*text), text++)
		if (!inside && phrase_match(word, text, false))
			return true;
	return false;
}

static bool names_generation(const struct word_lists *lists, const char *text)
{
	struct found f;
	for (bool inside = false; *text; inside = isalnum((unsigned char)*text), text++)
		if (!inside && read_generation(lists, text, &f))
			return true;
	return false;
}

const char *network_fabric(const struct word_lists *lists, const char *given, const char *inter)
{
	for (size_t i = 0; i < lists->fabric.n && !*given; i++)
		if (has_word(inter, lists->fabric.at[i].name))
			return lists->fabric.at[i].means.value;
	return *given ? given : names_generation(lists, inter) ? "infiniband" : NULL;
}
