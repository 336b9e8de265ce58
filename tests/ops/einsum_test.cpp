#include <map>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct EinsumCase {
  const char* equation;
  // The same with all axes of the ellipsis spelled out and the output given.
  std::vector<const char*> terms;
  const char* output;
  std::vector<Shape> shapes;
};

const EinsumCase kCases[] = {
    {"ij->ji", {"ij"}, "ji", {{3, 4}}},
    {"ij->i", {"ij"}, "i", {{3, 4}}},
    {"ij", {"ij"}, "ij", {{3, 4}}},
    {"ba", {"ba"}, "ab", {{3, 4}}},
    {"ii->i", {"ii"}, "i", {{4, 4}}},
    {"ii", {"ii"}, "", {{4, 4}}},
    {"...ii->...i", {"zii"}, "zi", {{3, 4, 4}}},
    {"i,i", {"i", "i"}, "", {{5}, {5}}},
    {"i,j->ij", {"i", "j"}, "ij", {{5}, {3}}},
    {"bij, bjk -> bik", {"bij", "bjk"}, "bik", {{2, 3, 4}, {2, 4, 5}}},
    {"bij,bjk->kib", {"bij", "bjk"}, "kib", {{2, 3, 4}, {2, 4, 5}}},
    {"bhqd,bhkd->bhqk", {"bhqd", "bhkd"}, "bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}},
    {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}, "bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}},
    {"ab...,b...c->a...c", {"abxy", "bxyc"}, "axyc", {{2, 3, 4, 5}, {3, 4, 5, 2}}},
    {"...ab,bc", {"xab", "bc"}, "xac", {{2, 3, 4}, {4, 5}}},
    {"ij,jk,kl->il", {"ij", "jk", "kl"}, "il", {{3, 4}, {4, 5}, {5, 2}}},
    {"ij,jk,kl->lji", {"ij", "jk", "kl"}, "lji", {{3, 4}, {4, 5}, {5, 2}}},
    {"ijk,l->jl", {"ijk", "l"}, "jl", {{3, 4, 2}, {5}}},
    {"ij,ij->", {"ij", "ij"}, "", {{3, 4}, {3, 4}}},
    {",->", {"", ""}, "", {{}, {}}},
    {"aAb,b->A", {"aAb", "b"}, "A", {{2, 3, 4}, {4}}},
    {"ij,jk->ik", {"ij", "jk"}, "ik", {{3, 0}, {0, 2}}},
    {"ij,jk->ik", {"ij", "jk"}, "ik", {{0, 3}, {3, 2}}},
};

template <class T>
void CheckEinsum(const EinsumCase& c) {
  SCOPED_TRACE(c.equation);
  std::vector<Value> inputs;
  std::vector<Tensor> operands;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    Tensor x = Tensor::Allocate(DataTypeOf<T>(), c.shapes[i]).value();
    for (int64_t j = 0; j < x.size(); ++j) x.data<T>()[j] = static_cast<T>((j * 7 + 3) % 11);
    operands.push_back(x);
    inputs.push_back(x);
    for (size_t axis = 0; axis < c.shapes[i].rank(); ++axis) {
      sizes[c.terms[i][axis]] = c.shapes[i][axis];
    }
  }
  const Tensor y = RunTensorOp(
      {"Einsum", 12, std::move(inputs), MakeAttributes(Attr("equation", std::string(c.equation)))});
  Shape shape, all;
  const std::string output = c.output;
  std::string labels = output;
  for (const char label : output) shape.Append(sizes[label]);
  for (const auto& [label, size] : sizes) {
    if (output.find(label) == std::string::npos) labels += label;
  }
  for (const char label : labels) all.Append(sizes[label]);
  std::vector<double> expected(static_cast<size_t>(shape.NumElements()));
  for (int64_t i = 0; i < all.NumElements(); ++i) {
    const auto at = CoordinatesOf(i, all);
    double product = 1;
    for (size_t k = 0; k < operands.size(); ++k) {
      std::vector<int64_t> own;
      for (const char label : std::string(c.terms[k])) own.push_back(at[labels.find(label)]);
      product *= static_cast<double>(operands[k].data<T>()[PositionOf(own, c.shapes[k])]);
    }
    expected[static_cast<size_t>(PositionOf(
        {at.begin(), at.begin() + static_cast<ptrdiff_t>(output.size())}, shape))] += product;
  }
  ExpectElements<T>(y, shape, 1e-6, [&](int64_t i) {
    // Integers wrap around.
    return static_cast<double>(
        static_cast<T>(static_cast<int64_t>(expected[static_cast<size_t>(i)])));
  });
}

TEST(EinsumTest, SumsProducts) {
  for (const EinsumCase& c : kCases) {
    CheckEinsum<float>(c);
    CheckEinsum<double>(c);
    CheckEinsum<int64_t>(c);
    CheckEinsum<int8_t>(c);
    CheckEinsum<uint16_t>(c);
  }
}

TEST(EinsumTest, BroadcastsTheEllipsis) {
  const Tensor a = Iota<float>({2, 1, 3, 4}), b = Iota<float>({5, 4, 2});
  const Tensor y = RunTensorOp(
      {"Einsum", 12, {a, b}, MakeAttributes(Attr("equation", std::string("...ij,...jk->...ik")))});
  ExpectElements(y, {2, 5, 3, 2}, 1e-6, [&](int64_t i) {
    const auto at = CoordinatesOf(i, y.shape());
    double sum = 0;
    for (int64_t j = 0; j < 4; ++j) {
      sum += static_cast<double>(a.data<float>()[PositionOf({at[0], 0, at[2], j}, a.shape())] *
                                 b.data<float>()[PositionOf({at[1], j, at[3]}, b.shape())]);
    }
    return sum;
  });
}

TEST(EinsumTest, RefusesBadEquations) {
  const auto error = [](const char* equation, std::vector<Value> inputs) {
    return ErrorOf(
        {"Einsum", 12, std::move(inputs), MakeAttributes(Attr("equation", std::string(equation)))});
  };
  const Tensor x = Iota<float>({2, 3}), y = Iota<float>({4, 5});
  for (const char* equation : {"i->i", "ijk->i", "ij->k", "ij->ii", "i.j->i", "i1->i", "ij,jk->ik",
                               "......", "ij...k->i", "-", "i->j->k"}) {
    EXPECT_NE(error(equation, {x}), "no error") << equation;
  }
  EXPECT_NE(error("ij,jk->ik", {x, y}), "no error");
}

}  // namespace
}  // namespace tenon
