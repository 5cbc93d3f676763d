/* Names that a text begins with, as people write them: whatever the case, '-', '_' and blanks.
 *
 * "A ... B" is a text that begins with A and has words that begin with B further on. */
#ifndef STEPSIM_BASE_PHRASE_H
#define STEPSIM_BASE_PHRASE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns how many characters of the name the text begins with: all, or 0. No letter may follow: "Alpaca" does not
 * begin with "Alpa", "FSDP2" begins with "FSDP". whole: no word may be left over. */
size_t phrase_match(const char *name, const char *text, bool whole);

#endif
