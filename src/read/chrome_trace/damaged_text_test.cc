// Damaged JSON as it was seen in the wild (the numbers are those of the list of cases): opened as far as it goes, with
// what was lost said, and the same whatever way the text was cut into chunks. What stands beside the damage survives.
#include <doctest/doctest.h>

#include "read/chrome_trace/trace_text_fixture.h"

using namespace stepscope;
using namespace stepscope::read;

namespace {

void replace(std::string& event, std::string_view before, std::string_view after) {
  const std::size_t at = event.find(before);
  REQUIRE(at != event.npos);
  event.replace(at, before.size(), after);
}

// The slices next to the damaged op 5 are there, whole.
void check_neighbours(const Trace& trace) {
  for (const char* name : {"aten::op4", "part 4", "gemm<float, {5}, \"a\\b\">", "aten::op6", "part 19", "pair"}) {
    CAPTURE(name);
    CHECK(find_slice(trace, name));
  }
  CHECK(trace.rank.rank == 3);
}

}  // namespace

TEST_CASE("1, 2: a text that ends inside an event keeps all events before it") {
  const TraceText t;
  const std::string text = t.text();
  const std::uint64_t begin = t.offset(kKernel);
  for (const std::string_view inside : {"gemm<fl", "\"ts\": 10005", "\"args\": {\"dev", "\"grid\": [4, ", "\"dur\""}) {
    CAPTURE(inside);
    const Trace trace = read_every_way(text.substr(0, text.find(inside, begin) + inside.size()));
    CHECK(issue_list(trace) == "cut_inside_event lost 1" + at(begin) + ", not_closed repaired 1" +
                                   at(text.find(inside, begin) + inside.size()));
    CHECK(trace.source.events == kKernel + 1);
    CHECK(trace.slices.size() == 22);
    CHECK(find_slice(trace, "aten::op5"));
    CHECK_FALSE(find_slice(trace, "gemm<float, {5}, \"a\\b\">"));
  }
}

TEST_CASE("every cut of a trace opens, and none keeps half an event") {
  const TraceText t;
  const std::string text = t.text();
  std::size_t whole = 0;
  for (std::size_t size = t.offset(kOp); size < t.offset(kOp + 3); size++) {
    while (whole < t.events.size() && t.offset(whole) + t.events[whole].size() - t.events[whole].find('{') <= size)
      whole++;
    const Result<Trace> trace = read_bytes(text.substr(0, size), {1, false, 0, 4096});
    REQUIRE(trace);
    const std::size_t ops = whole - kOp;  // op, runtime, flow
    CHECK(trace->slices.size() == 20 + std::min<std::size_t>(ops, 2));
  }
}

TEST_CASE("3, 4: an object that is not closed is said, a bare array need not be closed") {
  TraceText t;
  t.tail = "\n";
  const Trace object = read_every_way(t.text());
  CHECK(issue_list(object) == "not_closed repaired 1" + at(t.text().size()));
  CHECK(object.slices.size() == kSlices);
  t.tail = "\n]\n";
  CHECK(issue_list(read_every_way(t.text())) == "not_closed repaired 1" + at(t.text().size() - 1));
  t.head = "[\n";
  for (const char* tail : {"", "\n", ",\n"}) {
    t.tail = tail;
    const Trace bare = read_every_way(t.text());
    CHECK(issue_list(bare) == "");
    CHECK(bare.slices.size() == kSlices);
  }
}

TEST_CASE("5, 6, 7: commas too many or too few") {
  TraceText t;
  const std::string last = t.text();
  t.tail = "," + t.tail;
  Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "extra_comma repaired 1" + at(t.text().find("]", t.offset(kEvents - 1))));
  CHECK(trace.slices.size() == kSlices);

  TraceText leading;
  leading.events[0] = "," + leading.events[0];
  trace = read_every_way(leading.text());
  CHECK(issue_list(trace) == "extra_comma repaired 1" + at(leading.head.size()));
  CHECK(trace.slices.size() == kSlices);

  TraceText missing;
  missing.events[kOp] += "\n" + missing.events[kOp + 1];
  missing.events.erase(missing.events.begin() + kOp + 1);
  trace = read_every_way(missing.text());
  CHECK(issue_list(trace) ==
        "missing_comma repaired 1" +
            at(missing.text().find('{', missing.offset(kOp) + missing.events[kOp].find("}\n  {"))));
  CHECK(trace.slices.size() == kSlices);

  TraceText inside;
  replace(inside.events[kOp], "\"pid\": 7, ", "\"pid\": 7 ");
  replace(inside.events[kOp], "\"External id\": 5,", "\"External id\": 5,,");
  trace = read_every_way(inside.text());
  CHECK(trace.slices.size() == kSlices);
  CHECK(trace.issues.size() == 2);
  check_neighbours(trace);
}

TEST_CASE("8: half an event of another writer in the middle is skipped, and its bytes counted") {
  TraceText t;
  const std::string whole = t.events[kOp];
  t.events[kOp] = "  {\n    \"ph\": \"X\", \"na" + whole + "me\": \"half\", \"ts\": 3}";
  const Trace trace = read_every_way(t.text());
  const std::uint64_t begin = t.offset(kOp);
  const std::uint64_t lost = t.events[kOp].size() - 2 - (whole.size() - 2) + t.comma.size() + 2;
  CHECK(issue_list(trace) ==
        "broken_event lost 1" + at(begin) + ", lost_bytes lost " + std::to_string(lost) + at(begin));
  CHECK(trace.slices.size() == kSlices);
  check_neighbours(trace);
}

TEST_CASE("8: bytes of anything between two events are skipped, and counted") {
  TraceText t;
  t.events[kOp] = std::string(5000, 'x') + " ] , \"oops\" [1, {\"a\": 2}]" + t.events[kOp];
  const Trace trace = read_every_way(t.text());
  const std::uint64_t begin = t.text().find("xxx");
  CHECK(issue_list(trace) ==
        "lost_bytes lost " + std::to_string(t.text().find("{\n    \"ph\"", begin) - begin) + at(begin));
  CHECK(trace.slices.size() == kSlices);
  check_neighbours(trace);
}

TEST_CASE("9: NaN and Infinity: the field is dropped, or the event where it is its time") {
  TraceText t;
  replace(t.events[kKernel], "%\": 50", "%\": NaN");
  replace(t.events[kOp], "\"dur\": 60.5", "\"dur\": Infinity");
  replace(t.events[kOp + 7], "\"ts\": 1000600.125", "\"ts\": nan");
  replace(t.events[kOp + 14], "\"External id\": 7", "\"External id\": -Infinity");
  const Trace trace = read_every_way(t.text());
  const std::uint64_t first = t.text().find("Infinity");
  CHECK(issue_list(trace) == "bare_word repaired 4" + at(first) + ", missing_duration lost 1" + at(t.offset(kOp)) +
                                 ", missing_time lost 1" + at(t.offset(kOp + 7)) + ", bad_number repaired 2" +
                                 at(t.offset(kKernel)));
  CHECK(trace.slices.size() == kSlices - 2);
  CHECK(std::isnan(trace.device.occupancy_percent[5]));
  CHECK(trace.device.occupancy_percent[6] == 50);
}

TEST_CASE("10, 11, 12: control bytes, line ends and invalid UTF-8 in texts are shown and kept apart") {
  TraceText t;
  replace(t.events[kOp], "aten::op5", std::string("a\x01") + "b");
  replace(t.events[kOp + 7], "aten::op6", "a\nb\tc");
  replace(t.events[kOp + 14], "aten::op7",
          "a\xff"
          "b");
  replace(t.events[kOp + 21], "aten::op8",
          "a\xfe"
          "b");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "repaired_text repaired 4");
  CHECK(trace.slices.size() == kSlices);
  for (const char* name : {"a\\x01b", "a\nb\tc", "a\\xffb", "a\\xfeb"}) {
    CAPTURE(name);
    CHECK(find_slice(trace, name));
  }
}

TEST_CASE("13: an unescaped quote in a name is kept, or costs its event alone") {
  TraceText t;
  replace(t.events[kOp], "aten::op5", "say \"hi\" to");
  Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "inner_quote repaired 2" + at(t.text().find("\"hi")));
  CHECK(find_slice(trace, "say \"hi\" to"));
  CHECK(trace.slices.size() == kSlices);

  TraceText hard;
  replace(hard.events[kOp], "aten::op5", "f(\"a\", 3)");
  trace = read_every_way(hard.text());
  const std::uint64_t begin = hard.offset(kOp);
  CHECK(issue_list(trace) == "broken_event lost 1" + at(begin) + ", lost_bytes lost " +
                                 std::to_string(hard.offset(kOp + 1) - begin) + at(begin));
  CHECK(trace.slices.size() == kSlices - 1);
  check_neighbours(trace);
}

TEST_CASE("13: a text that is never closed costs its event alone") {
  for (const std::string_view text : {"\"aten::op5\"", "\"float\"", "\"Input Dims\""}) {
    CAPTURE(text);
    TraceText t;
    replace(t.events[kOp], text, text.substr(0, text.size() - 1));
    const Trace trace = read_every_way(t.text());
    CHECK(trace.slices.size() >= kSlices - 1);
    CHECK(trace.issues.size() >= 1);
    check_neighbours(trace);
  }
}

TEST_CASE("14: backslashes of Windows paths") {
  TraceText t;
  replace(t.events[kOp], "aten::op5", R"(C:\Users\me\x.py)");
  replace(t.events[kOp + 7], "\"External id\"", R"("dir": "C:\", "External id")");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "repaired_text repaired 1");
  CHECK(trace.slices.size() == kSlices);
  CHECK(find_slice(trace, R"(C:\Users\me\x.py)"));
  CHECK(trace.ops.external_id[6] == 6);
}

TEST_CASE("15, 16, 18: bare words and empty values") {
  TraceText t;
  replace(t.events[kOp], "\"External id\": 5", "\"External id\": N/A");
  replace(t.events[kOp + 7], "\"External id\": 6", "\"External id\": ");
  replace(t.events[kOp + 14], "\"External id\": 7",
          "\"dtype\": ncclFloat32, \"Process Group Name\": \"g\", \"External id\": 7");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "bare_word repaired 2" + at(t.text().find("N/A")) + ", empty_value repaired 1" +
                                 at(t.text().find(", \"Input Dims\"", t.offset(kOp + 7))) + ", bad_number repaired 1" +
                                 at(t.offset(kOp)));
  CHECK(trace.slices.size() == kSlices);
  CHECK_FALSE(trace.ops.external_id.has(5));
  CHECK_FALSE(trace.ops.external_id.has(6));
  CHECK(trace.ops.external_id[7] == 7);
  REQUIRE(trace.collectives.size() == 1);
  CHECK(trace.strings[trace.collectives.dtype[0]] == "ncclFloat32");
}

TEST_CASE("17: a key without its opening quote costs its event alone") {
  TraceText t;
  replace(t.events[kOp], "\"pid\"", "pid\"");
  const Trace trace = read_every_way(t.text());
  const std::uint64_t begin = t.offset(kOp);
  CHECK(issue_list(trace) == "broken_event lost 1" + at(begin) + ", lost_bytes lost " +
                                 std::to_string(t.offset(kOp + 1) - begin) + at(begin));
  CHECK(trace.slices.size() == kSlices - 1);
  check_neighbours(trace);
}

TEST_CASE("brackets too many or too few cost their event alone") {
  const std::vector<std::pair<std::string, std::string>> edits{
      {"[64]]", "[64]"}, {"[[8", "[[[8"}, {"1]\"]}", "1]\"]"}, {"1]\"]}", "1]\"}"}, {"\"args\": {", "\"args\": {{"}};
  for (const auto& edit : edits) {
    const std::string &before = edit.first, &after = edit.second;  // clang 14 cannot capture structured bindings
    CAPTURE(after);
    TraceText t;
    replace(t.events[kOp], before, after);
    const Trace trace = read_every_way(t.text());
    const std::uint64_t begin = t.offset(kOp);
    CHECK(issue_list(trace) == "broken_event lost 1" + at(begin) + ", lost_bytes lost " +
                                   std::to_string(t.offset(kOp + 1) - begin) + at(begin));
    CHECK(trace.slices.size() == kSlices - 1);
    check_neighbours(trace);
  }
}

TEST_CASE("a broken last event does not cost what stands behind the list") {
  TraceText t;
  t.events.back() = "  {\"ph\": \"X\", \"name\": oops\"}";
  const Trace trace = read_every_way(t.text());
  CHECK(trace.slices.size() == kSlices);
  CHECK(trace.counters.size() == 0);
  CHECK(trace.metadata.back().key == "traceName");
  REQUIRE(trace.issues.size() == 2);
  CHECK(trace.issues[0].code == "broken_event");
  CHECK(trace.issues[0].offset == t.offset(kEvents - 1));
}

TEST_CASE("a stray bracket between events does not end the list") {
  TraceText t;
  t.events[kOp] = "  ], [ {\"ts\": 1}, \n" + t.events[kOp];
  const Trace trace = read_every_way(t.text());
  CHECK(trace.slices.size() == kSlices);
  check_neighbours(trace);
}

TEST_CASE("damage in the members before the events costs them alone") {
  TraceText t;
  replace(t.head, "\"name\": \"GPU\"", "\"name\": \"G\"PU\"");
  const Trace trace = read_every_way(t.text());
  CHECK(issue_list(trace) == "broken_header lost 1 @0");
  CHECK(trace.slices.size() == kSlices);
}

TEST_CASE("what the program says of its modules, as far as it is well formed") {
  TraceText t;
  replace(t.head, "\"deviceProperties\"",
          "\"stepscope_modules\": [[\"Net\", 0], [\"layers.0\", 12], [\"a\"], 3, [\"b\", -1], [\"c\", \"x\"], "
          "[\"d\", 5, 4, 1], [\"e\", 5, 6, 0], [\"f\", 5, 5], [\"g\", 5, 0, -1]],"
          "\n\"stepscope_modules_beside\": [[\"Teacher\", 7, 7, 0]],\n\"deviceProperties\"");
  const Trace trace = read_every_way(t.text());
  REQUIRE(trace.module_sizes.size() == 4);
  CHECK(trace.module_sizes[3].beside == 1);
  CHECK(trace.module_sizes[2].beside == 0);
  CHECK(trace.module_sizes[1].path == "layers.0");
  CHECK(trace.module_sizes[1].parameters == 12);
  CHECK(trace.module_sizes[1].unread == 0);
  CHECK(trace.module_sizes[2].path == "d");
  CHECK(trace.module_sizes[2].unread == 4);
  CHECK(trace.module_sizes[2].learned == 1);
}

TEST_CASE("38: of two documents the first is read; zeros at the end are nothing") {
  const TraceText t;
  const std::string one = t.text();
  Trace trace = read_every_way(one + one);
  CHECK(issue_list(trace) == "trailing_text lost " + std::to_string(one.size()) + at(one.size()));
  CHECK(trace.slices.size() == kSlices);
  trace = read_every_way(one + "garbage");
  CHECK(issue_list(trace) == "trailing_text repaired 7" + at(one.size()));
  CHECK(issue_list(read_every_way(one + std::string(9000, '\0'))) == "");
  const std::string open = one.substr(0, t.offset(kKernel) - 4);
  trace = read_every_way(open + std::string(9000, '\0'));
  CHECK(trace.slices.size() == 22);
  CHECK(issue_list(trace) == "not_closed repaired 1" + at(open.size() + 9000));
  CHECK(issue_list(read_every_way(one.substr(0, one.size() - 2) + ", \"traceEvents\": [{\"ph\": \"X\"}]}")) ==
        "second_event_list lost 1" + at(one.size() - 2 + 17));
}
