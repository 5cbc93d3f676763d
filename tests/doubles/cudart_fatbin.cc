/* What the compiled kernels ask for before any launch: their static shared memory. nvcc's objects carry cubins, which
 * are ELF files; the section ".nv.shared.NAME" is as large as the static shared memory of the kernel NAME.
 *
 * The container: a header of 16 bytes (magic, version, own size, size of what follows), then entries, each with a
 * header (kind, version, own size, size of its contents). A compressed entry is passed over. */
#include <elf.h>
#include <string.h>

#include "tests/doubles/cudart.h"

#define WRAPPER_MAGIC 0x466243b1u
#define CONTAINER_MAGIC 0xba55ed50u
#define ENTRY_CUBIN 2
#define PREFIX ".nv.shared."

struct wrapper {
	uint32_t magic, version;
	const unsigned char *data;
};
struct container_header {
	uint32_t magic;
	uint16_t version, header_B;
	uint64_t size_B;
};
struct entry_header {
	uint16_t kind, version;
	uint32_t header_B;
	uint64_t size_B;
};

template <class T> static T copy_at(const unsigned char *at)
{
	T x;
	memcpy(&x, at, sizeof x);
	return x;
}

static void cubin_read(const unsigned char *elf, std::map<std::string, size_t> &out)
{
	const Elf64_Ehdr file = copy_at<Elf64_Ehdr>(elf);
	if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	auto section = [&](size_t i) { return copy_at<Elf64_Shdr>(elf + file.e_shoff + i * file.e_shentsize); };
	const char *names = (const char *)elf + section(file.e_shstrndx).sh_offset;
	for (size_t i = 0; i < file.e_shnum; i++) {
		const Elf64_Shdr s = section(i);
		const char *name = names + s.sh_name;
		if (strncmp(name, PREFIX, strlen(PREFIX)) == 0) {
			size_t &most = out[name + strlen(PREFIX)];
			most = most > s.sh_size ? most : (size_t)s.sh_size;
		}
	}
}

void fatbin_read(const void *registered, std::map<std::string, size_t> &static_B)
{
	const wrapper w = copy_at<wrapper>((const unsigned char *)registered);
	if (w.magic != WRAPPER_MAGIC)
		return;
	const container_header c = copy_at<container_header>(w.data);
	if (c.magic != CONTAINER_MAGIC)
		return;
	const unsigned char *at = w.data + c.header_B, *end = at + c.size_B;
	while (at < end) {
		const entry_header entry = copy_at<entry_header>(at);
		if (entry.kind == ENTRY_CUBIN)
			cubin_read(at + entry.header_B, static_B);
		at += entry.header_B + entry.size_B;
	}
}
