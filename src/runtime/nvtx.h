// Ranges of NVTX, which NVIDIA's tools show beside what a GPU does. A tool names its library in the
// environment variable NVTX_INJECTION64_PATH, as for every program that uses NVTX 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

struct Node;

// The ranges of one run of a main graph, or of a part of it: "Batch-<tag> Forward" from the first
// node whose description is not "Backward pass", and "Batch-<tag> Backward" from the first node
// that has this description; within them one range for each node.
class NvtxRanges {
 public:
  // Whether a tool is there. Loads its library when it is called for the first time.
  static bool HasTool();

  // To be used only where there is a tool. `tag`: of the run.
  explicit NvtxRanges(std::string_view tag);
  // Ends the ranges. Those that no node began are begun before, so that all come in pairs.
  ~NvtxRanges();
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  // Around a node; `index` is its index in the graph.
  void BeginNode(const Node& node, int64_t index);
  void EndNode();

 private:
  struct Range {
    std::string name;
    uint32_t color;
    uint64_t id = 0;
    bool has_begun = false, has_ended = false;
  };

  static void Begin(Range& range);
  static void End(Range& range);

  Range forward_, backward_;
};

}  // namespace tenon
