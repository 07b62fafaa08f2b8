#include "collect/inject/python_symbols.h"

#include <unistd.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "collect/inject/elf_symbols.h"
#include "collect/processes/memory_map.h"

namespace stepscope::collect {
namespace {

constexpr std::size_t kCheckedBytes = 16;  // the shortest of the functions, errno's, has about as many

// One file that the process runs code of.
struct Module {
  Mapping mapping;  // the executable part
  std::string path;
};

struct Found {
  ElfSymbols symbols;
  std::uint64_t bias = 0;
  std::string path;

  std::optional<RemoteFunction> function(const std::string& name) const {
    const auto at = symbols.addresses.find(name);
    if (at == symbols.addresses.end()) return std::nullopt;
    return RemoteFunction{at->second + bias, bytes_at(path, symbols, at->second, kCheckedBytes)};
  }
};

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<Module> modules_of(const std::string& proc_root, pid_t pid) {
  std::vector<Module> out;
  for (Mapping& mapping : read_memory_map(proc_root, pid)) {
    if (!mapping.executable || mapping.path.empty() || mapping.path.front() != '/') continue;
    std::string path = path_of_file(proc_root, pid, mapping);
    out.push_back({std::move(mapping), std::move(path)});
  }
  return out;
}

Result<Found> read_module(const Module& module, const std::vector<std::string>& wanted) {
  auto symbols = read_elf_symbols(module.path, wanted);
  if (!symbols) return tl::make_unexpected(symbols.error());
  Found out{std::move(*symbols), 0, module.path};
  if (!out.symbols.position_independent) return out;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (const ElfSegment& segment : out.symbols.segments) {
    if (!segment.executable || segment.file_offset / page * page != module.mapping.file_offset) continue;
    out.bias = module.mapping.start - segment.address / page * page;
    return out;
  }
  return fail({ErrorKind::malformed, "it is not mapped the way its ELF headers say", module.mapping.path, {}, ""});
}

// "libpython3.9.so.1.0", "python3.11", "libpython3.7m.so.1.0"
PythonVersion version_of_name(const std::string& file) {
  const std::string name = base_name(file);
  const std::size_t at = name.find("python3.");
  PythonVersion out;
  if (at == std::string::npos) return out;
  std::from_chars(name.data() + at + std::strlen("python3."), name.data() + name.size(), out.minor);
  out.major = 3;
  return out;
}

// Py_Version is a constant since 3.11: 0x030b07f0.
PythonVersion version_of(const Found& python, const std::string& file) {
  const auto at = python.symbols.addresses.find("Py_Version");
  if (at == python.symbols.addresses.end()) return version_of_name(file);
  const std::string bytes = bytes_at(python.path, python.symbols, at->second, sizeof(std::uint64_t));
  std::uint64_t number = 0;
  if (bytes.size() != sizeof number) return version_of_name(file);
  std::memcpy(&number, bytes.data(), sizeof number);
  return {static_cast<int>(number >> 24), static_cast<int>(number >> 16 & 0xff)};
}

bool is_libpython(const Module& module) { return base_name(module.mapping.path).rfind("libpython3", 0) == 0; }

bool is_c_library(const Module& module) {
  const std::string name = base_name(module.mapping.path);
  for (const char* start : {"libc.so", "libc-2.", "ld-musl-", "libc.musl-"}) {
    if (name.rfind(start, 0) == 0) return true;
  }
  return false;
}

std::string executable_of(const std::string& proc_root, pid_t pid) {
  std::error_code ignored;
  std::string out = std::filesystem::read_symlink(proc_root + "/" + std::to_string(pid) + "/exe", ignored).string();
  const std::size_t deleted = out.rfind(" (deleted)");
  return deleted == std::string::npos ? out : out.substr(0, deleted);
}

Error no_python(pid_t pid, const std::string& executable) {
  return {ErrorKind::not_found,
          "process " + std::to_string(pid) + " (" + base_name(executable) + ") runs no Python",
          {},
          {},
          "name the python process itself: stepscope attach lists the ones below a launcher"};
}

Error no_symbols(pid_t pid, const std::string& file, const std::string& why) {
  return {
      ErrorKind::unsupported,
      "the Python of process " + std::to_string(pid) + " does not show where its functions are (" + why + ")",
      file,
      {},
      "Start the job with stepscope run, or with a Python that is not stripped (python.org, Debian, conda and pyenv "
      "builds are fine)"};
}

// The file that has both functions; modules are tried in the order libpython, executable.
Result<void> find_interpreter(pid_t pid, const std::vector<Module>& modules, const std::string& executable,
                              PythonSymbols& out) {
  const std::vector<std::string> wanted{"Py_AddPendingCall", "PyRun_SimpleString", "Py_Version"};
  std::string seen;
  std::string why = "no symbol table";
  for (const bool library : {true, false}) {
    for (const Module& module : modules) {
      if (library ? !is_libpython(module) : module.mapping.path != executable) continue;
      if (library || base_name(executable).find("python") != std::string::npos) seen = module.mapping.path;
      const auto found = read_module(module, wanted);
      if (!found) {
        why = found.error().message;
        continue;
      }
      const auto add = found->function("Py_AddPendingCall");
      const auto run = found->function("PyRun_SimpleString");
      if (!add || !run) continue;
      out = {module.mapping.path, version_of(*found, module.mapping.path), *add, *run, {}, {}};
      return {};
    }
  }
  return fail(seen.empty() ? no_python(pid, executable) : no_symbols(pid, seen, why));
}

}  // namespace

Result<PythonSymbols> find_python_symbols(const std::string& proc_root, pid_t pid) {
  const std::vector<Module> modules = modules_of(proc_root, pid);
  PythonSymbols out;
  const auto python = find_interpreter(pid, modules, executable_of(proc_root, pid), out);
  if (!python) return tl::make_unexpected(python.error());
  for (const Module& module : modules) {
    if (!is_c_library(module)) continue;
    const auto found = read_module(module, {"munmap", "__errno_location"});
    if (!found) continue;
    const auto unmap = found->function("munmap");
    const auto errno_location = found->function("__errno_location");
    if (!unmap || !errno_location) continue;
    out.unmap = *unmap;
    out.errno_location = *errno_location;
    return out;
  }
  return fail(no_symbols(pid, out.file, "it is linked without a shared C library"));
}

}  // namespace stepscope::collect
