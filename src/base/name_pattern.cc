#include "base/name_pattern.h"

#include "base/text_parts.h"

namespace stepscope {
namespace {

Result<NameTerm> wrong(std::string message, std::string hint) {
  return fail({ErrorKind::malformed, std::move(message), "", std::nullopt, std::move(hint)});
}

std::string listed(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); i++) {
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
  }
  return out;
}

Result<NameTerm> parse_term(std::string_view text, std::span<const std::string_view> own) {
  NameTerm term;
  if (text.starts_with("not ")) {
    term.negated = true;
    text = trimmed(text.substr(4));
  }
  if (text.starts_with('@')) {
    if (std::find(own.begin(), own.end(), text) == own.end()) {
      return wrong("unknown term '" + std::string(text) + "'",
                   own.empty() ? "leave out the @: names are looked for as they are" : "use " + listed(own));
    }
    term.how = NameTerm::How::own;
  } else if (text.starts_with('^')) {
    term.how = text.ends_with('$') ? NameTerm::How::equals : NameTerm::How::starts;
    text.remove_prefix(1);
    if (term.how == NameTerm::How::equals) text.remove_suffix(1);
  } else if (text.ends_with('$')) {
    term.how = NameTerm::How::ends;
    text.remove_suffix(1);
  }
  if (text.empty()) return wrong("an empty term in the pattern", "write text to look for on both sides of or and and");
  term.text = text;
  return term;
}

}  // namespace

Result<NamePattern> NamePattern::parse(std::string_view text, std::span<const std::string_view> own) {
  NamePattern pattern;
  for (const std::string_view alternative : split(text, " or ")) {
    std::vector<NameTerm>& terms = pattern.alternatives_.emplace_back();
    for (const std::string_view part : split(alternative, " and ")) {
      Result<NameTerm> term = parse_term(part, own);
      if (!term) return fail(term.error());
      terms.push_back(*std::move(term));
    }
  }
  return pattern;
}

bool NamePattern::found(const NameTerm& term, std::string_view name) {
  switch (term.how) {
    case NameTerm::How::contains: return name.find(term.text) != std::string_view::npos;
    case NameTerm::How::starts: return name.starts_with(term.text);
    case NameTerm::How::ends: return name.ends_with(term.text);
    case NameTerm::How::equals: return name == term.text;
    case NameTerm::How::own: break;
  }
  return false;
}

}  // namespace stepscope
