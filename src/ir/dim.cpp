#include "ir/dim.h"

#include <algorithm>
#include <map>

namespace tenon {

// A polynomial: monomial -> coefficient. A monomial is the sorted list of its factors, each a
// symbol or the text of an operation that has no polynomial form, such as "floor(n/2)". The empty
// monomial is the constant term. An unknown size has no terms at all and `unknown` set.
struct Dim::Form {
  using Monomial = std::vector<std::string>;
  std::map<Monomial, int64_t> terms;
  bool unknown = false;
  bool is_symbol = false;
};

namespace {

// Expressions with more terms than this are given up.
constexpr size_t kMostTerms = 32;
constexpr size_t kLongestAtom = 256;

bool MulOverflows(int64_t a, int64_t b, int64_t* product) {
  return __builtin_mul_overflow(a, b, product);
}
bool AddOverflows(int64_t a, int64_t b, int64_t* sum) { return __builtin_add_overflow(a, b, sum); }

int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

// INT64_MIN / -1 has no value.
bool Divisible(int64_t a, int64_t b) { return b != 0 && !(a == INT64_MIN && b == -1); }

}  // namespace

Dim Dim::Symbol(std::string name) {
  Form form;
  form.terms[{std::move(name)}] = 1;
  form.is_symbol = true;
  return Dim(std::make_shared<const Form>(std::move(form)));
}

Dim Dim::Unknown() {
  static const auto* const unknown = new std::shared_ptr<const Form>([] {
    Form form;
    form.unknown = true;
    return std::make_shared<const Form>(std::move(form));
  }());
  return Dim(*unknown);
}

bool Dim::is_unknown() const { return form_ && form_->unknown; }

std::string_view Dim::symbol_name() const {
  return form_ && form_->is_symbol ? std::string_view(form_->terms.begin()->first[0])
                                   : std::string_view();
}

Dim Dim::FromForm(Form form) {
  if (form.unknown || form.terms.size() > kMostTerms) return Unknown();
  std::erase_if(form.terms, [](const auto& term) { return term.second == 0; });
  if (form.terms.empty()) return Dim(0);
  const auto& [monomial, coefficient] = *form.terms.begin();
  if (form.terms.size() == 1 && monomial.empty()) return Dim(coefficient);
  form.is_symbol = form.terms.size() == 1 && monomial.size() == 1 && coefficient == 1 &&
                   monomial[0].find('(') == std::string::npos;
  return Dim(std::make_shared<const Form>(std::move(form)));
}

Dim::Form Dim::FormOf(const Dim& dim) {
  if (!dim.is_number()) return *dim.form_;
  Form form;
  if (dim.value_ != 0) form.terms[{}] = dim.value_;
  return form;
}

// An atom that represents an operation without polynomial form.
Dim Dim::Opaque(std::string_view operation, const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown()) return Unknown();
  std::string atom = Format("{}({}, {})", operation, a, b);
  if (atom.size() > kLongestAtom) return Unknown();
  Form form;
  form.terms[{std::move(atom)}] = 1;
  return FromForm(std::move(form));
}

// The same for operations whose operands may be swapped: equal texts for equal results.
Dim Dim::Commutative(std::string_view operation, const Dim& a, const Dim& b) {
  const bool in_order = a.is_number() || (!b.is_number() && a.ToString() <= b.ToString());
  return in_order ? Opaque(operation, a, b) : Opaque(operation, b, a);
}

// Whether this is min(k, other) with a number k > 0: a range of `other` elements cut off at k.
bool Dim::IsAtMost(const Dim& other) const {
  const std::string text = ToString();
  const std::string end = Format(", {})", other);
  constexpr std::string_view kStart = "min(";
  if (!text.starts_with(kStart) || text.size() <= kStart.size() + end.size()) return false;
  const auto number =
      std::string_view(text).substr(kStart.size(), text.size() - kStart.size() - end.size());
  return text.ends_with(end) && number[0] != '0' &&
         number.find_first_not_of("0123456789") == std::string_view::npos;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) {
    int64_t sum;
    return AddOverflows(a.value_, b.value_, &sum) ? Dim::Unknown() : Dim(sum);
  }
  Dim::Form form = Dim::FormOf(a);
  const Dim::Form right = Dim::FormOf(b);
  if (form.unknown || right.unknown) return Dim::Unknown();
  for (const auto& [monomial, coefficient] : right.terms) {
    int64_t& into = form.terms[monomial];
    if (AddOverflows(into, coefficient, &into)) return Dim::Unknown();
  }
  return Dim::FromForm(std::move(form));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) {
    int64_t product;
    return MulOverflows(a.value_, b.value_, &product) ? Dim::Unknown() : Dim(product);
  }
  if ((a.is_number() && a.value_ == 0) || (b.is_number() && b.value_ == 0)) return Dim(0);
  const Dim::Form left = Dim::FormOf(a);
  const Dim::Form right = Dim::FormOf(b);
  if (left.unknown || right.unknown) return Dim::Unknown();
  Dim::Form form;
  for (const auto& [left_monomial, left_coefficient] : left.terms) {
    for (const auto& [right_monomial, right_coefficient] : right.terms) {
      Dim::Form::Monomial monomial = left_monomial;
      monomial.insert(monomial.end(), right_monomial.begin(), right_monomial.end());
      std::sort(monomial.begin(), monomial.end());
      int64_t coefficient;
      int64_t& into = form.terms[std::move(monomial)];
      if (MulOverflows(left_coefficient, right_coefficient, &coefficient) ||
          AddOverflows(into, coefficient, &into)) {
        return Dim::Unknown();
      }
    }
  }
  return Dim::FromForm(std::move(form));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_number() || b.is_number()) {
    return a.is_number() && b.is_number() && a.value_ == b.value_;
  }
  return !a.is_unknown() && !b.is_unknown() && a.form_->terms == b.form_->terms;
}

Dim FloorDiv(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) {
    return Divisible(a.value_, b.value_) ? Dim(FloorDivide(a.value_, b.value_)) : Dim::Unknown();
  }
  if (a.is_unknown() || b.is_unknown()) return Dim::Unknown();
  if (b.is_number() && b.value_ == 1) return a;
  if (a == b) return Dim(1);
  // Term by term where the divisor is one monomial that divides every term.
  const Dim::Form divisor = Dim::FormOf(b);
  if (divisor.terms.size() == 1) {
    const auto& [factors, scale] = *divisor.terms.begin();
    Dim::Form quotient;
    bool exact = true;
    for (const auto& [monomial, coefficient] : Dim::FormOf(a).terms) {
      Dim::Form::Monomial rest;
      std::set_difference(monomial.begin(), monomial.end(), factors.begin(), factors.end(),
                          std::back_inserter(rest));
      exact = exact && rest.size() + factors.size() == monomial.size() &&
              Divisible(coefficient, scale) && coefficient % scale == 0;
      if (!exact) break;
      quotient.terms[std::move(rest)] = coefficient / scale;
    }
    if (exact) return Dim::FromForm(std::move(quotient));
  }
  return Dim::Opaque("floordiv", a, b);
}

Dim CeilDiv(const Dim& a, const Dim& b) { return Dim(0) - FloorDiv(Dim(0) - a, b); }

Dim Max(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return Dim(std::max(a.value_, b.value_));
  if (a == b) return a;
  return Dim::Commutative("max", a, b);
}

Dim Min(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return Dim(std::min(a.value_, b.value_));
  if (a == b) return a;
  return Dim::Commutative("min", a, b);
}

Dim Broadcast(const Dim& a, const Dim& b) {
  if (a == Dim(1) || a == b) return b;
  if (b == Dim(1)) return a;
  // If one side is a number other than 1, the other side must be that number or 1.
  if (a.is_number()) return a;
  if (b.is_number()) return b;
  // min(k, a) is a, or k < a, which only broadcasts if it is 1.
  if (a.is_unknown() || b.is_unknown()) return Dim::Unknown();
  if (b.IsAtMost(a)) return a;
  if (a.IsAtMost(b)) return b;
  return Dim::Commutative("broadcast", a, b);
}

Dim Dim::Substitute(const std::function<std::optional<int64_t>(std::string_view)>& value_of) const {
  if (is_number() || is_unknown()) return *this;
  Dim sum(0);
  for (const auto& [monomial, coefficient] : form_->terms) {
    Dim product(coefficient);
    for (const std::string& atom : monomial) {
      const std::optional<int64_t> value = value_of(atom);
      Dim factor = Unknown();
      if (value) {
        factor = Dim(*value);
      } else if (atom.find('(') == std::string::npos) {
        factor = Symbol(atom);
      }
      product = product * factor;
    }
    sum = sum + product;
  }
  return sum;
}

std::string Dim::ToString() const {
  if (is_number()) return Format("{}", value_);
  if (is_unknown()) return "?";
  std::string text;
  for (auto term = form_->terms.rbegin(); term != form_->terms.rend(); ++term) {
    const auto& [monomial, coefficient] = *term;
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    if (text.empty() && coefficient < 0) text += "-";
    const uint64_t magnitude = coefficient < 0 ? ~static_cast<uint64_t>(coefficient) + 1
                                               : static_cast<uint64_t>(coefficient);
    if (monomial.empty() || magnitude != 1) text += Format("{}", magnitude);
    for (size_t i = 0; i < monomial.size(); ++i) {
      if (i > 0 || magnitude != 1) text += "*";
      text += monomial[i];
    }
  }
  return text;
}

Dim SymbolicShape::Product(size_t first, size_t last) const {
  Dim product(1);
  for (size_t i = first; i < last; ++i) product = product * dims_[i];
  return product;
}

std::optional<Shape> SymbolicShape::ToShape() const {
  Shape shape(dims_.size(), 0);
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (!dims_[i].is_number()) return std::nullopt;
    shape[i] = dims_[i].value();
  }
  return shape;
}

bool SymbolicShape::operator==(const SymbolicShape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string SymbolicShape::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) text += ", ";
    text += dims_[i].ToString();
  }
  return text + "]";
}

}  // namespace tenon
