#include "collect/settings.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "base/temp_fixture.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

// A variable that is there for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string capture_of(const Result<Settings>& read) { return read ? to_text(read->capture) : to_text(read.error()); }

// "VALUE (ORIGIN)" of what holds.
std::string effective(const Result<Settings>& read, std::string_view name) {
  if (!read) return to_text(read.error());
  for (const auto& one : read->effective) {
    if (one.name == name) return one.value + " (" + one.origin + ")";
  }
  return "";
}

bool says(const Result<Settings>& read, std::string_view part) {
  return !read && read.error().kind == ErrorKind::usage && to_text(read.error()).find(part) != std::string::npos;
}

constexpr const char* kDefault = "ranks=all with=shapes,memory,modules";

}  // namespace

TEST_CASE("nothing said: the defaults, and that they are") {
  const TempFolder folder;
  const auto read = read_settings({}, folder.path());
  CHECK(capture_of(read) == kDefault);
  CHECK(read->out == "stepscope");
  CHECK(read->file.empty());
  CHECK(effective(read, "ranks") == "all (default)");
  CHECK(effective(read, "profile-ranks").empty());
}

TEST_CASE("haiprof's variables: time, warm-up, trace, recorders with intervals and the folder; ours win") {
  const TempFolder folder;
  const Variable enabled("HAIPROF_ENABLED", "1"), time("HAIPROF_TIME", "120"), warmup("HAIPROF_WARMUP", "60");
  const Variable recorders("HAIPROF_RECORDERS", "basic,gpu,fan"), interval("HAIPROF_GPU_INTERVAL", "500");
  const Variable out("HAIPROF_LOG_DIR", "/logs");
  const auto phases = read_settings({}, folder.path());
  REQUIRE(phases);
  CHECK_FALSE(phases->trace);  // it records none unless it is asked for
  CHECK(phases->capture.on_request);
  CHECK(phases->out == "/logs");
  CHECK(effective(phases, "telemetry") == "cpu,memory,host,io,gpu:500ms,gpm:500ms,amd_gpu:500ms (HAIPROF_RECORDERS)");
  REQUIRE(phases->slips.size() == 2);
  CHECK(phases->slips[0] == "HAIPROF_TIME is how long HAIPROF_TRACE=1 records, which is not set: no trace");
  CHECK(phases->slips[1] == "HAIPROF_RECORDERS: nothing here samples what 'fan' does");
  const Variable trace("HAIPROF_TRACE", "1");
  const auto traced = read_settings({}, folder.path());
  CHECK(traced->slips.size() == 1);
  CHECK(capture_of(traced) == "seconds=60:180 ranks=all with=shapes,memory,modules");
  const Variable own("STEPSCOPE_OUT", "here");
  CHECK(read_settings({{"time", "15"}}, folder.path())->out == "here");
  const Variable off("HAIPROF_ENABLED", "0");
  CHECK(read_settings({}, folder.path())->trace);
}

TEST_CASE("no timeline: --trace=false, and what it does not go with") {
  const TempFolder folder;
  const auto read = read_settings({{"trace", "false"}}, folder.path());
  REQUIRE(read);
  CHECK_FALSE(read->trace);
  CHECK(capture_of(read) == "steps=none ranks=all with=shapes,memory,modules");
  CHECK(says(read_settings({{"trace", "false"}, {"steps", "1:2"}}, folder.path()), "--trace=false that there is none"));
  CHECK(read_settings({{"trace", "true"}, {"time", "120"}, {"warmup", "120"}}, folder.path())->trace);
}

TEST_CASE("an option wins over the environment, which wins over the file") {
  const TempFolder folder;
  folder.put("stepscope.toml", "ranks = 0\nsteps = \"1:2\"\nbudget = '1%'\nstack = true\n");
  const Variable ranks("STEPSCOPE_RANKS", "1"), steps("STEPSCOPE_STEPS", "3:4");
  const auto read = read_settings({{"ranks", "2"}}, folder.path());
  CHECK(capture_of(read) == "steps=3:4 ranks=2 with=shapes,memory,modules,stack budget=0.01");
  CHECK(effective(read, "ranks") == "2 (--ranks)");
  CHECK(effective(read, "steps") == "3:4 (STEPSCOPE_STEPS)");
  CHECK(effective(read, "stack") == "true (stepscope.toml:4)");
}

TEST_CASE("another answer to the same question replaces the lower one") {
  const TempFolder folder;
  folder.put("stepscope.toml", "steps = '1:2'\nprofile-ranks = [0, 1]\nwith = 'stack'\n");
  const auto read = read_settings({{"seconds", "3:5"}, {"ranks", "last"}, {"no-shapes", "true"}}, folder.path());
  CHECK(capture_of(read) == "seconds=3:5 ranks=last with=stack");
  CHECK(effective(read, "steps").empty());
  CHECK(effective(read, "seconds") == "3:5 (--seconds)");
  // A whole list replaces what was left out or added below it.
  folder.put("stepscope.toml", "no-shapes = true\nstack = true\n");
  CHECK(to_text(read_settings({}, folder.path())->capture.with) == "memory,modules,stack");
  CHECK(effective(read_settings({}, folder.path()), "with") == "memory,modules,stack (default)");
  CHECK(to_text(read_settings({{"with", "shapes"}}, folder.path())->capture.with) == "shapes");
  CHECK(to_text(read_settings({{"no-shapes", "false"}}, folder.path())->capture.with) == "shapes,memory,modules,stack");
}

TEST_CASE("a variable that is nearly a setting's is told of") {
  const TempFolder folder;
  const Variable slip("STEPSCOPE_STEP", "3:4"), other("STEPSCOPE_RUN", "/run"), far("STEPSCOPE_LIBRARY", "x");
  const auto read = read_settings({}, folder.path());
  REQUIRE(read.has_value());
  REQUIRE(read->slips.size() == 1);
  CHECK(read->slips[0] == "STEPSCOPE_STEP is no setting; is STEPSCOPE_STEPS meant?");
}

TEST_CASE("what does not go together says so, in the words of its source") {
  const TempFolder folder;
  CHECK(says(read_settings({{"steps", "1"}, {"seconds", "3"}}, folder.path()),
             "--steps and --seconds do not go together"));
  CHECK(says(read_settings({{"ranks", "1"}, {"profile-ranks", "1"}}, folder.path()), "do not go together"));
  CHECK(says(read_settings({{"with", "stack"}, {"no-shapes", "true"}}, folder.path()), "do not go together"));
  CHECK(
      says(read_settings({{"trigger", "USR2"}, {"schedule", "wait=1,warmup=1,active=1"}}, folder.path()), "--trigger"));
  CHECK(says(read_settings({{"warmup", "5"}}, folder.path()), "--time"));
  folder.put("stepscope.toml", "steps = 1\ntime = 4\n");
  CHECK(says(read_settings({}, folder.path()), "stepscope.toml:1: steps and time do not go together"));
  CHECK(read_settings({{"steps", "2"}}, folder.path()).has_value() == false);  // the file is wrong in itself
  folder.put("stepscope.toml", "with = 'stack'\nprofiling = false\n");
  CHECK(to_text(read_settings({}, folder.path())->capture.with) == "stack");
}

TEST_CASE("Megatron's, haiprof's, InternEvo's and torch's spellings") {
  const TempFolder folder;
  const auto capture = [&](const Typed& typed) { return capture_of(read_settings(typed, folder.path())); };
  CHECK(capture({{"profile-step-start", "4"}, {"profile-step-end", "6"}}).find("steps=4:6 ") != std::string::npos);
  CHECK(capture({{"profile-step-start", "4"}}).find("steps=4:12 ") != std::string::npos);
  CHECK(capture({{"profile-step-end", "20"}}).find("steps=10:20 ") != std::string::npos);
  CHECK(says(read_settings({{"profile-step-start", "12"}}, folder.path()), "the steps 12:12 are none"));
  CHECK(capture({{"profile-ranks", "0,1"}}).find("ranks=0,1 ") != std::string::npos);
  CHECK(capture({{"time", "15"}, {"warmup", "120"}}).find("seconds=120:135 ") != std::string::npos);
  CHECK(capture({{"time", "15"}}).find("seconds=3:18 ") != std::string::npos);
  CHECK(capture({{"profiling", "true"}}).ends_with(" with=shapes,memory,modules,stack"));
  CHECK(capture({{"schedule", "wait=5,warmup=2,active=6,repeat=2"}}).find("cycle=7:6:13:2 ") != std::string::npos);
  CHECK(capture({{"trigger", "USR2"}}).find("steps=none ") != std::string::npos);
  CHECK(read_settings({{"trigger", "command"}}, folder.path())->trigger == Trigger::command);
  CHECK(says(read_settings({{"trigger", "USR1"}}, folder.path()), "did you mean 'USR2'"));
  const Variable warmup("STEPSCOPE_WARMUP", "60");  // a habit, of no use to a window of steps
  CHECK(capture({{"steps", "1"}}).find("steps=1:2 ") != std::string::npos);
  CHECK(capture({{"time", "15"}}).find("seconds=60:75 ") != std::string::npos);
}

TEST_CASE("values of the file as TOML has them") {
  const TempFolder folder;
  folder.put(
      "stepscope.toml",
      "# what is recorded\nsteps = [\"10:15\", 40]\nranks = [0, \"2-3\", \"last\"]\n"
      "with = [\n  \"shapes\",  # and\n  \"flops\",\n]\nbudget = [\"1%\", \"512MB\"]\nout = \"runs\"\nname = \"j\"\n");
  const auto read = read_settings({}, folder.path());
  CHECK(capture_of(read) ==
        "steps=10:15,40:41 ranks=0,2,3,last with=shapes,flops budget=0.01 "
        "budget_bytes=512000000");
  CHECK(read->out == folder / "runs");  // beside the file, wherever one stands
  CHECK(read->job == "j");
  folder.put("stepscope.toml", "schedule = { wait = 5, warmup = 2, active = 6, skip_first = 1 }\nno_memory = true\n");
  CHECK(capture_of(read_settings({}, folder.path())) == "cycle=8:6:13:0 ranks=all with=shapes,modules");
  folder.put("stepscope.toml", "time = 2.5\nwarmup = 0\n");
  CHECK(capture_of(read_settings({}, folder.path())).find("seconds=0:2.5 ") != std::string::npos);
}

TEST_CASE("which file counts") {
  const TempFolder top;
  const fs::path inner = top.path() / "a" / "b";
  fs::create_directories(inner);
  top.put("stepscope.toml", "ranks = 1\n");
  CHECK(effective(read_settings({}, inner), "ranks") == "1 (" + (top / "stepscope.toml:1") + ")");
  top.put("a/pyproject.toml", "[project]\nname = 'x'\n[tool.stepscope]\nranks = 2\n");
  CHECK(effective(read_settings({}, inner), "ranks") == "2 (" + (top / "a/pyproject.toml:4") + ")");
  top.put("a/b/pyproject.toml", "[tool.stepscope]\nranks = 4\n");
  top.put("a/b/stepscope.toml", "ranks = 3\n");
  CHECK(effective(read_settings({}, inner), "ranks") == "3 (stepscope.toml:1)");
  top.put("a/b/stepscope.toml", "");  // empty, and yet the nearest
  CHECK(effective(read_settings({}, inner), "ranks") == "all (default)");
  CHECK(effective(read_settings({{"config", top / "stepscope.toml"}}, inner), "ranks") ==
        "1 (" + (top / "stepscope.toml:1") + ")");
  const Variable off("STEPSCOPE_CONFIG", "off");
  CHECK(effective(read_settings({}, inner), "ranks") == "all (default)");
  CHECK(effective(read_settings({{"config", "pyproject.toml"}}, inner), "ranks") == "4 (pyproject.toml:2)");
  CHECK(says(read_settings({{"config", "none.toml"}}, inner), "none.toml: there is no such file"));
}

TEST_CASE("a pyproject.toml that has nothing for us is passed by, broken or not") {
  const TempFolder top;
  fs::create_directories(top / "inner");
  top.put("stepscope.toml", "ranks = 1\n");
  top.put("inner/pyproject.toml", "[project]\nname = 'x'\n");
  CHECK(effective(read_settings({}, top / "inner"), "ranks").starts_with("1 "));
  top.put("inner/pyproject.toml", "[project\n");
  CHECK(effective(read_settings({}, top / "inner"), "ranks").starts_with("1 "));
  top.put("inner/pyproject.toml", "[project\n[tool.stepscope]\n");
  CHECK(says(read_settings({}, top / "inner"), "pyproject.toml:1: no TOML"));
}

TEST_CASE("what is wrong in a file is told with its line") {
  const TempFolder folder;
  const auto read = [&](std::string_view text) {
    folder.put("stepscope.toml", text);
    return read_settings({}, folder.path());
  };
  CHECK(says(read("ranks = 0\nstep = '1:2'\n"), "stepscope.toml:2: unknown setting 'step'; did you mean 'steps'?"));
  CHECK(says(read("config = 'x'\n"), "unknown setting 'config'"));
  CHECK(says(read("\n\nsteps = '5:5'\n"), "stepscope.toml:3: steps: '5:5' is no window of steps"));
  CHECK(says(read("ranks = 0\nsteps = = 1\n"), "stepscope.toml:2: no TOML"));
  CHECK(says(read("steps = '1:2\n"), "stepscope.toml:1: no TOML"));
  CHECK(says(read("steps = 1979-05-27\n"), "stepscope.toml:1: steps: ''"));
  CHECK(says(read("[steps]\na = 1\n"), "stepscope.toml:"));
  CHECK(says(read("stack = 3\n"), "stepscope.toml:1: stack: '3' is neither true nor false"));
  CHECK(says(read("steps = 1\nsteps = 2\n"), "stepscope.toml:"));
  CHECK(says(read("no-shapes = true\nno_shapes = true\n"), "set twice"));
  CHECK(says(read("steps = " + std::string(1 << 19, '9') + "\n"), "stepscope.toml"));
  CHECK(says(read(std::string((1 << 20) + 1, '\n')), "larger than 1 MiB"));
  CHECK(says(read("\xff\xfe = 1\n"), "stepscope.toml"));
  const Variable bad("STEPSCOPE_STEPS", "5:5");
  CHECK(says(read(""), "STEPSCOPE_STEPS: '5:5' is no window of steps"));
}

TEST_CASE("a file made to break the reader is refused") {
  const TempFolder folder;
  const auto refused = [&](const std::string& text) {
    folder.put("stepscope.toml", text);
    return says(read_settings({}, folder.path()), "too deep");
  };
  CHECK(refused("steps = " + std::string(100'000, '[')));
  std::string lines = "steps = ", keys = "a", tables = "a = ";
  for (int i = 0; i < 20'000; ++i) {
    lines += "[\n";
    keys += ".a";
    tables += "{a=";
  }
  CHECK(refused(lines));
  CHECK(refused(keys + " = 1\n"));
  CHECK(refused(tables));
  // Brackets in texts and comments are none.
  folder.put("stepscope.toml", "# " + std::string(200, '[') + "\nname = '''" + std::string(200, '[') +
                                   "'''\nout = \"\\\"" + std::string(200, '{') + "\"\n");
  CHECK(read_settings({}, folder.path()).has_value());
}

TEST_CASE("the table is in order") {
  for (const Setting& setting : settings()) {
    CHECK(static_cast<bool>(setting.take));
    CHECK_FALSE(setting.meaning.empty());
    CHECK(setting.question.empty() == setting.answer.empty());
  }
  CHECK(variable_of("profile-step-start") == "STEPSCOPE_PROFILE_STEP_START");
}

TEST_CASE("memory history: the last rank unless ranks are named, and its parts are for it alone") {
  const TempFolder folder;
  const std::string usual = "ranks=all with=shapes,memory,modules";
  CHECK(capture_of(read_settings({{"record-memory-history", "true"}}, folder.path())) ==
        usual + " memory_history=100000:100 memory_ranks=last");
  CHECK(capture_of(read_settings({{"memory-history", "true"}, {"ranks", "0"}, {"max-entries", "7"}}, folder.path())) ==
        "ranks=0 with=shapes,memory,modules memory_history=7:100 memory_ranks=0");
  CHECK(capture_of(read_settings({{"memory-history", "true"}, {"memory-snapshot-path", "/a b/\u00e9%.pickle"}},
                                 folder.path())) ==
        usual + " memory_history=100000:100 memory_ranks=last memory_path=/a%20b/%C3%A9%25.pickle");
  CHECK(says(read_settings({{"memory-every", "5"}}, folder.path()), "Add --memory-history"));
  CHECK(says(read_settings({{"memory-history", "true"}, {"memory-every", "0"}}, folder.path()), "no whole number"));
  CHECK(says(read_settings({{"memory-history", "true"}, {"memory-snapshot-path", "a/"}}, folder.path()), "a folder"));
  CHECK(capture_of(read_settings({{"memory-history", "false"}}, folder.path())) == usual);
}

TEST_CASE("the state of memory: of the first five steps, or as many as are said") {
  const TempFolder folder;
  const std::string usual = "ranks=all with=shapes,memory,modules";
  CHECK(capture_of(read_settings({{"memory", "true"}}, folder.path())) == usual + " memory_state=5");
  CHECK(capture_of(read_settings({{"memory", "true"}, {"memory-steps", "12"}}, folder.path())) ==
        usual + " memory_state=12");
  CHECK(capture_of(read_settings({{"memory", "true"}, {"ranks", "0"}}, folder.path())) ==
        "ranks=0 with=shapes,memory,modules memory_state=5");
  CHECK(says(read_settings({{"memory-steps", "5"}}, folder.path()), "Add --memory"));
  CHECK(says(read_settings({{"memory", "true"}, {"memory-steps", "0"}}, folder.path()), "no whole number"));
  CHECK(capture_of(read_settings({{"memory", "false"}, {"no-memory", "true"}}, folder.path())) ==
        "ranks=all with=shapes,modules");
}

TEST_CASE("nsys: windows are never automatic, and what it has not is left out and said") {
  const TempFolder folder;
  auto read = read_settings({{"nsys", "true"}}, folder.path());
  CHECK(capture_of(read) == "steps=10:15 ranks=all with=shapes,modules nsys=on");
  CHECK(read->left_out.empty());
  read = read_settings({{"nsys", "true"}, {"with", "shapes,memory,flops"}, {"seconds", "1:2"}}, folder.path());
  CHECK(capture_of(read) == "seconds=1:2 ranks=all with=shapes nsys=on");
  CHECK(read->left_out == "memory,flops");
  CHECK(says(read_settings({{"nsys", "true"}, {"budget", "1%"}}, folder.path()), "do not go together"));
  CHECK(says(read_settings({{"nsys-options", "-s cpu"}}, folder.path()), "Add --nsys"));
  folder.put("stepscope.toml", "budget = '1%'\nnsys-options = '-s cpu'\n");
  read = read_settings({{"nsys", "true"}}, folder.path());
  CHECK(capture_of(read) == "steps=10:15 ranks=all with=shapes,modules nsys=on");
  CHECK(read->nsys_options == std::vector<std::string>{"-s", "cpu"});
  CHECK(capture_of(read_settings({}, folder.path())) == "ranks=all with=shapes,memory,modules budget=0.01");
}

}  // namespace stepscope::collect
