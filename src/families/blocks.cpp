#include "families/blocks.h"

#include <map>

#include "base/error.h"
#include "families/family.h"

namespace megalith {
namespace {

std::map<const Family*, MakeBlock>& makers() {
#define MEGALITH_MAKER(name) {&name##_family, name::make_block},
  static std::map<const Family*, MakeBlock> all{MEGALITH_FAMILIES(MEGALITH_MAKER)};
#undef MEGALITH_MAKER
  return all;
}

}  // namespace

std::vector<std::unique_ptr<Block>> make_blocks(const ModelShape& shape, const Exchanges& exchanges) {
  auto fits = [](const Exchange* exchange, int64_t size, int64_t rank) {
    return exchange ? exchange->size() == size && exchange->rank() == rank : size == 1;
  };
  MEGALITH_ASSERT(fits(exchanges.tensor, exchanges.mesh.size(Axis::tensor), exchanges.mesh.coordinate(Axis::tensor)) &&
                  fits(exchanges.context, exchanges.mesh.size(Axis::context), exchanges.mesh.coordinate(Axis::context)) &&
                  fits(exchanges.expert, exchanges.mesh.size(Axis::expert), exchanges.mesh.coordinate(Axis::expert)));
  const auto make = makers().find(shape.family);
  MEGALITH_ASSERT(make != makers().end(), "{} has no blocks", shape.family->name);
  std::vector<std::unique_ptr<Block>> blocks;
  for (BlockSpec& spec : list_blocks(shape, exchanges.mesh)) blocks.push_back(make->second(shape, std::move(spec), exchanges));
  if (shape.experts.share_layers)
    for (size_t layer = 1; layer < static_cast<size_t>(shape.layers); layer++) blocks[1 + layer]->use_weights_of(*blocks[1]);
  return blocks;
}

ExtraBlocks::ExtraBlocks(const Family& family, MakeBlock make) : family_(family) { makers().emplace(&family, make); }
ExtraBlocks::~ExtraBlocks() { makers().erase(&family_); }

}  // namespace megalith
