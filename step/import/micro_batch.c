/* The micro-batch of a text that gives the batch of a step alone: it follows from the replicas, and from how many
 * micro-batches each has in a step. */
#include <stdlib.h>
#include <string.h>

#include "step/import/import.h"
#include "step/import/rows.h"

bool import_splits_batch(const struct import *im)
{
	return im->table.accumulation && im->key[KEY_train_global_batch].given &&
	       im->key[KEY_train_micro_batch].by_default;
}

void import_split_batch(struct import *im, int64_t batch, int64_t replicas, struct error *refused)
{
	struct leaf *l = foreign_find(&im->foreign, im->table.accumulation);
	char *rest = NULL, value[32], remark[REMARK_MAX];
	/* "auto": transformers' Trainer fills in its own default, 1, and refuses other products of the three */
	const bool given = l && strcmp(l->value, "auto") != 0;
	const long long steps = given ? strtoll(l->value, &rest, 10) : 1;
	if (steps < 1 || steps > batch || (rest && *rest))
		return;
	if (batch % (replicas * steps) != 0) {
		error_set(refused, ST_INPUT,
			"%s: a batch of %lld does not split into %lld micro-batches (%lld replicas x %lld; "
			"--gpus N takes other GPUs)",
			im->name, (long long)batch, replicas * steps, (long long)replicas, steps);
		return;
	}
	snprintf(value, sizeof value, "%lld", (long long)(batch / replicas / steps));
	snprintf(remark, sizeof remark, "%.60s over %lld replica%s, %lld micro-batch%s each",
		im->key[KEY_train_global_batch].remark, (long long)replicas, replicas == 1 ? "" : "s", steps,
		steps == 1 ? "" : "es");
	import_put(im, KEY_train_micro_batch, value, remark);
	for (size_t i = 0; i < im->foreign.leaves.n; i++)
		if (im->foreign.leaves.at[i].unmet == KEY_train_micro_batch)
			leaf_judge(&im->foreign.leaves.at[i], NO_EFFECT, "it follows from the batch");
	if (l && given)
		leaf_judge(l, TAKEN, "train.micro_batch");
	else if (l)
		leaf_judge(l, NO_EFFECT, "1, as transformers' Trainer fills in");
}
