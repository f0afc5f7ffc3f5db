// What routers decided for a micro-batch, layer by layer.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

struct LayerRouting {
  int64_t tokens = 0;             // 0: none came yet, or the layer has no experts
  int64_t choices = 0;            // of all tokens
  int64_t dropped = 0;            // of the choices
  double aux = 0, z = 0;          // losses, sums over the tokens, without their weights
  double entropy = 0;             // of the router, sum over the tokens, in nats
  std::vector<int64_t> load;      // choices by expert
  uint64_t fingerprint = 0;       // of who goes where: recomputation and backward must decide the same
};

using RoutingRecord = std::vector<LayerRouting>;  // by layer

// Records as numbers that add up over micro-batches and ranks, and back; fingerprints are left out.
std::vector<double> numbers_of(const RoutingRecord& record, int64_t experts);
RoutingRecord record_of(std::vector<double> numbers, int64_t experts);

}  // namespace megalith
