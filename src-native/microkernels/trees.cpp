#include "microkernels/trees.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(TreesTable, trees_table)
