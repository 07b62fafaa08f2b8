// Classes: what kind of work each piece of device work is, by the rule table (class_rules.txt and the user's file).
//
// Names repeat a thousandfold, so the table is asked once per distinct (name, kind, carries collective metadata).
// Waits on a device are not work and stay unclassified.
#include <array>
#include <vector>

#include "derive/class_rules.h"
#include "derive/passes.h"

namespace stepscope::derive {
namespace {

// Names beyond this length are template arguments of template arguments; what a rule looks for stands before.
constexpr std::size_t kLongestName = 4096;

class Classifier {
 public:
  Classifier(const Trace& trace, const RuleTable& table) : trace_(trace), table_(table) {}

  std::uint16_t rule(SliceId id, SliceKind kind, bool collective) {
    const StringId name = trace_.slices.name[id];
    const WorkName work{trace_.strings[name].substr(0, kLongestName), kind, collective};
    if (name == StringId::none) return table_.match(work);
    const std::size_t variant = kind == SliceKind::memcpy ? 2 : kind == SliceKind::memset ? 3 : collective ? 1 : 0;
    std::vector<std::uint16_t>& known = known_[variant];
    if (known.empty()) known.resize(trace_.strings.size(), kUnasked);
    std::uint16_t& rule = known[static_cast<std::size_t>(name)];
    if (rule == kUnasked) rule = table_.match(work);
    return rule;
  }

 private:
  static constexpr std::uint16_t kUnasked = 0xffff;
  const Trace& trace_;
  const RuleTable& table_;
  std::array<std::vector<std::uint16_t>, 4> known_;
};

}  // namespace

Result<void> classes(Trace& trace, const DeriveOptions& options) {
  const Result<RuleTable> table = load_rules(options.rules_path);
  if (!table) return fail(table.error());
  trace.class_rules = table->rules();
  DeviceRows& device = trace.device;
  device.rule.resize(device.size(), 0);
  device.device_class.resize(device.size(), 0);
  Classifier classifier(trace, *table);
  const SliceId* collective = trace.collectives.slice.begin();  // both tables are sorted by slice
  for (std::size_t row = 0; row < device.size(); row++) {
    const SliceId id = device.slice[row];
    const SliceKind kind = trace.kind(id);
    if (!is_device_work(kind)) continue;
    while (collective != trace.collectives.slice.end() && *collective < id) collective++;
    const bool has_metadata = collective != trace.collectives.slice.end() && *collective == id;
    device.rule[row] = classifier.rule(id, kind, has_metadata);
    device.device_class[row] = static_cast<std::uint8_t>(trace.class_rules[device.rule[row]].device_class);
  }
  return {};
}

}  // namespace stepscope::derive
