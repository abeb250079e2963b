#include "microkernels/pool.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(PoolTable, pool_table)
