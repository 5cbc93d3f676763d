/* What lines of training logs say of a step. Private to report/import/train_log*.c. */
#ifndef STEPSIM_REPORT_IMPORT_TRAIN_LOG_LINES_H
#define STEPSIM_REPORT_IMPORT_TRAIN_LOG_LINES_H

#include "report/import/train_log.h"

struct train_log_lines {
	const char *framework;
	bool (*read)(const char *line, struct train_log_step *s);
	bool weak; /* of a library that others are built on: it counts where no other line tells steps */
	struct {
		const char *word; /* of memory reserved; NULL: none */
		double unit_B;    /* 0: GiB or MiB follow the number */
	} memory;
};

extern const struct train_log_lines train_log_lines[];
extern const size_t train_log_lines_n;

/* Reads the number behind `word`: thousands may be parted by commas, K, M, B and T multiply. False: it is not there. */
bool train_log_number(const char *line, const char *word, double *out);

#endif
