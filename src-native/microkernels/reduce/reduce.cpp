#include "microkernels/reduce/reduce.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(ReduceTable, reduce_table)
