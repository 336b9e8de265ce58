// Lets only the first rewrites of a graph happen, to find the one that changes a result.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Node;

// While one lives, the rewrites that its thread begins are counted: rules, folded constants, and
// nodes that get another layout, all of which may change results by roundings. They come in the
// same order for the same graph.
class RewriteLimit {
 public:
  explicit RewriteLimit(size_t most);
  ~RewriteLimit();
  RewriteLimit(const RewriteLimit&) = delete;
  RewriteLimit& operator=(const RewriteLimit&) = delete;

  // Whether a rewrite of `node` may happen; `what` names it in messages. True where no RewriteLimit
  // lives.
  static bool Allows(std::string_view what, const Node& node);

  // What was allowed, in order: "'RULE' at Conv-11 node 'NAME'".
  const std::vector<std::string>& allowed() const { return allowed_; }

 private:
  const size_t most_;
  RewriteLimit* const outer_;
  std::vector<std::string> allowed_;
};

}  // namespace tenon
