// Reads a model and writes it again, for the tests that compare the two with another reader.
// Usage: rewrite_model INPUT OUTPUT [EXTERNAL_DATA_FILE]
#include <cstdio>

#include "ir/onnx_reader.h"
#include "ir/onnx_writer.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: rewrite_model INPUT OUTPUT [EXTERNAL_DATA_FILE]\n", stderr);
    return 2;
  }
  const auto report = [](const tenon::Status& status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.ok() ? 0 : 1;
  };
  const tenon::Result<tenon::Model> model = tenon::ReadModel(argv[1]);
  if (!model) return report(model.error());
  const tenon::Status written = tenon::WriteModelFile(
      *model, argv[2],
      {.external_data_file = argc > 3 ? argv[3] : "", .external_data_threshold = 64});
  return report(written);
}
