#include "exec/mpi_check.h"

#include <mpi.h>
#include <unistd.h>

enum status mpi_check(int code, const char *expression, const char *file, int line, struct error *e)
{
	if (code == MPI_SUCCESS)
		return ST_OK;
	char text[MPI_MAX_ERROR_STRING] = "", host[64] = "?";
	int length, rank = -1;
	MPI_Error_string(code, text, &length);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	gethostname(host, sizeof host - 1);
	return error_set(e, ST_RUN, "%s: %s (host %s, rank %d, %s:%d)", expression, text, host, rank, file, line);
}
