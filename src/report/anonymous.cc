#include "report/anonymous.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stepscope::report {
namespace {

using Change = std::function<void(std::string&)>;

void each_text(Value& value, const Change& change) {
  if (auto* const text = std::get_if<std::string>(&value)) change(*text);
}

void each_text(std::optional<std::string>& text, const Change& change) {
  if (text) change(*text);
}

void each_text(Finding& finding, const Change& change) {
  change(finding.sentence);
  change(finding.gain_reason);
  change(finding.confidence_reason);
  for (auto* part : {&finding.where.module, &finding.where.op, &finding.where.function, &finding.where.file}) {
    each_text(*part, change);
  }
  for (Evidence& evidence : finding.evidence) {
    change(evidence.text);
    each_text(evidence.value, change);
    each_text(evidence.query, change);
  }
  each_text(finding.next, change);
}

void each_text(Answer& answer, const Change& change) {
  for (Scalar& scalar : answer.scalars) {
    each_text(scalar.value, change);
    change(scalar.meaning);
    change(scalar.label);
  }
  for (Table& table : answer.tables) {
    for (TableColumn& column : table.columns) {
      change(column.meaning);
      change(column.label);
    }
    for (auto& row : table.rows) {
      for (Value& cell : row) each_text(cell, change);
    }
  }
  for (Series& series : answer.series) {
    change(series.name);
    change(series.target);
  }
  for (Bands& of : answer.bands) {
    for (Band& band : of.bands) change(band.label);  // a step may have a name
  }
  for (Finding& finding : answer.findings) each_text(finding, change);
  for (std::string& note : answer.notes) change(note);
}

void each_text(Report& report, const Change& change) {
  change(report.path);
  for (Input& input : report.inputs) change(input.path);
  for (Issue& issue : report.issues) {
    change(issue.sentence);
    change(issue.advice);
    change(issue.file);
  }
  for (Answer& answer : report.answers) each_text(answer, change);
  for (auto& [name, reason] : report.failed) change(reason);
}

bool is_name(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.' || byte >= 0x80;
}

bool in_path(char c) { return is_name(c) || std::string_view("/+@~%#=:").find(c) != std::string_view::npos; }

// A path starts where a text or a word starts, not within one: "GB/s" and "a / b" are none.
bool starts_path(std::string_view text, std::size_t at) {
  if (text[at] != '/' || at + 1 >= text.size() || (!is_name(text[at + 1]) && text[at + 1] != '~')) return false;
  return at == 0 || std::string_view(" \t\"'`(=:[<,;|").find(text[at - 1]) != std::string_view::npos;
}

std::string without_folders(std::string_view text, const std::function<void(std::string_view)>& seen) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!starts_path(text, at)) {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && in_path(text[end])) end++;
    std::string_view path = text.substr(at, end - at);
    seen(path);
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    out += path.substr(path.rfind('/') + 1);
    at = end;
  }
  return out;
}

// Whole words only: a host called "gpu" does not change "gpu_user_annotation".
std::string with_word(const std::string& text, std::string_view word, std::string_view other) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = text.find(word); found != std::string::npos; found = text.find(word, found + 1)) {
    const std::size_t end = found + word.size();
    const auto part_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
    const bool starts = found == 0 || !(part_of_word(text[found - 1]) || text[found - 1] == '_');
    // HOST_PID: what follows is a number.
    const bool number =
        end + 1 < text.size() && text[end] == '_' && std::isdigit(static_cast<unsigned char>(text[end + 1]));
    const bool ends = end == text.size() || number || !(part_of_word(text[end]) || text[end] == '_');
    if (!starts || !ends || found < at) continue;
    out.append(text, at, found - at).append(other);
    at = end;
  }
  return out + text.substr(at);
}

// "node-3" of node-3_4711.1700000000.pt.trace.json.gz and node-3_4711.ring; empty where the name is another.
std::string host_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (std::size_t at = name.find('_'); at != std::string::npos; at = name.find('_', at + 1)) {
    std::size_t end = at + 1;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) end++;
    if (at > 0 && end > at + 1 && end < name.size() && name[end] == '.') return name.substr(0, at);
  }
  return "";
}

void add_user(std::string_view path, std::map<std::string, std::string>& users) {
  constexpr std::array<std::string_view, 3> kHomes{"/home/", "/Users/", "/users/"};
  for (const std::string_view home : kHomes) {
    if (!path.starts_with(home)) continue;
    const std::string_view rest = path.substr(home.size());
    const std::string user(rest.substr(0, rest.find('/')));
    if (user.size() > 1) users.emplace(user, "user-" + std::to_string(users.size() + 1));
  }
}

}  // namespace

void anonymize(Report& report) {
  std::map<std::string, std::string> hosts, users;
  const auto add_host = [&](const std::string& host) {
    if (host.size() > 1) hosts.emplace(host, "host-" + std::to_string(hosts.size() + 1));
  };
  for (const std::string& host : report.hosts) add_host(host);
  for (const Input& input : report.inputs) add_host(host_in_name(input.path));
  each_text(report, [&](std::string& text) {
    text = without_folders(text, [&](std::string_view path) { add_user(path, users); });
  });
  each_text(report, [&](std::string& text) {
    for (const auto* names : {&hosts, &users}) {
      for (const auto& [name, other] : *names) text = with_word(text, name, other);
    }
  });
  report.hosts.clear();
}

}  // namespace stepscope::report
