// Typed look-ups in one object of Hugging Face's config.json. null counts as a missing key, as in Hugging Face.
// Throws a UserError that names the key if a value does not fit.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "families/model_shape.h"

namespace megalith {

class HfFields {
 public:
  // Borrows `object`.
  HfFields(const nlohmann::json& object, std::string where, std::string path = "")
      : object_(object), where_(std::move(where)), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& hint = "") const;

  bool has(const std::string& key) const;
  bool given(const std::string& key) const;  // true also if the value is null
  const nlohmann::json& at(const std::string& key) const;
  std::string text(const std::string& key) const;  // empty if the value is not a text
  HfFields inside(const std::string& key) const;

  int64_t count(const std::string& key) const;  // from 1 to 2^31 - 1
  int64_t count_or(const std::string& key, int64_t otherwise) const;
  double number_or(const std::string& key, double otherwise, double low, double high) const;
  double rate_or(const std::string& key, double otherwise) const;  // from 0 to less than 1
  bool flag_or(const std::string& key, bool otherwise) const;

  // Throw UserError if the key has another value. A missing key is accepted.
  void must_be(const std::string& key, const nlohmann::json& only, const std::string& why) const;
  void must_be_one_of(const std::string& key, std::initializer_list<const char*> names) const;
  void must_be_absent(const std::string& key, const std::string& why) const;

 private:
  const nlohmann::json& object_;
  std::string where_, path_;
};

inline constexpr double kSmallestEps = 1e-30;

// Writes our dropout rates under a key that Hugging Face ignores. For families whose own keys cannot express them.
void write_dropout(const ModelShape& shape, nlohmann::ordered_json& config);

}  // namespace megalith
