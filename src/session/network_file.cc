#include "session/network_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text_parts.h"
#include "formats/file_text.h"

namespace stepscope::session {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr std::size_t kMostDimensions = 16;
constexpr std::array<std::string_view, 4> kKeys{"topology", "npus_count", "bandwidth", "latency"};

struct Entry {
  std::string_view text;
  std::uint64_t offset = 0;
};
using Lists = std::map<std::string_view, std::vector<Entry>>;

class NetworkText {
 public:
  NetworkText(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  // Keys, each with a list in brackets; braces, quotes and commas of JSON say nothing more.
  Result<Lists> lists() {
    Lists found;
    for (skip(" \t\r\n{},"); at_ < text_.size(); skip(" \t\r\n{},")) {
      const Entry key = word();
      if (std::find(kKeys.begin(), kKeys.end(), key.text) == kKeys.end()) {
        return wrong(key.offset, key.text.empty() ? "no key stands here" : "'" + std::string(key.text) + "' is no key");
      }
      if (!take(':') || !take('[')) return wrong(at_, std::string(key.text) + " has no list in brackets");
      std::vector<Entry> list;
      while (!take(']')) {
        list.push_back(word());
        if (list.back().text.empty() || list.size() > kMostDimensions) {
          return wrong(list.back().offset, std::string(key.text) + " is no list of at most 16 values");
        }
        take(',');
      }
      if (!found.emplace(key.text, std::move(list)).second) {
        return wrong(key.offset, std::string(key.text) + " stands there twice");
      }
    }
    return found;
  }

  tl::unexpected<Error> wrong(std::uint64_t offset, std::string message) const {
    return fail({ErrorKind::malformed, std::move(message), path_, offset,
                 "Write topology: [Ring, Switch], npus_count: [8, 16], bandwidth: [300, 25] in GB/s and latency: [500, "
                 "5000] in ns, a line each"});
  }

 private:
  void skip(std::string_view empty) {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (empty.find(text_[at_]) != empty.npos) {
        at_++;
      } else {
        return;
      }
    }
  }
  bool take(char c) {
    skip(" \t\r\n");
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  Entry word() {
    skip(" \t\r\n");
    const bool quoted = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'');
    if (quoted) at_++;
    const std::size_t begin = at_, end = std::min(text_.find_first_of(" \t\r\n,:[]{}#\"'", at_), text_.size());
    at_ = end;
    if (quoted && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) at_++;
    return {text_.substr(begin, end - begin), begin};
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<NetworkShape> shape_of(std::string_view name) {
  if (name == "Ring") return NetworkShape::ring;
  if (name == "FullyConnected") return NetworkShape::fully_connected;
  if (name == "Switch") return NetworkShape::switched;
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && *value >= 0 && *value <= 1e9 ? value : std::nullopt;
}

}  // namespace

Result<Network> read_network(const std::string& path) {
  const auto file = formats::read_text(path, kMostBytes);
  if (!file) return fail(file.error());
  NetworkText text(path, file->text);
  Result<Lists> found = text.lists();
  if (!found) return fail(found.error());
  for (const std::string_view key : kKeys) {
    if (!found->contains(key)) return text.wrong(file->text.size(), "there is no " + std::string(key));
    if (found->at(key).size() != found->at(kKeys[0]).size() || found->at(key).empty()) {
      return text.wrong(found->at(key).empty() ? 0 : found->at(key).front().offset,
                        std::string(key) + " has not one value for each dimension");
    }
  }
  Network network{.name = path};
  for (std::size_t i = 0; i < found->at(kKeys[0]).size(); i++) {
    const auto at = [&](std::size_t key) { return found->at(kKeys[key])[i]; };
    const auto shape = shape_of(at(0).text);
    if (!shape)
      return text.wrong(at(0).offset, "'" + std::string(at(0).text) + "' is none of Ring, FullyConnected, Switch");
    const auto ranks = number(at(1).text), bandwidth = number(at(2).text), latency = number(at(3).text);
    if (!ranks || *ranks < 1 || *ranks > 1e6 || *ranks != std::floor(*ranks)) {
      return text.wrong(at(1).offset, "'" + std::string(at(1).text) + "' is no number of ranks");
    }
    if (!bandwidth || *bandwidth < 1e-6)
      return text.wrong(at(2).offset, "'" + std::string(at(2).text) + "' is no bandwidth");
    if (!latency) return text.wrong(at(3).offset, "'" + std::string(at(3).text) + "' is no latency");
    network.dimensions.push_back({*shape, static_cast<std::int64_t>(*ranks), *bandwidth, *latency});
  }
  return network;
}

}  // namespace stepscope::session
