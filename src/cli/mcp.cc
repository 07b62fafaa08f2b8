// `stepscope mcp`: findings, answers and SQL for an assistant, over standard input and output.
#include <CLI/CLI.hpp>

#include <iostream>
#include <string>

#include "cli/command.h"
#include "serve/mcp.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

constexpr const char* kMcpExamples = R"(Examples:
  {"mcpServers": {"stepscope": {"command": "stepscope", "args": ["mcp"]}}}
      in the configuration of an assistant, which then starts it

It offers the tools findings, answers and query (Model Context Protocol, one JSON message a line). It reads the files
that it is asked about, and sends nothing anywhere.)";

void set_up_mcp(CLI::App& app, int& code) {
  app.footer(kMcpExamples);
  app.callback([&code] {
    serve::McpServer server([](const std::string& path) {
      const std::string paths[] = {path};
      return session::open(paths, {});
    });
    std::string line;
    while (std::getline(std::cin, line)) {
      if (const auto reply = server.answer(line)) std::cout << *reply << '\n' << std::flush;
    }
    code = kOk;
  });
}

}  // namespace

Command mcp_command() { return {"mcp", "Offer findings, answers and SQL to an assistant (stdio)", set_up_mcp}; }

}  // namespace stepscope::cli
