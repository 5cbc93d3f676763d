/* The branches of a shell script: `if`, `case`, and tests before a command. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "step/import/script.h"

void script_next(struct script *r)
{
	if (*r->at++ == '\n') {
		r->line++;
		r->line_start = r->at;
	}
}

bool script_at_mark(struct script *r)
{
	while (r->mark < r->marks.marks.n && r->marks.marks.at[r->mark].at < r->at)
		r->mark++;
	return r->mark < r->marks.marks.n && r->marks.marks.at[r->mark].at == r->at;
}

static void go_to(struct script *r, const char *to)
{
	r->flag = r->list = NULL;
	while (r->at < to)
		script_next(r);
}

/* Returns the mark behind `from` that is one of two words, or NULL, on the level of branches that `from` begins in. */
static const struct shell_mark *find_mark(const struct script *r, size_t from, const char *one, const char *other)
{
	int depth = 0;
	for (size_t i = from; i < r->marks.marks.n; i++) {
		const struct shell_mark *m = &r->marks.marks.at[i];
		if (depth == 0 && (shell_mark_is(m, one) || shell_mark_is(m, other)))
			return m;
		depth += shell_mark_is(m, "if") || shell_mark_is(m, "case");
		depth -= shell_mark_is(m, "fi") || shell_mark_is(m, "esac");
		if (depth < 0)
			return depth == -1 ? m : NULL; /* the end of all branches */
	}
	return NULL;
}

/* Passes a branch that is not taken: stands at the next one then, or at the end of all. Where that is not found, the
 * branch is read. */
static void pass_branch(struct script *r, bool all)
{
	const struct shell_mark *m = find_mark(r, r->mark, all ? "fi" : "elif", all ? "fi" : "else");
	if (m)
		go_to(r, m->at);
}

/* Reads what stands between this mark, `if` or `elif`, and `then`; passes it where it is made of tests alone. */
static enum truth take_condition(struct script *r, size_t length)
{
	const char *start = r->at + length;
	const struct shell_mark *then = find_mark(r, r->mark + 1, "then", "then");
	bool tests = false;
	enum truth t = TRUTH_UNKNOWN;
	if (then && shell_mark_is(then, "then"))
		t = shell_condition(&r->shell, start, (size_t)(then->at - start), &tests);
	go_to(r, tests ? then->at + then->len : start);
	return tests ? t : TRUTH_UNKNOWN;
}

/* Returns the innermost branch, if it is a case or an `if` as it is said; else NULL. */
static struct script_frame *top_frame(struct script *r, bool is_case)
{
	struct script_frame *top = r->frames.n ? &r->frames.at[r->frames.n - 1] : NULL;
	return top && top->is_case == is_case ? top : NULL;
}

static bool take_if(struct script *r, size_t length)
{
	const enum truth t = take_condition(r, length);
	if (!vec_push(&r->frames, ((struct script_frame){.done = t == TRUTH_YES})))
		return false;
	script_at_mark(r);
	if (t == TRUTH_NO)
		pass_branch(r, false);
	return true;
}

static void take_else(struct script *r, size_t length, bool condition)
{
	struct script_frame *top = top_frame(r, false);
	const bool done = top && top->done;
	const enum truth t = condition && !done ? take_condition(r, length) : TRUTH_UNKNOWN;
	if (!condition || done)
		go_to(r, r->at + length);
	script_at_mark(r);
	if (top && t == TRUTH_YES)
		top->done = true;
	if (top && (done || t == TRUTH_NO))
		pass_branch(r, done);
}

/* Returns whether one of the patterns, "8B|70B", is the case's value. */
static bool matches(const struct script *r, const struct script_frame *f, const char *patterns, size_t len)
{
	char raw[SHELL_WORD], pattern[SHELL_WORD];
	for (const char *end = patterns + len; patterns < end;) {
		size_t n = 0;
		for (; patterns < end && *patterns != '|'; patterns++)
			if (!isspace((unsigned char)*patterns) && !strchr("\"'(", *patterns) && n + 1 < sizeof raw)
				raw[n++] = *patterns;
		raw[n] = '\0';
		patterns++;
		shell_expand(&r->shell, raw, pattern);
		if (fnmatch(pattern, f->value, 0) == 0)
			return true;
	}
	return false;
}

/* Stands at the commands of the next clause that is taken, or at the end of the case. */
static void next_clause(struct script *r, struct script_frame *f)
{
	for (;;) {
		while (r->at < r->end && (isspace((unsigned char)*r->at) || *r->at == '#'))
			go_to(r, r->at + (*r->at == '#' ? strcspn(r->at, "\n") : 1));
		const char *end = memchr(r->at, ')', (size_t)(r->end - r->at));
		script_at_mark(r);
		const struct shell_mark *stop = find_mark(r, r->mark, "esac", ";;");
		const bool last = stop && shell_mark_is(stop, "esac");
		if (!end || !stop || (last && stop->at < end) || (!last && !shell_mark_is(stop, ";;")))
			return;
		const bool taken = !f->known || matches(r, f, r->at, (size_t)(end - r->at));
		go_to(r, taken ? end + 1 : stop->at + (last ? 0 : stop->len));
		f->done |= taken && f->known;
		if (taken || last)
			return;
	}
}

static bool take_case(struct script *r, size_t length)
{
	char raw[SHELL_WORD];
	const char *start = r->at + length, *in = strstr(start, " in"), *line = strchr(start, '\n');
	struct script_frame f = {.is_case = true};
	size_t n = 0;
	if (!in || (line && in > line) || !isspace((unsigned char)in[3])) {
		go_to(r, start);
		return vec_push(&r->frames, f);
	}
	for (; start < in; start++)
		if (!isspace((unsigned char)*start) && !strchr("\"'", *start) && n + 1 < sizeof raw)
			raw[n++] = *start;
	raw[n] = '\0';
	shell_expand(&r->shell, raw, f.value);
	f.known = !strpbrk(f.value, "$`");
	go_to(r, in + 3);
	if (!vec_push(&r->frames, f))
		return false;
	next_clause(r, &r->frames.at[r->frames.n - 1]);
	return true;
}

static void end_clause(struct script *r, size_t length)
{
	struct script_frame *top = top_frame(r, true);
	const struct shell_mark *end = top && top->done ? find_mark(r, r->mark + 1, "esac", "esac") : NULL;
	go_to(r, end ? end->at : r->at + length);
	if (!end && top)
		next_clause(r, top);
}

/* Passes what is left of a command. */
static void pass_command(struct script *r)
{
	char quote = '\0';
	r->flag = r->list = NULL;
	for (; r->at < r->end; script_next(r)) {
		const char c = *r->at;
		if (!quote &&
			(strchr(";}", c) || (c == '\n' && r->at[-1] != '\\') || (c == '#' && strchr(" \t", r->at[-1]))))
			break;
		if (strchr("\"'", c))
			quote = quote == c ? '\0' : quote ? quote : c;
	}
}

/* Passes the tests before a command, and a command that does not run: "[ $A = 1 ] && B=2". */
static void take_guard(struct script *r, size_t length)
{
	bool skipped = false;
	const char *to = shell_guard(&r->shell, r->at, r->end, &skipped);
	go_to(r, to ? to : r->at + length);
	if (to && skipped)
		pass_command(r);
}

bool script_take_mark(struct script *r)
{
	const struct shell_mark m = r->marks.marks.at[r->mark];
	if (shell_mark_is(&m, "if"))
		return take_if(r, m.len);
	if (shell_mark_is(&m, "case"))
		return take_case(r, m.len);
	if (shell_mark_is(&m, "elif") || shell_mark_is(&m, "else"))
		take_else(r, m.len, m.len == 4 && m.at[2] == 'i');
	else if (shell_mark_is(&m, ";;"))
		end_clause(r, m.len);
	else if (*m.at == '[')
		take_guard(r, m.len);
	else
		go_to(r, m.at + m.len);
	if (shell_mark_is(&m, "echo"))
		pass_command(r); /* a text that names flags is none */
	if (shell_mark_is(&m, "fi") && top_frame(r, false))
		r->frames.n--;
	if (shell_mark_is(&m, "esac") && top_frame(r, true))
		r->frames.n--;
	return true;
}
