// The FlatBuffers tables of checkpoints, identifier ODTC. The numbers of the fields are the format.
#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "training/checkpoint.h"

namespace tenon {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::String;
using flatbuffers::Table;
using flatbuffers::Vector;
using flatbuffers::Verifier;
using flatbuffers::voffset_t;

constexpr char kIdentifier[] = "ODTC";
constexpr int32_t kNewestVersion = 2;

constexpr voffset_t PlaceOf(int field) {
  return static_cast<voffset_t>((2 + field) * static_cast<int>(sizeof(voffset_t)));
}

template <class T>
using TablesOf = Vector<Offset<T>>;

// A table whose fields are read with their numbers, and checked by VerifyFields of the derived
// type.
template <class Derived>
struct TableOf : Table {
  bool Verify(Verifier& verifier) const {
    return VerifyTableStart(verifier) &&
           static_cast<const Derived*>(this)->VerifyFields(verifier) && verifier.EndTable();
  }
  template <class T>
  T Number(int field, T absent = {}) const {
    return GetField<T>(PlaceOf(field), absent);
  }
  template <class T>
  const T* Find(int field) const {
    return GetPointer<const T*>(PlaceOf(field));
  }
  std::string Text(int field) const {
    const auto* const text = Find<String>(field);
    return text == nullptr ? std::string() : text->str();
  }
  template <class T>
  bool VerifyNumber(Verifier& verifier, int field) const {
    return VerifyField<T>(verifier, PlaceOf(field), sizeof(T));
  }
  bool VerifyText(Verifier& verifier, int field) const {
    return VerifyOffset(verifier, PlaceOf(field)) && verifier.VerifyString(Find<String>(field));
  }
  template <class T>
  bool VerifyNumbers(Verifier& verifier, int field) const {
    return VerifyOffset(verifier, PlaceOf(field)) && verifier.VerifyVector(Find<Vector<T>>(field));
  }
  template <class T>
  bool VerifyTables(Verifier& verifier, int field) const {
    return VerifyOffset(verifier, PlaceOf(field)) &&
           verifier.VerifyVector(Find<TablesOf<T>>(field)) &&
           verifier.VerifyVectorOfTables(Find<TablesOf<T>>(field));
  }
  template <class T>
  bool VerifyPart(Verifier& verifier, int field) const {
    return VerifyOffset(verifier, PlaceOf(field)) && verifier.VerifyTable(Find<T>(field));
  }
};

struct TensorTable : TableOf<TensorTable> {
  enum Field { kName, kDocString, kDims, kType, kElements, kStrings, kExternalOffset };
  bool VerifyFields(Verifier& v) const {
    return VerifyText(v, kName) && VerifyNumbers<int64_t>(v, kDims) &&
           VerifyNumber<int32_t>(v, kType) && VerifyNumbers<uint8_t>(v, kElements) &&
           VerifyNumber<int64_t>(v, kExternalOffset);
  }
};

struct ModuleTable : TableOf<ModuleTable> {
  enum Field { kTrained, kFrozen, kIsNominal, kHasExternalData };
  bool VerifyFields(Verifier& v) const {
    return VerifyTables<TensorTable>(v, kTrained) && VerifyTables<TensorTable>(v, kFrozen) &&
           VerifyNumber<uint8_t>(v, kIsNominal) && VerifyNumber<uint8_t>(v, kHasExternalData);
  }
};

struct MomentsTable : TableOf<MomentsTable> {
  enum Field { kParameter, kMoments };
  bool VerifyFields(Verifier& v) const {
    return VerifyText(v, kParameter) && VerifyTables<TensorTable>(v, kMoments);
  }
};

struct GroupTable : TableOf<GroupTable> {
  enum Field { kName, kStep, kInitialLearningRate, kStates };
  bool VerifyFields(Verifier& v) const {
    return VerifyText(v, kName) && VerifyNumber<int64_t>(v, kStep) &&
           VerifyNumber<float>(v, kInitialLearningRate) && VerifyTables<MomentsTable>(v, kStates);
  }
};

template <class T>
struct NumberTable : TableOf<NumberTable<T>> {
  enum Field { kName, kValue };
  bool VerifyFields(Verifier& v) const {
    return this->VerifyText(v, kName) && this->template VerifyNumber<T>(v, kValue);
  }
};

struct TextTable : TableOf<TextTable> {
  enum Field { kName, kValue };
  bool VerifyFields(Verifier& v) const { return VerifyText(v, kName) && VerifyText(v, kValue); }
};

struct PropertiesTable : TableOf<PropertiesTable> {
  enum Field { kIntegers, kFloats, kTexts };
  bool VerifyFields(Verifier& v) const {
    return VerifyTables<NumberTable<int64_t>>(v, kIntegers) &&
           VerifyTables<NumberTable<float>>(v, kFloats) && VerifyTables<TextTable>(v, kTexts);
  }
};

struct CheckpointTable : TableOf<CheckpointTable> {
  enum Field { kVersion, kModule, kGroups, kProperties };
  bool VerifyFields(Verifier& v) const {
    return VerifyNumber<int32_t>(v, kVersion) && VerifyPart<ModuleTable>(v, kModule) &&
           VerifyTables<GroupTable>(v, kGroups) && VerifyPart<PropertiesTable>(v, kProperties);
  }
};

// Calls f(table) for each of the tables in `field`, until one fails.
template <class T, class Parent, class F>
Status ForEach(const Parent& parent, int field, F&& f) {
  const auto* const tables = parent.template Find<TablesOf<T>>(field);
  if (tables == nullptr) return OkStatus();
  for (const T* const table : *tables) TENON_RETURN_IF_ERROR(f(*table));
  return OkStatus();
}

class Reader {
 public:
  // `external` has the elements that are not in the file itself.
  explicit Reader(std::optional<std::span<const std::byte>> external) : external_(external) {}

  Result<Checkpoint> Read(const CheckpointTable& table) {
    Checkpoint read;
    if (const auto* const module = table.Find<ModuleTable>(CheckpointTable::kModule)) {
      read.is_nominal = module->Number<uint8_t>(ModuleTable::kIsNominal) != 0;
      read.has_external_data = module->Number<uint8_t>(ModuleTable::kHasExternalData) != 0;
      is_nominal_ = read.is_nominal;
      TENON_RETURN_IF_ERROR(ReadParameters(*module, true, read));
      TENON_RETURN_IF_ERROR(ReadParameters(*module, false, read));
      is_nominal_ = false;
    }
    TENON_RETURN_IF_ERROR(ForEach<GroupTable>(
        table, CheckpointTable::kGroups,
        [&](const GroupTable& group) { return ReadGroup(group, read.optimizer); }));
    if (const auto* const bag = table.Find<PropertiesTable>(CheckpointTable::kProperties)) {
      ReadProperties(*bag, read.properties);
    }
    return read;
  }

 private:
  Status ReadParameters(const ModuleTable& module, bool is_trained, Checkpoint& read) {
    const int field = is_trained ? ModuleTable::kTrained : ModuleTable::kFrozen;
    return ForEach<TensorTable>(module, field, [&](const TensorTable& table) -> Status {
      std::string name = table.Text(TensorTable::kName);
      TENON_ASSIGN_OR_RETURN(Tensor value, ReadTensor(table));
      const auto [place, is_new] =
          read.parameters.try_emplace(std::move(name), Parameter{std::move(value), is_trained});
      if (!is_new) return Fail("the checkpoint has the parameter '{}' twice", place->first);
      return OkStatus();
    });
  }

  Status ReadGroup(const GroupTable& group, OptimizerState& state) {
    const std::string name = group.Text(GroupTable::kName);
    if (name != kOptimizerGroup) {
      return Fail("the checkpoint has the optimizer group '{}'; only '{}' is known", name,
                  kOptimizerGroup);
    }
    state.step = group.Number<int64_t>(GroupTable::kStep);
    state.initial_learning_rate = group.Number<float>(GroupTable::kInitialLearningRate);
    state.learning_rate = state.initial_learning_rate;
    return ForEach<MomentsTable>(group, GroupTable::kStates, [&](const MomentsTable& moments) {
      auto& of_parameter = state.moments[moments.Text(MomentsTable::kParameter)];
      return ForEach<TensorTable>(
          moments, MomentsTable::kMoments, [&](const TensorTable& table) -> Status {
            TENON_ASSIGN_OR_RETURN(Tensor moment, ReadTensor(table));
            of_parameter.insert_or_assign(table.Text(TensorTable::kName), std::move(moment));
            return OkStatus();
          });
    });
  }

  static void ReadProperties(const PropertiesTable& bag,
                             std::map<std::string, Property, std::less<>>& properties) {
    const auto add = [&]<class T>(const auto* tables, T value_of) {
      if (tables == nullptr) return;
      for (const auto* const table : *tables) {
        properties.insert_or_assign(table->Text(0), value_of(*table));
      }
    };
    add(bag.Find<TablesOf<NumberTable<int64_t>>>(PropertiesTable::kIntegers),
        [](const auto& table) { return table.template Number<int64_t>(1); });
    add(bag.Find<TablesOf<NumberTable<float>>>(PropertiesTable::kFloats),
        [](const auto& table) { return table.template Number<float>(1); });
    add(bag.Find<TablesOf<TextTable>>(PropertiesTable::kTexts),
        [](const auto& table) { return table.Text(1); });
  }

  Result<Tensor> ReadTensor(const TensorTable& table) {
    auto tensor = ReadElements(table);
    if (tensor.has_value()) return tensor;
    return tl::unexpected(std::move(tensor).error().WithContext(
        Format("tensor '{}' of the checkpoint", table.Text(TensorTable::kName))));
  }

  Result<Tensor> ReadElements(const TensorTable& table) {
    if (is_nominal_) return Tensor();
    Shape shape;
    if (const auto* const dims = table.Find<Vector<int64_t>>(TensorTable::kDims)) {
      std::vector<int64_t> sizes(dims->size());  // the list need not be aligned for them
      std::copy_n(dims->Data(), sizes.size() * sizeof(int64_t),
                  reinterpret_cast<uint8_t*>(sizes.data()));
      shape.Assign(sizes);
    }
    const auto number = table.Number<int32_t>(TensorTable::kType);
    const auto type = static_cast<DataType>(number);
    if (!IsDataType(number) || type == DataType::kString) {
      return Fail("elements of type {} are not supported", number);
    }
    const auto* const elements = table.Find<Vector<uint8_t>>(TensorTable::kElements);
    const int64_t offset = table.Number<int64_t>(TensorTable::kExternalOffset, -1);
    TENON_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
    TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, count));
    std::span<const std::byte> source;
    if (offset >= 0) {
      if (!external_) return Fail("the elements are in another file");
      if (static_cast<uint64_t>(offset) > external_->size() ||
          bytes > external_->size() - static_cast<uint64_t>(offset)) {
        return Fail("its {} bytes at {} are beyond the end of the data file, which has {}", bytes,
                    offset, external_->size());
      }
      source = external_->subspan(static_cast<size_t>(offset), bytes);
    } else if (elements != nullptr) {
      source = std::as_bytes(std::span(elements->data(), elements->size()));
    }
    if (source.size() != bytes) {
      return Fail("expected {} bytes for {} {}, got {}", bytes, DataTypeName(type), shape,
                  source.size());
    }
    TENON_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
    if (bytes != 0) std::memcpy(tensor.raw(), source.data(), bytes);
    return tensor;
  }

  std::optional<std::span<const std::byte>> external_;
  bool is_nominal_ = false;
};

using Place = Offset<void>;

class Writer {
 public:
  explicit Writer(bool has_external_data) : has_external_data_(has_external_data) {}

  Status Write(const Checkpoint& checkpoint, bool with_optimizer_state) {
    const Place module = AddModule(checkpoint);
    const Place groups = with_optimizer_state ? AddGroups(checkpoint.optimizer) : Place();
    const Place properties = AddProperties(checkpoint.properties);
    if (is_full_) {
      return InvalidArgument("the checkpoint has 2 GiB or more, which needs external data");
    }
    const auto start = builder_.StartTable();
    AddNumber(CheckpointTable::kVersion, kNewestVersion, 0);
    AddPlace(CheckpointTable::kModule, module);
    AddPlace(CheckpointTable::kGroups, groups);
    AddPlace(CheckpointTable::kProperties, properties);
    builder_.Finish(Offset<CheckpointTable>(builder_.EndTable(start)), kIdentifier);
    return OkStatus();
  }

  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
  }
  // The content of the file of elements.
  std::span<const std::span<const std::byte>> external() const { return external_; }

 private:
  static constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max() - (1 << 20);

  Place AddModule(const Checkpoint& checkpoint) {
    std::vector<Place> trained, frozen;
    for (const auto& [name, parameter] : checkpoint.parameters) {
      const Place tensor =
          checkpoint.is_nominal ? AddNominal(name) : AddTensor(name, parameter.value);
      (parameter.is_trained ? trained : frozen).push_back(tensor);
    }
    const Place trained_place = AddList(trained), frozen_place = AddList(frozen);
    const auto start = builder_.StartTable();
    AddPlace(ModuleTable::kTrained, trained_place);
    AddPlace(ModuleTable::kFrozen, frozen_place);
    AddNumber(ModuleTable::kIsNominal, static_cast<uint8_t>(checkpoint.is_nominal), uint8_t{0});
    AddNumber(ModuleTable::kHasExternalData, static_cast<uint8_t>(has_external_data_), uint8_t{0});
    return Place(builder_.EndTable(start));
  }

  Place AddGroups(const OptimizerState& state) {
    std::vector<Place> states;
    for (const auto& [parameter, moments] : state.moments) {
      std::vector<Place> tensors;
      for (const auto& [name, moment] : moments) tensors.push_back(AddTensor(name, moment));
      states.push_back(AddEntry(parameter, AddList(tensors)));
    }
    const Place states_place = AddList(states), name = AddText(kOptimizerGroup);
    const auto start = builder_.StartTable();
    AddPlace(GroupTable::kName, name);
    AddNumber(GroupTable::kStep, state.step, int64_t{0});
    AddNumber(GroupTable::kInitialLearningRate, state.initial_learning_rate, 0.0f);
    AddPlace(GroupTable::kStates, states_place);
    return AddList({Place(builder_.EndTable(start))});
  }

  Place AddProperties(const std::map<std::string, Property, std::less<>>& properties) {
    if (properties.empty()) return {};
    std::vector<Place> integers, floats, texts;
    for (const auto& [name, property] : properties) {
      if (const auto* const text = std::get_if<std::string>(&property)) {
        texts.push_back(AddEntry(name, AddText(*text)));
        continue;
      }
      const Place name_place = AddText(name);
      const auto start = builder_.StartTable();
      AddPlace(TextTable::kName, name_place);
      if (const auto* const integer = std::get_if<int64_t>(&property)) {
        AddNumber(TextTable::kValue, *integer, int64_t{0});
      } else {
        AddNumber(TextTable::kValue, std::get<float>(property), 0.0f);
      }
      auto& list = std::holds_alternative<int64_t>(property) ? integers : floats;
      list.push_back(Place(builder_.EndTable(start)));
    }
    const Place integers_place = AddList(integers), floats_place = AddList(floats),
                texts_place = AddList(texts);
    const auto start = builder_.StartTable();
    AddPlace(PropertiesTable::kIntegers, integers_place);
    AddPlace(PropertiesTable::kFloats, floats_place);
    AddPlace(PropertiesTable::kTexts, texts_place);
    return Place(builder_.EndTable(start));
  }

  // A table of a name and what it has.
  Place AddEntry(std::string_view name, Place value) {
    const Place name_place = AddText(name);
    const auto start = builder_.StartTable();
    AddPlace(TextTable::kName, name_place);
    AddPlace(TextTable::kValue, value);
    return Place(builder_.EndTable(start));
  }

  Place AddTensor(std::string_view name, const Tensor& tensor) {
    const auto bytes =
        std::as_bytes(std::span(static_cast<const uint8_t*>(tensor.raw()), tensor.bytes()));
    int64_t external_offset = -1;
    Place elements;
    if (has_external_data_ && tensor.defined()) {
      external_offset = AppendExternal(bytes, tensor.type());
    } else if (tensor.defined() && HasRoom(bytes.size())) {
      elements =
          builder_.CreateVector(static_cast<const uint8_t*>(tensor.raw()), bytes.size()).Union();
    }
    const Place name_place = AddText(name);
    const Place dims = builder_.CreateVector(tensor.shape().data(), tensor.shape().rank()).Union();
    const auto start = builder_.StartTable();
    AddPlace(TensorTable::kName, name_place);
    AddPlace(TensorTable::kDims, dims);
    AddNumber(TensorTable::kType, static_cast<int32_t>(tensor.type()), 0);
    AddPlace(TensorTable::kElements, elements);
    AddNumber(TensorTable::kExternalOffset, external_offset, int64_t{-1});
    return Place(builder_.EndTable(start));
  }

  // A name alone. Other readers look at type and elements all the same.
  Place AddNominal(std::string_view name) {
    const Place name_place = AddText(name);
    const Place dims = builder_.CreateVector(std::vector<int64_t>{0}).Union();
    const Place elements = builder_.CreateVector(std::vector<uint8_t>()).Union();
    const auto start = builder_.StartTable();
    AddPlace(TensorTable::kName, name_place);
    AddPlace(TensorTable::kDims, dims);
    AddNumber(TensorTable::kType, static_cast<int32_t>(DataType::kFloat), 0);
    AddPlace(TensorTable::kElements, elements);
    return Place(builder_.EndTable(start));
  }

  // The position of the elements in the file.
  int64_t AppendExternal(std::span<const std::byte> bytes, DataType type) {
    static constexpr std::byte kZeros[8] = {};
    const size_t alignment = DataTypeBits(type) == 64 ? 8 : 4;
    if (const size_t over = external_size_ % alignment; over != 0) {
      external_.push_back(std::span(kZeros).first(alignment - over));
      external_size_ += alignment - over;
    }
    const size_t offset = external_size_;
    external_.push_back(bytes);
    external_size_ += bytes.size();
    return static_cast<int64_t>(offset);
  }

  bool HasRoom(size_t bytes) {
    is_full_ = is_full_ || bytes > kMostBytes || builder_.GetSize() > kMostBytes - bytes;
    return !is_full_;
  }
  Place AddText(std::string_view text) {
    return HasRoom(text.size()) ? builder_.CreateString(text.data(), text.size()).Union() : Place();
  }
  Place AddList(const std::vector<Place>& places) {
    return is_full_ || places.empty() ? Place() : builder_.CreateVector(places).Union();
  }
  void AddPlace(int field, Place place) {
    if (!place.IsNull()) builder_.AddOffset(PlaceOf(field), place);
  }
  template <class T>
  void AddNumber(int field, T value, T absent) {
    builder_.AddElement(PlaceOf(field), value, absent);
  }

  bool has_external_data_;
  FlatBufferBuilder builder_;
  bool is_full_ = false;
  std::vector<std::span<const std::byte>> external_;
  size_t external_size_ = 0;
};

std::string ExternalPath(const std::string& path) { return path + ".data"; }

Result<const CheckpointTable*> RootOf(std::span<const std::byte> bytes) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  constexpr size_t kLeastBytes = 8;  // the root's position and the identifier
  if (bytes.size() < kLeastBytes || !flatbuffers::BufferHasIdentifier(data, kIdentifier)) {
    return Fail("these {} bytes are no checkpoint: they have no identifier {}", bytes.size(),
                kIdentifier);
  }
  Verifier verifier(data, bytes.size());
  if (!verifier.VerifyBuffer<CheckpointTable>(kIdentifier)) {
    return Fail("the checkpoint is damaged: it refers to bytes outside the file");
  }
  const auto* const table = flatbuffers::GetRoot<CheckpointTable>(data);
  const auto version = table->Number<int32_t>(CheckpointTable::kVersion);
  if (version < 1 || version > kNewestVersion) {
    return Fail("the checkpoint has version {}; 1 and 2 are known", version);
  }
  return table;
}

bool HasExternalData(const CheckpointTable& table) {
  const auto* const module = table.Find<ModuleTable>(CheckpointTable::kModule);
  return module != nullptr && module->Number<uint8_t>(ModuleTable::kHasExternalData) != 0;
}

}  // namespace

Result<Checkpoint> ReadCheckpoint(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  TENON_ASSIGN_OR_RETURN(const CheckpointTable* const table, RootOf(file.bytes()));
  if (!HasExternalData(*table)) return Reader(std::nullopt).Read(*table);
  TENON_ASSIGN_OR_RETURN(const MappedFile external, MappedFile::Open(ExternalPath(path)));
  return Reader(external.bytes()).Read(*table);
}

Result<Checkpoint> ReadCheckpoint(std::span<const std::byte> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(int64_t) != 0) {
    const std::vector<std::byte> aligned(bytes.begin(), bytes.end());
    return ReadCheckpoint(std::span<const std::byte>(aligned));
  }
  TENON_ASSIGN_OR_RETURN(const CheckpointTable* const table, RootOf(bytes));
  return Reader(std::nullopt).Read(*table);
}

Status WriteCheckpoint(const Checkpoint& checkpoint, const std::string& path,
                       bool with_optimizer_state) {
  Writer writer(checkpoint.has_external_data);
  TENON_RETURN_IF_ERROR(writer.Write(checkpoint, with_optimizer_state));
  if (checkpoint.has_external_data) {
    TENON_RETURN_IF_ERROR(WriteFileAtomically(ExternalPath(path), writer.external()));
  }
  const std::span<const std::byte> parts[] = {writer.bytes()};
  return WriteFileAtomically(path, parts);
}

}  // namespace tenon
