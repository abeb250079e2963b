#if defined(__x86_64__) || defined(_M_X64)
#define INFERNODE_TARGET avx512
#include "probe.inc"
#endif
