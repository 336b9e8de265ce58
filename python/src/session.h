// InferenceSession of the native module.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api.h"
#include "options.h"
#include "type_info.h"
#include "value.h"

namespace tenon::python {

class Session {
 public:
  // `model` is a path, or an object with the buffer protocol that holds the model's bytes. Without
  // `providers`, those of the options are used. `disabled_optimizers` are names, separated by
  // semicolons, that are added to those in the options.
  Session(nb::handle model, const SessionOptions& options,
          const std::vector<ProviderChoice>* providers, const std::string& disabled_optimizers);

  // Runs the model. No names means all outputs. Several threads may run at once.
  nb::list Run(nb::handle output_names, nb::handle feed, const RunOptions* options) const;

  // As Run, but with values for inputs and outputs. A value in `outputs`, which is empty or as long
  // as `output_names`, is written in place.
  nb::list RunWithValues(const std::vector<std::string>& output_names, nb::handle feed,
                         const RunOptions* options, nb::handle outputs) const;

  // Runs with inputs that the caller gives away: capsules "dltensor" by name. Empties the list.
  // Each tensor is given back after its last reader. Returns the outputs of these names.
  nb::list RunTaking(const std::vector<std::string>& input_names, nb::list capsules,
                     const std::vector<std::string>& output_names, const RunOptions& options) const;

  const std::vector<NodeArg>& inputs() const { return inputs_; }
  const std::vector<NodeArg>& outputs() const { return outputs_; }
  const std::vector<NodeArg>& overridable() const { return overridable_; }
  OrtSession* get() const { return handle_.get(); }

 private:
  struct Feeds;

  // The place among inputs_ and then overridable_, or places_.size() if none has the name.
  size_t FindInput(std::string_view name) const;
  // Of what is fed there; any tensor's for places_.size().
  const TypeDescription& TypeOf(size_t place) const;
  Feeds ReadFeeds(nb::handle feed) const;
  void RequireInputs(const Feeds& feeds) const;
  void DropNone(Feeds& feeds) const;
  [[noreturn]] void ThrowUnknownInput(const char* name) const;
  std::vector<const char*> ReadOutputNames(nb::handle names) const;
  void RunNames(const Feeds& feeds, const std::vector<const char*>& output_names,
                const RunOptions* options, std::vector<OrtValue*>& outputs) const;

  std::shared_ptr<OrtEnv> environment_;
  nb::list kept_values_;
  SessionHandle handle_;
  std::vector<NodeArg> inputs_;
  std::vector<NodeArg> outputs_;
  std::vector<NodeArg> overridable_;
  std::unordered_map<std::string_view, size_t> places_;
};

void BindSession(nb::module_& module);

}  // namespace tenon::python
