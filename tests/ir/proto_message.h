// Serialized ONNX messages for tests, right or wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/onnx_fields.h"
#include "ir/onnx_reader.h"

namespace tenon {

// A message, built field by field in any order and as often as one likes.
class Message {
 public:
  template <class Field>
  Message& Bytes(Field field, std::string_view value) {
    Writer().add_bytes(static_cast<uint32_t>(field), value.data(), value.size());
    return *this;
  }
  template <class Field>
  Message& Add(Field field, const Message& value) {
    return Bytes(field, value.bytes_);
  }
  template <class Field>
  Message& Int(Field field, int64_t value) {
    Writer().add_int64(static_cast<uint32_t>(field), value);
    return *this;
  }
  template <class Field>
  Message& Float(Field field, float value) {
    Writer().add_float(static_cast<uint32_t>(field), value);
    return *this;
  }
  template <class Field>
  Message& Ints(Field field, const std::vector<int64_t>& values) {
    Writer().add_packed_int64(static_cast<uint32_t>(field), values.begin(), values.end());
    return *this;
  }
  template <class Field>
  Message& Floats(Field field, const std::vector<float>& values) {
    Writer().add_packed_float(static_cast<uint32_t>(field), values.begin(), values.end());
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  protozero::pbf_writer Writer() { return protozero::pbf_writer(bytes_); }
  std::string bytes_;
};

using Names = std::initializer_list<std::string_view>;

Message NodeMessage(std::string_view op_type, Names inputs, Names outputs,
                    std::initializer_list<Message> attributes = {});
Message IntAttribute(std::string_view name, int64_t value);
Message GraphAttribute(std::string_view name, const Message& graph);
// A ValueInfoProto of a float tensor.
Message FloatValue(std::string_view name, const std::vector<int64_t>& dims);
// A TensorProto with raw_data.
Message RawTensor(std::string_view name, DataType type, const std::vector<int64_t>& dims,
                  std::string_view raw);
Message Entry(std::string_view key, std::string_view value);
Message Opset(std::string_view domain, int64_t version);
// IR version 10 with ai.onnx 21.
Message ModelMessage(const Message& graph);

// Reads without an owner, so tensors are copies.
Result<Model> Parse(const Message& model);
// The error of reading a model, or "" if it could be read.
std::string ErrorOf(const Message& model);
std::string ErrorOfGraph(const Message& graph);

}  // namespace tenon
