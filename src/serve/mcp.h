// McpServer: findings, answers and SQL for an assistant, by the Model Context Protocol (JSON-RPC 2.0, one message a
// line). It calls no model and no network: what it says is what the reports say.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::serve {

class McpServer {
 public:
  using Open = std::function<Result<Run>(const std::string& path)>;

  explicit McpServer(Open open) : open_(std::move(open)) {}

  // What is answered to a message, on one line; nothing to a notification.
  std::optional<std::string> answer(std::string_view message);

 private:
  Result<const Run*> run_at(const std::string& path);
  Result<std::string> call(std::string_view tool, std::string_view arguments);

  Open open_;
  std::string path_;          // of the run that is open
  std::int64_t changed_ = 0;  // when that was written
  std::unique_ptr<Run> run_;
};

}  // namespace stepscope::serve
