#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/command_output.h"
#include "collect/collect.h"

namespace stepscope::collect {

TEST_CASE("windows are read as people write them") {
  CHECK(parse_steps("10:15") == "10:15");
  CHECK(parse_steps("7") == "7:8");
  CHECK(parse_seconds("2") == "3:5");
  CHECK(parse_seconds("0.5:2") == "0.5:2");
  for (const char* bad : {"", ":", "5:", ":5", "5:5", "6:5", "-1:4", "a:b", "1:2:3", "99999999999:2", "2147483647"}) {
    CHECK_FALSE(parse_steps(bad).has_value());
  }
  for (const char* bad : {"", ":", "0", "5:5", "nan", "1:inf", "-1", "3:1e9"})
    CHECK_FALSE(parse_seconds(bad).has_value());
}

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
