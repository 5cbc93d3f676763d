#include "base/svg.h"

#include <string.h>

void svg_escaped(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else
			putc((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f ? '?' : *text, out);
	}
}

/* Of a sans-serif font, about (Helvetica's and Arial's are alike), at 12 px, of UTF-8's first 128. */
double svg_width(const char *text)
{
	double em = 0;
	for (; *text; text++)
		em += strchr("iljtfrI.,:;!/|()[]- '", *text) ? 0.3
		      : strchr("mwMW@%", *text)              ? 0.88
		      : *text >= 'A' && *text <= 'Z'         ? 0.69
		                                             : 0.56;
	return 12 * em;
}
