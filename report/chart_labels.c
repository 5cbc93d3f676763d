#include "report/chart_labels.h"

#include <math.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/svg.h"

#define BOLD 1.25   /* width of bold letters in a browser's widest font over svg_width */
#define DOT 5.0     /* half of the room of a dot */
#define LETTER 11.0 /* height of a label's letters */
#define LEAD 9.0    /* from this distance on a line leads to the dot */
#define BOXES 256   /* labels kept clear of; further ones may meet */

static const double distances[] = {4, 14, 26, 40, 56};
/* Right, left, above and below come first, then between them. */
static const double directions[][2] = {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {.7, -.7}, {.7, .7}, {-.7, -.7}, {-.7, .7}};

static bool meet(struct chart_box a, struct chart_box b)
{
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

static struct chart_box dot_box(const struct chart_label *l)
{
	return (struct chart_box){l->x - DOT, l->y - DOT, l->x + DOT, l->y + DOT};
}

/* Touches the dot's room in this direction, at this distance. */
static struct chart_box box_at(const struct chart_label *l, double wide, const double to[2], double distance)
{
	const double x = l->x + to[0] * (DOT + distance + wide / 2), y = l->y + to[1] * (DOT + distance + LETTER / 2);
	return (struct chart_box){x - wide / 2, y - LETTER / 2, x + wide / 2, y + LETTER / 2};
}

static bool is_free(struct chart_box b, const struct chart_label *label, size_t n, const struct chart_box *taken,
	size_t n_taken, struct chart_box frame)
{
	if (b.left < frame.left || b.right > frame.right || b.top < frame.top || b.bottom > frame.bottom)
		return false;
	for (size_t i = 0; i < n; i++)
		if (meet(b, dot_box(&label[i])))
			return false;
	for (size_t i = 0; i < n_taken; i++)
		if (meet(b, taken[i]))
			return false;
	return true;
}

static void write_label(const struct chart_label *l, struct chart_box b, FILE *out)
{
	const double x = fmin(fmax(l->x, b.left), b.right), y = fmin(fmax(l->y, b.top), b.bottom),
		     far = hypot(x - l->x, y - l->y);
	if (far > DOT + LEAD)
		fprintf(out, "<line class=\"lead\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			l->x + (x - l->x) * DOT / far, l->y + (y - l->y) * DOT / far, x, y);
	fprintf(out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (b.left + b.right) / 2,
		b.bottom - 1);
	svg_escaped(l->text, out);
	fputs("</text>\n", out);
}

void chart_labels_write(const struct chart_label *label, size_t n, struct chart_box frame, FILE *out)
{
	struct chart_box taken[BOXES];
	size_t n_taken = 0;
	for (size_t i = 0; i < n && n_taken < BOXES; i++) {
		const double wide = label[i].text ? BOLD * svg_width(label[i].text) : 0;
		bool found = !label[i].text;
		for (size_t d = 0; d < COUNT(distances) && !found; d++)
			for (size_t k = 0; k < COUNT(directions) && !found; k++) {
				const struct chart_box b = box_at(&label[i], wide, directions[k], distances[d]);
				if (!(found = is_free(b, label, n, taken, n_taken, frame)))
					continue;
				taken[n_taken++] = b;
				write_label(&label[i], b, out);
			}
	}
}
