/* A file of the source tree as a string in the binary. */
#ifndef STEPSIM_REPORT_EMBED_H
#define STEPSIM_REPORT_EMBED_H

#define EMBED(symbol, file) \
	__asm__(".section .rodata\n.global " #symbol "\n" #symbol ":\n.incbin \"" file "\"\n.byte 0\n.previous\n"); \
	extern const char symbol[]

#endif
