// TenonApi::DescribeModel.
#pragma once

#include <onnxruntime_c_api.h>

namespace tenon::capi {

OrtStatus* DescribeModel(const ORTCHAR_T* model_path, const char* const* dim_names,
                         const int64_t* dim_sizes, size_t dim_count, OrtAllocator* allocator,
                         char** json) noexcept;

}  // namespace tenon::capi
