#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/command_output.h"
#include "base/temp_fixture.h"
#include "collect/collect.h"

namespace stepscope::collect {

TEST_CASE("the job's exit code passes through") {
  CHECK(run_job({"sh", "-c", "exit 3"}, {}).code == 3);
  CHECK(run_job({"true"}, {}).code == 0);
  const Ending killed = run_job({"sh", "-c", "kill -9 $$"}, {});
  CHECK(killed.code == 137);
  CHECK(killed.signal == SIGKILL);
}

TEST_CASE("a job that cannot start is told apart") {
  const Ending missing = run_job({"/no/such/program"}, {});
  CHECK(missing.code == 127);
  CHECK_FALSE(missing.failure.empty());
  CHECK(run_job({"/"}, {}).code == 126);
}

TEST_CASE("the job gets the extra variables and its own arguments unchanged") {
  CHECK(run_job({"sh", "-c", "test \"$A\" = 'x y' && test \"$1\" = '[1,2]' && test \"$2\" = '--'", "sh", "[1,2]", "--"},
                {{"A", "x y"}})
            .code == 0);
}

TEST_CASE("a signal sent to us reaches the job") {
  std::thread sender([] {
    ::usleep(300'000);
    ::kill(::getpid(), SIGUSR1);
  });
  // The handler ends the loop; without the signal the job ends by itself with another code.
  const Ending ending =
      run_job({"sh", "-c", "trap 'exit 5' USR1; i=0; while [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done"}, {});
  sender.join();
  CHECK(ending.code == 5);
}

TEST_CASE("a signal that is ours does not reach the job, though it was ignored before") {
  struct sigaction ignored {
  }, before{};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGUSR2, &ignored, &before);
  const TempFolder folder;
  int calls = 0;
  // The job sends the signal twice, the second time when the first was taken: equal signals are not queued.
  const Ending ending = run_job({"sh", "-c",
                                 "for n in 1 2; do kill -USR2 $PPID; i=0;"
                                 " while [ ! -e \"$1/$n\" ] && [ $i -lt 1000 ]; do sleep 0.02; i=$((i+1)); done; done;"
                                 " exit 4",
                                 "sh", folder.path().string()},
                                {}, {SIGUSR2, [&] { folder.put(std::to_string(++calls), ""); }, {}});
  CHECK(ending.code == 4);
  CHECK(calls == 2);
  struct sigaction after {};
  sigaction(SIGUSR2, &before, &after);
  CHECK((after.sa_handler == SIG_IGN));  // as it was
}

TEST_CASE("output of helper commands") {
  CHECK(output_of({"echo", "hello"}, 5).value() == "hello\n");
  CHECK_FALSE(output_of({"false"}, 5).has_value());
  CHECK_FALSE(output_of({"/no/such/program"}, 5).has_value());
  CHECK_FALSE(output_of({"sleep", "30"}, 0.2).has_value());
}

TEST_CASE("hooks come in front of the user's PYTHONPATH") {
  ::setenv("PYTHONPATH", "/a:/b", 1);
  CHECK(job_environment("/hooks", "/run", {}).at("PYTHONPATH") == "/hooks:/a:/b");
  ::unsetenv("PYTHONPATH");
  CHECK(job_environment("/hooks", "/run", {}).at("PYTHONPATH") == "/hooks");
}

}  // namespace stepscope::collect
