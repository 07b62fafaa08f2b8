// A trace from C++: g++ -std=c++17 -I DIST/include examples/read_trace.cc -L DIST/lib -lstepscope -Wl,-rpath,DIST/lib
//
// Prints how many slices each rank has, taken from the table as Arrow batches, and the answer "steps" as JSON.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "stepscope/stepscope.hpp"

int main(int argc, char** argv) {
  try {
    const auto run = stepscope::open(std::vector<std::string>(argv + 1, argv + argc));
    stepscope::TableStream slices = run.table("slices");
    ArrowArray batch{};
    while (slices.get()->get_next(slices.get(), &batch) == 0 && batch.release != nullptr) {  // one batch per rank
      std::printf("%lld slices\n", static_cast<long long>(batch.length));
      batch.release(&batch);
    }
    std::puts(run.report({"steps"}).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
