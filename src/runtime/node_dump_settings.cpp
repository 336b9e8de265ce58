#include "runtime/node_dump_settings.h"

#include <charconv>

#include "base/string_map.h"

namespace tenon {
namespace {

#define TENON_DUMP_PREFIX "ORT_DEBUG_NODE_IO_"
constexpr char kShapes[] = TENON_DUMP_PREFIX "DUMP_SHAPE_DATA";
constexpr char kPlacement[] = TENON_DUMP_PREFIX "DUMP_NODE_PLACEMENT";
constexpr char kInputs[] = TENON_DUMP_PREFIX "DUMP_INPUT_DATA";
constexpr char kOutputs[] = TENON_DUMP_PREFIX "DUMP_OUTPUT_DATA";
constexpr char kStatistics[] = TENON_DUMP_PREFIX "DUMP_STATISTICS_DATA";
constexpr char kNames[] = TENON_DUMP_PREFIX "NAME_FILTER";
constexpr char kOpTypes[] = TENON_DUMP_PREFIX "OP_TYPE_FILTER";
constexpr char kDestination[] = TENON_DUMP_PREFIX "DUMP_DATA_DESTINATION";
constexpr char kFolder[] = TENON_DUMP_PREFIX "OUTPUT_DIR";
constexpr char kAppendsRank[] = TENON_DUMP_PREFIX "APPEND_RANK_TO_FILE_NAME";
constexpr char kAllNodesAreOk[] = TENON_DUMP_PREFIX "DUMPING_DATA_TO_FILES_FOR_ALL_NODES_IS_OK";
constexpr char kDatabasePrefix[] = TENON_DUMP_PREFIX "SQLITE_DB_PREFIX";
constexpr char kThreshold[] = TENON_DUMP_PREFIX "SNIPPET_THRESHOLD";
constexpr char kEdgeItems[] = TENON_DUMP_PREFIX "SNIPPET_EDGE_ITEMS";
#undef TENON_DUMP_PREFIX
constexpr const char* kVariables[] = {
    kShapes,      kPlacement, kInputs,      kOutputs,       kStatistics,     kNames,     kOpTypes,
    kDestination, kFolder,    kAppendsRank, kAllNodesAreOk, kDatabasePrefix, kThreshold, kEdgeItems,
};
constexpr char kRank[] = "OMPI_COMM_WORLD_RANK";

// Variables by name; the value is "" for those that are not set.
class Variables {
 public:
  explicit Variables(StringMap set) : set_(std::move(set)) {}

  std::string Text(const char* name) const {
    const auto found = set_.find(name);
    return found == set_.end() ? "" : found->second;
  }

  // Leaves `*flag` as it is if the variable is not set.
  Status ReadFlag(const char* name, bool* flag) const {
    const std::string text = Text(name);
    if (text.empty()) return OkStatus();
    if (text != "0" && text != "1")
      return InvalidArgument("{}: expected 0 or 1, got '{}'", name, text);
    *flag = text == "1";
    return OkStatus();
  }

  Status ReadCount(const char* name, size_t* count) const {
    const std::string text = Text(name);
    if (text.empty()) return OkStatus();
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, *count);
    if (error == std::errc() && stop == end) return OkStatus();
    return InvalidArgument("{}: expected a number of elements, got '{}'", name, text);
  }

  // The names in a list separated by semicolons.
  NodeDumpSettings::Names Names(const char* name) const {
    const std::string text = Text(name);
    NodeDumpSettings::Names names;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(';', at), text.size());
      if (end > at) names.insert(text.substr(at, end - at));
      at = end + 1;
    }
    return names;
  }

 private:
  const StringMap set_;
};

Status ReadDestination(const Variables& variables, NodeDumpSettings& settings) {
  const std::string destination = variables.Text(kDestination);
  settings.into_files = destination == "files";
  if (destination == "sqlite") {
    return InvalidArgument("{}: this build of Tenon cannot write 'sqlite'; it has stdout and files",
                           kDestination);
  }
  if (!destination.empty() && destination != "stdout" && !settings.into_files) {
    return InvalidArgument("{}: expected stdout, files or sqlite, got '{}'", kDestination,
                           destination);
  }
  settings.folder = variables.Text(kFolder);
  if (!settings.folder.empty() && settings.folder.back() != '/') settings.folder += '/';
  bool appends_rank = false, is_confirmed = false;
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kAppendsRank, &appends_rank));
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kAllNodesAreOk, &is_confirmed));
  if (appends_rank) {
    const std::string rank = variables.Text(kRank);
    settings.file_suffix = rank.empty() ? "_default_rank_0" : "_rank_" + rank;
  }
  const bool is_everything = settings.into_files && (settings.input_data || settings.output_data) &&
                             settings.names.empty() && settings.op_types.empty();
  if (!is_everything || is_confirmed) return OkStatus();
  return InvalidArgument(
      "the data of all nodes would go to files: choose nodes with {} or {}, or confirm with {}=1",
      kNames, kOpTypes, kAllNodesAreOk);
}

}  // namespace

Result<std::optional<NodeDumpSettings>> NodeDumpSettings::Read(
    FunctionRef<const char*(const char* name)> variable) {
  StringMap set;
  for (const char* const name : kVariables) {
    const char* const value = variable(name);
    if (value != nullptr && *value != '\0') set.emplace(name, value);
  }
  if (set.empty()) return std::optional<NodeDumpSettings>();
  if (const char* const rank = variable(kRank)) set.emplace(kRank, rank);
  const Variables variables(std::move(set));
  NodeDumpSettings settings;
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kShapes, &settings.shapes));
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kPlacement, &settings.placement));
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kInputs, &settings.input_data));
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kOutputs, &settings.output_data));
  TENON_RETURN_IF_ERROR(variables.ReadFlag(kStatistics, &settings.statistics));
  TENON_RETURN_IF_ERROR(variables.ReadCount(kThreshold, &settings.snippet_threshold));
  TENON_RETURN_IF_ERROR(variables.ReadCount(kEdgeItems, &settings.snippet_edge_items));
  settings.names = variables.Names(kNames);
  settings.op_types = variables.Names(kOpTypes);
  TENON_RETURN_IF_ERROR(ReadDestination(variables, settings));
  return std::optional<NodeDumpSettings>(std::move(settings));
}

}  // namespace tenon
