// What a serving engine says about one round in the name of its annotation: how many requests it prefills and decodes,
// and how many tokens.
//
//   vLLM     execute_context_2(512)_generation_14(14), with details execute_context_2(sq512sk900sqsq…)_generation_…,
//            with a number execute_7_context_…, before that execute_new_2_cached_14
//   SGLang   step[EXTEND bs=2 toks=4096 …], step[DECODE bs=16], step[MIXED bs=3 c=1 g=2 c_sq=5 …], step[VERIFY bs=4]
//   ATOM     prefill[bs=2 tok=16384], decode[bs=64 …]
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope {

enum class ServingKind : std::uint8_t { prefill, decode, mixed, idle, other };
inline constexpr std::size_t kServingKinds = 5;
std::string_view to_string(ServingKind kind);

struct ServingMark {
  ServingKind kind = ServingKind::other;
  std::string_view engine;
  // -1: the mark does not tell.
  std::int64_t prefill_requests = -1, prefill_tokens = -1, decode_requests = -1, decode_tokens = -1;
};

std::optional<ServingMark> serving_mark(std::string_view name);

}  // namespace stepscope
