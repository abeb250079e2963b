#include "microkernels/trees/trees.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(TreesTable, trees_table)
