#pragma once
// What windows over blocks of channels count. Their loops pass over bands of rows, whose input they keep at hand, with
// all weights for each band; the sizes here are theirs, about, of microkernels/blocked.

#include "ops/conv/methods/method.h"

namespace infernode::ops {

/// A kernel of one point without borders: its positions lie in one row.
bool is_point(const microkernels::ConvShape& s);

/// How often each element of the input is laid out, in the mean: bands of the output whose windows meet lay out the
/// rows that both see. Where a row of all that a window sees does not fit, it is laid out for each row of the output.
double times_laid(const ConvSite& site, const microkernels::ConvShape& s);

/// Of `calls` convolutions of this shape. By vectors: calls, multiply-adds of whole blocks, reads of weights by tiles
/// of positions, floats laid out for bands, floats written, weights that bands read, floats from far away, and of the
/// weights that tiles read those that do not stay near. On the matrix unit: calls, cycles of products of tiles, floats
/// of the input that bands see, floats written, weights that bands read, multiply-adds, floats from far away.
cost::Terms blocked_terms(const ConvSite& site, const microkernels::ConvShape& s, double calls);

}  // namespace infernode::ops
