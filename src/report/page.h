// Page: the terminal text under construction. Knows the width, the colors and the ASCII fallback; what is written says
// only what a piece of text is (a heading, a number that matters, a warning), not how it looks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace stepscope::report {

enum class Ink : std::uint8_t { plain, strong, dim, good, warning, bad, accent };

class Page {
 public:
  explicit Page(const TextStyle& style);

  const TextStyle& style() const { return style_; }
  std::size_t width() const { return width_; }

  // `text` in a color, for use inside lines; plain where colors are off.
  std::string ink(Ink ink, std::string_view text) const;

  void line(std::string_view text = "");
  // An empty line, then the title.
  void section(std::string_view title);
  // `words` broken over lines at the page's width; lines after the first are indented by `hanging`.
  void paragraph(std::string_view words, std::size_t indent = 0, std::size_t hanging = 0);

  // `lead`, then words beside it; further lines start below the first word.
  void hanging(std::string_view lead, std::string_view words);

  // The same with items that are never broken; `separator` stands between two on one line.
  void items(std::string_view lead, const std::vector<std::string>& items, std::string_view separator);

  // The whole text; spelled in ASCII when the style asks for it.
  std::string take();

 private:
  void flow(std::string current, std::size_t hanging, std::string_view words);

  TextStyle style_;
  std::size_t width_;
  std::string out_;
};

// Columns on the terminal, color sequences not counted.
std::size_t visible_width(std::string_view text);

}  // namespace stepscope::report
