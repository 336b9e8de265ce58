#include "binding.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "gil.h"
#include "memory.h"
#include "options.h"
#include "session.h"
#include "value.h"

namespace tenon::python {
namespace {

// onnxruntime's kinds of errors: EPFail, by which a session falls back, and else RuntimeError.
void CheckRun(OrtStatus* status) {
  if (status == nullptr || Api().GetErrorCode(status) == ORT_EP_FAIL) return Check(status);
  CheckPlain(status, "Error in execution: ");
}

// The binding with the Python values that it refers to.
class Binding {
 public:
  explicit Binding(nb::object session)
      : session_(std::move(session)),
        handle_(Make<BindingHandle>(Api().CreateIoBinding, OrtSessionOf())) {}

  void BindInput(const std::string& name, nb::handle value) {
    CheckPlain(Api().BindInput(handle_.get(), name.c_str(), nb::cast<Value&>(value).get()),
               "Error when binding input: ");
    inputs_[name.c_str()] = value;
  }

  // None: every run makes a new value, on the device that FindMemory finds.
  void BindOutput(const std::string& name, nb::handle value, nb::handle device, int number) {
    OrtStatus* const status =
        value.is_none()
            ? Api().BindOutputToDevice(handle_.get(), name.c_str(), FindMemory(device, number, -1))
            : Api().BindOutput(handle_.get(), name.c_str(), nb::cast<Value&>(value).get());
    CheckPlain(status, "Error when binding output: ");
    outputs_[name.c_str()] = value;
    has_run_ = false;
  }

  void Run(const RunOptions* options) {
    const OrtRunOptions* const run_options = options != nullptr ? options->handle.get() : nullptr;
    OrtStatus* status = nullptr;
    {
      const WithoutGil other_threads_run;
      status = Api().RunWithBinding(OrtSessionOf(), run_options, handle_.get());
    }
    CheckRun(status);
    has_run_ = true;
  }

  // The result of the last run; a bound value is returned itself.
  nb::list Outputs() const {
    nb::list list;
    if (!has_run_) return list;
    OrtValue** values = nullptr;
    size_t count = 0;
    Check(Api().GetBoundOutputValues(handle_.get(), DefaultAllocator(), &values, &count));
    std::vector<Value> made;
    for (size_t i = 0; i < count; ++i) made.emplace_back(ValueHandle(values[i]));
    if (values != nullptr) Check(Api().AllocatorFree(DefaultAllocator(), values));
    size_t i = 0;
    for (const auto [name, bound] : outputs_) {
      list.append(bound.is_none() ? nb::cast(std::move(made[i])) : nb::borrow(bound));
      ++i;
    }
    return list;
  }

  // The results as arrays. Only what is bound is written again by the next run, and is copied here.
  nb::list CopyOutputs() const {
    nb::list arrays;
    const nb::list values = Outputs(), bound = outputs_.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const nb::object array = values[i].attr("numpy")();
      arrays.append(bound[i].is_none() ? array : array.attr("copy")());
    }
    return arrays;
  }

  void Synchronize(bool inputs) {
    const auto slot = inputs ? Api().SynchronizeBoundInputs : Api().SynchronizeBoundOutputs;
    OrtStatus* status = nullptr;
    {
      const WithoutGil other_threads_run;
      status = slot(handle_.get());
    }
    CheckPlain(status, "Error when synchronizing: ");
  }

  void ClearInputs() {
    Api().ClearBoundInputs(handle_.get());
    inputs_.clear();
  }
  void ClearOutputs() {
    Api().ClearBoundOutputs(handle_.get());
    outputs_.clear();
    has_run_ = false;
  }

 private:
  OrtSession* OrtSessionOf() const { return nb::cast<const Session&>(session_).get(); }

  nb::object session_;
  nb::dict inputs_, outputs_;  // of values by name, in the order of their binding
  BindingHandle handle_;
  bool has_run_ = false;
};

}  // namespace

void BindBinding(nb::module_& module) {
  nb::class_<Binding>(module, "_Binding")
      .def(nb::init<nb::object>())
      .def("bind_input", &Binding::BindInput)
      .def("bind_output", &Binding::BindOutput, nb::arg("name"), nb::arg("value").none(),
           nb::arg("device") = "cpu", nb::arg("device_id") = 0)
      .def("synchronize", &Binding::Synchronize, nb::arg("inputs"))
      .def("run", &Binding::Run, nb::arg("run_options").none())
      .def("get_outputs", &Binding::Outputs)
      .def("copy_outputs", &Binding::CopyOutputs)
      .def("clear_inputs", &Binding::ClearInputs)
      .def("clear_outputs", &Binding::ClearOutputs);
}

}  // namespace tenon::python
