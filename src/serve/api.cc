#include "serve/api.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/text_parts.h"
#include "report/bundle.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "serve/scene.h"
#include "session/changes.h"
#include "session/session.h"
#include "session/what_if.h"

namespace stepscope::serve {
namespace {

using report::JsonWriter;
constexpr auto kLine = JsonWriter::Layout::line;
constexpr std::string_view kIndex =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>stepscope</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"app.css\">\n</head>\n<body>\n"
    "<div id=\"app\">The page needs JavaScript.</div>\n<script src=\"app.js\"></script>\n</body>\n</html>\n";
constexpr std::size_t kMostLanes = 4096;
constexpr int kMostLongOnes = 3;
constexpr std::uint64_t kMostQueryRows = 10'000;
constexpr double kQuerySeconds = 30;
constexpr std::size_t kLongestSearch = 1000;
constexpr std::string_view kGivePixels = "Give px from 1 to 8192";

// A whole number of the page, which may be written as 1.5e9 or with a fraction.
std::optional<std::int64_t> number(std::string_view text) {
  const auto value = number_in<double>(text);
  if (!value || !(*value > -2e18 && *value < 2e18)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::vector<std::uint32_t> numbers(std::string_view text) {
  std::vector<std::uint32_t> found;
  while (!text.empty() && found.size() < kMostLanes) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (const auto one = number_in<std::uint32_t>(text.substr(0, comma))) found.push_back(*one);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return found;
}

std::string_view state_text(RunState state) {
  switch (state) {
    case RunState::closed: return "closed";
    case RunState::opening: return "opening";
    case RunState::ready: return "ready";
    case RunState::failed: return "failed";
  }
  return "";
}

Response asked_wrongly(std::string_view what, std::string_view hint) { return refusal(400, what, hint); }

Response runs_list(Runs& runs) {
  JsonWriter json;
  json.begin_object().key("schema_version").number(1).key("runs").begin_array();
  for (const RunInfo& run : runs.list()) {
    json.begin_object(kLine).key("id").text(run.id).key("name").text(run.name);
    json.key("state").text(state_text(run.state)).key("share").number(run.share);
    json.key("revision").number(run.revision).key("live").boolean(run.live).key("error");
    if (run.error) {
      json.begin_object(kLine).key("message").text(run.error->message).key("hint").text(run.error->hint).end_object();
    } else {
      json.null();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return {200, "application/json", json.take() + "\n"};
}

Response query_answer(OpenedRun& run, const std::string& sql) {
  query::TableSink sink;
  const auto done = query::run_query(run.source(), sql, {.seconds = kQuerySeconds, .rows = kMostQueryRows}, sink);
  if (!done) return refusal(done.error());
  const Table table = sink.take();
  JsonWriter json;
  json.begin_object().key("columns").begin_array(kLine);
  for (const TableColumn& column : table.columns) json.text(column.name);
  json.end_array().key("rows").begin_array();
  for (const auto& row : table.rows) {
    json.begin_array(kLine);
    for (const Value& value : row) json.value(value);
    json.end_array();
  }
  json.end_array().key("cut").boolean(done->cut).end_object();
  return {200, "application/json", json.take() + "\n"};
}

Response report_answer(const Report& report) { return {200, "application/json", report::to_json(report)}; }

Response what_if_answer(const Run& run, const std::string& lines) {
  const auto changes = session::read_changes(lines);
  if (!changes) return refusal(changes.error());
  const auto report = session::what_if(run, *changes);
  return report ? report_answer(*report) : refusal(report.error());
}

// Asked for by someone else already, or the run is not open yet: ask again.
Response being_made(double share) {
  JsonWriter json;
  json.begin_object(kLine).key("state").text("opening").key("share").number(share).end_object();
  return {202, "application/json", json.take() + "\n"};
}

std::optional<Stretch> stretch_of(const Request& request) {
  const auto from = number(request.get("from")), to = number(request.get("to"));
  if (!from || !to || *to <= *from) return std::nullopt;
  return Stretch{*from, *to};
}

std::optional<std::int64_t> pixels_of(const Request& request) {
  const auto pixels = number(request.get("px"));
  return pixels && *pixels >= 1 && *pixels <= kMostPixels ? pixels : std::nullopt;
}

// What is drawn over and beside the slices.
Response layer_of(const Request& request, const Scene& scene, Stretch stretch) {
  const auto pixels = pixels_of(request);
  if (!pixels) return asked_wrongly("px is no width", kGivePixels);
  if (request.path == "api/counters") {
    return {200, "application/json", scene.counters_json(stretch, *pixels, numbers(request.get("lanes")))};
  }
  std::vector<std::uint32_t> ranks = numbers(request.get("ranks"));
  if (request.get("ranks") == "all") {
    ranks.resize(scene.rank_count());
    std::iota(ranks.begin(), ranks.end(), 0U);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  const auto json = request.path == "api/path" ? scene.path_json(stretch, *pixels, ranks)
                                               : scene.phases_json(stretch, *pixels, ranks);
  return json ? Response{200, "application/json", *json} : being_made(1);
}

}  // namespace

namespace {

// Taken by what may take half a minute (queries, predictions, comparisons, paths) or much memory (files): it must not
// take all who answer.
class LongTurn {
 public:
  explicit LongTurn(std::atomic<int>& taken) : taken_(taken), mine_(taken.fetch_add(1) < kMostLongOnes) {}
  ~LongTurn() { taken_--; }
  LongTurn(const LongTurn&) = delete;
  LongTurn& operator=(const LongTurn&) = delete;
  explicit operator bool() const { return mine_; }

 private:
  std::atomic<int>& taken_;
  bool mine_;
};

Response busy() {
  return refusal(503, "three queries, predictions or comparisons are being made already",
                 "Ask again when one of them was answered");
}

}  // namespace

Api::Asked Api::asked_for(const Request& request, const std::string& name) {
  std::optional<RunInfo> info;
  std::shared_ptr<OpenedRun> run = runs_.get(std::string(request.get(name)), info);
  if (!info) return {nullptr, refusal(404, "there is no such run", "Open the page again: it lists the runs")};
  if (run) return {std::move(run), {}, info->name};
  if (info->state == RunState::failed && info->error) return {nullptr, refusal(*info->error)};
  return {nullptr, being_made(info->share)};
}

Response Api::of_run(const Request& request) {
  const auto [run, refused, name] = asked_for(request, "run");
  if (!run) return refused;
  const std::string& path = request.path;
  // Slices, lanes and times are of one state of a run, and mean something else in the next.
  if (const auto revision = request.get("revision"); !revision.empty() && revision != std::to_string(run->revision())) {
    return refusal(409, "the run was opened anew since its files changed",
                   "The page asks for its newest state by itself");
  }
  if (path == "api/answers") {
    const auto json = run->report_json();
    if (!json) return being_made(1);
    if (!*json) return refusal(json->error());
    return {200, "application/json", **json};
  }
  if (path == "api/query" || path == "api/what_if") {
    if (!request.post) return refusal(405, "this is a POST", "Send the statement, or the changes, as the body");
    const LongTurn turn(long_ones_);
    if (!turn) return busy();
    return path == "api/query" ? query_answer(*run, request.body) : what_if_answer(run->run(), request.body);
  }
  if (path == "api/diff") return diff(request, *run, name);
  return of_scene(request, *run);
}

Response Api::diff(const Request& request, OpenedRun& run, const std::string& name) {
  const auto [before, refused, name_before] = asked_for(request, "before");
  if (!before) return refused;
  const LongTurn turn(long_ones_);
  if (!turn) return busy();
  const auto found = session::compare(before->run(), run.run(), {.name_a = name_before, .name_b = name});
  return found ? report_answer(found->report) : refusal(found.error());
}

Response Api::of_scene(const Request& request, OpenedRun& recorded) {
  const std::string& path = request.path;
  std::shared_ptr<OpenedRun> predicted;
  if (const std::string changes(request.get("changes")); !changes.empty()) {
    predicted = recorded.with_predicted(changes);
    if (!predicted) {
      const LongTurn turn(long_ones_);
      if (!turn) return busy();
      const auto made = recorded.make_predicted(changes);
      if (!made) return refusal(made.error());
      if (!*made) return being_made(1);
      predicted = *made;
    }
  }
  const Scene* scene = (predicted ? *predicted : recorded).scene();
  if (scene == nullptr) return being_made(1);
  if (path == "api/timeline") return {200, "application/json", scene->lanes_json()};
  if (path == "api/search") {
    const std::string_view text = request.get("q");
    if (text.empty() || text.size() > kLongestSearch) return asked_wrongly("q is no text to look for", "Give q=TEXT");
    return {200, "application/json", scene->search_json(text, 200)};
  }
  if (path == "api/slice") {
    const auto rank = number(request.get("rank")), slice = number(request.get("slice"));
    if (!rank || !slice || *rank < 0 || *slice < 0) return asked_wrongly("no slice is named", "Give rank= and slice=");
    const auto json = scene->slice_json(static_cast<std::size_t>(*rank),
                                        static_cast<std::uint32_t>(std::min<std::int64_t>(*slice, UINT32_MAX)));
    if (!json) return refusal(json.error());
    return {200, "application/json", *json};
  }
  if (path == "api/trace") {
    const auto rank = number(request.get("rank"));
    if (!rank || *rank < 0) return asked_wrongly("no rank is named", "Give rank=");
    const LongTurn turn(long_ones_);
    if (!turn) return busy();
    auto bytes = scene->trace_file(static_cast<std::size_t>(*rank));
    if (!bytes) return refusal(bytes.error());
    return {.type = "application/octet-stream", .body = *std::move(bytes), .as_is = true};
  }
  const auto stretch = stretch_of(request);
  if (!stretch) return asked_wrongly("from and to are no stretch of time", "Give from=NS and to=NS after it");
  if (path == "api/path") {
    const LongTurn turn(long_ones_);
    return turn ? layer_of(request, *scene, *stretch) : busy();
  }
  if (path == "api/phases" || path == "api/counters") return layer_of(request, *scene, *stretch);
  std::vector<std::uint32_t> lanes = numbers(request.get("lanes"));
  if (request.get("lanes") == "all") {
    lanes.resize(scene->lane_count());
    std::iota(lanes.begin(), lanes.end(), 0U);
  } else if (lanes.size() >= kMostLanes) {
    return asked_wrongly("more lanes are named than one answer has", "Give lanes=all, or fewer than 4096");
  }
  if (path == "api/selection") return {200, "application/json", scene->selection_json(*stretch, lanes)};
  const auto pixels = pixels_of(request);
  if (!pixels) return asked_wrongly("px is no width", kGivePixels);
  return {200, "application/octet-stream", scene->tiles(*stretch, *pixels, lanes)};
}

Response Api::answer(const Request& request) {
  const std::string& path = request.path;
  if (path.empty() || path == "index.html") {
    if (report::bundle_script().empty()) {
      return {200, "text/plain; charset=utf-8",
              "This build of stepscope has no page, because node was not there when it was made.\n"
              "Install nodejs and npm and build again; stepscope report works as it is.\n"};
    }
    return {200, "text/html; charset=utf-8", std::string(kIndex)};
  }
  if (path == "app.js") return {200, "text/javascript; charset=utf-8", std::string(report::bundle_script())};
  if (path == "app.css") return {200, "text/css; charset=utf-8", std::string(report::bundle_style())};
  if (path == "api/runs") return runs_list(runs_);
  for (const char* known : {"answers", "timeline", "tiles", "slice", "trace", "search", "selection", "path", "phases",
                            "counters", "query", "what_if", "diff"}) {
    if (path == std::string("api/") + known) return of_run(request);
  }
  return refusal(404, "there is no such page", "Open the address that stepscope view printed");
}

}  // namespace stepscope::serve
