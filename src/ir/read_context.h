// Shared by the readers of one model's messages.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/external_data.h"
#include "ir/graph.h"
#include "ir/wire_reader.h"

namespace tenon {

// The version of a domain of the caller's that the model does not import.
inline constexpr int32_t kNewestOtherOpset = 1000;

struct ReadContext {
  WireErrors errors;
  // Keeps the bytes that are read alive; if null, tensors are copies.
  std::shared_ptr<void> owner;
  ExternalData external_data;
  int64_t ir_version = 0;
  // The positions of the tensors read so far; null: they are not recorded.
  std::shared_ptr<ExternalPlaces> external_places;
  // Tensors that replace initializers of the main graph; null: none.
  const std::map<std::string, Tensor, std::less<>>* initializers = nullptr;
  // Of ReadOptions.
  std::vector<std::string> other_domains;
  bool takes_any_domain = false;
};

// A StringStringEntryProto. After an error in the bytes, which `errors` has, the result is
// undefined.
std::pair<std::string, std::string> ReadEntry(std::string_view bytes, WireErrors& errors);

}  // namespace tenon
