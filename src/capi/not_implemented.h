// What the slots do that nobody has implemented: they say so, with their name.
#pragma once

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace tenon::capi {

// A new status ORT_NOT_IMPLEMENTED that names the slot, as in "OrtApi::CreateEnv".
OrtStatus* NotImplementedStatus(const char* slot) noexcept;

// A string literal as a template argument.
template <size_t kSize>
struct Literal {
  char text[kSize];
  consteval Literal(const char (&literal)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(literal, kSize, text);
  }
};

// EmptySlot<"OrtApi::CreateEnv", type of the slot>::Call fits the slot. It returns the status
// above, or null, zero or nothing where the slot returns no status.
template <Literal kSlot, class Pointer>
struct EmptySlot;
template <Literal kSlot, class R, class... Args>
struct EmptySlot<kSlot, R (*)(Args...) noexcept> {
  static R Call(Args...) noexcept {
    if constexpr (std::is_same_v<R, OrtStatus*>) {
      return NotImplementedStatus(kSlot.text);
    } else {
      return R();
    }
  }
};
template <Literal kSlot, class R, class... Args>
struct EmptySlot<kSlot, R (*)(Args...)> : EmptySlot<kSlot, R (*)(Args...) noexcept> {};

// A table with EmptySlot in every slot. Table: one of the structs of abi_slots.inc that hold slots
// alone.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"  // "result must be used": see slots.h
template <class Table>
constexpr Table EmptyTable() {
  Table table = {};
#define ABI_SLOT(Struct, Name, slot, ...)                                   \
  if constexpr (std::is_same_v<Table, Struct>) {                            \
    table.Name = EmptySlot<#Struct "::" #Name, decltype(table.Name)>::Call; \
  }
#define ABI_MEMBER(Struct, Name, offset, ...)
#define ABI_SIZE(Struct, bytes)
#include "capi/abi_slots.inc"
#undef ABI_SLOT
#undef ABI_MEMBER
#undef ABI_SIZE
  return table;
}
#pragma GCC diagnostic pop

// A table, and behind its end slots that a client of a later patch release might call.
template <class Table>
struct Padded {
  static constexpr size_t kPaddingSlots = 32;
  Table table;
  OrtStatus* (*behind_the_end[kPaddingSlots])() noexcept;
};

template <class Table>
constexpr Padded<Table> Pad(const Table& table) {
  Padded<Table> padded = {table, {}};
  for (auto& slot : padded.behind_the_end) {
    slot = []() noexcept { return NotImplementedStatus("a slot behind the end of the table"); };
  }
  return padded;
}

}  // namespace tenon::capi
