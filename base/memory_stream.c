#include "base/memory_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct sink {
	char **text;
	size_t *len, room;
	char buffer[4096]; /* stdio's: where its own allocation fails, it goes on without one, and nobody hears of it */
};

static bool make_room(struct sink *s, size_t more)
{
	const size_t need = *s->len + more + 1;
	if (need <= s->room)
		return true;
	const size_t room = need > 2 * s->room ? need : 2 * s->room;
	char *moved = realloc(*s->text, room);
	if (!moved)
		return false;
	*s->text = moved;
	s->room = room;
	return true;
}

/* Nothing written makes stdio set the stream's error flag. */
static ssize_t sink_write(void *cookie, const char *bytes, size_t n)
{
	struct sink *s = cookie;
	if (!make_room(s, n))
		return 0;
	memcpy(*s->text + *s->len, bytes, n);
	*s->len += n;
	(*s->text)[*s->len] = 0;
	return (ssize_t)n;
}

static int sink_close(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *memory_stream(char **text, size_t *len)
{
	const cookie_io_functions_t functions = {.write = sink_write, .close = sink_close};
	struct sink *s = malloc(sizeof *s);
	FILE *out = NULL;
	*text = calloc(1, 1);
	*len = 0;
	if (s && *text) {
		*s = (struct sink){.text = text, .len = len, .room = 1};
		out = fopencookie(s, "w", functions);
	}
	if (out)
		setvbuf(out, s->buffer, _IOFBF, sizeof s->buffer);
	if (!out) {
		free(*text);
		*text = NULL;
		free(s);
	}
	return out;
}

bool memory_stream_close(FILE *stream)
{
	const bool good = !ferror(stream);
	return fclose(stream) == 0 && good;
}
