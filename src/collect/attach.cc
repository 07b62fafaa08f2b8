#include "collect/attach.h"

#include <utility>

#include "collect/inject/inject.h"
#include "run/json_text.h"

namespace stepscope::collect {

// A JSON string is a Python string.
std::string attach_source(const std::string& hooks, const std::string& run_folder, const std::string& capture) {
  return "import sys\nfolder = " + run::json_string(hooks + "/_stepscope_hooks") +
         "\nrun = " + run::json_string(run_folder) + "\ncapture = " + run::json_string(capture) + R"(
try:
    hooks = sys.modules.get("_stepscope_hooks")
    torch = sys.modules.get("torch")
    importing = torch is None or getattr(torch.__spec__, "_initializing", False)
    if hooks is None and not importing:
        from importlib import util
        spec = util.spec_from_file_location("_stepscope_hooks", folder + "/__init__.py",
                                            submodule_search_locations=[folder])
        hooks = util.module_from_spec(spec)
        sys.modules["_stepscope_hooks"] = hooks
        spec.loader.exec_module(hooks)
    if hooks is not None:
        hooks.attach(run, capture)
except Exception as error:
    sys.modules.pop("_stepscope_hooks", None)
    with open(run + "/hooks.log", "a") as log:
        log.write("attaching failed: %r\n" % (error,))
)";
}

Attachment attach(const std::vector<RankProcess>& ranks, const std::string& source,
                  std::chrono::milliseconds patience) {
  Attachment out;
  for (const RankProcess& rank : ranks) {
    if (const auto done = inject_python(rank.process.pid, source, patience)) {
      out.ranks.push_back({rank, done->stopped_ns});
    } else {
      out.failed.push_back({rank, done.error()});
    }
  }
  return out;
}

}  // namespace stepscope::collect
