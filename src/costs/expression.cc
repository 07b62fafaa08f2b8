#include "costs/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace stepscope::costs {

struct Expression::Node {
  enum class What : std::uint8_t { number, size, product, rank, value, forward, unknown, call };
  enum class Pick : std::uint8_t { input, last, matrix, four };

  What what = What::number;
  long double number = 0;
  Pick pick = Pick::input;
  std::int64_t which = 0, place = 0;
  std::string_view function;  // of a call: an operator, or a name
  std::vector<Node> arguments;
};

namespace {

using Node = Expression::Node;
using What = Node::What;
using Pick = Node::Pick;
using Number = std::optional<long double>;

struct Function {
  std::string_view name;
  std::size_t arguments;
  Number (*apply)(const std::array<Number, 3>& given);
};

template <class Operation>
Number both(const std::array<Number, 3>& given, Operation operation) {
  return given[0] && given[1] ? Number(operation(*given[0], *given[1])) : std::nullopt;
}

constexpr std::array kFunctions{
    Function{"+", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a + b; }); }},
    Function{"-", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a - b; }); }},
    Function{"*", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a * b; }); }},
    Function{"/", 2,
             [](const auto& g) { return g[1] == 0.0L ? Number() : both(g, [](auto a, auto b) { return a / b; }); }},
    Function{"==", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a == b ? 1.0L : 0.0L; }); }},
    Function{"<", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a < b ? 1.0L : 0.0L; }); }},
    Function{">", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return a > b ? 1.0L : 0.0L; }); }},
    Function{"min", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return std::min(a, b); }); }},
    Function{"max", 2, [](const auto& g) { return both(g, [](auto a, auto b) { return std::max(a, b); }); }},
    Function{"if", 3, [](const auto& g) { return !g[0]        ? Number()
                                                 : *g[0] != 0 ? g[1]
                                                              : g[2]; }},
};

const Function* function_named(std::string_view name) {
  const auto found =
      std::find_if(kFunctions.begin(), kFunctions.end(), [&](const Function& f) { return f.name == name; });
  return found == kFunctions.end() ? nullptr : &*found;
}

Node call(std::string_view function, Node a, Node b) {
  Node node{.what = What::call, .function = function_named(function)->name};
  node.arguments.push_back(std::move(a));
  node.arguments.push_back(std::move(b));
  return node;
}

// ---- from text ----

constexpr int kDeepest = 64;
constexpr std::size_t kLongest = 4096;
constexpr std::string_view kBlank = " \t";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Node> whole() {
    Result<Node> node = comparison();
    if (node && peek() != '\0') return wrong("an operator or the end");
    return node;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view expected) {
    peek();
    const std::string found = at_ >= text_.size() ? "its end" : "'" + std::string(text_.substr(at_, 12)) + "'";
    return fail({ErrorKind::malformed,
                 "the formula has " + found + " at character " + std::to_string(at_ + 1) + " where " +
                     std::string(expected) + " should be",
                 "", std::nullopt, ""});
  }

  tl::unexpected<Error> wrong_at(std::size_t place, std::string_view expected) {
    at_ = place;
    return wrong(expected);
  }

  char peek() {
    at_ = std::min(text_.find_first_not_of(kBlank, at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string_view letters() {
    peek();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) at_++;
    return text_.substr(begin, at_ - begin);
  }
  template <class Value>
  bool number(Value& out) {
    peek();
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error != std::errc()) return false;
    at_ = static_cast<std::size_t>(end - text_.data());
    return true;
  }

  // One level of operators of the same strength, from left to right.
  template <std::size_t N, class Next>
  Result<Node> chain(const std::array<std::string_view, N>& operators, const Next& next) {
    Result<Node> left = next();
    while (left) {
      const auto* found = std::find_if(operators.begin(), operators.end(), [&](auto word) { return take(word); });
      if (found == operators.end()) return left;
      Result<Node> right = next();
      if (!right) return right;
      left = call(*found, *std::move(left), *std::move(right));
    }
    return left;
  }
  Result<Node> comparison() {
    return chain(std::array<std::string_view, 3>{"==", "<", ">"}, [&] { return sum(); });
  }
  Result<Node> sum() {
    return chain(std::array<std::string_view, 2>{"+", "-"}, [&] { return product(); });
  }
  Result<Node> product() {
    return chain(std::array<std::string_view, 2>{"*", "/"}, [&] { return primary(); });
  }

  Result<Node> primary() {
    if (++depth_ > kDeepest) return wrong("less nesting");
    Result<Node> node = unguarded();
    depth_--;
    return node;
  }
  Result<Node> unguarded() {
    Node node;
    if (take("(")) return closed(comparison());
    if (take("-")) {
      Result<Node> inner = primary();
      return inner ? Result<Node>(call("-", Node{}, *std::move(inner))) : inner;
    }
    if (is_digit(peek()) || peek() == '.') {
      double value = 0;
      if (!number(value)) return wrong("a number");
      node.number = value;
      return node;
    }
    const std::size_t before = at_;
    const std::string_view word = letters();
    if (word == "forward") return Node{.what = What::forward};
    if (word == "unknown") return Node{.what = What::unknown};
    if (word == "c" && number(node.which)) {
      node.what = What::value;
      return node;
    }
    if (word == "prod" || word == "rank") return of_input(word == "prod" ? What::product : What::rank);
    if (const Function* function = word.empty() ? nullptr : function_named(word)) return arguments(*function);
    at_ = before;
    node.what = What::size;
    if (!input(node))
      return wrong_at(before, "a number, d0, m0, f0, last, c0, prod(d0), min, max, if, forward or unknown");
    if (!take("[") || !number(node.place) || !take("]")) return wrong("a place, such as [0] or [-1],");
    return node;
  }
  Result<Node> closed(Result<Node> node) {
    if (node && !take(")")) return wrong("a )");
    return node;
  }
  Result<Node> of_input(What what) {
    Node node{.what = what};
    if (!take("(") || !input(node)) return wrong("an input in brackets, such as (d0),");
    return closed(node);
  }
  Result<Node> arguments(const Function& function) {
    Node node{.what = What::call, .function = function.name};
    for (std::size_t i = 0; i < function.arguments; i++) {
      if (!take(i == 0 ? "(" : ",")) return wrong(i == 0 ? "a (" : "a comma");
      Result<Node> one = comparison();
      if (!one) return one;
      node.arguments.push_back(*std::move(one));
    }
    return closed(std::move(node));
  }
  // d0, m1, f0, m[-1], last
  bool input(Node& node) {
    const std::string_view word = letters();
    if (word == "last") {
      node.pick = Pick::last;
      return true;
    }
    if (word != "d" && word != "m" && word != "f") return false;
    node.pick = word == "d" ? Pick::input : word == "m" ? Pick::matrix : Pick::four;
    return take("[") ? number(node.which) && take("]") : number(node.which) && node.which >= 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// ---- of inputs ----

const Sizes* nth(const std::vector<const Sizes*>& found, std::int64_t which) {
  const auto count = static_cast<std::int64_t>(found.size());
  if (which < 0) which += count;
  return which >= 0 && which < count ? found[static_cast<std::size_t>(which)] : nullptr;
}

const Sizes* picked(const Node& node, const Inputs& inputs) {
  if (node.pick == Pick::input) return node.which < 0 ? nullptr : inputs.tensor(static_cast<std::size_t>(node.which));
  std::vector<const Sizes*> found;
  for (std::size_t i = node.pick == Pick::matrix ? 1 : 0; i < inputs.shapes.size(); i++) {
    const Sizes* sizes = inputs.tensor(i);
    const std::size_t wanted = node.pick == Pick::matrix ? 2 : 4;
    if (sizes != nullptr && (node.pick == Pick::last || sizes->size() == wanted)) found.push_back(sizes);
  }
  return nth(found, node.pick == Pick::last ? -1 : node.which);
}

Number recorded(std::string_view value) {
  if (value == "True") return 1;
  if (value == "False") return 0;
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() ? Number(number) : std::nullopt;
}

Number of_sizes(const Node& node, const Sizes& sizes) {
  if (node.what == What::rank) return static_cast<long double>(sizes.size());
  if (node.what == What::product) {
    long double all = 1;
    for (const std::int64_t size : sizes) all *= static_cast<long double>(size);
    return all;
  }
  const auto count = static_cast<std::int64_t>(sizes.size());
  const std::int64_t place = node.place < 0 ? node.place + count : node.place;
  return place >= 0 && place < count ? Number(sizes[static_cast<std::size_t>(place)]) : std::nullopt;
}

Number evaluate(const Node& node, const Inputs& inputs, Number forward) {
  switch (node.what) {
    case What::number: return node.number;
    case What::forward: return forward;
    case What::unknown: return std::nullopt;
    case What::value: return node.which < 0 ? Number() : recorded(inputs.value(static_cast<std::size_t>(node.which)));
    case What::call: {
      std::array<Number, 3> given;
      for (std::size_t i = 0; i < node.arguments.size(); i++) given[i] = evaluate(node.arguments[i], inputs, forward);
      return function_named(node.function)->apply(given);
    }
    default: {
      const Sizes* sizes = picked(node, inputs);
      return sizes == nullptr ? std::nullopt : of_sizes(node, *sizes);
    }
  }
}

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  if (text.size() > kLongest) {
    return fail({ErrorKind::malformed, "the formula is longer than 4096 characters", "", std::nullopt, ""});
  }
  Result<Node> root = Parser(text).whole();
  if (!root) return fail(root.error());
  Expression out;
  out.root_ = std::make_shared<const Node>(*std::move(root));
  return out;
}

std::optional<std::int64_t> Expression::value(const Inputs& inputs, std::optional<std::int64_t> forward) const {
  constexpr long double kMost = 1152921504606846976.0L;  // 2^60, as of the built-in formulas
  const Number found = evaluate(*root_, inputs, forward ? Number(*forward) : std::nullopt);
  if (!found || !std::isfinite(*found) || *found < 0 || *found > kMost) return std::nullopt;
  return std::llround(*found);
}

}  // namespace stepscope::costs
