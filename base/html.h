/* Text that is safe in HTML, in elements and in attributes between double quotes. UTF-8 stays as it is. */
#ifndef STEPSIM_BASE_HTML_H
#define STEPSIM_BASE_HTML_H

#include <stdio.h>

void html_escaped(const char *text, FILE *out);

#endif
