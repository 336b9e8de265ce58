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

// `inserted` in the place of an axis.
Shape ReplaceAxis(const Shape& shape, size_t axis, const Shape& inserted) {
  Shape result(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(axis));
  result.insert(result.end(), inserted.begin(), inserted.end());
  result.insert(result.end(), shape.begin() + static_cast<ptrdiff_t>(axis) + 1, shape.end());
  return result;
}

// The elements of one place of an axis, as a view.
Result<TensorRef> Pick(Planner& planner, const TensorRef& data, size_t axis, int64_t place,
                       const Shape& indices) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(data));
  const int64_t size = data->shape[axis];
  if (place < -size || place >= size) {
    return Failure("expected an index in [{}, {}], got {}", -size, size - 1, place);
  }
  return planner.View(data, ReplaceAxis(data->shape, axis, indices),
                      ReplaceAxis(data->strides, axis, Shape(indices.size(), 0)),
                      (place < 0 ? place + size : place) * data->strides[axis]);
}

Status LowerGather(Planner& planner, const Node& node) {
  const TensorRef source = planner.Input(node, 0);
  const TensorRef numbers = planner.Input(node, 1);
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(node.Int("axis", 0), source->shape.size()));
  if (numbers->known && numbers->known->size() == 1) {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef y,
                            Pick(planner, source, axis, (*numbers->known)[0], numbers->shape));
    return planner.SetOutput(node, 0, std::move(y));
  }
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef data, planner.Contiguous(source));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef indices, planner.Contiguous(numbers));
  Shape shape = ReplaceAxis(data->shape, axis, indices->shape);
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
