// tenon check: says whether models can be run.
#include <nlohmann/json.hpp>

#include "commands.h"
#include "text.h"

namespace tenon::cli {
namespace {

// "" if a session can be created for the model, otherwise the reason why not.
std::string ProblemOf(const std::string& path) {
  try {
    const Model model({.model = path, .optimize = false});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

int Check(const CheckCommand& command) {
  bool all_good = true;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::string& path : command.models) {
    const std::string problem = ProblemOf(path);
    all_good = all_good && problem.empty();
    if (command.json) {
      json.push_back({{"model", path}, {"ok", problem.empty()}});
      if (!problem.empty()) json.back()["problem"] = problem;
    } else if (problem.empty()) {
      Print("'{}': OK\n", path);
    } else {
      Print("{}\n", problem);
    }
  }
  using ErrorHandler = nlohmann::ordered_json::error_handler_t;
  if (command.json) Print("{}\n", json.dump(2, ' ', false, ErrorHandler::replace));
  return all_good ? 0 : kExitFailure;
}

}  // namespace tenon::cli
