/* "data: !include data/pile.yaml": a value that stands in another file of YAML, as Levanter's configs have it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "step/import/foreign.h"

#define INCLUDE "!include "
#define INCLUDES_MOST 32 /* files that include themselves end here */
#define INCLUDE_LIMIT_B ((size_t)16 << 20)

struct includes {
	struct ydoc *doc;
	size_t n;
};

static enum status walk(struct includes *in, struct ynode *n, struct error *e);

/* Puts the file's tree in place of the text that names it. A file that is not there leaves the text. */
static enum status include(struct includes *in, struct ynode *n, struct error *e)
{
	char path[PATH_MAX_LEN], *text = NULL;
	size_t len = 0;
	struct stat s;
	struct ydoc *other = NULL;
	if (!path_beside(n->file, n->text + strlen(INCLUDE), path) || stat(path, &s) || !S_ISREG(s.st_mode))
		return ST_OK;
	if (in->n++ == INCLUDES_MOST)
		return ynode_error(n, e, "more than %d files are included", INCLUDES_MOST);
	enum status st = file_read(path, INCLUDE_LIMIT_B, &text, &len, e);
	if (!st)
		st = ydoc_parse_foreign(text, len, path, &other, e);
	free(text);
	if (st)
		return st;
	ydoc_keep(in->doc, other);
	const struct ynode *root = ydoc_root(other);
	n->kind = root->kind;
	n->text = root->text;
	n->quoted = root->quoted;
	n->n = root->n;
	n->child = root->child;
	return walk(in, n, e);
}

static enum status walk(struct includes *in, struct ynode *n, struct error *e)
{
	if (n->kind == Y_SCALAR)
		return strncmp(n->text, INCLUDE, strlen(INCLUDE)) == 0 ? include(in, n, e) : ST_OK;
	for (size_t i = 0; i < n->n; i++) {
		enum status st = walk(in, n->child[i], e);
		if (st)
			return st;
	}
	return ST_OK;
}

enum status foreign_include(struct ydoc *doc, struct error *e)
{
	struct includes in = {.doc = doc};
	return walk(&in, ydoc_edit(doc), e);
}
