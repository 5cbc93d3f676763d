/* Classes of links and racks from what messages showed (topology/messages.h). */
#include "harness.h"

#include <stdbool.h>
#include <string.h>

#include "topology/messages.h"

static const char *const names[] = {"h1", "h2", "h3", "h4", "h5"};

#define HOSTS_MAX ((int64_t)COUNT(names))

/* rate[h]: of a host's link; hosts of another rack reach each other at `across`. */
static struct message_links find(const int *rack, const double *rate, int64_t hosts, double across, bool inside)
{
	struct message_pair pairs[HOSTS_MAX * (HOSTS_MAX + 1) / 2];
	struct message_links l;
	struct error e;
	size_t n = 0;
	for (int64_t a = 0; a < hosts; a++)
		for (int64_t b = a; b < hosts; b++) {
			double Bps = rate[a] < rate[b] ? rate[a] : rate[b];
			Bps = rack[a] != rack[b] && across < Bps ? across : Bps;
			if (a != b || inside)
				pairs[n++] = (struct message_pair){a, b, a == b ? 1e-6 : 5e-5, a == b ? 1e10 : Bps};
		}
	CU_ASSERT_EQUAL_FATAL(message_links_find(pairs, n, names, hosts, &l, &e), ST_OK);
	return l;
}

static void check_text(const struct message_links *l, const char *racks, const char *absent)
{
	char text[2048] = "";
	struct error e;
	FILE *out = fmemopen(text, sizeof text, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	CU_ASSERT_EQUAL(message_links_text(l, out, &e), ST_OK);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, racks));
	CU_ASSERT_TRUE(!absent || !strstr(text, absent));
}

/* Two racks of two, in whatever order the hosts are counted; a little noise on the rates. */
static void test_two_racks(void)
{
	static const int racks[][4] = {{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}};
	static const char *const lines[] = {"4 hosts in 2 racks: h1 h2 | h3 h4\n",
		"4 hosts in 2 racks: h1 h3 | h2 h4\n", "4 hosts in 2 racks: h1 h4 | h2 h3\n"};
	const double rate[] = {1.17e8, 1.02e8, 1.1e8, 1.15e8};
	for (size_t i = 0; i < COUNT(racks); i++) {
		struct message_links l = find(racks[i], rate, 4, 3e7, true);
		CU_ASSERT_EQUAL(l.racks, 2);
		CU_ASSERT_EQUAL(l.of[LINK_IN_HOST].pairs, 4);
		CU_ASSERT_EQUAL(l.of[LINK_IN_RACK].pairs, 2);
		CU_ASSERT_EQUAL(l.of[LINK_ACROSS_RACKS].pairs, 4);
		CU_ASSERT_DOUBLE_EQUAL(l.of[LINK_ACROSS_RACKS].Bps, 3e7, 1);
		check_text(&l, lines[i], NULL);
		message_links_free(&l);
	}
}

/* What is no rack: rates that differ a little, two hosts, one host. */
static void test_one_rack(void)
{
	static const int same[5] = {0};
	const double rate[] = {1.3e8, 1e8, 1e8, 1.2e8, 1e8};
	struct message_links l = find(same, rate, 5, 1e9, false);
	CU_ASSERT_EQUAL(l.racks, 1);
	CU_ASSERT_EQUAL(l.of[LINK_IN_RACK].pairs, 10);
	CU_ASSERT_EQUAL(l.of[LINK_ACROSS_RACKS].pairs, 0);
	check_text(&l, "5 hosts in 1 rack: h1 h2 h3 h4 h5\n", "between racks");
	message_links_free(&l);
	l = find(same, rate, 2, 1e9, true);
	check_text(&l, "2 hosts in 1 rack: h1 h2\n", "between racks");
	message_links_free(&l);
	l = find(same, rate, 1, 1e9, true);
	check_text(&l, "1 host in 1 rack: h1\n", "between hosts");
	message_links_free(&l);
}

/* A host whose own link is slow reaches nobody faster: it counts as a rack of its own. */
static void test_slow_host(void)
{
	static const int same[4] = {0};
	const double rate[] = {1e8, 1e8, 3e7, 1e8};
	struct message_links l = find(same, rate, 4, 1e9, false);
	CU_ASSERT_EQUAL(l.racks, 2);
	check_text(&l, "4 hosts in 2 racks: h1 h2 h4 | h3\n", NULL);
	message_links_free(&l);
}

/* Rates that part into no racks: a fast chain h1-h2-h3 whose ends are slow to each other, and to h4. */
static void test_no_parts(void)
{
	struct message_pair pairs[] = {{0, 1, 1e-5, 1e8}, {1, 2, 1e-5, 1e8}, {0, 2, 1e-5, 2e7}, {0, 3, 1e-5, 2e7},
		{1, 3, 1e-5, 2e7}, {2, 3, 1e-5, 2e7}};
	struct message_links l;
	struct error e;
	CU_ASSERT_EQUAL_FATAL(message_links_find(pairs, COUNT(pairs), names, 4, &l, &e), ST_OK);
	CU_ASSERT_EQUAL(l.racks, 1);
	message_links_free(&l);
}

static void test_json(void)
{
	static const int racks[] = {0, 0, 1, 1};
	const double rate[] = {1e8, 1e8, 1e8, 1e8};
	struct message_links l = find(racks, rate, 4, 3e7, false);
	json_t *j = message_links_json(&l);
	const char *second = NULL;
	double Bps = 0;
	json_error_t where;
	CU_ASSERT_EQUAL(json_unpack_ex(j, &where, 0, "{s:n, s:{s:F}, s:[[s, s], [s, s]]}", "in_host", "across_racks",
				"bandwidth_Bps", &Bps, "racks", &second, &second, &second, &second),
		0);
	CU_ASSERT_DOUBLE_EQUAL(Bps, 3e7, 1);
	CU_ASSERT_TRUE(second && strcmp(second, "h4") == 0);
	json_decref(j);
	message_links_free(&l);
}

UNIT_MAIN("messages", {"two racks", test_two_racks}, {"one rack", test_one_rack}, {"a slow host", test_slow_host},
	{"no parts", test_no_parts}, {"JSON", test_json})
