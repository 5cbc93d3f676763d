/* Configs that hold another framework's: Primus' experiments (https://github.com/AMD-AGI/Primus, examples). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "step/import/foreign.h"

/* Writes "llama3.1-8b" for "llama3.1_8B.yaml" and "${PRIMUS_MODEL:llama3.1_8B}.yaml". */
static void model_name(const char *text, char *out, size_t size)
{
	const char *colon = strncmp(text, "${", 2) == 0 ? strchr(text, ':') : NULL;
	const char *start = colon ? colon + 1 : text;
	size_t n = strcspn(start, "}");
	const char *end = strstr(start, ".yaml");
	if (end && (size_t)(end - start) < n)
		n = (size_t)(end - start);
	snprintf(out, size, "%.*s", (int)n, start);
	for (char *p = out; *p; p++)
		*p = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
}

/* Makes the key _model_ of the name of a model's file; NULL: no memory. */
static struct ynode *model_node(struct ydoc *doc, const struct ynode *of)
{
	struct ynode *n = ydoc_alloc(doc, sizeof *n);
	char *name = ydoc_alloc(doc, STACK_NAME);
	if (!n || !name)
		return NULL;
	model_name(of->text, name, STACK_NAME);
	*n = *of;
	n->key = "_model_";
	n->text = name;
	return n;
}

enum status foreign_unwrap(struct ydoc *doc, char framework[STACK_NAME], struct error *e)
{
	struct ynode *root = ydoc_edit(doc);
	const struct ynode *modules = ynode_get(root, "modules"), *found = NULL;
	for (size_t i = 0; modules && i < modules->n && !found; i++)
		if (ynode_get(modules->child[i], "framework") && ynode_get(modules->child[i], "overrides"))
			found = modules->child[i];
	const struct ynode *name = ynode_get(found, "framework"), *of = ynode_get(found, "model"),
			   *overrides = ynode_get(found, "overrides");
	if (!name || name->kind != Y_SCALAR || overrides->kind == Y_SEQ)
		return ST_OK;
	snprintf(framework, STACK_NAME, "%s", strcmp(name->text, "megatron_bridge") == 0 ? "nemo" : name->text);
	struct ynode **child = ydoc_alloc(doc, (root->n + overrides->n + 1) * sizeof(struct ynode *));
	struct ynode *model = of && of->kind == Y_SCALAR ? model_node(doc, of) : NULL;
	size_t n = 0;
	if (!child || (of && of->kind == Y_SCALAR && !model))
		return error_nomem(e, "a config's keys");
	for (size_t i = 0; i < root->n; i++)
		if (root->child[i] != modules)
			child[n++] = root->child[i];
	for (size_t i = 0; i < overrides->n; i++)
		child[n++] = overrides->child[i];
	if (model)
		child[n++] = model;
	root->child = child;
	root->n = n;
	return ST_OK;
}
