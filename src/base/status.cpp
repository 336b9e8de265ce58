#include "base/status.h"

namespace tenon {
namespace {

// An empty text that needs no memory and is never destroyed.
union Empty {
  Empty() : text() {}
  ~Empty() {}
  std::string text;
};

}  // namespace

Status::Status(StatusCode code, std::string message)
    : rep_(std::make_unique<Rep>(Rep{code, std::move(message)})) {}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::message() const {
  static const Empty empty;
  return rep_ ? rep_->message : empty.text;
}

Status Status::WithContext(std::string_view context) && {
  if (rep_) rep_->message = Format("{}: {}", context, rep_->message);
  return std::move(*this);
}

}  // namespace tenon
