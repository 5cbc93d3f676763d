/* Models of Hugging Face's hub: each file of configs/models lists the names of its own in `hub`. */
#include <string.h>

#include "base/paths.h"
#include "step/import/import.h"

/* Returns whether the file of a preset lists this name. */
static bool lists(const char *preset, const char *name)
{
	char path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	bool found = false;
	if (path_catalogue("models", preset, path, NULL) || ydoc_load(path, &doc, NULL))
		return false;
	const struct ynode *hub = ynode_get(ydoc_root(doc), "hub");
	for (size_t i = 0; hub && i < hub->n && !found; i++)
		found = suggest_same(hub->child[i]->text, name);
	ydoc_destroy(doc);
	return found;
}

bool hub_preset(const char *id, char preset[STACK_NAME])
{
	const char *slash = strrchr(id, '/'), *name = slash ? slash + 1 : id;
	char **names = NULL;
	size_t n = 0;
	bool found = false;
	if (path_catalogue_names("models", &names, &n, NULL))
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		found = lists(names[i], name);
		if (found)
			snprintf(preset, STACK_NAME, "%s", names[i]);
	}
	path_names_free(names, n);
	return found;
}
