#include "microkernels/elementwise/convert.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(ConvertTable, convert_table)
