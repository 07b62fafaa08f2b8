#include "serve/scene.h"
#include "serve/scene_parts.h"
#include "serve/slice_links.h"
#include "serve/trace_file.h"
#include "session/session.h"

namespace stepscope::serve {
namespace {

using report::JsonWriter;
constexpr std::size_t kMostLinks = 200;

}  // namespace

Result<std::string> Scene::trace_file(std::size_t rank) const {
  if (rank >= pyramids_.size()) {
    return fail({ErrorKind::not_found, "there is no such rank", "", std::nullopt, "Reload the page"});
  }
  if (rank >= predicted_from_) {
    return fail({ErrorKind::unsupported, "a prediction has no file", "", std::nullopt,
                 "Write one: stepscope what-if PATH … --trace FILE"});
  }
  return serve::trace_file(pyramid(rank).trace());
}

Result<std::string> Scene::slice_json(std::size_t rank, std::uint32_t number) const {
  if (rank >= pyramids_.size() || number >= pyramid(rank).trace().slices.size()) {
    return fail(
        {ErrorKind::not_found, "there is no such slice", "", std::nullopt, "Reload the page: the run was opened anew"});
  }
  const Trace& trace = pyramid(rank).trace();
  const auto slice = static_cast<SliceId>(number);
  JsonWriter json;
  const auto place = [&](std::size_t of, SliceId which, std::string_view name) {
    const timeline::Pyramid& one = pyramid(of);
    std::size_t lane = 0;
    std::uint32_t row = 0;
    const bool drawn = one.place_of(which, lane, row);
    const std::int64_t start = one.trace().slices.start_ns[which];
    json.key("rank").number(of).key("slice").number(static_cast<std::uint32_t>(which));
    json.key("name").text(name);
    json.key("start").number(after_origin(of, start));
    json.key("duration").number(length(of, start, one.trace().slices.dur_ns[which]));
    json.key("class").number(static_cast<unsigned>(one.kind_of(which)));
    if (drawn) json.key("lane").number(first_lane_[of] + lane).key("row").number(row);
  };
  json.begin_object();
  place(rank, slice, trace.name(slice));
  const CategoryId category = trace.slices.category[slice];
  json.key("category")
      .text(category == CategoryId::none ? std::string_view()
                                         : trace.strings[trace.categories[static_cast<std::size_t>(category)].name]);
  const Result<std::string> text = session::slice_text(trace, slice);
  json.key("args");
  if (text) {
    json.text(*text);
  } else {
    json.null().key("args_error").text(text.error().message);
  }
  json.key("parents").begin_array(kLine);
  std::vector<std::string_view> parents;
  for (SliceId above = trace.slices.parent[slice]; above != SliceId::none && parents.size() < 1024;
       above = trace.slices.parent[above]) {
    parents.push_back(trace.name(above));
  }
  for (auto name = parents.rbegin(); name != parents.rend(); ++name) json.text(cut(*name));
  json.end_array().key("step");
  const StepId step = trace.step_at(trace.slices.start_ns[slice]);
  if (step != StepId::none) {
    const Step& one = trace.steps[static_cast<std::size_t>(step)];
    json.text(one.number == kAbsent ? one.name : std::to_string(one.number));
  } else {
    json.null();
  }
  json.key("links").begin_array();
  const Links links = links_of(run_, rank, slice, kMostLinks);
  for (const LinkedSlice& link : links.found) {
    if (link.rank >= pyramids_.size()) continue;  // only slices that are drawn can be gone to
    json.begin_object(kLine).key("kind").text(to_string(link.kind));
    place(link.rank, link.slice, cut(pyramid(link.rank).trace().name(link.slice)));
    json.end_object();
  }
  json.end_array().key("links_total").number(links.total);
  const CodeStack stack = stack_of(trace, slice);
  json.key("stack").begin_object();
  json.key("of").text(stack.of == SliceId::none ? std::string_view() : trace.name(stack.of));
  json.key("own").boolean(stack.of == slice).key("frames").begin_array();
  for (const std::string_view frame : stack.frames) json.text(cut(frame));
  json.end_array().end_object().end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::serve
