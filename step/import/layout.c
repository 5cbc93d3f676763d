/* Megatron-LM's --pipeline-model-parallel-layout (megatron/core/transformer/pipeline_parallel_layer_layout.py): letters
 * for layers, bars between the parts of a pipeline, "x*n" and "(...)*n" for repetitions, commas for the eye alone.
 *
 *   E   the embedding, first of all        t   a layer
 *   m   a block of multi-token prediction  L   the head and the loss, last of all
 *
 * Here embedding and head stand in the first and the last part, and blocks that predict further tokens before the head:
 * those of another part are moved there, which layout_moves says. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "step/import/import.h"

#define PARTS_MOST 1024
#define NESTED 8
#define TIMES_MOST 10000
#define LETTERS_MOST 100000 /* with repetitions, which multiply where they stand in each other */

struct layout {
	const char *at;
	int64_t layers[PARTS_MOST];
	size_t parts;               /* so far, the present one included */
	size_t head_part, mtp_part; /* + 1; 0: none yet */
	int64_t letters;            /* read so far */
	bool good;
};

static void letter(struct layout *l, char c)
{
	const bool more = l->parts < PARTS_MOST;
	l->good &= ++l->letters <= LETTERS_MOST;
	switch (c) {
	case 't': l->layers[l->parts - 1]++; break;
	case '|':
		l->good &= more && l->head_part == 0;
		if (more)
			l->layers[l->parts++] = 0;
		break;
	case 'E': l->good &= l->parts == 1 && l->layers[0] == 0; break;
	case 'm': l->mtp_part = l->parts; break;
	case 'L': l->head_part = l->parts; break;
	case ',':
	case ' ': break;
	default: l->good = false;
	}
}

/* Returns the number behind "*"; 1 without. */
static long times(struct layout *l)
{
	char *end;
	if (*l->at != '*')
		return 1;
	const long n = strtol(l->at + 1, &end, 10);
	l->good &= isdigit((unsigned char)l->at[1]) && n > 0 && n < TIMES_MOST;
	l->at = end;
	return n;
}

/* Reads up to the end of the text, or of a pair of parentheses. */
static void sequence(struct layout *l, int depth)
{
	l->good &= ++l->letters <= LETTERS_MOST; /* an empty pair counts, too */
	while (*l->at && *l->at != ')' && l->good) {
		const char *from = l->at, c = *l->at++;
		l->good &= depth < NESTED;
		if (c == '(') {
			sequence(l, depth + 1);
			l->good &= *l->at == ')';
			l->at += *l->at == ')';
		} else {
			letter(l, c);
		}
		const long n = l->good ? times(l) : 1;
		const char *behind = l->at;
		for (long i = 1; i < n && l->good; i++) {
			l->at = from + 1;
			if (c == '(')
				sequence(l, depth + 1);
			else
				letter(l, c);
		}
		l->at = behind;
	}
}

static bool write_parts(const struct layout *l, char out[KEY_VALUE_MAX])
{
	int n = snprintf(out, KEY_VALUE_MAX, "[");
	for (size_t i = 0; i < l->parts && n < KEY_VALUE_MAX; i++)
		n += snprintf(out + n, KEY_VALUE_MAX - (size_t)n, "%s%lld", i > 0 ? ", " : "", (long long)l->layers[i]);
	if (n < KEY_VALUE_MAX)
		n += snprintf(out + n, KEY_VALUE_MAX - (size_t)n, "]");
	return n < KEY_VALUE_MAX;
}

bool layout_moves(const char *text)
{
	struct layout l = {.at = text, .parts = 1, .good = true};
	sequence(&l, 0);
	return l.good && l.mtp_part > 0 && l.mtp_part != l.parts;
}

/* Blocks that predict stand behind all layers. */
static bool mtp_is_last(const struct layout *l)
{
	for (size_t i = l->mtp_part; l->mtp_part > 0 && i < l->parts; i++)
		if (l->layers[i] > 0)
			return false;
	return true;
}

bool layout_value(const char *text, enum key_id key, char out[KEY_VALUE_MAX])
{
	struct layout l = {.at = text, .parts = 1, .good = true};
	sequence(&l, 0);
	if (!l.good || *l.at || l.parts < 2 || (l.head_part > 0 && l.head_part != l.parts) || !mtp_is_last(&l))
		return false;
	if (key == KEY_parallel_layers_per_stage)
		return write_parts(&l, out);
	snprintf(out, KEY_VALUE_MAX, "%zu", l.parts);
	return true;
}
