/* MPI calls that record what failed: expression, MPI's own text, host, rank, file and line. */
#ifndef STEPSIM_EXEC_MPI_CHECK_H
#define STEPSIM_EXEC_MPI_CHECK_H

#include "base/status.h"

#define MPI_CHECK(call, e) mpi_check((call), #call, __FILE__, __LINE__, (e))

/* ST_OK for MPI_SUCCESS, else ST_RUN with the record. */
enum status mpi_check(int code, const char *expression, const char *file, int line, struct error *e);

#endif
