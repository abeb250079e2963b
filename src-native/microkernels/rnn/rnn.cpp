#include "microkernels/rnn/rnn.h"

#include "microkernels/common/targets.h"

INFERNODE_TABLE_CHOICE(RnnTable, rnn_table)
