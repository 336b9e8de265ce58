// Runs that take the inputs of a binding and drop each after its last reader.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "runtime/io_binding.h"
#include "runtime/session_fixture.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// y = 2 * (2 * (x + w)), where u is not read, and the output z is a view of v.
ModelBuilder SomeSteps() {
  ModelBuilder b;
  b.Input("x", {n}).Input("w", {n}).Input("u", {n}).Input("v", {n});
  b.Node("Add", {"x", "w"}, {"a"}).Node("Scale", {"a"}, {"b"}).Node("Scale", {"b"}, {"y"});
  b.Node("Identity", {"v"}, {"z"}, "", 21).Output("y").Output("z");
  return b;
}

class GivenInputsTest : public SessionTest {
 protected:
  GivenInputsTest() { options_.config["tenon.takes_bound_inputs"] = "1"; }

  // A row that notes in dropped_ how many operators had run when its last owner let go of it.
  Value Given(const std::string& name, const Floats& values) {
    const Tensor row = Row(values);
    std::shared_ptr<void> owner(row.owner().get(), [this, name, keep = row.owner()](void*) {
      dropped_[name] = RunsOf("Add") + RunsOf("Scale") + RunsOf("Fail");
    });
    return Tensor::View(row.type(), row.shape(), const_cast<void*>(row.raw()), std::move(owner),
                        row.memory());
  }

  Status RunGiving(IoBinding& binding) {
    dropped_.clear();
    ResetRuns();
    return binding.Run(options_);
  }

  RunOptions options_;
  std::map<std::string, int> dropped_;
};

TEST_F(GivenInputsTest, AreDroppedAfterTheirLastReader) {
  ModelBuilder b = SomeSteps();
  Open(b);
  for (int run = 0; run < 4; ++run) {
    IoBinding binding(*session_);
    const auto base = static_cast<float>(run);
    ASSERT_TRUE(binding.BindInput("x", Given("x", {base, 1})).ok());
    ASSERT_TRUE(binding.BindInput("w", Given("w", {2, 3})).ok());
    ASSERT_TRUE(binding.BindInput("u", Given("u", {0, 0})).ok());
    ASSERT_TRUE(binding.BindInput("v", Given("v", {7, 8})).ok());
    ASSERT_TRUE(binding.BindOutput("y", {}).ok());
    ASSERT_TRUE(binding.BindOutput("z", {}).ok());
    ASSERT_TRUE(RunGiving(binding).ok());
    EXPECT_EQ(ValuesOf(binding.results()[0]), (Floats{4 * (base + 2), 16}));
    EXPECT_EQ(ValuesOf(binding.results()[1]), (Floats{7, 8}));
    EXPECT_THAT(binding.input_names(), IsEmpty());
    EXPECT_EQ(dropped_["x"], 1) << run;
    EXPECT_EQ(dropped_["w"], 1) << run;
    // What is fetched is a copy: the caller may have lent the same memory to others.
    EXPECT_EQ(dropped_.count("v"), 1u);
    EXPECT_EQ(dropped_["u"], 0);  // before the first operator
  }
}

TEST_F(GivenInputsTest, AreNotWrittenOver) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Reuse", {"a"}, {"b"});
  b.Node("Identity", {"x"}, {"c"}, "", 21).Node("Reuse", {"c"}, {"d"});
  b.Node("Add", {"b", "d"}, {"y"}).Output("y");
  Open(b);
  const Tensor lent = Row({1, 2});  // as if others had the same memory
  for (int run = 0; run < 3; ++run) {
    IoBinding binding(*session_);
    std::shared_ptr<void> owner(lent.owner().get(), [keep = lent.owner()](void*) {});
    ASSERT_TRUE(
        binding
            .BindInput("x", Tensor::View(lent.type(), lent.shape(), const_cast<void*>(lent.raw()),
                                         std::move(owner), lent.memory()))
            .ok());
    ASSERT_TRUE(binding.BindOutput("y", {}).ok());
    ASSERT_TRUE(RunGiving(binding).ok());
    EXPECT_EQ(ValuesOf(binding.results()[0]), (Floats{6, 12}));
    EXPECT_EQ(ValuesOf(lent), (Floats{1, 2}));
  }
}

TEST_F(GivenInputsTest, StayWithTheirOwnersWithoutTheOption) {
  ModelBuilder b = SomeSteps();
  Open(b);
  options_.config.clear();
  IoBinding binding(*session_);
  for (const char* name : {"x", "w", "u", "v"}) {
    ASSERT_TRUE(binding.BindInput(name, Given(name, {1, 1})).ok());
  }
  ASSERT_TRUE(binding.BindOutput("y", {}).ok());
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(RunGiving(binding).ok());
    EXPECT_THAT(dropped_, IsEmpty());
    EXPECT_EQ(ValuesOf(binding.results()[0]), (Floats{8, 8}));
  }
  EXPECT_THAT(binding.input_names(), ElementsAre("x", "w", "u", "v"));
}

TEST_F(GivenInputsTest, AreDroppedWhereARunFails) {
  ModelBuilder b;
  b.Input("x", {n}).Input("w", {n}).Node("Scale", {"x"}, {"a"}).Node("Fail", {"a"}, {"b"});
  b.Node("Add", {"b", "w"}, {"y"}).Output("y");
  Open(b);
  for (int run = 0; run < 2; ++run) {
    IoBinding binding(*session_);
    ASSERT_TRUE(binding.BindInput("x", Given("x", {1})).ok());
    ASSERT_TRUE(binding.BindInput("w", Given("w", {1})).ok());
    ASSERT_TRUE(binding.BindOutput("y", {}).ok());
    EXPECT_FALSE(RunGiving(binding).ok());
    EXPECT_EQ(dropped_.size(), 2u);
    EXPECT_EQ(dropped_["x"], 1);
    EXPECT_THAT(binding.input_names(), IsEmpty());
    // The next run with this binding lacks its inputs.
    EXPECT_FALSE(RunGiving(binding).ok());
  }
}

TEST_F(GivenInputsTest, OfRunsAtTheSameTimeAreApart) {
  ModelBuilder b = SomeSteps();
  Open(b);
  const auto run_some = [&](float first) {
    for (int run = 0; run < 50; ++run) {
      IoBinding binding(*session_);
      const Floats x(1 + run % 3, first + static_cast<float>(run)), zeros(x.size(), 0);
      ASSERT_TRUE(binding.BindInput("x", Row(x)).ok());
      for (const char* name : {"w", "u", "v"})
        ASSERT_TRUE(binding.BindInput(name, Row(zeros)).ok());
      ASSERT_TRUE(binding.BindOutput("y", {}).ok());
      ASSERT_TRUE(binding.Run(options_).ok());
      for (const float y : ValuesOf(binding.results()[0])) ASSERT_EQ(y, 4 * x[0]);
    }
  };
  std::thread other([&] { run_some(1000); });
  run_some(1);
  other.join();
}

}  // namespace
}  // namespace tenon
