#include "collect/kineto_daemon/protocol.h"

#include <doctest/doctest.h>

#include "base/temp_fixture.h"
#include "collect/kineto_daemon/config.h"
#include "collect/kineto_daemon/kineto_client_fixture.h"

namespace stepscope::collect::kineto {

TEST_CASE("kineto daemon: messages are read") {
  const auto asked = decode(request(3, {10, 20, 30}, -5));
  REQUIRE(asked.has_value());
  const auto& question = std::get<Request>(*asked);
  CHECK(question.type == 3);
  CHECK(question.job == -5);
  CHECK(question.pids == std::vector<std::int32_t>{10, 20, 30});
  const auto told = decode(context(2, 10, 99));
  REQUIRE(told.has_value());
  CHECK(std::get<Context>(*told).gpu == 2);
  CHECK(std::get<Context>(*told).pid == 10);
  CHECK(std::get<Context>(*told).job == 99);
}

TEST_CASE("kineto daemon: every length is checked") {
  const auto fault_of = [](const std::string& bytes) {
    const auto message = decode(bytes);
    REQUIRE_FALSE(message.has_value());
    return message.error();
  };
  CHECK(fault_of("") == Fault::short_header);
  CHECK(fault_of(std::string(39, '\0')) == Fault::short_header);
  CHECK(fault_of(std::string(40, '\0')) == Fault::unknown_type);
  CHECK(fault_of(std::string(40, '\xff')) == Fault::size_mismatch);
  CHECK(fault_of(datagram("request", "")) == Fault::unknown_type);
  CHECK(fault_of(datagram("ctxt", std::string(15, '\0'))) == Fault::short_payload);
  CHECK(fault_of(datagram("req", std::string(15, '\0'))) == Fault::short_payload);
  CHECK(fault_of(request(3, {})) == Fault::bad_count);
  const auto with_count = [](std::int32_t count, std::size_t pids) {
    std::string payload;
    append(payload, std::int32_t{3});
    append(payload, count);
    append(payload, std::int64_t{0});
    return datagram("req", payload + std::string(pids * 4, '\0'));
  };
  CHECK(fault_of(with_count(2, 1)) == Fault::bad_count);
  CHECK(fault_of(with_count(1, 2)) == Fault::bad_count);
  CHECK(fault_of(with_count(-1, 1)) == Fault::bad_count);
  CHECK(fault_of(with_count(0x7fffffff, 1)) == Fault::bad_count);
  CHECK(fault_of(with_count(0x40000001, 1)) == Fault::bad_count);  // times 4 it is 4 again in 32 bits
  CHECK(fault_of(with_count(257, 257)) == Fault::bad_count);
  CHECK(decode(with_count(256, 256)).has_value());
}

TEST_CASE("kineto daemon: answers have the header that clients expect") {
  CHECK(encode_config("A=1\n") == datagram("req", "A=1\n"));
  CHECK(encode_config("") == datagram("req", ""));
  CHECK(encode_count(3) == datagram("ctxt", std::string("\3\0\0\0", 4)));
}

TEST_CASE("kineto daemon: configuration by time and by iteration") {
  OnDemand request;
  request.file_prefix = "/tmp/x/trace";
  request.duration_ms = 300;
  request.start_unix_ms = 1234;
  CHECK(to_config(request) ==
        "ACTIVITIES_LOG_FILE=/tmp/x/trace.json\nPROFILE_START_TIME=1234\nACTIVITIES_DURATION_MSECS=300\n"
        "ACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=false\n"
        "PROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false\n");
  request.duration_ms.reset();
  request.iterations = 3;
  request.start_roundup = 10;
  request.shapes = false;
  request.stack = request.memory = request.flops = request.modules = true;
  CHECK(to_config(request) ==
        "ACTIVITIES_LOG_FILE=/tmp/x/trace.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=10\n"
        "ACTIVITIES_ITERATIONS=3\nACTIVITIES_WARMUP_ITERATIONS=0\nACTIVITIES_DURATION_MSECS=0\n"
        "PROFILE_REPORT_INPUT_SHAPES=false\nPROFILE_PROFILE_MEMORY=true\nPROFILE_WITH_STACK=true\n"
        "PROFILE_WITH_FLOPS=true\nPROFILE_WITH_MODULES=true\n");
  CHECK(trace_path("/tmp/x/trace", 12) == "/tmp/x/trace_12.json");
}

TEST_CASE("kineto daemon: a request that Kineto would misread is refused") {
  OnDemand good;
  good.file_prefix = "/tmp/x/trace";
  good.duration_ms = 300;
  REQUIRE(to_config(good).has_value());
  for (const char* prefix : {"", "trace", "/tmp/", "/tmp/a=b", "/tmp/a#b", "/tmp/a\nVERBOSE_LOG_LEVEL=1", "/tmp/a.json",
                             "/tmp/a.json/t", "/tmp/../etc/t", "/tmp/a ", "/tmp/\"a", "/tmp/a\\"}) {
    CAPTURE(prefix);
    OnDemand bad = good;
    bad.file_prefix = prefix;
    REQUIRE_FALSE(to_config(bad).has_value());
    CHECK(to_config(bad).error().kind == ErrorKind::usage);
  }
  const auto refused = [&](auto change) {
    OnDemand bad = good;
    change(bad);
    return !to_config(bad).has_value();
  };
  CHECK(refused([](OnDemand& r) { r.duration_ms.reset(); }));
  CHECK(refused([](OnDemand& r) { r.iterations = 3; }));
  CHECK(refused([](OnDemand& r) { r.duration_ms = 0; }));
  CHECK(refused([](OnDemand& r) { r.duration_ms = std::int64_t{1} << 31; }));
  CHECK(refused([](OnDemand& r) { r.warmup_s = -1; }));
  CHECK(refused([](OnDemand& r) { r.start_roundup = 0; }));
  CHECK(refused([](OnDemand& r) { r.start_unix_ms = -1; }));
}

}  // namespace stepscope::collect::kineto
