// tenon check: says whether models can be run, and whether optimizations change their outputs.
#include <nlohmann/json.hpp>

#include "commands.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Verdict {
  std::string problem;  // "": none
  Bisection bisection;  // if wanted, of a model that can be run
};

Verdict Judge(const CheckCommand& command, const std::string& path) {
  Verdict verdict;
  try {
    const Model model({.model = path, .optimize = false});
  } catch (const Error& error) {
    verdict.problem = error.what();
  }
  if (!verdict.problem.empty() || !command.bisects) return verdict;
  BisectSettings settings = command.bisect;
  settings.session.model = path;
  verdict.bisection = Bisect(settings);
  const Bisection& found = verdict.bisection;
  if (found.first_bad != 0) {
    verdict.problem = Format(
        "'{}': outputs differ by {:.2g} of their greatest element, by {:.2g} from optimization {} "
        "of {} on: {}",
        path, found.difference, found.difference_there, found.first_bad, found.rewrites,
        found.description);
  }
  return verdict;
}

std::string TextOf(const CheckCommand& command, const std::string& path, const Verdict& verdict) {
  if (!verdict.problem.empty()) return verdict.problem;
  if (!command.bisects) return Format("'{}': OK", path);
  return Format("'{}': OK, {} optimizations change outputs by {:.2g} of their greatest element",
                path, verdict.bisection.rewrites, verdict.bisection.difference);
}

Json JsonOf(const CheckCommand& command, const std::string& path, const Verdict& verdict) {
  Json json = {{"model", path}, {"ok", verdict.problem.empty()}};
  if (!verdict.problem.empty()) json["problem"] = verdict.problem;
  const Bisection& found = verdict.bisection;
  if (!command.bisects || (!verdict.problem.empty() && found.first_bad == 0)) return json;
  json["optimizations"] = found.rewrites;
  json["difference"] = found.difference;
  if (found.first_bad != 0) {
    json["first_to_differ"] = {{"number", found.first_bad},
                               {"difference", found.difference_there},
                               {"description", found.description}};
  }
  return json;
}

}  // namespace

int Check(const CheckCommand& command) {
  bool all_good = true;
  Json json = Json::array();
  for (const std::string& path : command.models) {
    const Verdict verdict = Judge(command, path);
    all_good = all_good && verdict.problem.empty();
    if (command.json) {
      json.push_back(JsonOf(command, path, verdict));
    } else {
      Print("{}\n", TextOf(command, path, verdict));
    }
  }
  if (command.json) Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  return all_good ? 0 : kExitFailure;
}

}  // namespace tenon::cli
