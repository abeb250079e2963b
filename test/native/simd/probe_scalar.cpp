#define INFERNODE_TARGET scalar
#include "probe.inc"
