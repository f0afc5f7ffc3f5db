#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace megalith {
namespace {

std::string lists(int levels) { return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']'); }

std::string objects(int levels) {
  std::string text;
  for (int i = 0; i < levels; i++) text += R"({"a":)";
  return text + "1" + std::string(static_cast<size_t>(levels), '}');
}

template <class Parse>
std::string complaint(const Parse& parse) {
  try {
    parse();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Json, DeepTextsAreRefusedWithFileAndLimit) {
  for (const std::string& text : {lists(kDeepestJson), objects(kDeepestJson)}) {
    EXPECT_FALSE(try_parse_json(text, "f.json").is_discarded());
    EXPECT_FALSE(try_parse_json(text).is_discarded());
    EXPECT_NO_THROW(parse_json(text, "f.json"));
  }
  for (const std::string& text : {lists(kDeepestJson + 1), objects(kDeepestJson + 1), lists(30000), objects(30000),
                                  std::string(1 << 20, '[')}) {
    const std::string says =
        "f.json: expected JSON with at most 256 levels of nesting, got more; "
        "flatten its lists and objects, or check whether the file is damaged";
    EXPECT_EQ(complaint([&] { parse_json(text, "f.json"); }), says);
    EXPECT_EQ(complaint([&] { try_parse_json(text, "f.json"); }), says);
    EXPECT_EQ(complaint([&] { try_parse_ordered_json(text, "f.json"); }), says);
    EXPECT_THROW(parse_json(text), UserError);
    EXPECT_THROW(parse_ordered_json(text), UserError);
    EXPECT_TRUE(try_parse_json(text).is_discarded());
    EXPECT_TRUE(try_parse_ordered_json(text).is_discarded());
  }
}

TEST(Json, BracketsInStringsAndSideBySideAreNotDeep) {
  const std::string brackets(5000, '[');
  const std::string text = R"({"a\"[": ")" + brackets + R"(\\", "b": ")" + brackets + R"("})";
  EXPECT_EQ(try_parse_json(text, "f.json").at("b"), brackets);
  std::string flat = "[";
  for (int i = 0; i < 1000; i++) flat += "[{}],";
  EXPECT_EQ(parse_json(flat + "0]", "f.json").size(), 1001u);
}

}  // namespace
}  // namespace megalith
