// A dimension of a shape that may be unknown: a number, a symbol, or arithmetic with them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_pool.h"
#include "base/text.h"
#include "tensor/shape.h"

namespace tenon {

// Immutable; copies are cheap. Arithmetic on numbers costs what it costs on int64_t and allocates
// nothing. Results that overflow int64_t become Unknown(), which no number equals.
class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  // A named size, as in ONNX's dim_param: equal names are equal sizes within one model.
  static Dim Symbol(std::string name);
  // A size about which nothing is known. It equals nothing, not even itself.
  static Dim Unknown();

  bool is_number() const { return form_ == nullptr; }
  bool is_unknown() const;
  // The number; is_number() must hold.
  int64_t value() const { return value_; }
  std::optional<int64_t> number() const {
    return is_number() ? std::optional<int64_t>(value_) : std::nullopt;
  }
  // The name if this is exactly one named symbol, else "".
  std::string_view symbol_name() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  // Rounded down. Exact symbolic division where it is provably exact, e.g. (2*n) / 2 = n.
  // Division by zero is Unknown().
  friend Dim FloorDiv(const Dim& a, const Dim& b);
  friend Dim CeilDiv(const Dim& a, const Dim& b);
  friend Dim Max(const Dim& a, const Dim& b);
  friend Dim Min(const Dim& a, const Dim& b);
  // The size of an axis that a and b are broadcast to, where one of them is 1 or they are equal.
  friend Dim Broadcast(const Dim& a, const Dim& b);
  // Provably equal for every value of the symbols.
  friend bool operator==(const Dim& a, const Dim& b);

  // The value after each symbol is replaced; Unknown() if a symbol has no value.
  Dim Substitute(const std::function<std::optional<int64_t>(std::string_view)>& value_of) const;

  // "4", "batch", "2*batch + 1", "?"
  std::string ToString() const;

 private:
  struct Form;
  explicit Dim(std::shared_ptr<const Form> form) : value_(-1), form_(std::move(form)) {}
  static Dim FromForm(Form form);
  static Form FormOf(const Dim& dim);
  static Dim Opaque(std::string_view operation, const Dim& a, const Dim& b);
  static Dim Commutative(std::string_view operation, const Dim& a, const Dim& b);
  bool IsAtMost(const Dim& other) const;

  int64_t value_;
  std::shared_ptr<const Form> form_;
};

Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim FloorDiv(const Dim& a, const Dim& b);
Dim CeilDiv(const Dim& a, const Dim& b);
Dim Max(const Dim& a, const Dim& b);
Dim Min(const Dim& a, const Dim& b);
Dim Broadcast(const Dim& a, const Dim& b);
bool operator==(const Dim& a, const Dim& b);

// Pooled, so that shapes that a run computes take no memory from the heap.
using Dims = PooledVector<Dim>;

// A shape of known rank whose dimensions may be symbols.
class SymbolicShape {
 public:
  SymbolicShape() = default;
  SymbolicShape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit SymbolicShape(Dims dims) : dims_(std::move(dims)) {}
  SymbolicShape(const Shape& shape) : dims_(shape.begin(), shape.end()) {}  // NOLINT

  size_t rank() const { return dims_.size(); }
  const Dim& operator[](size_t axis) const { return dims_[axis]; }
  Dim& operator[](size_t axis) { return dims_[axis]; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void Append(Dim dim) { dims_.push_back(std::move(dim)); }
  const Dims& dims() const { return dims_; }
  // Product of the dimensions [first, last), 1 if there are none.
  Dim Product(size_t first, size_t last) const;
  Dim NumElements() const { return Product(0, rank()); }

  // All dimensions as numbers, or nothing if one is not a number.
  std::optional<Shape> ToShape() const;
  bool operator==(const SymbolicShape& other) const;
  // "[batch, 3, 224]"
  std::string ToString() const;

 private:
  Dims dims_;
};

}  // namespace tenon

template <>
struct fmt::formatter<tenon::Dim> : tenon::ToStringFormatter {};
template <>
struct fmt::formatter<tenon::SymbolicShape> : tenon::ToStringFormatter {};
