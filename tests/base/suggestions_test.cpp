#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/hub_name.h"
#include "base/nearest.h"
#include "base/similar_file.h"
#include "temp_dir.h"

namespace megalith {
namespace {

TEST(Nearest, AllowsFewEditsOrABeginning) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2);
  EXPECT_EQ(edit_distance("trian", "train"), 1);
  std::vector<std::string_view> words{"layers", "hidden", "heads"};
  EXPECT_EQ(nearest("hiden", words), "hidden");
  EXPECT_EQ(nearest("xyz", words), "");
  EXPECT_EQ(nearest("lay", words), "layers");
  EXPECT_EQ(nearest("la", words), "");
  EXPECT_EQ(nearest(std::string(5000, 'h'), words), "");
}

TEST(SimilarPath, FindsMisspelledFoldersAndFiles) {
  const TempDir folder;
  std::filesystem::create_directories(folder / "data");
  for (const char* name : {"data/text.txt", "data/other.txt"}) std::ofstream(folder / name) << "x";
  for (const char* wrong : {"data/txet.txt", "dta/text.txt", "daat/text.tx", "data/text"})
    EXPECT_EQ(similar_path(folder / wrong), folder / "data/text.txt") << wrong;
  for (const char* wrong : {"data/mine.txt", "corpus/text.txt"}) EXPECT_EQ(similar_path(folder / wrong), "") << wrong;
  EXPECT_EQ(where_it_may_be(folder / "data/txt.txt"), "did you mean " + (folder / "data/text.txt").string() + "?");
  EXPECT_EQ(where_it_may_be(folder / "corpus"), "check the path");
  EXPECT_TRUE(where_it_may_be("no/such/file").starts_with("the current folder is /"));
}

TEST(HubName, IsTheNameOfNoFile) {
  for (const char* name : {"gpt2", "Qwen/Qwen2-0.5B", "meta-llama/Llama-3.2-1B"})
    EXPECT_TRUE(where_to_get(name).ends_with("--local-dir " + std::string(name) + "`, then repeat this command")) << name;
  const TempDir folder;
  for (const std::string& name : {std::string("model.gguf"), std::string("runs/first"), std::string("./gpt2"),
                                  std::string("a/b/c"), (folder / "gpt2").string()})
    EXPECT_EQ(how_to_download(name), "") << name;
}

}  // namespace
}  // namespace megalith
