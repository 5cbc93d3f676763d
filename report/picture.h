/* Writes pictures to files. */
#ifndef STEPSIM_REPORT_PICTURE_H
#define STEPSIM_REPORT_PICTURE_H

#include <stdio.h>

#include "base/status.h"

/* Saves the SVG picture that `write` prints for `of` ("-": standard output). If `path` ends in .png, rsvg-convert
 * (librsvg) draws it at twice the size. ST_INPUT without that program, ST_RUN if it fails. */
enum status picture_save(const char *path, void (*write)(const void *of, FILE *out), const void *of, const char *what,
	struct error *e);

#endif
