// Puts the rows of one trace behind those of another: recordings of one process that were written in several files.
#pragma once

#include "model/trace.h"

namespace stepscope {

// Appends what `from` holds as read; neither may have been derived. Texts, categories and lanes that both have are
// shared; ids of slices go on counting, so everything keeps pointing at what it did. Ids of arrows are moved out of the
// way of those in `to`. Device and group tables are taken where `to` has none.
void append_trace(Trace& to, const Trace& from);

}  // namespace stepscope
