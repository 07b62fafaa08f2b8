// The Arrow C stream: hands out a TableSource batch by batch. No exception leaves a callback; what went wrong is told
// by get_last_error.
#include <cerrno>
#include <exception>

#include "capi/arrow_source.h"

namespace stepscope::capi {
namespace {

struct StreamState {
  TableSource source;
  std::size_t next = 0;
  std::string error;
};

StreamState& state_of(ArrowArrayStream* stream) { return *static_cast<StreamState*>(stream->private_data); }

int refused(StreamState& state, const char* what, int code) {
  state.error = what;
  return code;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  StreamState& state = state_of(stream);
  try {
    *out = state.source.schema();
    return 0;
  } catch (const std::bad_alloc&) {
    return refused(state, "not enough memory for the schema of this table", ENOMEM);
  } catch (const std::exception& error) {
    return refused(state, error.what(), EIO);
  }
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  StreamState& state = state_of(stream);
  *out = ArrowArray{};  // release is null: the end of the stream
  if (state.next == state.source.batches) return 0;
  try {
    *out = state.source.batch(state.next);
    state.next++;
    return 0;
  } catch (const std::bad_alloc&) {
    return refused(state, "not enough memory for a batch of this table", ENOMEM);
  } catch (const std::exception& error) {
    return refused(state, error.what(), EIO);
  }
}

const char* get_last_error(ArrowArrayStream* stream) {
  const StreamState& state = state_of(stream);
  return state.error.empty() ? nullptr : state.error.c_str();
}

void release(ArrowArrayStream* stream) {
  delete &state_of(stream);
  stream->release = nullptr;
  count_alive(-1);
}

}  // namespace

ArrowArrayStream make_stream(TableSource source) {
  ArrowArrayStream stream{};
  stream.private_data = new StreamState{std::move(source), 0, {}};
  stream.get_schema = get_schema;
  stream.get_next = get_next;
  stream.get_last_error = get_last_error;
  stream.release = release;
  count_alive(1);
  return stream;
}

ArrowSchema table_schema(std::string_view name, std::string_view meaning, std::vector<ArrowSchema> columns) {
  SchemaParts parts;
  parts.format = "+s";
  parts.nullable = false;
  parts.metadata = {{"stepscope.table", std::string(name)}, {"stepscope.meaning", std::string(meaning)}};
  parts.children = std::move(columns);
  return make_schema(std::move(parts));
}

SchemaMetadata column_metadata(Unit unit, std::string_view meaning) {
  return {{"unit", std::string(to_string(unit))}, {"meaning", std::string(meaning)}};
}

}  // namespace stepscope::capi
