// One parameter and its optimizer, stepped as the engine does it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/normals.h"
#include "optim/optimizer.h"

namespace megalith {

struct Trial {
  TrainSettings settings;
  ParameterFacts facts;
  std::vector<float> value;
  std::vector<std::vector<float>> slots;
  std::unique_ptr<Optimizer> optimizer;

  Trial(TrainSettings s, std::vector<int64_t> shape, std::vector<float> initial)
      : settings(s), facts{"weight", shape}, value(std::move(initial)), optimizer(make_optimizer(s)) {
    for (const SlotSpec& slot : optimizer->slots(facts)) {
      const size_t size = slot.extent == SlotExtent::row      ? static_cast<size_t>(shape[0])
                          : slot.extent == SlotExtent::column ? static_cast<size_t>(shape[1])
                                                              : value.size();
      slots.emplace_back(size);
    }
  }

  // Does one step as the engine does it. `cuts` are the ends of the slices, in order.
  void step(const std::vector<float>& gradient, const Update& update, const std::vector<int64_t>& cuts) {
    std::vector<ParameterSlice> slices;
    int64_t begin = 0;
    const auto specs = optimizer->slots(facts);
    for (int64_t end : cuts) {
      const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
      ParameterSlice slice{&facts,
                           begin,
                           std::span(value).subspan(first, count),
                           std::span(gradient).subspan(first, count),
                           {}};
      for (size_t i = 0; i < specs.size(); i++)
        slice.slots.push_back(specs[i].extent == SlotExtent::element
                                  ? std::span(slots[i]).subspan(first, count)
                                  : std::span(slots[i]));
      slices.push_back(slice);
      begin = end;
    }
    std::vector<std::vector<double>> statistics;
    for (int round = 0; round < optimizer->statistics_rounds(); round++) {
      std::vector<double> sums(static_cast<size_t>(optimizer->statistics_size(facts, round)));
      for (const auto& slice : slices) optimizer->gather(round, slice, update, statistics, sums);
      statistics.push_back(sums);
    }
    for (const auto& slice : slices) optimizer->apply(slice, update, statistics);
  }
  void step(const std::vector<float>& gradient, const Update& update) {
    step(gradient, update, {std::ssize(value)});
  }
};

inline TrainSettings settings(OptimizerKind kind) {
  TrainSettings s;
  s.optimizer = kind;
  s.beta1 = 0.9;
  s.beta2 = 0.95;
  s.eps = 1e-8;
  s.momentum = 0.9;
  s.weight_decay = 0.1;
  return s;
}

inline std::vector<float> normals(int64_t n, uint64_t item, double scale = 1) {
  Philox random(5, RandomUse::test, item);
  std::vector<float> values(static_cast<size_t>(n));
  fill_normals(random, 0, values);
  for (float& value : values) value = static_cast<float>(scale * value);
  return values;
}

inline const std::vector<OptimizerKind> kAll = [] {
  std::vector<OptimizerKind> kinds;
  for (const OptimizerRow& row : kOptimizers) kinds.push_back(row.kind);
  return kinds;
}();

}  // namespace megalith
