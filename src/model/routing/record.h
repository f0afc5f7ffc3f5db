// A record of the decisions of the routers for a micro-batch, layer by layer.
#pragma once
#include <cstdint>
#include <vector>

namespace megalith {

struct LayerRouting {
  int64_t tokens = 0;             // 0: the layer has not run yet, or has no experts
  int64_t choices = 0;            // number of choices of all tokens
  int64_t dropped = 0;            // choices that were dropped
  double aux = 0, z = 0;          // losses: sums over the tokens, not multiplied by aux_loss and z_loss
  double entropy = 0;             // entropy of the router, sum over the tokens, in nats
  std::vector<int64_t> load;      // choices by expert
  uint64_t fingerprint = 0;       // hash of which token goes to which expert; recomputation and backward must get the same
};

using RoutingRecord = std::vector<LayerRouting>;  // by layer

// Converts records to numbers that can be summed over micro-batches and ranks, and back. Fingerprints are left out.
std::vector<double> numbers_of(const RoutingRecord& record, int64_t experts);
RoutingRecord record_of(std::vector<double> numbers, int64_t experts);

}  // namespace megalith
