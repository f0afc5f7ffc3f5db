#include "text/json_records.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text_testing.h"

namespace megalith {
namespace {

std::string shown(const std::filesystem::path& path) {
  std::string all;
  for_each_json_record(path, [&](const nlohmann::json& value, const std::string& where) {
    all += where.substr(path.string().size()) + " " + print_json(value) + "\n";
  });
  return all;
}

TEST(JsonRecords, AFileHoldsALineEachOrOneArray) {
  Folder folder;
  EXPECT_EQ(shown(folder.write("a.json", "{\"prompt\": \"x\"}\r\n\n\"y\"")), ":1 {\"prompt\":\"x\"}\n:3 \"y\"\n");
  EXPECT_EQ(shown(folder.write("b.json", "\xEF\xBB\xBF \n[\n {\"prompt\": \"x\"},\n \"y\"]\n")),
            ": entry 1 {\"prompt\":\"x\"}\n: entry 2 \"y\"\n");
  EXPECT_EQ(shown(folder.write("c.json", "")), "");
}

TEST(JsonRecords, WhatIsNotJsonIsNamed) {
  Folder folder;
  auto said = [&](const std::string& content) {
    return user_error([&] { shown(folder.write("a.json", content)); });
  };
  EXPECT_SAYS(said("\"x\"\n{\n"), "a.json:2: expected JSON, got something else; write one JSON value per line");
  EXPECT_SAYS(said("[\"x\",\n"), "a.json:2:1: expected JSON");
  EXPECT_SAYS(said(std::string(30000, '[')), "a.json: expected JSON with at most 256 levels of nesting");
}

TEST(JsonRecords, TheNameTells) {
  for (const char* name : {"p.json", "p.jsonl", "folder.txt/p.ndjson"}) EXPECT_TRUE(is_json_name(name)) << name;
  for (const char* name : {"p.txt", "json", "/dev/stdin"}) EXPECT_FALSE(is_json_name(name)) << name;
}

}  // namespace
}  // namespace megalith
