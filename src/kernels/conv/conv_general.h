// Convolution and transposed convolution in NCHW, for rank 1 to 3 and any groups and sizes, by
// matrix products with gathered inputs. Slower than the kernels for NCHW16c where those apply.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_general_args.h"

namespace tenon::kernels {

// Work is divided into tasks by shape alone. They may run at once, each with scratch of its own of
// ...ScratchSize bytes, aligned to 64.
size_t ConvGeneralTaskCount(const ConvGeneralShape& shape);
size_t ConvGeneralScratchSize(const ConvGeneralShape& shape);
void RunConvGeneralTask(const ConvGeneralArgs& args, size_t task, void* scratch);

size_t ConvTransposeTaskCount(const ConvGeneralShape& shape);
size_t ConvTransposeScratchSize(const ConvGeneralShape& shape);
void RunConvTransposeTask(const ConvGeneralArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
