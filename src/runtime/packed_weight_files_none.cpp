// For hosts without files that processes share, such as WebAssembly.
#include "runtime/packed_weight_files.h"

namespace tenon {

Result<std::shared_ptr<PackedWeightFiles>> PackedWeightFiles::Open(std::string folder,
                                                                   const Logger&) {
  return NotImplemented("folder of packed weights '{}': there are no such files here", folder);
}

std::optional<PackedWeightFiles::Key> PackedWeightFiles::KeyOf(const Tensor&, std::string_view,
                                                               size_t) const {
  return std::nullopt;
}
std::optional<Tensor> PackedWeightFiles::Load(const Key&) const { return std::nullopt; }
void PackedWeightFiles::Store(const Key&, const Tensor&) {}

}  // namespace tenon
