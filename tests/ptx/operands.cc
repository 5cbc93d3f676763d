/* Places of operands. */
#include "tests/ptx/operands.h"

#include <ctype.h>
#include <stdlib.h>

#include <algorithm>

namespace ptx
{

static const char *const special_names[SPECIALS] = {"%tid.x", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%ntid.x",
	"%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};

std::string_view bare(std::string_view text)
{
	const size_t from = text.find_first_not_of(" \t\r\n"), to = text.find_last_not_of(" \t\r\n");
	return from == text.npos ? std::string_view() : text.substr(from, to - from + 1);
}

texts parts_of(std::string_view list)
{
	texts all;
	int depth = 0;
	size_t from = 0;
	for (size_t n = 0; n <= list.size(); n++) {
		const char c = n < list.size() ? list[n] : ',';
		depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
		if (c != ',' || depth)
			continue;
		if (!bare(list.substr(from, n - from)).empty())
			all.push_back(bare(list.substr(from, n - from)));
		from = n + 1;
	}
	return all;
}

address_text address_parts(std::string_view text)
{
	const std::string_view in = bare(text.substr(1, text.size() - 2));
	const size_t plus = in.find('+');
	return {std::string(bare(in.substr(0, plus))),
		plus == in.npos ? 0 : strtoll(std::string(in.substr(plus + 1)).c_str(), NULL, 0)};
}

void operands::refuse(const std::string &what) const
{
	const std::string place = s.place(at->loc);
	give_up("%s\n  in %s\n  at %s:%u: %.*s\n  from %s", what.c_str(), plain_name(k.name).c_str(), s.path.c_str(),
		at->line, (int)at->text.size(), at->text.data(), place.empty() ? "an unknown line" : place.c_str());
}

/* ---- slots ---- */

/* Predicates are one word each, 16 of them in the space of a line of cache. */
uint32_t operands::place(uint8_t bytes)
{
	if (!bytes) {
		if (predicates % 64 == 0) {
			predicates = top;
			top += 64;
		}
		predicates += 4;
		return predicates - 4;
	}
	const uint32_t slot = top;
	top += (uint32_t)bytes * LANES;
	return slot;
}

uint32_t operands::constant_of(uint8_t bytes, uint64_t value)
{
	uint32_t &slot = constant_at[{bytes, value}];
	if (!slot) {
		slot = place(bytes);
		k.constants.push_back({slot, bytes, value, false});
	}
	return slot;
}

cells operands::new_cells(uint64_t bytes)
{
	const cells c = {top, bytes};
	for (uint64_t n = 0; n < bytes; n += 4)
		place(4);
	return c;
}

/* Puts a variable behind those before it; returns where. */
static uint64_t put(uint64_t &size, const variable &v)
{
	const uint64_t begin = (size + v.align - 1) / v.align * v.align;
	size = begin + v.bytes;
	return begin;
}

/* The slot of a symbol's address. Dynamic shared memory begins behind the static, whose size is known at the end. */
uint32_t operands::symbol(const std::string &name, uint8_t bytes)
{
	for (const variable &v : s.shared) {
		if (v.name != name || shared_at.count(name))
			continue;
		if (!v.bytes) {
			const uint32_t slot = place(bytes);
			k.constants.push_back({slot, bytes, 0, true});
			return slot;
		}
		shared_at[name] = put(k.shared_B, v);
	}
	for (const auto *names : {&shared_at, &local_at, &param_at})
		if (names->count(name))
			return constant_of(bytes, names->at(name));
	for (const auto &g : s.globals)
		if (g.first == name)
			return constant_of(bytes, (uint64_t)g.second);
	refuse("'" + name + "' is not known");
}

/* ---- operands ---- */

const reg *operands::find(const std::string &name)
{
	for (size_t n = scopes.size(); n-- > 0;) {
		auto found = scopes[n].find(name);
		if (found != scopes[n].end())
			return &found->second;
	}
	const size_t digits = name.find_first_of("0123456789");
	for (const range &r : ranges)
		if (digits != name.npos && name.compare(0, digits, r.prefix) == 0)
			return &(scopes[0][name] = {place(r.bytes), r.bytes});
	return NULL;
}

reg operands::operand(std::string_view text, uint8_t bytes, uint8_t of_constant)
{
	const std::string name(text);
	const uint8_t width = bytes == ANY ? of_constant : bytes;
	if (name.empty())
		refuse("an operand is missing");
	if (name == "_")
		return {SINK, width};
	for (int n = 0; n < SPECIALS; n++)
		if (name == special_names[n]) {
			if (!k.special_slot[n])
				k.special_slot[n] = place(4);
			return {k.special_slot[n], 4};
		}
	if (const reg *r = find(name)) {
		if (bytes != ANY && r->bytes != bytes)
			refuse("'" + name + "' has another width");
		return *r;
	}
	const bool bits = name[0] == '0' && name.size() > 2 && strchr("fFdD", name[1]); /* 0f3F800000 */
	if (!bits && !isdigit(name[0]) && name[0] != '-')
		return {symbol(name, width), width};
	const uint64_t value = bits             ? strtoull(name.c_str() + 2, NULL, 16)
	                       : name[0] == '-' ? (uint64_t)strtoll(name.c_str(), NULL, 0)
	                                        : strtoull(name.c_str(), NULL, 0);
	return {width ? constant_of(width, value) : constant_of(4, value ? ALL_LANES : 0), width};
}

std::vector<reg> operands::values(std::string_view text, uint8_t of_constant)
{
	std::vector<reg> all;
	for (std::string_view part : parts_of(text[0] == '{' ? text.substr(1, text.size() - 2) : text))
		all.push_back(operand(part, ANY, of_constant));
	for (const reg &r : all)
		if (r.bytes != all[0].bytes && r.slot != SINK)
			refuse("registers of several widths");
	if (all.empty())
		refuse("an operand is missing");
	return all;
}

std::vector<uint32_t> operands::slots(const std::vector<reg> &values) const
{
	std::vector<uint32_t> all;
	for (const reg &r : values)
		all.push_back(r.slot);
	return all;
}

const uint32_t *operands::list_of(const std::vector<uint32_t> &slots)
{
	k.lists.push_back(std::make_unique<uint32_t[]>(slots.size() + 1));
	std::copy(slots.begin(), slots.end(), k.lists.back().get());
	return k.lists.back().get();
}

void operands::address(instr &i, std::string_view text)
{
	if (text[0] != '[')
		refuse("an address is missing");
	const address_text parts = address_parts(text);
	const reg base = operand(parts.name, ANY, 8);
	i.a = base.slot;
	i.wide = base.bytes == 8;
	i.offset = parts.offset;
}

/* ---- declarations ---- */

void operands::begin_function(void)
{
	scopes.assign(1, {});
	ranges.clear();
	cells_of.clear();
}

/* ".reg .b32 %r<102>" or ".reg .b16 low, high" */
void operands::declare_registers(std::string_view text)
{
	const size_t dot = text.find('.', 1), end = text.find_first_of(" \t", dot);
	const std::string type(text.substr(dot + 1, end - dot - 1));
	const int bits = type == "pred" ? 0 : atoi(type.c_str() + type.find_first_of("1368"));
	const uint8_t bytes = (uint8_t)(bits == 8 ? 2 : bits / 8);
	for (std::string_view name : parts_of(text.substr(end))) {
		const size_t many = name.find('<');
		if (many != name.npos)
			ranges.push_back({std::string(name.substr(0, many)), bytes});
		else
			scopes.back()[std::string(name)] = {place(bytes), bytes};
	}
}

void operands::declare_variable(std::string_view text)
{
	const variable v = variable_of(text);
	if (text.substr(0, 7) == ".shared")
		shared_at[v.name] = put(k.shared_B, v);
	else if (text.substr(0, 6) == ".local")
		local_at[v.name] = put(k.local_B, v);
	else if (text.substr(0, 6) != ".param")
		refuse("this directive is not known");
	else if (!cells_of.count(v.name) || cells_of[v.name].bytes != v.bytes)
		cells_of[v.name] = new_cells(v.bytes);
}

void operands::declare_params(const function_text &entry)
{
	for (const variable &v : entry.params) {
		k.params.push_back(v);
		k.param_at.push_back(param_at[v.name] = put(k.param_B, v));
	}
}

} // namespace ptx
