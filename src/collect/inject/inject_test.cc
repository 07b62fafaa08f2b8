// Injections into real python processes. Nothing here asserts about time.
#include "collect/inject/inject.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/temp_fixture.h"
#include "base/whole_file.h"
#include "collect/inject/payload.h"
#include "collect/inject/python_child_fixture.h"
#include "collect/processes/memory_map.h"

namespace stepscope::collect {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30'000ms;  // a slow machine; what is meant to end ends much earlier

std::string writes(const std::string& path, const std::string& expression = "'ok'") {
  return "with open('" + path + "', 'w') as f:\n    f.write(str(" + expression + "))\n";
}

Injection injected(pid_t pid, const std::string& source, std::chrono::milliseconds patience = kPatience) {
  const auto result = inject_python(pid, source, patience);
  REQUIRE_MESSAGE(result.has_value(), (result ? std::string() : to_text(result.error())));
  return *result;
}

// Returns when the process is inside of the system call read.
void wait_for_read(pid_t pid) {
  const std::string call = std::to_string(SYS_read) + " 0x0 ";
  while (whole_file("/proc/" + std::to_string(pid) + "/syscall").rfind(call, 0) != 0) std::this_thread::sleep_for(1ms);
}

// Mappings that only an injection makes: code without a file.
std::size_t anonymous_code(pid_t pid) {
  std::size_t out = 0;
  for (const Mapping& mapping : read_memory_map("/proc", pid)) out += mapping.executable && mapping.path.empty();
  return out;
}

// Integer and floating-point work whose result shows any register that was not put back.
constexpr const char* kChecksum = R"(
def work(rounds):
    total, x, y = 0, 0.1, 1.5
    for i in range(rounds):
        x = (x * 1.37 + y / 3.0) % 17.0
        y = (x - y) * 0.7 + i % 7
        total = (total * 31 + i * i) % 1000000007
    return '%d %s %s' % (total, x.hex(), y.hex())
)";

}  // namespace

TEST_CASE("inject: into a busy loop, a loop of sleeps and beside other threads") {
  if (!ptrace_is_allowed()) return;
  const std::string scripts[] = {
      "print('go')\nwhile True: sum(range(100))",
      "print('go')\nwhile True: time.sleep(0.05)",
      "import threading\n"
      "def spin():\n    while True: sum(range(1000))\n"
      "for _ in range(4): threading.Thread(target=spin, daemon=True).start()\n"
      "print('go')\nwhile True: time.sleep(0.01)",
  };
  for (const std::string& script : scripts) {
    CAPTURE(script);
    TempFolder folder;
    PythonChild child(script);
    CHECK(child.line() == "go");
    const std::size_t code_before = anonymous_code(child.pid());
    const Injection done =
        injected(child.pid(), "import threading\n" +
                                  writes(folder / "out", "threading.current_thread() is threading.main_thread()"));
    CHECK(whole_file(folder / "out") == "True");
    CHECK(done.python.major == 3);
    CHECK(anonymous_code(child.pid()) == code_before);
    // The job's own names are not ours.
    injected(child.pid(), "mine = 1");
    injected(child.pid(), "import __main__\n" + writes(folder / "names", "hasattr(__main__, 'mine')"));
    CHECK(whole_file(folder / "names") == "False");
  }
}

TEST_CASE("inject: a job blocked in read gets its data; the call is taken back and does not run later") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  PythonChild child("data = os.read(0, 100)\nprint(data.decode())\nprint(sys.stdin.readline().strip())");
  wait_for_read(child.pid());
  const auto refused = inject_python(child.pid(), writes(folder / "out"), 200ms);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::unsupported);
  CHECK(refused.error().message.find("did not come back to Python within 200 ms") != std::string::npos);
  CHECK(refused.error().message.find("read") != std::string::npos);
  child.write("data of the job");
  CHECK(child.line() == "data of the job");
  // While it waits in the second read, the call that was taken back has freed its memory.
  child.write("end\n");
  CHECK(child.line() == "end");
  CHECK(WEXITSTATUS(child.wait_end()) == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_CASE("inject: a job blocked in read runs the source when its data come in time") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  PythonChild child("print(os.read(0, 100).decode())\nos.read(0, 100)");
  std::thread feeder([&] {
    std::this_thread::sleep_for(300ms);
    child.write("late data");
  });
  const auto done = inject_python(child.pid(), writes(folder / "out"), kPatience);
  feeder.join();
  CHECK(done.has_value());
  CHECK(whole_file(folder / "out") == "ok");
  CHECK(child.line() == "late data");
}

TEST_CASE("inject: calls that answer a stop with EINTR, or count a time down, do not notice") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  const std::string preamble = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint('go')\n";
  const std::string epoll = "import ctypes, select\ne = select.epoll()\nbuffer = ctypes.create_string_buffer(64)\n" +
                            preamble +
                            "print(libc.epoll_wait(e.fileno(), buffer, 1, 1500), ctypes.get_errno())\nsys.stdin.read()";
  const std::string sleep = preamble +
                            "begin = time.monotonic()\nresult = libc.usleep(900000)\n"
                            "print(result, int(time.monotonic() - begin > 0.85))\nsys.stdin.read()";
  for (const std::string& script : {epoll, sleep}) {
    CAPTURE(script);
    const std::string expected = script == epoll ? "0 0" : "0 1";
    PythonChild child(script);
    CHECK(child.line() == "go");
    std::this_thread::sleep_for(200ms);
    injected(child.pid(), "pass");
    CHECK(child.line() == expected);
  }
}

TEST_CASE("inject: signals at 1 kHz lose nothing and the result is right") {
  if (!ptrace_is_allowed()) return;
  const std::string script = std::string(kChecksum) + R"(
import signal
seen = [0, 0]
def alarm(*ignored): seen[0] += 1
def user(*ignored): seen[1] += 1
signal.signal(signal.SIGALRM, alarm)
signal.signal(signal.SIGUSR1, user)
expected = work(20000)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
print('go')
right = 0
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10**9):
    right += work(20000) == expected
    if os.path.exists(STOP): break
    if work(20000) != expected: print('wrong')
signal.setitimer(signal.ITIMER_REAL, 0)
print(right > 0, seen[0] > 0, seen[1])
)";
  TempFolder folder;
  PythonChild child("STOP = '" + folder / "stop" + "'\n" + script);
  CHECK(child.line() == "go");
  // One SIGUSR1 per injection, sent by the source just before it ends: each is waited for, so none can coalesce.
  for (int i = 0; i < 20; ++i) {
    const std::string mark = folder / ("mark" + std::to_string(i));
    injected(child.pid(), "import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)");
    injected(child.pid(), writes(mark));
    CHECK(std::filesystem::exists(mark));
  }
  injected(child.pid(), writes(folder / "stop"));
  CHECK(child.line() == "True True 20");
  CHECK(WEXITSTATUS(child.wait_end()) == 0);
}

TEST_CASE("inject: signals from outside while the thread is stopped arrive, once each") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  // Python's C handler writes one byte for each signal, so nothing coalesces in Python.
  PythonChild child(
      "import signal\nsys.out, into = os.pipe()\nos.set_blocking(into, False)\n"
      "signal.signal(signal.SIGUSR1, lambda *a: None)\nsignal.set_wakeup_fd(into)\nprint('go')\n"
      "while True: sum(range(100))");
  CHECK(child.line() == "go");
  std::atomic<bool> stop = false;
  int sent = 0;
  // The next one goes out when the kernel has delivered the one before, so nothing coalesces there.
  std::thread sender([&] {
    const std::string status = "/proc/" + std::to_string(child.pid()) + "/status";
    while (!stop) {
      kill(child.pid(), SIGUSR1);
      ++sent;
      while (whole_file(status).find("ShdPnd:\t0000000000000000") == std::string::npos) std::this_thread::yield();
    }
  });
  for (int i = 0; i < 30; ++i) injected(child.pid(), "pass");
  stop = true;
  sender.join();
  injected(child.pid(), "import os, sys\n" + writes(folder / "seen", "len(os.read(sys.out, 1 << 20))"));
  MESSAGE("signals sent: ", sent);
  CHECK(std::atoi(whole_file(folder / "seen").c_str()) == std::min(sent, 1 << 16));
}

TEST_CASE("inject: fifty times into a computing job, whose result is bit for bit the same") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  const std::string script = std::string(kChecksum) + "print(work(2000000), flush=True)\n";
  PythonChild alone(script);
  const std::string expected = alone.line();
  REQUIRE(expected.size() > 20);
  // Rounds until told to stop; every round's result is compared.
  PythonChild child(std::string(kChecksum) + "results = set()\nwhile not os.path.exists('" + folder / "stop" +
                    "'): results.add(work(2000000))\nprint(sorted(results))");
  std::vector<std::int64_t> stopped_ns;
  for (int i = 0; i < 50; ++i)
    stopped_ns.push_back(injected(child.pid(), "sum(x * 0.5 for x in range(100))").stopped_ns);
  injected(child.pid(), writes(folder / "stop"));
  CHECK(child.line() == "['" + expected + "']");
  CHECK(WEXITSTATUS(child.wait_end()) == 0);
  std::sort(stopped_ns.begin(), stopped_ns.end());
  MESSAGE("main thread stopped: median ", stopped_ns[stopped_ns.size() / 2] / 1000, " us, worst ",
          stopped_ns.back() / 1000, " us");
}

TEST_CASE("inject: what is no python, no process or ourselves is refused with a sentence") {
  if (!ptrace_is_allowed()) return;
  Child sleeper({"sleep", "60"});
  std::this_thread::sleep_for(100ms);
  const auto no_python = inject_python(sleeper.pid(), "pass", 1000ms);
  REQUIRE_FALSE(no_python.has_value());
  CHECK(no_python.error().message.find("runs no Python") != std::string::npos);
  CHECK(inject_python(getpid(), "pass", 1000ms).error().kind == ErrorKind::usage);
  CHECK(inject_python(0x3fffff, "pass", 1000ms).error().kind == ErrorKind::not_found);
  CHECK(inject_python(sleeper.pid(), std::string_view("a\0b", 3), 1000ms).error().kind == ErrorKind::usage);
  kill(sleeper.pid(), SIGSTOP);
  std::this_thread::sleep_for(100ms);
  CHECK(inject_python(sleeper.pid(), "pass", 1000ms).error().hint.find("kill -CONT") != std::string::npos);
}

TEST_CASE("inject: another user's process is refused with a sentence") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can play another user");
    return;
  }
  PythonChild child("while True: time.sleep(0.05)");
  int answer[2];
  REQUIRE(pipe2(answer, O_CLOEXEC) == 0);
  const pid_t other = fork();
  if (other == 0) {
    std::string text = "setresuid failed";
    if (setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0) {
      const auto refused = inject_python(child.pid(), "pass", 1000ms);
      text = refused ? "not refused" : to_text(refused.error());
    }
    _exit(write(answer[1], text.data(), text.size()) < 0);
  }
  close(answer[1]);
  std::string text(1000, '\0');
  text.resize(std::max<ssize_t>(0, read(answer[0], text.data(), text.size())));
  close(answer[0]);
  waitpid(other, nullptr, 0);
  CHECK(text.find("belongs to another user (uid 0)") != std::string::npos);
  CHECK(text.find("sudo") != std::string::npos);
}

TEST_CASE("inject: a job that dies meanwhile ends in an error") {
  if (!ptrace_is_allowed()) return;
  {
    PythonChild child("while True: sum(range(100))");
    const auto died = inject_python(child.pid(), "import os\nos.kill(os.getpid(), 9)", kPatience);
    REQUIRE_FALSE(died.has_value());
    CHECK(died.error().kind == ErrorKind::not_found);
    CHECK(died.error().message.find("ended") != std::string::npos);
  }
  for (int i = 0; i < 6; ++i) {
    PythonChild child("while True: sum(range(100))");
    std::thread killer([&] {
      std::this_thread::sleep_for(i * 700us);
      kill(child.pid(), SIGKILL);
    });
    // Ended before, while stopped or while waiting: any of them, and no hang.
    const auto result = inject_python(child.pid(), "import time\ntime.sleep(100)", kPatience);
    killer.join();
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().kind == ErrorKind::not_found);
  }
}

TEST_CASE("inject: a source of 64 kB with quotes, line ends and UTF-8") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  PythonChild child("while True: time.sleep(0.02)");
  std::string text = "quotes ' \" ''' \\\\ \\n — Größe 日本語 🙂";
  std::string source = "text = r\"\"\"" + text + "\"\"\"\nlines = [\n";
  while (source.size() < (64 << 10)) source += "  'line — 日本',  # a comment \"'\n";
  source +=
      "]\nwith open('" + folder / "out" + "', 'w', encoding='utf-8') as f:\n    f.write(text + str(len(lines)))\n";
  injected(child.pid(), source);
  CHECK(whole_file(folder / "out").rfind(text, 0) == 0);
}

TEST_CASE("inject: what goes wrong in the source stays there; a job's own exit gets through") {
  if (!ptrace_is_allowed()) return;
  TempFolder folder;
  PythonChild child(
      "import signal\n"
      "def leave(*ignored): sys.exit(7)\n"
      "signal.signal(signal.SIGTERM, leave)\n"
      "print('go')\n"
      "try:\n    while True: time.sleep(0.01)\n"
      "finally: print('cleaned up')");
  CHECK(child.line() == "go");
  injected(child.pid(), "1 / 0");
  injected(child.pid(), "this is no Python (");
  injected(child.pid(), writes(folder / "still", "'alive'"));
  CHECK(whole_file(folder / "still") == "alive");
  // The signal's handler raises SystemExit inside of the source; the job may be gone before we see the source end.
  (void)inject_python(child.pid(), "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(0.2)",
                      kPatience);
  CHECK(child.line() == "cleaned up");
  CHECK(WEXITSTATUS(child.wait_end()) == 7);
}

TEST_CASE("inject: a source for another process of the same memory does nothing") {
  TempFolder folder;
  const std::string script = folder.put("payload.py", wrapped(writes(folder / "out"), 1));
  Child child({test_python(), script});
  CHECK(WEXITSTATUS(child.wait_end()) == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out"));
}

}  // namespace stepscope::collect
