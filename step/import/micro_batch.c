/* The micro-batch of a text that gives the batch of a step alone: it follows from the replicas, and from how many
 * micro-batches each has in a step. */
#include <stdlib.h>

#include "step/import/import.h"
#include "step/import/rows.h"

bool import_splits_batch(const struct import *im)
{
	const char *name;
	if (!im->table.accumulation || !im->key[KEY_train_global_batch].given ||
		!im->key[KEY_train_micro_batch].by_default)
		return false;
	for (size_t i = 0; i < im->table.rows.n; i++) {
		const struct import_row *r = &im->table.rows.at[i];
		for (size_t k = 0; r->to == KEY_train_micro_batch && (name = import_row_name(r, k)); k++)
			if (foreign_find(&im->foreign, name))
				return false; /* "auto": another program fills it in */
	}
	return true;
}

void import_split_batch(struct import *im, int64_t batch, int64_t replicas, struct error *refused)
{
	struct leaf *l = foreign_find(&im->foreign, im->table.accumulation);
	char *rest = NULL, value[32], remark[REMARK_MAX];
	const long long steps = l ? strtoll(l->value, &rest, 10) : 1;
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
	if (l)
		leaf_judge(l, TAKEN, "train.micro_batch");
}
