#include "diagnose/source.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/text_parts.h"

namespace stepscope::diagnose {
namespace {

// Where a recording does not say which files are the program's own: what is surely none of them.
bool is_library(std::string_view file) {
  constexpr std::array<std::string_view, 5> inside{"site-packages/", "dist-packages/", "/lib/python3", "<frozen",
                                                   "_stepscope_hooks/"};
  constexpr std::array<std::string_view, 32> first{
      "torch/",           "numpy/",         "threading.py",   "contextlib.py", "typing.py",
      "functools.py",     "logging/",       "json/",          "re/",           "abc.py",
      "enum.py",          "weakref.py",     "_weakrefset.py", "copy.py",       "collections/",
      "multiprocessing/", "concurrent/",    "asyncio/",       "queue.py",      "selectors.py",
      "socket.py",        "pickle.py",      "random.py",      "signal.py",     "warnings.py",
      "inspect.py",       "dataclasses.py", "os.py",          "subprocess.py", "tempfile.py",
      "shutil.py",        "runpy.py"};
  const auto has = [&](std::string_view part) { return file.find(part) != file.npos; };
  return file.empty() || std::any_of(inside.begin(), inside.end(), has) ||
         std::any_of(first.begin(), first.end(), [&](std::string_view part) { return file.starts_with(part); });
}

constexpr std::string_view kConstant = "(constant)", kSame = "(same)";
constexpr std::string_view kAgain = "(again) ", kThrown = "(thrown) ", kPadded = "(padded) ", kFrames = "(frames) ",
                           kIgnored = "(ignored) ";
constexpr std::int64_t kThousand = 1000;

// Takes a whole number, and the space behind it, from the front of a text; nullopt: none is there.
std::optional<std::int64_t> taken_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return number;
}

double share_of(std::int64_t permille) { return static_cast<double>(permille) / static_cast<double>(kThousand); }

bool is_loop(const CodeCall& call) { return call.called == "__next__"; }

// Of "(carries) 31" the line.
std::optional<std::int64_t> line_in(std::string_view called, std::string_view before) {
  if (!called.starts_with(before)) return std::nullopt;
  const std::string_view digits = called.substr(before.size());
  std::int64_t line = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  return line;
}

// Takes both shares of what fills up from a note; false: they are none.
bool take_shares(std::string_view& rest, Source::Padded& to) {
  const auto filled = taken_number(rest), needless = taken_number(rest);
  if (!filled || !needless || *filled > kThousand || *needless > *filled) return false;
  to.filled = share_of(*filled), to.needless = share_of(*needless);
  return true;
}

}  // namespace

Source::Source(const std::vector<CodeCall>& code) : code_(&code) {
  for (const CodeCall& call : code) {
    files_[call.file].push_back(&call);
    functions_[call.file][call.function_line].push_back(&call);
  }
}

const Source::Calls& Source::of_file(std::string_view file) const {
  static const Calls none;
  const auto calls = files_.find(file);
  return calls == files_.end() ? none : calls->second;
}

const Source::Calls& Source::of_function(const CodeFrame& function) const {
  static const Calls none;
  const auto file = functions_.find(function.file);
  if (file == functions_.end()) return none;
  const auto at = file->second.find(first_line(function));
  return at == file->second.end() ? none : at->second;
}

bool Source::is_own(std::string_view file) const { return files_.empty() ? !is_library(file) : files_.contains(file); }

std::int64_t Source::first_line(const CodeFrame& function) const {
  if (function.function == "<module>") return 1;
  const auto file = functions_.find(function.file);
  if (file == functions_.end()) return 0;
  const auto behind = file->second.upper_bound(function.line);
  return behind == file->second.begin() ? 0 : std::max<std::int64_t>(0, std::prev(behind)->first);
}

bool Source::has_function_without(std::string_view file, std::string_view name,
                                  std::span<const std::string_view> calls) const {
  const auto functions = functions_.find(file);
  if (functions == functions_.end()) return false;
  const std::string definition = "def " + std::string(name);
  const auto calls_any = [&](const CodeCall* call) {
    return std::find(calls.begin(), calls.end(), call->called) != calls.end();
  };
  return std::any_of(functions->second.begin(), functions->second.end(), [&](const auto& function) {
    const Calls& rows = function.second;
    const bool is_it =
        std::any_of(rows.begin(), rows.end(), [&](const CodeCall* call) { return call->called == definition; });
    return is_it && std::none_of(rows.begin(), rows.end(), calls_any);
  });
}

bool Source::is_one_function(const CodeFrame& a, const CodeFrame& b) const {
  return a.file == b.file && first_line(a) == first_line(b);
}

std::int64_t Source::call_line(const CodeFrame& function, std::string_view called) const {
  // A model is no function of that name in the source: "nn.Module: Net_0" is where the hooks noted "(calls) Net".
  std::string model;
  if (const std::string_view class_name = class_of_module_frame(called); !class_name.empty()) {
    model = "(calls) " + std::string(class_name);
    called = model;
  }
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  std::int64_t line = 0, loop_line = 0;
  for (const CodeCall* call : calls) {
    if (call->function_line != first || !is_loop(*call)) continue;
    if (loop_line == 0 || call->line < loop_line) loop_line = call->line;
  }
  for (const CodeCall* call : calls) {
    if (call->function_line != first || call->called != called) continue;
    if (loop_line > 0 && call->line > loop_line) return call->line;
    if (line == 0) line = call->line;
  }
  return line;
}

std::int64_t Source::looped_call_line(const CodeFrame& function, std::string_view called) const {
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  std::vector<std::pair<std::int64_t, std::int64_t>> loops;  // first line and last
  for (const CodeCall* call : calls) {
    if (call->function_line != first) continue;
    if (const auto last = line_in(call->called, "(turns) ")) loops.emplace_back(call->line, *last);
  }
  std::int64_t line = call_line(function, called);
  std::ptrdiff_t most = 0;
  for (const CodeCall* call : calls) {
    if (call->function_line != first || call->called != called) continue;
    const std::ptrdiff_t around = std::count_if(loops.begin(), loops.end(), [&](const auto& loop) {
      return loop.first < call->line && call->line <= loop.second;
    });
    if (around > most) most = around, line = call->line;
  }
  return line;
}

std::int64_t Source::only_call_line(const CodeFrame& function, std::string_view called) const {
  std::int64_t line = 0;
  for (const CodeCall* call : of_function(function)) {
    if (call->called != called || call->line == line) continue;
    if (line > 0) return 0;
    line = call->line;
  }
  return line;
}

std::int64_t Source::symbol_line(const CodeFrame& function, std::string_view symbol, std::int64_t from,
                                 std::int64_t to) const {
  constexpr std::string_view kSymbol = "(symbol) ";
  constexpr std::int64_t kOneExpression = 3;  // lines of it
  const auto is_between = [&](std::int64_t line) {
    const bool behind = from == 0 || line >= from, before = to == 0 || line <= to;
    return from > 0 && to > 0 && from > to ? behind || before : behind && before;
  };
  std::int64_t least = 0, most = 0;
  for (const CodeCall* call : of_function(function)) {
    const std::string_view name = call->called;
    if (!name.starts_with(kSymbol) || name.substr(kSymbol.size()) != symbol) continue;
    if (!is_between(call->line)) continue;
    least = least == 0 ? call->line : std::min(least, call->line);
    most = std::max(most, call->line);
  }
  return most - least < kOneExpression ? least : 0;
}

bool Source::calls_on_each(const CodeFrame& function, std::string_view called, std::int64_t line) const {
  constexpr std::string_view kEach = "(each) ";
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  return std::any_of(calls.begin(), calls.end(), [&](const CodeCall* call) {
    const std::string_view name = call->called;
    return call->function_line == first && call->line == line && name.starts_with(kEach) &&
           name.substr(kEach.size()) == called;
  });
}

const CodeCall* Source::drops(const CodeFrame& function, std::string_view called) const {
  constexpr std::string_view kDrops = "(drops) ";
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  const CodeCall* dropped = nullptr;
  std::size_t all = 0, drops = 0;
  for (const CodeCall* call : calls) {
    if (call->function_line != first) continue;
    const std::string_view name = call->called;
    if (name == called) all++;
    if (!name.starts_with(kDrops) || name.substr(kDrops.size()) != called) continue;
    drops++;
    if (dropped == nullptr) dropped = call;
  }
  return all > drops ? nullptr : dropped;  // names are all that is known: another one of that name may be this
}

bool Source::is_said(const CodeFrame& function, std::string_view what) const {
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  return std::any_of(calls.begin(), calls.end(),
                     [&](const CodeCall* call) { return call->function_line == first && call->called == what; });
}

bool Source::keeps(const CodeFrame& function) const { return is_said(function, "(keeps)"); }

std::optional<Source::Constant> Source::constant(const CodeFrame& function) const {
  constexpr std::string_view kUnless = " unless ";
  // A lambda below it has no line of its own.
  if (!is_said(function, "def " + function.function)) return std::nullopt;
  const std::int64_t first = first_line(function);
  for (const CodeCall* call : of_file(function.file)) {
    std::string_view rest = call->called;
    const bool is_given = rest.starts_with(kSame);
    if (call->function_line != first || !(is_given || rest.starts_with(kConstant))) continue;
    rest.remove_prefix(is_given ? kSame.size() : kConstant.size());
    Constant out{.is_given = is_given};
    if (rest.starts_with(kUnless)) out.unless = split(rest.substr(kUnless.size()), " ");
    return out;
  }
  return std::nullopt;
}

bool Source::has_constants() const {
  return std::any_of(code_->begin(), code_->end(), [](const CodeCall& call) {
    return call.called.starts_with(kConstant) || call.called.starts_with(kSame);
  });
}

bool Source::has_loop_before(const CodeFrame& function, std::int64_t line) const {
  const Calls& calls = of_file(function.file);
  const std::int64_t first = first_line(function);
  return std::any_of(calls.begin(), calls.end(), [&](const CodeCall* call) {
    return call->function_line == first && is_loop(*call) && call->line <= line;
  });
}

const CodeCall* Source::loop_around(const Code& code) const {
  const CodeFrame* own = code.own();
  if (own == nullptr) return nullptr;
  const Calls& calls = of_file(own->file);
  const CodeCall* last = nullptr;
  const std::int64_t first = first_line(*own), before = std::max(code.call_line, own->line);
  for (const CodeCall* call : calls) {
    if (call->function_line != first || !is_loop(*call)) continue;
    if (before != first && call->line > before) continue;
    if (last == nullptr || call->line > last->line) last = call;
  }
  return last;
}

bool Source::carries(const CodeCall& loop, std::int64_t line) const {
  for (const CodeCall* call : of_file(loop.file)) {
    if (call->function_line != loop.function_line || call->line != loop.line) continue;
    if (const auto last = line_in(call->called, "(carries) ")) return line <= *last;
  }
  return false;
}

const CodeCall* Source::first_call(std::string_view called) const {
  const auto found =
      std::find_if(code_->begin(), code_->end(), [&](const CodeCall& call) { return call.called == called; });
  return found == code_->end() ? nullptr : &*found;
}

std::vector<Source::Turn> Source::called_again() const { return turns(kAgain); }

std::vector<Source::Turn> Source::thrown_away() const { return turns(kThrown); }

std::vector<Source::Turn> Source::turns(std::string_view before) const {
  std::vector<Turn> out;
  for (const CodeCall& call : *code_) {
    std::string_view rest = call.called;
    if (!rest.starts_with(before)) continue;
    rest.remove_prefix(before.size());
    const auto number = taken_number(rest), count = taken_number(rest);
    if (!number || !count || *number < 1 || *number > *count || rest.empty()) continue;
    out.push_back({rest, static_cast<std::size_t>(*number), static_cast<std::size_t>(*count), &call});
  }
  return out;
}

std::vector<Source::Padded> Source::padded() const {
  std::vector<Padded> out;
  for (const CodeCall& call : *code_) {
    std::string_view rest = call.called;
    if (!rest.starts_with(kPadded)) continue;
    rest.remove_prefix(kPadded.size());
    Padded one{.call = &call};
    if (!take_shares(rest, one) || rest.empty()) continue;
    one.module = rest;
    out.push_back(one);
  }
  return out;
}

std::vector<Source::Padded> Source::padded_frames() const {
  std::vector<Padded> out;
  for (const CodeCall& call : *code_) {
    std::string_view rest = call.called;
    if (!rest.starts_with(kFrames)) continue;
    rest.remove_prefix(kFrames.size());
    Padded one{.call = &call};
    if (!take_shares(rest, one)) continue;
    const auto rows = taken_number(rest), length = taken_number(rest);
    if (!rows || !length || *rows < 1 || *length < 1 || rest.empty()) continue;
    one.module = rest, one.rows = *rows, one.length = *length;
    out.push_back(one);
  }
  return out;
}

std::vector<Source::Ignored> Source::ignored() const {
  std::vector<Ignored> out;
  for (const CodeCall& call : *code_) {
    if (!std::string_view(call.called).starts_with(kIgnored)) continue;
    std::string_view rest = std::string_view(call.called).substr(kIgnored.size());
    const auto share = taken_number(rest);
    if (share && *share <= kThousand && rest.empty()) out.push_back({share_of(*share), &call});
  }
  return out;
}

const CodeCall* Source::only_call(std::string_view called) const {
  const CodeCall* only = nullptr;
  for (const CodeCall& call : *code_) {
    if (call.called != called) continue;
    if (only != nullptr) return nullptr;
    only = &call;
  }
  return only;
}

// The call behind a "for" from which the program comes to this one; nullptr: there is none.
const CodeCall* Source::loop_that_calls(const CodeCall& call) const {
  constexpr int kDeepest = 8;
  constexpr std::string_view kDef = "def ";
  const CodeCall* at = &call;
  for (int level = 0; at != nullptr && level < kDeepest; level++) {
    const CodeCall* function = nullptr;
    for (const CodeCall* one : of_file(at->file)) {
      if (one->function_line != at->function_line) continue;
      if (is_loop(*one) && one->line <= at->line) return at;
      if (one->called.starts_with(kDef)) function = one;
    }
    if (function == nullptr) break;
    at = first_call(std::string_view(function->called).substr(kDef.size()));
  }
  return nullptr;
}

const CodeCall* Source::call_in_loop(std::string_view called) const {
  for (const CodeCall& call : *code_) {
    if (call.called != called) continue;
    if (const CodeCall* found = loop_that_calls(call)) return found;
  }
  return nullptr;
}

void put_call(const CodeCall& call, Place& place) {
  place.file = call.file;
  place.line = call.line;
  place.function.reset();
  place.module.reset();
}

}  // namespace stepscope::diagnose
