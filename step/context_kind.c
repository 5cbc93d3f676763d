#include "step/context_kind.h"

#define ROW(id, ...) [CTX_##id] = {__VA_ARGS__},
const struct context_traits context_traits[] = {CONTEXT_KINDS(ROW)};
