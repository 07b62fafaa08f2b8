// ExportFixture: a small nsys export made with SQLite itself, table by table, in the schema of any version. Not part of
// the program.
//
//   ExportFixture f;
//   f.old_schema();                                       // 3.1: tables as nsys 2023.1 made them
//   f.sql("INSERT INTO StringIds VALUES (1, 'gemm')");
//   const std::vector<Trace> traces = f.read();
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temp_fixture.h"
#include "read/reader.h"

namespace stepscope::read {

// A global id as nsys makes it.
constexpr std::int64_t global_id(std::int64_t pid, std::int64_t tid = 0) {
  return std::int64_t{1} << 48 | pid << 24 | tid;
}

class ExportFixture {
 public:
  TempFolder folder;
  const std::string path = folder / "report.sqlite";

  ExportFixture() { REQUIRE(sqlite3_open(path.c_str(), &database_) == SQLITE_OK); }
  ~ExportFixture() { close(); }
  ExportFixture(const ExportFixture&) = delete;
  ExportFixture& operator=(const ExportFixture&) = delete;

  void sql(const std::string& text) {
    char* why = nullptr;
    const int done = sqlite3_exec(database_, text.c_str(), nullptr, nullptr, &why);
    REQUIRE_MESSAGE(done == SQLITE_OK, text, ": ", why == nullptr ? "" : why);
  }
  void close() {
    sqlite3_close(database_);
    database_ = nullptr;
  }
  std::vector<Trace> read() {
    close();
    auto traces = reader_named("nsys_sqlite")->read(path, {});
    REQUIRE_MESSAGE(traces, to_text(traces.error()));
    return *std::move(traces);
  }
  Error refused() {
    close();
    const auto traces = reader_named("nsys_sqlite")->read(path, {});
    REQUIRE_FALSE(traces);
    return traces.error();
  }

  void strings() { sql("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"); }
  void string(std::int64_t id, const std::string& value) {
    sql("INSERT INTO StringIds VALUES (" + std::to_string(id) + ", '" + value + "')");
  }
  // As nsys 2023.1 (schema 3.1): 27 columns of kernels, META_DATA_EXPORT under its old name.
  void old_schema() {
    strings();
    sql("CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);"
        "INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_PRODUCT_VERSION', '2023.1.2.43'),"
        " ('EXPORT_SCHEMA_VERSION', '3.1.2');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,"
        " correlationId INT, globalPid INT, demangledName INT, shortName INT, mangledName INT, launchType INT,"
        " cacheConfig INT, registersPerThread INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT,"
        " staticSharedMemory INT, dynamicSharedMemory INT, localMemoryPerThread INT, localMemoryTotal INT, gridId INT,"
        " sharedMemoryExecuted INT, graphNodeId INT, sharedMemoryLimitConfig INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT, globalTid INT,"
        " correlationId INT, nameId INT, returnValue INT, callchainId INT)");
  }
  void kernel(std::int64_t start, std::int64_t end, std::int64_t correlation, std::int64_t pid = 7,
              std::int64_t device = 0, std::int64_t name = 1) {
    sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid,"
        " demangledName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,"
        " dynamicSharedMemory) VALUES (" +
        std::to_string(start) + ", " + std::to_string(end) + ", " + std::to_string(device) + ", 1, 13, " +
        std::to_string(correlation) + ", " + std::to_string(global_id(pid)) + ", " + std::to_string(name) +
        ", 32, 4, 2, 1, 128, 1, 1, 1024, 512)");
  }
  void call(std::int64_t start, std::int64_t end, std::int64_t correlation, std::int64_t name, std::int64_t pid = 7) {
    sql("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(start) + ", " + std::to_string(end) +
        ", 0, " + std::to_string(global_id(pid, pid)) + ", " + std::to_string(correlation) + ", " +
        std::to_string(name) + ", 0, NULL)");
  }
  void nvtx_table() {
    sql("CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, rangeId INT, category INT, color INT, text TEXT,"
        " globalTid INT, endGlobalTid INT, textId INT, domainId INT, uint64Value INT, int64Value INT, doubleValue REAL,"
        " uint32Value INT, int32Value INT, floatValue REAL, jsonTextId INT, jsonText TEXT, binaryData TEXT)");
  }
  void range(std::int64_t start, const std::string& end, std::int64_t type, const std::string& text,
             std::int64_t domain = 0, const std::string& payload = "NULL") {
    sql("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, binaryData) VALUES (" +
        std::to_string(start) + ", " + end + ", " + std::to_string(type) + ", '" + text + "', " +
        std::to_string(global_id(7, 7)) + ", " + std::to_string(domain) + ", " + payload + ")");
  }

 private:
  sqlite3* database_ = nullptr;
};

inline const Issue* issue_of(const Trace& trace, std::string_view code) {
  for (const Issue& issue : trace.issues) {
    if (issue.code == code) return &issue;
  }
  return nullptr;
}

}  // namespace stepscope::read
