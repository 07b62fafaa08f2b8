// The models behind traffic.h, one function for each kind of operator; only traffic.cc includes this. Positions of
// inputs are those of the operators' schemas in torch 2.13 (native_functions.yaml).
#pragma once

#include <algorithm>
#include <string>

#include "costs/counts.h"
#include "costs/traffic.h"

namespace stepscope::costs::traffic {

inline Work work(Count flop, Count bytes) { return {flop, bytes}; }

// ---- element by element ----

// Elements of the output: operands of different sizes are stretched to the largest.
inline Count stretched(const Operands& of) {
  Sizes out;  // last size first
  for (std::size_t i = 0; i < of.in.shapes.size(); i++) {
    const Sizes& sizes = of.in.shapes[i].sizes;
    for (std::size_t place = 0; place < sizes.size(); place++) {
      if (place == out.size()) out.push_back(1);
      out[place] = std::max(out[place], sizes[sizes.size() - 1 - place]);
    }
  }
  return of.in.shapes.empty() ? Count() : product(out);
}

// The widest of the operands: what mixes float32 with bfloat16 gives float32. A mask decides where there is nothing
// else.
inline Count widest(const Operands& of) {
  Count most;
  for (std::size_t i = 0; i < of.in.shapes.size(); i++) {
    if (!of.in.shapes[i].sizes.empty() && of.element(i)) most = std::max(most.value_or(0), *of.element(i));
  }
  return most;
}

// `PerElement` operations for each element of the output.
template <int PerElement>
Work elementwise(const Operands& of) {
  const Count out = stretched(of);
  return work(times(PerElement, out), plus(of.bytes_of(0), of.in_place ? of.bytes(0) : times(out, widest(of))));
}

inline Work compare(const Operands& of) {  // gives truths
  const Count out = stretched(of);
  return work(out, plus(of.bytes_of(0), times(out, 1)));
}

inline Work write(const Operands& of) { return work(0, of.bytes(0)); }

inline Work dropout(const Operands& of) {  // gives a mask too
  const Count out = of.elements(0);
  return work(times(2, out), plus(times(2, of.bytes(0)), out));
}

inline Work copy(const Operands& of) { return work(0, plus(of.bytes(0), of.bytes(1))); }
inline Work rearrange(const Operands& of) { return work(0, times(2, of.bytes(0))); }

// ---- over sizes ----

// The elements that are left when the sizes named by input `Dims` are summed up; all are where it names none.
template <std::size_t Dims>
Count reduced(const Operands& of) {
  const Sizes* sizes = of.in.tensor(0);
  if (sizes == nullptr) return 1;
  const auto dims = parse_sizes(of.in.value(Dims));
  if (!dims || dims->empty()) return 1;
  Sizes left = *sizes;
  const auto rank = static_cast<std::int64_t>(left.size());
  for (const std::int64_t dim : *dims) {
    const std::int64_t at = dim < 0 ? dim + rank : dim;
    if (at >= 0 && at < rank) left[static_cast<std::size_t>(at)] = 1;
  }
  return product(left);
}

// `PerElement` operations for each element of the input.
template <int PerElement, std::size_t Dims>
Work reduce(const Operands& of) {
  return work(times(PerElement, of.elements(0)), plus(of.bytes_of(0), times(reduced<Dims>(of), of.element(0))));
}

template <int PerElement>
Work scan(const Operands& of) {  // running sums, softmax: as much out as in
  return work(times(PerElement, of.elements(0)), times(2, of.bytes(0)));
}
template <int PerElement>
Work scan_backward(const Operands& of) {  // from the gradient and the output
  return work(times(PerElement, of.elements(0)), plus(plus(of.bytes(0), of.bytes(1)), of.bytes(0)));
}

template <int PerElement>
Work normalize(const Operands& of) {
  return work(times(PerElement, of.elements(0)), plus(of.bytes_of(0), of.bytes(0)));
}
// Gives the gradient of the data, which is input `Data`; those of weight and bias are small beside it.
template <int PerElement, std::size_t Data>
Work normalize_backward(const Operands& of) {
  return work(times(PerElement, of.elements(Data)), plus(of.bytes_of(0), of.bytes(Data)));
}

// ---- tables and places ----

inline Count rows_of(const Operands& of, std::size_t table, std::size_t numbers) {  // elements looked up
  const Sizes* sizes = of.in.tensor(table);
  return sizes == nullptr ? std::nullopt : times(of.elements(numbers), last(*sizes));
}

inline Work embedding(const Operands& of) {
  const Count rows = times(rows_of(of, 0, 1), of.element(0));
  return work(0, plus(of.bytes(1), times(2, rows)));
}

inline Work embedding_backward(const Operands& of) {  // a gradient of the whole table, most of it zeros
  const Sizes* gradient = of.in.tensor(0);
  const auto words = parse_sizes("[" + std::string(of.in.value(2)) + "]");
  if (gradient == nullptr || !words || words->size() != 1) return {};
  const Count table = times(times(words->front(), last(*gradient)), of.element(0));
  return work(of.elements(0), plus(plus(of.bytes(0), of.bytes(1)), table));
}

inline Work select(const Operands& of) {  // rows of a table by numbers, along a dimension
  const Sizes* sizes = of.in.tensor(0);
  const auto dim = parse_sizes("[" + std::string(of.in.value(1)) + "]");
  if (sizes == nullptr || !dim || dim->size() != 1) return {};
  const auto at = static_cast<std::size_t>(dim->front() < 0 ? dim->front() + static_cast<std::int64_t>(sizes->size())
                                                            : dim->front());
  const Count whole = product(*sizes);
  if (at >= sizes->size() || !whole || (*sizes)[at] <= 0) return {};
  const Count rows = times(*whole / (*sizes)[at], of.elements(2));
  return work(0, plus(of.bytes(2), times(2, times(rows, of.element(0)))));
}

inline Work gather(const Operands& of) {
  return work(0, plus(of.bytes(2), times(2, times(of.elements(2), of.element(0)))));
}

// Each place takes an element of the source: it is written, and read before where it is added to.
template <int Touches>
Work scatter(const Operands& of) {
  const Count touched = times(Touches, times(of.elements(2), of.element(0)));
  const Count whole = of.in_place ? Count(0) : times(2, of.bytes(0));  // out of place the rest is copied
  return work(Touches > 2 ? of.elements(2) : Count(0), plus(plus(of.bytes(2), touched), whole));
}

// Rows of a source into rows of the first operand, by numbers.
template <int Touches>
Work scatter_rows(const Operands& of) {
  const Count whole = of.in_place ? Count(0) : times(2, of.bytes(0));
  return work(Touches > 2 ? of.elements(3) : Count(0), plus(plus(of.bytes(2), times(Touches, of.bytes(3))), whole));
}

inline Work sort(const Operands& of) {  // the values in order, and where they were
  return work(0, plus(times(2, of.bytes(0)), times(8, of.elements(0))));
}

inline Work top(const Operands& of) {
  const Sizes* sizes = of.in.tensor(0);
  const auto wanted = parse_sizes("[" + std::string(of.in.value(1)) + "]");
  const auto element = of.element(0);
  if (sizes == nullptr || !wanted || wanted->size() != 1 || !element || sizes->back() <= 0) return {};
  const Count whole = product(*sizes);
  const Count kept = whole ? times(*whole / sizes->back(), wanted->front()) : std::nullopt;  // mostly along the last
  return work(0, plus(of.bytes(0), times(kept, *element + 8)));
}

inline Work nll(const Operands& of) {  // one value of each row
  return work(of.elements(1), plus(of.bytes(1), times(of.elements(1), of.element(0))));
}
inline Work nll_backward(const Operands& of) { return work(of.elements(2), plus(of.bytes(1), of.bytes(2))); }

// ---- windows ----

inline Count channels(const Sizes& sizes, std::size_t sides) {
  return sizes.size() < sides ? std::nullopt : product(std::span(sizes).first(sizes.size() - sides));
}

template <std::size_t Dilation, bool Numbers>  // Dilation 0: it has none
Work pool(const Operands& of) {
  const Sizes* sizes = of.in.tensor(0);
  const auto kernel = parse_sizes(of.in.value(1)), padding = parse_sizes(of.in.value(3));
  auto stride = parse_sizes(of.in.value(2));
  const auto dilation = Dilation == 0 ? Sizes{1} : parse_sizes(of.in.value(Dilation));
  if (stride && stride->empty()) stride = kernel;
  if (sizes == nullptr || sizes->size() < 3 || !kernel || !stride || !padding || !dilation) return {};
  const std::size_t sides = kernel->size();
  if (sides == 0 || sides >= sizes->size()) return {};
  const Count out = times(channels(*sizes, sides),
                          window_positions(std::span(*sizes).last(sides), {*kernel, *stride, *padding, *dilation}));
  return work(times(out, product(*kernel)),
              plus(of.bytes(0), plus(times(out, of.element(0)), Numbers ? times(8, out) : Count(0))));
}

inline Work resize(const Operands& of) {  // to the sides in the second input
  const Sizes* sizes = of.in.tensor(0);
  const auto sides = parse_sizes(of.in.value(1));
  if (sizes == nullptr || !sides || sides->empty()) return {};
  const Count out = times(channels(*sizes, sides->size()), product(*sides));
  return work(std::max(out, of.elements(0)), plus(of.bytes(0), times(out, of.element(0))));
}

template <std::size_t Data>
Work pool_backward(const Operands& of) {
  return work(of.elements(Data), plus(of.bytes_of(0), of.bytes(Data)));
}

// ---- lists of parameters ----

inline Count bytes_of_lists(const Operands& of, std::size_t lists) {
  Count sum = 0;
  for (std::size_t i = 0; i < lists && i < of.in.shapes.size(); i++) {
    if (!of.in.shapes[i].list.empty()) sum = plus(sum, of.bytes(i));
  }
  return sum;
}

// The first `Lists` inputs are read, and written but for the gradients, which are the second.
template <int PerElement, std::size_t Lists>
Work update(const Operands& of) {
  const Count all = bytes_of_lists(of, Lists), gradients = of.bytes(1);
  const Count twice = times(2, all);
  return work(times(PerElement, of.elements(0)), twice && gradients ? Count(*twice - *gradients) : std::nullopt);
}

inline Work each(const Operands& of) {  // _foreach_add, _foreach_add_
  return work(of.elements(0), plus(bytes_of_lists(of, 3), of.bytes(0)));
}
inline Work each_copy(const Operands& of) { return work(0, plus(of.bytes(0), of.bytes(1))); }
inline Work each_norm(const Operands& of) { return work(times(2, of.elements(0)), of.bytes(0)); }
inline Work concatenate(const Operands& of) { return work(0, times(2, of.bytes(0))); }

// ---- products: bytes alone ----

inline Work moved(Count bytes) { return {std::nullopt, bytes}; }

// a of (…, m, k) with b of (…, k, n), the first `Inputs` inputs read.
template <std::size_t A, std::size_t B, std::size_t Inputs>
Work matrices(const Operands& of) {
  const Sizes *a = of.in.tensor(A), *b = of.in.tensor(B);
  if (a == nullptr || b == nullptr || a->empty()) return {};
  const Count out = times(product(std::span(*a).first(a->size() - 1)), last(*b));
  return moved(plus(of.bytes_of(0, Inputs), times(out, of.element(A))));
}

// The same with an output whose elements have a size of their own: 8-bit operands give 16 bits or more.
template <std::size_t Inputs, int OutputBytes>
Work matrices_into(const Operands& of) {
  const Sizes *a = of.in.tensor(0), *b = of.in.tensor(1);
  if (a == nullptr || b == nullptr || a->empty()) return {};
  const Count out = times(product(std::span(*a).first(a->size() - 1)), last(*b));
  return moved(plus(of.bytes_of(0, Inputs), times(out, OutputBytes)));
}

template <std::size_t A, std::size_t B>  // b of (n, k), as layers keep their weights
Work weight_product(const Operands& of) {
  const Sizes *a = of.in.tensor(A), *b = of.in.tensor(B);
  if (a == nullptr || b == nullptr || b->size() != 2) return {};
  const Count out = times(product(std::span(*a).first(a->size() - 1)), b->front());
  return moved(plus(of.bytes_of(0, 3), times(out, of.element(A))));
}

template <std::size_t Inputs>
Work vector_product(const Operands& of) {  // what comes out is small beside what goes in
  return moved(of.bytes_of(0, Inputs));
}

template <std::size_t A, std::size_t B>
Work outer(const Operands& of) {
  return moved(plus(of.bytes_of(0), times(times(of.elements(A), of.elements(B)), of.element(A))));
}

template <std::size_t Stride, std::size_t Padding, std::size_t Dilation>
Work direct_convolution(const Operands& of) {
  const Sizes *x = of.in.tensor(0), *w = of.in.tensor(1);
  const auto stride = parse_sizes(of.in.value(Stride)), padding = parse_sizes(of.in.value(Padding)),
             dilation = parse_sizes(of.in.value(Dilation));
  if (x == nullptr || w == nullptr || w->size() < 3 || x->size() != w->size() || !stride || !padding || !dilation)
    return {};
  const Count positions =
      window_positions(std::span(*x).subspan(2), {std::span(*w).subspan(2), *stride, *padding, *dilation});
  const Count out = times(times(x->front(), w->front()), positions);
  return moved(plus(of.bytes_of(0, 3), times(out, of.element(0))));
}

// Sides of the output of a transposed one: each place of the input is spread over the kernel.
inline Count spread_positions(const Operands& of, const Sizes& x, const Sizes& w) {
  const auto stride = parse_sizes(of.in.value(3)), padding = parse_sizes(of.in.value(4)),
             dilation = parse_sizes(of.in.value(5)), more = parse_sizes(of.in.value(7));
  if (!stride || !padding || !dilation || !more) return std::nullopt;
  const auto at = [](const Sizes& list, std::size_t side) {
    return list.empty() ? std::int64_t{0} : list.size() == 1 ? list[0] : list[std::min(side, list.size() - 1)];
  };
  Count positions = 1;
  for (std::size_t side = 0; side + 2 < x.size(); side++) {
    const Count far = plus(times(x[2 + side] - 1, at(*stride, side)), times(at(*dilation, side), w[2 + side] - 1));
    const Count size = plus(far, plus(1, at(*more, side)));
    const Count cut = times(2, at(*padding, side));
    positions = size && cut && *size > *cut ? times(positions, *size - *cut) : std::nullopt;
  }
  return positions;
}

inline Work convolution(const Operands& of) {
  const Sizes *x = of.in.tensor(0), *w = of.in.tensor(1);
  const auto transposed = parse_truths(of.in.value(6));
  const auto groups = parse_sizes("[" + std::string(of.in.value(8)) + "]");
  if (x == nullptr || w == nullptr || w->size() < 3 || x->size() != w->size() || !transposed) return {};
  if (!transposed->front()) return direct_convolution<3, 4, 5>(of);
  if (!groups || groups->size() != 1) return {};
  const Count out = times(times(x->front(), times((*w)[1], groups->front())), spread_positions(of, *x, *w));
  return moved(plus(of.bytes_of(0, 3), times(out, of.element(0))));
}

// The gradient of the output with the weight gives that of the data, with the data that of the weight: what is wanted.
inline Work convolution_backward(const Operands& of) {
  const auto mask = parse_truths(of.in.value(10));
  if (!mask || mask->size() < 2) return {};
  Count bytes = of.bytes(0);
  if ((*mask)[0]) bytes = plus(bytes, plus(of.bytes(2), of.bytes(1)));
  if ((*mask)[1]) bytes = plus(bytes, plus(of.bytes(1), of.bytes(2)));
  return moved(bytes);
}

// Scores stay in the kernel: queries, keys, values, a mask where there is one, and the output.
inline Work attention(const Operands& of) {
  const Sizes *q = of.in.tensor(0), *v = of.in.tensor(2);
  if (q == nullptr || v == nullptr || q->empty()) return {};
  const Count out = times(product(std::span(*q).first(q->size() - 1)), last(*v));
  return moved(plus(of.bytes_of(0), times(out, of.element(0))));
}
inline Work attention_backward(const Operands& of) {
  return moved(plus(of.bytes_of(0), plus(of.bytes(1), plus(of.bytes(2), of.bytes(3)))));
}

inline Work recurrent(const Operands& of) {  // weights once, whatever the number of steps; as much out as in
  return moved(plus(of.bytes_of(0), of.bytes(0)));
}

}  // namespace stepscope::costs::traffic
