#include "sim/advise/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/fold.h"

#define K STACK_NUMBERS
#define SCALES_BY 0.4   /* standard deviation of the log of a number that scales */
#define SHARE_BY 0.15   /* of a share */
#define ADDS_BY 0.05    /* of a time that is added, over the shortest step */
#define STEPS 4         /* Gauss-Newton's */
#define DIFFERENCE 0.25 /* of x, for the Jacobian */
#define X_MAX 5.0

enum move { SCALES, SHARE, ADDS, STAYS };

struct state {
	struct fit_run *runs;
	size_t n;
	struct config *scratch;
	double start[K], unit[K];
	enum move move[K];
	bool held[K]; /* numbers that change nothing */
	double *r;    /* n: log(predicted / measured) at x */
	double *j;    /* n by K: its derivatives */
	double x[K];
	size_t predicted, expected; /* for the progress */
	void (*tell)(double done);
};

static double *number_of(struct stack *s, size_t k) { return (double *)(void *)((char *)s + stack_numbers[k].offset); }

/* ---- what may move, and how far ---- */

static bool is(size_t k, const char *name) { return strcmp(stack_numbers[k].name, name) == 0; }

/* A number that is 0 because the program counts it, or is not known, stays so; the host's time for an op is then the
 * device's launch. */
static void set_moves(struct state *s)
{
	double shortest_s = s->runs[0].measured_s;
	struct stack stack = s->runs[0].config->stack;
	for (size_t i = 1; i < s->n; i++)
		shortest_s = fmin(shortest_s, s->runs[i].measured_s);
	for (size_t k = 0; k < K; k++) {
		const bool added = is(k, "step") || is(k, "micro_batch"), share = is(k, "overlap_tax");
		s->start[k] = *number_of(&stack, k);
		if (is(k, "op") && !(s->start[k] > 0))
			s->start[k] = s->runs[0].machine->device.launch_s;
		s->move[k] = added ? ADDS : share ? SHARE : s->start[k] > 0 ? SCALES : STAYS;
		s->unit[k] = added ? ADDS_BY * shortest_s : share ? SHARE_BY : SCALES_BY;
		s->held[k] = s->move[k] == STAYS;
	}
}

static double value_at(const struct state *s, size_t k, double x)
{
	const struct stack_number *row = &stack_numbers[k];
	const double v = s->move[k] == SCALES ? s->start[k] * exp(s->unit[k] * x) : s->start[k] + s->unit[k] * x;
	return fmin(fmax(v, row->min), row->max);
}

/* ---- predictions ---- */

/* At x the numbers that are held have the file's value, also where the host's time for an op is the device's. */
static enum status predict_run(struct state *s, size_t i, const double x[K], double *step_s, struct error *e)
{
	struct result p;
	*s->scratch = *s->runs[i].config;
	for (size_t k = 0; k < K; k++)
		if (!s->held[k])
			*number_of(&s->scratch->stack, k) = value_at(s, k, x[k]);
	const enum status st = fold_result(s->scratch, s->runs[i].machine, &p, e);
	*step_s = p.time.step_s;
	if (s->tell)
		s->tell(fmin((double)++s->predicted / (double)s->expected, 1));
	return st;
}

static enum status residuals(struct state *s, const double x[K], double *out, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < s->n && !st; i++) {
		double step_s;
		if (!(st = predict_run(s, i, x, &step_s, e)))
			out[i] = log(step_s / s->runs[i].measured_s);
	}
	return st;
}

/* Derivatives by differences away from the nearer bound of a number. */
static enum status jacobian(struct state *s, struct error *e)
{
	double *moved = malloc(s->n * sizeof *moved);
	enum status st = moved ? ST_OK : error_nomem(e, "the fit");
	for (size_t k = 0; k < K && !st; k++) {
		double x[K];
		memcpy(x, s->x, sizeof x);
		x[k] += DIFFERENCE;
		for (size_t i = 0; i < s->n; i++)
			s->j[i * K + k] = 0;
		if (s->held[k] || (st = residuals(s, x, moved, e)))
			continue;
		for (size_t i = 0; i < s->n; i++)
			s->j[i * K + k] = (moved[i] - s->r[i]) / DIFFERENCE;
	}
	free(moved);
	return st;
}

/* ---- the linear problem ---- */

/* Solves A y = b for a symmetric positive definite A by Cholesky's decomposition, in place. */
static void solve(double a[K][K], double b[K])
{
	for (size_t c = 0; c < K; c++) {
		for (size_t m = 0; m < c; m++)
			a[c][c] -= a[c][m] * a[c][m];
		a[c][c] = sqrt(a[c][c]);
		for (size_t row = c + 1; row < K; row++) {
			for (size_t m = 0; m < c; m++)
				a[row][c] -= a[row][m] * a[c][m];
			a[row][c] /= a[c][c];
		}
	}
	for (size_t row = 0; row < K; row++) {
		for (size_t m = 0; m < row; m++)
			b[row] -= a[row][m] * b[m];
		b[row] /= a[row][row];
	}
	for (size_t row = K; row-- > 0;) {
		for (size_t m = row + 1; m < K; m++)
			b[row] -= a[m][row] * b[m];
		b[row] /= a[row][row];
	}
}

/* The x that minimises the sum, where the residuals are r + J (x' - x): without the runs of group `left_out`. */
static void minimise(const struct state *s, size_t left_out, double out[K])
{
	double a[K][K] = {{0}}, b[K] = {0};
	for (size_t k = 0; k < K; k++)
		a[k][k] = 1;
	for (size_t i = 0; i < s->n; i++) {
		const double *j = &s->j[i * K];
		double at_zero = s->r[i];
		if (s->runs[i].group == left_out)
			continue;
		for (size_t k = 0; k < K; k++)
			at_zero -= j[k] * s->x[k];
		for (size_t k = 0; k < K; k++) {
			b[k] -= j[k] * at_zero / (FIT_NOISE * FIT_NOISE);
			for (size_t m = 0; m < K; m++)
				a[k][m] += j[k] * j[m] / (FIT_NOISE * FIT_NOISE);
		}
	}
	solve(a, b);
	for (size_t k = 0; k < K; k++)
		out[k] = s->held[k] ? 0 : fmin(fmax(b[k], -X_MAX), X_MAX);
}

/* ---- the fit ---- */

#define NO_GROUP ((size_t)-1)

static double squares(const struct state *s, const double x[K], const double *r)
{
	double sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += r[i] * r[i] / (FIT_NOISE * FIT_NOISE);
	for (size_t k = 0; k < K; k++)
		sum += x[k] * x[k];
	return sum;
}

/* Takes a step of Gauss and Newton, half as long until the sum falls. *better is false when it does not. */
static enum status step(struct state *s, double *room, bool *better, struct error *e)
{
	double target[K];
	const double before = squares(s, s->x, s->r);
	enum status st = jacobian(s, e);
	minimise(s, NO_GROUP, target);
	*better = false;
	for (double length = 1; length > 0.1 && !*better && !st; length /= 2) {
		double x[K];
		for (size_t k = 0; k < K; k++)
			x[k] = s->x[k] + length * (target[k] - s->x[k]);
		if ((st = residuals(s, x, room, e)) || !(squares(s, x, room) < before))
			continue;
		memcpy(s->x, x, sizeof x);
		memcpy(s->r, room, s->n * sizeof *room);
		*better = true;
	}
	return st;
}

static enum status iterate(struct state *s, double *room, struct error *e)
{
	bool better = true;
	enum status st = residuals(s, s->x, s->r, e);
	for (int i = 0; i < STEPS && better && !st; i++)
		st = step(s, room, &better, e);
	return st;
}

/* Holds the numbers that change no run by more than FIT_SEEN. Returns whether another one is held now. */
static bool hold_unseen(struct state *s)
{
	bool any = false;
	for (size_t k = 0; k < K; k++) {
		double most = 0;
		for (size_t i = 0; i < s->n; i++)
			most = fmax(most, fabs(s->j[i * K + k] * s->x[k]));
		if (s->held[k] || most > FIT_SEEN)
			continue;
		s->held[k] = any = true;
		s->x[k] = 0;
	}
	return any;
}

static enum status cross_validate(struct state *s, size_t groups, struct error *e)
{
	enum status st = groups > 1 ? jacobian(s, e) : ST_OK;
	for (size_t i = 0; i < s->n; i++)
		s->runs[i].left_out_s = NAN;
	for (size_t g = 0; g < groups && groups > 1 && !st; g++) {
		double x[K];
		minimise(s, g, x);
		for (size_t i = 0; i < s->n && !st; i++)
			if (s->runs[i].group == g)
				st = predict_run(s, i, x, &s->runs[i].left_out_s, e);
	}
	return st;
}

static enum status fit(struct state *s, struct stack_fit *out, double *room, struct error *e)
{
	enum status st = ST_OK;
	bool held[K];
	memcpy(held, s->held, sizeof held);
	memset(s->held, 1, sizeof s->held);
	for (size_t i = 0; i < s->n && !st; i++)
		st = predict_run(s, i, s->x, &s->runs[i].before_s, e);
	memcpy(s->held, held, sizeof held);
	if (st || (st = iterate(s, room, e)))
		return st;
	if (hold_unseen(s) && (st = iterate(s, room, e)))
		return st;
	for (size_t i = 0; i < s->n; i++)
		s->runs[i].after_s = s->runs[i].measured_s * exp(s->r[i]);
	for (size_t k = 0; k < K; k++)
		out->number[k] = (struct fit_number){s->start[k], s->held[k] ? s->start[k] : value_at(s, k, s->x[k]),
			!s->held[k]};
	return cross_validate(s, out->groups, e);
}

enum status stack_fit(struct fit_run *runs, size_t n, struct stack_fit *out, void (*tell)(double done), struct error *e)
{
	struct state s = {.runs = runs, .n = n, .tell = tell};
	double *room = NULL;
	*out = (struct stack_fit){0};
	for (size_t i = 0; i < n; i++)
		out->groups = runs[i].group >= out->groups ? runs[i].group + 1 : out->groups;
	s.expected = n * (2 * STEPS * (K + 2) + K + 2); /* at the most */
	s.scratch = malloc(sizeof *s.scratch);
	s.r = calloc(n, sizeof *s.r);
	s.j = calloc(n * K, sizeof *s.j);
	room = calloc(n, sizeof *room);
	enum status st = s.scratch && s.r && s.j && room ? ST_OK : error_nomem(e, "the fit");
	if (!st) {
		set_moves(&s);
		st = fit(&s, out, room, e);
	}
	free(s.scratch);
	free(s.r);
	free(s.j);
	free(room);
	return st;
}
