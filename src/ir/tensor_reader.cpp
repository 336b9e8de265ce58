#include "ir/tensor_reader.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/dense_values.h"
#include "ir/onnx_fields.h"

namespace tenon {
namespace {

// The fields of a TensorProto that hold elements, and their numbers.
struct TensorFields {
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  bool has_segment = false;
  std::optional<std::string_view> raw_data;
  // The typed field in use, with the number of its entries; kName if there is none.
  TensorField typed = TensorField::kName;
  uint64_t typed_entries = 0;
  // The typed field's bytes if all its entries are in one packed list of floats or doubles, which
  // equals raw_data.
  std::string_view packed;
  bool mixes_typed_fields = false;
  bool is_external = false;
  Metadata external_data;
};

std::string_view FieldName(TensorField field) {
  switch (field) {
    case TensorField::kFloatData:
      return "float_data";
    case TensorField::kInt32Data:
      return "int32_data";
    case TensorField::kStringData:
      return "string_data";
    case TensorField::kInt64Data:
      return "int64_data";
    case TensorField::kDoubleData:
      return "double_data";
    case TensorField::kUint64Data:
      return "uint64_data";
    default:
      return "no field";
  }
}

// The typed field that holds elements of `type`.
TensorField TypedFieldOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return TensorField::kFloatData;
    case DataType::kDouble:
    case DataType::kComplex128:
      return TensorField::kDoubleData;
    case DataType::kInt64:
      return TensorField::kInt64Data;
    case DataType::kUint32:
    case DataType::kUint64:
      return TensorField::kUint64Data;
    case DataType::kString:
      return TensorField::kStringData;
    default:
      return TensorField::kInt32Data;
  }
}

// Elements of this size have an entry each, though their bytes are packed.
constexpr size_t kUnpackedEntryBits = 6;

// Bytes of the tensor that one entry of the typed field fills.
size_t BytesPerEntry(DataType type) {
  switch (TypedFieldOf(type)) {
    case TensorField::kFloatData:
      return sizeof(float);
    case TensorField::kDoubleData:
      return sizeof(double);
    default:
      return std::max<size_t>(1, DataTypeBits(type) / 8);
  }
}

// Entries of the typed field that hold `elements`, which fill `size` bytes.
size_t EntryCount(DataType type, int64_t elements, size_t size) {
  return DataTypeBits(type) == kUnpackedEntryBits ? static_cast<size_t>(elements)
                                                  : size / BytesPerEntry(type);
}

// Adds the entries of the current field, a typed one, to the count.
void CountEntries(WireReader& reader, TensorFields& fields) {
  const auto field = reader.field<TensorField>();
  uint64_t entries = 0;
  std::string_view packed;
  const auto count = [&](auto) { ++entries; };
  switch (field) {
    case TensorField::kFloatData:
      if (reader.is_packed()) {
        packed = reader.PackedFloats();
        entries = packed.size() / sizeof(float);
      } else {
        reader.Floats(count);
      }
      break;
    case TensorField::kDoubleData:
      if (reader.is_packed()) {
        packed = reader.PackedDoubles();
        entries = packed.size() / sizeof(double);
      } else {
        reader.Doubles(count);
      }
      break;
    case TensorField::kStringData:
      reader.Bytes();
      entries = 1;
      break;
    default:
      reader.Unsigneds(count);
  }
  if (entries == 0) return;
  fields.mixes_typed_fields |= fields.typed != TensorField::kName && fields.typed != field;
  fields.packed = fields.typed_entries == 0 ? packed : std::string_view();
  fields.typed = field;
  fields.typed_entries += entries;
}

TensorFields ReadFields(std::string_view bytes, ReadContext& context, NamedTensor& result) {
  TensorFields fields;
  WireReader reader("TensorProto", bytes, context.errors);
  while (reader.Next()) {
    switch (reader.field<TensorField>()) {
      case TensorField::kDims:
        reader.Ints([&](int64_t dim) { fields.dims.push_back(dim); });
        break;
      case TensorField::kDataType:
        fields.data_type = reader.Int();
        break;
      case TensorField::kSegment:
        fields.has_segment = true;
        break;
      case TensorField::kFloatData:
      case TensorField::kInt32Data:
      case TensorField::kStringData:
      case TensorField::kInt64Data:
      case TensorField::kDoubleData:
      case TensorField::kUint64Data:
        CountEntries(reader, fields);
        break;
      case TensorField::kName:
        result.name = reader.Bytes();
        break;
      case TensorField::kRawData:
        fields.raw_data = reader.Bytes();
        break;
      case TensorField::kDocString:
        result.doc_string = reader.Bytes();
        break;
      case TensorField::kExternalData:
        fields.external_data.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
      case TensorField::kDataLocation:
        fields.is_external = reader.Int() == kExternalLocation;
        break;
      case TensorField::kMetadata:
        result.metadata.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
    }
  }
  return fields;
}

// Smaller tensors are copied if they are unaligned: readers then need no special case, and it costs
// almost nothing.
constexpr size_t kLeastUnalignedBytes = 1 << 10;

// Whether the bytes are valid elements of `type`: any bytes are, except for booleans, which are 0
// or 1.
bool AreElements(std::string_view bytes, DataType type) {
  return type != DataType::kBool ||
         std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0 || byte == 1; });
}

void NormalizeBooleans(Tensor& tensor) {
  auto* bytes = static_cast<uint8_t*>(tensor.raw());
  std::transform(bytes, bytes + tensor.bytes(), bytes, [](uint8_t byte) { return byte != 0; });
}

// A tensor whose elements are `bytes`, which have the right length.
Result<Tensor> FromRaw(DataType type, Shape shape, std::string_view bytes,
                       std::shared_ptr<void> owner, ViewAlignment alignment) {
  if (owner != nullptr && AreElements(bytes, type)) {
    Tensor view = Tensor::ReadOnlyView(type, shape, bytes.data(), std::move(owner));
    const bool may_be_anywhere =
        alignment == ViewAlignment::kAny && bytes.size() >= kLeastUnalignedBytes;
    if (may_be_anywhere || view.is_aligned()) return view;
  }
  TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  if (type == DataType::kBool) NormalizeBooleans(tensor);
  return tensor;
}

// Writes numbers one after the other, each as the low bytes of its little-endian form.
class EntryWriter {
 public:
  EntryWriter(void* out, size_t bytes_per_entry)
      : out_(static_cast<char*>(out)), bytes_per_entry_(bytes_per_entry) {}
  template <class T>
  void operator()(T value) {
    std::memcpy(out_, &value, bytes_per_entry_);
    out_ += bytes_per_entry_;
  }

 private:
  char* out_;
  size_t bytes_per_entry_;
};

// Joins the low bits of entries, the first in the lowest bits of the first byte.
class BitWriter {
 public:
  explicit BitWriter(void* out) : out_(static_cast<uint8_t*>(out)) {}
  void operator()(uint64_t value) {
    pending_ |= static_cast<unsigned>(value & ((1u << kUnpackedEntryBits) - 1)) << count_;
    count_ += kUnpackedEntryBits;
    if (count_ >= 8) Flush();
  }
  // Writes the pending bits as a byte, if there are any.
  void Flush() {
    if (count_ == 0) return;
    *out_++ = static_cast<uint8_t>(pending_);
    pending_ >>= 8;
    count_ -= std::min<size_t>(count_, 8);
  }

 private:
  uint8_t* out_;
  unsigned pending_ = 0;
  size_t count_ = 0;
};

void FillPacked(std::string_view bytes, ReadContext& context, Tensor& tensor) {
  BitWriter write(tensor.raw());
  WireReader reader("TensorProto", bytes, context.errors);
  while (reader.Next()) {
    if (reader.field<TensorField>() != TensorField::kInt32Data) continue;
    reader.Unsigneds([&](uint64_t value) { write(value); });
  }
  write.Flush();
}

void FillNumbers(std::string_view bytes, ReadContext& context, Tensor& tensor) {
  const TensorField typed = TypedFieldOf(tensor.type());
  EntryWriter write(tensor.raw(), BytesPerEntry(tensor.type()));
  WireReader reader("TensorProto", bytes, context.errors);
  while (reader.Next()) {
    if (reader.field<TensorField>() != typed) continue;
    if (typed == TensorField::kFloatData) {
      reader.Floats([&](float value) { write(value); });
    } else if (typed == TensorField::kDoubleData) {
      reader.Doubles([&](double value) { write(value); });
    } else {
      reader.Unsigneds([&](uint64_t value) { write(value); });
    }
  }
  if (tensor.type() == DataType::kBool) NormalizeBooleans(tensor);
}

void FillStrings(std::string_view bytes, ReadContext& context, Tensor& tensor) {
  auto* out = tensor.data<std::string>();
  WireReader reader("TensorProto", bytes, context.errors);
  while (reader.Next()) {
    if (reader.field<TensorField>() == TensorField::kStringData) *out++ = reader.Bytes();
  }
}

// A tensor from the typed field; the entries were counted before anything is allocated.
Result<Tensor> FromTyped(DataType type, const Shape& shape, const TensorFields& fields,
                         std::string_view bytes, ReadContext& context, ViewAlignment alignment) {
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t size, DataTypeBytes(type, elements));
  const size_t entries = EntryCount(type, elements, size);
  const TensorField typed = TypedFieldOf(type);
  if (fields.mixes_typed_fields || (fields.typed != typed && fields.typed_entries > 0)) {
    return InvalidGraph("expected the elements of a {} tensor in {}, got some in {}",
                        DataTypeName(type), FieldName(typed), FieldName(fields.typed));
  }
  if (fields.typed_entries != entries) {
    return InvalidGraph("expected {} entries in {} for {} elements of shape {}, got {}", entries,
                        FieldName(typed), DataTypeName(type), shape, fields.typed_entries);
  }
  if (!fields.packed.empty()) {
    return FromRaw(type, shape, fields.packed, context.owner, alignment);
  }
  TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  if (type == DataType::kString) {
    FillStrings(bytes, context, tensor);
  } else if (DataTypeBits(type) == kUnpackedEntryBits) {
    FillPacked(bytes, context, tensor);
  } else {
    FillNumbers(bytes, context, tensor);
  }
  return tensor;
}

Result<Tensor> BuildTensor(const TensorFields& fields, std::string_view bytes, ReadContext& context,
                           ViewAlignment alignment) {
  if (!IsDataType(fields.data_type)) {
    return InvalidGraph("{} is not the number of an element type", fields.data_type);
  }
  if (fields.has_segment) return NotImplemented("tensors in segments");
  const auto type = static_cast<DataType>(fields.data_type);
  Shape shape{std::span<const int64_t>(fields.dims)};
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t size, DataTypeBytes(type, elements));
  const bool has_typed = fields.typed_entries > 0;
  if (!fields.is_external && !fields.raw_data.has_value()) {
    return FromTyped(type, shape, fields, bytes, context, alignment);
  }
  const bool is_twice =
      has_typed || (fields.is_external && fields.raw_data && !fields.raw_data->empty());
  if (is_twice && !fields.is_external) return InvalidGraph("the elements are given more than once");
  if (type == DataType::kString) {
    return InvalidGraph("expected the elements of a string tensor in string_data, got raw bytes");
  }
  if (fields.is_external) {
    TENON_ASSIGN_OR_RETURN(const ExternalLocation location,
                           ParseExternalLocation(fields.external_data));
    // Before other errors, so that a hostile name is always reported.
    TENON_ASSIGN_OR_RETURN(ExternalData::Region region, context.external_data.Find(location, size));
    if (is_twice) return InvalidGraph("the elements are given more than once");
    const std::string_view data(reinterpret_cast<const char*>(region.bytes.data()), size);
    TENON_ASSIGN_OR_RETURN(
        Tensor tensor, FromRaw(type, std::move(shape), data, std::move(region.owner), alignment));
    if (!region.is_in_file) return tensor;
    if (context.external_places == nullptr) {
      context.external_places = std::make_shared<ExternalPlaces>();
    }
    context.external_places->Add(tensor, location);
    return tensor;
  }
  if (fields.raw_data->size() != size) {
    return InvalidGraph("expected {} bytes of raw_data for {} elements of shape {}, got {}", size,
                        DataTypeName(type), shape, fields.raw_data->size());
  }
  return FromRaw(type, std::move(shape), *fields.raw_data, context.owner, alignment);
}

// Whether the indices ascend strictly and lie inside the shape. `rank_of_index` is 1 for linear
// indices and the shape's rank for coordinates, which are compared lexicographically.
Status CheckIndices(std::span<const int64_t> indices, const Shape& bounds) {
  const size_t width = bounds.rank();
  for (size_t i = 0; i < indices.size(); i += width) {
    const auto index = indices.subspan(i, width);
    for (size_t axis = 0; axis < width; ++axis) {
      if (index[axis] < 0 || index[axis] >= bounds[axis]) {
        return InvalidGraph("index {} of value {} is outside [0, {})", index[axis], i / width,
                            bounds[axis]);
      }
    }
    if (i == 0) continue;
    const auto previous = indices.subspan(i - width, width);
    if (!std::lexicographical_compare(previous.begin(), previous.end(), index.begin(),
                                      index.end())) {
      return InvalidGraph("the indices of values {} and {} do not ascend", i / width - 1,
                          i / width);
    }
  }
  return OkStatus();
}

Status CheckSparse(const SparseTensor& sparse) {
  TENON_ASSIGN_OR_RETURN(const int64_t elements, sparse.dense_shape.CheckedNumElements());
  if (sparse.values.rank() != 1) {
    return InvalidGraph("expected values of rank 1, got shape {}", sparse.values.shape());
  }
  const int64_t count = sparse.values.size();
  const Shape& dense = sparse.dense_shape;
  const bool is_linear = sparse.indices.shape() == Shape{count};
  const bool is_coordinates =
      !dense.empty() && sparse.indices.shape() == Shape{count, static_cast<int64_t>(dense.rank())};
  if (sparse.indices.type() != DataType::kInt64 || !(is_linear || is_coordinates)) {
    return InvalidGraph("expected int64 indices of shape [{}] or [{}, {}], got {} of shape {}",
                        count, count, dense.rank(), DataTypeName(sparse.indices.type()),
                        sparse.indices.shape());
  }
  return CheckIndices(sparse.indices.values<int64_t>(), is_linear ? Shape{elements} : dense);
}

}  // namespace

Result<NamedTensor> ReadTensorProto(std::string_view bytes, ReadContext& context,
                                    ViewAlignment alignment) {
  NamedTensor result;
  const TensorFields fields = ReadFields(bytes, context, result);
  TENON_RETURN_IF_ERROR(context.errors.status());
  Result<Tensor> tensor = BuildTensor(fields, bytes, context, alignment);
  if (!tensor) {
    return Error(std::move(tensor.error()).WithContext(Format("tensor '{}'", result.name)));
  }
  result.tensor = std::move(*tensor);
  return result;
}

Result<NamedTensor> ReadInitializer(std::string_view bytes, ReadContext& context) {
  if (context.initializers == nullptr) return ReadTensorProto(bytes, context, ViewAlignment::kAny);
  NamedTensor result;
  const TensorFields fields = ReadFields(bytes, context, result);
  TENON_RETURN_IF_ERROR(context.errors.status());
  const auto given = context.initializers->find(result.name);
  if (given == context.initializers->end())
    return ReadTensorProto(bytes, context, ViewAlignment::kAny);
  const Tensor& tensor = given->second;
  const Shape shape{std::span<const int64_t>(fields.dims)};
  if (fields.data_type != static_cast<int64_t>(tensor.type()) || !(shape == tensor.shape())) {
    return InvalidArgument(
        "initializer '{}': the model has {} of shape {}, got {} of shape {}", result.name,
        IsDataType(fields.data_type) ? DataTypeName(static_cast<DataType>(fields.data_type))
                                     : std::string_view("no type"),
        shape, DataTypeName(tensor.type()), tensor.shape());
  }
  result.tensor = tensor;
  return result;
}

Result<NamedSparseTensor> ReadSparseTensorProto(std::string_view bytes, ReadContext& context) {
  std::string_view values;
  std::string_view indices;
  std::vector<int64_t> dims;
  WireReader reader("SparseTensorProto", bytes, context.errors);
  while (reader.Next()) {
    switch (reader.field<SparseTensorField>()) {
      case SparseTensorField::kValues:
        values = reader.Bytes();
        break;
      case SparseTensorField::kIndices:
        indices = reader.Bytes();
        break;
      case SparseTensorField::kDims:
        reader.Ints([&](int64_t dim) { dims.push_back(dim); });
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  TENON_ASSIGN_OR_RETURN(NamedTensor named_values, ReadTensorProto(values, context));
  TENON_ASSIGN_OR_RETURN(NamedTensor named_indices, ReadTensorProto(indices, context));
  TENON_ASSIGN_OR_RETURN(Tensor wide_indices, WidenIndices(std::move(named_indices.tensor)));
  auto sparse = std::make_shared<SparseTensor>(SparseTensor{std::move(named_values.tensor),
                                                            std::move(wide_indices),
                                                            Shape{std::span<const int64_t>(dims)}});
  Status status = CheckSparse(*sparse);
  if (!status.ok()) {
    return Error(std::move(status).WithContext(Format("sparse tensor '{}'", named_values.name)));
  }
  return NamedSparseTensor{std::move(named_values.name), std::move(named_values.doc_string),
                           std::move(named_values.metadata), std::move(sparse)};
}

}  // namespace tenon
