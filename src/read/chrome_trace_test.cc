// The reader on valid text: every path, chunk size and thread count gives the same model; odd values of fields.
#include <doctest/doctest.h>

#include "read/chrome_trace/trace_text_fixture.h"

using namespace stepscope;
using namespace stepscope::read;

namespace {

// Puts `value` in the place of the text after `key` in one event.
void replace(std::string& event, std::string_view before, std::string_view after) {
  const std::size_t at = event.find(before);
  REQUIRE(at != event.npos);
  event.replace(at, before.size(), after);
}

}  // namespace

TEST_CASE("a valid trace is the same on every path, in chunks of any size, plain and packed") {
  const TraceText t;
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.source.events == kEvents);
  CHECK(trace.slices.size() == kSlices);
  CHECK(trace.flows.size() == kFlows);
  CHECK(trace.memory.size() == kMemory);
  CHECK(trace.counters.size() == kCounters);
  CHECK(trace.rank.rank == 3);
  CHECK(trace.devices.at(0).sm_count == 132);
  CHECK(trace.source.writer == "kineto");
  const auto op = find_slice(trace, "aten::op5");
  REQUIRE(op);
  CHECK(trace.slices.start_ns[*op] == 1'000'500'125);
  CHECK(trace.slices.dur_ns[*op] == 60'500);
  const auto kernel = find_slice(trace, "gemm<float, {5}, \"a\\b\">");
  REQUIRE(kernel);
  CHECK(trace.slices.dur_ns[*kernel] == 20'001);
  CHECK(trace.counters.value[2] == -300);
}

TEST_CASE("what an operator was given: shapes, types and the values of what is no tensor, laid out in any way") {
  TraceText t;
  replace(t.events[kOp + 7], R"(["", "[1, 1]"])", "[\n  \"\",\n  \"[2, 2]\"\n]");
  replace(t.events[kOp + 14], R"("Concrete Inputs")", R"("Other Inputs")");
  const Trace trace = read_every_way(t.text());
  const auto given = [&](std::size_t row) { return trace.strings[trace.ops.concrete_inputs[row]]; };
  CHECK(trace.strings[trace.ops.input_dims[5]] == "[[8, 64], [64]]");
  CHECK(trace.strings[trace.ops.input_types[5]] == R"(["float", ""])");
  CHECK(given(5) == R"(["", "[1, 1]"])");
  CHECK(given(6) == R"(["","[2, 2]"])");
  CHECK(trace.ops.concrete_inputs[7] == StringId::none);
}

TEST_CASE("events laid out on one line, with no space at all, and as a bare array") {
  TraceText t;
  const Trace expected = read_every_way(t.text());
  for (std::string& event : t.events) {
    std::erase(event, '\n');
  }
  t.comma = ",";
  t.head = "[";
  t.tail = "]";
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.slices.size() == expected.slices.size());
  CHECK(trace.source.events == kEvents);
}

TEST_CASE("33: texts that look like events or like the end of the list are texts") {
  TraceText t;
  replace(t.events[kOp], "aten::op5", R"(a ]}, { \"ph\": \"X\", \"name\": \"no\"}, {\"ph\" ] },{)");
  replace(t.events[kKernel], "\"stream\": 5", R"("note": "}\n  },\n  {\n    \"ph\": \"X\"", "stream": 5)");
  t.tail = "], \"traceName\": \"/tmp/a]}[{.json\"}";
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.slices.size() == kSlices);
  CHECK(find_slice(trace, "a ]}, { \"ph\": \"X\", \"name\": \"no\"}, {\"ph\" ] },{"));
}

TEST_CASE("false borders: lists of event-like objects inside arguments are arguments") {
  TraceText t;
  std::string list = "[";
  for (int i = 0; i < 200; i++) {
    list +=
        (i > 0 ? ",\n" : "\n") +
        std::string(R"({"ph": "X", "name": "inner", "ts": 1, "dur": 2, "args": {"x": [{"name": "y"}, {"ph": 1}]}})");
  }
  replace(t.events[kOp], "\"External id\"", "\"list\": " + list + "], \"External id\"");
  replace(t.events[kOp + 7], "\"External id\"", "\"object\": {\"a\": " + list + "]}, \"External id\"");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "");
  CHECK(trace.source.events == kEvents);
  CHECK(trace.slices.size() == kSlices);
  CHECK_FALSE(find_slice(trace, "inner"));
}

TEST_CASE("19: of a key that stands twice the last value counts") {
  TraceText t;
  replace(t.events[kOp], "\"dur\": 60.5", "\"dur\": 1, \"dur\": 7");
  replace(t.events[kKernel], "\"stream\": 5", "\"stream\": 4, \"stream\": 6");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "duplicate_key repaired 2" + at(t.offset(kOp)));
  CHECK(trace.slices.dur_ns[*find_slice(trace, "aten::op5")] == 7000);
  CHECK(trace.device.stream[5] == 6);
}

TEST_CASE("20, 21: times as text are taken, with something behind them they are not") {
  TraceText t;
  replace(t.events[kOp], "\"ts\": 1000500.125, \"dur\": 60.5", R"("ts": "1000500.125", "dur": "10.5")");
  replace(t.events[kOp + 7], "\"ts\": 1000600.125", R"("ts": "1000600 us")");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "missing_time lost 1" + at(t.offset(kOp + 7)));
  CHECK(trace.slices.size() == kSlices - 1);
  CHECK(trace.slices.dur_ns[*find_slice(trace, "aten::op5")] == 10'500);
  CHECK_FALSE(find_slice(trace, "aten::op6"));
}

TEST_CASE("22, 23, 24: integers of all sizes; ids of 64 bits, negative and as text") {
  TraceText t;
  replace(t.events[kOp], "\"External id\": 5", "\"External id\": 36893488147419103232");
  replace(t.events[kOp + 7], "\"pid\": 7, \"tid\": 9", "\"pid\": 4294967303, \"tid\": -1");
  replace(t.events[kOp + 14], "\"pid\": 7, \"tid\": 9", "\"pid\": \"host\", \"tid\": 99999999999999999999");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "wide_number repaired 1" + at(t.offset(kOp)));
  CHECK(trace.slices.size() == kSlices);
  const auto track = [&](std::string_view name) {
    const Track& found = trace.tracks[static_cast<std::size_t>(trace.slices.track[*find_slice(trace, name)])];
    return std::string(trace.strings[found.process]) + "/" + std::string(trace.strings[found.thread]);
  };
  CHECK(track("aten::op5") == "7/9");
  CHECK(track("aten::op6") == "4294967303/-1");
  CHECK(track("aten::op7") == "host/99999999999999999999");
}

TEST_CASE("25: a negative duration becomes 0 and is counted") {
  TraceText t;
  replace(t.events[kOp], "\"dur\": 60.5", "\"dur\": -3");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "negative_duration repaired 1" + at(t.offset(kOp)));
  CHECK(trace.slices.dur_ns[*find_slice(trace, "aten::op5")] == 0);
  CHECK(trace.slices.size() == kSlices);
}

TEST_CASE("26: device work at time 0 does not stretch the span, work without a duration is named") {
  TraceText t;
  for (std::string& event : t.events) {  // on a clock of today, in which 0 is no time
    const std::size_t ts = event.find("\"ts\": 1");
    if (ts != event.npos) event.insert(ts + 6, "175000000");
  }
  replace(t.events[kKernel], "\"ts\": 1750000001000500.750", "\"ts\": 0");
  replace(t.events[kKernel + 7], "\"dur\": 20.001", "\"dur\": 0");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) ==
        "zero_duration info 1" + at(t.offset(kKernel + 7)) + ", zero_timestamp lost 1" + at(t.offset(kKernel)));
  CHECK(trace.slices.size() == kSlices);
  const auto start = trace.slices.start_ns[*find_slice(trace, "gemm<float, {5}, \"a\\b\">")];
  CHECK(start == 1'750'000'001'000'000'750);
}

TEST_CASE("30: events without dur, ts, name, cat or kind are counted by reason") {
  TraceText t;
  replace(t.events[kOp], ", \"dur\": 60.5", "");
  replace(t.events[kOp + 7], "\"ts\": 1000600.125, ", "");
  replace(t.events[kOp + 14], "\"aten::op7\"", "null");
  replace(t.events[kOp + 21], "\"cat\": \"cpu_op\", ", "");
  replace(t.events[kOp + 28], "\"ph\": \"X\", ", "");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "missing_duration lost 1" + at(t.offset(kOp)) + ", missing_time lost 1" +
                                 at(t.offset(kOp + 7)) + ", missing_name info 1" + at(t.offset(kOp + 14)) +
                                 ", missing_kind lost 1" + at(t.offset(kOp + 28)) + ", missing_category info 1" +
                                 at(t.offset(kOp + 21)));
  CHECK(trace.source.events == kEvents);
  CHECK(trace.slices.size() == kSlices - 3);
}

TEST_CASE("begin and end events without their other half are counted") {
  TraceText t;
  t.events.erase(t.events.end() - 2);  // the last E
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "unpaired_begin_end lost 1" + at(t.offset(t.events.size() - 2)));
  CHECK(trace.slices.size() == kSlices - 1);
}

TEST_CASE("31: no events, or none but metadata, is an empty result with its reason") {
  TraceText t;
  t.events.clear();
  CHECK(issue_list(read_every_way(t.text())) == "no_events info 1");
  CHECK(issue_list(read_every_way("[]")) == "no_events info 1");
  TraceText metadata;
  metadata.events.resize(4);
  const Trace trace = read_every_way(metadata.text());
  CHECK(issue_list(trace) == "nothing_recorded info 4");
  CHECK(trace.slices.size() == 0);
}

TEST_CASE("39: a lone surrogate becomes U+FFFD; a pair is one character") {
  TraceText t;
  replace(t.events[kOp], "aten::op5", R"(a\ud800b\ud83d\ude00)");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "repaired_text repaired 1");
  CHECK(find_slice(trace,
                   "a\xEF\xBF\xBD"
                   "b\xF0\x9F\x98\x80"));
}

TEST_CASE("numbers that no clock gives are not taken: start plus duration always fits") {
  TraceText t;
  replace(t.events[kOp], "\"ts\": 1000500.125", "\"ts\": 9000000000000000");
  replace(t.events[kOp + 7], "\"dur\": 60.5", "\"dur\": 1e300");
  replace(t.events[kOp + 14], "\"ts\": 1000700.125, \"dur\": 60.5",
          "\"ts\": 4611686018427386, \"dur\": 4611686018427386");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) ==
        "missing_duration lost 1" + at(t.offset(kOp + 7)) + ", missing_time lost 1" + at(t.offset(kOp)));
  CHECK(trace.slices.end_ns(*find_slice(trace, "aten::op7")) == 2 * 4'611'686'018'427'386'000);
}

TEST_CASE("where both ends of a transfer are recorded, the other end of a receive is its source") {
  const auto call = [](const char* name, const char* ends) {
    return std::string(
               R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":7,"ts":1,"dur":2,"args":)") +
           R"({"Collective name":")" + name + R"(","In msg nelems":8,"dtype":"Float","Group size":2)" + ends + "}}";
  };
  const std::string both = R"(,"Src Rank":4,"Dst Rank":6)";
  const std::string text = "[" + call("send", both.c_str()) + "," + call("recv", both.c_str()) + "," +
                           call("send", R"(,"Dst Rank":6)") + "," + call("recv", R"(,"Src Rank":4)") + "," +
                           call("allreduce", "") + "]";
  const auto trace = read_bytes(text);
  REQUIRE(trace);
  REQUIRE(trace->collectives.size() == 5);
  const std::int64_t wanted[] = {6, 4, 6, 4, kAbsent};
  for (std::size_t row = 0; row < 5; row++) CHECK(trace->collectives.peer[row] == wanted[row]);
}
