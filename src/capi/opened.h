// Opened: what a handle of the C ABI stands for. The run is const; answers are made once, when first asked for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "capi/arrow_source.h"
#include "model/answer.h"
#include "model/trace.h"
#include "query/query.h"

namespace stepscope::capi {

struct QueryResult {
  std::shared_ptr<const Table> table;
  bool cut = false;
};

class Opened {
 public:
  explicit Opened(Run run) : run_(std::move(run)) {}

  const Run& run() const { return run_; }
  // The answer `name`, computed at the first call; from any thread.
  Result<std::shared_ptr<const Answer>> answer(const std::string& name);
  // The rows of a statement; those of an earlier call while anybody still holds them.
  Result<QueryResult> query(const std::string& sql, const query::Limits& limits);

 private:
  struct Known {
    std::weak_ptr<const Table> table;
    bool cut = false;
  };

  const Run run_;
  std::mutex mutex_;  // guards answers_; held while one is made, so that no answer is made twice
  std::map<std::string, std::shared_ptr<const Answer>, std::less<>> answers_;
  std::mutex queries_mutex_;                                        // guards queries_; not held while one runs
  std::map<std::pair<std::string, std::uint64_t>, Known> queries_;  // by statement and limit of rows
};

// The source of the table `name`: a table of the model, or "answers.ANSWER.TABLE". It keeps `opened` alive.
Result<TableSource> find_table(const std::shared_ptr<Opened>& opened, std::string_view name);

// JSON list of all tables, as stepscope_tables promises it.
Result<std::string> list_tables(Opened& opened, bool with_answers);

// {"kind", "message", "file", "offset", "hint"}
std::string error_json(const Error& error);

}  // namespace stepscope::capi
