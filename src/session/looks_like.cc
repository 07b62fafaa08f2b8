#include "session/looks_like.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace stepscope::session {
namespace {

struct Sign {
  std::string_view start;
  std::string_view what;
  std::string_view hint;
};

constexpr std::string_view kPickleHint = "Give the file by its name: stepscope memory FILE says what it holds";

constexpr std::string_view kTraceHint =
    "Give a torch.profiler trace (.json or .json.gz) or a memory snapshot (.pickle)";

constexpr std::array kSigns{
    Sign{"version https://git-lfs", "a Git LFS pointer", "Run git lfs pull to get the real file"},
    Sign{"SQLite format 3", "a damaged SQLite database", "Copy or export it again"},
    Sign{"\xFF\xFE", "UTF-16 text", "Convert it: iconv -f UTF-16 -t UTF-8"},
    Sign{"\xFE\xFF", "UTF-16 text", "Convert it: iconv -f UTF-16 -t UTF-8"},
    Sign{"\x1f\x8b", "a gzip file inside a gzip file", "Unpack it once: gunzip"},
    Sign{"PK\x03\x04", "a zip archive", "Unpack it first"},
    Sign{"\x28\xB5\x2F\xFD", "a Zstandard file", "Unpack it first: zstd -d"},
    Sign{"\xFD"
         "7zXZ",
         "an xz file", "Unpack it first: xz -d"},
    Sign{"BZh", "a bzip2 file", "Unpack it first: bzip2 -d"},
    Sign{"\x7F"
         "ELF",
         "a program or library", "Give the trace that it wrote"},
    Sign{"\x89PNG", "a PNG picture", "Give the trace itself"},
    Sign{"Memory State:\n", "the memory.log of a memory profiler", "Give memory_state.json, or the folder of both"},
    Sign{"%PDF", "a PDF document", "Give the trace itself"},
    Sign{"\x80\x02", "a Python pickle (a memory snapshot?)", kPickleHint},
    Sign{"\x80\x03", "a Python pickle (a memory snapshot?)", kPickleHint},
    Sign{"\x80\x04", "a Python pickle (a memory snapshot?)", kPickleHint},
    Sign{"\x80\x05", "a Python pickle (a memory snapshot?)", kPickleHint},
};

bool is_binary(std::string_view head) {
  return std::any_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f' && byte != 0x1b;
  });
}

// Every other byte of Latin text is zero in UTF-16.
bool is_utf16(std::string_view head) {
  if (head.size() < 4) return false;
  return (head[0] == '\0' && head[1] != '\0' && head[2] == '\0' && head[3] != '\0') ||
         (head[0] != '\0' && head[1] == '\0' && head[2] != '\0' && head[3] == '\0');
}

Look json_look(std::string_view text) {
  if (text.find_first_not_of(" \n\r\t", 1) == text.npos) {
    return {"JSON that ends after its first bracket", "Record again: the export did not finish"};
  }
  if (text.find("\"workload_graph\"") != text.npos) {
    return {"a Chakra graph in JSON for simulators", "Give the execution trace or .et file that it was made from"};
  }
  // Our own files; they state their schema_version first.
  if (text.substr(0, 64).find("\"schema_version\"") != text.npos) {
    if (text.find("\"stepscope_version\"") != text.npos && text.find("\"processes\"") != text.npos) {
      return {"the run.json of a stepscope run", "Give its folder: the traces lie below it"};
    }
    if (text.find("\"stepscope\"") != text.npos && text.find("\"input\"") != text.npos) {
      return {"a report that stepscope made", "Give the trace that it was made from"};
    }
  }
  return {"JSON that is no trace", "Give a file written by torch.profiler or in Chrome's trace event format"};
}

}  // namespace

Look looks_like(std::string_view head) {
  if (head.empty()) return {"an empty file", "Record again: the export did not finish"};
  for (const Sign& sign : kSigns) {
    if (head.starts_with(sign.start)) return {std::string(sign.what), std::string(sign.hint)};
  }
  if (head.find_first_not_of('\0') == head.npos) {
    return {"a file of zero bytes", "Record again: space was reserved, but nothing was written"};
  }
  if (is_utf16(head)) return {"UTF-16 text", "Convert it: iconv -f UTF-16 -t UTF-8"};
  const std::size_t first = head.find_first_not_of(" \n\r\t");
  if (first == head.npos) return {"a file of blanks", "Record again: the export did not finish"};
  std::string start(head.substr(first, 64));
  std::transform(start.begin(), start.end(), start.begin(), [](unsigned char c) { return std::tolower(c); });
  if (head.find("<title>GPU Memory Timeline HTML</title>") != head.npos) {
    return {"a picture of a memory timeline", "Export the numbers: export_memory_timeline(\"timeline.raw.json.gz\")"};
  }
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) {
    return {"an HTML page", "Download the raw file: this is a page about it or an error page"};
  }
  if (start.starts_with("<?xml") || start.starts_with('<')) return {"XML", "Give a trace in JSON"};
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return {"a tar archive", "Unpack it first: tar -xf"};
  if (is_binary(head.substr(0, 4096))) return {"binary data", std::string(kTraceHint)};
  if (head[first] == '{' || head[first] == '[') return json_look(head.substr(first));
  return {"plain text", std::string(kTraceHint)};
}

bool looks_like_pickle(std::string_view head, std::string_view name) {
  if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return true;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  constexpr std::string_view kFirstOpcodes = "\x80()]}lINSVFLXUKMJGc";
  return (name.ends_with(".pickle") || name.ends_with(".pkl")) && !head.empty() &&
         kFirstOpcodes.find(head[0]) != head.npos;
}

}  // namespace stepscope::session
