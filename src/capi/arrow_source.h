// What an Arrow stream is fed from: a schema and numbered record batches, made when asked for.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "capi/arrow_data.h"
#include "model/answer.h"
#include "model/trace.h"
#include "tables/table_spec.h"

namespace stepscope::capi {

struct TableSource {
  std::function<ArrowSchema()> schema;
  std::size_t batches = 0;
  std::function<ArrowArray(std::size_t batch)> batch;
};

// The table `spec` of all traces of `run`, one batch each; the batches keep `run` alive.
TableSource model_source(const tables::TableSpec& spec, std::shared_ptr<const Run> run);
// A table of plain values as one batch; `owner` of the table is kept until the stream is released.
TableSource value_source(std::string name, std::string meaning, std::shared_ptr<const Table> table);
TableSource series_source(std::string name, std::shared_ptr<const Series> series);

// Moves `source` into a C stream.
ArrowArrayStream make_stream(TableSource source);

ArrowSchema table_schema(std::string_view name, std::string_view meaning, std::vector<ArrowSchema> columns);
SchemaMetadata column_metadata(Unit unit, std::string_view meaning);

}  // namespace stepscope::capi
