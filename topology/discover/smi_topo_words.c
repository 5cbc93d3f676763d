#include "base/array.h"
#include "topology/discover/smi_topo.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topology/graph/route.h"

static const char *const peer_words[] = {"OK", "NS", "CNS", "GNS", "TNS", "DR", "U"};
/* Their words without blanks: a wrap or an editor may have put blanks anywhere. */
static const char *const tails[] =
	{[SMI_CPU_AFFINITY] = "CPUAffinity", [SMI_NUMA_AFFINITY] = "NUMAAffinity", [SMI_GPU_NUMA_ID] = "GPUNUMAID"};

size_t smi_word_at(const char *s, size_t len, char word[GRAPH_WORD])
{
	/* none of them begins with another one */
	for (size_t n = 1; n <= 4 && n <= len; n++) {
		for (size_t i = 0; i < n; i++)
			word[i] = (char)toupper((unsigned char)s[i]);
		word[n] = '\0';
		int level = route_level_of_word(word);
		if (level >= 0 && level != ROUTE_NV)
			return n;
	}
	size_t n = 2;
	if (len < 3 || strncasecmp(s, "NV", 2) || s[2] < '1' || s[2] > '9')
		return 0;
	while (n < len && isdigit((unsigned char)s[n]))
		n++;
	if (n > 5)
		return 0;
	snprintf(word, GRAPH_WORD, "NV%.*s", (int)n - 2, s + 2);
	return n;
}

bool smi_all_words(struct smi_token t)
{
	char word[GRAPH_WORD];
	size_t at = 0;
	while (at < t.len) {
		size_t n = smi_word_at(t.at + at, t.len - at, word);
		if (!n)
			return false;
		at += n;
	}
	return at > 0;
}

bool smi_peer_word(struct smi_token t)
{
	for (size_t i = 0; i < COUNT(peer_words); i++)
		if (strlen(peer_words[i]) == t.len && strncasecmp(t.at, peer_words[i], t.len) == 0)
			return true;
	return false;
}

static size_t digits_at(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && isdigit((unsigned char)s[n]))
		n++;
	return n;
}

size_t smi_label_prefix(const char *s, size_t len)
{
	if (len > 3 && (strncasecmp(s, "GPU", 3) == 0 || strncasecmp(s, "NIC", 3) == 0)) {
		size_t n = digits_at(s + 3, len - 3);
		return n >= 1 && n <= 4 ? 3 + n : 0;
	}
	if (len > 3 && strncmp(s, "mlx", 3) == 0) {
		size_t n = digits_at(s + 3, len - 3);
		if (n && 3 + n < len && s[3 + n] == '_') {
			size_t m = digits_at(s + 4 + n, len - 4 - n);
			return m ? 4 + n + m : 0;
		}
	}
	return 0;
}

/* A device's name: letters first, a digit somewhere, and no link word. */
static bool is_name(struct smi_token t)
{
	bool digit = false;
	if (!t.len || t.len >= GRAPH_NAME || !isalpha((unsigned char)t.at[0]) || smi_all_words(t))
		return false;
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = (unsigned char)t.at[i];
		if (!isalnum(c) && !strchr("_.-", c))
			return false;
		digit |= isdigit(c) != 0;
	}
	return digit;
}

static enum smi_label plain_label(struct smi_token t, char key[GRAPH_NAME], int32_t *number)
{
	bool numbered = t.len > 3 && (strncasecmp(t.at, "GPU", 3) == 0 || strncasecmp(t.at, "NIC", 3) == 0) &&
	                smi_label_prefix(t.at, t.len) == t.len;
	*number = 0;
	if (numbered) {
		bool gpu = toupper((unsigned char)t.at[0]) == 'G';
		char text[8] = "";
		memcpy(text, t.at + 3, t.len - 3);
		*number = (int32_t)strtol(text, NULL, 10);
		snprintf(key, GRAPH_NAME, "%s%d", gpu ? "GPU" : "NIC", *number);
		return gpu ? SMI_GPU : SMI_NIC;
	}
	if (!is_name(t))
		return SMI_NO_LABEL;
	snprintf(key, GRAPH_NAME, "%.*s", (int)t.len, t.at);
	return SMI_NAMED;
}

enum smi_label smi_label_of(struct smi_token t, char key[GRAPH_NAME], int32_t *number)
{
	static const char edge[] = "*:,()[]{}\\=";
	while (t.len && strchr(edge, t.at[t.len - 1]))
		t.len--;
	while (t.len && strchr(edge, t.at[0]))
		t.at++, t.len--;
	enum smi_label kind = plain_label(t, key, number);
	if (kind == SMI_GPU || kind == SMI_NIC)
		return kind;
	/* "dump.txt:GPU0", "dump.txt-GPU0" (grep and its context lines), "3:GPU0" */
	for (size_t i = t.len; i > 0; i--) {
		if (!strchr(":>#/+-)]", t.at[i - 1]))
			continue;
		char after[GRAPH_NAME];
		int32_t number_after;
		enum smi_label found = plain_label((struct smi_token){t.at + i, t.len - i}, after, &number_after);
		if (found == SMI_GPU || found == SMI_NIC || (found == SMI_NAMED && kind == SMI_NO_LABEL)) {
			memcpy(key, after, sizeof after);
			*number = number_after;
			return found;
		}
		break;
	}
	return kind;
}

static void tails_of(const char *text, struct smi_columns *c)
{
	char packed[64];
	size_t n = 0;
	for (const char *s = text; *s && n + 1 < sizeof packed; s++)
		if (*s != ' ' && *s != '\t')
			packed[n++] = *s;
	packed[n] = '\0';
	c->n_tails = 0;
	c->odd = false;
	for (const char *s = packed; *s;) {
		size_t i = 0;
		while (i < COUNT(tails) && strncasecmp(s, tails[i], strlen(tails[i])))
			i++;
		c->odd = i == COUNT(tails);
		for (size_t k = 0; k < c->n_tails; k++)
			c->odd |= c->tail[k] == (enum smi_tail)i;
		if (c->odd)
			return;
		c->tail[c->n_tails++] = (enum smi_tail)i;
		s += strlen(tails[i]);
	}
}

/* Where the title of an affinity column begins in a token that has lost the tab before it ("mlx5_2CPU Affinity"): the
 * length of the label before, t.len where there is none. */
static size_t label_before_title(struct smi_token t, const char *rest)
{
	static const char *const titles[] = {"CPU", "NUMA"};
	struct smi_token next;
	bool affinity = smi_token_next(&rest, &next) && next.len >= 8 && strncasecmp(next.at, "Affinity", 8) == 0;
	size_t labels = 0, n;
	while (labels < t.len && (n = smi_label_prefix(t.at + labels, t.len - labels)) > 0)
		labels += n;
	for (size_t i = 0; i < COUNT(titles); i++) {
		size_t len = strlen(titles[i]);
		if (labels && labels + len <= t.len && strncasecmp(t.at + labels, titles[i], len) == 0)
			return labels;
		if (affinity && t.len > len && strncasecmp(t.at + t.len - len, titles[i], len) == 0)
			return t.len - len;
	}
	return t.len;
}

/* Adds the labels that a token consists of; false when it is none. */
static bool add_columns(struct smi_columns *c, struct smi_token t)
{
	int32_t number;
	size_t at = 0, n;
	while (at < t.len && (n = smi_label_prefix(t.at + at, t.len - at)) > 0)
		at += n;
	if (at == t.len) { /* one numbered label, or several glued together */
		for (at = 0; at < t.len && c->n < SMI_ENTRIES; at += n) {
			n = smi_label_prefix(t.at + at, t.len - at);
			smi_label_of((struct smi_token){t.at + at, n}, c->key[c->n], &number);
			c->n++;
		}
		return at == t.len;
	}
	if (c->n >= SMI_ENTRIES || !smi_label_of(t, c->key[c->n], &number))
		return false;
	c->n++;
	return true;
}

bool smi_columns_of(const char *line, struct smi_columns *c)
{
	const char *s = line, *tail = line;
	struct smi_token t;
	char key[GRAPH_NAME];
	int32_t number;
	enum smi_label kind = SMI_NO_LABEL;
	bool gpu = false;
	c->n = c->n_tails = 0;
	while (smi_token_next(&s, &t)) {
		kind = smi_label_of(t, key, &number);
		if (kind == SMI_GPU || kind == SMI_NIC || smi_label_prefix(t.at, t.len))
			break;
		kind = SMI_NO_LABEL;
	}
	if (kind == SMI_NO_LABEL)
		return false;
	for (bool first = true, more = true; more; first = false) {
		size_t label = label_before_title(t, s);
		bool title = label < t.len;
		t.len = label;
		if (!add_columns(c, t)) {
			if (first) /* with a file's name before it */
				return false;
			break;
		}
		tail = t.at + t.len;
		s = title ? tail : s;
		more = !title && smi_token_next(&s, &t);
	}
	for (s = tail; smi_token_next(&s, &t);)
		if (smi_all_words(t) || smi_peer_word(t) || smi_label_of(t, key, &number) == SMI_GPU)
			return false;
	for (size_t i = 0; i < c->n; i++)
		gpu |= strncmp(c->key[i], "GPU", 3) == 0;
	tails_of(tail, c);
	return gpu;
}

/* ---- what stands behind the cells ---- */

#define FIELDS 16
struct field {
	char text[1536];
};

/* "0-31,64-95" as ranges in order; false when it is no such list. Whole ranges as far as they fit; *first: its first
 * number. */
static bool list_read(const char *s, char *out, size_t size, int32_t *first, bool *cut)
{
	size_t used = 0;
	char *end;
	for (bool any = false;; any = true) {
		char range[32];
		if (!isdigit((unsigned char)*s))
			return false;
		long a = strtol(s, &end, 10), b = a;
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return false;
			b = strtol(end + 1, &end, 10);
		}
		if (a > b || b > 1000000)
			return false;
		if (!any)
			*first = (int32_t)a;
		int n = a == b ? snprintf(range, sizeof range, "%s%ld", any ? "," : "", a)
		               : snprintf(range, sizeof range, "%s%ld-%ld", any ? "," : "", a, b);
		if (*cut || used + (size_t)n >= size)
			*cut = true;
		else
			used += (size_t)snprintf(out + used, size - used, "%s", range);
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		s = end + 1;
	}
}

/* Fields between blanks; a list that a wrap tore apart is one. */
static size_t fields_of(const char *text, struct field *f)
{
	struct smi_token t;
	size_t n = 0;
	while (smi_token_next(&text, &t)) {
		while (t.len && strchr("\\", t.at[t.len - 1]))
			t.len--;
		if (!t.len || (t.len == 1 && *t.at == ','))
			continue;
		size_t before = n ? strlen(f[n - 1].text) : 0;
		bool digit = isdigit((unsigned char)t.at[0]) != 0,
		     listed = before && isdigit((unsigned char)f[n - 1].text[0]);
		bool goes_on = listed &&
		               ((digit && strchr(",-", f[n - 1].text[before - 1])) ||
				       (strchr(",-", t.at[0]) && isdigit((unsigned char)f[n - 1].text[before - 1])));
		if (goes_on) {
			snprintf(f[n - 1].text + before, sizeof f->text - before, "%.*s", (int)t.len, t.at);
		} else {
			if (n == FIELDS)
				return n;
			snprintf(f[n++].text, sizeof f->text, "%.*s", (int)t.len, t.at);
		}
	}
	return n;
}

/* An empty cell right behind the last link: two tabs with nothing but blanks between. */
static bool empty_first(const char *s)
{
	s += strspn(s, " ");
	if (*s != '\t')
		return false;
	s++;
	s += strspn(s, " ");
	return *s == '\t';
}

bool smi_tail_read(const char *text, const struct smi_columns *c, char cores[GRAPH_CORES], int32_t *numa, bool *list,
	bool *cut)
{
	struct field f[FIELDS], number;
	char told[GRAPH_CORES] = "";
	int32_t first, node = -1;
	bool long_list = false, long_number = false, many = false;
	cores[0] = '\0';
	*numa = -1;
	size_t n = fields_of(text, f), skip = 0;
	if (!n)
		return true;
	if (!c->n_tails) { /* "NUMA 0" written behind the row by hand */
		if (n >= 2 && strcasecmp(f[0].text, "NUMA") == 0 &&
			list_read(f[1].text, number.text, sizeof number.text, &first, &long_number))
			*numa = first;
		return true;
	}
	if (n + 1 == c->n_tails && empty_first(text))
		skip = 1;
	else if (n != c->n_tails)
		return false;
	for (size_t i = skip; i < c->n_tails; i++) {
		const char *s = f[i - skip].text;
		bool none = strcasecmp(s, "N/A") == 0;
		bool fits = c->tail[i] == SMI_CPU_AFFINITY
		                    ? list_read(s, told, sizeof told, &first, &long_list)
		                    : list_read(s, number.text, sizeof number.text, &first, &long_number);
		if (!fits && !none)
			return false;
		if (c->tail[i] == SMI_NUMA_AFFINITY && fits) {
			node = first;
			many = strpbrk(s, ",-") != NULL;
		}
		if (c->tail[i] == SMI_CPU_AFFINITY && none)
			told[0] = '\0';
	}
	memcpy(cores, told, sizeof told);
	*numa = node;
	*list |= many;
	*cut |= long_list;
	return true;
}

bool smi_tail_odd(const char *text, const struct smi_columns *c)
{
	struct field f[FIELDS];
	size_t n = fields_of(text, f);
	return n && (c->n_tails ? n > c->n_tails : isdigit((unsigned char)f[0].text[0]) != 0);
}
