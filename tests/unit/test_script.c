/* Shell scripts that hold a framework's flags: variables, arithmetic, and which branches are read. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/import/flags.h"
#include "step/import/shell.h"
#include "tests/unit/harness.h"

/* Writes the flags of a script as "a=1 b=2". */
static const char *flags_of(const char *text, const char *arguments)
{
	static char out[2000];
	struct ydoc *doc = NULL;
	struct error e = {0};
	size_t n = 0;
	*out = '\0';
	CU_ASSERT_EQUAL_FATAL(flags_parse(text, strlen(text), "run.sh", arguments, &doc, &e), ST_OK);
	for (size_t i = 0; i < ydoc_root(doc)->n; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s=%s", i ? " " : "", ydoc_root(doc)->child[i]->key,
			ydoc_root(doc)->child[i]->text);
	ydoc_destroy(doc);
	return out;
}

static void check_flags(const char *text, const char *arguments, const char *expected)
{
	const char *got = flags_of(text, arguments);
	CU_ASSERT_STRING_EQUAL(got, expected);
	if (strcmp(got, expected) != 0)
		printf("\n%s\n  got      \"%s\"\n  expected \"%s\"\n", text, got, expected);
}

static void test_variables(void)
{
	static const char *const words[][2] = {{"$A", "8"}, {"${A}x", "8x"}, {"$AB", "$AB"}, {"${AB:-4}", "4"},
		{"${AB:-${A}}", "8"}, {"${E:-4}", "4"}, {"${E-4}", ""}, {"${A:=4}", "8"}, {"${A%.*}", "${A%.*}"},
		{"$((A * 2))", "16"}, {"$(( ($A > 1) ? 3 : 0 ))", "3"}, {"$((2 + 3 * 4 - -1))", "15"},
		{"$((7 / 2 % 2))", "1"}, {"$(( (A + 2) * (A - 2) ))", "60"}, {"$((A == 8 && !(A < 4)))", "1"},
		{"$((A / 0))", "$((A / 0))"}, {"$((AB + 1))", "$((AB + 1))"}, {"$(nproc)", "$(nproc)"}, {"$1", "$1"}};
	struct shell s = {0};
	char out[SHELL_WORD];
	CU_ASSERT(shell_set(&s, "A", "4") && shell_set(&s, "A", "8") && shell_set(&s, "E", ""));
	for (size_t i = 0; i < COUNT(words); i++) {
		shell_expand(&s, words[i][0], out);
		CU_ASSERT_STRING_EQUAL(out, words[i][1]);
		if (strcmp(out, words[i][1]) != 0)
			printf("\n%s: %s\n", words[i][0], out);
	}
	CU_ASSERT(shell_arguments(&s, "one TP=2 'two three'"));
	shell_expand(&s, "$1 $2 $TP $3.", out);
	CU_ASSERT_STRING_EQUAL(out, "one two three 2 .");
	shell_free(&s);
}

static void test_conditions(void)
{
	static const struct {
		const char *text;
		enum truth truth;
		bool tests;
	} cases[] = {
		{"[ $A = 8 ]", TRUTH_YES, true},
		{" [ \"$A\" == 9 ] ; ", TRUTH_NO, true},
		{"[[ $A != 8 ]]", TRUTH_NO, true},
		{"[[ $NAME == run_* ]]", TRUTH_YES, true},
		{"[ $NAME = 'run_*' ]", TRUTH_NO, true},
		{"[ $A -gt 4 ] && [ $A -le 8 ]", TRUTH_YES, true},
		{"[ $A -lt 4 ] || ! [ $A -eq 8 ]", TRUTH_NO, true},
		{"[ $A -ge 8 -a -n \"$NAME\" ]", TRUTH_YES, true},
		{"[[ ( $A -ne 8 || -z $NAME ) && $A == 8 ]]", TRUTH_NO, true},
		{"[ -z ${UNSET} ]", TRUTH_YES, true},
		{"[ $UNSET = dlc ]", TRUTH_NO, true},
		{"[ $UNSET -gt 1 ]", TRUTH_UNKNOWN, true},
		{"[ $1 = dlc ]", TRUTH_UNKNOWN, true},
		{"[ -z $1 ]", TRUTH_UNKNOWN, true},
		{"[ $A = 9 ] && [ $1 = dlc ]", TRUTH_NO, true},
		{"[ -d $NAME ]", TRUTH_UNKNOWN, true},
		{"[ $(nproc) -gt 2 ]", TRUTH_UNKNOWN, true},
		{"(( A > 4 ))", TRUTH_YES, true},
		{"(( B > 4 ))", TRUTH_UNKNOWN, true},
		{"$ON", TRUTH_YES, true},
		{"! false", TRUTH_YES, true},
		{"grep -q x file", TRUTH_UNKNOWN, false},
		{"[ $A = 8 ] && grep -q x file", TRUTH_UNKNOWN, false},
		{"[ $A = ", TRUTH_UNKNOWN, true},
		{"", TRUTH_UNKNOWN, false},
	};
	struct shell s = {0};
	CU_ASSERT(shell_set(&s, "A", "8") && shell_set(&s, "NAME", "run_1") && shell_set(&s, "ON", "true"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool tests = true;
		const enum truth t = shell_condition(&s, cases[i].text, strlen(cases[i].text), &tests);
		CU_ASSERT(t == cases[i].truth && tests == cases[i].tests);
		if (t != cases[i].truth || tests != cases[i].tests)
			printf("\n%s: %d, %d\n", cases[i].text, (int)t, tests);
	}
	shell_free(&s);
}

static void test_branches(void)
{
	check_flags("S=70B\nif [ $S = 8B ]; then\n  L=32\n  O=\" --a $L \"\nelif [ $S = 70B ]; then\n  L=80 # --no\n"
		    "else\n  L=1\nfi\nrun --layers $L\n",
		NULL, "layers=80");
	check_flags("if [ $1 = 8B ]; then\n  L=32\nelif [ $1 = 70B ]; then\n  L=80\nelse\n  L=1\nfi\nrun --layers $L\n",
		"8B", "layers=32");
	check_flags("if [ $1 = 8B ]; then\n  A=--a\nelse\n  run --b 2\nfi\nrun --c 3\n", NULL, "a=true b=2 c=3");
	check_flags("if [ $1 = 8B ]; then\n  A=--a\nelif true; then\n  run --b 2\nelse\n  run --d\nfi\nrun --c 3\n",
		NULL, "a=true b=2 c=3");
	/* nested, on one line, and behind what only looks like a branch */
	check_flags("A=1\nif [ $A -eq 0 ]; then if true; then run --a; fi; run --b; else run --c; fi; run --d 1\n",
		NULL, "c=true d=1");
	check_flags("echo \"\nif [ 1 = 2 ]; then\n\" # if\ncat <<END >x\nif [ 1 = 2 ]\nthen it's\nEND\nrun --a 1\n",
		NULL, "a=1");
	check_flags("if ! [ -d x ]; then\n  mkdir x --a\nfi\nif run --b 1; then\n  echo\nfi\n", NULL, "a=true b=1");
	/* tests before a command */
	check_flags("A=1\n[ $A = 2 ] && X=\"--x 'a' \\\n  --y\"\n[ $A = 1 ] && run --a || run --b\n"
		    "[[ $A == 1 ]] || run --c\n",
		NULL, "a=true b=true");
	check_flags("echo \"no --a and; --b\" # it's\nrun --c 1\n", NULL, "c=1");
	/* case */
	static const char text[] =
		"case \"$1\" in\n  # sizes (of models)\n  \"8B\"|8b)\n    L=32\n    ;;\n  7*) L=80; run --big ;;\n"
		"  *)\n    L=1\n    ;;\nesac\nrun --layers $L\n";
	check_flags(text, "8b", "layers=32");
	check_flags(text, "70B", "big=true layers=80");
	check_flags(text, "x", "layers=1");
	check_flags(text, NULL, "big=true layers=1");
	/* a variable that is empty is no word; the program is named */
	check_flags("E=\nrun --a $E --b=1 $E\ntorchrun -m x/pretrain_bert.py --c 2\n", NULL,
		"a=true b=1 _script_=pretrain_bert.py c=2");
	/* without an end */
	check_flags("if [ 1 = 2 ]; then\n  run --a 1\n", NULL, "a=1");
	check_flags("case x in\n y) run --a 1\n", NULL, "a=1");
	check_flags("fi\nesac\n;;\nelse\nrun --a 1\n", NULL, "a=1");
	check_flags("X=a\ncase $X in\nb) echo hi\nfi\n(true)\nrun --a 1\n", NULL, "a=1");
}

/* Writes `times` of `open` before "x", and as many of `close` behind it. */
static void nested(char *out, size_t size, int times, const char *before, const char *open, const char *close,
	const char *after)
{
	size_t n = (size_t)snprintf(out, size, "%s", before);
	for (int i = 0; i < times; i++)
		n += (size_t)snprintf(out + n, size - n, "%s", open);
	n += (size_t)snprintf(out + n, size - n, "x");
	for (int i = 0; i < times; i++)
		n += (size_t)snprintf(out + n, size - n, "%s", close);
	snprintf(out + n, size - n, "%s", after);
}

/* What is nested without end costs neither time nor stack. */
static void test_depth(void)
{
	static char text[1 << 20];
	struct shell s = {0};
	char out[SHELL_WORD];
	nested(text, sizeof text, 70, "", "$((x", "))", "");
	shell_expand(&s, text, out);
	CU_ASSERT_STRING_EQUAL(out, text);
	struct ydoc *doc = NULL;
	struct error e = {0};
	nested(text, sizeof text, 200000, "", "if ", "", "\n");
	CU_ASSERT_EQUAL(flags_parse(text, strlen(text), "run.sh", NULL, &doc, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "run.sh:1:1: more than 5000 words of branches, tests and echo");
	nested(text, sizeof text, 100000, "if [ ", "( ", " )", " ]; then\nrun --a 1\nfi\n");
	check_flags(text, NULL, "a=1");
	nested(text, sizeof text, 100000, "if ", "! ", "", "; then\nrun --a 1\nfi\n");
	check_flags(text, NULL, "a=1");
}

UNIT_MAIN("script", {"variables", test_variables}, {"conditions", test_conditions}, {"branches", test_branches},
	{"depth", test_depth})
