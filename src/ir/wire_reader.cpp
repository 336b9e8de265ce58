#include "ir/wire_reader.h"

namespace tenon {
namespace {

using protozero::pbf_wire_type;

constexpr uint64_t kMaxField = (uint64_t{1} << 29) - 1;

std::string_view WireTypeName(pbf_wire_type type) {
  switch (type) {
    case pbf_wire_type::varint:
      return "an integer";
    case pbf_wire_type::fixed32:
      return "a 32-bit number";
    case pbf_wire_type::fixed64:
      return "a 64-bit number";
    case pbf_wire_type::length_delimited:
      return "bytes";
    default:
      return "an unknown wire type";
  }
}

}  // namespace

void WireErrors::Fail(std::string_view message_name, const char* at, std::string_view problem) {
  if (failed()) return;
  status_ = InvalidProtobuf("{} at byte {}: {}", message_name, at - begin_, problem);
}

bool WireReader::Next() {
  if (pending_) Skip();
  if (errors_.failed() || position_ == end_) return false;
  const uint64_t key = Varint();
  if (errors_.failed()) return false;
  type_ = static_cast<pbf_wire_type>(key & 7);
  if (key >> 3 == 0 || key >> 3 > kMaxField) {
    Fail(Format("no field has the number {}", key >> 3));
    return false;
  }
  field_ = static_cast<uint32_t>(key >> 3);
  key_ = key < 0x80 ? static_cast<uint16_t>(key) : kLongKey;
  pending_ = true;
  return true;
}

bool WireReader::Take(pbf_wire_type type) {
  pending_ = false;
  if (errors_.failed()) return false;
  if (type_ == type) return true;
  Fail(Format("expected {} in field {}, got {}", WireTypeName(type), field_, WireTypeName(type_)));
  return false;
}

uint64_t WireReader::LongVarint() {
  uint64_t value = 0;
  const char* at = position_;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at == end_) {
      Fail("the data ends inside a number");
      return 0;
    }
    const auto byte = static_cast<uint8_t>(*at++);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      position_ = at;
      return value;
    }
  }
  Fail("an integer has more than 64 bits");
  return 0;
}

std::string_view WireReader::Packed(size_t number_bytes) {
  const std::string_view packed = Bytes();
  if (packed.size() % number_bytes == 0) return packed;
  Fail("a packed list ends inside a number");
  return {};
}

std::string_view WireReader::Raw(uint64_t size) {
  const auto left = static_cast<uint64_t>(end_ - position_);
  if (size > left) {
    Fail(Format("field {} has {} bytes, but only {} are left", field_, size, left));
    return {};
  }
  const std::string_view raw(position_, size);
  position_ += size;
  return raw;
}

uint64_t WireReader::Unsigned() { return Take(pbf_wire_type::varint) ? Varint() : 0; }

std::string_view WireReader::Bytes() {
  if (!Take(pbf_wire_type::length_delimited)) return {};
  const uint64_t size = Varint();
  return errors_.failed() ? std::string_view() : Raw(size);
}

void WireReader::Skip() {
  pending_ = false;
  switch (type_) {
    case pbf_wire_type::varint:
      Varint();
      return;
    case pbf_wire_type::fixed32:
      Raw(sizeof(uint32_t));
      return;
    case pbf_wire_type::fixed64:
      Raw(sizeof(uint64_t));
      return;
    case pbf_wire_type::length_delimited:
      Raw(Varint());
      return;
    default:
      Fail(Format("field {} has {}", field_, WireTypeName(type_)));
  }
}

}  // namespace tenon
