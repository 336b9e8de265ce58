// Texts of the kernels in kernels/, each with kernels/common.cuh before it: CMake writes their
// definitions. What a text wants defined stands in its file.
#pragma once

#include <string>

namespace cuda {

extern const std::string kFewRowsSource;
extern const std::string kFlashAttentionSource;
extern const std::string kNbitsDequantizeSource;
extern const std::string kNbitsProductSource;
extern const std::string kRotarySource;
extern const std::string kRotateAppendSource;
extern const std::string kTransposeSource;

}  // namespace cuda
