#include "microkernels/blocked.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE_WITH_BF16(BlockedConvTable, blocked_conv_table)
