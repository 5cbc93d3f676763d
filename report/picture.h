/* A picture into a file. */
#ifndef STEPSIM_REPORT_PICTURE_H
#define STEPSIM_REPORT_PICTURE_H

#include <stddef.h>

#include "base/status.h"

/* An SVG picture as it is ("-": standard output); where `path` ends in .png, drawn by rsvg-convert (librsvg), twice as large. ST_INPUT without that program, ST_RUN where it fails. */
enum status picture_save(const char *path, const char *svg, size_t len, struct error *e);

#endif
