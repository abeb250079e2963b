#include "microkernels/elementwise.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(ElementwiseTable, elementwise_table)
