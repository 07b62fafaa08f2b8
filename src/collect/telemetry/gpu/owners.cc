#include "collect/telemetry/gpu/owners.h"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string_view>

#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry::gpu {
namespace {

std::string link_at(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t got = readlink(path.c_str(), text.data(), text.size());
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

// /dev/kfd of AMD, or /dev/nvidia0 …; not nvidiactl alone, which whoever asks the driver for anything has open.
bool is_gpu(std::string_view file) {
  if (file == "/dev/kfd") return true;
  constexpr std::string_view kGpu = "/dev/nvidia";
  if (file.substr(0, kGpu.size()) != kGpu || file.size() == kGpu.size()) return false;
  const std::string_view number = file.substr(kGpu.size());
  return number.find_first_not_of("0123456789") == number.npos || number.substr(0, 4) == "-cap";  // -caps/…: of MIG
}

bool has_gpu_open(const std::string& process) {
  const std::string folder = process + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir(folder.c_str()), closedir);
  if (!files) return false;
  while (const dirent* const file = readdir(files.get())) {
    if (file->d_name[0] != '.' && is_gpu(link_at(folder + "/" + file->d_name))) return true;
  }
  return false;
}

}  // namespace

Owners::Owners(std::string proc) : proc_(std::move(proc)) {
  host_numbers_ = link_at(proc_ + "/self/ns/pid") == "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
}

void Owners::follow(const std::vector<Group>& groups) {
  candidates_.clear();
  for (std::size_t group = 0; group < groups.size(); group++) {
    for (const Member& member : groups[group].members) {
      candidates_.emplace(static_cast<unsigned>(member.pid), Candidate{group, member.pid});
      if (host_numbers_) continue;
      KeptFile status(proc_ + "/" + std::to_string(member.pid) + "/status");
      const std::string_view text = status.read();
      std::size_t at = text.find("\nNSpid:");  // its numbers from this namespace down to its own
      if (at == text.npos) continue;
      at += 7;
      const std::string_view line = text.substr(0, text.find('\n', at));
      while (const auto number = next_number(line, at)) {
        if (*number != member.pid) candidates_.emplace(static_cast<unsigned>(*number), Candidate{group, member.pid});
      }
    }
  }
}

std::optional<std::size_t> Owners::of(unsigned pid) const {
  std::optional<std::size_t> owner;
  const auto [begin, end] = candidates_.equal_range(pid);
  for (auto one = begin; one != end; ++one) {
    const Candidate& candidate = one->second;
    if (!host_numbers_ && !has_gpu_open(proc_ + "/" + std::to_string(candidate.pid))) continue;
    if (owner && *owner != candidate.group) return std::nullopt;  // two have that number
    owner = candidate.group;
  }
  return owner;
}

}  // namespace stepscope::collect::telemetry::gpu
