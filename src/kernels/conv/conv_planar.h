// Convolution in NCHW directly from rows of the input; only for conv_general.cpp. A task copies the
// rows that it needs once, with their pads; every tap is a shift of them.
#pragma once

#include "kernels/conv/conv_general_args.h"

namespace tenon::kernels {

// Supports rows that fill vectors and whose inputs stay in the cache. Of three dimensions, the
// frames that an output frame reads are like further channels.
bool ConvPlanarSupports(const ConvGeneralShape& shape);

// Like the functions of conv_general.h.
size_t ConvPlanarTaskCount(const ConvGeneralShape& shape);
size_t ConvPlanarScratchSize(const ConvGeneralShape& shape);
void RunConvPlanarTask(const ConvGeneralArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
