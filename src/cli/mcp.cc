// `stepscope mcp`: findings, answers and SQL for an assistant, over standard input and output.
#include <CLI/CLI.hpp>

#include <iostream>
#include <streambuf>
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

// No message is that long: a peer that sends no end of line would fill the memory.
constexpr std::size_t kLongestMessage = 64 << 20;

// The next line, no more of it than that: what is cut is no JSON, and is answered as such. False: there is none.
bool next_line(std::streambuf& in, std::string& line) {
  using Traits = std::char_traits<char>;
  line.clear();
  auto c = in.sbumpc();
  if (Traits::eq_int_type(c, Traits::eof())) return false;
  for (; !Traits::eq_int_type(c, Traits::eof()) && Traits::to_char_type(c) != '\n'; c = in.sbumpc()) {
    if (line.size() < kLongestMessage) line += Traits::to_char_type(c);
  }
  return true;
}

void set_up_mcp(CLI::App& app, int& code) {
  app.footer(kMcpExamples);
  app.callback([&code] {
    serve::McpServer server([](const std::string& path) {
      const std::string paths[] = {path};
      return session::open(paths, {});
    });
    std::string line;
    while (next_line(*std::cin.rdbuf(), line)) {
      if (const auto reply = server.answer(line)) std::cout << *reply << '\n' << std::flush;
    }
    code = kOk;
  });
}

}  // namespace

Command mcp_command() { return {"mcp", "Offer findings, answers and SQL to an assistant (stdio)", set_up_mcp}; }

}  // namespace stepscope::cli
