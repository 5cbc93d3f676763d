/* An interpreter of PTX behind the part of cudart's API that the kernels' tests use. It stands in for libcudart: the
 * programs of tests/gpu run on it as they are, and each launch is executed instruction by instruction, warp by warp.
 *
 * What it checks. The first defect ends the process with exit code 9, after a line that says what, then kernel, block
 * and thread, the line of the PTX and, where it was compiled with -lineinfo, the line of the source:
 *   bounds and alignment of each access to global, shared, local and parameter memory;
 *   reads of shared memory that nobody has written;
 *   races between warps in shared memory: two accesses, one of them a write, without a barrier between;
 *   cp.async: its data arrive when the thread waits for them, not sooner. Touching them before that, and ending
 *   without having waited, are defects;
 *   meetings (barriers, shuffles, ldmatrix, mma): all lanes that take part come to the same instruction. Those that
 *   never come, because they branched elsewhere or ended, are a defect;
 *   a call stack or a loop without an end, and an instruction that the table does not have.
 *
 * What it does not prove. It executes PTX, not the instructions of a GPU that ptxas makes of it. Approximate
 * instructions (ex2.approx, div.approx) are computed exactly, and mma adds its products in one order of many. Races
 * inside a warp, between blocks and in global memory are not seen, nor are reads of global memory that nobody wrote.
 * Blocks run one after another; the warps of a block in a random order (fixed seed) between two barriers.
 *
 * One launch at a time, on one thread. STEPSIM_PTX names the folder of the .ptx files. STEPSIM_PTX_LOG names a file to
 * which the process appends a line for each kernel it has launched: name, launches, warp instructions.
 * STEPSIM_PTX_SHARED_B is the shared memory that a block can have (default: 227 KiB, those of an H100).
 */
#ifndef STEPSIM_TESTS_PTX_H
#define STEPSIM_TESTS_PTX_H

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptx
{

constexpr int LANES = 32;
constexpr uint32_t ALL_LANES = 0xffffffffu;
constexpr int CALLS_MAX = 8; /* calls inside calls */

struct warp;
struct instr;
typedef void (*handler)(warp &, const instr &);

/* A decoded instruction. Operands are slots: byte offsets in the warp's registers, where constants and special
 * registers have theirs too. */
struct instr {
	handler run;
	uint32_t d, a, b, c, e; /* the destination, then the sources in their order */
	uint32_t guard;         /* slot of the predicate before the instruction; 0: none */
	bool unless;            /* it is negated */
	bool wide;              /* accesses: the address's register has 64 bits, not 32 */
	uint8_t size, count;    /* accesses: bytes of a value, values */
	int64_t offset;         /* accesses: added to the address */
	const uint32_t *list;   /* slots of vectors, in their order */
	const instr *to;        /* branches and calls */
	uint32_t line, loc;     /* of the PTX; index of source::locs, 0: unknown */
};

/* A place in the text that the PTX was compiled from, and the place that it was inlined at. */
struct source_line {
	int file, line, at_file, at_line; /* 0: none */
};

struct statement {
	std::string_view text; /* without the `;`; "{" and "}" stand alone, labels end in ':' */
	uint32_t line, loc;
};

struct variable {
	std::string name;
	uint64_t bytes, align;
};

/* A function or an entry: its header, and where its body stands in the file's text. */
struct function_text {
	std::string name;
	bool entry;
	std::vector<variable> params, results;
	int threads_max; /* .maxntid; 0: none */
	size_t begin, end;
	uint32_t line;
};

/* A file of PTX. */
struct source {
	std::string path, text;
	std::vector<function_text> functions;
	std::vector<variable> shared;
	std::vector<std::pair<std::string, const uint8_t *>> globals;
	std::vector<std::pair<int, std::string>> files;
	std::vector<source_line> locs;

	const function_text *function(std::string_view name) const;
	std::string place(uint32_t loc) const; /* "exec/cuda/prim.cuh:7, inlined at ..."; empty where it is unknown */
	std::string_view line_text(uint32_t line) const;
};

std::unique_ptr<source> read_source(const std::string &path); /* ends the process where it cannot be read */
variable variable_of(std::string_view declaration);           /* ".param .align 8 .b8 name[112]" */
std::vector<statement> statements_of(source &s, const function_text &f);

enum special { TID_X, CTAID_X, CTAID_Y, CTAID_Z, NTID_X, NCTAID_X, NCTAID_Y, NCTAID_Z, LANE, SPECIALS };

struct constant {
	uint32_t slot;
	uint8_t bytes;
	uint64_t value;
	bool dynamic_shared; /* its value counts from the end of the static shared memory */
};

/* An entry, decoded with the functions that it calls. */
struct kernel {
	const source *from;
	std::string name;
	std::vector<instr> code;
	std::vector<std::unique_ptr<uint32_t[]>> lists;
	std::vector<constant> constants;
	uint32_t special_slot[SPECIALS] = {0}; /* 0: not used */
	std::vector<variable> params;
	std::vector<uint64_t> param_at;
	uint64_t register_B = 0, shared_B = 0, local_B = 0, param_B = 0;
	int threads_max = 0, shared_shift = 2; /* log2 of the bytes that races are told apart by */
	int64_t launches = 0, executed = 0;
};

/* Ends the process where an instruction is not known. */
std::unique_ptr<kernel> decode(source &s, const function_text &entry);

/* Rows of the table of instructions that have their operands in a fixed order. `operands`: for each the width of its
 * register in bytes, 'p' a predicate; the destination is the first. */
struct row {
	const char *name, *operands;
	handler run;
};
std::vector<const row *> rows_of(std::string_view mnemonic);
extern const std::vector<row> arithmetic_rows, conversion_rows;

enum space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM, SPACES }; /* PARAM: those of the entry */

/* Handlers of instructions with a form of their own; NULL: there is none. */
handler load_handler(space s, int size, int register_B, bool is_signed);
handler store_handler(space s, int size, int register_B);
handler atomic_handler(std::string_view operation, std::string_view type);
void run_copy_async(warp &w, const instr &i); /* to `a` + offset, from `b` + (int32_t)`e` */
void run_copy_wait(warp &w, const instr &i);
void run_pack(warp &w, const instr &i); /* `size`: bytes of an element */
void run_unpack(warp &w, const instr &i);
void run_copies(warp &w, const instr &i); /* `count` pairs (to, from) of 32-bit slots */
void run_branch(warp &w, const instr &i);
void run_call(warp &w, const instr &i);
void run_return(warp &w, const instr &i);
void run_exit(warp &w, const instr &i);
void run_barrier(warp &w, const instr &i);
void run_warp_sync(warp &w, const instr &i);
void run_shuffle_xor(warp &w, const instr &i);
void run_shuffle_index(warp &w, const instr &i);
void run_ldmatrix(warp &w, const instr &i); /* `e`: transposed */
void run_mma_bf16(warp &w, const instr &i);
void run_mma_f16(warp &w, const instr &i);

} // namespace ptx

#endif
