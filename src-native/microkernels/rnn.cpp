#include "microkernels/rnn.h"

#include "microkernels/targets.h"

INFERNODE_TABLE_CHOICE(RnnTable, rnn_table)
