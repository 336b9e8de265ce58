// Writes the messages of graphs, except those that contain graphs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/external_data.h"
#include "ir/graph.h"
#include "ir/onnx_fields.h"

namespace tenon {

template <class Field>
using MessageBuilder = protozero::pbf_builder<Field>;

// The content of an external-data file under construction: tensors one after the other, each at an
// offset that is aligned for its elements, and a large one for any kernel.
struct ExternalDataFile {
  std::string name;      // its name in the model
  size_t threshold = 0;  // tensors with at least so many bytes go here
  std::vector<std::span<const std::byte>> parts;
  uint64_t size = 0;

  // Returns the offset of `bytes`, which must stay valid.
  uint64_t Append(std::span<const std::byte> bytes);
};

// The position of an initializer's elements outside the model; see WriteOptions.
using InitializerPlacer = std::function<Result<std::optional<ExternalLocation>>(
    const std::string& name, const Tensor& tensor)>;

// Shared by the writers of one model.
struct WriteContext {
  int64_t ir_version = 0;
  ExternalDataFile* external_data = nullptr;  // null: all tensors are in the model
  const InitializerPlacer* place = nullptr;   // null or empty: the file alone decides
  // Bytes of tensors in the model so far.
  uint64_t tensor_bytes = 0;
};

// Protobuf's readers accept no message of 2 GiB or more.
inline constexpr uint64_t kMaxMessageBytes = (uint64_t{1} << 31) - 1;

template <class Field, class ParentField>
void WriteEntries(const Metadata& entries, MessageBuilder<Field>& parent, ParentField field) {
  for (const auto& [key, value] : entries) {
    MessageBuilder<EntryField> entry(parent, field);
    entry.add_string(EntryField::kKey, key);
    entry.add_string(EntryField::kValue, value);
  }
}

// Adds a string unless it is empty.
template <class Field>
void WriteText(const std::string& text, MessageBuilder<Field>& parent, Field field) {
  if (!text.empty()) parent.add_string(field, text);
}

// A serialized TypeProto; expressions over dimensions become names.
std::string TypeMessage(const ValueType& type);

// The position of a tensor's `bytes` in an external file.
void WriteLocation(const ExternalLocation& location, size_t bytes,
                   MessageBuilder<TensorField>& message);

// Fails if the model would exceed kMaxMessageBytes.
Status WriteTensor(const std::string& name, const Tensor& tensor, WriteContext& context,
                   MessageBuilder<TensorField>& message);
// The same, in the external-data file if there is one and the tensor is large enough.
Status WriteInitializer(const std::string& name, const Tensor& tensor, WriteContext& context,
                        MessageBuilder<TensorField>& message);
Status WriteSparseTensor(const std::string& name, const SparseTensor& tensor, WriteContext& context,
                         MessageBuilder<SparseTensorField>& message);

}  // namespace tenon
