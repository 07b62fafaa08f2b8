// Trace: everything that one input file (one rank) says, as typed columns. Run: the traces that were opened together.
//
// Rows are events in file order; tables are structs of arrays; strings are ids of the trace's pool. `read` fills the
// tables ("exactly what the file says"), `derive` fills the parts marked derived, after that a Trace is const and may
// be read from many threads. Times are int64 nanoseconds on the file's own clock; `absent` marks what the file left
// out. The cost of every stored column is given in bytes per row: at 10^7 rows it is felt.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/column.h"
#include "base/string_pool.h"
#include "model/issue.h"
#include "model/matches.h"
#include "model/memory_state.h"
#include "model/memory_timeline.h"
#include "model/telemetry.h"

namespace stepscope {

enum class SliceId : std::uint32_t { none = 0xffffffff };
enum class TrackId : std::uint32_t { none = 0xffffffff };
enum class CategoryId : std::uint16_t { none = 0xffff };
enum class StepId : std::uint32_t { none = 0xffffffff };

inline constexpr std::int64_t kAbsent = NarrowColumn::absent;

// What a slice is, from its category. Everything that only the category decides is decided once, here.
enum class SliceKind : std::uint8_t {
  cpu_op,               // an operator on a host thread
  user_annotation,      // record_function and ProfilerStep ranges on a host thread
  python_function,      // a Python frame
  runtime,              // a call of the CUDA/HIP/MTIA runtime or driver
  kernel,               // device work: a kernel
  memcpy,               // device work: a copy
  memset,               // device work: a fill
  sync,                 // a wait on a device lane (Stream Wait Event, Context Sync …): never work
  gpu_user_annotation,  // an annotation mirrored onto a device lane: never work
  profiler_range,       // a CUPTI counter range
  trace_window,         // the recording itself (category "Trace")
  overhead,             // the profiler's own cost
  other,
};

std::string_view to_string(SliceKind kind);
SliceKind slice_kind(std::string_view category);

constexpr bool is_device_work(SliceKind kind) {
  return kind == SliceKind::kernel || kind == SliceKind::memcpy || kind == SliceKind::memset;
}

struct Category {
  StringId name = StringId::none;
  SliceKind kind = SliceKind::other;
};

// One lane of slices. `process` and `thread` are as the file spells them (numbers or text).
struct Track {
  StringId process = StringId::none;
  StringId thread = StringId::none;
  StringId process_name = StringId::none;  // metadata, where given
  StringId thread_name = StringId::none;
  std::int64_t sort_index = kAbsent;
  bool device = false;  // holds device work, device syncs or mirrored annotations
};

// Things that last. 26 bytes a row as read, +9 derived.
struct Slices {
  Column<std::int64_t> start_ns;
  NarrowColumn dur_ns;  // never negative after reading
  Column<StringId> name;
  Column<TrackId> track;
  Column<CategoryId> category;
  Column<std::uint32_t> place;  // byte offset of the event's text, from the start of its block; see Source::blocks
  // derived (call tree): the slice that encloses this one on its track, and how many do
  Column<SliceId> parent;
  Column<std::uint16_t> depth;
  Column<std::uint8_t> phase;  // derived: a Phase

  std::size_t size() const { return start_ns.size(); }
  std::int64_t end_ns(SliceId id) const { return start_ns[id] + dur_ns[id]; }
};

// Operators and annotations that carry profiler ids. 8 to 40 bytes a row. Sorted by slice.
struct Ops {
  Column<SliceId> slice;
  NarrowColumn external_id;
  NarrowColumn record_function_id;
  NarrowColumn sequence;                // autograd sequence number
  NarrowColumn fwd_thread;              // thread id that ran the forward op; 0 in forward ops
  OptionalColumn<StringId> input_dims;  // the raw JSON text, such as [[8,64],[64]]
  OptionalColumn<StringId> input_types;
  // The raw JSON text, a text for each input, empty for tensors: ["","[1, 1]","False"]
  OptionalColumn<StringId> concrete_inputs;
  OptionalColumn<StringId> call_stack;  // "file(line): function;…", where recorded
  NarrowColumn stream;                  // only ops of Triton say on which stream they launch

  std::size_t size() const { return slice.size(); }
};

// Runtime and driver calls that carry a correlation id. 12 bytes a row. Sorted by slice.
struct Launches {
  Column<SliceId> slice;
  NarrowColumn correlation;
  NarrowColumn external_id;

  std::size_t size() const { return slice.size(); }
};

// What ran on a device: kernels, copies, fills and device-side waits. Sorted by slice.
struct DeviceRows {
  Column<SliceId> slice;
  NarrowColumn correlation;
  NarrowColumn external_id;
  Column<std::int32_t> device;  // -1: not given
  NarrowColumn stream;
  Column<std::uint32_t> grid[3];  // 0: not given
  Column<std::uint32_t> block[3];
  Column<std::uint32_t> registers;  // per thread; kNoCount: not given
  Column<std::uint32_t> shared_bytes;
  Column<float> blocks_per_sm;  // NaN: not given
  Column<float> warps_per_sm;
  Column<float> occupancy_percent;  // estimated by the profiler
  NarrowColumn bytes;               // copies and fills
  NarrowColumn wait_stream;         // sync rows: the stream waited for
  NarrowColumn wait_correlation;    // sync rows: correlation of the cudaEventRecord waited for
  // derived
  Column<SliceId> launch;             // the call that launched it; none: not in the trace
  Column<SliceId> op;                 // the innermost op or annotation around the launch; none: unknown
  Column<std::uint8_t> device_class;  // a DeviceClass
  Column<std::uint16_t> rule;         // index into Trace::class_rules of the rule that decided the class and family
  Column<StepId> step;                // step of the launch call, of the start without one; none: outside all steps
  Column<std::uint8_t> phase;         // a Phase: that of the launching op

  static constexpr std::uint32_t kNoCount = 0xffffffff;
  std::size_t size() const { return slice.size(); }
};

// Speeds of copies and fills as the profiler computed them, from a duration finer than the one it wrote. 12 bytes a
// row. Sorted by slice.
struct CopySpeeds {
  Column<SliceId> slice;
  Column<double> gb_per_s;

  std::size_t size() const { return slice.size(); }
};

// Metadata of communication calls (record_param_comms and NCCL kernels). Sorted by slice.
struct Collectives {
  Column<SliceId> slice;
  Column<StringId> kind;  // "allreduce", "_allgather_base" … as recorded
  Column<StringId> dtype;
  NarrowColumn in_elements;
  NarrowColumn out_elements;
  NarrowColumn group_size;
  Column<StringId> group_name;
  Column<StringId> group_ranks;       // raw JSON text or as recorded
  NarrowColumn sequence;              // of the collective in its group, where recorded
  NarrowColumn peer;                  // send and receive: the other rank, numbered as ranks are
  OptionalColumn<StringId> in_split;  // all-to-all-v: elements to each rank, raw JSON text
  OptionalColumn<StringId> out_split;

  std::size_t size() const { return slice.size(); }
};

// Allocator events ([memory] instants). Bytes are signed: negative frees.
struct MemoryEvents {
  Column<std::int64_t> time_ns;
  Column<TrackId> track;
  NarrowColumn bytes;
  Column<std::int64_t> address;
  NarrowColumn total_allocated;
  NarrowColumn total_reserved;
  Column<std::int16_t> device_type;  // as torch's c10::DeviceType: 0 CPU, 1 CUDA …; -1: not given
  Column<std::int16_t> device_index;

  std::size_t size() const { return time_ns.size(); }
};

// Arrows between tracks. `phase` is 's', 't' or 'f'.
struct Flows {
  Column<std::int64_t> time_ns;
  NarrowColumn id;  // numeric ids; text ids are the pool's id + 2^40
  Column<TrackId> track;
  Column<CategoryId> category;
  Column<char> phase;

  std::size_t size() const { return time_ns.size(); }
};

struct Instants {
  Column<std::int64_t> time_ns;
  Column<StringId> name;
  Column<TrackId> track;
  Column<CategoryId> category;
  Column<std::uint32_t> place;

  std::size_t size() const { return time_ns.size(); }
};

// One row per value of a counter event ("C"): the event's name, the value's key. Also one per metric of a CUPTI
// profiler range: the range's name, start and track, the metric as key.
struct Counters {
  Column<std::int64_t> time_ns;
  Column<StringId> name;
  Column<StringId> key;
  Column<TrackId> track;
  Column<double> value;

  std::size_t size() const { return time_ns.size(); }
};

// What a node of an execution graph stands for.
enum class NodeKind : std::uint8_t {
  host,      // an operator or call on a host thread
  process,   // the root of an execution trace
  thread,    // the root of a thread
  metadata,  // says something of the run (process groups)
  compute,   // device work
  memory,    // a load or store
  send,
  receive,
  collective,
};
inline constexpr std::size_t kNodeKinds = 9;
std::string_view to_string(NodeKind kind);

// Nodes of an execution trace or Chakra file: what depends on what, mostly without times. In file order, about 50 bytes
// a row. Values of inputs and outputs are not stored: the node's text is reached by its place.
struct GraphNodes {
  NarrowColumn id;  // as the file gives it; unique
  Column<StringId> name;
  Column<NodeKind> kind;
  NarrowColumn parent;  // id of the calling node; absent: a root
  NarrowColumn start_ns, dur_ns;
  NarrowColumn record_function_id, sequence;
  NarrowColumn thread, fwd_thread;
  NarrowColumn stream;
  OptionalColumn<StringId> input_dims;  // raw JSON text, as in Ops
  OptionalColumn<StringId> input_types;
  OptionalColumn<StringId> collective;  // kind of collective, as recorded
  OptionalColumn<StringId> group_name;  // its process group
  NarrowColumn comm_bytes;
  Column<std::uint64_t> place;  // byte offset of the node in the uncompressed file
  // what the node waits for, beside its caller: depends_on[dependency_begin[row] .. dependency_begin[row + 1])
  Column<std::uint32_t> dependency_begin;  // one more than nodes, or empty
  NarrowColumn depends_on;                 // ids of nodes

  std::size_t size() const { return name.size(); }
};

// From deviceProperties. 0 or empty: not given.
struct DeviceInfo {
  std::int64_t id = -1;
  std::string name;
  std::int64_t sm_count = 0;
  std::int64_t max_threads_per_sm = 0;
  std::int64_t warp_size = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t compute_major = 0, compute_minor = 0;
};

struct Metadata {
  std::string key;
  std::string json;  // the value as the file writes it
};

// A run of slices whose `place` counts from the same byte; by first slice, ascending.
struct PlaceBlock {
  std::uint32_t first_slice;
  std::uint32_t first_instant;
  std::uint64_t offset;    // in the uncompressed text
  std::uint32_t part = 0;  // index into Source::parts
};

struct Source {
  std::string path;
  std::string format;  // reader name, such as "chrome_trace"
  std::string writer;  // who wrote it, as far as the file says: "kineto", "chrome" …
  bool compressed = false;
  bool cached = false;  // came from the cache, not from the file itself
  std::uint64_t file_bytes = 0;
  std::uint64_t text_bytes = 0;  // uncompressed
  std::uint64_t events = 0;      // events in the file, metadata included
  std::vector<PlaceBlock> blocks;
  std::vector<std::string> parts;  // paths of the files of a recording in parts; empty: `path` alone
};

enum class RankSource : std::uint8_t { distributed_info, file_name, order, communicator };
std::string_view to_string(RankSource source);

struct RankInfo {
  std::int64_t rank = 0;
  std::int64_t world_size = 0;  // 0: unknown
  RankSource source = RankSource::order;
  std::string backend;
};

// From distributedInfo's pg_config.
struct ProcessGroup {
  std::string name, description, backend;
  std::int64_t size = 0;            // 0: unknown
  std::vector<std::int64_t> ranks;  // may be cut by the writer
};

// What the program says of a module of its model.
struct ModuleSize {
  std::string path;
  std::int64_t parameters = 0;  // of its own, each parameter at the first module that has it; 0 is none
  std::int64_t unread = 0;      // of these, such as get a gradient and no optimizer has
  std::int64_t learned = 0;     // of all that it has, those that optimizers have; both 0: not known, or neither
  std::uint8_t beside = 0;      // 1: of a model that the optimizer of the steps does not train; the path begins with it
};

// What the program says that it held of a device's memory when the recording began.
struct HeldBefore {
  std::string device;    // "cuda:0", "cpu"
  std::string category;  // as to_string(MemoryCategory) has it
  std::string module;    // path; empty: of none
  std::int64_t bytes = 0;
};

// A call as the program's own source has it: in the function that begins at `function_line` of `file`, at `line`. Each
// of its files has a row that calls nothing.
struct CodeCall {
  std::string file;  // as Python frames are recorded: "train.py"
  std::int64_t function_line = 0;
  // "item", "forward"; of a function itself "def forward"; of a loop "__next__" and, with its last line, "(turns) 31";
  // where turns need the one before "(carries) 31"; of a function that sets what stays "(keeps)", of one that gives
  // the same whenever it is called "(constant)", or called with the same "(same)", and where only others change that,
  // "(constant) unless add clear"; of a call that retains the graph also "backward(retain_graph)"; of one whose result
  // is not used also "(drops) log"; of an operator of Python's "(symbol) @"; of one that a loop calls on
  // each of its items also "(each) save"; of a model "(calls) GPT"; of what asks for it "(float64)", "(all float64)";
  // of num_workers "(workers)"; of the second of three calls of a module, which was given the same before, "(again) 2 3
  // encoder"; of a look-up of which 43.7 % only fill up rows, 12 % of all for no row at all, "(padded) 437 120 words";
  // of 16 rows of 900 frames that a module is given "(frames) 437 120 16 900 encoder"; of a loss that takes nothing of
  // 85 % of the places "(ignored) 850"; of the first of two backward passes in a step whose gradients of a module
  // nobody reads "(thrown) 1 2 encoder"; empty: nothing.
  std::string called;
  std::int64_t line = 0;
};

enum class Phase : std::uint8_t {
  other,
  dataloader,
  forward,
  backward,
  optimizer,
  zero_grad,
  communication,
  evaluation,
  checkpoint,
};
inline constexpr std::size_t kPhases = 9;
std::string_view to_string(Phase phase);

enum class DeviceClass : std::uint8_t { unclassified, compute, communication, memory_copy, memory_set };
inline constexpr std::size_t kDeviceClasses = 5;
std::string_view to_string(DeviceClass device_class);

// One line of the rule table that classified device work; index 0 means "no rule matched".
struct ClassRule {
  std::string name;     // stable id of the rule
  std::string pattern;  // what it looks for
  std::string family;   // op family: "GEMM", "attention" …
  DeviceClass device_class = DeviceClass::unclassified;
  std::string why;  // one sentence
};

// A step of the program on this rank. `end_ns` of the host part; `device_end_ns` >= end_ns where its work ran longer.
struct Step {
  std::string name;
  std::int64_t number = kAbsent;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t device_end_ns = 0;
  TrackId track = TrackId::none;
  bool partial = false;  // cut by the edge of the recording
};

// A module call (nn.Module range) on a host thread.
struct ModuleCall {
  SliceId slice = SliceId::none;
  StringId name = StringId::none;
  StringId type = StringId::none;  // its class, where recorded
};

// forward op → backward op, by autograd sequence number or fwdbwd flow.
struct Backward {
  SliceId forward = SliceId::none;
  SliceId backward = SliceId::none;
};

// Filled by derive; how well things could be linked, for the quality answer.
struct LinkCounts {
  std::uint64_t device_linked = 0;          // device work with its launch, by correlation or flow
  std::uint64_t device_linked_by_flow = 0;  // of these, only by a flow
  std::uint64_t device_unlinked = 0;        // device work whose launch is not in the trace
  std::uint64_t launches_with_work = 0;
  std::uint64_t launches_dropped = 0;  // launch calls (kernel, graph, copy, fill) without any device work
  std::uint64_t partial_overlaps = 0;  // slices that overlap their neighbour without nesting; kept
};

struct CudaSnapshot;      // model/cuda_snapshot.h
struct AllocatorHistory;  // model/allocator_history.h

struct Trace {
  Source source;
  RankInfo rank;
  StringPool strings;
  std::vector<Metadata> metadata;
  std::vector<DeviceInfo> devices;
  std::vector<ProcessGroup> groups;
  std::vector<HeldBefore> held_before;   // empty: not recorded
  std::vector<ModuleSize> module_sizes;  // of every module; empty: not recorded
  std::vector<CodeCall> code;            // of the program itself; empty: not recorded
  std::vector<Category> categories;
  std::vector<Track> tracks;
  std::int64_t clock_base_ns = kAbsent;  // baseTimeNanoseconds: add to times for Unix time

  Slices slices;
  Ops ops;
  Launches launches;
  DeviceRows device;
  CopySpeeds copy_speeds;
  Collectives collectives;
  MemoryEvents memory;
  Flows flows;
  Instants instants;
  Counters counters;
  GraphNodes nodes;
  Samples samples;  // of telemetry; not of the trace of a rank
  std::vector<SampledSeries> sampled;
  // Of a file that tells of the device's memory and of nothing else (Run::snapshots): what it is read into.
  std::shared_ptr<const CudaSnapshot> snapshot;
  MemoryTimeline memory_timeline;
  std::int64_t memory_file = kAbsent;  // its number in Run::snapshots
  std::vector<Issue> issues;

  // derived
  Column<SliceId> by_track;                // all slices by (track, start, longer first, file order)
  std::vector<std::uint32_t> track_begin;  // slices of track t: by_track[track_begin[t] .. track_begin[t + 1])
  std::vector<ClassRule> class_rules;      // [0]: no rule matched
  std::vector<Step> steps;                 // by start
  std::string step_source;                 // sentence: where the steps come from
  std::vector<ModuleCall> modules;
  std::vector<Backward> backward;
  LinkCounts links;
  std::shared_ptr<const AllocatorHistory> snapshot_history;
  TraceClock clock;  // derived from all traces of the run, so never cached

  SliceKind kind(SliceId id) const {
    const CategoryId category = slices.category[id];
    return category == CategoryId::none ? SliceKind::other : categories[static_cast<std::size_t>(category)].kind;
  }
  std::string_view name(SliceId id) const { return strings[slices.name[id]]; }
  // An execution trace or Chakra file: what depends on what, and nothing of when it ran.
  bool only_graph() const { return nodes.size() > 0 && slices.size() == 0; }
  bool only_memory() const { return snapshot != nullptr || memory_timeline.size() > 0; }
  // The (derived) step whose host part contains `time_ns`; none: outside all steps. O(log steps).
  StepId step_at(std::int64_t time_ns) const;
};

// A table that the user gave, as text; who needs it parses it.
struct UserTable {
  std::string file;  // empty: none was given
  std::string text;
};

// What was opened together: one trace per rank file, in rank order.
struct Run {
  std::string path;  // as the user gave it
  std::vector<Trace> traces;
  std::vector<Issue> issues;  // of the run as a whole (rank clashes, files left out …)
  // One step per rank, recorded with Python stacks after a window: the code behind the times. Recording stacks slows a
  // step down, so nothing that is timed looks here.
  std::vector<Trace> stack_steps;
  // Every step and phase of the whole job, one lane per rank, from the marks that `stepscope run` keeps.
  std::vector<Trace> history;
  // What was sampled of the machine beside the job, one per sampler.
  std::vector<Trace> telemetry;
  // What filled the memory of each rank's model, by rank, where that was measured.
  std::vector<MemoryState> memory_states;
  // Memory snapshots and memory timelines, one per file, by rank. They are of moments of their own, so `traces`, which
  // may be empty beside them, does not hold them.
  std::vector<Trace> snapshots;
  UserTable peaks, flop_rules;  // what devices can do, what operators take (costs/)
  Matches matches;              // derived
};

// Time on the run's clock of the moment that `trace` calls `t`.
std::int64_t run_time_ns(const Trace& trace, std::int64_t t);

}  // namespace stepscope
