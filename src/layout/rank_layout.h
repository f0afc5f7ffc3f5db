// The layout as one rank sees it: its place in the mesh, the stage of every block, and what computes the blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/mesh.h"

namespace megalith {

// The stage of the pipeline that each block is on.
struct StageMap {
  std::vector<int32_t> of;  // stage of each block; empty if there is one stage
  int32_t stage(int32_t block) const { return of.empty() ? 0 : of[static_cast<size_t>(block)]; }
  bool operator==(const StageMap&) const = default;
};

struct RankLayout {
  Mesh mesh;
  StageMap stages;
  // True if a device computes the blocks. Parameters, gradients and activations are on the device while they are used. The
  // state stays in the host's memory or on its disk, and the host computes norms and updates.
  bool device = false;

  const Layout& sizes() const { return mesh.layout(); }
  int32_t stage() const { return mesh.stage(); }  // of this rank
  int32_t stage(int32_t block) const { return stages.stage(block); }
  // True if the optimizer updates a different buffer than the one that blocks compute with: a ZeRO slice, or the host copy.
  bool separate_master() const { return sizes().slices() || device; }
  // True if gradient norm and optimizer read a different gradient buffer than the one that backward adds to.
  bool separate_gradient() const { return sizes().reduces() || device; }
};

}  // namespace megalith
