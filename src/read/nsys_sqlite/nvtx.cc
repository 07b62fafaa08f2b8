// NVTX: ranges and marks that the program, torch and libraries set.
//
// Push/pop ranges nest on their thread and lie there with its calls. Start/end ranges may end anywhere, on another
// thread too, so they lie on a lane of their own. What torch calls an operator becomes one; NCCL's own ranges are
// library calls, not parts of the program, and their payloads say what was sent to whom.
#include <charconv>
#include <unordered_map>

#include "model/range_name.h"
#include "read/nsys_sqlite/parts.h"
#include "read/nsys_sqlite/payload.h"

namespace stepscope::read::nsys {
namespace {

// Of ENUM_NSYS_EVENT_TYPE.
constexpr std::int64_t kMark = 34, kPushPop = 59, kStartEnd = 60, kDomain = 75;

constexpr std::string_view kCommunicator = "NCCL communicator ID", kRanks = "No. of ranks", kRank = "Rank",
                           kSize = "Message size [bytes]";

// A call of NCCL with a payload; how large its group is may only stand further down.
struct NcclCall {
  TraceBuilder* out;
  SliceId slice;
  std::int64_t communicator, bytes;
};

// "stepscope.rank: 3 of 8", which the hooks of `stepscope run --nsys` write once per window.
bool take_rank(std::string_view text, RankInfo& out) {
  constexpr std::string_view kStart = "stepscope.rank: ", kOf = " of ";
  if (!text.starts_with(kStart)) return false;
  const std::size_t of = text.find(kOf);
  if (of == text.npos) return false;
  const auto number = [](std::string_view digits) {
    std::int64_t value = kAbsent;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : kAbsent;
  };
  const std::int64_t rank = number(text.substr(kStart.size(), of - kStart.size()));
  const std::int64_t world = number(text.substr(of + kOf.size()));
  if (rank < 0 || world <= rank) return false;
  out.rank = rank;
  out.world_size = world;
  out.source = RankSource::distributed_info;
  return true;
}

class NvtxReader {
 public:
  NvtxReader(Export& file, Traces& traces) : file_(file), traces_(traces), schemas_(file) {}

  void read() {
    read_domains();
    Scan row(file_, name_of(Table::nvtx),
             {"start", "eventType", "end", "globalTid", "text", "textId", "domainId", "binaryData"}, 2);
    while (row.next()) {
      if (row[type] == kPushPop || row[type] == kStartEnd) add_range(row);
      if (row[type] == kMark) add_mark(row);
    }
    add_collectives();
    note_ranks();
    note_missing_payloads();
  }

 private:
  enum { start, type, end, tid, plain, string, domain, payload };

  void read_domains() {
    enum { event, name, name_id, number, thread };
    Scan row(file_, name_of(Table::nvtx), {"eventType", "text", "textId", "domainId", "globalTid"}, 1);
    while (row.next()) {
      if (row[event] != kDomain) continue;
      const std::string_view told = row.has(name) ? row.text(name) : file_.string(row[name_id]);
      domains_[{process_of(row[thread]), row[number]}] = std::string(told);
    }
  }

  std::string_view domain_name(const Scan& row) const {
    const auto found = domains_.find({process_of(row[tid]), row[domain]});
    return found == domains_.end() ? std::string_view() : found->second;
  }
  bool is_nccl(const Scan& row) const {
    return row[domain] > 0 && (domain_name(row) == "NCCL" || schemas_.is_nccl(row[domain]));
  }
  std::string_view text_of(const Scan& row) const {
    return row.has(plain) ? row.text(plain) : file_.string(row[string]);
  }

  CategoryId category(TraceBuilder& out, const Scan& row, const RangeName& range) {
    if (row[domain] > 0) {
      std::string_view name = domain_name(row);
      if (name.empty() && is_nccl(row)) name = "NCCL";
      const std::string own = name.empty() ? std::to_string(row[domain]) : std::string(name);
      return out.category("nvtx " + own, is_nccl(row) ? SliceKind::other : SliceKind::user_annotation);
    }
    return out.category(is_operator(range) ? "cpu_op" : "user_annotation");
  }

  void add_range(const Scan& row) {
    TraceBuilder& out = traces_.of(row[tid]);
    if (row[end] == kAbsent) {
      out.note("open_range", Severity::lost, "NVTX ranges that had not ended with the recording were left out");
      return;
    }
    const RangeName range = range_name(text_of(row));
    if (out.owns(row[tid]) && take_rank(range.name, out.trace.rank)) return;
    const TrackId track = row[type] == kPushPop ? out.thread(row[tid]) : out.thread_lane(row[tid], " ranges");
    const SliceId slice = out.add_slice(Table::nvtx, row.id(), row[start], row[end], out.text(range.name), track,
                                        category(out, row, range));
    if (slice == SliceId::none) return;
    if (range.annotated()) out.add_op(slice, range);
    if (is_nccl(row)) add_nccl_call(out, slice, row);
  }

  void add_mark(const Scan& row) {
    TraceBuilder& out = traces_.of(row[tid]);
    const RangeName range = range_name(text_of(row));
    out.add_instant(Table::nvtx, row.id(), row[start], out.text(range.name), out.thread(row[tid]),
                    category(out, row, range));
  }

  void add_nccl_call(TraceBuilder& out, SliceId slice, const Scan& row) {
    nccl_ranges_++;
    if (!row.has(payload)) return;
    payloads_++;
    const auto fields = schemas_.decode(row.text(payload));
    const std::int64_t communicator = field(fields, kCommunicator);
    if (communicator == kAbsent) return;
    if (const std::int64_t ranks = field(fields, kRanks); ranks > 0) {
      group_sizes_[communicator] = ranks;
      std::pair<std::int64_t, std::int64_t>& widest = widest_[&out];
      if (out.owns(row[tid]) && ranks > widest.first) widest = {ranks, field(fields, kRank)};
    }
    const std::int64_t bytes = field(fields, kSize);
    if (bytes >= 0) calls_.push_back({&out, slice, communicator, bytes});
  }

  // NCCL tells the bytes of one rank's part; for gathering and scattering the whole is that times the group.
  void add_collectives() {
    for (const NcclCall& call : calls_) {
      const auto found = group_sizes_.find(call.communicator);
      const std::int64_t ranks = found == group_sizes_.end() ? kAbsent : found->second;
      const std::string_view name = call.out->trace.name(call.slice);
      const bool gathers = name.find("AllGather") != name.npos, scatters = name.find("ReduceScatter") != name.npos;
      constexpr std::int64_t kMost = std::int64_t{1} << 50;
      std::int64_t in = call.bytes, out_bytes = call.bytes;
      if (gathers || scatters) {
        const bool known = ranks > 0 && ranks < 1 << 20 && call.bytes < kMost / ranks;
        (gathers ? out_bytes : in) = known ? call.bytes * ranks : kAbsent;
        if (!known) in = out_bytes = kAbsent;
      }
      Collectives& out = call.out->trace.collectives;
      out.slice.push_back(call.slice);
      out.kind.push_back(call.out->trace.slices.name[call.slice]);
      out.dtype.push_back(call.out->text("Byte"));
      out.in_elements.push_back(in);
      out.out_elements.push_back(out_bytes);
      out.group_size.push_back(ranks);
      out.group_name.push_back(call.out->text("communicator " + std::to_string(call.communicator)));
      out.group_ranks.push_back(StringId::none);
      out.sequence.push_back(kAbsent);
    }
  }

  // The widest communicator that a process joined holds the whole job, as far as the recording goes; what the process
  // itself says of its rank is better.
  void note_ranks() {
    for (const auto& [out, joined] : widest_) {
      if (joined.second < 0 || joined.second >= joined.first) continue;
      out->trace.rank.backend = "nccl";
      if (out->trace.rank.source == RankSource::distributed_info) continue;
      out->trace.rank.rank = joined.second;
      out->trace.rank.world_size = joined.first;
      out->trace.rank.source = RankSource::communicator;
    }
  }

  void note_missing_payloads() {
    if (nccl_ranges_ == 0 || payloads_ > 0) return;
    traces_.first().note("payloads_left_out", Severity::info,
                         "the export holds NCCL's calls without their payloads: message sizes, groups and ranks are "
                         "not known",
                         "Export with nsys export --include-blobs=true");
  }

  Export& file_;
  Traces& traces_;
  PayloadSchemas schemas_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> domains_;  // (process, domain)
  std::vector<NcclCall> calls_;
  std::unordered_map<std::int64_t, std::int64_t> group_sizes_;                       // by communicator
  std::unordered_map<TraceBuilder*, std::pair<std::int64_t, std::int64_t>> widest_;  // ranks, own rank
  std::uint64_t nccl_ranges_ = 0, payloads_ = 0;
};

}  // namespace

void read_nvtx(Export& file, Traces& traces) { NvtxReader(file, traces).read(); }

}  // namespace stepscope::read::nsys
