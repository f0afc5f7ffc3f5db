// The blocks of a model, which compute. The one part of families/ that needs LibTorch: a library of its own.
#pragma once
#include <memory>
#include <vector>

#include "families/list.h"
#include "model/block.h"

namespace megalith {

// Blocks of a rank; the exchanges must outlive them.
std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, const Exchanges& exchanges = {});

// Makes one block of a family.
using MakeBlock = std::unique_ptr<Block> (*)(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges);

// gpt2::make_block, llama::make_block, ...: defined by each folder's blocks.cpp.
#define MEGALITH_DECLARE_MAKE_BLOCK(name) \
  namespace name {                        \
  std::unique_ptr<Block> make_block(const ModelShape& shape, BlockSpec spec, const Exchanges& exchanges); \
  }
MEGALITH_FAMILIES(MEGALITH_DECLARE_MAKE_BLOCK)
#undef MEGALITH_DECLARE_MAKE_BLOCK

// The blocks of an ExtraFamily (families/registry.h), while this object exists: for tests.
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
