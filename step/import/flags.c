#include "step/import/flags.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/import/script.h"

#define WORDS_MOST 20000
#define MARKS_MOST 5000 /* branches are looked for from each of them */

/* Adds a key with its value and position. */
static struct ynode *add_node(struct script *r, const char *name, const char *value, int col)
{
	struct ynode *n = ydoc_add(r->doc, ydoc_edit(r->doc), name, Y_SCALAR, value);
	if (n) {
		n->line = n->key_line = r->line;
		n->col = n->key_col = col;
	}
	return n;
}

/* Returns whether what stands here begins a command, after blanks and a line that goes on. */
static bool command_follows(const struct script *r)
{
	const char *p = r->at;
	while (p < r->end && (strchr(" \t", *p) || (*p == '\\' && p + 1 < r->end && p[1] == '\n')))
		p += *p == '\\' ? 2 : 1;
	return p < r->end && !strchr("\r\n;#&|)", *p);
}

/* Returns whether a variable is read by a launcher, or by a library below the framework, so that it is a key of its
 * own. NNODES is a name that scripts take for themselves, too. */
static bool is_setting(const struct script *r, const char *name)
{
	static const char *const names[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "NPROC_PER_NODE"};
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "NCCL_", 5) == 0 || (strcmp(name, "NNODES") == 0 && command_follows(r));
}

static bool is_flag(const char *word) { return strncmp(word, "--", 2) == 0 && isalpha((unsigned char)word[2]); }

/* Keeps NAME=VALUE; true if the word is one. A flag that it begins with, as in ARGS="--a 1 --b", is left in `value`:
 * the flags are read where they are set. What a command gives is not known. */
static bool assign(struct script *r, const char *word, char value[SHELL_WORD])
{
	char name[SHELL_NAME];
	const size_t n = shell_name_length(word);
	if (n == 0 || n >= sizeof name || word[n] != '=' || isdigit((unsigned char)*word))
		return false;
	snprintf(name, sizeof name, "%.*s", (int)n, word);
	shell_expand(&r->shell, word + n + 1, value);
	if (strchr(value, '`'))
		snprintf(value, SHELL_WORD, "$(...)");
	if (!shell_set(&r->shell, name, is_flag(value) ? "" : value))
		error_nomem(r->e, "a script's variables");
	if (is_setting(r, name) && !add_node(r, name, value, (int)(r->at - r->line_start) - (int)strlen(word) + 1))
		error_nomem(r->e, "a script's variables");
	return true;
}

/* ---- flags ---- */

/* Returns whether a word may follow `before` in a list, "moe_act layernorm" or "16 16 5859375": no path and no name of
 * a file. */
static bool is_list_word(const char *before, const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_", digits[] = "0123456789";
	const char *set = isdigit((unsigned char)*before) ? digits : letters;
	return *word && word[strspn(word, set)] == '\0';
}

/* Sets the value of the flag that waits. */
static enum status take_value(struct script *r, const char *word, int col)
{
	char *copy = ydoc_alloc(r->doc, strlen(word) + 1);
	if (!copy)
		return error_nomem(r->e, "a flag");
	r->flag->text = strcpy(copy, word);
	r->flag->line = r->line;
	r->flag->col = col;
	r->list = is_list_word(word, word) ? r->flag : NULL;
	r->flag = NULL;
	return ST_OK;
}

/* Adds a word to the list of the flag before it. */
static enum status take_more(struct script *r, const char *word)
{
	const size_t n = strlen(r->list->text) + strlen(word) + 2;
	char *text = ydoc_alloc(r->doc, n);
	if (!text)
		return error_nomem(r->e, "a flag");
	snprintf(text, n, "%s %s", r->list->text, word);
	r->list->text = text;
	return ST_OK;
}

static enum status take_flag(struct script *r, const char *word, int col)
{
	char name[SHELL_NAME];
	const size_t n = strcspn(word + 2, "=");
	if (n >= sizeof name)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: a flag is longer than %zu characters",
			ydoc_root(r->doc)->file, r->line, col, sizeof name - 1);
	snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p;
	r->flag = add_node(r, name, "true", col);
	if (!r->flag)
		return error_nomem(r->e, "a flag");
	return word[2 + n] ? take_value(r, word + 2 + n + 1, col) : ST_OK;
}

/* Returns the length of a key that a program is given, as "model.path=x" or "+a.b=1"; 0: the word is none. */
static size_t pair_length(const char *word)
{
	const size_t plus = strspn(word, "+");
	size_t n = plus;
	while (isalnum((unsigned char)word[n]) || (word[n] && strchr("_.", word[n])))
		n++;
	return word[n] == '=' && isalpha((unsigned char)word[plus]) ? n : 0;
}

/* Takes "key=value" behind the name of a program in Python, as MaxText and Hydra read it. *taken: it is one. */
static enum status take_pair(struct script *r, const char *word, int col, bool *taken)
{
	const size_t n = pair_length(word), plus = strspn(word, "+");
	char text[SHELL_WORD], name[SHELL_WORD];
	*taken = r->python && n > 0 && n < sizeof name && (!r->flag || memchr(word, '.', n));
	if (!*taken)
		return ST_OK;
	snprintf(name, sizeof name, "%.*s", (int)(n - plus), word + plus);
	shell_expand(&r->shell, word + n + 1, text);
	r->flag = r->list = NULL;
	return add_node(r, name, text, col) ? ST_OK : error_nomem(r->e, "a program's keys");
}

static bool is_python(const char *word)
{
	const char *slash = strrchr(word, '/'), *file = slash ? slash + 1 : word;
	return fnmatch("python*", file, 0) == 0 || strcmp(file, "torchrun") == 0;
}

static enum status take_word(struct script *r, const char *word, int col)
{
	char text[SHELL_WORD];
	bool taken = false;
	if (++r->words > WORDS_MOST)
		return error_set(r->e, ST_INPUT, "%s:%d:%d: more than %d words", ydoc_root(r->doc)->file, r->line, col,
			WORDS_MOST);
	enum status st = take_pair(r, word, col, &taken);
	if (st || taken)
		return st;
	if (!r->flag && assign(r, word, text)) {
		if (r->e->status || !is_flag(text))
			return r->e->status;
	} else {
		shell_expand(&r->shell, word, text);
	}
	if (!*text && *word)
		return ST_OK; /* a variable that is empty */
	if (is_flag(text)) {
		r->list = NULL;
		return take_flag(r, text, col);
	}
	if (r->flag)
		return take_value(r, text, col);
	r->python |= is_python(text);
	const char *slash = strrchr(text, '/'), *file = slash ? slash + 1 : text;
	if (fnmatch("pretrain_*.py", file, 0) == 0 && !add_node(r, "_script_", file, col))
		return error_nomem(r->e, "a script's program");
	if (r->list && is_list_word(r->list->text, text))
		return take_more(r, text);
	r->list = NULL;
	return ST_OK;
}

/* ---- words ---- */

/* Returns the length of what stands between this place and the quote that closes it, if it is one word whatever signs
 * it has, as 'Et*2|(tt|)*22L', or a list, which may have blanks and variables: "([0] * 3 + [1] * $MORE)"; 0: it is
 * not. */
static size_t quoted_length(const struct script *r, const char *at, char quote)
{
	size_t n = 0;
	const bool list = at < r->end && strchr("([", *at) && *at;
	while (at + n < r->end && at[n] != quote && at[n] != '\n' && (list || !isspace((unsigned char)at[n])) &&
		!strchr(list ? "\"'" : "$\"'", at[n]))
		n++;
	return at + n < r->end && at[n] == quote && n < SHELL_WORD && strncmp(at, "--", 2) != 0 ? n : 0;
}

/* Returns the length of a list of numbers that begins here, "([0]*3+[1]*$MORE)" or "[1,0,1]"; 0: there is none. */
static size_t list_length(const struct script *r)
{
	size_t n = 0;
	int depth = 0;
	for (; r->at + n < r->end &&
		(isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr("([]),*+-${}_", r->at[n])));
		n++) {
		depth += (r->at[n] == '(' || r->at[n] == '[') - (r->at[n] == ')' || r->at[n] == ']');
		if (depth < 0)
			break;
	}
	const bool numbers = n > 2 && (r->at[1] == '[' || isdigit((unsigned char)r->at[1]));
	return strchr("([", *r->at) && numbers && depth <= 0 && n < SHELL_WORD ? n : 0;
}

static void end_command(struct script *r)
{
	r->flag = r->list = NULL;
	r->python = false;
}

/* Passes what separates words. Quotes do, too: "--fp8-format hybrid" in a list of flags is two words. The end of a line
 * ends a flag, unless a backslash stands before it. */
static void skip(struct script *r)
{
	while (r->at < r->end && !script_at_mark(r)) {
		const char c = *r->at;
		if (c == '#' && (r->at == r->line_start || strchr(" \t(", r->at[-1]))) {
			while (r->at < r->end && *r->at != '\n')
				script_next(r);
			continue;
		}
		if (!isspace((unsigned char)c) && !strchr("\"'\\()[];|&,", c))
			return;
		if (r->flag && list_length(r) > 0)
			return;
		if (strchr("\n;|&)", c) && !(c == '\n' && r->at > r->line_start && r->at[-1] == '\\'))
			end_command(r);
		const bool value = r->flag && strchr("\"'", c) && quoted_length(r, r->at + 1, c) > 0;
		script_next(r);
		if (value)
			return;
	}
}

static size_t take_quoted(struct script *r, char word[SHELL_WORD], size_t n, size_t length)
{
	for (size_t i = 0; i < length; i++, script_next(r))
		if (n + 1 < SHELL_WORD)
			word[n++] = *r->at;
	return n;
}

/* Reads a word of at most SHELL_WORD - 1 bytes; brackets behind a '$' belong to it. */
static void read_word(struct script *r, char word[SHELL_WORD])
{
	size_t n = 0;
	int depth = 0;
	const bool value = r->flag && r->at > r->line_start && strchr("\"'", r->at[-1]);
	const size_t quoted = value ? quoted_length(r, r->at, r->at[-1]) : r->flag ? list_length(r) : 0;
	if (quoted > 0) {
		word[take_quoted(r, word, 0, quoted)] = '\0';
		return;
	}
	for (; r->at < r->end && *r->at != '\n'; script_next(r)) {
		const char c = *r->at;
		if (strchr("\"'", c) && n && word[n - 1] == '=' && quoted_length(r, r->at + 1, c) > 0) {
			script_next(r);
			n = take_quoted(r, word, n, quoted_length(r, r->at, c));
			break;
		}
		const bool opens = (c == '{' || c == '(') && (depth || (n && word[n - 1] == '$'));
		if (!depth && !opens && (isspace((unsigned char)c) || strchr("\"';|&()", c)) &&
			!(n && word[n - 1] == '=' && strchr("\"'", c)))
			break;
		depth += opens;
		if (depth && (c == '}' || c == ')'))
			depth--;
		if (strchr("\"'\\", c))
			continue;
		if (n + 1 < SHELL_WORD)
			word[n++] = c;
	}
	word[n] = '\0';
}

/* ---- the whole ---- */

static enum status read_script(struct script *r)
{
	char word[SHELL_WORD];
	enum status st = ST_OK;
	for (skip(r); r->at < r->end && !st; skip(r)) {
		const int col = (int)(r->at - r->line_start) + 1;
		const char *start = r->at;
		if (script_at_mark(r)) {
			st = script_take_mark(r) ? ST_OK : error_nomem(r->e, "a script's branches");
			continue;
		}
		read_word(r, word);
		if (r->at == start)
			script_next(r);
		st = take_word(r, word, col);
	}
	return st;
}

enum status flags_parse(const char *text, size_t len, const char *name, const char *arguments, struct ydoc **out,
	struct error *e)
{
	struct script r = {.line = 1, .e = e};
	enum status st = ydoc_create(name, &r.doc, e);
	if (st)
		return st;
	char *copy = ydoc_alloc(r.doc, len + 1); /* it ends with a zero */
	if (!copy || (arguments && !shell_arguments(&r.shell, arguments)))
		st = error_nomem(e, "a script");
	if (!st) {
		memcpy(copy, text, len);
		copy[len] = '\0';
		r.at = r.line_start = copy;
		r.end = copy + len;
		if (!shell_find_marks(copy, r.end, &r.marks))
			st = error_nomem(e, "a script");
		else if (r.marks.marks.n > MARKS_MOST)
			st = error_set(e, ST_INPUT, "%s:1:1: more than %d words of branches, tests and echo", name,
				MARKS_MOST);
		else
			st = read_script(&r);
	}
	shell_free(&r.shell);
	vec_free(&r.marks.marks);
	vec_free(&r.frames);
	if (st)
		ydoc_destroy(r.doc);
	else
		*out = r.doc;
	return st;
}

/* Returns whether the flag at `i` is no key of YAML, "--name:". The text need not end in a zero. */
static bool is_flag_of(const char *text, size_t len, size_t i)
{
	if (i + 2 >= len || !is_flag(text + i))
		return false;
	for (i += 2; i < len && text[i] && !strchr(": =\t\r\n", text[i]);)
		i++;
	return i == len || text[i] != ':';
}

bool flags_found(const char *text, size_t len)
{
	bool word = true, comment = false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '#' && word)
			comment = true;
		if (text[i] == '\n')
			comment = false;
		if (word && !comment && is_flag_of(text, len, i))
			return true;
		word = isspace((unsigned char)text[i]) || strchr("\"'(", text[i]);
	}
	return false;
}
