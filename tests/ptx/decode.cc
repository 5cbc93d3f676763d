/* From statements to instructions, each form of instruction with its operands, and branches with their targets. */
#include <stdlib.h>

#include <algorithm>

#include "tests/ptx/operands.h"

namespace ptx
{

/* The words of a mnemonic: "ld", "global", "v4", "f32". */
struct words {
	std::vector<std::string> all;

	explicit words(const std::string &mnemonic)
	{
		for (size_t at = 0; at <= mnemonic.size();) {
			const size_t dot = std::min(mnemonic.find('.', at), mnemonic.size());
			all.push_back(mnemonic.substr(at, dot - at));
			at = dot + 1;
		}
	}
	const std::string &head(void) const { return all.front(); }
	const std::string &type(void) const { return all.back(); }
	bool has(const char *word) const { return std::find(all.begin(), all.end(), word) != all.end(); }
	int count(void) const { return has("v2") ? 2 : has("v4") ? 4 : 1; }
	int bytes(void) const
	{
		const size_t digits = type().find_first_of("123468");
		return type().find("x2") != std::string::npos ? 4
		       : digits == std::string::npos          ? 0
		                                              : atoi(type().c_str() + digits) / 8;
	}
	/* Between the first word and the type there are none but these. */
	bool only(std::initializer_list<std::string_view> known) const
	{
		return all.size() > 1 && std::all_of(all.begin() + 1, all.end() - 1, [&](const std::string &word) {
			return std::find(known.begin(), known.end(), word) != known.end();
		});
	}
	space where(void) const
	{
		return has("global")   ? GLOBAL
		       : has("shared") ? SHARED
		       : has("local")  ? LOCAL
		       : has("param")  ? PARAM
		                       : GENERIC;
	}
};

class decoder : public operands
{
	const function_text *f = NULL;
	std::map<std::string, size_t> labels, starts;
	std::vector<std::pair<size_t, std::string>> branches, calls;    /* instruction, where to */
	std::vector<const function_text *> wanted;                      /* called, in the order of their first call */
	std::map<std::pair<std::string, std::string>, cells> interface; /* function, parameter or result */

	instr &add(handler run)
	{
		instr i = {};
		i.run = run;
		i.line = at->line;
		i.loc = at->loc;
		k.code.push_back(i);
		return k.code.back();
	}

	void decode_access(const words &m, const texts &o);
	void decode_cells(bool load, const cells &c, uint64_t from, int bytes, const std::vector<reg> &r);
	void add_copies(const std::vector<uint32_t> &pairs);
	void decode_atomic(const words &m, texts o);
	void decode_call(std::string_view rest);
	cells interface_of(const function_text &g, const variable &v);
	void copy_cells(const function_text &g, const std::vector<variable> &own, const texts &names, bool there);
	void decode_tensor(const std::string &mnemonic, const texts &o);
	void decode_shuffle(const words &m, texts o);
	void decode_copy_async(const std::string &mnemonic, const texts &o);
	void decode_vector_move(const words &m, const texts &o);
	bool fits(const row &r, const texts &o);
	void decode_row(const std::string &mnemonic, const texts &o);
	void decode_instruction(std::string_view text);
	void decode_form(const std::string &mnemonic, std::string_view rest);
	void decode_function(const function_text &g);
	void link(const std::vector<std::pair<size_t, std::string>> &from, const std::map<std::string, size_t> &to);

      public:
	using operands::operands;
	void decode_entry(const function_text &entry);
};

/* ---- memory ---- */

void decoder::decode_access(const words &m, const texts &o)
{
	const bool load = m.head() == "ld";
	if (o.size() != 2 ||
		!m.only({"global", "shared", "local", "param", "cg", "nc", "ca", "cs", "volatile", "v2", "v4"}))
		refuse("this access is not interpreted");
	const int bytes = m.bytes();
	const std::vector<reg> r = values(o[load ? 0 : 1], (uint8_t)std::max(bytes, 2));
	const std::string_view where = o[load ? 1 : 0];
	if ((int)r.size() != m.count())
		refuse("the registers are not as many as the values");
	const auto call = m.has("param") ? cells_of.find(address_parts(where).name) : cells_of.end();
	if (call != cells_of.end())
		return decode_cells(load, call->second, (uint64_t)address_parts(where).offset, bytes, r);
	const space in = m.where();
	const handler run = load ? load_handler(in, bytes, r[0].bytes, m.type()[0] == 's')
	                         : store_handler(in, bytes, r[0].bytes);
	if (!run)
		refuse("this access is not interpreted");
	instr &i = add(run);
	address(i, where);
	i.size = (uint8_t)bytes;
	i.count = (uint8_t)r.size();
	i.list = list_of(slots(r));
	if (in == GENERIC || in == SHARED)
		k.shared_shift = std::min(k.shared_shift, bytes == 1 ? 0 : bytes == 2 ? 1 : 2);
}

/* Parameters and results of calls. */
void decoder::decode_cells(bool load, const cells &c, uint64_t from, int bytes, const std::vector<reg> &r)
{
	if (bytes != 4 || r[0].bytes != 4 || from % 4 || from + 4 * r.size() > c.bytes)
		refuse("parameters of calls are interpreted as 32-bit values");
	std::vector<uint32_t> pairs;
	for (size_t n = 0; n < r.size(); n++) {
		const uint32_t cell = c.slot + (uint32_t)(from / 4 + n) * 4 * LANES;
		pairs.push_back(load ? r[n].slot : cell);
		pairs.push_back(load ? cell : r[n].slot);
	}
	add_copies(pairs);
}

void decoder::add_copies(const std::vector<uint32_t> &pairs)
{
	instr &i = add(run_copies);
	i.count = (uint8_t)(pairs.size() / 2);
	i.list = list_of(pairs);
}

void decoder::decode_atomic(const words &m, texts o)
{
	static const char *const operations[] = {"add", "min", "max", "cas"};
	handler run = NULL;
	for (const char *operation : operations)
		if (m.has(operation))
			run = atomic_handler(operation, m.type());
	if (m.head() == "red") /* the same, with nobody to read the old value */
		o.insert(o.begin(), m.count() == 4 ? "{_, _, _, _}" : m.count() == 2 ? "{_, _}" : "_");
	if (!run || o.size() != (m.has("cas") ? 4 : 3) ||
		!m.only({"global", "add", "min", "max", "cas", "noftz", "relaxed", "gpu", "v2", "v4"}))
		refuse("this atomic operation is not interpreted");
	std::vector<uint32_t> all = slots(values(o[0], (uint8_t)m.bytes()));
	for (size_t n = 2; n < o.size(); n++)
		for (uint32_t slot : slots(values(o[n], (uint8_t)m.bytes())))
			all.push_back(slot);
	instr &i = add(run);
	address(i, o[1]);
	i.count = (uint8_t)m.count();
	i.list = list_of(all);
}

/* Of 16 bytes. */
void decoder::decode_copy_async(const std::string &mnemonic, const texts &o)
{
	if (mnemonic == "cp.async.wait_all") {
		add(run_copy_wait);
		return;
	}
	instr from = {};
	if (o.size() != 3 || o[2] != "16" ||
		(mnemonic != "cp.async.cg.shared.global" && mnemonic != "cp.async.ca.shared.global"))
		refuse("this copy is not interpreted");
	address(from, o[1]);
	if (!from.wide)
		refuse("addresses of global memory have 64 bits");
	instr &i = add(run_copy_async);
	address(i, o[0]);
	i.b = from.a;
	i.e = (uint32_t)(int32_t)from.offset;
	i.size = 16;
	i.count = 1;
}

/* ---- calls ---- */

cells decoder::interface_of(const function_text &g, const variable &v)
{
	auto found = interface.find({g.name, v.name});
	if (found == interface.end())
		found = interface.insert({{g.name, v.name}, new_cells(v.bytes)}).first;
	return found->second;
}

/* Between the caller's cells and the function's own. */
void decoder::copy_cells(const function_text &g, const std::vector<variable> &own, const texts &names, bool there)
{
	std::vector<uint32_t> pairs;
	for (size_t n = 0; n < own.size(); n++) {
		const cells mine = interface_of(g, own[n]);
		auto theirs = cells_of.find(std::string(names[n]));
		if (theirs == cells_of.end() || theirs->second.bytes != mine.bytes)
			refuse("the parameters do not fit");
		for (uint32_t b = 0; b < mine.bytes * LANES; b += 4 * LANES) {
			pairs.push_back((there ? mine : theirs->second).slot + b);
			pairs.push_back((there ? theirs->second : mine).slot + b);
		}
	}
	if (!pairs.empty())
		add_copies(pairs);
}

/* "(result), name, (arguments)" */
void decoder::decode_call(std::string_view rest)
{
	texts o = parts_of(rest), results, args;
	auto inside = [](std::string_view t) { return parts_of(t.substr(1, t.size() - 2)); };
	if (!o.empty() && o[0][0] == '(') {
		results = inside(o[0]);
		o.erase(o.begin());
	}
	if (o.size() > 1)
		args = inside(o[1]);
	const function_text *g = o.empty() ? NULL : s.function(o[0]);
	if (!g || g->params.size() != args.size() || g->results.size() != results.size())
		refuse("no such function");
	if (std::find(wanted.begin(), wanted.end(), g) == wanted.end())
		wanted.push_back(g);
	copy_cells(*g, g->params, args, true);
	calls.push_back({k.code.size(), g->name});
	add(run_call);
	copy_cells(*g, g->results, results, false);
}

/* ---- meetings, moves, rows ---- */

void decoder::decode_tensor(const std::string &mnemonic, const texts &o)
{
	static const struct {
		const char *name;
		handler run;
		std::vector<size_t> registers; /* of each operand; 0: it is an address */
		bool transposed;
	} forms[] = {
		{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", run_mma_bf16, {4, 4, 2, 4}, false},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", run_mma_f16, {4, 4, 2, 4}, false},
		{"ldmatrix.sync.aligned.m8n8.x4.shared.b16", run_ldmatrix, {4, 0}, false},
		{"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", run_ldmatrix, {4, 0}, true},
	};
	for (const auto &form : forms) {
		if (mnemonic != form.name || o.size() != form.registers.size())
			continue;
		std::vector<uint32_t> all;
		instr &i = add(form.run);
		for (size_t n = 0; n < o.size(); n++) {
			if (!form.registers[n]) {
				address(i, o[n]);
				continue;
			}
			const std::vector<reg> r = values(o[n], 4);
			if (r.size() != form.registers[n] || r[0].bytes != 4)
				refuse("the registers do not fit");
			for (const reg &x : r)
				all.push_back(x.slot);
		}
		i.e = form.transposed;
		i.list = list_of(all);
		k.shared_shift = std::min(k.shared_shift, 1);
		return;
	}
	refuse("this instruction is not known");
}

/* "d|p, a, b, c, lanes" */
void decoder::decode_shuffle(const words &m, texts o)
{
	if (o.size() != 5 || m.type() != "b32" || !(m.has("bfly") || m.has("idx")))
		refuse("this shuffle is not interpreted");
	const size_t bar = o[0].find('|');
	const uint32_t valid = bar == o[0].npos ? SINK : operand(o[0].substr(bar + 1), 0).slot;
	o[0] = o[0].substr(0, bar);
	uint32_t slot[5];
	for (size_t n = 0; n < 5; n++)
		slot[n] = operand(o[n], 4).slot;
	instr &i = add(m.has("bfly") ? run_shuffle_xor : run_shuffle_index);
	i.d = slot[0], i.a = slot[1], i.b = slot[2], i.c = slot[3], i.e = slot[4];
	i.list = list_of({valid});
}

/* "{a, b}, whole" or "whole, {a, b}" */
void decoder::decode_vector_move(const words &m, const texts &o)
{
	const bool unpack = o[0][0] == '{';
	const std::vector<reg> r = values(o[unpack ? 0 : 1], (uint8_t)(m.bytes() / 2));
	const reg whole = operand(o[unpack ? 1 : 0], (uint8_t)m.bytes());
	if (r.size() * r[0].bytes != (size_t)m.bytes())
		refuse("the parts do not fit");
	instr &i = add(unpack ? run_unpack : run_pack);
	i.d = i.a = whole.slot;
	i.size = r[0].bytes;
	i.count = (uint8_t)r.size();
	i.list = list_of(slots(r));
}

static uint8_t width_of(char c) { return c == 'p' ? 0 : (uint8_t)(c - '0'); }

/* Conversions have rows that differ in the width of a register alone; a constant fits each. */
bool decoder::fits(const row &r, const texts &o)
{
	bool good = strlen(r.operands) == o.size();
	for (size_t n = 0; n < o.size() && good; n++) {
		const reg *x = find(std::string(o[n]));
		good = !x || x->bytes == width_of(r.operands[n]);
	}
	return good;
}

void decoder::decode_row(const std::string &mnemonic, const texts &o)
{
	const auto rows = rows_of(mnemonic);
	if (rows.empty())
		refuse("this instruction is not known");
	const auto found = std::find_if(rows.begin(), rows.end(), [&](const row *r) { return fits(*r, o); });
	if (found == rows.end())
		refuse("no row of this instruction has these operands");
	uint32_t slot[5] = {0};
	for (size_t n = 0; n < o.size(); n++)
		slot[n] = operand(o[n], width_of((*found)->operands[n])).slot;
	instr &i = add((*found)->run);
	i.d = slot[0], i.a = slot[1], i.b = slot[2], i.c = slot[3], i.e = slot[4];
}

void decoder::decode_form(const std::string &mnemonic, std::string_view rest)
{
	const words m(mnemonic);
	const texts o = parts_of(rest);
	const std::string &head = m.head();
	if (head == "ld" || head == "st")
		decode_access(m, o);
	else if (head == "bra") {
		branches.push_back({k.code.size(), f->name + " " + std::string(rest)});
		add(run_branch);
	} else if (head == "ret")
		add(run_return);
	else if (head == "exit")
		add(run_exit);
	else if (head == "call")
		decode_call(rest);
	else if (head == "atom" || head == "red")
		decode_atomic(m, o);
	else if (mnemonic == "bar.sync" && rest == "0")
		add(run_barrier);
	else if (mnemonic == "bar.warp.sync" && o.size() == 1) {
		const uint32_t lanes = operand(o[0], 4).slot;
		add(run_warp_sync).e = lanes;
	} else if (head == "shfl")
		decode_shuffle(m, o);
	else if (head == "mma" || head == "ldmatrix")
		decode_tensor(mnemonic, o);
	else if (head == "cp")
		decode_copy_async(mnemonic, o);
	else if (head == "mov" && o.size() == 2 && (o[0][0] == '{' || o[1][0] == '{'))
		decode_vector_move(m, o);
	else
		decode_row(mnemonic, o);
}

/* "@!%p1 bra $L__BB0_3" */
void decoder::decode_instruction(std::string_view text)
{
	const size_t first = k.code.size();
	reg guard = {SINK, 0};
	const bool guarded = text[0] == '@', unless = guarded && text[1] == '!';
	if (guarded) {
		const size_t from = unless ? 2 : 1, end = std::min(text.find_first_of(" \t\n"), text.size());
		guard = operand(text.substr(from, end - from), 0);
		text = bare(text.substr(end));
	}
	const size_t end = std::min(text.find_first_of(" \t\n{["), text.size());
	decode_form(std::string(text.substr(0, end)), bare(text.substr(end)));
	for (size_t n = first; n < k.code.size(); n++) {
		k.code[n].guard = guard.slot;
		k.code[n].unless = unless;
	}
}

/* ---- functions ---- */

void decoder::decode_function(const function_text &g)
{
	f = &g;
	begin_function();
	starts[g.name] = k.code.size();
	for (const auto *list : {&g.params, &g.results})
		for (const variable &v : *list)
			if (!g.entry)
				cells_of[v.name] = interface_of(g, v);
	for (const statement &each : statements_of(s, g)) {
		const std::string_view t = each.text;
		at = &each;
		if (t == "{")
			open_scope();
		else if (t == "}")
			close_scope();
		else if (t.back() == ':')
			labels[g.name + " " + std::string(t.substr(0, t.size() - 1))] = k.code.size();
		else if (t.substr(0, 4) == ".reg")
			declare_registers(t);
		else if (t[0] == '.' && t.substr(0, 7) != ".pragma")
			declare_variable(t);
		else if (t[0] != '.')
			decode_instruction(t);
	}
	static const statement end = {"the end of a function", 0, 0};
	at = &end;
	add(run_return); /* a body may end without one */
}

void decoder::link(const std::vector<std::pair<size_t, std::string>> &from, const std::map<std::string, size_t> &to)
{
	for (const auto &x : from) {
		if (!to.count(x.second))
			give_up("%s:%u: no label %s", s.path.c_str(), k.code[x.first].line, x.second.c_str());
		k.code[x.first].to = &k.code[to.at(x.second)];
	}
}

void decoder::decode_entry(const function_text &entry)
{
	declare_params(entry);
	decode_function(entry);
	for (size_t n = 0; n < wanted.size(); n++)
		decode_function(*wanted[n]);
	link(branches, labels);
	link(calls, starts);
	k.register_B = top;
	k.shared_B = (k.shared_B + 15) / 16 * 16;
	for (constant &c : k.constants)
		c.value += c.dynamic_shared ? k.shared_B : 0;
}

std::unique_ptr<kernel> decode(source &s, const function_text &entry)
{
	auto k = std::make_unique<kernel>();
	k->from = &s;
	k->name = entry.name;
	k->threads_max = entry.threads_max;
	decoder(s, *k).decode_entry(entry);
	return k;
}

} // namespace ptx
