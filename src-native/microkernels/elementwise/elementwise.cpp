#include "microkernels/elementwise/elementwise.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(ElementwiseTable, elementwise_table)
