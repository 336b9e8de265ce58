// The computation of the sample device: a chain of element-wise operators as one loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace sample {

enum class Operation { kMul, kAdd, kRelu };

// Registers hold the chain's inputs first, then the result of each step.
struct Step {
  Operation operation;
  size_t a;  // register of the first operand
  size_t b;  // of the second; unused by kRelu
};

// An operand with as many elements as the result, or with one element, which is used for all.
struct Operand {
  const float* data;
  bool is_scalar;
};

// Runs `steps` over `count` elements and writes the result of the last one. All intermediate
// results stay in blocks that fit the first-level cache, which is the reason for fusing the nodes.
inline void RunChain(const std::vector<Step>& steps, const std::vector<Operand>& operands,
                     size_t count, float* result) {
  constexpr size_t kBlock = 256;
  std::vector<std::array<float, kBlock>> registers(operands.size() + steps.size());
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_scalar) {
        std::fill_n(registers[i].begin(), n, *operands[i].data);
      } else {
        std::copy_n(operands[i].data + begin, n, registers[i].begin());
      }
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      const float* a = registers[steps[s].a].data();
      const float* b = registers[steps[s].b].data();
      float* y = registers[operands.size() + s].data();
      switch (steps[s].operation) {
        case Operation::kMul:
          for (size_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
          break;
        case Operation::kAdd:
          for (size_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
          break;
        case Operation::kRelu:
          for (size_t i = 0; i < n; ++i) y[i] = a[i] < 0 ? 0 : a[i];  // NaN stays NaN
          break;
      }
    }
    std::copy_n(registers.back().begin(), n, result + begin);
  }
}

}  // namespace sample
