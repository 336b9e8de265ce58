// Convolution in NCHW directly from rows of the input; only for conv_general.cpp. The rows that a
// task needs are copied once, with their pads, and every tap is a shift of them.
#pragma once

#include "kernels/conv/conv_general_args.h"

namespace tenon::kernels {

// At most two dimensions, rows that fill vectors, and a row's inputs that stay in the cache.
bool ConvPlanarSupports(const ConvGeneralShape& shape);

// As the functions of conv_general.h.
size_t ConvPlanarTaskCount(const ConvGeneralShape& shape);
size_t ConvPlanarScratchSize(const ConvGeneralShape& shape);
void RunConvPlanarTask(const ConvGeneralArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
