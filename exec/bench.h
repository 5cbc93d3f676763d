/* Timing one collective over a range of sizes, as nccl-tests does (doc/PERFORMANCE.md, src/common.cu): warm-up,
 * barrier, a row of calls between two readings of the clock, the slowest rank's mean; then one call each out of place
 * and in place whose every element is compared. For exec/ and its tests; bench (exec/exec.h) is what others see. */
#ifndef STEPSIM_EXEC_BENCH_H
#define STEPSIM_EXEC_BENCH_H

#include "exec/exec.h"
#include "step/bench.h"

/* The last choice that NCCL's log tells of, from lines of NCCL_DEBUG_SUBSYS=TUNING ("... AllReduce: 1024 Bytes -> Algo
 * RING proto LL channel{Lo..Hi}={0..23}", since 2.24; kernels on symmetric memory
 * "... -> Kernel NAME nchannels 8 ..."): algorithm, protocol and channels of the row. False, and the row as it was:
 * none. */
bool bench_read_choice(const char *log, struct bench_row *row);

#endif
