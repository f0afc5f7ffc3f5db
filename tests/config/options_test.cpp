#include "config/options.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "config/errors.h"
#include "config/reference.h"
#include "families/registry.h"
#include "families/shape_check.h"
#include "source_folder.h"

namespace megalith {
namespace {

// Checks that a generated page is up to date. MEGALITH_REGENERATE=1 writes the page.
void expect_current(const std::string& file, const std::string& content) {
  std::filesystem::path path = source_folder() / "docs/reference" / file;
  if (std::getenv("MEGALITH_REGENERATE")) write_file_atomically(path.lexically_normal(), content);
  std::stringstream there;
  there << std::ifstream(path).rdbuf();
  EXPECT_TRUE(there.str() == content) << "docs/reference/" << file << " is stale. Write it again with\n  "
                                      << "MEGALITH_REGENERATE=1 test_config --gtest_filter='Reference.*'";
}

}  // namespace

TEST(Options, AreCompleteAndNamedOnce) {
  std::set<std::string_view> names;
  for (const Option& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_EQ(option.name.find('.') == std::string_view::npos, option.type == OptionType::curriculum) << option.name;
    EXPECT_TRUE(option.about.ends_with('.')) << option.name;
    EXPECT_FALSE(option.default_text.empty()) << option.name;
    EXPECT_FALSE(option.expected().empty()) << option.name;
    EXPECT_EQ(option.applies_when.empty(), !option.applies) << option.name;
  }
}

TEST(Options, DefaultsInTheTableAreTheDefaultsInTheCode) {
  Config defaults;
  for (const Option& option : options()) {
    Config scratch;
    bool is_value = false;  // some defaults are formulas, or words that mean "none"
    try {
      is_value = option.set(scratch, parse_yaml(option.default_text, "default", false));
    } catch (const UserError&) {
    }
    if (!is_value || option.type == OptionType::text || option.type == OptionType::texts ||
        option.type == OptionType::blend ||
        option.name.starts_with("data.tokenizer") || option.name.starts_with("model."))
      continue;
    EXPECT_EQ(option.get(scratch), option.get(defaults)) << option.name;
  }
}

// Returns the default of a family from a default text: "the preset's, else gpt2: 1024, bert: 512", "bert: 2, else 0",
// "1e-5; bert: 1e-12".
std::string default_for(std::string_view text, const Family& family) {
  std::string general;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(",;", at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = std::min(text.find_first_not_of(' ', end + 1), text.size());
    if (part.starts_with("else ")) part.remove_prefix(5);
    const size_t colon = part.find(": ");
    if (colon == std::string_view::npos) general = part;
    else if (part.substr(0, colon) == family.name) return std::string(part.substr(colon + 2));
  }
  return general;
}

TEST(Options, DefaultsOfModelsAreThoseOfTheFamilies) {
  for (const char* key : {"model.context", "model.token_types", "model.tied", "model.qkv_bias", "model.output_bias",
                          "model.norm_eps", "model.rope_theta"})
    for (const Family* family : families()) {
      const Option& option = *find_option(key);
      Config expected, written;
      expected.model.shape = written.model.shape = default_shape(*family);
      const std::string text = default_for(option.default_text, *family);
      EXPECT_TRUE(option.set(written, parse_yaml(text, "default", false))) << key << " of " << family->name << ": " << text;
      EXPECT_EQ(option.get(written), option.get(expected)) << key << " of " << family->name;
    }
}

TEST(Options, FieldsOfSomeFamiliesNameThem) {
  const std::pair<const char*, bool ShapeFields::*> fields[] = {
      {"model.kv_heads", &ShapeFields::kv_heads},     {"model.head_dim", &ShapeFields::head_dim},
      {"model.rope_theta", &ShapeFields::rope_theta}, {"model.qkv_bias", &ShapeFields::qkv_bias},
      {"model.output_bias", &ShapeFields::output_bias}, {"model.token_types", &ShapeFields::token_types}};
  for (const auto& [key, field] : fields)
    EXPECT_TRUE(find_option(key)->about.starts_with(families_with(field) + ": ")) << key;
}

TEST(Options, ExplainShowsOneKeyASectionOrAll) {
  EXPECT_EQ(explain("train.warmup"),
            "train.warmup\n    Number of steps at the start in which the learning rate rises to train.lr.\n"
            "    takes    a whole number of steps from 0\n    default  0\n    resume   may change\n");
  EXPECT_NE(explain("objective").find("objective.whole_words"), std::string::npos);
  EXPECT_EQ(explain("objective").find("train.lr"), std::string::npos);
  for (const Option& option : options()) EXPECT_NE(explain("").find(option.name), std::string::npos);
  EXPECT_EQ(complaint([] { explain("train.wramup"); }),
            "train.wramup: unknown key; did you mean train.warmup?");
}

TEST(Reference, SchemaDescribesEveryOption) {
  nlohmann::json schema = parse_json(reference_schema());
  for (const Option& option : options()) {
    const nlohmann::json* node = &schema;
    std::stringstream path{std::string(option.name)};
    for (std::string part; std::getline(path, part, '.');) {
      if (node->contains("anyOf"))
        node = &node->at("anyOf").back();  // the long form of a section that has a short one
      ASSERT_TRUE(node->at("properties").contains(part)) << option.name;
      EXPECT_EQ(node->at("additionalProperties"), false) << option.name;
      node = &node->at("properties").at(part);
    }
    EXPECT_NE(node->at("description").get<std::string>().find(option.about), std::string::npos)
        << option.name;
    EXPECT_TRUE(node->contains("type") || node->contains("anyOf") || node->contains("enum")) << option.name;
  }
}

TEST(Reference, PageIsGeneratedFromTheTable) {
  expect_current("config.md", reference_markdown());
}
TEST(Reference, SchemaIsGeneratedFromTheTable) {
  expect_current("config.schema.json", reference_schema());
}

}  // namespace megalith
