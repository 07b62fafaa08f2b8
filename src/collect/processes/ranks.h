// Which processes on this host are the ranks of a job, given any process of it.
//
// How a rank is told from all that surrounds it:
// - It is a Python that has libtorch mapped. (Leaves out shells, resource trackers, a launcher without torch.)
// - RANK or LOCAL_RANK stands in its environment, as torchrun, accelerate, deepspeed and srun wrappers put it there,
// and no
//   process above it is such a rank already: DataLoader and compile workers inherit the variables from their rank.
// - A launcher (torchrun and torch.distributed.run, accelerate, deepspeed) is none, whatever its environment says.
// - Without these variables (mp.spawn sets them inside the child, where /proc does not show them): spawned children of
// a
//   torch process are the ranks, unless their main thread is named as torch names its DataLoader workers (torch 2.6 and
//   newer; older spawned DataLoader workers cannot be told apart). Forked children without variables are workers. A
//   torch process without such children is a job of one rank.
// - A program with a command line of its own that a torch process started is a job of its own.
// Ranks that belong together: below the same launcher; or elsewhere on the host with the same user,
// TORCHELASTIC_RUN_ID, MASTER_ADDR and MASTER_PORT (two agents, or one srun task per rank).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/processes/process_tree.h"

namespace stepscope::collect {

struct RankProcess {
  Process process;
  std::optional<int> rank;  // RANK, where the environment says it
  std::optional<int> local_rank;
  std::optional<int> world_size;
};

// The ranks of the job that `pid` belongs to (launcher, rank, worker of a rank, or a shell above), by rank, then by
// PID. not_found: no process there has torch loaded. unreadable: the processes belong to somebody else.
Result<std::vector<RankProcess>> find_ranks(const ProcessTable& table, pid_t pid);

}  // namespace stepscope::collect
