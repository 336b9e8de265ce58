// Every row of the provider. Requirements: web, section 5 (WB-n).
#include <algorithm>
#include <set>

#include "base/mapped_file.h"
#include "webnn/fixture.h"
#include "webnn/row_cases.h"

namespace tenon::webnn {
namespace {

std::string NameOf(const RowCase& one) {
  return Format("{}{} ({}), opset {}", one.domain.empty() ? "" : one.domain + " ", one.op, one.name,
                one.opset);
}

class RowTest : public WebnnTest {
 protected:
  // Whether the node of a case is run by WebNN, in a context with these limits.
  bool IsClaimed(const RowCase& one, const LimitsChange& limits = {}) {
    GraphBuilder b(one.opset);
    one.build(b);
    // As it is: nothing is folded, no other form is found.
    SessionOptions session;
    session.optimization_level = OptimizationLevel::kNone;
    Open(*b.graph, {.limits = LimitsText(limits), .session = session, .opset = one.opset});
    return plan_ != nullptr && partitions() == 1 && plan_->partition(0).node_count() == 1;
  }
};

// WB-60: there is a model for each row, and one for each row that states a restriction, too.
TEST_F(RowTest, EachRowHasItsCases) {
  std::set<std::pair<std::string_view, std::string_view>> claimed, refused;
  for (const RowCase& one : RowCases()) {
    (one.is_claimed ? claimed : refused).emplace(one.domain, one.op);
  }
  for (const std::span<const Row> family : Families()) {
    for (const Row& row : family) {
      EXPECT_TRUE(claimed.contains({row.domain, row.op})) << row.domain << " " << row.op;
      if (row.restrictions.empty()) continue;
      EXPECT_TRUE(refused.contains({row.domain, row.op})) << row.op << ": " << row.restrictions;
    }
  }
}

// WB-60: the table of the documentation is that of the rows. A failure prints what it should be.
TEST_F(RowTest, AreDocumented) {
  std::string table = "| operator | builder method | taken where |\n| --- | --- | --- |\n";
  std::vector<std::pair<std::string, const Row*>> rows;
  for (const std::span<const Row> family : Families()) {
    for (const Row& row : family) {
      const bool is_onnx = row.domain.empty();
      rows.emplace_back(Format("{}{}", row.op, is_onnx ? "" : Format(" ({})", row.domain)), &row);
    }
  }
  std::sort(rows.begin(), rows.end());
  for (const auto& [name, row] : rows) {
    table += Format("| {} | {} | {} |\n", name, row->method, row->restrictions);
  }
  const Result<std::vector<std::byte>> bytes = ReadFile(TENON_WEBNN_PAGE);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message();
  const std::string_view page(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_NE(page.find("\n" + table), std::string::npos) << "docs/webnn.md lacks this table:\n"
                                                        << table;
}

// WB-49, WB-59, WB-60: what is claimed gives what the CPU gives.
TEST_F(RowTest, ClaimsAndRefuses) {
  for (const RowCase& one : RowCases()) {
    SCOPED_TRACE(NameOf(one));
    ASSERT_EQ(IsClaimed(one), one.is_claimed);
    if (one.is_claimed) ExpectSameAsCpu();
  }
}

// WB-48, WB-60: no row is claimed in a context that lacks its method.
TEST_F(RowTest, RefusesWhatTheContextLacks) {
  for (const RowCase& one : RowCases()) {
    const Row* const row = FindRow(one.domain, one.op);
    if (!one.is_claimed || row == nullptr) continue;
    SCOPED_TRACE(NameOf(one));
    // Some forms of an operator have other calls than most have.
    const std::set<std::string> others = {"tanh", "to bool", "p = 1", "ijk->ki"};
    const bool does_without = others.contains(one.name);
    EXPECT_EQ(IsClaimed(one, {.without_methods = {std::string(row->method)}}), does_without)
        << row->method;
  }
}

// WB-48: nor in one whose floats are of 16 bits alone.
TEST_F(RowTest, RefusesTypesThatTheContextLacks) {
  for (const RowCase& one : RowCases()) {
    if (!one.is_claimed) continue;
    GraphBuilder b(one.opset);
    one.build(b);
    const ValueType& type = b.graph->value(b.graph->inputs[0]).type;
    if (type.element_type != DataType::kFloat) continue;
    SCOPED_TRACE(NameOf(one));
    EXPECT_FALSE(IsClaimed(one, {.without_types = "f"}));
  }
}

// WB-48: nor one with operands that are larger than the context allows.
TEST_F(RowTest, RefusesTensorsThatAreTooLarge) {
  for (const RowCase& one : RowCases()) {
    if (!one.is_claimed) continue;
    SCOPED_TRACE(NameOf(one));
    EXPECT_FALSE(IsClaimed(one, {.max_bytes = 1}));
  }
}

}  // namespace
}  // namespace tenon::webnn
