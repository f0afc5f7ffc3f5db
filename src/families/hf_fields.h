// One object of Hugging Face's config.json, with typed look-ups. A null means what leaving out means, as in Hugging Face.
// Values that do not fit are refused by a UserError that names the key.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "families/model_shape.h"

namespace megalith {

class HfFields {
 public:
  // Borrows the object.
  HfFields(const nlohmann::json& object, std::string where, std::string path = "")
      : object_(object), where_(std::move(where)), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& hint = "") const;

  bool has(const std::string& key) const;
  bool given(const std::string& key) const;  // perhaps as null
  const nlohmann::json& at(const std::string& key) const;
  std::string text(const std::string& key) const;  // empty: the key has no text
  HfFields inside(const std::string& key) const;

  int64_t count(const std::string& key) const;  // from 1 to 2^31 - 1
  int64_t count_or(const std::string& key, int64_t otherwise) const;
  double number_or(const std::string& key, double otherwise, double low, double high) const;
  double rate_or(const std::string& key, double otherwise) const;  // from 0 to less than 1
  bool flag_or(const std::string& key, bool otherwise) const;

  // The key may be left out where the default is ours too.
  void must_be(const std::string& key, const nlohmann::json& only, const std::string& why) const;
  void must_be_one_of(const std::string& key, std::initializer_list<const char*> names) const;
  void must_be_absent(const std::string& key, const std::string& why) const;

 private:
  const nlohmann::json& object_;
  std::string where_, path_;
};

inline constexpr double kSmallestEps = 1e-30;

// Our dropout rates, in a key that Hugging Face passes over. For families whose own keys do not tell them.
void write_dropout(const ModelShape& shape, nlohmann::ordered_json& config);

}  // namespace megalith
