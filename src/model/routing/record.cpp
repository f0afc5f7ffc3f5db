#include "model/routing/record.h"

#include <cstddef>

namespace megalith {
namespace {

constexpr int64_t kPlain = 6;  // numbers of a layer besides its loads

}  // namespace

std::vector<double> numbers_of(const RoutingRecord& record, int64_t experts) {
  std::vector<double> numbers;
  for (const LayerRouting& layer : record) {
    for (int64_t whole : {layer.tokens, layer.choices, layer.dropped}) numbers.push_back(static_cast<double>(whole));
    for (double sum : {layer.aux, layer.z, layer.entropy}) numbers.push_back(sum);
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts); e++)
      numbers.push_back(e < layer.load.size() ? static_cast<double>(layer.load[e]) : 0);
  }
  return numbers;
}

RoutingRecord record_of(std::vector<double> numbers, int64_t experts) {
  RoutingRecord record(numbers.size() / static_cast<std::size_t>(kPlain + experts));
  const double* at = numbers.data();
  for (LayerRouting& layer : record) {
    for (int64_t* whole : {&layer.tokens, &layer.choices, &layer.dropped}) *whole = static_cast<int64_t>(*at++);
    for (double* sum : {&layer.aux, &layer.z, &layer.entropy}) *sum = *at++;
    for (int64_t e = 0; e < experts; e++) layer.load.push_back(static_cast<int64_t>(*at++));
  }
  return record;
}

}  // namespace megalith
