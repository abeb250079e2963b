#include "microkernels/convert.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(ConvertTable, convert_table)
