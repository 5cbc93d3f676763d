#include <string.h>

#include "step/config_keys.h"

/* Leaves out names of files that were not given, and a number of GPUs that the system decides. A key that the strategy
 * does not use shows its default, which the reader accepts. */
static bool is_shown(const struct config *c, enum key_id id)
{
	switch (id) {
	case KEY_model_preset:
	case KEY_model_hf_config: return config_is_given(c, id);
	case KEY_cluster_profile: return c->cluster.profile[0] != '\0';
	case KEY_cluster_gpus_per_node: return c->cluster.gpus_per_node > 0;
	default: return true;
	}
}

json_t *config_json(const struct config *c)
{
	json_t *root = json_object();
	struct config defaults = {0};
	for (int i = 0; root && i < KEY_COUNT; i++) {
		enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		bool used = strategy_has(c->parallel.strategy, k->used_by), good = true;
		json_t *section = json_object_get(root, k->section);
		if (!section)
			good = json_object_set_new(root, k->section, section = json_object()) == 0;
		key_set_default(k, &defaults);
		if (good && is_shown(c, id))
			good = json_object_set_new(section, k->name, key_value_json(k, used ? c : &defaults)) == 0;
		if (!good) {
			json_decref(root);
			return NULL;
		}
	}
	return root;
}
