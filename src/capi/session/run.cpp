// Runs of a session.
#include <memory>
#include <string_view>
#include <utility>

#include "base/inline_array.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/fetched_values.h"
#include "capi/session/lora.h"
#include "capi/session/session_handle.h"

namespace tenon::capi {
namespace {

Status CheckArrays(const char* const* input_names, const OrtValue* const* inputs, size_t input_len,
                   const char* const* output_names, size_t output_names_len,
                   OrtValue* const* outputs) {
  TENON_RETURN_IF_NULL_ARRAY(input_names, input_len);
  TENON_RETURN_IF_NULL_ARRAY(inputs, input_len);
  TENON_RETURN_IF_NULL(output_names);
  TENON_RETURN_IF_NULL(outputs);
  for (size_t i = 0; i < input_len; ++i) {
    if (input_names[i] == nullptr) return InvalidArgument("input_names[{}] must not be null", i);
    if (inputs[i] == nullptr) {
      return InvalidArgument("the value for input '{}' must not be null", input_names[i]);
    }
  }
  for (size_t i = 0; i < output_names_len; ++i) {
    if (output_names[i] == nullptr) return InvalidArgument("output_names[{}] must not be null", i);
  }
  return OkStatus();
}

size_t CountLoraParameters(const OrtRunOptions* options) {
  size_t count = 0;
  if (options == nullptr) return count;
  for (const OrtLoraAdapter* adapter : options->adapters) {
    count += adapter->adapter.parameters.size();
  }
  return count;
}

void AddLoraParameters(const OrtRunOptions& options, std::span<std::string_view> names,
                       std::span<Value> feeds) {
  size_t i = 0;
  for (const OrtLoraAdapter* adapter : options.adapters) {
    for (const LoraParameter& parameter : adapter->adapter.parameters) {
      names[i] = parameter.name;
      feeds[i] = parameter.tensor;
      ++i;
    }
  }
}

Status RunNow(FallbackSession& session, const OrtRunOptions* run_options,
              const char* const* input_names, const OrtValue* const* inputs, size_t input_len,
              const char* const* output_names, size_t output_names_len, OrtValue** outputs) {
  const size_t feed_count = input_len + CountLoraParameters(run_options);
  InlineArray<std::string_view, kInlineValues> feed_names(feed_count);
  InlineArray<Value, kInlineValues> feeds(feed_count);
  for (size_t i = 0; i < input_len; ++i) {
    feed_names[i] = input_names[i];
    feeds[i] = *Unwrap(inputs[i]);
  }
  if (feed_count > input_len) {
    AddLoraParameters(*run_options, feed_names.span().subspan(input_len),
                      feeds.span().subspan(input_len));
  }
  InlineArray<std::string_view, kInlineValues> fetch_names(output_names_len);
  InlineArray<Value, kInlineValues> fetches(output_names_len);
  for (size_t i = 0; i < output_names_len; ++i) {
    fetch_names[i] = output_names[i];
    if (outputs[i] != nullptr) fetches[i] = *Unwrap(outputs[i]);
  }
  const RunOptions defaults;
  TENON_RETURN_IF_ERROR(session.Run(run_options == nullptr ? defaults : run_options->run,
                                    feed_names.span(), feeds.span(), fetch_names.span(),
                                    fetches.span()));
  HandOver(fetches.span(), outputs);
  return OkStatus();
}

}  // namespace

OrtStatus* Run(OrtSession* session, const OrtRunOptions* run_options,
               const char* const* input_names, const OrtValue* const* inputs, size_t input_len,
               const char* const* output_names, size_t output_names_len,
               OrtValue** outputs) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_ERROR(
        CheckArrays(input_names, inputs, input_len, output_names, output_names_len, outputs));
    return RunNow(*session->session, run_options, input_names, inputs, input_len, output_names,
                  output_names_len, outputs);
  });
}

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* run_options,
                    const char* const* input_names, const OrtValue* const* input, size_t input_len,
                    const char* const* output_names, size_t output_names_len, OrtValue** output,
                    RunAsyncCallbackFn run_async_callback, void* user_data) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(run_async_callback);
    TENON_RETURN_IF_ERROR(
        CheckArrays(input_names, input, input_len, output_names, output_names_len, output));
    void* const piece = session->work_callbacks.Enqueue();
    session->tasks.Post([=] {
      const WorkCallbacks work = session->work_callbacks;  // the callback may release the session
      work.Start(piece);
      OrtStatus* const status = AtBoundary([&] {
        return RunNow(*session->session, run_options, input_names, input, input_len, output_names,
                      output_names_len, output);
      });
      run_async_callback(user_data, output, output_names_len, status);
      work.Stop(piece);
    });
    return OkStatus();
  });
}

}  // namespace tenon::capi
