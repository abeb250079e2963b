#include "microkernels/blocked.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(BlockedConvTable, blocked_conv_table)
