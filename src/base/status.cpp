#include "base/status.h"

#include <cstddef>
#include <new>

namespace tenon {

Status::Status(StatusCode code, std::string message)
    : rep_(std::make_unique<Rep>(Rep{code, std::move(message)})) {}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  // Needs no memory and is never destroyed.
  alignas(std::string) static std::byte storage[sizeof(std::string)];
  static const std::string& empty = *new (storage) std::string();
  return rep_ ? rep_->message : empty;
}

Status Status::WithContext(std::string_view context) && {
  if (rep_) rep_->message = Format("{}: {}", context, rep_->message);
  return std::move(*this);
}

}  // namespace tenon
