/* A picture into a file. */
#ifndef STEPSIM_REPORT_PICTURE_H
#define STEPSIM_REPORT_PICTURE_H

#include <stdio.h>

#include "base/status.h"

/* The SVG picture that `write` writes of `of`, as it is ("-": standard output); where `path` ends in .png, drawn by rsvg-convert (librsvg), twice as large. ST_INPUT without that program, ST_RUN where it fails. */
enum status picture_save(const char *path, void (*write)(const void *of, FILE *out), const void *of, const char *what, struct error *e);

#endif
