// A value on an edge of a graph at run time: a tensor, sequence, map, optional, sparse tensor or
// opaque value.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/check.h"
#include "tensor/tensor.h"

namespace tenon {

class Value;

// seq(T). Elements are shared between copies of the sequence, never changed in place once shared.
struct Sequence {
  DataType element_type = DataType::kUndefined;  // of tensor elements; kUndefined for maps
  std::vector<Value> elements;
};

// map(K, V) with tensor(V) values held as one rank-1 tensor: keys[i] maps to values[i].
struct Map {
  Tensor keys;    // int64 or string, rank 1
  Tensor values;  // rank 1, same length
};

// The meaning of a sparse tensor's indices.
enum class SparseFormat : uint8_t {
  kNone,   // there are no values yet
  kCoo,    // int64 linear indices [nnz] or coordinates [nnz, rank], sorted ascending, as in ONNX
  kCsr,    // of a matrix: int64 columns [nnz], and int64 starts of rows [rows + 1] among them
  kBlock,  // int32 coordinates [rank, blocks] of values [blocks, block rows, block columns]
};

// A sparse tensor; models only have kCoo.
struct SparseTensor {
  Tensor values;
  Tensor indices;
  Shape dense_shape;
  SparseFormat format = SparseFormat::kCoo;
  Tensor outer_indices = {};  // of kCsr: the starts of rows
};

// Bytes of a type that only the client knows, by its domain and name.
struct Opaque {
  std::string domain;
  std::string name;
  std::vector<std::byte> bytes;
};

struct Optional;

// Nothing, or one of the kinds above. Copies share their contents.
class Value {
 public:
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kMap, kOptional, kSparseTensor, kOpaque };

  // Defined in value.cpp: the compiler would take a tenth of a second for them in each file.
  Value() noexcept;
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  Value(Tensor tensor) noexcept;                         // NOLINT
  Value(std::shared_ptr<Sequence> sequence) noexcept;    // NOLINT
  Value(std::shared_ptr<Map> map) noexcept;              // NOLINT
  Value(std::shared_ptr<Optional> optional) noexcept;    // NOLINT
  Value(std::shared_ptr<SparseTensor> sparse) noexcept;  // NOLINT
  Value(std::shared_ptr<Opaque> opaque) noexcept;        // NOLINT

  Kind kind() const { return static_cast<Kind>(held_.index()); }
  bool has_value() const { return kind() != Kind::kNone; }
  bool is_tensor() const { return kind() == Kind::kTensor; }

  // The held object; the kind must match.
  Tensor& tensor() { return *Held<Tensor>(); }
  const Tensor& tensor() const { return *Held<Tensor>(); }
  Sequence& sequence() const { return **Held<std::shared_ptr<Sequence>>(); }
  Map& map() const { return **Held<std::shared_ptr<Map>>(); }
  Optional& optional() const { return **Held<std::shared_ptr<Optional>>(); }
  SparseTensor& sparse() const { return **Held<std::shared_ptr<SparseTensor>>(); }
  Opaque& opaque() const { return **Held<std::shared_ptr<Opaque>>(); }

  // Takes the sequence out of the value.
  std::shared_ptr<Sequence> TakeSequence();
  // Whether another value refers to the same memory or object, or may: borrowed memory counts.
  bool is_shared() const;

 private:
  template <class T>
  T* Held() {
    TENON_DCHECK(std::holds_alternative<T>(held_));
    return std::get_if<T>(&held_);
  }
  template <class T>
  const T* Held() const {
    TENON_DCHECK(std::holds_alternative<T>(held_));
    return std::get_if<T>(&held_);
  }

  std::variant<std::monostate, Tensor, std::shared_ptr<Sequence>, std::shared_ptr<Map>,
               std::shared_ptr<Optional>, std::shared_ptr<SparseTensor>, std::shared_ptr<Opaque>>
      held_;
};

// optional(T): `value` is kNone when the optional is empty.
struct Optional {
  Value value;
};

// "tensor", "sequence", ...
std::string_view ValueKindName(Value::Kind kind);

// The value with memory that lives as long as it has owners: itself, or a copy of a tensor that
// borrows its memory, such as one in a run's slab. Error: out of memory.
Result<Value> Retain(const Value& value);

// The value with tensors whose memory nothing else refers to: itself, or a copy if something else
// does. The caller of a session gets such values and may change them. Error: out of memory.
Result<Value> Detach(const Value& value);

}  // namespace tenon
