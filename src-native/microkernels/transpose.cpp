#include "microkernels/transpose.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(TransposeTable, transpose_table)
