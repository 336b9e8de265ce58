#include "base/build_id.h"

#if defined(__linux__)
#include <elf.h>
#include <link.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/arithmetic.h"
#include "base/text.h"

namespace tenon {

#if defined(__linux__)

namespace {

using Note = ElfW(Nhdr);

std::string Hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += Format("{:02x}", byte);
  return text;
}

// The build id among the notes of one segment, or "".
std::string BuildIdIn(std::span<const unsigned char> notes) {
  while (notes.size() >= sizeof(Note)) {
    Note note;
    std::memcpy(&note, notes.data(), sizeof(note));
    const size_t name = sizeof(note);
    const size_t content = name + RoundUp<size_t>(note.n_namesz, 4);
    const size_t end = content + RoundUp<size_t>(note.n_descsz, 4);
    if (end > notes.size()) break;
    const std::string_view owner(reinterpret_cast<const char*>(notes.data() + name), note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && owner == std::string_view("GNU", 4)) {
      return Hexadecimal(notes.subspan(content, note.n_descsz));
    }
    notes = notes.subspan(end);
  }
  return "";
}

struct Search {
  uintptr_t address;  // in the wanted library
  std::string id;
};

// Called for each loaded library, until it returns 1.
int Visit(dl_phdr_info* library, size_t, void* search_pointer) {
  auto& search = *static_cast<Search*>(search_pointer);
  const std::span segments(library->dlpi_phdr, library->dlpi_phnum);
  const auto start_of = [&](const ElfW(Phdr) & segment) {
    return static_cast<uintptr_t>(library->dlpi_addr + segment.p_vaddr);
  };
  const bool is_wanted = std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
    return segment.p_type == PT_LOAD && search.address - start_of(segment) < segment.p_memsz;
  });
  if (!is_wanted) return 0;
  for (const auto& segment : segments) {
    if (segment.p_type != PT_NOTE || !search.id.empty()) continue;
    search.id =
        BuildIdIn({reinterpret_cast<const unsigned char*>(start_of(segment)), segment.p_memsz});
  }
  return 1;
}

}  // namespace

std::string BuildId() {
  Search search = {reinterpret_cast<uintptr_t>(&BuildId), ""};
  dl_iterate_phdr(&Visit, &search);
  return search.id;
}

#else

std::string BuildId() { return ""; }

#endif

}  // namespace tenon
