// Creates the blocks of a model, which compute forward and backward. The only part of families/ that needs LibTorch, so
// it is a separate library.
#pragma once
#include <memory>
#include <vector>

#include "families/list.h"
#include "model/block.h"

namespace megalith {

// Returns the blocks of a rank. The exchanges must outlive them.
std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, const Exchanges& exchanges = {});

// Creates one block of a family.
using MakeBlock = std::unique_ptr<Block> (*)(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges);

// gpt2::make_block, llama::make_block, ...: defined by each folder's blocks.cpp.
#define MEGALITH_DECLARE_MAKE_BLOCK(name) \
  namespace name {                        \
  std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges); \
  }
MEGALITH_FAMILIES(MEGALITH_DECLARE_MAKE_BLOCK)
#undef MEGALITH_DECLARE_MAKE_BLOCK

// Registers the blocks of an ExtraFamily (families/registry.h) while this object exists. For tests.
class ExtraBlocks {
 public:
  ExtraBlocks(const Family& family, MakeBlock make);
  ~ExtraBlocks();
  ExtraBlocks(const ExtraBlocks&) = delete;
  ExtraBlocks& operator=(const ExtraBlocks&) = delete;

 private:
  const Family& family_;
};

}  // namespace megalith
