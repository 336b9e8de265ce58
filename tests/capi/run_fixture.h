// A session for Relu(x + y), and its feeds.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {

class RunTest : public testing::Test {
 protected:
  Ort::Session session_ = Open(AddReluModel());
  std::vector<float> x_ = {1, -2, 3, 4, 5, -6};
  std::vector<float> y_ = {10, 1, -5};
  const char* const inputs_[2] = {"x", "y"};
  const char* const output_ = "z";
  Ort::Value feeds_[2] = {TensorOver(x_, {2, 3}), TensorOver(y_, {3})};
};

}  // namespace tenon::test
