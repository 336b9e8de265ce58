#include "rows.h"

#include <algorithm>
#include <bit>

#include "kernel_writer.h"

namespace codegen {
namespace {

// The sum of a row is made of a sum per lane, then by halves: the same bits in every run. Where
// SHUFFLE is defined, 32 lanes exchange their sums without memory.
constexpr const char* kReduce = R"(
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define MAXIMUM(a, b) (isnan(b) || (b) > (a) ? (b) : (a))
#define MINIMUM(a, b) (isnan(b) || (b) < (a) ? (b) : (a))
#define REDUCE(result, start, combine, element) \
  ACCUMULATOR result = start; \
  FOR_COLUMNS { \
    const ACCUMULATOR part = (element); \
    result = combine(result, part); \
  } \
  COMBINE_LANES(result, combine)
#ifdef SHUFFLE
#define COMBINE_LANES(result, combine) \
  for (int offset_ = 16; offset_ > 0; offset_ /= 2) { \
    const ACCUMULATOR other = SHUFFLE(result, offset_); \
    result = combine(result, other); \
  } \
  if (LANE % 32 == 0) scratch[LANE / 32] = result; \
  barrier(CLK_LOCAL_MEM_FENCE); \
  result = scratch[0]; \
  for (int warp_ = 1; warp_ < GROUP / 32; ++warp_) result = combine(result, scratch[warp_]); \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define COMBINE_LANES(result, combine) \
  scratch[LANE] = result; \
  barrier(CLK_LOCAL_MEM_FENCE); \
  for (int half_ = GROUP / 2; half_ > 0; half_ /= 2) { \
    if (LANE < half_) scratch[LANE] = combine(scratch[LANE], scratch[LANE + half_]); \
    barrier(CLK_LOCAL_MEM_FENCE); \
  } \
  result = scratch[0]; \
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  LOCAL ACCUMULATOR scratch[GROUP];
  const int ROW = get_group_id(0);
  const int LANE = get_local_id(0);
)";

// Each lane goes through the columns LANE, LANE + GROUP ... of the row in memory, or, with
// PER_LANE, through as many of them that it has read once.
constexpr const char* kColumnsInMemory = R"(
#define FOR_COLUMNS for (int column = LANE; column < COLUMNS; column += GROUP)
)";
constexpr const char* kColumnsAtHand = R"(
#define FOR_COLUMNS \
  for (int turn = 0, column = LANE; turn < PER_LANE; ++turn, column += GROUP) if (column < COLUMNS)
  ACCUMULATOR at_hand[PER_LANE];
  for (int turn = 0, column = LANE; turn < PER_LANE; ++turn, column += GROUP)
    at_hand[turn] = column < COLUMNS ? IN_MEMORY(column) : 0;
#define X(column_) at_hand[turn]
)";

}  // namespace

Result<Rows> MakeRows(Planner& planner, const TensorRef& tensor, const std::vector<size_t>& axes) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  Rows rows;
  Shape shape;
  Shape strides;
  const auto add = [&](size_t axis, int64_t& count) {
    shape.push_back(tensor->shape[axis]);
    strides.push_back(tensor->strides[axis]);
    count *= tensor->shape[axis];
  };
  const auto is_reduced = [&](size_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  for (size_t axis = 0; axis < tensor->shape.size(); ++axis) {
    if (!is_reduced(axis)) add(axis, rows.rows);
  }
  for (const size_t axis : axes) add(axis, rows.columns);
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef view,
                          planner.View(tensor, std::move(shape), std::move(strides), 0));
  PLUGIN_ASSIGN_OR_RETURN(rows.tensor, planner.Contiguous(view));
  return rows;
}

// Long rows take all items that there may be, short ones as many as have work. Where rows are many,
// fewer items each keep all processors busy.
size_t RowGroupSize(const Planner& planner, const Rows& rows) {
  const Target& target = planner.target();
  constexpr int64_t kMany = 2048;
  const int64_t work = rows.rows >= kMany ? 12 : 4;  // elements of an item
  size_t size = target.row_group_size;
  while (size < target.max_row_group_size && static_cast<int64_t>(size) * work < rows.columns) {
    size *= 2;
  }
  return size;
}

KernelBody WriteRows(KernelWriter& writer, const Rows& rows, const char* name, std::string code,
                     size_t group_size, bool holds_rows) {
  const Elements x = writer.Input(*rows.tensor);
  const std::string columns = writer.Int(rows.columns);
  // As many as registers hold.
  const int64_t per_lane =
      (rows.columns + static_cast<int64_t>(group_size) - 1) / static_cast<int64_t>(group_size);
  const bool is_at_hand = holds_rows && per_lane <= 16;
  std::string head =
      fmt::format("#define GROUP {}\n#define COLUMNS {}\n#define ACCUMULATOR {}\n{}", group_size,
                  columns, IsFloat(rows.tensor->type) ? "float" : "long", kReduce);
  head += fmt::format("#define {}(column_) {}\n", is_at_hand ? "IN_MEMORY" : "X",
                      x.Read("ROW * COLUMNS + (column_)"));
  if (is_at_hand)
    head += fmt::format("#define PER_LANE {}\n", std::bit_ceil(static_cast<uint64_t>(per_lane)));
  head += is_at_hand ? kColumnsAtHand : kColumnsInMemory;
  return {.name = name,
          .code = head + std::move(code),
          .global = {static_cast<size_t>(rows.rows) * group_size, 1, 1},
          .local = {group_size, 1, 1}};
}

}  // namespace codegen
