// Adapters of low rank (LoRA): parameters that runs feed to a model's optional inputs. The format
// is that of ONNX Runtime's `.onnx_adapter` files, a FlatBuffer with identifier TORT:
//   table Parameter { name: string; dims: [int64]; data_type: int32; raw_data: [uint8]; }
//   table Adapter { format_version: int32; adapter_version: int32; model_version: int32;
//                   parameters: [Parameter]; }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tenon {

struct LoraParameter {
  std::string name;
  Tensor tensor;
};

struct LoraAdapter {
  int32_t adapter_version = 0;
  int32_t model_version = 0;
  std::vector<LoraParameter> parameters;
};

// Maps the file; parameters are views into it where they are aligned. Errors: the system's text,
// and those below.
Result<LoraAdapter> ReadLoraAdapter(const std::string& path);

// Reads an adapter from memory, which `owner` keeps alive; if `owner` is null, parameters are
// copies. Error: kInvalidArgument for bytes that are no adapter, and for another version of the
// format.
Result<LoraAdapter> ReadLoraAdapter(std::span<const std::byte> bytes, std::shared_ptr<void> owner);

}  // namespace tenon
