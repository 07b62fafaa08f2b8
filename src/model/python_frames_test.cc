#include "model/python_frames.h"

#include <doctest/doctest.h>

namespace stepscope {
namespace {

TEST_CASE("python frames: they are read as the profiler writes them") {
  PythonFrame frame = read_python_frame("torch/nn/modules/module.py(1501): _call_impl");
  CHECK(frame.file == "torch/nn/modules/module.py");
  CHECK(frame.line == 1501);
  CHECK(frame.function == "_call_impl");
  frame = read_python_frame("<built-in method item of Tensor object at 0x7f687b032e90>");
  CHECK(frame.file.empty());
  CHECK(frame.function == "item");
  CHECK(read_python_frame("<built-in function isinstance>").function == "isinstance");
  CHECK(read_python_frame("nn.Module: Linear_0").function == "nn.Module: Linear_0");
  CHECK(read_python_frame("odd(name").function == "odd(name");
}

}  // namespace
}  // namespace stepscope
