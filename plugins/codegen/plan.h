// What a compiled graph does for inputs of certain shapes: kernels in order, with their arguments,
// and the memory that they use.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph.h"

namespace codegen {

// An argument of a kernel. A buffer takes two: the buffer, and an offset in elements.
struct Argument {
  enum Kind { kInt, kFloat, kBuffer };
  Kind kind = kInt;
  int32_t integer = 0;
  float real = 0;
  int storage = -1;
  int64_t offset = 0;  // in elements, within the storage
  size_t element_size = 1;
};

// A piece of memory.
struct Storage {
  enum Kind {
    kInput,     // of the graph
    kOutput,    // of the graph
    kWeight,    // constant of the graph
    kConstant,  // constant of the plan
    kScratch,   // part of the slab
  };
  Kind kind = kScratch;
  int index = 0;           // among those of its kind
  size_t bytes = 0;        // kScratch
  size_t slab_offset = 0;  // kScratch
  int first_use = -1;      // number of a launch
  int last_use = -1;
};

struct Call;

// A kernel, or a call.
struct Launch {
  std::string name;
  std::string source;
  // Instead of a kernel. Its arguments are kBuffer: its operands, what it also writes, its result,
  // its workspace if it wants one.
  std::shared_ptr<Call> call;
  std::vector<Argument> arguments;
  std::array<size_t, 3> global = {1, 1, 1};
  std::array<size_t, 3> local = {1, 1, 1};
};

struct PlannedOutput {
  DataType type = DataType::kNone;
  Shape shape;
};

struct Plan {
  std::vector<Storage> storages;
  std::vector<Launch> launches;
  std::vector<HostTensor> constants;
  std::vector<PlannedOutput> outputs;
  size_t slab_bytes = 0;
};

// Gives each scratch storage a place in one slab, shared by those that are not in use at once.
void PlaceScratch(Plan& plan);

}  // namespace codegen
