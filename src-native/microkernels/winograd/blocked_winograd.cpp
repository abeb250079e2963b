#include "microkernels/winograd/blocked_winograd.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE_WITH_BF16(BlockedWinogradTable, blocked_winograd_table)
