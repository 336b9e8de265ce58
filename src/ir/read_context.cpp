#include "ir/read_context.h"

#include "ir/onnx_fields.h"

namespace tenon {

std::pair<std::string, std::string> ReadEntry(std::string_view bytes, WireErrors& errors) {
  std::pair<std::string, std::string> entry;
  WireReader reader("StringStringEntryProto", bytes, errors);
  while (reader.Next()) {
    if (reader.field<EntryField>() == EntryField::kKey) {
      entry.first = reader.Bytes();
    } else if (reader.field<EntryField>() == EntryField::kValue) {
      entry.second = reader.Bytes();
    }
  }
  return entry;
}

}  // namespace tenon
