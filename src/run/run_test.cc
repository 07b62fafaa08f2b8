#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "run/json_text.h"
#include "run/manifest.h"
#include "run/own_traces.h"
#include "run/run_folder.h"
#include "run/tasks.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/stepscope-run-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

}  // namespace

TEST_CASE("job name is the script or module, through launchers") {
  CHECK(job_name({"python", "-u", "src/train_gpt.py", "--lr", "3"}) == "train_gpt");
  CHECK(job_name({"torchrun", "--nproc-per-node", "2", "a/b/pre train.py"}) == "pre_train");
  CHECK(job_name({"python", "-m", "torch.distributed.run", "x.py"}) == "x");
  CHECK(job_name({"python3", "-m", "pkg.train"}) == "pkg.train");
  CHECK(job_name({"/usr/bin/env"}) == "env");
  CHECK(job_name({"..."}) == "job");
  CHECK(job_name({}) == "job");
}

TEST_CASE("run folders of the same second get a number") {
  const Folder folder;
  const auto first = make_run_folder(folder.path, "job", "Sep08_11-00-51");
  const auto second = make_run_folder(folder.path, "job", "Sep08_11-00-51");
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(*first == folder.path + "/job/Sep08_11-00-51");
  CHECK(*second == folder.path + "/job/Sep08_11-00-51-2");
}

TEST_CASE("tasks of one srun share a run folder, and find the same one again for their next run") {
  using Environment = std::map<std::string, std::string>;
  const auto task = [](const Environment& all) {
    return this_task([&](const char* name) -> const char* {
      const auto found = all.find(name);
      return found == all.end() ? nullptr : found->second.c_str();
    });
  };
  const Environment one{
      {"SLURM_JOB_ID", "1234"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}};
  const auto with = [&](const char* name, const char* value) {
    Environment changed = one;
    changed[name] = value;
    return task(changed);
  };
  REQUIRE(task(one));
  CHECK(task(one)->launch == "slurm-1234.0");
  CHECK_FALSE(task(one)->first());
  CHECK(with("SLURM_RESTART_COUNT", "2")->launch == "slurm-1234.0.restart2");
  CHECK_FALSE(with("SLURM_STEP_NUM_TASKS", "1"));
  CHECK_FALSE(with("SLURM_PROCID", "2"));
  CHECK_FALSE(with("SLURM_PROCID", "-1"));
  CHECK_FALSE(with("SLURM_JOB_ID", "../../x"));
  CHECK_FALSE(task({{"SLURM_JOB_ID", "1234"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));  // the batch script

  const Folder folder;
  const Task zero = *with("SLURM_PROCID", "0"), other = *task(one);
  const std::string first = folder.path + "/job/slurm-1234.0";
  CHECK(share_run_folder(folder.path, "job", other).value() == first);
  CHECK(share_run_folder(folder.path, "job", zero).value() == first);
  CHECK(share_run_folder(folder.path, "job", zero).value() == first + "-2");
  CHECK(share_run_folder(folder.path, "job", other).value() == first + "-2");
  std::ofstream(folder.path + "/file") << "x";
  CHECK_FALSE(share_run_folder(folder.path + "/file", "job", zero));

  Manifest manifest = start_manifest("0", "job", {"x"}, "");
  REQUIRE(write_task(first, zero, manifest));
  REQUIRE(write_task(first, other, manifest));
  CHECK_FALSE(job_has_ended(first));
  manifest.ended_unix_ns = 1;
  REQUIRE(write_task(first, zero, manifest));
  CHECK_FALSE(job_has_ended(first));
  REQUIRE(write_task(first, other, manifest));
  CHECK(job_has_ended(first));
}

TEST_CASE("a run folder below a file is refused with the reason") {
  const Folder folder;
  std::ofstream(folder.path + "/file") << "x";
  const auto made = make_run_folder(folder.path + "/file", "job", "stamp");
  REQUIRE_FALSE(made.has_value());
  CHECK(to_text(made.error()).find("--out") != std::string::npos);
}

TEST_CASE("json strings are valid whatever the bytes") {
  CHECK(json_string("a\"b\\c\n\x01") == "\"a\\\"b\\\\c\\n\\u0001\"");
  CHECK(json_string("gr\xC3\xBC\xC3\x9F") == "\"gr\xC3\xBC\xC3\x9F\"");
  CHECK(json_string("\xFF\xC0\xAF") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(json_string("\xE2\x82") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST_CASE("secrets are masked, token counts are not") {
  CHECK(
      masked({"x", "--api-key", "abc", "--hf-token=def", "--max-tokens=7", "WANDB_API_KEY=ghi", "--tokenizer", "t"}) ==
      Arguments{"x", "--api-key", "***", "--hf-token=***", "--max-tokens=7", "WANDB_API_KEY=***", "--tokenizer", "t"});
  char rank[] = "RANK=3";
  char home[] = "HOME=/root";
  char secret[] = "TORCH_HUB_TOKEN=abc";
  char* environment[] = {secret, rank, home, nullptr};
  const auto kept = explaining_environment(environment);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0] == std::pair<std::string, std::string>("RANK", "3"));
  CHECK(kept[1] == std::pair<std::string, std::string>("TORCH_HUB_TOKEN", "***"));
}

TEST_CASE("process notes are read, broken ones are named") {
  const Folder folder;
  fs::create_directories(folder.path + "/processes");
  std::ofstream(folder.path + "/processes/h_1.json")
      << R"({"role": "rank", "device": "cpu", "steps_seen": 20, "problems": ["p"], "windows": [{"steps": [10, 11, 12], "trace": "traces/a.pt.trace.json.gz"}, {"kind": "stacks", "steps": [13]}]})";
  std::ofstream(folder.path + "/processes/h_2.json") << "{\"role\": ";
  std::ofstream(folder.path + "/processes/h_3.json") << R"({"windows": 7, "problems": {}, "steps_seen": "many"})";
  std::ofstream(folder.path + "/processes/h_4.json") << R"({"schema_version": 9, "role": "rank", "steps_seen": 4})";
  std::vector<std::string> problems;
  const auto notes = read_process_notes(folder.path, problems);
  REQUIRE(notes.size() == 3);
  CHECK(problems ==
        std::vector<std::string>{
            "the note h_2.json is no JSON object",
            "the note h_4.json has schema_version 9, this stepscope knows 1: what is new in it is left out"});
  CHECK(notes[2].steps_seen == 4);
  CHECK(notes[0].is_rank);
  CHECK(notes[0].whole_steps == 3);
  CHECK(notes[0].first_step == 10);
  CHECK(notes[0].last_step == 12);
  CHECK(notes[0].first_problem == "p");
  CHECK(notes[1].traces.empty());
  CHECK(notes[0].traces == std::vector<std::string>{"traces/a.pt.trace.json.gz"});
  Manifest manifest;
  manifest.command = {"python", "x.py"};
  manifest.processes = notes;
  REQUIRE(write_manifest(folder.path, manifest).has_value());
  CHECK(fs::exists(folder.path + "/run.json"));
}

TEST_CASE("own traces: taken once, never outside of the folder, and what is gone is said") {
  const Folder folder;
  fs::create_directories(folder.path + "/run/processes");
  std::ofstream(folder.path + "/mine.json") << "{}";
  std::ofstream(folder.path + "/run/processes/h_1.json") << R"({"own_traces": [{"path": ")" << folder.path
                                                         << R"(/mine.json", "trace": "traces/rank0/h_1.own0.json"},
             {"path": ")" << folder.path << R"(/mine.json", "trace": "traces/../../outside.json"},
             {"path": ")" << folder.path << R"(/mine.json", "trace": "/outside.json"}, {"path": 3}, 4,
             {"path": ")" << folder.path << R"(/gone.json", "trace": "traces/rank0/h_1.own1.json"}]})";
  std::vector<std::string> problems;
  const auto notes = read_process_notes(folder.path + "/run", problems);
  CHECK(take_own_traces(folder.path + "/run", notes, problems) == 1);
  CHECK(fs::hard_link_count(folder.path + "/mine.json") == 2);
  CHECK(fs::exists(folder.path + "/run/traces/rank0/h_1.own0.json"));
  CHECK_FALSE(fs::exists(folder.path + "/outside.json"));
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("gone.json was not taken over: No such file") != std::string::npos);
  CHECK(take_own_traces(folder.path + "/run", notes, problems) == 1);  // again: the same
}

}  // namespace stepscope::run
