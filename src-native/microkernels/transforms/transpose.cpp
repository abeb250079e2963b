#include "microkernels/transforms/transpose.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(TransposeTable, transpose_table)
