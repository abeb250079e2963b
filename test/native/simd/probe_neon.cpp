#if defined(__aarch64__) || defined(_M_ARM64)
#define INFERNODE_TARGET neon
#include "probe.inc"
#endif
