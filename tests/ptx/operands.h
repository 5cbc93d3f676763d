/* Where the operands of a kernel's instructions lie: each register, constant and symbol gets a slot in the registers of
 * a warp when it is first named. */
#ifndef STEPSIM_TESTS_PTX_OPERANDS_H
#define STEPSIM_TESTS_PTX_OPERANDS_H

#include <map>
#include <unordered_map>

#include "tests/ptx/machine.h"

namespace ptx
{

constexpr uint32_t SINK = 0; /* the slot of `_`, which nobody reads */

struct reg {
	uint32_t slot;
	uint8_t bytes; /* of a lane; 0: a predicate */
};

/* Parameters of calls lie in slots of 32 bits, one behind the other. */
struct cells {
	uint32_t slot;
	uint64_t bytes;
};

typedef std::vector<std::string_view> texts;
std::string_view bare(std::string_view text); /* without white space around it */
texts parts_of(std::string_view list);        /* "a, {b, c}, [d+4]" in its parts */

/* "[name+4]" in its parts. */
struct address_text {
	std::string name;
	int64_t offset;
};
address_text address_parts(std::string_view text);

class operands
{
      public:
	source &s;
	kernel &k;
	const statement *at = NULL; /* the statement at hand */

	operands(source &from, kernel &to) : s(from), k(to) {}

	/* Ends the process with the statement at hand. */
	[[noreturn]] void refuse(const std::string &what) const;

	/* A register of so many bytes (0: a predicate), or ANY; a constant then has `of_constant`. */
	static constexpr uint8_t ANY = 255;
	reg operand(std::string_view text, uint8_t bytes, uint8_t of_constant = 4);
	const reg *find(const std::string &name);                            /* NULL: no register */
	std::vector<reg> values(std::string_view text, uint8_t of_constant); /* "{a, b}", or a single one */
	std::vector<uint32_t> slots(const std::vector<reg> &values) const;
	const uint32_t *list_of(const std::vector<uint32_t> &slots);
	void address(instr &i, std::string_view text); /* its fields a, wide and offset */

	/* Declarations. Registers of a scope are gone behind it. */
	void begin_function(void);
	void open_scope(void) { scopes.push_back({}); }
	void close_scope(void) { scopes.pop_back(); }
	void declare_registers(std::string_view text);
	void declare_variable(std::string_view text);
	void declare_params(const function_text &entry);
	cells new_cells(uint64_t bytes);

	std::map<std::string, cells> cells_of; /* of this function: its parameters, results, and those of its calls */
	uint32_t top = 8 * LANES;              /* bytes of registers so far: the sink's */

      private:
	struct range {
		std::string prefix;
		uint8_t bytes;
	};
	std::vector<std::unordered_map<std::string, reg>> scopes;
	std::vector<range> ranges; /* `.reg .b32 %r<102>` */
	std::map<std::string, uint64_t> shared_at, local_at, param_at;
	std::map<std::pair<int, uint64_t>, uint32_t> constant_at;
	uint32_t predicates = 0; /* the next predicate's slot */

	uint32_t place(uint8_t bytes);
	uint32_t constant_of(uint8_t bytes, uint64_t value);
	uint32_t symbol(const std::string &name, uint8_t bytes);
};

} // namespace ptx

#endif
