// Gather: rows of a table, found by numbers that are on the device.

#include "kernel_writer.h"
#include "operators.h"

namespace codegen {
namespace {

KernelBody WriteGather(KernelWriter& writer, const TensorRef& data, const TensorRef& indices,
                       size_t axis, int64_t count, size_t group_size) {
  const int64_t inner =
      ElementCount({data->shape.begin() + static_cast<ptrdiff_t>(axis) + 1, data->shape.end()});
  const Elements table = writer.Input(*data);
  const Elements numbers = writer.Input(*indices);
  std::string code =
      fmt::format("#define COUNT {}\n#define INNER {}\n#define INDICES {}\n#define SIZE {}\n",
                  writer.Int(count), writer.Int(inner), writer.Int(ElementCount(indices->shape)),
                  writer.Int(data->shape[axis]));
  // A number out of range has no row to give, and a device cannot fail: its row is all zeros.
  code += fmt::format(R"(
  const int item = get_global_id(0);
  if (item >= COUNT) return;
  const long number = {};
  const long place = number < 0 ? number + SIZE : number;
  if (place >= 0 && place < SIZE)
    STORE(item, {});
  else
    STORE(item, 0);
)",
                      numbers.Read("item / INNER % INDICES"),
                      table.Read("((item / INNER / INDICES) * SIZE + (int)place) * INNER + "
                                 "item % INNER"));
  const auto items = (static_cast<size_t>(count) + group_size - 1) / group_size * group_size;
  return {.name = "gather",
          .code = std::move(code),
          .global = {items, 1, 1},
          .local = {group_size, 1, 1}};
}

Status LowerGather(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef data, planner.Contiguous(planner.Input(node, 0)));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef indices, planner.Contiguous(planner.Input(node, 1)));
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(node.Int("axis", 0), data->shape.size()));
  Shape shape(data->shape.begin(), data->shape.begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.end(), indices->shape.begin(), indices->shape.end());
  shape.insert(shape.end(), data->shape.begin() + static_cast<ptrdiff_t>(axis) + 1,
               data->shape.end());
  if (data->shape[axis] == 0 && ElementCount(shape) > 0) {
    return Failure("expected elements to choose from, got {}", data->shape);
  }
  const int64_t count = ElementCount(shape);
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(
          data->type, std::move(shape),
          [data, indices, axis, count, size = planner.group_size()](KernelWriter& writer) {
            return WriteGather(writer, data, indices, axis, count, size);
          }));
}

}  // namespace

std::span<const Operator> GatherOperators() {
  static constexpr Operator kRows[] = {{.type = "Gather", .lower = LowerGather}};
  return kRows;
}

}  // namespace codegen
