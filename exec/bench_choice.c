#include <stdio.h>
#include <string.h>

#include "exec/bench.h"

static bool read_line(const char *text, struct bench_row *row)
{
	char algorithm[sizeof row->algorithm], protocol[sizeof row->protocol];
	int low, high, channels;
	if (sscanf(text, "-> Algo %23s proto %15s channel{Lo..Hi}={%d..%d}", algorithm, protocol, &low, &high) == 4) {
		channels = high - low + 1;
	} else if (sscanf(text, "-> Kernel %23s nchannels %d", algorithm, &channels) == 2) {
		protocol[0] = '\0';
	} else {
		return false;
	}
	strcpy(row->algorithm, algorithm);
	strcpy(row->protocol, protocol);
	row->channels = channels;
	return true;
}

bool bench_read_choice(const char *log, struct bench_row *row)
{
	bool found = false;
	for (const char *at = log; (at = strstr(at, "-> ")); at++)
		found |= read_line(at, row);
	return found;
}
