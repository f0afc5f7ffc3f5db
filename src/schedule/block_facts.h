// What passes, checker and simulator know about a block: sizes in bytes, work in floating-point operations.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "layout/axis.h"
#include "schedule/op.h"

namespace megalith {

enum class BlockKind : uint8_t { embedding, layer, head };

// What a layer keeps from forward to backward.
enum class Keep : uint8_t {
  all,        // what backward needs
  attention,  // its input and what the attention half leaves: the feed-forward half is made again before backward
  input,      // its input: forward is made again
  none,       // not even that: the recomputation of the block before it makes it
};

// What a block exchanges with the ranks along one axis, a micro-batch.
struct ExchangeFacts {
  int64_t calls = 0;
  int64_t bytes = 0;  // that this rank sends
  bool operator==(const ExchangeFacts&) const = default;
};

// Exchanges along each axis.
struct AxisExchanges {
  std::array<ExchangeFacts, kAxes> by_axis{};
  ExchangeFacts& operator[](Axis axis) { return by_axis[static_cast<size_t>(axis)]; }
  const ExchangeFacts& operator[](Axis axis) const { return by_axis[static_cast<size_t>(axis)]; }
};

// The work of forward or backward of a block, or of a part of it, a micro-batch.
struct BlockWork {
  double flop = 0;            // in matrix products; multiply and add count as two
  int64_t touched_bytes = 0;  // memory traffic besides them
  AxisExchanges exchanges = {};
  BlockWork& operator+=(const BlockWork& other);
  BlockWork& operator-=(const BlockWork& other);
};

// What a block is, from its list of parameters. block_facts in families/facts.cpp fills it in.
struct BlockIdentity {
  std::string name;                // "embedding", "layer 3", "head"
  BlockKind kind = BlockKind::layer;
  BlockId tied_to = kNoBlock;      // head: block whose table it multiplies with and adds gradients to
  int64_t parameters = 0;          // elements of this block that are here
  int64_t expert_parameters = 0;   // of these, where experts are spread over ranks: the experts'
  int64_t compute_copy_bytes = 0;  // parameters kept a second time, in the precision of the computation
};

// What a micro-batch costs in a block. The model family fills it in (families/NAME/facts.cpp).
struct BlockCosts {
  BlockWork forward, backward;
  int64_t saved_bytes = 0;            // what backward needs of forward, its input excluded
  int64_t attention_saved_bytes = 0;  // of these: what the attention half leaves
  bool packs_input = false;           // a packed copy of the input is among them, and the input itself goes
  int64_t output_bytes = 0;           // the activation handed to the next block
  int64_t workspace_bytes = 0;        // largest temporaries while it runs
  int64_t validation_bytes = 0;       // the same in a validation, which keeps nothing and drops no tokens
  int64_t sparse_gradient_bytes = 0;  // rows that one backward leaves for embedding_gradient
  bool backward_uses_parameters = true;
  // Where backward defers its weight products:
  double weight_flop = 0;            // theirs, of backward's
  int64_t deferred_bytes = 0;        // what they wait with
  int64_t deferring_workspace_bytes = 0;  // of that backward; below 0 where what it leaves was on the tape before
  int64_t weight_gradient_workspace_bytes = 0;
  // Parts of forward that can be left out when it is made again:
  BlockWork attention;  // up to the heads' output
  BlockWork output;     // what nothing but the output needs

  bool drops_tokens() const { return validation_bytes > saved_bytes + workspace_bytes; }
  // Of forward made again by a layer that kept so much; `with_output`: the next one's input is wanted, too.
  BlockWork again(Keep keep, bool with_output) const;
};

// Optimizer state, and what it takes to move the state of a block. facts_for in planner/run_blocks.cpp fills it in.
struct BlockStorage {
  int64_t optimizer_bytes = 0;         // of this block's optimizer state
  int64_t expert_optimizer_bytes = 0;  // of these, where experts are spread over ranks: the experts'
  int64_t optimizer_disk_bytes = 0;    // the room it takes where it is away: whole chunks
  int64_t values_disk_bytes = 0;       // and an array of float32 does, parameters or gradient
  bool optimizer_streams = true;       // it has one number an element, which can be away; else it stays in memory
  int64_t save_workspace_bytes = 0;    // staging while its parts go out to a checkpoint
  int64_t stream_bytes = 0;            // staging while its state streams from and to the disk
  int64_t load_bytes = 0;              // the same while its parameters alone come
  bool streams_amply = false;          // staging is as large as is of use
  int64_t call_bytes = 0;              // staging while forward waits for experts that nobody foresaw
  int64_t input_offload_bytes = 0;     // staging while its input does
};

// What passes, checker and simulator need to know of a block, in bytes and floating-point operations.
struct BlockFacts : BlockIdentity, BlockCosts, BlockStorage {};

}  // namespace megalith
