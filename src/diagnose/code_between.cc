#include "diagnose/code_between.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/intervals.h"
#include "diagnose/fetched.h"
#include "diagnose/given_back.h"
#include "diagnose/model_calls.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/sampled.h"
#include "model/answer_parts.h"
#include "model/host_names.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// What Python takes from one operator to the next, through the layers of torch, is shorter.
constexpr std::int64_t kLongNs = 150'000;
// A journal is kept in many short stretches too, each of which is longer than calling an operator.
constexpr std::int64_t kLongOfJournalNs = 30'000;

struct Sign {
  Doing doing;
  std::string_view frame;        // a function, or the start of a file
  std::string_view within = {};  // start of the function's file
};

// Of Python's and torch's own names; the first that fits a stack from the program's function inwards.
constexpr std::array kSigns{
    Sign{Doing::limited, "tenacity/"},
    Sign{Doing::limited, "backoff/"},
    Sign{Doing::limited, "ratelimit/"},
    Sign{Doing::limited, "aiolimiter/"},
    Sign{Doing::limited, "urllib3/util/retry.py"},
    Sign{Doing::limited, "sleep_for_retry"},
    Sign{Doing::collecting, "collect"},
    Sign{Doing::compiling, "torch/_dynamo/convert_frame.py"},  // other files of it are around what is not compiled
    Sign{Doing::compiling, "torch/_inductor/"},
    Sign{Doing::saving, "torch/distributed/checkpoint/"},
    Sign{Doing::exchanging, "_object_to_tensor", "torch/distributed/"},
    Sign{Doing::exchanging, "_tensor_to_object", "torch/distributed/"},
    Sign{Doing::saving, "torch/serialization.py"},
    Sign{Doing::saving, "pickle.py"},
    Sign{Doing::saving, "dump"},
    Sign{Doing::logging, "print"},
    Sign{Doing::logging, "logging/"},
    Sign{Doing::logging, "torch/utils/tensorboard/"},
    Sign{Doing::talking, "socket.py"},
    Sign{Doing::talking, "http/"},
    Sign{Doing::talking, "urllib/"},
    Sign{Doing::talking, "recv"},
    Sign{Doing::talking, "recv_into"},
    Sign{Doing::talking, "sendall"},
    Sign{Doing::talking, "connect"},
    Sign{Doing::reading, "read"},
    Sign{Doing::reading, "readline"},
    Sign{Doing::reading, "open"},
    Sign{Doing::reading, "pathlib.py"},
    Sign{Doing::reading, "fromfile"},
    Sign{Doing::reading, "readinto"},
    Sign{Doing::reading, "numpy/lib/npyio.py"},
    Sign{Doing::reading, "numpy/lib/_npyio_impl.py"},
    Sign{Doing::reading, "load"},
    Sign{Doing::reading, "loads"},
    Sign{Doing::logging, "write"},
    Sign{Doing::logging, "flush"},
    Sign{Doing::saving, "fsync"},
    Sign{Doing::sleeping, "sleep"},
};

// Functions of the program itself, whatever they are called, show nothing; of collecting only Python's own does.
bool shows(const Code& code, const Sign& sign) {
  const CodeFrame* end = code.stack.data() + code.stack.size();
  for (const CodeFrame* frame = code.below(sign.frame); frame != nullptr && frame != end; frame++) {
    if (frame->own || !frame->is(sign.frame) || !frame->file.starts_with(sign.within)) continue;
    if (sign.doing == Doing::reading && frame->file.starts_with("torch/nn/modules/")) continue;  // of a state_dict
    if (sign.doing != Doing::collecting || frame->file.empty()) return true;
  }
  return false;
}

}  // namespace

PartOfLoad part_of_load(const Code& code) {
  if (shows(code, {Doing::reading, "load", "torch/serialization.py"})) return PartOfLoad::reads;
  if (shows(code, {Doing::computing, "load_state_dict", "torch/nn/modules/"})) return PartOfLoad::puts;
  return PartOfLoad::none;
}

namespace {

// Does the thread wait there for something that another one, or a client, gives it to do? What hands it over is seen
// where that takes most of the time.
bool waits(const Code& code) {
  constexpr std::array<std::string_view, 6> kWaits{"acquire", "get", "poll", "select", "accept", "wait"};
  constexpr std::array<std::string_view, 7> kHandsOver{
      "threading.py", "queue.py", "concurrent/futures/", "asyncio/", "selectors.py", "socketserver.py", "anyio/"};
  if (code.below("concurrent/futures/_base.py") != nullptr) return false;  // for what it gave another one to do
  const CodeFrame& last = code.stack.back();
  if (last.file.empty()) return std::find(kWaits.begin(), kWaits.end(), last.function) != kWaits.end();
  return std::any_of(kHandsOver.begin(), kHandsOver.end(), [&](std::string_view file) { return last.is(file); });
}

// Is it a model that only answers, whose thread is given one request after the other?
bool only_answers(const Case& about) {
  const std::vector<ModelCall>& calls = model_calls(about);
  return !calls.empty() && std::none_of(calls.begin(), calls.end(),
                                        [](const ModelCall& call) { return call.trains || goes_back(*call.trace); });
}

// Is a module called below that function? Then what runs is a model, whoever's.
bool is_in_model(const Code& code, const CodeFrame& own) {
  const CodeFrame* end = code.stack.data() + code.stack.size();
  return std::any_of(&own + 1, end, [](const CodeFrame& frame) { return frame.is_module(); });
}

// Does the function only keep a journal? It writes, and what it works out goes nowhere else: it is not the loop itself.
bool keeps_journal(const Source& source, const CodeFrame& own) {
  constexpr std::array<std::string_view, 5> kWrites{"write", "writerow", "add_scalar", "add_scalars", "add_histogram"};
  constexpr std::array<std::string_view, 3> kTrains{"backward", "step", "zero_grad"};
  constexpr std::array<std::string_view, 11> kOnTheWay{"write", "writerow",   "add_scalar",   "add_scalars",
                                                       "print", "writelines", "dump",         "dumps",
                                                       "info",  "debug",      "add_histogram"};
  const auto calls = [&](std::string_view called) { return source.calls(own, called); };
  // The program's own write() may write to a tensor.
  const auto writes = [&](std::string_view called) {
    return calls(called) && !source.has_function_without(own.file, called, kOnTheWay);
  };
  return std::any_of(kWrites.begin(), kWrites.end(), writes) && std::none_of(kTrains.begin(), kTrains.end(), calls);
}

// Is it busy in one of Python's own that moves files, as os.replace() and no str.replace() does? A disk may write only
// when its file takes the place of another.
bool moves_files(const Code& code, const CodeFrame& own) {
  constexpr std::array<std::string_view, 5> kMoves{"replace", "rename", "link", "unlink", "remove"};
  const CodeFrame* below = &own + 1;
  return below < code.stack.data() + code.stack.size() && below->file.empty() && !below->is_method &&
         std::find(kMoves.begin(), kMoves.end(), below->function) != kMoves.end();
}

// By file and line of the function.
using Journals = std::map<std::pair<std::string, std::int64_t>, bool>;

Doing doing_of(const Source& source, const Work& work, const Code& code, bool answers, Journals& journals) {
  if (work.name() == kGarbageCollection) return Doing::collecting;
  if (part_of_load(code) == PartOfLoad::reads) return Doing::reading;
  if (work.slice != SliceId::none &&
      work.trace->slices.phase[work.slice] == static_cast<std::uint8_t>(Phase::checkpoint)) {
    return Doing::saving;
  }
  if (code.stack.empty()) return Doing::unknown;
  const CodeFrame* own = code.own();
  const auto in_pool = [&] { return own == nullptr && code.below("concurrent/futures/thread.py") != nullptr; };
  if (waits(code) && (answers || in_pool())) return Doing::waiting;
  // A function that saves also opens, renames and looks for files.
  const auto saves = [&] { return own != nullptr && (source.calls(*own, "save") || source.calls(*own, "dump")); };
  for (const Sign& sign : kSigns) {
    if (!shows(code, sign)) continue;
    return sign.doing == Doing::reading && saves() ? Doing::saving : sign.doing;
  }
  if (own == nullptr) return Doing::computing;
  if (moves_files(code, *own) && saves()) return Doing::saving;
  if (is_in_model(code, *own)) return Doing::computing;
  const auto [known, is_new] = journals.try_emplace({own->file, own->line});
  if (is_new) known->second = keeps_journal(source, *own);
  return known->second ? Doing::logging : Doing::computing;
}

// Does a device of the rank work for most of a stretch? Then the thread may as well wait for it. Asked by start.
class BesideDevice {
 public:
  explicit BesideDevice(const Trace& trace) {
    for (const DeviceTime& device : rank_time(trace).devices) busy_ = unite(busy_, device.busy);
  }
  BesideDevice(const BesideDevice&) = delete;
  bool operator()(const Work& work) {
    return 2 * sweep_.part_of({work.start_ns, work.start_ns + work.cost_ns}) > work.cost_ns;
  }

 private:
  Intervals busy_;
  IntervalSweep sweep_{busy_};
};

// Is most of a stretch what giving the memory of tensors back to the system takes?
bool only_gives_back(const Case& about, std::uint32_t node, const Work& work) {
  constexpr double kMost = 0.5, kUsualBytesPerNs = 20;
  const double gives_back_ns = static_cast<double>(given_back(about).bytes(node)) / kUsualBytesPerNs;
  return gives_back_ns > kMost * static_cast<double>(work.cost_ns);
}

}  // namespace

std::vector<BetweenOperators> code_between(const Case& about) {
  std::vector<BetweenOperators> out;
  Journals journals;
  std::map<const Trace*, BesideDevice> beside_device;
  const bool answers = only_answers(about);
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (!work.between_operators() || work.cost_ns < kLongOfJournalNs) continue;
    if (work.slice != SliceId::none && work.trace->kind(work.slice) == SliceKind::runtime) continue;
    BetweenOperators one{.node = node, .code = about.code(work)};
    one.doing = doing_of(about.places.source(*work.trace), work, one.code, answers, journals);
    if (work.cost_ns < kLongNs && one.doing != Doing::logging) continue;
    if (one.doing == Doing::computing && only_gives_back(about, node, work)) continue;
    // Where frames are recorded and none of the program's is there, it is not the program that works.
    if (one.doing == Doing::unknown && about.places.known(*work.trace)) continue;
    // Outside of steps a gap of which nothing is known may be anything: before the work, behind it.
    if (one.doing == Doing::unknown && !about.now.window.whole_steps) continue;
    if (one.doing == Doing::unknown && beside_device.try_emplace(work.trace, *work.trace).first->second(work)) continue;
    out.push_back(std::move(one));
  }
  return out;
}

namespace {

// What happens in few steps is not in the one with frames: where the source calls it in one place only, that is it.
const CodeCall* only_call(const Case& about, const BetweenOperators& one, const WordsOf& words) {
  if (words.called.empty() || one.code.below(words.called) != nullptr) return nullptr;
  return about.places.source(*about.work(one.node).trace).only_call(words.called);
}

// What the program calls there is torch's own, if anything: an optimizer's Python, a graph that is freed.
bool is_only_torch_below(const Code& code, const CodeFrame& own) {
  const CodeFrame* end = code.stack.data() + code.stack.size();
  bool in_torch = false;
  for (const CodeFrame* frame = &own + 1; frame < end; frame++) {
    in_torch = frame->file.empty() ? in_torch : frame->file.starts_with("torch/");
    if (!in_torch) return false;
  }
  return true;
}

// What that function calls, behind what torch wraps around its own functions; nullptr: nothing.
const CodeFrame* called_by(const Code& code, const CodeFrame& own) {
  constexpr std::array<std::string_view, 5> kWraps{"_no_grad_wrapper", "decorate_context", "wrapper",
                                                   "_wrapped_call_impl", "_call_impl"};
  const CodeFrame* end = code.stack.data() + code.stack.size();
  const auto wraps = [&](const CodeFrame& frame) {
    return frame.file.starts_with("torch/") && std::find(kWraps.begin(), kWraps.end(), frame.function) != kWraps.end();
  };
  const CodeFrame* called = std::find_if_not(&own + 1, end, wraps);
  if (called != end) return called;
  return &own + 1 < end ? &own + 1 : nullptr;
}

// What an optimizer of torch does before and between its operators, and its autograd before a backward pass begins,
// which no change of the program's own code takes away.
bool is_in_optimizer_or_autograd(const Code& code) {
  const CodeFrame* own = code.own();
  if (own == nullptr || !is_only_torch_below(code, *own)) return false;
  return std::any_of(own + 1, code.stack.data() + code.stack.size(), [](const CodeFrame& frame) {
    const bool is_backward = frame.file == "torch/_tensor.py" && frame.function == "backward";
    return is_backward || frame.file.starts_with("torch/optim/") || frame.file.starts_with("torch/autograd/");
  });
}

// A short stretch that calls nothing of the program's: Python's way from one operator to the next, or memory that is
// given back.
bool is_bare(const Case& about, const BetweenOperators& one) {
  constexpr std::int64_t kShortNs = 1'000'000;
  const CodeFrame* own = one.code.own();
  return one.doing == Doing::computing && own != nullptr && about.cost_ns(one.node) < kShortNs &&
         is_only_torch_below(one.code, *own);
}

struct WithoutCore {
  double part = 0;
};

// Of the bare stretches of a rank: a thread that has no core for a while, since others use them, seems to be between
// two operators for so long.
double part_without_core(const Case& about) {
  return about
      .shared<WithoutCore>([](const Case& of) {
        const auto wait = rate_in_steps(of.run, of.trace.rank.rank, "main_thread_wait");
        std::int64_t bare_ns = 0;
        for (const BetweenOperators& one : of.shared<std::vector<BetweenOperators>>(code_between)) {
          if (is_bare(of, one)) bare_ns += of.on_path(one.node);
        }
        if (!wait || bare_ns <= 0) return WithoutCore{};
        return WithoutCore{std::min(1.0, *wait * static_cast<double>(of.path_ns) / static_cast<double>(bare_ns))};
      })
      .part;
}

// The only recorded step that has them; none: several have, or it is not known.
StepId only_step(const Case& about, const std::vector<const BetweenOperators*>& stretches) {
  StepId only = StepId::none;
  for (const BetweenOperators* one : stretches) {
    const Work work = about.work(one->node);
    const StepId step = work.trace == &about.trace ? work.trace->step_at(work.start_ns) : StepId::none;
    if (step == StepId::none || (only != StepId::none && step != only)) return StepId::none;
    only = step;
  }
  return only;
}

// Seen in one of several recorded steps, while of all marked steps far fewer are as long as that makes one: a pause of
// the thread, and no work of the program.
bool is_chance(const Case& about, const std::vector<const BetweenOperators*>& stretches) {
  constexpr std::int64_t kFewestRecorded = 4;
  constexpr std::size_t kFewestMarked = 40;
  constexpr double kPart = 0.5;  // of what is expected
  if (about.steps < kFewestRecorded || only_step(about, stretches) == StepId::none) return false;
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  if (history == nullptr || history->steps.size() < kFewestMarked) return false;
  std::int64_t time_ns = 0;
  for (const BetweenOperators* one : stretches) time_ns += about.cost_ns(one->node);
  std::vector<std::int64_t> lengths;
  for (const Step& step : history->steps) lengths.push_back(step.end_ns - step.start_ns);
  const double longer = static_cast<double>(*median(lengths)) + kPart * static_cast<double>(time_ns);
  const auto count =
      std::count_if(lengths.begin(), lengths.end(), [&](std::int64_t ns) { return static_cast<double>(ns) > longer; });
  return static_cast<double>(count) * static_cast<double>(about.steps) < kPart * static_cast<double>(lengths.size());
}

// The share of its time in which the thread had no core, where one step has these stretches and others have none: it
// may be that, or another thread of the program that had none and was waited for. 0: it is no question.
double may_be_a_pause(const Case& about, const std::vector<const BetweenOperators*>& stretches) {
  constexpr std::int64_t kFewestRecorded = 3;
  constexpr double kOften = 0.1;
  if (about.steps < kFewestRecorded || only_step(about, stretches) == StepId::none) return 0;
  const double wait = rate_in_steps(about.run, about.trace.rank.rank, "main_thread_wait").value_or(0);
  return wait < kOften ? 0 : wait;
}

// A function that mostly saves, or logs, calls its operators for that.
void add_its_operators(const Case& about, const Function& function, const WordsOf& words, std::int64_t between_ns,
                       Diagnosis& found) {
  std::vector<std::uint32_t> nodes;
  std::int64_t operators_ns = 0;
  for (const Operator& one : forward_operators(about)) {
    const Code code = about.code(*one.trace, one.slice);
    if (function_of(code) != function || is_in_model(code, *code.own())) continue;
    for (const std::uint32_t node : passes(about).nodes(*one.trace, one.slice)) {
      nodes.push_back(node);
      operators_ns += about.cost_ns(node);
    }
  }
  // What keeps a journal works for nothing else.
  if (words.doing == Doing::exchanging || (words.doing != Doing::logging && operators_ns > between_ns)) return;
  for (const std::uint32_t node : nodes) {
    const auto cost = static_cast<double>(about.cost_ns(node));
    found.rewrite.nodes.push_back(
        {node, static_cast<std::int64_t>(words.least * cost), static_cast<std::int64_t>(words.most * cost)});
  }
}

// Where nearly all of the steps is such time, next to nothing of them was recorded, and what is left says nothing.
void doubt_unrecorded(double share, Diagnosis& found) {
  constexpr double kNearlyAll = 0.9;
  put_doubt(found.finding, "what runs there is not recorded: the gain is between none and all of it");
  if (share <= kNearlyAll) return;
  put_doubt(found.finding, "what runs there is not recorded");
  found.no_gain = "Not predicted: next to nothing of these steps was recorded.";
}

}  // namespace

void find_code_between(const Case& about, const WordsOf& words, std::vector<Diagnosis>& out) {
  std::map<Function, std::vector<const BetweenOperators*>> functions;
  for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
    if (one.doing != words.doing || (one.doing == Doing::computing && is_in_optimizer_or_autograd(one.code))) continue;
    const CodeCall* only = only_call(about, one, words);
    functions[only == nullptr ? function_of(one.code) : Function(only->file, only->line)].push_back(&one);
  }
  for (const auto& [function, stretches] : functions) {
    Diagnosis found;
    std::int64_t time_ns = 0, all_ns = 0, seen_ns = 0, longest_ns = 0;
    const BetweenOperators* longest = nullptr;
    const double no_core = words.doing == Doing::computing ? part_without_core(about) : 0;
    for (const BetweenOperators* one : stretches) {
      const std::int64_t cost = about.cost_ns(one->node);
      constexpr double kBareLeast = 0.5, kBareMost = 0.8;
      const bool bare = is_bare(about, *one);
      const double wait = bare ? no_core : 0;  // which no change of that code takes away
      const double least = wait + (1 - wait) * (bare ? kBareLeast : words.least);
      const double most = wait + (1 - wait) * (bare ? kBareMost : words.most);
      found.rewrite.nodes.push_back({one->node, static_cast<std::int64_t>(least * static_cast<double>(cost)),
                                     static_cast<std::int64_t>(most * static_cast<double>(cost))});
      time_ns += static_cast<std::int64_t>((1 - wait) * static_cast<double>(about.on_path(one->node)));
      all_ns += cost, seen_ns += one->code.seen_ns;
      if (cost > longest_ns) longest_ns = cost, longest = one;
    }
    if (longest == nullptr || about.share(time_ns) < kWorthSaying) continue;
    if (words.doing == Doing::computing && is_chance(about, stretches)) continue;
    const double pause = words.doing == Doing::computing ? may_be_a_pause(about, stretches) : 0;
    if (pause > 0) {
      for (auto& node : found.rewrite.nodes) node.most_ns = about.cost_ns(node.node);
    }
    if (words.doing != Doing::computing && !function.first.empty()) {
      add_its_operators(about, function, words, all_ns, found);
    }
    std::vector<std::uint32_t> nodes;
    for (const BetweenOperators* one : stretches) nodes.push_back(one->node);
    const Fetched fetched = words.doing == Doing::computing ? fetched_by(about, function, nodes) : Fetched{};
    for (const std::uint32_t node : fetched.nodes) found.rewrite.nodes.push_back({.node = node});
    found.rewrite.no_wait = fetched.waits;
    found.explains = fetched.late;
    Finding& finding = found.finding;
    const Work work = about.work(longest->node);
    finding.cause = std::string(words.cause);
    about.put_place(work, longest->code, finding.where);
    finding.sentence = std::string(words.sentence);
    finding.evidence = {{.text = "Of the steps", .value = about.share(time_ns), .unit = Unit::ratio},
                        {.text = "Per step", .value = time_ns / about.steps, .unit = Unit::ns}};
    const CodeFrame* own = longest->code.own();
    const CodeCall* only = only_call(about, *longest, words);
    if (const CodeFrame* caller = longest->code.caller(); words.too_often && longest->code.caller_line > 0) {
      finding.where.function = caller->function;
      finding.where.file = caller->file;
      finding.where.line = longest->code.caller_line;
    }
    if (only != nullptr) {
      put_call(*only, finding.where);
      finding.sentence += fmt::format(": {}()", words.called);
    } else if (own != nullptr) {
      finding.sentence += fmt::format(": {}", own->function);
      if (const CodeFrame* called = called_by(longest->code, *own)) {
        finding.evidence.push_back({.text = "It calls " + called->function, .value = Value()});
      }
    }
    put_doubt(finding, pause > 0
                           ? fmt::format("the thread had no core for {:.0f} % of its time, and this may be such a "
                                         "pause",
                                         100 * pause)
                           : "");
    // The code that was seen is none that takes as long: what a step does now and then is in no other.
    constexpr std::int64_t kLonger = 4, kTellingNs = 500'000;
    const auto count = static_cast<std::int64_t>(stretches.size());
    if (seen_ns > 0 && all_ns > kLonger * seen_ns && all_ns - seen_ns > kTellingNs * count) {
      const auto each_ms = [&](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(count) / 1e6; };
      put_doubt(finding,
                fmt::format("where frames were recorded it took {:.1f} ms in place of {:.1f} ms: what else runs "
                            "there is not known",
                            each_ms(seen_ns), each_ms(all_ns)));
    }
    finding.next = std::string(words.next);
    if (fetched.bytes > 0) {
      finding.evidence.push_back(
          {.text = "Fetched from the device for it", .value = fetched.bytes / about.steps, .unit = Unit::bytes});
      finding.next = "Do it on the device, with torch operators, and fetch only the result, every so many steps";
    }
    if (words.doing == Doing::unknown) doubt_unrecorded(about.share(time_ns), found);
    out.push_back(std::move(found));
  }
}

}  // namespace stepscope::diagnose
