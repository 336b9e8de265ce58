#include "runtime/lora_adapter.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/mapped_file.h"
#include "tensor/data_type.h"

namespace tenon {
namespace {

constexpr char kIdentifier[] = {'T', 'O', 'R', 'T'};
constexpr int32_t kFormatVersion = 1;

Error NoAdapter() { return InvalidArgument("the bytes are no LoRA adapter, or a damaged one"); }

// Checked positions in a FlatBuffer. A table begins with the distance to its vtable. The vtable
// holds its own size, the table's size, and the position of each field in the table.
class FlatBuffer {
 public:
  explicit FlatBuffer(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> At(size_t position) const {
    if (position > bytes_.size() || sizeof(T) > bytes_.size() - position) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position, sizeof(T));
    return value;
  }

  // The position that the offset at `position` points to.
  std::optional<size_t> Follow(size_t position) const {
    const auto offset = At<uint32_t>(position);
    if (!offset || *offset > bytes_.size() - position) return std::nullopt;
    return position + *offset;
  }

  // The position of field `index` of the table; empty if it is left out or the table is damaged.
  std::optional<size_t> Field(size_t table, size_t index) const {
    const auto distance = At<int32_t>(table);
    if (!distance) return std::nullopt;
    const int64_t vtable = static_cast<int64_t>(table) - *distance;
    if (vtable < 0) return std::nullopt;
    const auto entry = static_cast<size_t>(vtable) + (2 + index) * sizeof(uint16_t);
    const auto vtable_bytes = At<uint16_t>(static_cast<size_t>(vtable));
    const auto in_table = At<uint16_t>(entry);
    const bool has_field = vtable_bytes && (3 + index) * sizeof(uint16_t) <= *vtable_bytes &&
                           in_table && *in_table != 0;
    return has_field ? std::optional(table + *in_table) : std::nullopt;
  }

  // Whether a table's vtable is whole; a field after its end would look as if it were left out.
  bool IsWhole(size_t table) const {
    const auto distance = At<int32_t>(table);
    if (!distance) return false;
    const int64_t vtable = static_cast<int64_t>(table) - *distance;
    const auto size = vtable < 0 ? std::nullopt : At<uint16_t>(static_cast<size_t>(vtable));
    return size && *size <= bytes_.size() - static_cast<size_t>(vtable);
  }

  int32_t Int(size_t table, size_t index) const {
    const auto field = Field(table, index);
    return field ? At<int32_t>(*field).value_or(0) : 0;
  }

  // The elements of the vector or string in a field: none if it is left out, no result if it is
  // damaged.
  struct Elements {
    size_t position = 0;
    size_t count = 0;
  };
  std::optional<Elements> Vector(size_t table, size_t index, size_t element_bytes) const {
    const auto field = Field(table, index);
    if (!field) return Elements{};
    const auto vector = Follow(*field);
    const auto count = vector ? At<uint32_t>(*vector) : std::nullopt;
    if (!count) return std::nullopt;
    const size_t position = *vector + sizeof(uint32_t);
    if (*count > (bytes_.size() - position) / element_bytes) return std::nullopt;
    return Elements{position, *count};
  }

  std::span<const std::byte> Bytes(const Elements& elements) const {
    return bytes_.subspan(elements.position, elements.count);
  }

 private:
  std::span<const std::byte> bytes_;
};

Result<Tensor> TensorOf(int32_t type_number, Shape shape, std::span<const std::byte> data,
                        const std::shared_ptr<void>& owner) {
  if (!IsDataType(type_number) || static_cast<DataType>(type_number) == DataType::kString) {
    return InvalidArgument("{} is no element type of parameters", type_number);
  }
  const auto type = static_cast<DataType>(type_number);
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, elements));
  if (bytes != data.size()) {
    return InvalidArgument("a {} tensor of shape {} has {} bytes, got {}", DataTypeName(type),
                           shape, bytes, data.size());
  }
  const bool is_aligned = reinterpret_cast<uintptr_t>(data.data()) % alignof(double) == 0;
  if (owner != nullptr && is_aligned) {
    return Tensor::ReadOnlyView(type, std::move(shape), data.data(), owner);
  }
  TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  return tensor;
}

// `left` is the number of bytes that no other parameter uses yet. Many parameters that share bytes
// would need more memory than the file has.
Result<LoraParameter> ReadParameter(const FlatBuffer& buffer, size_t table,
                                    const std::shared_ptr<void>& owner, size_t& left) {
  if (!buffer.IsWhole(table)) return NoAdapter();
  const auto name = buffer.Vector(table, 0, 1);
  const auto dims = buffer.Vector(table, 1, sizeof(int64_t));
  const auto data = buffer.Vector(table, 3, 1);
  if (!name || !dims || !data) return NoAdapter();
  const size_t own = name->count + dims->count * sizeof(int64_t) + data->count;
  if (own > left) return NoAdapter();
  left -= own;
  LoraParameter parameter;
  const std::span<const std::byte> text = buffer.Bytes(*name);
  parameter.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
  std::vector<int64_t> sizes(dims->count);
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = *buffer.At<int64_t>(dims->position + i * sizeof(int64_t));
  }
  Result<Tensor> tensor = TensorOf(buffer.Int(table, 2), Shape(std::span<const int64_t>(sizes)),
                                   buffer.Bytes(*data), owner);
  if (!tensor) {
    return Error(
        std::move(tensor.error()).WithContext(Format("LoRA parameter '{}'", parameter.name)));
  }
  parameter.tensor = std::move(*tensor);
  return parameter;
}

}  // namespace

Result<LoraAdapter> ReadLoraAdapter(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  const auto file = std::make_shared<MappedFile>(std::move(mapped));
  Result<LoraAdapter> adapter = ReadLoraAdapter(file->bytes(), file);
  if (!adapter) return Error(std::move(adapter.error()).WithContext(Format("'{}'", path)));
  return adapter;
}

Result<LoraAdapter> ReadLoraAdapter(std::span<const std::byte> bytes, std::shared_ptr<void> owner) {
  constexpr size_t kIdentifierAt = sizeof(uint32_t);
  const bool is_adapter =
      bytes.size() >= kIdentifierAt + sizeof(kIdentifier) &&
      std::memcmp(bytes.data() + kIdentifierAt, kIdentifier, sizeof(kIdentifier)) == 0;
  const FlatBuffer buffer(bytes);
  const auto root = is_adapter ? buffer.Follow(0) : std::nullopt;
  if (!root || !buffer.IsWhole(*root)) return NoAdapter();
  if (const int32_t version = buffer.Int(*root, 0); version != kFormatVersion) {
    return InvalidArgument("a LoRA adapter of format version {}; {} is known", version,
                           kFormatVersion);
  }
  LoraAdapter adapter;
  adapter.adapter_version = buffer.Int(*root, 1);
  adapter.model_version = buffer.Int(*root, 2);
  const auto parameters = buffer.Vector(*root, 3, sizeof(uint32_t));
  if (!parameters) return NoAdapter();
  size_t left = bytes.size();
  for (size_t i = 0; i < parameters->count; ++i) {
    const auto table = buffer.Follow(parameters->position + i * sizeof(uint32_t));
    if (!table) return NoAdapter();
    TENON_ASSIGN_OR_RETURN(LoraParameter parameter, ReadParameter(buffer, *table, owner, left));
    adapter.parameters.push_back(std::move(parameter));
  }
  return adapter;
}

}  // namespace tenon
