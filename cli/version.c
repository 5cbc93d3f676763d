/* `stepsim --version`: the program, the libraries of its build, and what its plug-in finds to execute with. */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "cli/command.h"

void print_version(FILE *out, struct context *x)
{
	char executing[EXEC_VERSIONS_TEXT];
	struct error e = {0};
	fprintf(out, "stepsim " STEPSIM_VERSION " (" STEPSIM_COMMIT ")\nlibraries: " STEPSIM_LIBRARIES "\n");
	if (context_exec(x, &e)) {
		fprintf(out, "execution: none: %s\n", e.text);
		return;
	}
	x->exec->exec_versions(executing);
	const int first = (int)strcspn(executing, "\n"); /* MPI and BLAS */
	fprintf(out, "%.*s%s%s%s", first, executing, *x->blas ? "; " : "", x->blas, executing + first);
}
