// Texts of the kernels in kernels/, each with kernels/common.cuh before it: CMake writes their
// definitions. What a text wants defined stands in its file.
#pragma once

#include <string>

namespace cuda {

extern const std::string kAppendCacheSource;
extern const std::string kFlashAttentionSource;
extern const std::string kNbitsDequantizeSource;
extern const std::string kNbitsProductSource;
extern const std::string kRotarySource;

}  // namespace cuda
