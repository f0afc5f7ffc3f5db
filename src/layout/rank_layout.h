// The layout as one rank sees it: its place in the mesh, the stage of every block, and what computes the blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/mesh.h"

namespace megalith {

// The stage of the pipeline that each block is on.
struct StageMap {
  std::vector<int32_t> of;  // by block; empty: there is one stage
  int32_t stage(int32_t block) const { return of.empty() ? 0 : of[static_cast<size_t>(block)]; }
  bool operator==(const StageMap&) const = default;
};

struct RankLayout {
  Mesh mesh;
  StageMap stages;
  // Blocks are computed on a device: parameters, gradients and activations are there while they are used. The state lives
  // in the host's memory or on its disk, where norms and updates are computed.
  bool device = false;

  const Layout& sizes() const { return mesh.layout(); }
  int32_t stage() const { return mesh.stage(); }  // of this rank
  int32_t stage(int32_t block) const { return stages.stage(block); }
  // The optimizer updates another buffer than the one that blocks compute with: a ZeRO slice, or the host copy.
  bool separate_master() const { return sizes().slices() || device; }
  // Norm and optimizer read another gradient than the one that backward adds to.
  bool separate_gradient() const { return sizes().reduces() || device; }
};

}  // namespace megalith
