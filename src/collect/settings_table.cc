// The table of settings: what each is called, means and does. Nothing else knows their names.
#include <array>
#include <filesystem>

#include "base/did_you_mean.h"
#include "collect/nsys.h"
#include "collect/settings_draft.h"

namespace stepscope::collect {
namespace {

constexpr std::string_view kWhen = "When to record", kWhat = "What to record", kWhere = "Where to", kMemory = "Memory",
                           kNsys = "Nsight Systems";

// Parses into one member.
template <auto Parse, class Target>
Result<void> into(std::string_view text, Target& target) {
  auto value = Parse(text);
  if (!value) return fail(std::move(value).error());
  target = std::move(*value);
  return {};
}

Result<void> take_steps(std::string_view text, SettingDraft& d) { return into<parse_steps>(text, d.out.capture.steps); }
Result<void> take_step_start(std::string_view text, SettingDraft& d) { return into<parse_step>(text, d.step_start); }
Result<void> take_step_end(std::string_view text, SettingDraft& d) { return into<parse_step>(text, d.step_end); }
Result<void> take_schedule(std::string_view text, SettingDraft& d) {
  return into<parse_schedule>(text, d.out.capture.cycle);
}
Result<void> take_seconds(std::string_view text, SettingDraft& d) {
  return into<parse_seconds>(text, d.out.capture.seconds);
}
Result<void> take_time(std::string_view text, SettingDraft& d) { return into<parse_duration>(text, d.time); }
Result<void> take_warmup(std::string_view text, SettingDraft& d) { return into<parse_duration>(text, d.warmup); }

Result<void> take_trace(std::string_view text, SettingDraft& d) { return into<parse_switch>(text, d.out.trace); }

Result<void> take_trigger(std::string_view text, SettingDraft& d) {
  static constexpr std::array<std::string_view, 2> kWords{"USR2", "command"};
  if (text == "USR2" || text == "SIGUSR2") {
    d.out.trigger = Trigger::signal;
  } else if (text == "command") {
    d.out.trigger = Trigger::command;
  } else {
    return fail(unknown_name("trigger", shown(text), kWords));
  }
  d.out.capture.on_request = true;
  return {};
}

Result<void> take_ranks(std::string_view text, SettingDraft& d) { return into<parse_ranks>(text, d.out.capture.ranks); }
Result<void> take_with(std::string_view text, SettingDraft& d) { return into<parse_with>(text, d.out.capture.with); }

Result<void> take_profiling(std::string_view text, SettingDraft& d) {
  bool on = false;
  auto read = into<parse_switch>(text, on);
  if (on) d.out.capture.with = Parts{true, true, true, true, false, false};
  return read;
}

template <bool Parts::*Part>
Result<void> leave_out(std::string_view text, SettingDraft& d) {
  bool on = false;
  auto read = into<parse_switch>(text, on);
  if (on) d.out.capture.with.*Part = false;
  return read;
}

Result<void> take_stack(std::string_view text, SettingDraft& d) {
  return into<parse_switch>(text, d.out.capture.with.stack);
}
Result<void> take_budget(std::string_view text, SettingDraft& d) {
  return into<parse_budget>(text, d.out.capture.budget);
}

Result<void> take_memory(std::string_view text, SettingDraft& d) { return into<parse_switch>(text, d.memory_state); }
Result<void> take_memory_steps(std::string_view text, SettingDraft& d) {
  return into<parse_number>(text, d.memory_steps);
}
Result<void> take_history(std::string_view text, SettingDraft& d) { return into<parse_switch>(text, d.memory_history); }
Result<void> take_entries(std::string_view text, SettingDraft& d) { return into<parse_number>(text, d.memory.entries); }
Result<void> take_every(std::string_view text, SettingDraft& d) { return into<parse_number>(text, d.memory.every); }

Result<void> take_nsys(std::string_view text, SettingDraft& d) { return into<parse_switch>(text, d.out.capture.nsys); }
Result<void> take_nsys_options(std::string_view text, SettingDraft& d) {
  return into<parse_nsys_options>(text, d.out.nsys_options);
}

Result<void> take_telemetry(std::string_view text, SettingDraft& d) {
  const auto on = parse_switch(text);
  d.out.telemetry = !on || *on;
  d.out.sampled.clear();
  return on ? Result<void>() : into<telemetry::parse_collectors>(text, d.out.sampled);
}

Result<void> take_path(std::string_view text, std::string& target) {
  if (text.empty()) return fail({ErrorKind::usage, "the name is empty", {}, {}, "Write a folder or file"});
  target = text;
  return {};
}

Result<void> take_out(std::string_view text, SettingDraft& d) { return take_path(text, d.out.out); }
Result<void> take_snapshot_path(std::string_view text, SettingDraft& d) {
  if (text.ends_with('/')) return fail({ErrorKind::usage, "it is a folder", {}, {}, "Write a file in it"});
  if (auto taken = take_path(text, d.memory.path); !taken) return taken;
  std::error_code code;  // the job may change its folder
  const auto absolute = std::filesystem::absolute(d.memory.path, code);
  if (!code) d.memory.path = absolute.lexically_normal().string();
  return {};
}
Result<void> take_openmetrics(std::string_view text, SettingDraft& d) { return take_path(text, d.out.openmetrics); }
Result<void> take_name(std::string_view text, SettingDraft& d) { return take_path(text, d.out.job); }
Result<void> take_config(std::string_view, SettingDraft&) { return {}; }  // was followed before the rest was read

constexpr std::array kSettings{
    Setting{"steps", Form::value, "WINDOWS", kWhen,
            "Optimizer steps START:END, from 0, END not recorded; N for one; several: 10:15,40:45",
            "automatic: 10:15, in a job of few steps 1:6", "when", "steps", false, take_steps},
    Setting{"profile-step-start", Form::value, "N", kWhen, "Megatron's START of --steps (10 when left out)", "", "when",
            "profile-step", false, take_step_start},
    Setting{"profile-step-end", Form::value, "N", kWhen, "Megatron's END (12 when left out)", "", "when",
            "profile-step", false, take_step_end},
    Setting{"schedule", Form::value, "PARTS", kWhen,
            "As torch.profiler.schedule: wait=5,warmup=2,active=6,repeat=2; also skip_first, skip_first_wait", "",
            "when", "schedule", false, take_schedule},
    Setting{"seconds", Form::value, "WINDOW", kWhen, "Seconds START:END after the import of torch; N for 3:3+N", "",
            "when", "seconds", false, take_seconds},
    Setting{"time", Form::value, "SECONDS", kWhen, "Record that long (15, 15s, 2m), once --warmup is over", "", "when",
            "time", false, take_time},
    Setting{"warmup", Form::value, "SECONDS", kWhen, "Wait that long before --time (default 3)", "", "", "", false,
            take_warmup},
    Setting{"trace", Form::flag, "", kWhen,
            "A timeline, as usual; --trace=false: steps, phases and telemetry of the whole job alone", "on", "", "",
            true, take_trace},
    Setting{"trigger", Form::value, "HOW", kWhen,
            "Record nothing until asked: USR2 (that signal to stepscope records 3 steps) or command", "", "when",
            "trigger", false, take_trigger},
    Setting{"ranks", Form::value, "LIST", kWhat, "Processes to record: all, or numbers, ranges and last: 0,2-4,last",
            "all", "ranks", "ranks", false, take_ranks},
    Setting{"profile-ranks", Form::words, "RANK", kWhat, "Megatron's --ranks: 0 1 8", "", "ranks", "profile-ranks",
            false, take_ranks},
    Setting{"with", Form::value, "LIST", kWhat,
            "Of shapes, memory, modules, stack, flops, execution-trace, or none (default the first three)",
            "shapes,memory,modules", "parts", "with", false, take_with},
    Setting{"profiling", Form::flag, "", kWhat, "InternEvo's: timeline and memory, --with shapes,memory,modules,stack",
            "", "parts", "profiling", false, take_profiling},
    Setting{"no-shapes", Form::flag, "", kWhat, "Leave out the input shapes of ops", "", "parts", "switches", true,
            leave_out<&Parts::shapes>},
    Setting{"no-memory", Form::flag, "", kWhat, "Leave out allocations and frees", "", "parts", "switches", true,
            leave_out<&Parts::memory>},
    Setting{"stack", Form::flag, "", kWhat, "Python stacks too: much larger traces", "", "parts", "switches", true,
            take_stack},
    Setting{"budget", Form::value, "LIMITS", kWhat, "Most it may cost: a share of the time, a size, or both: 1%,512MB",
            "none", "recorder", "torch.profiler", false, take_budget},
    Setting{"telemetry", Form::value, "LIST", kWhat,
            "Collectors that sample the machine beside the job, with intervals if need be (cpu:10ms,io), or off", "on",
            "telemetry", "telemetry", false, take_telemetry},
    Setting{"memory", Form::flag, "", kMemory,
            "What fills it: parameters, gradients, optimizer state and activations by module, into memory_trace", "off",
            "state of memory", "state", false, take_memory},
    Setting{"memory-steps", Form::value, "N", kMemory, "Steps to measure for that, from the first (default 5)", "", "",
            "", false, take_memory_steps},
    Setting{
        "memory-history", Form::flag, "", kMemory,
        "torch's history of GPU memory, with Python stacks; written every N steps, when memory runs out, at the end",
        "off", "memory", "history", false, take_history},
    Setting{"record-memory-history", Form::flag, "", kMemory, "Megatron's name of --memory-history", "", "memory",
            "history", false, take_history},
    Setting{"max-entries", Form::value, "N", kMemory, "Newest allocations and frees to keep (default 100000)", "", "",
            "", false, take_entries},
    Setting{"memory-every", Form::value, "N", kMemory, "Steps between two snapshots (default 100)", "", "", "", false,
            take_every},
    Setting{"memory-snapshot-path", Form::value, "FILE", kMemory,
            "Megatron's: the newest snapshot there, out of memory oom_rank-RANK_FILE (default: in the run folder)", "",
            "", "", false, take_snapshot_path},
    Setting{"nsys", Form::flag, "", kNsys, "Record with NVIDIA's nsys in place of torch.profiler", "", "recorder",
            "nsys", false, take_nsys},
    Setting{"nsys-options", Form::value, "OPTIONS", kNsys, "Passed on to it: \"--gpu-metrics-devices=all -s cpu\"", "",
            "", "", false, take_nsys_options},
    Setting{"out", Form::value, "DIR", kWhere, "Folder of all runs (default ./stepscope)", "stepscope", "", "", false,
            take_out},
    Setting{"name", Form::value, "JOB", kWhere, "Name of the job in that folder (default: the script's)",
            "the script's", "", "", false, take_name},
    Setting{"openmetrics", Form::value, "FILE", kWhere,
            "Also write what is sampled and the steps there, every 10 s, for node_exporter's textfile collector", "",
            "", "", false, take_openmetrics},
    Setting{"config", Form::value, "FILE", kWhere, "File of settings (default: see below); off for none", "", "", "",
            false, take_config},
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }

}  // namespace stepscope::collect
