/* A stream that writes to memory and knows whether all of it arrived. open_memstream of glibc does not: where memory
 * runs out in the middle, the text is short and neither ferror nor fclose says so. */
#ifndef STEPSIM_BASE_MEMORY_STREAM_H
#define STEPSIM_BASE_MEMORY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns NULL where there is no memory, with *text NULL. *text, which the caller frees, and *len hold once the stream
 * is closed; the text ends with a NUL. */
FILE *memory_stream(char **text, size_t *len);

/* Returns whether all that was written is in the text. */
bool memory_stream_close(FILE *stream);

#endif
