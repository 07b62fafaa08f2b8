// serving: the rounds of a serving engine by kind (prefill, decode, both), with batch, tokens and time.
//
// The engines name their rounds (model/serving_marks.h). A round is timed on the host by its mark and on the device by
// the union of the work that was launched in it.
#include "model/serving_marks.h"

#include <algorithm>
#include <array>
#include <map>

#include "analyze/analysis.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {
namespace {

struct Round {
  const Trace* trace;
  SliceId slice;
  ServingMark mark;
  std::int64_t device_ns = 0, until = std::numeric_limits<std::int64_t>::min();
};

std::vector<Round> rounds_of(const Trace& trace) {
  std::vector<Round> rounds;
  std::vector<char> verdict(trace.strings.size(), 0);
  for (const SliceId id : trace.by_track) {  // outer marks come before those inside them
    const StringId name = trace.slices.name[id];
    if (name == StringId::none || trace.kind(id) != SliceKind::user_annotation) continue;
    char& known = verdict[static_cast<std::size_t>(name)];
    if (known == 0) known = serving_mark(trace.strings[name]) ? 'y' : 'n';
    if (known == 'n') continue;
    const bool inside = !rounds.empty() && trace.slices.track[rounds.back().slice] == trace.slices.track[id] &&
                        trace.slices.start_ns[id] < trace.slices.end_ns(rounds.back().slice);
    if (!inside) rounds.push_back({&trace, id, *serving_mark(trace.strings[name])});
  }
  std::stable_sort(rounds.begin(), rounds.end(), [&](const Round& a, const Round& b) {
    return trace.slices.start_ns[a.slice] < trace.slices.start_ns[b.slice];
  });
  return rounds;
}

// Work belongs to the round in which its launch call started.
void add_device_time(std::vector<Round>& rounds, const Trace& trace) {
  if (rounds.empty()) return;
  for (const std::uint32_t row : work_by_start(trace)) {
    const SliceId launch = trace.device.launch[row], work = trace.device.slice[row];
    if (launch == SliceId::none) continue;
    const std::int64_t called = trace.slices.start_ns[launch];
    auto after = std::upper_bound(rounds.begin(), rounds.end(), called, [&](std::int64_t time, const Round& round) {
      return time < trace.slices.start_ns[round.slice];
    });
    if (after == rounds.begin()) continue;
    Round& round = *std::prev(after);
    if (called >= trace.slices.end_ns(round.slice)) continue;
    const std::int64_t end = trace.slices.end_ns(work);
    if (end <= round.until) continue;
    round.device_ns += end - std::max(trace.slices.start_ns[work], round.until);
    round.until = end;
  }
}

std::int64_t tokens_of(const ServingMark& mark) {
  if (mark.prefill_tokens < 0 && mark.decode_tokens < 0) return -1;
  return std::max<std::int64_t>(0, mark.prefill_tokens) + std::max<std::int64_t>(0, mark.decode_tokens);
}

std::int64_t requests_of(const ServingMark& mark) {
  if (mark.prefill_requests < 0 && mark.decode_requests < 0) return -1;
  return std::max<std::int64_t>(0, mark.prefill_requests) + std::max<std::int64_t>(0, mark.decode_requests);
}

Value told(std::int64_t number) { return value_if(number >= 0, number); }

struct KindSum {
  std::int64_t rounds = 0, device_ns = 0, host_ns = 0;
  std::int64_t requests = 0, request_rounds = 0;  // of rounds that tell their requests
  std::int64_t tokens = 0, token_rounds = 0, token_host_ns = 0, token_device_ns = 0;  // of those that tell tokens
  std::vector<std::int64_t> hosts, devices;
};

void add(KindSum& sum, const Round& round) {
  const std::int64_t host = round.trace->slices.dur_ns[round.slice];
  sum.rounds++;
  sum.host_ns += host;
  sum.device_ns += round.device_ns;
  sum.hosts.push_back(host);
  sum.devices.push_back(round.device_ns);
  if (const std::int64_t requests = requests_of(round.mark); requests >= 0) {
    sum.requests += requests;
    sum.request_rounds++;
  }
  if (const std::int64_t tokens = tokens_of(round.mark); tokens > 0) {
    sum.tokens += tokens;
    sum.token_rounds++;
    sum.token_host_ns += host;
    sum.token_device_ns += round.device_ns;
  }
}

std::vector<TableColumn> sum_columns() {
  return {
      {"rounds", ValueType::integer, Unit::count, "Rounds"},
      {"mean_requests", ValueType::real, Unit::none, "Mean requests of a round; unknown: the marks do not tell"},
      {"tokens", ValueType::integer, Unit::count, "Tokens of the rounds that tell them"},
      {"host_median_ns", ValueType::integer, Unit::ns, "Median length of the round's mark on the host"},
      {"device_median_ns", ValueType::integer, Unit::ns, "Median time in which work launched in the round ran"},
      {"host_total_ns", ValueType::integer, Unit::ns, "Length of all marks"},
      {"device_total_ns", ValueType::integer, Unit::ns, "Device time of all rounds"},
      {"host_ns_per_token", ValueType::real, Unit::ns, "Host time over tokens, of the rounds that tell tokens"},
      {"device_ns_per_token", ValueType::real, Unit::ns, "Device time over tokens, of the rounds that tell tokens"}};
}

Value over(std::int64_t part, std::int64_t whole) { return share(part, whole); }

void append(std::vector<Value>& row, KindSum& sum, bool device) {
  row.insert(row.end(),
             {sum.rounds, over(sum.requests, sum.request_rounds), value_if(sum.token_rounds > 0, sum.tokens),
              to_value(median(std::move(sum.hosts))), device ? to_value(median(std::move(sum.devices))) : Value(),
              sum.host_ns, value_if(device, sum.device_ns), over(sum.token_host_ns, sum.tokens),
              device ? over(sum.token_device_ns, sum.tokens) : Value()});
}

Table kinds_table(const std::vector<std::vector<Round>>& ranks) {
  Table table{.name = "kinds",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"engine", ValueType::text, Unit::none, "Whose marks these are"},
                          {"kind", ValueType::text, Unit::none,
                           "prefill, decode, mixed (both in one round), idle, other (the mark does not tell)"}}};
  for (TableColumn& column : sum_columns()) table.columns.push_back(std::move(column));
  for (const auto& rounds : ranks) {
    std::array<KindSum, kServingKinds> sums;
    for (const Round& round : rounds) add(sums[static_cast<std::size_t>(round.mark.kind)], round);
    for (std::size_t kind = 0; kind < kServingKinds; kind++) {
      if (sums[kind].rounds == 0) continue;
      const Round& first = rounds.front();
      std::vector<Value> row{first.trace->rank.rank, std::string(first.mark.engine),
                             std::string(to_string(static_cast<ServingKind>(kind)))};
      append(row, sums[kind], first.trace->device.size() > 0);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table batches_table(const std::vector<std::vector<Round>>& ranks) {
  Table table{.name = "batches",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"kind", ValueType::text, Unit::none, "Kind of round"},
                          {"prefill_requests", ValueType::integer, Unit::count, "Requests that were prefilled"},
                          {"decode_requests", ValueType::integer, Unit::count, "Requests that were decoded"}}};
  for (TableColumn& column : sum_columns()) table.columns.push_back(std::move(column));
  for (const auto& rounds : ranks) {
    std::map<std::tuple<ServingKind, std::int64_t, std::int64_t>, KindSum> sums;
    for (const Round& round : rounds)
      add(sums[{round.mark.kind, round.mark.prefill_requests, round.mark.decode_requests}], round);
    for (auto& [key, sum] : sums) {
      const auto& [kind, prefills, decodes] = key;
      std::vector<Value> row{rounds.front().trace->rank.rank, std::string(to_string(kind)), told(prefills),
                             told(decodes)};
      append(row, sum, rounds.front().trace->device.size() > 0);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table rounds_table(const std::vector<std::vector<Round>>& ranks) {
  Table table{.name = "rounds",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"start_ns", ValueType::integer, Unit::ns, "When it began, on the clock of the file"},
                          {"name", ValueType::text, Unit::none, "The mark as recorded"},
                          {"kind", ValueType::text, Unit::none, "Kind of round"},
                          {"prefill_requests", ValueType::integer, Unit::count, "Requests that were prefilled"},
                          {"prefill_tokens", ValueType::integer, Unit::count, "Their tokens"},
                          {"decode_requests", ValueType::integer, Unit::count, "Requests that were decoded"},
                          {"decode_tokens", ValueType::integer, Unit::count, "Their tokens"},
                          {"host_ns", ValueType::integer, Unit::ns, "Length of the mark"},
                          {"device_ns", ValueType::integer, Unit::ns, "Time in which work launched in it ran"}}};
  for (const auto& rounds : ranks) {
    for (const Round& round : rounds) {
      const Trace& trace = *round.trace;
      const ServingMark& mark = round.mark;
      table.rows.push_back({trace.rank.rank, trace.slices.start_ns[round.slice], text(trace.name(round.slice)),
                            std::string(to_string(mark.kind)), told(mark.prefill_requests), told(mark.prefill_tokens),
                            told(mark.decode_requests), told(mark.decode_tokens), trace.slices.dur_ns[round.slice],
                            value_if(trace.device.size() > 0, round.device_ns)});
    }
  }
  return table;
}

constexpr std::string_view kNoMarks =
    "No marks of a serving engine were recorded. vLLM (execute_context_…) and SGLang (step[…]) write them while their "
    "profiler runs: start it with /start_profile.";

Result<Answer> run_serving(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<std::vector<Round>> ranks;
  std::int64_t rounds = 0, tokens = 0;
  bool told_tokens = false;
  for (const Trace& trace : run.traces) {
    std::vector<Round> found = rounds_of(trace);
    add_device_time(found, trace);
    for (const Round& round : found) {
      rounds++;
      told_tokens = told_tokens || tokens_of(round.mark) >= 0;
      tokens += std::max<std::int64_t>(0, tokens_of(round.mark));
    }
    if (!found.empty()) ranks.push_back(std::move(found));
  }
  add_scalar(answer, "round_count", value_if(rounds > 0, rounds), Unit::count,
             rounds > 0 ? "Rounds of the serving engine, of all ranks" : kNoMarks);
  add_scalar(answer, "token_count", value_if(told_tokens, tokens), Unit::count,
             told_tokens  ? "Tokens of all rounds that tell them, prefilled and generated, summed over ranks"
             : rounds > 0 ? "The marks do not tell tokens"
                          : kNoMarks);
  answer.tables = {kinds_table(ranks), batches_table(ranks), rounds_table(ranks)};
  limit_rows(answer, answer.tables[1], options.max_rows, "further batches");
  limit_rows(answer, answer.tables[2], options.max_rows, "later rounds");
  if (rounds == 0) answer.notes.push_back(std::string(kNoMarks));
  return answer;
}

}  // namespace

Analysis serving_analysis() {
  return {"serving", "How long do prefill and decode take, for which batches?", run_serving};
}

}  // namespace stepscope::analyze
