/* cluster.slow_ranks: read, written, checked, asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step/config/keys.h"

enum status slow_ranks_read(const struct config_key *k, const struct ynode *n, struct config *c, struct error *inner)
{
	if (n->kind != Y_MAP)
		return error_set(inner, ST_INPUT, "expected a mapping such as {3: 1.2}");
	if (n->n > CONFIG_MAX_SLOW)
		return error_set(inner, ST_INPUT, "%zu entries are more than %d", n->n, CONFIG_MAX_SLOW);
	memset(c->cluster.slow_ranks, 0, sizeof c->cluster.slow_ranks);
	for (size_t i = 0; i < n->n; i++) {
		struct ynode item = *n->child[i];
		const char *name = item.key;
		struct slow_rank *slow = &c->cluster.slow_ranks[i];
		struct error number = {0};
		slow->is_host = name[0] == 'n';
		const char *digits = name + slow->is_host;
		size_t len = strspn(digits, "0123456789");
		if (len == 0 || len > 9 || digits[len])
			return error_set(inner, ST_INPUT, "\"%.60s\" is neither a rank (3) nor a host (n1)", name);
		slow->index = strtoll(digits, NULL, 10);
		item.file = "";
		item.key = NULL;
		if (ynode_quantity(&item, UNIT_NONE, k->low, k->high, &slow->factor, &number))
			return error_set(inner, ST_INPUT, "%s: expected a factor from %.0f to %.0f", name, k->low,
				k->high);
	}
	c->cluster.n_slow_ranks = (int64_t)n->n;
	return ST_OK;
}

static char *slow_name(const struct slow_rank *s, char buf[32])
{
	snprintf(buf, 32, "%s%" PRId64, s->is_host ? "n" : "", s->index);
	return buf;
}

void slow_ranks_text(const struct config *c, char buf[KEY_VALUE_MAX])
{
	size_t at = (size_t)snprintf(buf, KEY_VALUE_MAX, "{");
	for (int64_t i = 0; i < c->cluster.n_slow_ranks; i++) {
		char name[32];
		int len = snprintf(buf + at, KEY_VALUE_MAX - at, "%s%s: %.12g", i ? ", " : "",
			slow_name(&c->cluster.slow_ranks[i], name), c->cluster.slow_ranks[i].factor);
		if (at + (size_t)len + 1 >= KEY_VALUE_MAX) /* what does not fit is left out */
			break;
		at += (size_t)len;
	}
	snprintf(buf + at, KEY_VALUE_MAX - at, "}");
}

json_t *slow_ranks_json(const struct config *c)
{
	json_t *o = json_object();
	for (int64_t i = 0; o && i < c->cluster.n_slow_ranks; i++) {
		char name[32];
		if (json_object_set_new(o, slow_name(&c->cluster.slow_ranks[i], name),
			    json_real(c->cluster.slow_ranks[i].factor))) {
			json_decref(o);
			o = NULL;
		}
	}
	return o;
}

enum status slow_ranks_check(const struct config *c, int64_t ranks, struct error *e)
{
	int64_t hosts = c->node_ranks > 0 ? (ranks + c->node_ranks - 1) / c->node_ranks : ranks;
	for (int64_t i = 0; i < c->cluster.n_slow_ranks; i++) {
		const struct slow_rank *s = &c->cluster.slow_ranks[i];
		int64_t n = s->is_host ? hosts : ranks;
		if (s->index >= n)
			return config_error(c, KEY_cluster_slow_ranks, e,
				"there is no %s %" PRId64 " among %" PRId64 " (nearest: %s%" PRId64 ")",
				s->is_host ? "host" : "rank", s->index, n, s->is_host ? "n" : "", n - 1);
	}
	return ST_OK;
}

double config_slowness(const struct config *c, int64_t rank, int64_t ranks_per_host)
{
	double most = 1;
	for (int64_t i = 0; i < c->cluster.n_slow_ranks; i++) {
		const struct slow_rank *s = &c->cluster.slow_ranks[i];
		if (s->index == (s->is_host ? rank / ranks_per_host : rank) && s->factor > most)
			most = s->factor;
	}
	return most;
}
