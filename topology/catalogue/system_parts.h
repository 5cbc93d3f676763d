/* Functions shared by topology/catalogue/system*.c, and private to them. */
#ifndef STEPSIM_TOPOLOGY_CATALOGUE_SYSTEM_PARTS_H
#define STEPSIM_TOPOLOGY_CATALOGUE_SYSTEM_PARTS_H

#include "base/vec.h"
#include "topology/catalogue/system.h"

/* Words of a fabric ("nvswitch", ...; "nvlink" is what the GPU has of it). False when it is none. */
bool fabric_of_word(const char *word, const struct device_spec *d, int64_t gpus, enum fabric_kind *out);
extern const char *const fabric_words[];
extern const size_t n_fabric_words;

/* How `gpus` GPUs of this kind in a host come joined when nobody says otherwise. */
enum fabric_kind fabric_by_default(const struct device_spec *d, int64_t gpus);

/* Links of a GPU to its peers: NVIDIA's NVLink, or other makers' own. */
bool links_are_nvlink(const struct device_spec *d);

struct wire {
	int32_t a, b, width; /* GPU numbers */
};
struct wires {
	VEC(struct wire) wire;
	int32_t most; /* links of the GPU that has most */
};

/* The links between GPUs of a mesh, bridges or a torus of `gpus` GPUs (a wiring of fewer repeats); none for other
 * fabrics. The caller frees out->wire. ST_INPUT: the wiring is wrong, or the GPUs have too few links. */
enum status system_wires(const struct system_spec *s, int64_t gpus, struct wires *out, struct error *e);

/* Fills what the description left open (PCIe, sockets, rates of links) and refuses what cannot be. */
enum status system_complete(struct system_spec *s, struct error *e);

enum status system_from_line(const char *line, struct system_spec *out, struct error *e);

#endif
