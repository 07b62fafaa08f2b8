#include "write/drawing.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/command_output.h"
#include "base/text_parts.h"
#include "base/whole_file.h"
#include "formats/out_file.h"
#include "write/drawing/texts.h"

namespace stepscope::write {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kFormats{"dot", "graphml", "json", "svg", "pdf"};
constexpr std::string_view kGraphviz = "neato";  // of Graphviz, the program that takes places as they are given

bool is_installed(std::string_view program) {
  const char* path = ::getenv("PATH");
  if (path == nullptr) return false;
  for (const std::string_view folder : split(path, ":")) {
    if (!folder.empty() && ::access((std::string(folder) + '/' + std::string(program)).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A folder of one's own that goes away with what is in it.
class TempFolder {
 public:
  TempFolder() {
    std::error_code none;
    path_ = (fs::temp_directory_path(none) / "stepscope-graph-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code none;
    if (!path_.empty()) fs::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<void> write_text(const std::string& out, std::string_view text) {
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  file->add(text);
  return file->finish();
}

Result<std::string> picture(const std::string& dot, std::string_view format, double seconds) {
  if (!is_installed(kGraphviz)) {
    return fail({ErrorKind::unsupported, fmt::format("{} needs Graphviz, which is not installed here", format), "",
                 std::nullopt, "Install the package graphviz, or write .dot, .graphml or .json, which need nothing"});
  }
  const TempFolder folder;
  if (folder.path().empty()) {
    return fail({ErrorKind::unreadable, "no temporary folder could be made", "", std::nullopt,
                 "Set TMPDIR to a folder that you may write to"});
  }
  const std::string text = folder.path() + "/graph.dot", drawn = folder.path() + "/graph." + std::string(format);
  if (auto written = write_text(text, dot); !written) return fail(written.error());
  std::vector<std::string> command{std::string(kGraphviz), "-n2", "-T" + std::string(format), "-o", drawn, text};
  // Readers of PDF open no page of more than 200 inches: what is larger is drawn smaller.
  if (format == "pdf") command.emplace_back("-Gsize=190,190");
  const auto done = output_of(command, seconds);
  if (!done) {
    return fail({ErrorKind::unsupported, fmt::format("Graphviz did not draw it: {}", done.error().message), "",
                 std::nullopt, "Draw fewer boxes (--boxes 500), or write .dot, .graphml or .json"});
  }
  return whole_file(drawn);
}

}  // namespace

Result<DrawingFormat> drawing_format(std::string_view asked, std::string_view out) {
  std::string_view name = out;
  const bool packed = asked.empty() && name.ends_with(".gz");
  if (packed) name.remove_suffix(3);
  const std::string ending = fs::path(name).extension().string();
  std::string_view wanted = asked;
  if (wanted.empty() && !ending.empty()) wanted = std::string_view(ending).substr(1);
  if (wanted == "gv") wanted = "dot";
  const auto* found = std::find(kFormats.begin(), kFormats.end(), wanted);
  const auto format = static_cast<DrawingFormat>(found - kFormats.begin());
  if (found != kFormats.end() && !(packed && format >= DrawingFormat::svg)) return format;
  return fail({ErrorKind::usage, fmt::format("'{}' says no format of a drawing", asked.empty() ? out : asked), "",
               std::nullopt, "Name the file x.dot, x.graphml, x.json, x.svg or x.pdf, or say which with --to"});
}

Result<void> write_drawing(const graph::DrawnGraph& graph, DrawingFormat format, const std::string& out,
                           double seconds) {
  switch (format) {
    case DrawingFormat::dot: return write_text(out, drawing::dot_text(graph));
    case DrawingFormat::graphml: return write_text(out, drawing::graphml_text(graph));
    case DrawingFormat::json: return write_text(out, drawing::json_text(graph));
    default: break;
  }
  const auto drawn = picture(drawing::dot_text(graph), kFormats[static_cast<std::size_t>(format)], seconds);
  return drawn ? write_text(out, *drawn) : fail(drawn.error());
}

}  // namespace stepscope::write
