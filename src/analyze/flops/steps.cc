#include "analyze/flops/steps.h"

#include <algorithm>
#include <map>

namespace stepscope::analyze::flops {

using namespace costs;

namespace {

struct StepLine {
  const RankCosts* rank;
  const Step* step;
  std::int64_t wall_ns = 0;
  FlopSum sum;
  std::array<bool, kParts> without_sizes{};  // a call of the part has a formula, but not the sizes for it
  Ideal ideal;

  // A part of which nothing could be counted is no 0.
  bool knows(Part part) const { return sum.of(part) > 0 || !without_sizes[static_cast<std::size_t>(part)]; }
  bool knows_all() const { return knows(Part::forward) && knows(Part::backward) && knows(Part::recompute); }
};

std::vector<StepLine> lines_of(const RankCosts& rank) {
  const std::vector<Interval> walls = step_walls(*rank.trace);
  std::vector<StepLine> lines;
  for (std::size_t i = 0; i < walls.size(); i++) {
    lines.push_back({.rank = &rank, .step = &rank.trace->steps[i], .wall_ns = walls[i].end - walls[i].start});
  }
  for (std::size_t i = 0; i < rank.products.all.size(); i++) {
    const Product& product = rank.products.all[i];
    const StepId step = rank.trace->step_at(rank.trace->slices.start_ns[product.slice]);
    if (step == StepId::none) continue;
    StepLine& line = lines[static_cast<std::size_t>(step)];
    line.sum.add(product);
    line.ideal.add(product, rank.types[i], rank.peaks);
  }
  for (const auto& call : rank.products.without_shapes) {
    const StepId step = rank.trace->step_at(rank.trace->slices.start_ns[call.slice]);
    if (step != StepId::none)
      lines[static_cast<std::size_t>(step)].without_sizes[static_cast<std::size_t>(call.part)] = true;
  }
  return lines;
}

// One of the four shares of the peak, and why it is not there.
struct Share {
  std::string_view name;
  double Ideal::*part;
  bool causal;  // asks for masks
  std::string_view meaning;
};

constexpr std::array kShares{
    Share{"mfu", &Ideal::model_ns, false,
          "Model FLOP (without what ran again) over the wall time and the peak of the device, each product by the peak "
          "of its element type; attention over the whole square"},
    Share{"hfu", &Ideal::all_ns, false, "The same with what ran again in backward"},
    Share{"causal_mfu", &Ideal::causal_model_ns, true, "mfu with half of attention that has a causal mask"},
    Share{"causal_hfu", &Ideal::causal_all_ns, true, "hfu with half of attention that has a causal mask"}};

// Nothing: not known. Above 1 it is not true either, which is told.
std::optional<double> share_of(const StepLine& line, const Share& share) {
  if (!line.ideal.known() || line.wall_ns <= 0 || (share.causal && !line.rank->products.masks_known)) return {};
  return line.ideal.*share.part / static_cast<double>(line.wall_ns);
}

Value believed(std::optional<double> share) { return share && *share <= 1 ? Value(*share) : Value(); }

std::vector<TableColumn> columns() {
  std::vector<TableColumn> all{
      {"rank", ValueType::integer, Unit::none, "Rank"},
      {"step", ValueType::text, Unit::none, "Step"},
      {"partial", ValueType::boolean, Unit::none, "Is it cut by the edge of the recording?"},
      {"wall_ns", ValueType::integer, Unit::ns, "Step up to the end of its device work"},
      {"forward_flop", ValueType::integer, Unit::flop, "Counted in forward"},
      {"backward_flop", ValueType::integer, Unit::flop, "Counted in backward"},
      {"recompute_flop", ValueType::integer, Unit::flop, "Forward that ran again in backward"},
      {"causal_flop", ValueType::integer, Unit::flop,
       "The three together with half of attention that has a causal mask"},
      {"flop_per_s", ValueType::real, Unit::flop_per_s, "The three together over the wall time"}};
  for (const Share& share : kShares) {
    all.push_back({std::string(share.name), ValueType::real, Unit::ratio, std::string(share.meaning)});
  }
  return all;
}

std::vector<Value> cells(const StepLine& line) {
  std::vector<Value> row{line.rank->rank(),
                         text(line.step->name),
                         line.step->partial,
                         line.wall_ns,
                         value_if(line.knows(Part::forward), line.sum.of(Part::forward)),
                         value_if(line.knows(Part::backward), line.sum.of(Part::backward)),
                         value_if(line.knows(Part::recompute), line.sum.of(Part::recompute)),
                         line.knows_all() ? line.rank->causal(line.sum.causal()) : Value(),
                         line.knows_all() ? per_second(line.sum.all(), line.wall_ns) : Value()};
  for (const Share& share : kShares) row.push_back(believed(share_of(line, share)));
  return row;
}

// Why no share of a peak can be given for a rank; empty: it can.
std::string why_no_peak(const RankCosts& rank) {
  if (rank.products.all.empty()) return "No product was counted";
  if (rank.peaks.peaks == nullptr) return no_peaks(rank.peaks);
  Ideal all;
  for (std::size_t i = 0; i < rank.products.all.size(); i++) {
    all.add(rank.products.all[i], rank.types[i], rank.peaks);
  }
  if (all.known()) return "";
  for (const std::string_view type : rank.types) {
    if (type.empty()) return "Element types were not recorded";
    if (!rank.peaks.peaks->flop_per_s(type)) {
      return "The peak of " + rank.peaks.device + " for " + std::string(type) + " is not known" +
             std::string(kGivePeaks);
    }
  }
  return "";
}

void add_shares(Answer& answer, const std::vector<StepLine>& lines, const std::vector<RankCosts>& ranks) {
  std::string reason;
  for (const RankCosts& rank : ranks) {
    if (reason.empty()) reason = why_no_peak(rank);
  }
  for (const Share& share : kShares) {
    std::vector<double> found;
    double largest = 0;
    bool whole = false;
    for (const StepLine& line : lines) {
      if (line.step->partial) continue;
      whole = true;
      if (const auto value = share_of(line, share)) found.push_back(*value);
    }
    std::sort(found.begin(), found.end());
    if (!found.empty()) largest = found.back();
    const bool known = !found.empty() && largest <= 1;
    std::string meaning(share.meaning);
    if (known) {
      meaning += "; median over the whole steps of all ranks";
    } else if (largest > 1) {
      meaning = "Refused: it would be above 100 %, see the notes";
    } else {
      meaning = !reason.empty() ? reason : whole ? "Not recorded whether a mask is causal" : std::string(kNoSteps);
    }
    add_scalar(answer, share.name, known ? to_value(quantile(found, 0.5)) : Value(), Unit::ratio, meaning);
  }
}

void note_refused(Answer& answer, const std::vector<StepLine>& lines) {
  double largest = 0;
  std::size_t steps = 0;
  const StepLine* worst = nullptr;
  for (const StepLine& line : lines) {
    const auto value = share_of(line, kShares[1]);  // the largest of the four
    if (!value || *value <= 1) continue;
    steps++;
    if (*value > largest) {
      largest = *value;
      worst = &line;
    }
  }
  if (worst == nullptr) return;
  answer.notes.push_back(
      "Utilization is refused for " + std::to_string(steps) + (steps == 1 ? " step" : " steps") + ": in " +
      worst->step->name + " of rank " + std::to_string(worst->rank->rank()) + " the products would take " +
      std::to_string(static_cast<int>(largest * 100)) + " % of the wall time at the peak of " +
      worst->rank->peaks.device +
      ". Nothing runs above its peak: the line of peaks is of another device, the step is cut from work that belongs "
      "to it, or sizes were recorded of what did not run (a causal mask leaves out half of attention; groups may end "
      "before the last row).");
}

Table peaks_table(const std::vector<RankCosts>& ranks) {
  Table table{.name = "peaks",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::text, Unit::none, "Device as recorded"},
                          {"devices", ValueType::integer, Unit::count, "Devices that worked for the rank"},
                          {"dtype", ValueType::text, Unit::none,
                           "Element type of products; tfloat32: float32 on tensor cores, by the kernels' names"},
                          {"peak_flop_per_s", ValueType::real, Unit::flop_per_s,
                           "Dense peak of one device; unknown: of no table"},
                          {"share", ValueType::real, Unit::ratio, "Share of the counted FLOP of the rank"},
                          {"source", ValueType::text, Unit::none, "Where the peak comes from"}}};
  for (const RankCosts& rank : ranks) {
    std::map<std::string_view, std::int64_t> types;
    for (std::size_t i = 0; i < rank.types.size(); i++) {
      std::int64_t& flop = types[rank.types[i]];
      flop = add_up(flop, rank.products.all[i].flop);
    }
    for (const auto& [type, flop] : types) {
      const DevicePeaks* peaks = rank.peaks.peaks;
      const auto peak = peaks == nullptr ? std::nullopt : peaks->flop_per_s(type);
      table.rows.push_back({rank.rank(), text(rank.peaks.device), count(rank.peaks.devices), text(type), to_value(peak),
                            share(flop, rank.sum.all()), peak ? text(peaks->source) : Value()});
    }
  }
  return table;
}

}  // namespace

void add_steps(Answer& answer, const std::vector<RankCosts>& ranks) {
  std::vector<StepLine> lines;
  for (const RankCosts& rank : ranks) {
    const auto own = lines_of(rank);
    lines.insert(lines.end(), own.begin(), own.end());
  }
  std::vector<std::int64_t> whole;
  Table table{.name = "steps", .columns = columns()};
  for (const StepLine& line : lines) {
    if (!line.step->partial && line.sum.calls > 0) whole.push_back(line.sum.all());
    table.rows.push_back(cells(line));
  }
  const auto middle = median(whole);
  add_scalar(answer, "step_flop", to_value(middle), Unit::flop,
             middle ? "Median over the whole steps of all ranks in which products were counted" : kNoSteps);
  add_shares(answer, lines, ranks);
  note_refused(answer, lines);
  answer.tables.push_back(std::move(table));
  answer.tables.push_back(peaks_table(ranks));
}

}  // namespace stepscope::analyze::flops
