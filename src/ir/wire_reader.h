// Walks protobuf messages in memory: zero-copy, without recursion and without exceptions.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <protozero/types.hpp>
#include <string_view>

#include "base/status.h"

namespace tenon {

static_assert(std::endian::native == std::endian::little,
              "numbers in files are used where they lie, and files are little-endian");

// The error in the bytes of one file or buffer: the first error stops all readers that share this
// object.
class WireErrors {
 public:
  explicit WireErrors(const char* begin) : begin_(begin) {}

  bool failed() const { return !status_.ok(); }
  const Status& status() const { return status_; }
  // kInvalidProtobuf with the message's name and the offset of `at`.
  void Fail(std::string_view message_name, const char* at, std::string_view problem);

 private:
  const char* begin_;
  Status status_;
};

// The fields of one message, in the order of the file:
//
//   WireReader reader("NodeProto", bytes, errors);
//   while (reader.Next()) {
//     if (reader.field<NodeField>() == NodeField::kName) name = reader.Bytes();
//   }
//   TENON_RETURN_IF_ERROR(reader.status());
//
// A field whose value is not taken is skipped. A getter that meets another wire type than its own
// fails and returns nothing; the loop then ends at Next().
class WireReader {
 public:
  // `message_name`, `bytes` and `errors` must outlive the reader.
  WireReader(std::string_view message_name, std::string_view bytes, WireErrors& errors)
      : message_name_(message_name),
        position_(bytes.data()),
        end_(bytes.data() + bytes.size()),
        errors_(errors) {}
  WireReader(const WireReader&) = delete;
  WireReader& operator=(const WireReader&) = delete;

  // Moves to the next field. False at the end of the message and after an error.
  bool Next();
  // The field's number as E, the message's enum in ir/onnx_fields.h.
  template <class E>
  E field() const {
    return static_cast<E>(field_);
  }
  const Status& status() const { return errors_.status(); }

  // The value of a varint, fixed or length-delimited field.
  int64_t Int() { return static_cast<int64_t>(Unsigned()); }
  uint64_t Unsigned();
  float Float() { return Fixed<float>(protozero::pbf_wire_type::fixed32); }
  double Double() { return Fixed<double>(protozero::pbf_wire_type::fixed64); }
  std::string_view Bytes();

  // Calls sink(value) for each number of a repeated field, whether it is packed or not.
  template <class Sink>
  void Unsigneds(Sink sink);
  template <class Sink>
  void Ints(Sink sink) {
    Unsigneds([&](uint64_t value) { sink(static_cast<int64_t>(value)); });
  }
  template <class Sink>
  void Floats(Sink sink) {
    Fixeds<float>(protozero::pbf_wire_type::fixed32, sink);
  }
  template <class Sink>
  void Doubles(Sink sink) {
    Fixeds<double>(protozero::pbf_wire_type::fixed64, sink);
  }

  // The numbers of a packed list as they are stored in the message.
  std::string_view PackedFloats() { return Packed(sizeof(float)); }
  std::string_view PackedDoubles() { return Packed(sizeof(double)); }

  // Whether the field is length-delimited: a packed list, if numbers are expected.
  bool is_packed() const { return type_ == protozero::pbf_wire_type::length_delimited; }

 private:
  static constexpr uint16_t kLongKey = 256;

  void Fail(std::string_view problem) { errors_.Fail(message_name_, position_, problem); }
  // Whether the field is of `type`; fails if not.
  bool Take(protozero::pbf_wire_type type);
  uint64_t Varint() {
    // Most integers in models, and nearly all keys, have one byte.
    if (position_ != end_ && static_cast<signed char>(*position_) >= 0) {
      return static_cast<uint64_t>(*position_++);
    }
    return LongVarint();
  }
  uint64_t LongVarint();
  // Moves to the next field if it has the number and type of this one, whose value is taken.
  bool NextAlike() {
    if (position_ == end_ || static_cast<uint8_t>(*position_) != key_) return false;
    ++position_;
    return true;
  }
  std::string_view Raw(uint64_t size);
  void Skip();
  template <class T>
  T Fixed(protozero::pbf_wire_type type);
  // The bytes of a packed list of numbers of so many bytes.
  std::string_view Packed(size_t number_bytes);
  template <class T, class Sink>
  void Fixeds(protozero::pbf_wire_type type, Sink sink);

  std::string_view message_name_;
  const char* position_;
  const char* end_;
  WireErrors& errors_;
  uint32_t field_ = 0;
  uint16_t key_ = kLongKey;  // the key in the file, if it is one byte
  protozero::pbf_wire_type type_ = protozero::pbf_wire_type::unknown;
  bool pending_ = false;  // the field's value has not been taken
};

template <class T>
T WireReader::Fixed(protozero::pbf_wire_type type) {
  T value{};
  if (!Take(type)) return value;
  const std::string_view raw = Raw(sizeof(T));
  if (raw.size() == sizeof(T)) std::memcpy(&value, raw.data(), sizeof(T));
  return value;
}

template <class T, class Sink>
void WireReader::Fixeds(protozero::pbf_wire_type type, Sink sink) {
  if (!is_packed()) {
    T value = Fixed<T>(type);
    while (!errors_.failed()) {
      sink(value);
      if (!NextAlike()) return;
      value = Fixed<T>(type);
    }
    return;
  }
  const std::string_view packed = Packed(sizeof(T));
  for (size_t i = 0; i < packed.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, packed.data() + i, sizeof(T));
    sink(value);
  }
}

template <class Sink>
void WireReader::Unsigneds(Sink sink) {
  if (!is_packed()) {
    uint64_t value = Unsigned();
    while (!errors_.failed()) {
      sink(value);
      if (!NextAlike()) return;
      value = Varint();
    }
    return;
  }
  const std::string_view packed = Bytes();
  WireReader list(message_name_, packed, errors_);
  while (list.position_ != list.end_) {
    const uint64_t value = list.Varint();
    if (errors_.failed()) return;
    sink(value);
  }
}

}  // namespace tenon
