// The functions of include/stepscope/stepscope.h. Each checks its arguments, calls one function of the core and turns
// the outcome into plain C; no exception gets past guarded().
#include "stepscope/stepscope.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/version.h"
#include "capi/opened.h"
#include "query/query.h"
#include "report/advice.h"
#include "report/json_writer.h"
#include "report/memory_pages.h"
#include "report/report.h"
#include "session/session.h"

struct stepscope_run {
  std::shared_ptr<stepscope::capi::Opened> opened;
};

namespace {

using namespace stepscope;

char* copy_text(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

Error usage(std::string message, std::string hint = {}) {
  return {ErrorKind::usage, std::move(message), "", std::nullopt, std::move(hint)};
}

// Runs `body`, which returns a Result<T>; gives its value, or `failed` with *error set.
template <class T, class Body>
T guarded(char** error, T failed, Body&& body) {
  if (error != nullptr) *error = nullptr;
  Error problem;
  try {
    try {
      Result<T> outcome = body();
      if (outcome) return std::move(*outcome);
      problem = std::move(outcome.error());
    } catch (const std::bad_alloc&) {
      problem = {ErrorKind::too_large, "there is not enough memory", "", std::nullopt,
                 "Use a machine with more memory, or open fewer files at once"};
    } catch (const std::exception& thrown) {
      problem = {ErrorKind::internal, thrown.what(), "", std::nullopt, "Report this as a defect of stepscope"};
    }
    if (error != nullptr) *error = copy_text(capi::error_json(problem));
  } catch (...) {  // not even the error fits in memory
  }
  return failed;
}

template <class Body>
char* guarded_text(char** error, Body&& body) {
  return guarded<char*>(error, nullptr, [&]() -> Result<char*> {
    Result<std::string> text = body();
    if (!text) return fail(std::move(text.error()));
    char* copy = copy_text(*text);
    if (copy == nullptr) throw std::bad_alloc();
    return copy;
  });
}

Result<std::vector<std::string>> texts(const char* const* list, std::size_t count, const char* what) {
  std::vector<std::string> all;
  if (list == nullptr && count != 0) return fail(usage(std::string("the list of ") + what + " is NULL"));
  for (std::size_t i = 0; i < count; i++) {
    if (list[i] == nullptr) return fail(usage(std::string("one of the ") + what + " is NULL"));
    all.emplace_back(list[i]);
  }
  return all;
}

// The caller's struct may be older (shorter) than ours; what it lacks keeps its default.
session::OpenOptions read_options(const stepscope_options* given) {
  stepscope_options plain{sizeof(stepscope_options), 1, 0, nullptr, nullptr, nullptr, nullptr, nullptr};
  if (given != nullptr) std::memcpy(&plain, given, std::min(given->struct_size, sizeof(plain)));
  session::OpenOptions options;
  options.use_cache = plain.use_cache != 0;
  options.threads = plain.threads;
  if (plain.rules_path != nullptr) options.rules_path = plain.rules_path;
  if (plain.peaks_path != nullptr) options.peaks_path = plain.peaks_path;
  if (plain.flop_rules_path != nullptr) options.flop_rules_path = plain.flop_rules_path;
  if (plain.progress != nullptr) {
    options.progress = [call = plain.progress, user = plain.user](std::string_view what, double share) {
      call(user, std::string(what).c_str(), share);
    };
  }
  return options;
}

query::Limits read_limits(const stepscope_query_limits* given) {
  stepscope_query_limits plain{};
  if (given != nullptr) std::memcpy(&plain, given, std::min(given->struct_size, sizeof(plain)));
  query::Limits limits;
  if (plain.seconds > 0) limits.seconds = std::min(plain.seconds, 1e9);
  if (plain.memory_bytes != 0) limits.memory_bytes = plain.memory_bytes;
  limits.rows = plain.rows;
  return limits;
}

const Trace* find_rank(const Run& run, std::int64_t rank) {
  for (const Trace& trace : run.traces) {
    if (trace.rank.rank == rank) return &trace;
  }
  return nullptr;
}

const Error kNoRun = usage("the run is NULL", "Call stepscope_open first");

std::atomic<void* (*)(void*)> g_get_context{nullptr};  // CPython's PyCapsule_GetContext, the same for the process

}  // namespace

const char* stepscope_version(void) { return stepscope::version().data(); }

uint32_t stepscope_abi_version(void) { return STEPSCOPE_ABI_VERSION; }

void stepscope_free_text(char* text) { std::free(text); }

stepscope_run* stepscope_open(const char* const* paths, size_t count, const stepscope_options* options, char** error) {
  return guarded<stepscope_run*>(error, nullptr, [&]() -> Result<stepscope_run*> {
    auto list = texts(paths, count, "paths");
    if (!list) return fail(std::move(list.error()));
    if (list->empty()) return fail(usage("no path was given", "Name a trace file, a folder or a pattern"));
    Result<Run> run = session::open(*list, read_options(options));
    if (!run) return fail(std::move(run.error()));
    return new stepscope_run{std::make_shared<capi::Opened>(std::move(*run))};
  });
}

void stepscope_close(stepscope_run* run) { delete run; }

char* stepscope_answer_names(char** error) {
  return guarded_text(error, []() -> Result<std::string> {
    report::JsonWriter json;
    json.begin_array(report::JsonWriter::Layout::line);
    for (const std::string_view name : session::answer_names()) json.text(name);
    json.end_array();
    return json.take();
  });
}

char* stepscope_report(stepscope_run* run, const char* const* names, size_t count, char** error) {
  return guarded_text(error, [&]() -> Result<std::string> {
    if (run == nullptr) return fail(kNoRun);
    auto list = texts(names, count, "names");
    if (!list) return fail(std::move(list.error()));
    Result<Report> made = session::answer(run->opened->run(), *list);
    if (!made) return fail(std::move(made.error()));
    return report::to_json(*made);
  });
}

char* stepscope_advise(stepscope_run* run, char** error) {
  return guarded_text(error, [&]() -> Result<std::string> {
    if (run == nullptr) return fail(kNoRun);
    Result<Report> made = session::advise(run->opened->run());
    if (!made) return fail(std::move(made.error()));
    return report::to_advice_json(*made);
  });
}

char* stepscope_tables(stepscope_run* run, int with_answers, char** error) {
  return guarded_text(error, [&]() -> Result<std::string> {
    if (run == nullptr) return fail(kNoRun);
    return capi::list_tables(*run->opened, with_answers != 0);
  });
}

int stepscope_table(stepscope_run* run, const char* name, struct ArrowArrayStream* out, char** error) {
  if (out != nullptr) *out = ArrowArrayStream{};
  return guarded<int>(error, 1, [&]() -> Result<int> {
    if (run == nullptr) return fail(kNoRun);
    if (name == nullptr || out == nullptr) return fail(usage("the name of the table or the place for it is NULL"));
    Result<capi::TableSource> source = capi::find_table(run->opened, name);
    if (!source) return fail(std::move(source.error()));
    *out = capi::make_stream(std::move(*source));
    return 0;
  });
}

int stepscope_query(stepscope_run* run, const char* sql, const stepscope_query_limits* limits,
                    struct ArrowArrayStream* out, int32_t* cut, char** error) {
  if (out != nullptr) *out = ArrowArrayStream{};
  return guarded<int>(error, 1, [&]() -> Result<int> {
    if (run == nullptr) return fail(kNoRun);
    if (sql == nullptr || out == nullptr) return fail(usage("the statement or the place for its rows is NULL"));
    Result<capi::QueryResult> result = run->opened->query(sql, read_limits(limits));
    if (!result) return fail(std::move(result.error()));
    if (cut != nullptr) *cut = result->cut ? 1 : 0;
    *out = capi::make_stream(capi::value_source("query", sql, std::move(result->table)));
    return 0;
  });
}

char* stepscope_slice_text(stepscope_run* run, int64_t rank, uint32_t slice, char** error) {
  return guarded_text(error, [&]() -> Result<std::string> {
    if (run == nullptr) return fail(kNoRun);
    const Trace* trace = find_rank(run->opened->run(), rank);
    if (trace == nullptr) return fail(usage("there is no rank " + std::to_string(rank) + " in this run"));
    if (slice >= trace->slices.size()) {
      return fail(usage("rank " + std::to_string(rank) + " has no slice " + std::to_string(slice),
                        "Use a number below " + std::to_string(trace->slices.size())));
    }
    return session::slice_text(*trace, static_cast<SliceId>(slice));
  });
}

int stepscope_memory_pages(const char* folder, char** error) {
  return guarded<int>(error, 1, [&]() -> Result<int> {
    if (folder == nullptr) return fail(usage("the folder is NULL"));
    const std::string path = std::string(folder) + "/memory_state.json";
    session::OpenOptions options;
    options.use_cache = false;
    Result<Run> run = session::open(std::span(&path, 1), options);
    if (!run) return fail(std::move(run.error()));
    const std::string name = "memory_state";
    Result<Report> made = session::answer(*run, std::span(&name, 1));
    if (!made) return fail(std::move(made.error()));
    if (auto written = report::write_memory_pages(*made, folder); !written) return fail(std::move(written.error()));
    return 0;
  });
}

struct ArrowArrayStream* stepscope_stream_new(void) {
  return new (std::nothrow) ArrowArrayStream{};
}

void stepscope_stream_free(struct ArrowArrayStream* stream) {
  if (stream != nullptr && stream->release != nullptr) stream->release(stream);
  delete stream;
}

void stepscope_capsule_setup(void* (*get_context)(void* capsule)) { g_get_context = get_context; }

void stepscope_capsule_free(void* capsule) {
  if (const auto get_context = g_get_context.load()) {
    stepscope_stream_free(static_cast<ArrowArrayStream*>(get_context(capsule)));
  }
}

int64_t stepscope_alive(void) { return stepscope::capi::alive(); }
