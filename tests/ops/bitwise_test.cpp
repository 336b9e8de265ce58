#include "ops/op_cases.h"

namespace tenon {
namespace {

// Numbers with all kinds of bits.
template <class T>
Tensor Bits(const Shape& shape, uint64_t seed) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  for (int64_t i = 0; i < x.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x.data<T>()[i] = static_cast<T>(seed >> 20);
  }
  return x;
}

template <class Test>
void ForEachInteger(Test&& test) {
  test(int8_t());
  test(int16_t());
  test(int32_t());
  test(int64_t());
  test(uint8_t());
  test(uint16_t());
  test(uint32_t());
  test(uint64_t());
}

// Checks op(a, b) for whole, scalar and middle-broadcast operands.
template <class T, class Reference>
void ExpectBroadcast(const std::string& op_type, const std::string& direction,
                     Reference&& reference) {
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 3, 5}, {2, 3, 5}}, {{2, 3, 5}, {}}, {{}, {2, 3, 5}}, {{2, 1, 5}, {3, 1}}, {{0}, {1}}};
  for (const auto& [a_shape, b_shape] : shapes) {
    const Tensor a = Bits<T>(a_shape, 1), b = Bits<T>(b_shape, 2);
    OpCall call = {op_type, 0, {a, b}};
    if (!direction.empty()) call.attributes = MakeAttributes(Attr("direction", direction));
    const Tensor y = RunTensorOp(std::move(call));
    const auto element = [&](const Tensor& x, const std::vector<int64_t>& at) {
      int64_t position = 0;
      for (size_t i = 0; i < x.rank(); ++i) {
        const int64_t dim = x.shape()[i];
        position = position * dim + (dim == 1 ? 0 : at[at.size() - x.rank() + i]);
      }
      return x.data<T>()[position];
    };
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto at = CoordinatesOf(i, y.shape());
      ASSERT_EQ(y.data<T>()[i], reference(element(a, at), element(b, at))) << "element " << i;
    }
  }
}

TEST(BitwiseTest, CombinesBits) {
  ForEachInteger([]<class T>(T) {
    ExpectBroadcast<T>("BitwiseAnd", "", [](T a, T b) { return static_cast<T>(a & b); });
    ExpectBroadcast<T>("BitwiseOr", "", [](T a, T b) { return static_cast<T>(a | b); });
    ExpectBroadcast<T>("BitwiseXor", "", [](T a, T b) { return static_cast<T>(a ^ b); });
    const Tensor x = Bits<T>({33}, 5);
    const Tensor y = RunTensorOp({"BitwiseNot", 18, {x}});
    for (int64_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y.data<T>()[i], static_cast<T>(~x.data<T>()[i]));
    }
  });
}

// x * 2^amount or floor(x / 2^amount), one bit at a time.
template <class T>
T Shifted(T x, T amount, bool left) {
  const bool all = amount < 0 || static_cast<uint64_t>(amount) >= 8 * sizeof(T);
  uint64_t steps = all ? 8 * sizeof(T) : static_cast<uint64_t>(amount);
  for (; steps > 0; --steps) {
    if (left) {
      x = static_cast<T>(static_cast<uint64_t>(x) * 2);
    } else {
      x = static_cast<T>(x < 0 ? (x - 1) / 2 : x / 2);
    }
  }
  return x;
}

TEST(BitShiftTest, ShiftsBits) {
  ForEachInteger([]<class T>(T) {
    for (const bool left : {true, false}) {
      const std::string direction = left ? "LEFT" : "RIGHT";
      ExpectBroadcast<T>("BitShift", direction, [&](T a, T b) { return Shifted(a, b, left); });
      const Tensor x =
          Tensor::Of<T>({3}, {T(5), static_cast<T>(-7), std::numeric_limits<T>::max()});
      for (int amount = -1; amount <= static_cast<int>(8 * sizeof(T)); ++amount) {
        const Tensor by = Tensor::Of<T>({}, {static_cast<T>(amount)});
        const Tensor y =
            RunTensorOp({"BitShift", 28, {x, by}, MakeAttributes(Attr("direction", direction))});
        for (int64_t i = 0; i < 3; ++i) {
          ASSERT_EQ(y.data<T>()[i], Shifted(x.data<T>()[i], static_cast<T>(amount), left))
              << amount;
        }
      }
    }
  });
  EXPECT_EQ(ErrorOf({"BitShift",
                     11,
                     {Iota<uint8_t>({1}), Iota<uint8_t>({1})},
                     MakeAttributes(Attr("direction", std::string("UP")))}),
            "attribute 'direction': expected LEFT or RIGHT, got 'UP'");
}

TEST(BitCastTest, KeepsTheBytes) {
  const auto cast = [](Tensor x, DataType to) {
    return OpCall{
        "BitCast", 26, {std::move(x)}, MakeAttributes(Attr("to", static_cast<int64_t>(to)))};
  };
  const Tensor y = RunTensorOp(cast(Tensor::Of<float>({2, 1}, {1, -2}), DataType::kInt32));
  EXPECT_EQ(y.shape(), Shape({2, 1}));
  EXPECT_EQ(ElementsOf<int32_t>(y), (std::vector<int32_t>{0x3F800000, INT32_MIN + 0x40000000}));
  EXPECT_EQ(ErrorOf(cast(Iota<float>({2}), DataType::kInt64)),
            "attribute 'to': expected a type of 32 bits as float, got int64");
}

}  // namespace
}  // namespace tenon
