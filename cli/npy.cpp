#include "npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include "file.h"
#include "text.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr char kNativeOrder = std::endian::native == std::endian::little ? '<' : '>';

// The values of the Python dictionary in a header.
struct Header {
  char byte_order = '|';
  std::string descr;  // without byte order
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// The text after `'key':` in the dictionary.
std::string_view ValueOf(std::string_view dictionary, std::string_view key,
                         const std::string& name) {
  const size_t found = dictionary.find(Format("'{}':", key));
  if (found == dictionary.npos) Fail("{}: its .npy header has no '{}'", name, key);
  std::string_view value = dictionary.substr(found + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

std::vector<int64_t> ParseShape(std::string_view text, const std::string& name) {
  std::vector<int64_t> shape;
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == text.npos) Fail("{}: its .npy header has no shape", name);
  text = text.substr(1, end - 1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return shape;
    int64_t dim = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0) Fail("{}: its .npy header has no valid shape", name);
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(last - text.data()));
  }
}

Header ParseHeader(std::string_view dictionary, const std::string& name) {
  Header header;
  const std::string_view descr = ValueOf(dictionary, "descr", name);
  const size_t quote = descr.find('\'', 1);
  if (!descr.starts_with('\'') || quote == descr.npos || quote < 3) {
    Fail("{}: expected elements of one number type, got a structured type", name);
  }
  header.byte_order = descr[1];
  header.descr = std::string(descr.substr(2, quote - 2));
  header.fortran_order = ValueOf(dictionary, "fortran_order", name).starts_with("True");
  header.shape = ParseShape(ValueOf(dictionary, "shape", name), name);
  return header;
}

// Splits a file into the dictionary and the elements.
std::pair<std::string_view, std::span<const std::byte>> Split(std::span<const std::byte> bytes,
                                                              const std::string& name) {
  const std::string_view text = AsText(bytes);
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  const size_t prefix = bytes.size() > 6 && byte(6) == 1 ? 10 : 12;
  if (bytes.size() < prefix) Fail("{}: a cut-off .npy file", name);
  size_t length = byte(8) | byte(9) << 8;
  if (prefix == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (bytes.size() - prefix < length) Fail("{}: a cut-off .npy file", name);
  return {text.substr(prefix, length), bytes.subspan(prefix + length)};
}

void AppendUtf8(char32_t c, std::string& text) {
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18 & 0x7)), put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

// One element of NumPy's "S" (bytes) or "U" (UTF-32) types, which are padded with zeros.
std::string ReadString(std::span<const std::byte> bytes, bool is_unicode) {
  std::string text;
  if (!is_unicode) {
    text = AsText(bytes);
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    char32_t c = 0;
    std::memcpy(&c, bytes.data() + i, 4);
    if (c == 0) break;
    AppendUtf8(c, text);
  }
  return text;
}

// Bytes per element of "U7" or "S7"; 0 for other descriptions.
size_t StringBytes(const std::string& descr) {
  constexpr size_t kMost = 1 << 28;
  if (descr[0] != 'U' && descr[0] != 'S') return 0;
  size_t length = 0;
  std::from_chars(descr.data() + 1, descr.data() + descr.size(), length);
  return length > kMost ? 0 : length * (descr[0] == 'U' ? 4 : 1);
}

std::vector<std::byte> ToRowMajor(std::span<const std::byte> columns,
                                  const std::vector<int64_t>& shape, size_t item) {
  std::vector<std::byte> rows(columns.size());
  std::vector<int64_t> index(shape.size());
  std::vector<size_t> strides(shape.size());  // of the column-major source, in bytes
  size_t stride = item;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= static_cast<size_t>(shape[axis]);
  }
  size_t source = 0;
  for (size_t target = 0; target < rows.size(); target += item) {
    std::memcpy(rows.data() + target, columns.data() + source, item);
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * static_cast<size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return rows;
}

void SwapBytes(std::vector<std::byte>& bytes, size_t item) {
  for (size_t i = 0; i + item <= bytes.size(); i += item) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(i),
                 bytes.begin() + static_cast<ptrdiff_t>(i + item));
  }
}

}  // namespace

bool IsNpy(std::span<const std::byte> bytes) { return AsText(bytes).starts_with(kMagic); }

Array ReadNpy(std::span<const std::byte> bytes, const std::string& name) {
  if (!IsNpy(bytes)) Fail("{}: not a .npy file", name);
  const auto [dictionary, data] = Split(bytes, name);
  const Header header = ParseHeader(dictionary, name);
  const ElementType* const type = FindElementType(header.descr);
  const size_t string_bytes = type ? 0 : StringBytes(header.descr);
  const size_t item = type ? type->bytes : string_bytes;
  if (item == 0) {
    Fail("{}: no element type of ONNX is NumPy's '{}{}'", name, header.byte_order, header.descr);
  }
  const size_t count = ElementCount(header.shape);
  if (data.size() / item < count) {
    Fail("{}: expected {} elements for shape {}, got {}", name, count, ShapeText(header.shape),
         data.size() / item);
  }
  std::vector<std::byte> elements(data.begin(),
                                  data.begin() + static_cast<ptrdiff_t>(count * item));
  if (header.fortran_order && count > 0) elements = ToRowMajor(elements, header.shape, item);
  const bool is_unicode = header.descr[0] == 'U';
  const bool is_complex = header.descr[0] == 'c';
  if (header.byte_order != '|' && header.byte_order != '=' && header.byte_order != kNativeOrder) {
    SwapBytes(elements, is_unicode ? 4 : is_complex ? item / 2 : item);
  }
  if (type) return {type->id, header.shape, std::move(elements), {}};

  Array array{ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, header.shape, {}, {}};
  for (size_t i = 0; i < count; ++i) {
    array.strings.push_back(ReadString({elements.data() + i * item, item}, is_unicode));
  }
  return array;
}

std::vector<std::byte> WriteNpy(const Array& array) {
  const ElementType& type = ElementTypeOf(array.type);
  std::string descr;
  std::string_view elements = AsText(array.bytes);
  std::string padded;
  if (array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
    size_t longest = 1;
    for (const std::string& text : array.strings) longest = std::max(longest, text.size());
    for (const std::string& text : array.strings) (padded += text).append(longest - text.size(), 0);
    descr = Format("|S{}", longest);
    elements = padded;
  } else if (type.descr == nullptr) {
    Fail(".npy files cannot hold elements of type {}", type.name);
  } else {
    descr = Format("{}{}", type.bytes == 1 ? '|' : kNativeOrder, type.descr);
  }
  std::string dims;
  for (const int64_t dim : array.shape) dims += Format("{}, ", dim);
  std::string header = Format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr,
                              dims.empty() ? dims : dims.substr(0, dims.size() - 1));
  // Magic, version and length take 10 bytes; the elements start at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string file(kMagic);
  file += {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  file += header;
  file += elements;
  const std::span<const std::byte> bytes = AsBytes(file);
  return {bytes.begin(), bytes.end()};
}

}  // namespace tenon::cli
