// The readers of execution graphs on anything: they open or refuse, never crash or hang, and what they give is whole.
// Input: the first byte chooses the reader; the rest is the file.
#include "derive/derive.h"
#include "model/node_graph.h"
#include "read/reader.h"
#include "trace_input.h"

using namespace stepscope;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryFile file(data + 1, size - 1);
  const read::Reader& reader = *read::reader_named(data[0] & 1 ? "chakra" : "execution_trace");
  reader.recognizes({reinterpret_cast<const char*>(data + 1), size - 1});
  read::ReadOptions options;
  options.max_text_bytes = 4 << 20;
  Result<std::vector<Trace>> traces = reader.read(file.path(), options);
  if (!traces) {
    fuzz::must(traces.error().kind != ErrorKind::internal && !traces.error().message.empty(), "a clear error");
    return 0;
  }
  Trace& trace = traces->front();
  const GraphNodes& nodes = trace.nodes;
  fuzz::must(nodes.id.size() == nodes.size() && nodes.place.size() == nodes.size(), "columns of equal length");
  fuzz::must(nodes.size() == 0 || nodes.dependency_begin.size() == nodes.size() + 1, "a range of dependencies each");
  fuzz::must(nodes.size() == 0 || nodes.dependency_begin[nodes.size()] == nodes.depends_on.size(), "all of them");
  fuzz::must(rows_by_id(nodes).size() == nodes.size(), "ids are unique");
  fuzz::must(node_depths(nodes).size() == nodes.size(), "a depth each");
  fuzz::must(derive::derive(trace, {}).has_value(), "derive takes it");
  return 0;
}
