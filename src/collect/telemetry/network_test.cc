// Interfaces and ports from trees made here: what they count, what they do not have, and what comes and goes.
#include "base/temp_fixture.h"
#include "collect/telemetry/kept_series.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

std::string interfaces(const std::string& rows) {
  return "Inter-|   Receive                                                |  Transmit\n"
         " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
         "carrier compressed\n" +
         rows;
}

std::string row(const std::string& name, int received, int sent, int drops = 0) {
  return name + ":" + std::to_string(received) + " 5 1 " + std::to_string(drops) + " 0 0 0 0 " + std::to_string(sent) +
         " 6 2 4 0 0 0 0\n";
}

std::string segments(const std::string& names, const std::string& numbers) {
  return "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoAlgorithm " + names + "\nTcp: 1 " + numbers +
         "\nUdp: InDatagrams RetransSegs\nUdp: 9 9\n";
}

const std::vector<Group> kRank{{"rank 0", {{7, 1, 1}}}};

}  // namespace

TEST_CASE("telemetry: interfaces are those that the first rank sees") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  put(proc / "self/net/dev", interfaces(row("    lo", 9, 9) + row("  eth0", 1000, 100) + row("veth12", 7, 7)));
  put(proc / "self/net/snmp", segments("RetransSegs MaxConn", "50 -1"));
  put(proc / "7/net/dev", interfaces(row("    lo", 9, 9) + row("  eth0", 20, 5, 3) + row("  idle", 0, 0)));
  put(proc / "7/net/snmp", segments("MaxConn RetransSegs", "-1 8"));
  fs::create_directories(proc / "7/ns");
  fs::create_directories(proc / "self/ns");
  fs::create_symlink("net:[1]", proc / "self/ns/net");
  fs::create_symlink("net:[2]", proc / "7/ns/net");
  const auto source = opened("network", {proc.string(), "", {}});
  Heard heard;
  source->sample(heard);
  put(proc / "self/net/dev", interfaces(row("    lo", 9, 9) + row("  eth0", 1500, 110)));
  put(proc / "self/net/snmp", segments("RetransSegs MaxConn", "53 -1"));
  source->sample(heard);
  CHECK(heard.values["received eth0"] == 500);
  CHECK(heard.values["sent eth0"] == 10);
  CHECK(heard.values["tcp_retransmitted host"] == 0);  // read more seldom
  for (int i = 2; i <= kQuietSamples; i++) source->sample(heard);
  CHECK(heard.values["tcp_retransmitted host"] == 3);
  CHECK_FALSE(heard.values.contains("received lo"));
  CHECK_FALSE(heard.values.contains("received veth12"));
  source->follow(kRank);  // another name space counts for itself
  source->sample(heard);
  CHECK(heard.values["received eth0"] == 500);
  put(proc / "7/net/dev", interfaces(row("    lo", 9, 9) + row("  eth0", 24, 6, 5) + row("  idle", 0, 0)));
  put(proc / "7/net/snmp", segments("MaxConn RetransSegs", "-1 9"));
  source->sample(heard);
  CHECK(heard.values["received eth0"] == 504);
  CHECK(heard.values["sent eth0"] == 11);
  CHECK(heard.values["receive_drops eth0"] == 2);
  for (int i = 2; i <= kQuietSamples; i++) source->sample(heard);
  CHECK(heard.values["tcp_retransmitted host"] == 4);
  CHECK_FALSE(heard.values.contains("received idle"));
  source->follow({{"rank 0", {{99, 1, 1}}}});  // has ended: what we have goes on
  put(proc / "7/net/dev", interfaces(row("  eth0", 30, 6, 5)));
  source->sample(heard);
  CHECK(heard.values["received eth0"] == 510);
}

TEST_CASE(
    "telemetry: the loopback counts where there is nothing else, hundreds of interfaces do not, nor damaged ones") {
  const TempFolder folder;
  const fs::path dev = folder.path() / "proc/self/net/dev";
  const Roots roots{(folder.path() / "proc").string(), "", {}};
  CHECK(why_absent("network", roots).find("no network interface can be read") != std::string::npos);
  put(dev, interfaces(row("lo", 9, 9)));
  const auto source = opened("network", roots);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values.contains("received lo"));
  Heard damaged;
  for (const std::string& text : {std::string(), interfaces("eth0: 1 2 3\n: 1\nx\n:\n"),
                                  interfaces("eth0: 99999999999999999999 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"),
                                  std::string(100'000, '\0'), interfaces(row(":", 1, 1)).substr(0, 230)}) {
    put(dev, text);
    source->sample(damaged);
  }
  CHECK(damaged.values.empty());
  std::string many;
  for (int i = 0; i < 3000; i++) many += row("net" + std::to_string(i), 5, 5);
  put(dev, interfaces(many));
  const auto other = opened("network", roots);
  Heard few;
  other->sample(few);
  CHECK(few.values.size() == 32 * 8);
}

TEST_CASE("telemetry: ports count in words or in bytes, and a file that answers with an error is left out") {
  const TempFolder folder;
  const fs::path sys = folder.path() / "sys", all = sys / "class/infiniband";
  const Roots roots{"", sys.string(), {}};
  CHECK(why_absent("infiniband", roots).find("no InfiniBand, RoCE or EFA adapter") != std::string::npos);
  const fs::path wide = all / "mlx5_0/ports/1", plain = all / "efa_0/ports/1", old = all / "mlx4_0/ports/2";
  put(wide / "counters/port_rcv_data", "1000\n");
  put(wide / "counters/port_xmit_data", "10\n");
  put(wide / "counters/port_xmit_wait", "7\n");
  fs::create_directories(wide / "counters/port_rcv_errors");  // read() of it fails
  put(wide / "counters/symbol_error", "N/A (no PMA)\n");
  put(wide / "hw_counters/np_cnp_sent", "1\n");
  put(wide / "hw_counters/np_ecn_marked_roce_packets", "2\n");
  put(wide / "hw_counters/out_of_sequence", "18446744073709551615\n");
  put(wide / "rate", "2.5 Gb/sec (1X SDR)\n");
  put(wide / "state", "4: ACTIVE\n");
  put(plain / "hw_counters/rx_bytes", "500\n");
  put(plain / "hw_counters/tx_bytes", "50\n");
  put(plain / "hw_counters/rdma_read_bytes", "5\n");
  put(plain / "rate", "unknown\n");
  put(old / "counters/port_rcv_data", "4294967295\n");  // stands still there
  put(old / "counters_ext/port_rcv_data_64", "5000000000\n");
  put(old / "state", "1: DOWN\n");
  const auto source = opened("infiniband", roots);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["link_rate mlx5_0/1"] == 312'500'000);
  CHECK(heard.values["link_state mlx5_0/1"] == 4);
  CHECK(heard.values["link_state mlx4_0/2"] == 1);
  CHECK_FALSE(heard.values.contains("link_rate efa_0/1"));
  CHECK_FALSE(heard.values.contains("receive_errors mlx5_0/1"));
  CHECK_FALSE(heard.values.contains("symbol_errors mlx5_0/1"));
  CHECK_FALSE(heard.values.contains("out_of_sequence mlx5_0/1"));
  CHECK_FALSE(heard.values.contains("sent mlx4_0/2"));
  put(wide / "counters/port_rcv_data", "1025\n");
  put(wide / "counters/port_xmit_wait", "10\n");
  put(wide / "hw_counters/np_ecn_marked_roce_packets", "6\n");
  put(plain / "hw_counters/rx_bytes", "525\n");
  put(plain / "hw_counters/rdma_read_bytes", "9\n");
  put(old / "counters_ext/port_rcv_data_64", "5000000003\n");
  source->sample(heard);
  CHECK(heard.values["received mlx5_0/1"] == 100);
  CHECK(heard.values["received efa_0/1"] == 25);
  CHECK(heard.values["send_wait mlx5_0/1"] == 0);  // not yet asked for again
  CHECK(heard.values["received mlx4_0/2"] == 0);   // its link is down
  for (int i = 0; i < 9; i++) source->sample(heard);
  CHECK(heard.values["send_wait mlx5_0/1"] == 3);
  CHECK(heard.values["congestion_marks mlx5_0/1"] == 4);
  CHECK(heard.values["rdma_read efa_0/1"] == 4);
  CHECK(heard.values["received mlx4_0/2"] == 12);
}

TEST_CASE("telemetry: a port that is unplugged has no samples, and goes on when it is back") {
  const TempFolder folder;
  const fs::path sys = folder.path() / "sys", port = sys / "class/infiniband/mlx5_1/ports/1";
  const auto put_port = [&](int words) {
    put(port / "counters/port_rcv_data", std::to_string(words));
    put(port / "state", "4: ACTIVE\n");
  };
  put_port(10);
  const auto source = opened("infiniband", {"", sys.string(), {}});
  Heard heard;
  source->sample(heard);
  put_port(30);
  source->sample(heard);
  CHECK(heard.values["received mlx5_1/1"] == 80);
  for (const char* file : {"counters/port_rcv_data", "state"}) put(port / file, "");  // as after an unplugging
  fs::remove_all(sys / "class/infiniband/mlx5_1");
  Heard gone;
  for (int i = 0; i < 30; i++) source->sample(gone);
  CHECK(gone.values.empty());
  put_port(5);  // counts from 0 again
  for (int i = 0; i < 100; i++) source->sample(heard);
  put_port(6);
  source->sample(heard);
  CHECK(heard.values["received mlx5_1/1"] == 84);
  put(sys / "class/infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n");
  for (int i = 0; i < 100; i++) source->sample(heard);
  CHECK(heard.values["link_state mlx5_2/1"] == 4);
}

}  // namespace stepscope::collect::telemetry
