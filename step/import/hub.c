/* Models of Hugging Face's hub: a preset whose source is a page of the hub is that model, whoever's copy is named. */
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/paths.h"
#include "step/import/import.h"

#define HUB "huggingface.co/"
#define NAME_LEN 128
#define STOPS "/ ;,\"()" /* of a page in a text */

/* Words of a name that tell what the weights were trained for, who keeps them, when (2507) and in which format, and
 * nothing of their shapes. */
static bool says_nothing(const char *word)
{
	static const char *const words[] = {"meta", "instruct", "chat", "hf", "base", "pt", "it", "thinking",
		"reasoning", "bf16", "fp16", "fp8", "gptq", "awq", "bnb", "nf4", "nvfp4", "mcore", "int4", "int8",
		"4bit", "8bit", "checkpoints", "dequantized", "linearized"};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcasecmp(word, words[i]) == 0)
			return true;
	return strlen(word) == 4 && strspn(word, "0123456789") == 4;
}

/* Copies the model's own name, the last of "organisation/name" or of a path, without such words. `len` bytes. */
static void shorten(const char *id, size_t len, char out[NAME_LEN])
{
	char text[NAME_LEN], *rest = text, *word;
	size_t n = 0;
	while (len > 1 && id[len - 1] == '/')
		len--;
	const char *slash = memrchr(id, '/', len);
	id = slash ? slash + 1 : id;
	snprintf(text, sizeof text, "%.*s", (int)strcspn(id, "/ ;,\"()"), id);
	*out = '\0';
	for (char *dot; (dot = strstr(text, "___"));) { /* as modelscope's cache writes it */
		*dot = '.';
		memmove(dot + 1, dot + 3, strlen(dot + 3) + 1);
	}
	while ((word = strsep(&rest, "-")) && n < NAME_LEN)
		if (!says_nothing(word))
			n += (size_t)snprintf(out + n, NAME_LEN - n, "%s%s", n ? "-" : "", word);
}

/* Returns whether the preset's source names the page of this model. */
static bool is_page_of(const char *preset, const char *name)
{
	char path[PATH_MAX_LEN], page[NAME_LEN];
	struct ydoc *doc = NULL;
	bool found = false;
	if (path_catalogue("models", preset, path, NULL) || ydoc_load(path, &doc, NULL))
		return false;
	const struct ynode *source = ynode_get(ydoc_root(doc), "source");
	const char *hub = source && source->kind == Y_SCALAR ? strstr(source->text, HUB) : NULL;
	for (; hub && !found; hub = strstr(hub, HUB)) {
		hub += strlen(HUB);
		const char *name_at = hub + strcspn(hub, "/ ");
		shorten(hub, (size_t)(name_at - hub) + (*name_at == '/' ? 1 + strcspn(name_at + 1, STOPS) : 0), page);
		found = strcasecmp(page, name) == 0;
	}
	ydoc_destroy(doc);
	return found;
}

/* Returns the model's own name where the hub's cache keeps it: ".../models--ORGANISATION--NAME/snapshots/...". */
static const char *in_cache(const char *id, size_t *len)
{
	const char *folder = strstr(id, "models--"), *own = folder ? strstr(folder + strlen("models--"), "--") : NULL;
	if (!own || memchr(folder, '/', (size_t)(own - folder)))
		return NULL;
	*len = strcspn(own + 2, STOPS);
	return own + 2;
}

static bool hub_preset(const char *id, char preset[STACK_NAME])
{
	char name[NAME_LEN], **names = NULL;
	size_t n = 0, len = strcspn(id, " ;,\"()");
	bool found = false;
	const char *own = in_cache(id, &len);
	shorten(own ? own : id, len, name);
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
