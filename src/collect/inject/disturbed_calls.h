// Which system calls answer a mere stop with EINTR and can be done again: nothing has happened in them yet.
#pragma once

namespace stepscope::collect {

bool may_be_redone(long number);

}  // namespace stepscope::collect
