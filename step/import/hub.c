/* Models of Hugging Face's hub: a preset whose source is a page of the hub is that model, whoever's copy is named. */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/paths.h"
#include "step/import/import.h"

#define HUB "huggingface.co/"
#define NAME_LEN 128

/* Words of a name that tell what the weights were trained for, or who keeps them, and nothing of their shapes. */
static bool says_nothing(const char *word)
{
	static const char *const words[] = {"meta", "instruct", "chat", "hf", "base", "pt", "it"};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcasecmp(word, words[i]) == 0)
			return true;
	return false;
}

/* Copies the model's own name out of "organisation/name", without such words. */
static void shorten(const char *id, char out[NAME_LEN])
{
	char text[NAME_LEN], *rest = text, *word;
	const char *slash = strchr(id, '/');
	size_t n = 0;
	id = slash ? slash + 1 : id;
	snprintf(text, sizeof text, "%.*s", (int)strcspn(id, "/ ;,\"()"), id);
	*out = '\0';
	while ((word = strsep(&rest, "-")) && n < NAME_LEN)
		if (!says_nothing(word))
			n += (size_t)snprintf(out + n, NAME_LEN - n, "%s%s", n ? "-" : "", word);
}

/* Returns whether the preset's source is the page of this model. */
static bool is_page_of(const char *preset, const char *name)
{
	char path[PATH_MAX_LEN], page[NAME_LEN];
	struct ydoc *doc = NULL;
	if (path_catalogue("models", preset, path, NULL) || ydoc_load(path, &doc, NULL))
		return false;
	const struct ynode *source = ynode_get(ydoc_root(doc), "source");
	const char *hub = source && source->kind == Y_SCALAR ? strstr(source->text, HUB) : NULL;
	if (hub)
		shorten(hub + strlen(HUB), page);
	ydoc_destroy(doc);
	return hub && strcasecmp(page, name) == 0;
}

static bool hub_preset(const char *id, char preset[STACK_NAME])
{
	char name[NAME_LEN], **names = NULL;
	size_t n = 0;
	bool found = false;
	shorten(id, name);
	if (!*name || path_catalogue_names("models", &names, &n, NULL))
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		found = is_page_of(names[i], name);
		if (found)
			snprintf(preset, STACK_NAME, "%s", names[i]);
	}
	path_names_free(names, n);
	return found;
}

bool hub_value(const char *id, enum key_id key, char out[KEY_VALUE_MAX])
{
	char preset[STACK_NAME], path[PATH_MAX_LEN];
	struct ydoc *doc = NULL;
	if (!hub_preset(id, preset))
		return false;
	if (key == KEY_model_preset) {
		snprintf(out, KEY_VALUE_MAX, "%s", preset);
		return true;
	}
	if (path_catalogue("models", preset, path, NULL) || ydoc_load(path, &doc, NULL))
		return false;
	const struct ynode *n = ynode_get(ynode_get(ydoc_root(doc), "model"), config_key(key)->name);
	const bool found = n && n->kind == Y_SCALAR;
	if (found)
		snprintf(out, KEY_VALUE_MAX, "%s", n->text);
	ydoc_destroy(doc);
	return found;
}
