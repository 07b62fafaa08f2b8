#include "collect/inject/payload.h"

namespace stepscope::collect {
namespace {

constexpr std::string_view kGuard = R"(
import os
def guard():
    try:
        exec(compile(source, '<stepscope attach>', 'exec'), {'__name__': '_stepscope_attach'})
    except Exception:
        pass
    except BaseException as raised:
        import ctypes, threading, time
        kind, args = type(raised), raised.args
        class Again(kind):
            def __init__(self, *ignored):
                kind.__init__(self, *args)
        Again.__name__ = Again.__qualname__ = kind.__name__
        Again.__module__ = kind.__module__
        def hand_on(main=threading.main_thread().ident):
            time.sleep(0.02)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Again))
        threading.Thread(target=hand_on, daemon=True).start()
try:
    if not pid or os.getpid() == pid:
        guard()
        if remove:
            os.unlink(remove)
except Exception:
    pass
)";

// A bytes literal: any byte is allowed, and quotes, line ends and backslashes need no thought.
std::string bytes_literal(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "b'";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte > 0x7e || byte == '\'' || byte == '\\') {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += letter;
    }
  }
  return out + "'";
}

}  // namespace

std::string wrapped(std::string_view source, pid_t pid, std::string_view remove) {
  return "exec(" + bytes_literal(kGuard) + ", {'__name__': '_stepscope_guard', 'pid': " + std::to_string(pid) +
         ", 'remove': " + bytes_literal(remove) + ", 'source': " + bytes_literal(source) + "})\n";
}

}  // namespace stepscope::collect
