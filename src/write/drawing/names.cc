#include "model/path_tree.h"
#include "report/shorten.h"
#include "report/utf8.h"
#include "write/drawing/texts.h"

namespace stepscope::write::drawing {
namespace {

// XML, and so SVG, has no spelling for control characters, which printable() replaces, and for these two.
std::string clean(std::string_view text) {
  std::string out = report::printable(text);
  for (const std::string_view bad : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (std::size_t at = 0; (at = out.find(bad, at)) != out.npos;) out.replace(at, bad.size(), "\xEF\xBF\xBD");
  }
  return out;
}

}  // namespace

std::string shown_name(const graph::DrawnBox& box, std::size_t width) {
  if (box.others) return "(other roots)";
  if (box.name.empty()) return "(no name)";
  const std::size_t most = 8 * width;  // bytes of each end that may be seen
  if (box.name.size() > 2 * most) {
    return report::cut_middle(clean(box.name.substr(0, most)) + clean(box.name.substr(box.name.size() - most)), width);
  }
  return report::cut_middle(clean(box.nodes > 1 ? path_name(box.name) : std::string(box.name)), width);
}

}  // namespace stepscope::write::drawing
