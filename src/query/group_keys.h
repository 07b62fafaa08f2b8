// GroupKeys: rows → numbers of groups, by the values of any number of columns, over all traces.
//
// Each column gives a value a small number of its own (text once per trace and code, not once per row); the numbers of
// several columns are folded pair by pair. A group is decoded only when it is written out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/key_index.h"
#include "base/string_pool.h"
#include "query/scan.h"

namespace stepscope::query {

class GroupKeys {
 public:
  GroupKeys(TableReaders& readers, std::vector<std::size_t> columns);

  // The group of each selected row of the scan's block.
  void groups_of(const Scan& scan, std::vector<std::uint32_t>& out);
  std::size_t size() const { return columns_.empty() ? 1 : groups_; }
  // The value of the i-th column in a group.
  Value value(std::uint32_t group, std::size_t i) const;
  // Is the value of the last column null in a group?
  bool is_null(std::uint32_t group) const;

 private:
  struct KeyColumn {
    std::size_t column = 0;
    bool text = false;
    StringPool texts;
    KeyIndex numbers;
    std::vector<std::uint32_t> known;  // text: number of each code of the current trace
    KeyIndex pairs;                    // (number so far, number in this column)
  };
  void numbers_of(KeyColumn& key, const Scan& scan, std::vector<std::uint32_t>& out);
  void text_numbers(KeyColumn& key, const Scan& scan, std::vector<std::uint32_t>& out);

  TableReaders& readers_;
  std::vector<KeyColumn> columns_;
  std::size_t groups_ = 0;
  std::size_t trace_ = SIZE_MAX;
  std::vector<std::uint32_t> block_numbers_, block_codes_;
  std::vector<std::int64_t> block_values_;
};

}  // namespace stepscope::query
