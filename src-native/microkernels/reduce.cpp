#include "microkernels/reduce.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(ReduceTable, reduce_table)
