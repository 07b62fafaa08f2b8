#include "collect/inject/python_symbols.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/command_output.h"
#include "base/temp_fixture.h"
#include "collect/inject/elf_symbols.h"
#include "collect/inject/python_child_fixture.h"
#include "collect/inject/remote_exec.h"
#include "collect/inject/remote_memory.h"
#include "collect/processes/memory_map.h"

namespace stepscope::collect {

namespace {

// Returns when the process has loaded this program and its C library.
void wait_for_program(pid_t pid, const std::string& name) {
  bool program = false;
  bool library = false;
  for (int i = 0; i < 30'000 && (!program || !library); ++i, usleep(1000)) {
    for (const Mapping& mapping : read_memory_map("/proc", pid)) {
      program = program || (mapping.executable && mapping.path.ends_with("/" + name));
      library = library || (mapping.executable && mapping.path.find("/libc") != std::string::npos);
    }
  }
}

}  // namespace

// In .symtab only: a program does not export its functions.
extern "C" int stepscope_symbol_of_the_test(int value) { return value * 3 + 1; }

TEST_CASE("symbols: of a program that exports nothing, with its load bias") {
  const auto symbols = read_elf_symbols("/proc/self/exe", {"stepscope_symbol_of_the_test", "no_such_function"});
  REQUIRE(symbols.has_value());
  REQUIRE(symbols->addresses.size() == 1);
  const std::uint64_t inside = symbols->addresses.at("stepscope_symbol_of_the_test");
  const auto* code = reinterpret_cast<const char*>(&stepscope_symbol_of_the_test);
  CHECK(bytes_at("/proc/self/exe", *symbols, inside, 8) == std::string(code, 8));
  CHECK(bytes_at("/proc/self/exe", *symbols, 0x7fffffff0000, 8).empty());
}

TEST_CASE("symbols: files that are no ELF, cut or lie about themselves give errors") {
  TempFolder folder;
  CHECK(read_elf_symbols(folder / "none", {"x"}).error().kind == ErrorKind::unreadable);
  CHECK(read_elf_symbols(folder.put("text", "hello"), {"x"}).error().kind == ErrorKind::malformed);
  std::string start(64, '\0');
  std::ifstream("/proc/self/exe", std::ios::binary).read(start.data(), 64);
  REQUIRE(start.substr(1, 3) == "ELF");
  CHECK(read_elf_symbols(folder.put("cut", start), {"x"}).error().kind == ErrorKind::malformed);
  for (std::size_t at = 16; at < start.size(); ++at) {  // every field of the header, far too large
    std::string wrong = start;
    wrong[at] = '\xff';
    (void)read_elf_symbols(folder.put("wrong", wrong + std::string(4096, '\xff')), {"x"});
  }
  std::string small = start;
  small[4] = 1;
  CHECK(read_elf_symbols(folder.put("small", small), {"x"}).error().kind == ErrorKind::unsupported);
}

TEST_CASE("symbols: of a running python; its memory has the bytes of its files") {
  PythonChild child("print(*sys.version_info[:2])\nsys.stdin.read()");
  const auto symbols = find_python_symbols("/proc", child.pid());
  REQUIRE_MESSAGE(symbols.has_value(), (symbols ? std::string() : to_text(symbols.error())));
  CHECK(child.line() == std::to_string(symbols->version.major) + " " + std::to_string(symbols->version.minor));
  const auto memory = RemoteMemory::open("/proc", child.pid());
  if (!memory) {
    MESSAGE("skipped: ", memory.error().message);
    return;
  }
  for (const RemoteFunction* function :
       {&symbols->add_pending_call, &symbols->run_simple_string, &symbols->unmap, &symbols->errno_location}) {
    std::string there(function->first_bytes.size(), '\0');
    CHECK(there.size() >= 8);
    CHECK(memory->read(function->address, there.data(), there.size()));
    CHECK(there == function->first_bytes);
  }
}

TEST_CASE("symbols: a program without Python is told from a Python without symbols") {
  const auto program = std::filesystem::canonical("/bin/sleep");
  Child sleeper({"/bin/sleep", "60"});
  wait_for_program(sleeper.pid(), program.filename());
  CHECK(find_python_symbols("/proc", sleeper.pid()).error().message.find("runs no Python") != std::string::npos);
  // A copy of another program under the name of python.
  TempFolder folder;
  const std::string copy = folder / "python3.12";
  std::filesystem::copy_file(program, copy);
  Child stripped({copy, "60"});
  wait_for_program(stripped.pid(), "python3.12");
  const auto result = find_python_symbols("/proc", stripped.pid());
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().kind == ErrorKind::unsupported);
  CHECK(result.error().hint.find("stepscope run") != std::string::npos);
}

// No Python 3.14 here: a stand-in notes how it is called and, like remote_exec, has the script run in "another
// process": here a python that it starts itself.
TEST_CASE(
    "remote exec: the interpreter is asked with PID and script, and the script's end is seen (stand-in for 3.14)") {
  TempFolder folder;
  PythonChild child("sys.stdin.read()");
  const std::string standin =
      folder.put("python", "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + folder / "arguments" + "\ncp \"$6\" " +
                               folder / "script" + "\n[ -e " + folder / "deaf" + " ] || rm \"$6\"\n");
  std::filesystem::permissions(standin, std::filesystem::perms::owner_all);
  const auto done = inject_by_remote_exec_of(standin, "/proc", child.pid(), "print('from the source')",
                                             std::chrono::milliseconds(20'000));
  REQUIRE(done.has_value());
  REQUIRE(done->has_value());
  CHECK((*done)->by_remote_exec);
  const std::string arguments = output_of({"cat", folder / "arguments"}, 20).value();
  CHECK(arguments.find("-I\n-S\n-c\nimport sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])\n" +
                       std::to_string(child.pid()) + "\n/") == 0);
  CHECK(output_of({"cat", folder / "script"}, 20).value().find("print(\\x27from the source\\x27)") !=
        std::string::npos);

  folder.put("deaf", "");  // the process does not come back to Python: the script that is left only removes itself
  const auto late =
      inject_by_remote_exec_of(standin, "/proc", child.pid(), "print('never')", std::chrono::milliseconds(50));
  REQUIRE(late.has_value());
  REQUIRE_FALSE(late->has_value());
  CHECK(late->error().message.find("did not come back to Python") != std::string::npos);
  const std::string again = output_of({"cat", folder / "arguments"}, 20).value();
  const std::string script =
      again.substr(again.rfind('\n', again.size() - 2) + 1, again.size() - again.rfind('\n', again.size() - 2) - 2);
  CHECK(std::filesystem::exists(script));
  CHECK(output_of({"cat", script}, 20).value().find("never") == std::string::npos);
  std::filesystem::remove(script);

  const std::string refuses = folder.put("refuses", "#!/bin/sh\nexit 1\n");
  std::filesystem::permissions(refuses, std::filesystem::perms::owner_all);
  CHECK_FALSE(
      inject_by_remote_exec_of(refuses, "/proc", child.pid(), "pass", std::chrono::milliseconds(50)).has_value());
}

TEST_CASE("remote exec: the interpreter of a process of this machine is its own file") {
  PythonChild child("print(os.path.realpath('/proc/self/exe'))\nsys.stdin.read()");
  CHECK(interpreter_of("/proc", child.pid()) == child.line());
  TempFolder folder;
  CHECK(interpreter_of(folder.path().string(), child.pid()).empty());
}

}  // namespace stepscope::collect
