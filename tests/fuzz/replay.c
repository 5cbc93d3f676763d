/* The kept texts of a fuzzer, tried once each: replay_NAME FILE... (tests/fuzz/corpus/NAME). It stands in for the main
 * of libFuzzer, so that the test command needs no clang. A broken promise aborts, as there. */
#undef main
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *text = NULL;
		size_t n = 0;
		struct error e = {0};
		if (file_read(argv[i], SIZE_MAX / 2, &text, &n, &e)) {
			fprintf(stderr, "%s\n", e.text);
			return 1;
		}
		printf("%s\n", argv[i]);
		fflush(stdout);
		LLVMFuzzerTestOneInput((const uint8_t *)text, n);
		free(text);
	}
	return argc > 1 ? 0 : 1;
}
