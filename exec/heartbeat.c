#include "exec/heartbeat.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/session.h"

#define PERIOD_S 0.2
#define RANKS_A_PERIOD 100 /* more than so many take turns, so that rank 0 is not flooded */
#define ADDRESSES 8

/* How rank 0 is reached; no address: not at all. */
struct invitation {
	uint64_t token;
	uint16_t port; /* in the network's order */
	int32_t n;
	struct in_addr address[ADDRESSES];
};

struct datagram {
	uint64_t token;
	struct heartbeat_sign sign;
};

struct peer {
	double heard_s; /* 0: never */
	struct sockaddr_in from;
	struct heartbeat_sign sign;
};

struct heartbeat {
	int fd;
	bool root;
	uint64_t token;
	struct sockaddr_in to[ADDRESSES];
	int32_t n_to;
	double period_s, next_s;
	int64_t ranks;
	struct peer peer[]; /* by rank */
};

static int open_socket(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Rank 0's addresses in networks. */
static void find_addresses(struct invitation *out)
{
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all))
		return;
	for (const struct ifaddrs *i = all; i && out->n < ADDRESSES; i = i->ifa_next) {
		struct sockaddr_in address;
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
			(i->ifa_flags & IFF_LOOPBACK))
			continue;
		memcpy(&address, i->ifa_addr, sizeof address);
		out->address[out->n++] = address.sin_addr;
	}
	freeifaddrs(all);
}

static void invite(int fd, struct invitation *out)
{
	struct sockaddr_in own;
	socklen_t length = sizeof own;
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct invitation){
		.token = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uint64_t)getpid()};
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&own, &length))
		return;
	out->port = own.sin_port;
	find_addresses(out);
}

enum status heartbeat_open(struct session *s, struct heartbeat **out, struct error *e)
{
	struct invitation invitation = {0};
	struct heartbeat *h = NULL;
	bool root = s->info.rank == 0, mine = root || s->host_of[s->info.rank] != 0;
	*out = NULL;
	if (s->info.hosts < 2)
		return ST_OK;
	int fd = mine ? open_socket() : -1;
	if (root)
		invite(fd, &invitation);
	enum status st = session_broadcast(s, &invitation, sizeof invitation, e);
	if (!st && fd >= 0 && invitation.n > 0 &&
		!(h = calloc(1, sizeof *h + (size_t)s->info.ranks * sizeof h->peer[0])))
		st = error_nomem(e, "the ranks' signs of life");
	if (!h) {
		if (fd >= 0)
			close(fd);
		return st;
	}
	h->fd = fd;
	h->root = root;
	h->token = invitation.token;
	h->ranks = s->info.ranks;
	h->period_s = PERIOD_S * (double)(1 + s->info.ranks / RANKS_A_PERIOD);
	for (; !root && h->n_to < invitation.n; h->n_to++)
		h->to[h->n_to] = (struct sockaddr_in){.sin_family = AF_INET,
			.sin_port = invitation.port,
			.sin_addr = invitation.address[h->n_to]};
	*out = h;
	return ST_OK;
}

void heartbeat_close(struct heartbeat *h)
{
	if (!h)
		return;
	close(h->fd);
	free(h);
}

static void send_to(const struct heartbeat *h, const struct heartbeat_sign *mine, const struct sockaddr_in *to)
{
	struct datagram d;
	memset(&d, 0, sizeof d);
	d.token = h->token;
	d.sign = *mine;
	/* A datagram that is lost, or cannot be sent, is missed like a rank that is gone. */
	(void)sendto(h->fd, &d, sizeof d, MSG_NOSIGNAL, (const struct sockaddr *)to, sizeof *to);
}

void heartbeat_beat(struct heartbeat *h, const struct heartbeat_sign *mine, bool now)
{
	struct datagram d;
	struct sockaddr_in from;
	socklen_t length = sizeof from;
	const double at_s = clock_s();
	while (recvfrom(h->fd, &d, sizeof d, 0, (struct sockaddr *)&from, &length) == (ssize_t)sizeof d) {
		length = sizeof from;
		if (d.token != h->token || d.sign.rank < 0 || d.sign.rank >= h->ranks)
			continue;
		d.sign.host[sizeof d.sign.host - 1] = d.sign.doing[HEARTBEAT_TEXT - 1] = 0;
		h->peer[d.sign.rank] = (struct peer){at_s, from, d.sign};
		if (h->root && !d.sign.reported && !d.sign.finished)
			send_to(h, mine, &from);
	}
	if (!now && at_s < h->next_s)
		return;
	h->next_s = at_s + h->period_s;
	for (int32_t i = 0; i < h->n_to; i++)
		send_to(h, mine, &h->to[i]);
	for (int64_t r = 0; now && h->root && r < h->ranks; r++)
		if (h->peer[r].heard_s > 0)
			send_to(h, mine, &h->peer[r].from);
}

const struct heartbeat_sign *heartbeat_lost(const struct heartbeat *h, double silent_s, double *since_s)
{
	const struct heartbeat_sign *lost = NULL;
	const double now_s = clock_s();
	for (int64_t r = 0; r < h->ranks; r++) {
		const struct peer *p = &h->peer[r];
		/* Those that take turns are silent for a period anyway. */
		if (!(p->heard_s > 0) || p->sign.finished || now_s - p->heard_s <= silent_s + h->period_s - PERIOD_S)
			continue;
		silent_s = *since_s = now_s - p->heard_s;
		lost = &p->sign;
	}
	return lost;
}

const struct heartbeat_sign *heartbeat_computing(const struct heartbeat *h)
{
	for (int64_t r = 0; r < h->ranks; r++)
		if (h->peer[r].heard_s > 0 && h->peer[r].sign.computes && !h->peer[r].sign.finished)
			return &h->peer[r].sign;
	return NULL;
}

bool heartbeat_reported(const struct heartbeat *h)
{
	for (int64_t r = 0; r < h->ranks; r++)
		if (h->peer[r].heard_s > 0 && h->peer[r].sign.reported)
			return true;
	return false;
}
