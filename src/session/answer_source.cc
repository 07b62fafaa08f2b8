#include "session/answer_source.h"

#include <map>
#include <memory>

#include "session/session.h"

namespace stepscope::session {

query::Source answer_source(const Run& run) {
  const auto made = std::make_shared<std::map<std::string, std::shared_ptr<const Answer>>>();
  return {&run, answer_names(), [&run, made](const std::string& name) -> Result<std::shared_ptr<const Answer>> {
            if (const auto known = made->find(name); known != made->end()) return known->second;
            auto answer = one_answer(run, name);
            if (!answer) return fail(answer.error());
            return (*made)[name] = std::make_shared<const Answer>(*std::move(answer));
          }};
}

}  // namespace stepscope::session
