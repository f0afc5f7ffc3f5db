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
  fold,       // block: adds gradients kept aside (tied embeddings: ids and rows) after all others
  norm,       // block: sum of squares of its gradient
  clip,       // from all norms: scale of the update, or that the step is skipped
  update,     // block: optimizer
  renew,      // spilled block: makes the update that the step before left pending, and brings the parameters in
  fetch,      // spilled block: brings its parameters in again
  drop,       // spilled block: forgets its parameters; the disk has them
  clear,      // spilled block: an empty gradient to add to
  stow,       // spilled block: its gradient goes out to the disk, where the next renew finds it
  save,       // block: its parts go out to the checkpoint being written
  commit,     // makes the checkpoint being written durable and visible
};

enum class Lane : uint8_t { compute, read, write, net, update };
inline constexpr int kLanes = 5;

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

// What passes, checker and simulator need to know of a block, in bytes and floating-point operations.
struct BlockFacts {
  std::string name;                  // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  BlockId tied_to = kNoBlock;        // head: block whose table it multiplies with and adds gradients to
  int64_t parameters = 0;            // elements owned by this block
  int64_t optimizer_bytes = 0;       // of this block's optimizer state
  int64_t optimizer_disk_bytes = 0;  // the room it takes where it is away: whole chunks
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
  int64_t aside_bytes = 0;           // gradients kept aside by one backward until fold
  // Parts of forward that can be left out when it is made again:
  ForwardPart attention;             // up to the heads' output
  ForwardPart output;                // what nothing but the output needs
  // The block's own:
  int64_t compute_copy_bytes = 0;    // parameters kept a second time, in the precision of the computation
  int64_t save_workspace_bytes = 0;  // staging while its parts go out to a checkpoint
  int64_t stream_bytes = 0;          // staging while its state streams from and to the disk
  bool backward_uses_parameters = true;

  // Of forward made again by a layer that kept so much; `with_output`: the next one's input is wanted, too.
  ForwardPart again(Keep keep, bool with_output) const;
};

// Where a block's state lives between its uses.
enum class Placement : uint8_t {
  memory,        // all of it in memory
  moments_away,  // optimizer state on disk: it streams through memory when the update is made
  away,          // parameters and gradient, too
};

struct Schedule {
  std::vector<BlockFacts> blocks;
  std::vector<Placement> placement;  // by block; empty: all in memory
  std::vector<Keep> keep;            // by block; empty: all of them all
  int32_t micros = 1;
  bool training = true;              // false: forward passes only (validation)
  std::vector<Op> ops;               // in a valid order: `after` names earlier ops only

  Placement placed(BlockId block) const {
    return placement.empty() ? Placement::memory : placement[static_cast<size_t>(block)];
  }
  Keep keeps(BlockId block) const { return keep.empty() ? Keep::all : keep[static_cast<size_t>(block)]; }
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
