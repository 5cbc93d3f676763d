/* What people read: defects, and what was executed. */
#include <cxxabi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/ptx/machine.h"

namespace ptx
{

constexpr int EXIT_DEFECT = 9;

std::string plain_name(const std::string &mangled)
{
	int status = 0;
	char *plain = abi::__cxa_demangle(mangled.c_str(), NULL, NULL, &status);
	const std::string name = status ? mangled : plain;
	free(plain);
	return name;
}

static void say(const char *format, va_list args)
{
	fflush(stdout);
	fputs("ptx: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void defect(const warp &w, const instr &i, uint32_t lanes, const char *format, ...)
{
	const block &b = *w.in;
	const source &s = *b.k->from;
	const std::string place = s.place(i.loc);
	const std::string_view text = s.line_text(i.line);
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	fprintf(stderr, "  in %s, block %u,%u,%u, thread %d\n", plain_name(b.k->name).c_str(), b.at[0], b.at[1],
		b.at[2], w.index * LANES + (lanes ? __builtin_ctz(lanes) : 0));
	fprintf(stderr, "  at %s:%u: %.*s\n", s.path.c_str(), i.line, (int)text.size(), text.data());
	fprintf(stderr, "  from %s\n", place.empty() ? "an unknown line" : place.c_str());
	fflush(NULL);
	_exit(EXIT_DEFECT);
}

void give_up(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	say(format, args);
	va_end(args);
	fflush(NULL);
	_exit(EXIT_DEFECT);
}

} // namespace ptx
