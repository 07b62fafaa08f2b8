// `stepscope view`: the page of runs, served on this machine alone.
#include <CLI/CLI.hpp>

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "run/living.h"
#include "serve/api.h"
#include "serve/http.h"
#include "serve/runs.h"
#include "session/inputs.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

struct ViewOptions {
  OpenPaths open;
  int port = 0;
  bool no_browser = false, each = false;
  std::vector<std::string> allow_hosts;
};

constexpr const char* kViewExamples = R"(Examples:
  stepscope view run/                     a run folder, a trace, or a folder of runs
  stepscope view --each before.json.gz after.json.gz   two runs, to be compared
  stepscope view trace.json.gz --port 8123 --no-browser
On a cluster: run it there, and the printed ssh line on your own machine; then open the printed address.

It listens on this machine alone. The address holds a secret: who knows it can see the runs. Ctrl-C ends it.)";

serve::Server* serving = nullptr;  // of the one that a signal ends

void end_serving(int) {
  if (serving != nullptr) serving->stop();
}

// The user's own browser, where there is a screen.
void open_browser(const std::string& address) {
  const bool screen = getenv("DISPLAY") != nullptr || getenv("WAYLAND_DISPLAY") != nullptr;
  if (!screen || getenv("SSH_CONNECTION") != nullptr) return;
  const pid_t child = fork();
  if (child != 0) return;
  setsid();  // Ctrl-C here is not meant for it
  std::signal(SIGPIPE, SIG_DFL);
  if (freopen("/dev/null", "w", stdout) == nullptr || freopen("/dev/null", "w", stderr) == nullptr) _exit(127);
  execlp("xdg-open", "xdg-open", address.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

// The address at which a proxy of the user's editor or notebook shows what listens here; empty: there is none.
std::string proxied(const std::string& port, const std::string& token) {
  if (const char* editor = getenv("VSCODE_PROXY_URI"); editor != nullptr) {
    std::string address = editor;
    const std::size_t at = address.find("{{port}}");
    if (at == std::string::npos) return "";
    address.replace(at, 8, port);
    if (!address.ends_with('/')) address += '/';
    return address + token + "/";
  }
  const char* notebook = getenv("JUPYTERHUB_SERVICE_PREFIX");
  if (notebook == nullptr) return "";
  std::string address = notebook;
  if (!address.ends_with('/')) address += '/';
  return address + "proxy/" + port + "/" + token + "/ of your hub, with jupyter-server-proxy";
}

// "https://code.example.com/proxy/8123/" → "code.example.com"
std::string host_of(const std::string& address) {
  const std::size_t begin = address.find("://");
  if (begin == std::string::npos) return "";
  return address.substr(begin + 3, address.find_first_of(":/", begin + 3) - begin - 3);
}

bool is_pattern(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

// What may be there later: what a pattern matches, or the recording of a job that runs.
bool may_come(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (is_pattern(path)) return true;
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    if (at->path().filename() == "run.json") return true;
  }
  return false;
}

// Refuses where nothing can be shown, in the words of `report`: here, where it was typed.
Result<void> check_paths(const std::vector<std::string>& paths, const std::vector<std::vector<std::string>>& groups) {
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!is_pattern(path) && !std::filesystem::exists(path, ignored)) {
      return fail({ErrorKind::not_found, "no such file or folder", path, std::nullopt, "Check the path"});
    }
  }
  std::optional<Error> first;
  for (const std::vector<std::string>& group : groups) {
    std::vector<Issue> issues;
    const auto found = session::find_inputs(group, issues);
    if (found || std::any_of(group.begin(), group.end(), may_come)) return {};
    if (!first) first = found.error();
  }
  return first ? fail(*first) : Result<void>();
}

Result<int> run_view(const ViewOptions& options) {
  const OpenPaths& open = options.open;
  const auto groups = options.each ? serve::each_path(open.paths) : serve::group_paths(open.paths);
  if (const auto checked = check_paths(open.paths, groups); !checked) return fail(checked.error());
  std::unique_ptr<serve::Api> api;  // made behind the server, which no request reaches before it runs
  std::vector<std::string> hosts = options.allow_hosts;
  if (const std::string host = host_of(proxied("0", "")); !host.empty()) hosts.push_back(host);
  const auto server = serve::Server::listen({.port = options.port, .host_names = hosts},
                                            [&api](const serve::Request& request) { return api->answer(request); });
  if (!server) return fail(server.error());
  auto runs = std::make_unique<serve::Runs>(
      groups, [open](const std::vector<std::string>& paths, const std::function<void(double)>& progress) {
        session::OpenOptions how = open.options();
        how.progress = [&](std::string_view, double share) { progress(share); };
        return session::open(paths, how);
      });
  api = std::make_unique<serve::Api>(*runs);
  serving = server->get();
  struct sigaction act = {};
  act.sa_handler = end_serving;
  act.sa_flags = SA_RESETHAND;  // a second one ends it at once
  sigaction(SIGINT, &act, nullptr);
  sigaction(SIGTERM, &act, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a client that went away
  const std::string port = std::to_string((*server)->port());
  const std::string address = "http://127.0.0.1:" + port + "/" + (*server)->token() + "/";
  std::fprintf(stdout, "%s\n", address.c_str());
  std::fflush(stdout);
  if (const std::string there = proxied(port, (*server)->token()); !there.empty()) {
    std::fprintf(stderr, "stepscope: through your proxy: %s\n", there.c_str());
  }
  std::fprintf(stderr, "stepscope: open it in a browser; from another machine first: ssh -L %s:127.0.0.1:%s %s\n",
               port.c_str(), port.c_str(), run::host_name().c_str());
  if (!options.no_browser) open_browser(address);
  (*server)->run();
  serving = nullptr;
  std::fflush(nullptr);
  _exit(kOk);  // a file that is being read, or a query, is not waited for
}

void set_up_view(CLI::App& app, int& code) {
  const auto options = std::make_shared<ViewOptions>();
  app.add_option("PATH", options->open.paths, "Trace files, run folders, or folders of runs")
      ->required()
      ->type_name("");
  app.add_flag("--each", options->each, "Each PATH is a run of its own (default: files together are the ranks of one)");
  app.add_option("--port", options->port, "Port on 127.0.0.1 (default: any that is free)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--no-browser", options->no_browser, "Only print the address");
  app.add_option("--allow-host", options->allow_hosts, "Name of a proxy in front, as its Host says; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  options->open.add_options(app);
  app.footer(kViewExamples);
  app.callback([options, &code] {
    const Result<int> done = run_view(*options);
    code = done ? *done : refused(done.error());
  });
}

}  // namespace

Command view_command() { return {"view", "Show runs in the browser: overview, timeline, queries", set_up_view}; }

}  // namespace stepscope::cli
