// Broken copies of a good model: whatever the bytes, reading ends with a model or an error, and a
// model that was read can be checked, written and read again. Under sanitizers, this also proves
// that nothing outside the bytes is read.
#include <gtest/gtest.h>

#include <random>

#include "ir/checker.h"
#include "ir/onnx_reader.h"
#include "ir/onnx_writer.h"
#include "ir/proto_message.h"

namespace tenon {
namespace {

// A model with an initializer, a subgraph with captures, a function, and every other message that
// a small model can have.
std::string SampleModel() {
  const Message body = Message()
                           .Bytes(GraphField::kName, "body")
                           .Add(GraphField::kNode, NodeMessage("Add", {"x", "w"}, {"b"}))
                           .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, "b"));
  const Message indices = Message()
                              .Ints(TensorField::kDims, {2})
                              .Int(TensorField::kDataType, 7)
                              .Ints(TensorField::kInt64Data, {1, 5});
  const Message sparse =
      Message()
          .Add(SparseTensorField::kValues, RawTensor("s", DataType::kInt16, {2}, "abcd"))
          .Add(SparseTensorField::kIndices, indices)
          .Ints(SparseTensorField::kDims, {3, 2});
  const Message graph =
      Message()
          .Bytes(GraphField::kName, "g")
          .Add(GraphField::kNode, NodeMessage("If", {"c"}, {"z"},
                                              {GraphAttribute("then_branch", body),
                                               GraphAttribute("else_branch", body)}))
          .Add(GraphField::kNode, NodeMessage("Softmax", {"z"}, {"y"}, {IntAttribute("axis", 1)})
                                      .Add(NodeField::kMetadata, Entry("k", "v")))
          .Add(GraphField::kInput, FloatValue("x", {2, 2}))
          .Add(GraphField::kInput, FloatValue("c", {}))
          .Add(GraphField::kOutput, FloatValue("y", {2, 2}))
          .Add(GraphField::kValueInfo, FloatValue("z", {2, 2}))
          .Add(GraphField::kInitializer, RawTensor("w", DataType::kFloat, {2}, "abcdefgh"))
          .Add(GraphField::kInitializer, Message()
                                             .Ints(TensorField::kDims, {3})
                                             .Int(TensorField::kDataType, 6)
                                             .Bytes(TensorField::kName, "i")
                                             .Ints(TensorField::kInt32Data, {1, 300, -1}))
          .Add(GraphField::kSparseInitializer, sparse);
  const Message function = Message()
                               .Bytes(FunctionField::kName, "F")
                               .Bytes(FunctionField::kDomain, "d")
                               .Bytes(FunctionField::kInput, "a")
                               .Bytes(FunctionField::kOutput, "b")
                               .Add(FunctionField::kNode, NodeMessage("Neg", {"a"}, {"b"}))
                               .Add(FunctionField::kOpsetImport, Opset("", 18));
  return ModelMessage(graph).Add(ModelField::kFunctions, function).bytes();
}

// Reads `bytes` from memory of exactly their size. Returns whether they are a model.
bool Survives(std::string_view bytes) {
  const auto owner = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  const Result<Model> model = ReadModel(std::as_bytes(std::span(*owner)), owner);
  if (!model) {
    EXPECT_FALSE(model.error().message().empty());
    return false;
  }
  // Whether it conforms to the schemas is another question.
  (void)CheckModel(*model).ok();
  const Result<std::string> written = WriteModel(*model);
  EXPECT_TRUE(written) << written.error().message();
  if (!written) return true;
  const Result<Model> again = ReadModel(std::as_bytes(std::span(*written)), nullptr);
  EXPECT_TRUE(again) << again.error().message();
  return true;
}

TEST(ReaderRobustnessTest, SurvivesTruncationAtEveryByte) {
  const std::string model = SampleModel();
  ASSERT_TRUE(Survives(model));
  for (size_t size = 0; size < model.size(); ++size)
    Survives(std::string_view(model).substr(0, size));
}

TEST(ReaderRobustnessTest, SurvivesEveryFlippedBit) {
  std::string model = SampleModel();
  size_t readable = 0;
  for (size_t bit = 0; bit < model.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1 << bit % 8);
    model[bit / 8] ^= mask;
    readable += Survives(model);
    model[bit / 8] ^= mask;
  }
  // Flips in names and weights leave a model; most others do not.
  EXPECT_GT(readable, 100u);
  EXPECT_LT(readable, model.size() * 8);
}

TEST(ReaderRobustnessTest, SurvivesRandomEdits) {
  const std::string model = SampleModel();
  std::mt19937 random(20240917);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 20000; ++round) {
    std::string edited = model;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(edited.size());
      const size_t from = below(edited.size());
      const size_t length = 1 + below(std::min<size_t>(64, edited.size() - std::max(at, from)));
      switch (below(4)) {
        case 0:
          edited[at] = static_cast<char>(random());
          break;
        case 1:  // keeps the lengths of the messages around it right
          edited.replace(at, length, edited.substr(from, length));
          break;
        case 2:
          edited.replace(at, length, length, random() % 2 ? '\xff' : '\0');
          break;
        default:
          edited.erase(at, length);
      }
      if (edited.empty()) edited = model;
    }
    Survives(edited);
  }
}

}  // namespace
}  // namespace tenon
