#include "microkernels/blocked_winograd.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(BlockedWinogradTable, blocked_winograd_table)
