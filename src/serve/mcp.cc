#include "serve/mcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <vector>

#include "base/version.h"
#include "formats/json_text.h"
#include "query/query.h"
#include "report/advice.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "session/answer_source.h"
#include "session/session.h"

namespace stepscope::serve {
namespace {

using report::JsonWriter;
constexpr auto kLine = JsonWriter::Layout::line;

constexpr std::string_view kProtocol = "2025-06-18", kOlderProtocol = "2024-11-05";
constexpr std::uint64_t kMostRows = 1000;
// An assistant reads no more; what is left out is said.
constexpr std::size_t kMostText = 200'000;
enum RpcError : int { kParseError = -32700, kInvalidRequest = -32600, kNoMethod = -32601, kBadParams = -32602 };

struct Parameter {
  std::string_view name, meaning;
  bool required = true;
};
struct Tool {
  std::string_view name, meaning;
  std::array<Parameter, 2> parameters;  // the second may have no name
};
constexpr Parameter kPath{"path", "Trace file, folder of ranks or run folder, on this machine"};
constexpr std::array kTools{
    Tool{"findings",
         "What to change first to make this PyTorch job faster: causes with place in the code, evidence and predicted "
         "gain, and the partition of a step",
         {kPath, {}}},
    Tool{"answers",
         "Figures and tables of a recording: overview, steps, operators, kernels, memory, communication, ranks … "
         "Without `only` the names of all answers",
         {kPath, {"only", "Names of answers, separated by commas", false}}},
    Tool{"query",
         "A SELECT in SQLite's dialect over the recording, at most 1000 rows; `.tables` and `.schema TABLE` say what "
         "there is",
         {kPath, {"sql", "The statement"}}},
};

std::string text_of(std::string_view object, std::string_view name) {
  for (const formats::RawMember& one : formats::members(object)) {
    if (one.key == name && one.value.starts_with('"')) return formats::value_text(one.value);
  }
  return {};
}

std::string_view raw_of(std::string_view object, std::string_view name) {
  for (const formats::RawMember& one : formats::members(object)) {
    if (one.key == name) return one.value;
  }
  return {};
}

// As it is said again: a string, a whole number or null; nothing for anything else.
std::optional<std::string> id_of(std::string_view raw) {
  if (raw == "null") return "null";
  if (raw.starts_with('"')) return std::move(JsonWriter().text(formats::value_text(raw))).take();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), number);
  if (error != std::errc() || end != raw.data() + raw.size()) return std::nullopt;
  return std::to_string(number);
}

// `write` writes the member that is the result or the error.
template <class Write>
std::string reply(std::string_view id, const Write& write) {
  JsonWriter out;
  out.begin_object(kLine).key("jsonrpc").text("2.0").key("id").raw(id.empty() ? "null" : id);
  write(out);
  out.end_object();
  return out.take();
}

std::string error_reply(std::string_view id, int code, std::string_view sentence) {
  return reply(id, [&](JsonWriter& out) {
    out.key("error").begin_object(kLine).key("code").number(code).key("message").text(sentence).end_object();
  });
}

std::string text_reply(std::string_view id, std::string_view text, bool is_error) {
  return reply(id, [&](JsonWriter& out) {
    out.key("result").begin_object(kLine).key("content").begin_array(kLine).begin_object(kLine);
    out.key("type").text("text").key("text").text(text).end_object().end_array();
    out.key("isError").boolean(is_error).end_object();
  });
}

void write_tool(JsonWriter& out, const Tool& tool) {
  out.begin_object(kLine).key("name").text(tool.name).key("description").text(tool.meaning);
  out.key("inputSchema").begin_object(kLine).key("type").text("object").key("properties").begin_object(kLine);
  for (const Parameter& one : tool.parameters) {
    if (one.name.empty()) continue;
    out.key(one.name).begin_object(kLine).key("type").text("string").key("description").text(one.meaning).end_object();
  }
  out.end_object().key("required").begin_array(kLine);
  for (const Parameter& one : tool.parameters) {
    if (!one.name.empty() && one.required) out.text(one.name);
  }
  out.end_array().end_object().end_object();
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    list = comma == list.npos ? std::string_view() : list.substr(comma + 1);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (!one.empty()) out.emplace_back(one);
  }
  return out;
}

Result<std::string> rows_of(const Run& run, const std::string& sql) {
  query::TableSink sink;
  const auto outcome = query::run_query(session::answer_source(run), sql, {.rows = kMostRows}, sink);
  if (!outcome) return fail(outcome.error());
  const Table table = sink.take();
  JsonWriter out;
  out.begin_object().key("rows").begin_array();
  for (const auto& row : table.rows) {
    out.begin_object(kLine);
    for (std::size_t i = 0; i < row.size(); i++) out.key(table.columns[i].name).value(row[i]);
    out.end_object();
  }
  out.end_array().key("cut").boolean(outcome->cut).end_object();
  return out.take();
}

std::string names_of_answers() {
  JsonWriter out;
  out.begin_object().key("answers").begin_array(kLine);
  for (const std::string_view name : session::answer_names()) out.text(name);
  out.end_array().end_object();
  return out.take();
}

// When anything of it was written last, as far as it can be seen: a recording made anew is read anew.
std::int64_t newest_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::int64_t newest = 0;
  const auto look = [&](const fs::path& file) {
    const auto time = fs::last_write_time(file, error);
    if (!error) newest = std::max<std::int64_t>(newest, time.time_since_epoch().count());
  };
  look(path);
  if (!fs::is_directory(path, error)) return newest;
  for (auto at = fs::recursive_directory_iterator(path, error); !error && at != fs::recursive_directory_iterator();
       at.increment(error)) {
    look(at->path());
  }
  return newest;
}

}  // namespace

Result<const Run*> McpServer::run_at(const std::string& path) {
  if (path.empty()) {
    return fail({ErrorKind::usage, "a path is missing", "", std::nullopt, "Give the argument \"path\""});
  }
  const std::int64_t changed = newest_below(path);
  if (run_ == nullptr || path_ != path || changed_ != changed) {
    run_.reset();  // not two in memory
    Result<Run> opened = open_(path);
    if (!opened) return fail(opened.error());
    run_ = std::make_unique<Run>(*std::move(opened));
    path_ = path;
    changed_ = changed;
  }
  return run_.get();
}

Result<std::string> McpServer::call(std::string_view tool, std::string_view arguments) {
  const Result<const Run*> run = run_at(text_of(arguments, "path"));
  if (!run) return fail(run.error());
  if (tool == "findings") {
    const Result<Report> report = session::advise(**run);
    if (!report) return fail(report.error());
    return report::to_advice_json(*report);
  }
  if (tool == "query") return rows_of(**run, text_of(arguments, "sql"));
  const std::vector<std::string> names = names_in(text_of(arguments, "only"));
  if (names.empty()) return names_of_answers();
  const Result<Report> report = session::answer(**run, names);
  if (!report) return fail(report.error());
  return report::to_json(*report);
}

std::optional<std::string> McpServer::answer(std::string_view message) {
  const std::size_t begin = formats::skip_space(message, 0);
  message = message.substr(std::min(begin, message.size()));
  if (message.empty()) return std::nullopt;
  if (message.front() != '{' || formats::skip_value(message, 0) == message.npos) {
    return error_reply({}, kParseError, "not a JSON object on one line");
  }
  const std::string_view raw_id = raw_of(message, "id"), parameters = raw_of(message, "params");
  const std::string method = text_of(message, "method");
  if (raw_id.empty()) return std::nullopt;  // a notification
  const std::optional<std::string> known_id = id_of(raw_id);
  if (!known_id) return error_reply({}, kInvalidRequest, "the id is no string and no whole number");
  const std::string& id = *known_id;
  if (method.empty()) return error_reply(id, kInvalidRequest, "the method is missing");
  const std::string_view object = parameters.starts_with('{') ? parameters : "{}";
  if (method == "initialize") {
    const std::string asked = text_of(object, "protocolVersion");
    return reply(id, [&](JsonWriter& out) {
      out.key("result")
          .begin_object(kLine)
          .key("protocolVersion")
          .text(asked == kOlderProtocol ? kOlderProtocol : kProtocol);
      out.key("capabilities").begin_object(kLine).key("tools").begin_object(kLine).end_object().end_object();
      out.key("serverInfo").begin_object(kLine).key("name").text("stepscope").key("version").text(version());
      out.end_object().end_object();
    });
  }
  if (method == "ping") {
    return reply(id, [](JsonWriter& out) { out.key("result").begin_object(kLine).end_object(); });
  }
  if (method == "tools/list") {
    return reply(id, [](JsonWriter& out) {
      out.key("result").begin_object(kLine).key("tools").begin_array(kLine);
      for (const Tool& tool : kTools) write_tool(out, tool);
      out.end_array().end_object();
    });
  }
  if (method != "tools/call") return error_reply(id, kNoMethod, fmt::format("no method '{}'", method));
  const std::string name = text_of(object, "name");
  if (std::none_of(kTools.begin(), kTools.end(), [&](const Tool& tool) { return tool.name == name; })) {
    return error_reply(id, kBadParams, fmt::format("no tool '{}'; there are findings, answers and query", name));
  }
  const std::string_view arguments = raw_of(object, "arguments");
  Result<std::string> text = fail({ErrorKind::internal, "nothing was answered", "", std::nullopt, ""});
  try {
    text = call(name, arguments.starts_with('{') ? arguments : "{}");
  } catch (const std::exception& error) {  // such as too little memory: the session goes on
    text = fail({ErrorKind::internal, error.what(), "", std::nullopt, "Ask for less, or of a smaller recording"});
  }
  if (!text) return text_reply(id, to_text(text.error()), true);
  if (text->size() > kMostText) {
    const std::size_t size = text->size();
    text->resize(kMostText);
    *text += fmt::format("\n… cut: {} of {} bytes; ask for less, or with the tool query", kMostText, size);
  }
  return text_reply(id, *text, false);
}

}  // namespace stepscope::serve
