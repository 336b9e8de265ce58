#include "ir/rewrite_limit.h"

#include <utility>

#include "base/text.h"
#include "ir/node_error.h"

namespace tenon {
namespace {

RewriteLimit*& OfThread() {
  thread_local RewriteLimit* current = nullptr;
  return current;
}

}  // namespace

RewriteLimit::RewriteLimit(size_t most) : most_(most), outer_(std::exchange(OfThread(), this)) {}

RewriteLimit::~RewriteLimit() { OfThread() = outer_; }

bool RewriteLimit::Allows(std::string_view what, const Node& node) {
  RewriteLimit* const limit = OfThread();
  if (limit == nullptr) return true;
  if (limit->allowed_.size() >= limit->most_) return false;
  limit->allowed_.push_back(Format("'{}' at {}", what, DescribeOperator(node)));
  return true;
}

}  // namespace tenon
