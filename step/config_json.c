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

static json_t *section_json(const struct config *c, const char *section)
{
	json_t *object = json_object();
	struct config defaults = {0};
	for (int i = 0; object && i < KEY_COUNT; i++) {
		enum key_id id = (enum key_id)i;
		const struct config_key *k = config_key(id);
		if (strcmp(k->section, section) != 0 || !is_shown(c, id))
			continue;
		bool used = strategy_has(c->parallel.strategy, k->used_by);
		key_set_default(k, &defaults);
		json_t *value = key_value_json(k, used ? c : &defaults);
		if (!value || json_object_set_new(object, k->name, value)) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

json_t *config_json(const struct config *c)
{
	json_t *root = json_object();
	for (size_t i = 0; root && i < CONFIG_SECTIONS; i++) {
		json_t *section = section_json(c, config_sections[i]);
		if (!section || json_object_set_new(root, config_sections[i], section)) {
			json_decref(root);
			return NULL;
		}
	}
	return root;
}
