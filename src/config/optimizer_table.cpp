#include "config/optimizer_table.h"

namespace megalith {

std::string optimizer_words(bool (*chosen)(const OptimizerRow&), std::string_view before_last) {
  std::string text, last;
  for (const OptimizerRow& row : kOptimizers) {
    if (!chosen(row)) continue;
    if (!last.empty()) text += (text.empty() ? "" : ", ") + last;
    last = row.word;
  }
  return text.empty() ? last : text.append(before_last) + last;
}

}  // namespace megalith
