// comm_comp_overlap: the share of communication time during which a computation kernel runs too.
#include "compat/compat.h"
#include "compat/hta/stats.h"
#include "compat/hta/unions.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_comm_comp_overlap(const Input& input) {
  Answer answer;
  Table out{
      .name = "comm_comp_overlap",
      .columns = {whole("rank", "Rank"), number("comp_comm_overlap_pctg",
                                                "Overlap / union of communication, in percent; unknown without any")}};
  for (const EventTable& table : input.tables().ranks) {
    const std::vector<Row> device = table.device_rows();
    const std::vector<Span> communication = merged(of_type(table, device, KernelType::communication));
    const std::vector<Span> computation = merged(of_type(table, device, KernelType::computation));
    const double both = sweep({communication, computation}).time[3];
    out.rows.push_back({table.rank(), real(rounded(100 * (both / total(communication)), 2))});
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis comm_comp_overlap_analysis() {
  return {"comm_comp_overlap", "How much of the communication is hidden behind computation?", run_comm_comp_overlap};
}

}  // namespace stepscope::compat::hta
