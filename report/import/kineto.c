/* PyTorch profiler's Chrome traces (pytorch/kineto, libkineto/src/output_json.cpp writes them; Trace Event Format,
 * Google 2016): {"distributedInfo": {"rank", "world_size"}, "traceEvents": [...]}, or the array alone. Of its events
 * count: complete ones ("ph": "X") of the GPU (cat kernel, gpu_memcpy, gpu_memset), launches (cat cuda_runtime,
 * cuda_driver; hip_runtime in some of ROCm's) and the schedule's steps ("ProfilerStep#N", cat user_annotation).
 * cuda_sync and gpu_user_annotation lie on GPU streams too and are no work. Streams of ROCm's launches are pointers:
 * "0x0". */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "report/import/json_scan.h"
#include "report/import/trace.h"

#define NAME_MAX_B 4096
#define PROGRESS_EVERY 65536
#define NO_DEVICE (-1)

enum category { CAT_NONE, CAT_KERNEL, CAT_COPY, CAT_LAUNCH, CAT_HOST, CAT_COUNT };

/* Older versions wrote capitals. */
static const struct {
	const char *name;
	enum category category;
} categories[] = {{"kernel", CAT_KERNEL}, {"gpu_memcpy", CAT_COPY}, {"memcpy", CAT_COPY}, {"gpu_memset", CAT_COPY},
	{"memset", CAT_COPY}, {"cuda_runtime", CAT_LAUNCH}, {"runtime", CAT_LAUNCH}, {"cuda_driver", CAT_LAUNCH},
	{"hip_runtime", CAT_LAUNCH}, {"user_annotation", CAT_HOST}, {"cpu_op", CAT_HOST}, {"operator", CAT_HOST}};

struct event {
	enum category category;
	bool complete, timed, lasts;
	char name[NAME_MAX_B];
	char collective[64]; /* what PyTorch says of a kernel of NCCL or RCCL */
	int64_t ts_ns, dur_ns, stream, device, correlation;
};

static enum category category_of(const char *cat)
{
	for (size_t i = 0; i < COUNT(categories); i++)
		if (strcasecmp(cat, categories[i].name) == 0)
			return categories[i].category;
	return CAT_NONE;
}

static bool is_number(struct scan *s)
{
	int c = scan_peek(s);
	return c == '-' || c == '"' || ('0' <= c && c <= '9');
}

/* A member that is a number, or a text of at most `cap` - 1 bytes, and where it goes. */
struct member {
	const char *key;
	int64_t *into;
	char *text;
	size_t cap;
};

/* Those members of an object; what has another type is skipped. */
static bool read_members(struct scan *s, const struct member *members, size_t n)
{
	char key[64];
	bool first = true;
	if (scan_peek(s) != '{')
		return scan_skip(s);
	scan_enter(s, '{');
	while (scan_more(s, '}', &first)) {
		if (!scan_key(s, key, sizeof key))
			return false;
		const struct member *m = NULL;
		for (size_t i = 0; i < n; i++)
			m = strcmp(key, members[i].key) == 0 ? &members[i] : m;
		const bool is_text = m && m->text && scan_peek(s) == '"', is_id = m && m->into && is_number(s);
		if (is_text ? !scan_string(s, m->text, m->cap) : is_id ? !scan_id(s, m->into) : !scan_skip(s))
			return false;
	}
	return true;
}

/* Leaves an event as soon as it cannot count. */
static bool read_event(struct scan *s, struct event *v)
{
	char key[64], word[64];
	bool first = true;
	v->category = CAT_NONE;
	v->complete = v->timed = v->lasts = false;
	v->name[0] = 0;
	v->stream = v->correlation = v->device = 0;
	v->collective[0] = 0;
	const struct member args[] = {{"stream", &v->stream, NULL, 0}, {"device", &v->device, NULL, 0},
		{"correlation", &v->correlation, NULL, 0},
		{"Collective name", NULL, v->collective, sizeof v->collective}};
	if (!scan_enter(s, '{'))
		return false;
	while (scan_more(s, '}', &first)) {
		if (!scan_key(s, key, sizeof key))
			return false;
		bool ok;
		if (strcmp(key, "ph") == 0 && scan_peek(s) == '"') {
			ok = scan_string(s, word, sizeof word);
			v->complete = ok && strcmp(word, "X") == 0;
			if (ok && !v->complete)
				return scan_leave(s);
		} else if (strcmp(key, "cat") == 0 && scan_peek(s) == '"') {
			ok = scan_string(s, word, sizeof word);
			v->category = ok ? category_of(word) : CAT_NONE;
			if (ok && v->category == CAT_NONE)
				return scan_leave(s);
		} else if (strcmp(key, "name") == 0 && scan_peek(s) == '"') {
			ok = scan_string(s, v->name, sizeof v->name);
			if (ok && v->category == CAT_HOST && strncmp(v->name, "ProfilerStep#", 13) != 0)
				return scan_leave(s);
		} else if (strcmp(key, "ts") == 0 && is_number(s)) {
			ok = v->timed = scan_thousandths(s, &v->ts_ns);
		} else if (strcmp(key, "dur") == 0 && is_number(s)) {
			ok = v->lasts = scan_thousandths(s, &v->dur_ns);
		} else {
			ok = strcmp(key, "args") == 0 ? read_members(s, args, COUNT(args)) : scan_skip(s);
		}
		if (!ok)
			return false;
	}
	return true;
}

/* Completes the name of a kernel that does not say what it does: RCCL has one for all, ncclDevKernel_Generic. */
static void name_collective(struct event *v)
{
	const size_t n = strlen(v->name);
	if (v->category == CAT_KERNEL && v->collective[0] && strstr(v->name, "nccl") && strstr(v->name, "Generic"))
		snprintf(v->name + n, sizeof v->name - n, " (%s)", v->collective);
}

static enum status keep(const struct event *v, const char *path, struct trace_set *set, struct error *e)
{
	if (!v->complete || v->category == CAT_NONE ||
		(v->category == CAT_HOST && strncmp(v->name, "ProfilerStep#", 13) != 0))
		return ST_OK;
	bool work = v->category == CAT_KERNEL || v->category == CAT_COPY;
	if (!v->timed || !v->lasts || v->dur_ns < 0) {
		set->events_left_out += work;
		return ST_OK;
	}
	/* The host's events come before any kernel's, and a process has one GPU: they wait under the file's first. */
	struct traced_gpu *g = trace_gpu(set, path, 0, work ? v->device : NO_DEVICE);
	if (!g)
		return error_nomem(e, "a trace");
	bool ok = true;
	if (v->category == CAT_LAUNCH) {
		ok = v->correlation <= 0 || v->correlation > UINT32_MAX ||
		     vec_push(&g->launches, ((struct traced_launch){(uint32_t)v->correlation, v->ts_ns}));
	} else if (v->category == CAT_HOST) {
		ok = vec_push(&g->steps, ((struct traced_step){v->ts_ns, v->ts_ns + v->dur_ns}));
	} else {
		struct traced t = {.start_ns = v->ts_ns,
			.end_ns = v->ts_ns + v->dur_ns,
			.launch_ns = TRACE_NOT_LAUNCHED,
			.stream = (int32_t)v->stream,
			.correlation = v->correlation > 0 && v->correlation <= UINT32_MAX ? (uint32_t)v->correlation
		                                                                          : 0};
		ok = trace_intern(set, v->name, v->category == CAT_KERNEL ? trace_kernel_class : trace_copy_class,
			&t.name);
		if (ok) {
			t.class_ = set->names.at[t.name]->class_;
			ok = vec_push(&g->work, t);
		}
	}
	return ok ? ST_OK : error_nomem(e, "a trace");
}

static enum status read_events(struct scan *s, const char *path, struct trace_set *set, trace_progress *progress,
	void *ctx, struct error *e)
{
	struct event v;
	bool first = true;
	enum status st = ST_OK;
	if (!scan_enter(s, '['))
		return scan_failed(s, e);
	for (size_t n = 0; !st && scan_more(s, ']', &first); n++) {
		if (progress && n % PROGRESS_EVERY == 0)
			progress(ctx, scan_read_B(s));
		if (scan_peek(s) != '{') {
			if (!scan_skip(s))
				break;
			continue;
		}
		if (!read_event(s, &v))
			break;
		name_collective(&v);
		st = keep(&v, path, set, e);
	}
	return st;
}

static enum status read_top(struct scan *s, const char *path, struct trace_set *set, int64_t *rank, int64_t *world,
	bool *found, trace_progress *progress, void *ctx, struct error *e)
{
	char key[64];
	bool first = true;
	enum status st = ST_OK;
	const struct member ranks[] = {{"rank", rank, NULL, 0}, {"world_size", world, NULL, 0}};
	*found = scan_peek(s) == '[';
	if (*found)
		return read_events(s, path, set, progress, ctx, e);
	if (!scan_enter(s, '{'))
		return ST_OK;
	while (!st && scan_more(s, '}', &first)) {
		if (!scan_key(s, key, sizeof key))
			break;
		if (strcmp(key, "traceEvents") == 0 && scan_peek(s) == '[') {
			*found = true;
			st = read_events(s, path, set, progress, ctx, e);
		} else if (strcmp(key, "distributedInfo") == 0 ? !read_members(s, ranks, COUNT(ranks))
							       : !scan_skip(s)) {
			break;
		}
	}
	return st;
}

/* Gives the host's events to the process's GPU; of several GPUs to the one with the most work. */
static void give_host_events(struct trace_set *set, size_t first)
{
	size_t host = set->gpus.n, most = set->gpus.n;
	for (size_t i = first; i < set->gpus.n; i++)
		if (set->gpus.at[i].device == NO_DEVICE)
			host = i;
		else if (most == set->gpus.n || set->gpus.at[i].work.n > set->gpus.at[most].work.n)
			most = i;
	if (host == set->gpus.n || most == set->gpus.n)
		return;
	struct traced_gpu *from = &set->gpus.at[host], *to = &set->gpus.at[most];
	to->steps.at = from->steps.at, to->steps.n = from->steps.n, to->steps.cap = from->steps.cap;
	to->launches.at = from->launches.at, to->launches.n = from->launches.n, to->launches.cap = from->launches.cap;
	memmove(from, from + 1, (set->gpus.n - host - 1) * sizeof *from);
	set->gpus.n--;
}

enum status kineto_read(const char *path, struct trace_set *set, trace_progress *progress, void *ctx, struct error *e)
{
	struct scan *s;
	size_t before = set->gpus.n;
	int64_t rank = -1, world = -1;
	bool found;
	enum status st = scan_open(path, &s, e);
	if (st)
		return st;
	st = read_top(s, path, set, &rank, &world, &found, progress, ctx, e);
	if (!st && !found)
		st = error_set(e, ST_INPUT,
			"%s: neither a Chrome trace (traceEvents) nor an Nsight Systems export (SQLite)", path);
	else if (!st && scan_wrong(s))
		st = scan_failed(s, e);
	set->files_cut += !st && scan_cut(s);
	scan_close(s);
	if (st)
		return st;
	give_host_events(set, before);
	for (size_t i = before; i < set->gpus.n; i++) {
		set->gpus.at[i].rank = rank;
		set->gpus.at[i].world = world;
	}
	return ST_OK;
}
