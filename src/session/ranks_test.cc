#include "session/ranks.h"

#include <doctest/doctest.h>

#include <initializer_list>

using namespace stepscope;
using session::rank_in_name;

namespace {

Run run_of(std::initializer_list<const char*> paths) {
  Run run;
  for (const char* path : paths) {
    run.traces.emplace_back();
    run.traces.back().source.path = path;
  }
  return run;
}

}  // namespace

TEST_CASE("the rank in a name") {
  CHECK(rank_in_name("rank-3.pt.trace.json") == 3);
  CHECK(rank_in_name("traces/rank12_dp1_tp4/t.json") == 12);
  CHECK(rank_in_name("rank1/rank_2.json") == 2);
  CHECK(rank_in_name("run.rank=7.json") == 7);
  CHECK_FALSE(rank_in_name("ranking.json"));
  CHECK_FALSE(rank_in_name("frank3.json"));
  CHECK_FALSE(rank_in_name("rank"));
  CHECK_FALSE(rank_in_name(""));
  CHECK(rank_in_name("rank99999999999999999999.json") == 999'999'999);
}

TEST_CASE("32: without a rank in file or name the order given counts, around the ranks that are known") {
  Run run = run_of({"x.json", "rank0.json", "y.json"});
  run.traces[0].rank.rank = 1;
  run.traces[0].rank.source = RankSource::distributed_info;
  session::settle_ranks(run);
  REQUIRE(run.traces.size() == 3);
  CHECK(run.traces[0].source.path == "rank0.json");
  CHECK(run.traces[0].rank.source == RankSource::file_name);
  CHECK(run.traces[1].source.path == "x.json");
  CHECK(run.traces[2].source.path == "y.json");
  CHECK(run.traces[2].rank.rank == 2);
  CHECK(run.traces[2].rank.source == RankSource::order);
  CHECK(run.issues.empty());
}

TEST_CASE("files that show what no job does are told, and which sign it is") {
  Run run = run_of({"a/rank0.json", "b/rank1.json"});
  run.traces[1].rank.rank = 1;
  for (Trace& trace : run.traces) trace.rank.world_size = 2;
  session::note_unrelated(run);
  CHECK(run.issues.empty());
  run.traces[1].rank.world_size = 4;
  run.traces[1].rank.rank = 0;
  session::note_unrelated(run);
  REQUIRE(run.issues.size() == 1);
  CHECK(run.issues[0].code == "unrelated_files");
  CHECK(run.issues[0].sentence ==
        "The 2 files do not look like one job: several are of rank 0; their jobs have 2, 4 ranks");
}

TEST_CASE("32: clashes and holes in the ranks are said") {
  Run run = run_of({"a/rank1.json", "b/rank1.json"});
  run.traces[0].rank.world_size = 3;
  session::settle_ranks(run);
  CHECK(run.traces.size() == 2);
  REQUIRE(run.issues.size() == 2);
  CHECK(run.issues[0].code == "rank_clash");
  CHECK(run.issues[0].count == 2);
  CHECK(run.issues[1].code == "ranks_missing");
  CHECK(run.issues[1].sentence == "2 of 3 ranks were not given: 0, 2");
}
