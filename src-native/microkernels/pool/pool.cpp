#include "microkernels/pool/pool.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(PoolTable, pool_table)
