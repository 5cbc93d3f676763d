#include "exec/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t board_bytes(int64_t slots) { return sizeof(struct board) + (size_t)slots * sizeof(struct board_slot); }

static enum status board_map(const char *name, int flags, int64_t slots, struct board **out, struct error *e)
{
	enum status st = ST_OK;
	void *at = MAP_FAILED;
	int fd = shm_open(name, O_RDWR | flags, 0600);
	if (fd < 0) {
		st = error_set(e, ST_RUN, "shared memory %s: %s", name, strerror(errno));
		goto out;
	}
	/* posix_fallocate and not ftruncate: a full /dev/shm is an error here, and not a SIGBUS later. */
	if (flags & O_CREAT) {
		int code = posix_fallocate(fd, 0, (off_t)board_bytes(slots));
		if (code) {
			st = error_set(e, ST_RUN, "shared memory %s: %s", name, strerror(code));
			goto out;
		}
	}
	at = mmap(NULL, board_bytes(slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		st = error_set(e, ST_RUN, "shared memory %s: %s", name, strerror(errno));
		goto out;
	}
	*out = at;
out:
	if (st && fd >= 0 && (flags & O_CREAT))
		shm_unlink(name);
	if (fd >= 0)
		close(fd);
	return st;
}

enum status board_create(const char *name, int64_t slots, struct board **out, struct error *e)
{
	shm_unlink(name); /* a leftover of a process that had the same id and was killed while it started */
	enum status st = board_map(name, O_CREAT | O_EXCL, slots, out, e);
	if (!st)
		(*out)->slots = slots;
	return st;
}

enum status board_open(const char *name, int64_t slots, struct board **out, struct error *e)
{
	return board_map(name, 0, slots, out, e);
}

void board_unlink(const char *name) { shm_unlink(name); }

void board_close(struct board *b)
{
	if (b)
		munmap(b, board_bytes(b->slots));
}

void board_doing(struct board_slot *s, const char *text)
{
	size_t n = strnlen(text, BOARD_TEXT - 1);
	memcpy(s->doing, text, n);
	memset(s->doing + n, 0, BOARD_TEXT - n);
}
