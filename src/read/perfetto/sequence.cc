#include "read/perfetto/sequence.h"

namespace stepscope::read::perfetto {
namespace {

bool add_entry(InternTable& table, std::string_view entry) {
  std::uint64_t number = 0;
  std::string_view text;
  ProtoFields fields(entry);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::interned::iid) number = field.value;
    if (field.number == wire::interned::text) text = field.bytes;
  }
  if (number != 0) table.add(number, text);
  return fields.ok();
}

}  // namespace

bool Sequence::learn(std::string_view interned_data) {
  ProtoFields fields(interned_data);
  bool ok = true;
  for (ProtoField field; fields.next(field);) {
    switch (field.number) {
      case wire::interned::names: ok &= add_entry(names, field.bytes); break;
      case wire::interned::categories: ok &= add_entry(categories, field.bytes); break;
      case wire::interned::annotations: ok &= add_entry(annotations, field.bytes); break;
      case wire::interned::texts: ok &= add_entry(texts, field.bytes); break;
      default: break;
    }
  }
  return ok && fields.ok();
}

bool Sequence::take_defaults(std::string_view message) {
  ProtoFields fields(message);
  for (ProtoField field; fields.next(field);) {
    if (field.number == wire::defaults::event) event_defaults = field.bytes;
    if (field.number == wire::defaults::clock) default_clock = field.value;
  }
  return fields.ok();
}

}  // namespace stepscope::read::perfetto
