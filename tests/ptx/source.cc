/* Files of PTX: where functions stand, and their statements. */
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/ptx/machine.h"

namespace ptx
{

static std::string_view trimmed(std::string_view s)
{
	const size_t from = s.find_first_not_of(" \t\r\n"), to = s.find_last_not_of(" \t\r\n");
	return from == s.npos ? std::string_view() : s.substr(from, to - from + 1);
}

static bool begins(std::string_view s, std::string_view with) { return s.substr(0, with.size()) == with; }

static int number_behind(std::string_view s, std::string_view word, int otherwise)
{
	const size_t at = s.find(word);
	return at == s.npos ? otherwise : atoi(std::string(s.substr(at + word.size())).c_str());
}

variable variable_of(std::string_view s)
{
	const size_t bracket = std::min(s.find('['), s.size()), name = s.find_last_of(" \t\n", bracket - 1) + 1;
	const std::string head(
		trimmed(s.substr(0, std::min(s.find(".ptr"), name)))); /* behind it: of what it points to */
	const size_t digits = head.find_first_of("1368", head.rfind('.'));
	const uint64_t element = digits == head.npos ? 0 : strtoull(head.c_str() + digits, NULL, 10) / 8;
	if (!element)
		give_up("the variable '%.*s' has no known type", (int)s.size(), s.data());
	return {std::string(s.substr(name, bracket - name)),
		element * (uint64_t)(bracket < s.size() ? number_behind(s, "[", 0) : 1),
		(uint64_t)number_behind(head, ".align", (int)element)};
}

static std::vector<variable> variables_of(std::string_view list)
{
	std::vector<variable> all;
	while (!(list = trimmed(list)).empty()) {
		const size_t end = std::min(list.find(','), list.size());
		all.push_back(variable_of(trimmed(list.substr(0, end))));
		list = list.substr(std::min(end + 1, list.size()));
	}
	return all;
}

/* The text between the first parenthesis from `at` and the next that closes; `at` then stands behind it. */
static std::string_view parenthesis(std::string_view s, size_t &at)
{
	const size_t from = s.find('(', at), to = s.find(')', at);
	if (from == s.npos || to == s.npos)
		return {};
	at = to + 1;
	return s.substr(from + 1, to - from - 1);
}

static function_text function_of(std::string_view head)
{
	function_text f = {};
	f.entry = head.find(".entry") != head.npos;
	size_t at = f.entry ? head.find(".entry") + 6 : head.find(".func") + 5;
	if (!f.entry && trimmed(head.substr(at)).front() == '(')
		f.results = variables_of(parenthesis(head, at));
	const size_t open = std::min(head.find('(', at), head.size());
	f.name = trimmed(head.substr(at, open - at));
	f.params = variables_of(parenthesis(head, at));
	f.threads_max = number_behind(head, ".maxntid", 0);
	return f;
}

static const uint8_t *global_of(const variable &v, std::string_view text)
{
	uint8_t *memory = (uint8_t *)aligned_alloc(256, (v.bytes + 511) / 256 * 256);
	size_t at = text.find('{');
	for (uint64_t i = 0; i < v.bytes; i++) {
		memory[i] = at == text.npos ? 0 : (uint8_t)atoi(text.data() + at + 1);
		at = at == text.npos ? at : text.find(',', at + 1);
	}
	global_memory.add((uint64_t)memory, v.bytes);
	return memory;
}

/* A directive or a function that begins at `at`; returns where it ends. */
static size_t read_part(source &s, size_t at, uint32_t line)
{
	const std::string_view rest = std::string_view(s.text).substr(at);
	const size_t end_of_line = std::min(rest.find('\n'), rest.size()), semicolon = rest.find(';');
	const std::string_view head = rest.substr(0, end_of_line);
	if (head.find(".entry") != head.npos || head.find(".func") != head.npos) {
		const size_t body = rest.find("\n{");
		if (semicolon < body) /* a declaration */
			return at + semicolon + 1;
		size_t end = body + 1;
		for (int depth = 0; end < rest.size(); end++) {
			depth += (rest[end] == '{') - (rest[end] == '}');
			if (!depth)
				break;
		}
		if (body == rest.npos || end >= rest.size())
			give_up("%s:%u: a function without an end", s.path.c_str(), line);
		function_text f = function_of(rest.substr(0, body));
		f.begin = at + body + 2;
		f.end = at + end;
		f.line = line + (uint32_t)std::count(rest.begin(), rest.begin() + (ptrdiff_t)body + 2, '\n');
		s.functions.push_back(f);
		return at + end + 1;
	}
	const std::string_view text = rest.substr(0, semicolon);
	if (begins(head, ".shared") || begins(head, ".extern .shared") || begins(head, ".visible .shared")) {
		variable v = variable_of(trimmed(text));
		s.shared.push_back(v);
		return at + semicolon + 1;
	}
	if (begins(head, ".global") || begins(head, ".const") || begins(head, ".visible .global")) {
		const variable v = variable_of(trimmed(text.substr(0, text.find('='))));
		s.globals.push_back({v.name, global_of(v, text)});
		return at + semicolon + 1;
	}
	if (begins(trimmed(head), ".file")) {
		const size_t from = head.find('"') + 1, to = head.rfind('"');
		std::string path(head.substr(from, to - from));
		char here[4096];
		if (getcwd(here, sizeof here) && begins(path, std::string(here) + "/"))
			path = path.substr(strlen(here) + 1);
		s.files.push_back({number_behind(head, ".file", 0), begins(path, "./") ? path.substr(2) : path});
	}
	if (begins(trimmed(head), ".section")) { /* of the debugger: hundreds of thousands of lines */
		const size_t end = rest.find("\n\t}");
		return end == rest.npos ? s.text.size() : at + end + 3;
	}
	return at + end_of_line;
}

std::unique_ptr<source> read_source(const std::string &path)
{
	std::ifstream file(path);
	if (!file)
		give_up("%s cannot be read", path.c_str());
	std::stringstream all;
	all << file.rdbuf();
	auto s = std::make_unique<source>();
	s->path = path;
	s->text = all.str();
	s->locs.push_back({0, 0, 0, 0});
	uint32_t line = 1;
	for (size_t at = 0; at < s->text.size();) {
		const size_t begin = s->text.find_first_not_of(" \t", at);
		size_t end = begin == std::string::npos ? s->text.size() : begin;
		if (end < s->text.size() && s->text[end] == '.')
			end = read_part(*s, begin, line);
		end = std::min(s->text.find('\n', end), s->text.size() - 1) + 1;
		line += (uint32_t)std::count(s->text.begin() + (ptrdiff_t)at, s->text.begin() + (ptrdiff_t)end, '\n');
		at = end;
	}
	return s;
}

const function_text *source::function(std::string_view name) const
{
	for (const function_text &f : functions)
		if (f.name == name)
			return &f;
	return NULL;
}

std::string source::place(uint32_t loc) const
{
	auto text = [&](int number, int line) {
		for (const auto &f : files)
			if (f.first == number)
				return f.second + ":" + std::to_string(line);
		return std::string("?");
	};
	const source_line &l = locs[loc];
	return !loc ? "" : text(l.file, l.line) + (l.at_file ? ", inlined at " + text(l.at_file, l.at_line) : "");
}

std::string_view source::line_text(uint32_t line) const
{
	size_t at = 0;
	for (uint32_t l = 1; l < line && at != std::string::npos; l++)
		at = text.find('\n', at) + 1;
	return trimmed(std::string_view(text).substr(at, text.find('\n', at) - at));
}

/* ---- statements ---- */

/* ".loc 2 62 78, function_name $L__info_string0, inlined_at 1 7 2" */
static uint32_t loc_of(source &s, std::string_view text)
{
	source_line l = {0, 0, 0, 0};
	const std::string copy(text);
	const size_t inlined = copy.find("inlined_at");
	sscanf(copy.c_str(), ".loc %d %d", &l.file, &l.line);
	if (inlined != std::string::npos)
		sscanf(copy.c_str() + inlined, "inlined_at %d %d", &l.at_file, &l.at_line);
	s.locs.push_back(l);
	return (uint32_t)s.locs.size() - 1;
}

std::vector<statement> statements_of(source &s, const function_text &f)
{
	std::vector<statement> all;
	const std::string_view text = s.text;
	uint32_t line = f.line, loc = 0;
	for (size_t at = f.begin; at < f.end;) {
		const char c = text[at];
		line += c == '\n';
		if (isspace(c)) {
			at++;
			continue;
		}
		size_t end = std::min(text.find('\n', at), f.end);
		if (begins(text.substr(at, 2), "//")) {
			at = end;
		} else if (begins(text.substr(at, 5), ".loc\t")) {
			loc = loc_of(s, text.substr(at, end - at));
			at = end;
		} else if (c == '{' || c == '}') {
			all.push_back({text.substr(at++, 1), line, loc});
		} else {
			const size_t word = std::min(text.find_first_of(" \t\n;", at), f.end);
			const bool label = text[word - 1] == ':';
			end = label ? word - 1 : std::min(text.find(';', at), f.end);
			all.push_back({trimmed(text.substr(at, end + label - at)), line, loc});
			line += (uint32_t)std::count(text.begin() + (ptrdiff_t)at, text.begin() + (ptrdiff_t)end, '\n');
			at = end + 1;
		}
	}
	return all;
}

} // namespace ptx
