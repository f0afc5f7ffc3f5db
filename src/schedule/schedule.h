// A schedule is data: the ops of one training step of one rank. Passes write it; the checker, the simulator
// and the executor read the same list. Pure: no tensors, no MPI.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

using BlockId = int32_t;  // position in Schedule::blocks; kNoBlock for ops of the whole step
using MicroId = int32_t;  // micro-batch number; kNoMicro for ops of a block's parameters or of the step
using OpId = int32_t;     // position in Schedule::ops
inline constexpr int32_t kNoBlock = -1;
inline constexpr int32_t kNoMicro = -1;
inline constexpr OpId kNoOp = -1;

enum class OpKind : uint8_t {
  count,      // number of target tokens of the whole step: what losses are divided by
  forward,    // block, micro: takes the activation of block - 1, leaves its own and what backward needs
  loss,       // last block, micro: forward and backward in one, so that logits never exist as a whole
  recompute,  // block, micro: forward again, as far as backward needs what was not kept
  backward,   // block, micro: takes the gradient of its output, adds to its parameters' gradient
  weigh,      // layer, micro: the products of its weights' gradients, where backward puts them off
  fold,       // block: adds gradients kept aside (tied embeddings: ids and rows) after all others
  norm,       // block: sum of squares of its gradient
  clip,       // from all norms: scale of the update, or that the step is skipped
  update,     // block: optimizer
  renew,      // spilled block: makes the update that the step before left pending, and brings the parameters in
  fetch,      // spilled block: brings its parameters in again
  drop,       // spilled block: forgets its parameters; the disk has them
  clear,      // spilled block: an empty gradient to add to
  stow,       // spilled block: its gradient goes out to the disk, where the next renew finds it
  park,       // block, micro: the input that it keeps for its recomputation goes out to the disk; of a device, to the host
  unpark,     // block, micro: and comes back
  upload,     // block: a copy of its parameters on the device, where it is computed
  download,   // block: its gradient from the device to the host
  gather,     // sliced block: its whole parameters from the slices of all ranks that hold it
  reduce,     // block: its gradient summed over those ranks; of a sliced block, this rank's slice of the sum
  total,      // what the step's losses and norms add up to over all ranks
  send,       // block, micro: its activation, to the rank that has the next block
  receive,    // block, micro: the activation of a block that is elsewhere
  send_back,  // block, micro: the gradient of the activation of a block that is elsewhere, to the rank that has it
  receive_back,  // block, micro: the gradient of its activation, from the rank that has the next block
  lend,       // embedding: its table, to the rank that has the tied head; both ranks have the op
  collect,    // embedding: what that head added to the table's gradient, back; both ranks have the op
  save,       // block: its parts go out to the checkpoint being written
  commit,     // makes the checkpoint being written durable and visible
};

// `net` receives and exchanges with all; `send` is apart from it so that two ranks may send to each other. `upload` and
// `download` copy to and from a device, both ways at once.
enum class Lane : uint8_t { compute, read, write, net, send, upload, download };
inline constexpr int kLanes = 7;

struct Op {
  OpKind kind;
  BlockId block = kNoBlock;
  MicroId micro = kNoMicro;
  Lane lane = Lane::compute;
  // Ops that must be done before this one starts, besides those before it on its lane. Passes name all of the
  // data flow here, also what the lane's order gives anyway, so that another pass may move an op to another
  // lane.
  std::vector<OpId> after;
};

enum class BlockKind : uint8_t { embedding, layer, head };

// What a layer keeps from forward to backward.
enum class Keep : uint8_t {
  all,        // what backward needs
  attention,  // its input and what the attention half leaves: the feed-forward half is made again before backward
  input,      // its input: forward is made again
  none,       // not even that: the recomputation of the block before it makes it
};

struct ForwardPart {
  double flop = 0;
  int64_t touched_bytes = 0;
};

// What a block sends to the ranks that it shares its work with along one axis, a micro-batch.
struct ExchangeFacts {
  int64_t calls = 0;
  int64_t bytes = 0;  // that this rank sends
};

// What passes, checker and simulator need to know of a block, in bytes and floating-point operations.
struct BlockFacts {
  std::string name;                  // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  BlockId tied_to = kNoBlock;        // head: block whose table it multiplies with and adds gradients to
  int64_t parameters = 0;            // elements of this block that are here
  int64_t optimizer_bytes = 0;       // of this block's optimizer state
  int64_t expert_parameters = 0;     // of both, where experts are spread over ranks: the experts'
  int64_t expert_optimizer_bytes = 0;
  int64_t optimizer_disk_bytes = 0;  // the room it takes where it is away: whole chunks
  int64_t values_disk_bytes = 0;     // and an array of float32 does, parameters or gradient
  bool optimizer_streams = true;     // it has one number an element, which can be away; else it stays in memory
  // A micro-batch's costs:
  double forward_flop = 0;           // multiply and add count as two
  double backward_flop = 0;
  int64_t forward_touched_bytes = 0; // memory traffic besides the matrix products
  int64_t backward_touched_bytes = 0;
  int64_t saved_bytes = 0;           // what backward needs of forward, its input excluded
  int64_t attention_saved_bytes = 0; // of these: what the attention half leaves
  bool packs_input = false;          // a packed copy of the input is among them, and the input itself goes
  int64_t output_bytes = 0;          // the activation handed to the next block
  int64_t workspace_bytes = 0;       // largest temporaries while it runs
  int64_t validation_bytes = 0;      // the same in a validation, which keeps nothing and drops no tokens
  int64_t aside_bytes = 0;           // gradients kept aside by one backward until fold
  // Where backward puts its weight products off:
  double weight_flop = 0;            // theirs, of backward's
  int64_t deferred_bytes = 0;        // what they wait with
  int64_t deferring_workspace_bytes = 0;  // of that backward; below 0 where what it leaves was on the tape before
  int64_t weigh_workspace_bytes = 0;
  // Parts of forward that can be left out when it is made again:
  ForwardPart attention;             // up to the heads' output
  ForwardPart output;                // what nothing but the output needs
  ExchangeFacts tensor_forward, tensor_backward, context_forward, context_backward, expert_forward, expert_backward;
  // The block's own:
  int64_t compute_copy_bytes = 0;    // parameters kept a second time, in the precision of the computation
  int64_t save_workspace_bytes = 0;  // staging while its parts go out to a checkpoint
  int64_t stream_bytes = 0;          // staging while its state streams from and to the disk
  int64_t fetch_bytes = 0;           // the same while its parameters alone come
  bool streams_amply = false;        // staging is as large as is of use
  int64_t call_bytes = 0;            // staging while forward waits for experts that nobody foresaw
  int64_t parking_bytes = 0;         // staging while its input does
  bool backward_uses_parameters = true;

  bool drops_tokens() const { return validation_bytes > saved_bytes + workspace_bytes; }
  // Of forward made again by a layer that kept so much; `with_output`: the next one's input is wanted, too.
  ForwardPart again(Keep keep, bool with_output) const;
};

// Where a block's state lives between its uses.
enum class Placement : uint8_t {
  memory,        // all of it in memory
  moments_away,  // optimizer state on disk: it streams through memory when the update is made
  away,          // parameters and gradient, too
};

// How the state of a block is divided among the ranks that hold it and work on other sequences with it.
struct Sharding {
  int32_t replicas = 1;  // that many ranks
  int32_t zero = 0;      // sliced over them: 1 optimizer state, 2 gradients too, 3 parameters too
  int32_t expert = 1;    // experts are spread over so many of them: as many times fewer have the same ones
  int32_t expert_replicas() const { return replicas / expert; }
  bool slices() const { return replicas > 1 && zero > 0; }
};

// Which blocks are on which stage of the pipeline, and which stage this rank is.
struct Stages {
  std::vector<int32_t> of;  // by block; empty: there is one stage
  int32_t here = 0;
};

// How a run is divided, among ranks, seen from one of them, and between the host and a device.
struct Division {
  int32_t ranks = 1;   // of the whole run
  int32_t tensor = 1;  // that share the inside of each block: of what is the same on all, each has a share of the gradient
  Sharding sharding;
  Stages stages;
  // Blocks are computed on a device: parameters, gradients and activations are there while they are used; the state is at
  // home in the host's memory or on its disk, where norms and updates are made.
  bool device = false;
};

struct Schedule {
  std::vector<BlockFacts> blocks;
  std::vector<Placement> placement;  // by block; empty: all in memory
  std::vector<Keep> keep;            // by block; empty: all of them all
  std::vector<bool> parks;           // by block: the input that it keeps waits on disk; empty: none does
  Division division;
  int32_t micros = 1;
  bool training = true;              // false: forward passes only (validation)
  bool puts_off = false;             // layers put their weight products off: `weigh` makes them
  std::vector<Op> ops;               // in a valid order: `after` names earlier ops only

  Placement placed(BlockId block) const {
    return placement.empty() ? Placement::memory : placement[static_cast<size_t>(block)];
  }
  bool parks_input(BlockId block) const { return !parks.empty() && parks[static_cast<size_t>(block)]; }
  Keep keeps(BlockId block) const { return keep.empty() ? Keep::all : keep[static_cast<size_t>(block)]; }
  BlockId head() const { return static_cast<BlockId>(blocks.size()) - 1; }
  int32_t stage(BlockId block) const {
    return division.stages.of.empty() ? 0 : division.stages.of[static_cast<size_t>(block)];
  }
  bool holds(BlockId block) const { return stage(block) == division.stages.here; }
  // Its state is sliced over the ranks that hold it, each of which updates its slice.
  bool slices() const { return division.sharding.slices(); }
  // Gradients are summed over ranks.
  bool reduces() const { return division.sharding.replicas > 1 || division.tensor > 1; }
  // What updates change is another buffer than what blocks compute with: a slice of it, or the host's.
  bool home_is_apart() const { return slices() || division.device; }
  // The gradient that norms and updates look at is another than what backward adds to.
  bool sum_is_apart() const { return reduces() || division.device; }
  // Whether its whole parameters, its whole gradient stay where it is computed from step to step.
  bool parameters_stay(BlockId block) const {
    return holds(block) && placed(block) != Placement::away && !division.device &&
           !(slices() && division.sharding.zero >= 3);
  }
  bool gradient_stays(BlockId block) const {
    return holds(block) && placed(block) != Placement::away && !division.device &&
           !(slices() && division.sharding.zero >= 2);
  }
  // What this rank has of a block's parameters (elements, without the gaps) and optimizer state; at most: slices differ
  // by a few elements.
  int64_t slice_elements(BlockId block) const;
  int64_t optimizer_slice_bytes(BlockId block) const;
  // Block whose table a tied head multiplies with; kNoBlock: the head is not tied.
  BlockId tied_table() const { return blocks.empty() ? kNoBlock : blocks.back().tied_to; }
  // The table is on another rank than the head, which borrows it.
  bool table_is_lent() const { return tied_table() != kNoBlock && stage(tied_table()) != stage(head()); }
  bool borrows(BlockId block) const { return table_is_lent() && block == tied_table() && holds(head()); }
  bool defers(BlockId block) const {
    return puts_off && training && blocks[static_cast<size_t>(block)].kind == BlockKind::layer;
  }
  // Whether a block's recomputation makes its output again, as the input that the next one did not keep.
  bool output_again(BlockId block) const {
    return static_cast<size_t>(block) + 2 < blocks.size() && keeps(block + 1) == Keep::none;
  }
};

std::string_view name(OpKind kind);
std::string_view name(Lane lane);
std::string describe(const Schedule& schedule, const Op& op);  // "backward of layer 3, micro-batch 1"
std::string describe(const Schedule& schedule, OpId op);

}  // namespace megalith
