// String tensors: filling and reading them.
#include "capi/value/string_tensor.h"

#include <span>
#include <string>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

Status CheckStrings(const OrtValue* value) {
  TENON_RETURN_IF_NULL(value);
  const Value& object = *Unwrap(value);
  if (!object.is_tensor()) {
    return InvalidArgument("expected a string tensor, got a {}", ValueKindName(object.kind()));
  }
  if (object.tensor().type() != DataType::kString) {
    return InvalidArgument("expected a string tensor, got a {} tensor",
                           DataTypeName(object.tensor().type()));
  }
  return OkStatus();
}

// Of a sparse tensor, those that it stores.
Result<std::span<const std::string>> StringsOf(const OrtValue* value) {
  TENON_RETURN_IF_NULL(value);
  if (Unwrap(value)->kind() == Value::Kind::kSparseTensor) {
    const Tensor& stored = Unwrap(value)->sparse().values;
    if (stored.type() == DataType::kString) return stored.values<std::string>();
  }
  TENON_RETURN_IF_ERROR(CheckStrings(value));
  return Unwrap(value)->tensor().values<std::string>();
}

Result<std::span<std::string>> StringsOf(OrtValue* value) {
  TENON_RETURN_IF_ERROR(CheckStrings(value));
  Tensor& tensor = Unwrap(value)->tensor();
  return std::span(tensor.data<std::string>(), static_cast<size_t>(tensor.size()));
}

Status CheckRange(size_t first, size_t count, size_t size) {
  if (first <= size && count <= size - first) return OkStatus();
  return InvalidArgument("expected a range within {} strings, got {} from {} on", size, count,
                         first);
}

}  // namespace

OrtStatus* FillStringTensor(OrtValue* value, const char* const* s, size_t s_len) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(s, s_len);
    TENON_ASSIGN_OR_RETURN(const std::span<std::string> strings, StringsOf(value));
    if (s_len != strings.size()) {
      return InvalidArgument("expected {} strings, got {}", strings.size(), s_len);
    }
    for (size_t i = 0; i < s_len; ++i) {
      if (s[i] == nullptr) return InvalidArgument("s[{}] must not be null", i);
    }
    for (size_t i = 0; i < s_len; ++i) strings[i] = s[i];
    return OkStatus();
  });
}

OrtStatus* FillStringTensorElement(OrtValue* value, const char* s, size_t index) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(s);
    TENON_ASSIGN_OR_RETURN(const std::span<std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckIndex(index, strings.size(), "strings"));
    strings[index] = s;
    return OkStatus();
  });
}

OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index,
                                               size_t length_in_bytes, char** buffer) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(buffer);
    TENON_ASSIGN_OR_RETURN(const std::span<std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckIndex(index, strings.size(), "strings"));
    strings[index].resize(length_in_bytes);
    *buffer = strings[index].data();
    return OkStatus();
  });
}

OrtStatus* StringTensorSet(OrtValue* value, size_t first, const char* const* texts,
                           const size_t* sizes, size_t count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(texts, count);
    TENON_RETURN_IF_NULL_ARRAY(sizes, count);
    TENON_ASSIGN_OR_RETURN(const std::span<std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckRange(first, count, strings.size()));
    for (size_t i = 0; i < count; ++i) {
      if (texts[i] == nullptr && sizes[i] > 0) {
        return InvalidArgument("texts[{}] must not be null, as it has {} bytes", i, sizes[i]);
      }
    }
    for (size_t i = 0; i < count; ++i) strings[first + i].assign(texts[i], sizes[i]);
    return OkStatus();
  });
}

OrtStatus* StringTensorGet(const OrtValue* value, size_t first, const char** texts, size_t* sizes,
                           size_t count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(texts, count);
    TENON_RETURN_IF_NULL_ARRAY(sizes, count);
    TENON_ASSIGN_OR_RETURN(const std::span<const std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckRange(first, count, strings.size()));
    for (size_t i = 0; i < count; ++i) {
      texts[i] = strings[first + i].data();
      sizes[i] = strings[first + i].size();
    }
    return OkStatus();
  });
}

OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* len) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(len);
    TENON_ASSIGN_OR_RETURN(const std::span<const std::string> strings, StringsOf(value));
    *len = 0;
    for (const std::string& string : strings) *len += string.size();
    return OkStatus();
  });
}

OrtStatus* GetStringTensorContent(const OrtValue* value, void* s, size_t s_len, size_t* offsets,
                                  size_t offsets_len) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(s, s_len);
    TENON_RETURN_IF_NULL_ARRAY(offsets, offsets_len);
    TENON_ASSIGN_OR_RETURN(const std::span<const std::string> strings, StringsOf(value));
    if (offsets_len != strings.size()) {
      return InvalidArgument("expected room for {} offsets, got {}", strings.size(), offsets_len);
    }
    size_t needed = 0;
    for (const std::string& string : strings) needed += string.size();
    if (s_len < needed) {
      return InvalidArgument("the strings have {} bytes, there is room for {}", needed, s_len);
    }
    size_t offset = 0;
    for (size_t i = 0; i < strings.size(); ++i) {
      offsets[i] = offset;
      offset += strings[i].copy(static_cast<char*>(s) + offset, strings[i].size());
    }
    return OkStatus();
  });
}

OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const std::span<const std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckIndex(index, strings.size(), "strings"));
    *out = strings[index].size();
    return OkStatus();
  });
}

OrtStatus* GetStringTensorElement(const OrtValue* value, size_t s_len, size_t index,
                                  void* s) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(s, s_len);
    TENON_ASSIGN_OR_RETURN(const std::span<const std::string> strings, StringsOf(value));
    TENON_RETURN_IF_ERROR(CheckIndex(index, strings.size(), "strings"));
    const std::string& string = strings[index];
    if (s_len < string.size()) {
      return InvalidArgument("string {} has {} bytes, there is room for {}", index, string.size(),
                             s_len);
    }
    string.copy(static_cast<char*>(s), string.size());
    return OkStatus();
  });
}

}  // namespace tenon::capi
