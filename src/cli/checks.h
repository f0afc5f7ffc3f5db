// Checks of command-line values that speak as the rest of the program does.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace megalith {

// CLI11's own ranges print their ends with 300 digits.
inline CLI::Validator number_between(double least, double most = std::numeric_limits<double>::infinity()) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
          return std::string();
        return fmt::format("expected a number from {}{}, got {}", least, std::isinf(most) ? "" : fmt::format(" to {}", most),
                           text);
      },
      "");
}

}  // namespace megalith
