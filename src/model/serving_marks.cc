#include "model/serving_marks.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stepscope {
namespace {

// The whole number right behind `key`; -1: no such key or no number.
std::int64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return -1;
  std::int64_t number = -1;
  const char* begin = text.data() + at + key.size();
  const auto parsed = std::from_chars(begin, text.data() + text.size(), number);
  return parsed.ec == std::errc() && number >= 0 ? number : -1;
}

// "2(512)", "2(sq512sk900…)": requests and tokens behind `key`.
void read_group(std::string_view name, std::string_view key, std::int64_t& requests, std::int64_t& tokens) {
  requests = number_after(name, key);
  const std::size_t at = name.find(key);
  if (requests < 0) return;
  const std::string_view rest = name.substr(at + key.size());
  const std::size_t open = rest.find('(');
  if (open == std::string_view::npos) return;
  tokens = std::max(number_after(rest, "("), number_after(rest.substr(open, rest.find(')') - open), "(sq"));
}

ServingKind kind_of(std::int64_t prefill, std::int64_t decode) {
  if (prefill > 0 && decode > 0) return ServingKind::mixed;
  if (prefill > 0) return ServingKind::prefill;
  if (decode > 0) return ServingKind::decode;
  return prefill == 0 && decode == 0 ? ServingKind::idle : ServingKind::other;
}

ServingMark vllm(std::string_view name) {
  ServingMark mark{.engine = "vLLM"};
  if (name.find("context_") != std::string_view::npos) {
    read_group(name, "context_", mark.prefill_requests, mark.prefill_tokens);
    read_group(name, "generation_", mark.decode_requests, mark.decode_tokens);
  } else {
    mark.prefill_requests = number_after(name, "new_");
    mark.decode_requests = number_after(name, "cached_");
  }
  mark.kind = kind_of(mark.prefill_requests, mark.decode_requests);
  return mark;
}

// Words of the text in brackets: "bs=2", "toks=4096". A key stands at the beginning of a word.
std::int64_t word(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == ' ' || text[at - 1] == '[') return number_after(text.substr(at), key);
  }
  return -1;
}

ServingMark brackets(std::string_view name, std::string_view engine, std::string_view mode) {
  ServingMark mark{.engine = engine};
  const std::int64_t batch = word(name, "bs="), tokens = std::max(word(name, "toks="), word(name, "tok="));
  if (mode == "MIXED") {
    mark.kind = ServingKind::mixed;
    mark.prefill_requests = word(name, "c=");
    mark.decode_requests = word(name, "g=");
    mark.prefill_tokens = word(name, "c_sq=");
    if (mark.decode_requests >= 0) mark.decode_tokens = mark.decode_requests;
  } else if (mode == "DECODE" || mode == "decode") {
    mark.kind = ServingKind::decode;
    mark.decode_requests = batch;
    mark.decode_tokens = tokens >= 0 ? tokens : batch;  // one a request
  } else if (mode == "EXTEND" || mode == "prefill" || mode == "PREFILL") {
    mark.kind = ServingKind::prefill;
    mark.prefill_requests = batch;
    mark.prefill_tokens = tokens;
  } else if (mode == "IDLE") {
    mark.kind = ServingKind::idle;
  } else {  // VERIFY and DRAFT… of speculative decoding: requests are known, accepted tokens are not
    mark.decode_requests = batch;
  }
  return mark;
}

}  // namespace

std::string_view to_string(ServingKind kind) {
  constexpr std::array<std::string_view, kServingKinds> kNames{"prefill", "decode", "mixed", "idle", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<ServingMark> serving_mark(std::string_view name) {
  if (name.starts_with("execute_")) return vllm(name);
  if (name.starts_with("step[")) {
    const std::string_view rest = name.substr(5);
    return brackets(name, "SGLang", rest.substr(0, rest.find_first_of(" ]")));
  }
  for (const std::string_view mode : {"prefill", "decode"}) {
    if (name.starts_with(mode) && name.substr(mode.size()).starts_with("[bs=")) return brackets(name, "ATOM", mode);
  }
  return std::nullopt;
}

}  // namespace stepscope
