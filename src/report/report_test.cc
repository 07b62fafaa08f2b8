// The writers on answers made by hand: unknown values, numbers that JSON lacks, names from hell, empty tables.
#include "report/report.h"

#include <doctest/doctest.h>
#include <simdjson.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "report/advice.h"
#include "report/json_writer.h"
#include "report/page.h"
#include "report/utf8.h"

using namespace stepscope;
using namespace stepscope::report;

namespace {

const std::string kHugeName = "void f<" + std::string(5000, 'x') + ">(int)";
const std::string kBadName = std::string("bad \xff\x80 name \x1b[31m \"quoted\", with\ncomma \0 and nul", 47);

Report hostile_report() {
  Report report;
  report.path = "some/\xffpath.json";
  report.inputs.push_back(
      {.path = report.path, .format = "chrome_trace", .rank = 3, .rank_source = "order given", .events = 7});
  report.issues.push_back(
      {"cut", Severity::lost, "the file ends inside an event", "Record it again", 2, report.path, 17, {}});
  report.issues.push_back({"odd", Severity::info, "odd \x1b]0;title\x07", "", 1, "", {}, {}});
  Answer answer{.name = "overview", .summary = "what?"};
  answer.scalars = {{"unknown_ns", {}, Unit::ns, "not recorded"},
                    {"nan", std::nan(""), Unit::ratio, ""},
                    {"most", std::numeric_limits<std::int64_t>::max(), Unit::count, "\xe2\x28"},
                    {"device", std::string(kBadName), Unit::none, "a name"}};
  Table table{"by_name",
              {{"name", ValueType::text, Unit::none, "the name"},
               {"total_ns", ValueType::integer, Unit::ns, ""},
               {"share", ValueType::real, Unit::ratio, ""},
               {"is_graph", ValueType::boolean, Unit::none, ""}},
              {}};
  table.rows = {{kHugeName, std::int64_t{5}, std::numeric_limits<double>::infinity(), true},
                {kBadName, {}, std::nan(""), false},
                {std::string(), std::int64_t{-1}, -0.25, {}}};
  answer.tables = {table, {"empty", {{"name"}}, {}}, {"bare", {}, {}}};
  answer.series = {{"busy", Unit::ratio, {1, 2}, {0.5, std::nan("")}},
                   {"eth0 sent", Unit::bytes, {1}, {5}, {}, "sent", kBadName, "/s", {0, 1}}};
  answer.bands = {{"steps", 3, {{1, 5, kBadName}, {5, 9, "2", 0.5}}}};
  Finding finding{.id = "host_bound", .cause = "host", .sentence = "the host is late"};
  finding.where.rank = 3;
  finding.evidence = {{"gap", std::int64_t{12'000}, Unit::ns, {}},
                      {"why", {}, Unit::none, "stepscope report x --only idle"}};
  finding.gain_reason = "not simulated";
  answer.findings = {finding};
  finding.gain_reason = "";
  finding.gain = Gain{.speedup_low = 1, .speedup_high = std::numeric_limits<double>::infinity()};
  answer.findings.push_back(finding);
  answer.notes = {"a note", ""};
  report.answers.push_back(answer);
  report.answers.push_back({.name = "steps"});
  report.failed = {{"kernels", "there was no kernel"}};
  return report;
}

simdjson::dom::element parsed(simdjson::dom::parser& parser, const std::string& text) {
  simdjson::dom::element root;
  const auto error = parser.parse(text).get(root);  // checks the UTF-8 as well
  REQUIRE(error == simdjson::SUCCESS);
  return root;
}

}  // namespace

TEST_CASE("JSON is valid UTF-8 and as the specification says, whatever the names") {
  const std::string text = to_json(hostile_report());
  CHECK(valid_utf8(text) == text);
  simdjson::dom::parser parser;
  const auto root = parsed(parser, text);
  CHECK(root["schema_version"].get_int64().value() == 1);
  CHECK(root["input"]["files"].at(0)["world_size"].is_null());
  CHECK(root["input"]["files"].at(0)["rank"].get_int64().value() == 3);
  CHECK(root["issues"].at(0)["offset"].get_int64().value() == 17);
  CHECK(root["issues"].at(0)["event"].is_null());
  const auto overview = root["answers"]["overview"];
  CHECK(overview["scalars"]["unknown_ns"]["value"].is_null());
  CHECK(overview["scalars"]["nan"]["value"].is_null());
  CHECK(overview["scalars"]["most"]["value"].get_int64().value() == std::numeric_limits<std::int64_t>::max());
  const auto rows = overview["tables"]["by_name"]["rows"];
  CHECK(rows.at(0).at(0).get_string().value() == kHugeName);
  CHECK(rows.at(0).at(2).is_null());
  CHECK(rows.at(1).at(1).is_null());
  CHECK(rows.at(2).at(2).get_double().value() == -0.25);
  CHECK(overview["tables"]["empty"]["rows"].get_array().value().size() == 0);
  CHECK(overview["series"]["busy"]["v"].at(1).is_null());
  CHECK(overview["series"]["busy"]["metric"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(overview["series"]["eth0 sent"]["suffix"].get_string().value() == "/s");
  CHECK(overview["series"]["eth0 sent"]["ranks"].at(1).get_int64().value() == 1);
  const auto bands = overview["bands"].at(0);
  CHECK(bands["rank"].get_int64().value() == 3);
  CHECK(bands["end_ns"].at(1).get_int64().value() == 9);
  CHECK(bands["label"].at(1).get_string().value() == "2");
  CHECK(bands["share"].at(1).get_double().value() == 0.5);
  CHECK(root["answers"]["steps"]["bands"].error() == simdjson::NO_SUCH_FIELD);
  CHECK(overview["findings"].at(0)["gain"].is_null());
  CHECK(overview["findings"].at(0)["gain_reason"].get_string().value() == "not simulated");
  CHECK(overview["findings"].at(1)["gain"]["speedup_high"].is_null());
  CHECK(overview["findings"].at(1)["gain_reason"].is_null());
  CHECK(root["failed"]["kernels"].get_string().value() == "there was no kernel");
}

TEST_CASE("the same report gives the same bytes") {
  CHECK(to_json(hostile_report()) == to_json(hostile_report()));
  CHECK(to_csv(hostile_report()) == to_csv(hostile_report()));
}

TEST_CASE("a report without anything is still a report") {
  simdjson::dom::parser parser;
  CHECK(parsed(parser, to_json({}))["answers"].is_object());
  CHECK(to_csv({}).empty());
  CHECK_FALSE(to_text({}, {}).empty());
}

TEST_CASE("advice says what steps it is about where the recorded ones took longer") {
  const auto text = [](std::int64_t recording_ns) {
    Report report;
    Answer& answer = report.answers.emplace_back();
    answer.name = "advice";
    answer.scalars = {{"step_ns", std::int64_t{6'000'000}, Unit::ns, ""},
                      {"recording_ns", recording_ns, Unit::ns, ""},
                      {"bound_by", std::string("a thread"), Unit::none, ""},
                      {"bound_share", 1.0, Unit::ratio, ""}};
    return to_advice_text(report, {});
  };
  CHECK(text(1'000'000).find("Recorded steps took 7.00 ms; figures here are") != std::string::npos);
  CHECK(text(-2'000'000).find("Recorded steps took 4.00 ms") != std::string::npos);
  CHECK(text(100'000).find("Recorded steps") == std::string::npos);
}

TEST_CASE("the first report of a folder of telemetry leads to what was sampled") {
  const auto answer = [](const char* name, std::vector<Table> tables) {
    return Answer{.name = name, .summary = "", .tables = std::move(tables)};
  };
  const Table empty{.name = "ranks", .columns = {{"rank"}}, .rows = {}};
  Table series{.name = "series", .columns = {{"name"}}, .rows = {{std::string("cpu_time")}}};
  Report report{.path = "folder", .answers = {answer("overview", {empty}), answer("steps", {empty})}};
  report.answers.push_back(answer("system", {empty, series}));
  CHECK(to_text(report, {}).find("Next: stepscope report folder --only system") != std::string::npos);
  report.answers.push_back(answer("kernels", {series}));  // of a recording, its kernels
  CHECK(to_text(report, {}).find("Next: stepscope report folder --only kernels") != std::string::npos);
}

TEST_CASE("a tree of many rows is a screenful in the text, of its largest, and whole elsewhere or where asked") {
  Table tree{.name = "at_peak",
             .columns = {{"path"}, {"total_bytes", ValueType::integer, Unit::bytes, ""}, {"depth"}},
             .rows = {}};
  for (std::int64_t i = 0; i < 90; i++) tree.rows.push_back({"p" + std::to_string(i), i % 30, Value()});
  const Report report{.path = "state", .answers = {{.name = "memory_state", .summary = "", .tables = {tree}}}};
  TextStyle style{.max_rows = 0, .details = true};
  const std::string cut = to_text(report, style);
  CHECK(cut.find("the 20 largest of 90 rows; all: --rows 0") != cut.npos);
  CHECK(cut.find("p29 ") < cut.find("p59 "));  // in the order of the table
  CHECK(cut.find("p53 ") != cut.npos);
  CHECK(cut.find("p83 ") == cut.npos);
  CHECK(cut.find("p22 ") == cut.npos);
  style.every_row = true;
  CHECK(to_text(report, style).find("p60 ") != std::string::npos);
  CHECK(to_csv(report).find("p60,0") != std::string::npos);
  CHECK(to_json(report).find("\"p60\"") != std::string::npos);
  style = {.max_rows = 70, .details = true};
  CHECK(to_text(report, style).find("p69 ") != std::string::npos);  // as many as asked for
}

TEST_CASE("CSV keeps exact values, quotes what needs it and leaves unknown empty") {
  const std::string csv = to_csv(hostile_report());
  CHECK(valid_utf8(csv) == csv);
  CHECK(csv.find("# overview.by_name\nname,total_ns,share,is_graph\n") != csv.npos);
  CHECK(csv.find(",5,,true\n") != csv.npos);
  CHECK(csv.find(",,,false\n") != csv.npos);
  CHECK(csv.find("\n,-1,-0.25,\n") != csv.npos);
  CHECK(csv.find("\"\"quoted\"\", with\ncomma") != csv.npos);
  CHECK(csv.find("# overview.empty\nname\n\n") != csv.npos);
  CHECK(csv.find("unknown_ns,,ns,not recorded\n") != csv.npos);
}

TEST_CASE("text never leaves the width and never carries a control byte of the input") {
  for (const bool details : {false, true}) {
    for (const bool ascii : {false, true}) {
      for (const unsigned width : {40u, 60u, 80u, 200u}) {
        const std::string text =
            to_text(hostile_report(), {.ascii = ascii, .width = width, .max_rows = 0, .details = details});
        CHECK(valid_utf8(text) == text);
        CHECK(text.find('\x1b') == text.npos);
        CHECK(text.find('\x07') == text.npos);
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
          CAPTURE(line);
          CHECK(display_width(line) <= width);
          if (ascii) CHECK(to_ascii(line) == line);
        }
      }
    }
  }
}

TEST_CASE("colors are ours alone") {
  const std::string text = to_text(hostile_report(), {.color = true, .details = true});
  CHECK(text.find("\x1b[31m") != text.npos);  // "lost" in red
  CHECK(text.find("\x1b]0;") == text.npos);   // the title sequence of the issue
}

TEST_CASE("the JSON writer nests lines and objects") {
  JsonWriter json;
  json.begin_object()
      .key("a")
      .begin_array(JsonWriter::Layout::line)
      .number(1)
      .begin_object()
      .key("b")
      .null()
      .end_object();
  json.end_array().key("c").begin_object().end_object().end_object();
  CHECK(json.take() == "{\n  \"a\": [1, {\"b\": null}],\n  \"c\": {}\n}");
}
