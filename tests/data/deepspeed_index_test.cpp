#include "data/deepspeed_index.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "data/metric_file.h"
#include "temp_dir.h"
#include "text/shards.h"

namespace megalith {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

class DeepSpeedIndex : public testing::Test {
 protected:
  // Writes lists in DeepSpeed's format.
  void write(const std::string& name, const Lists& lists) {
    std::string numbers, lengths, offsets, documents, head(kShardMagic);
    auto put = [](std::string& out, auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(head, uint64_t{1});
    put(head, uint8_t{5});
    put(head, uint64_t{lists.size()});
    put(head, uint64_t{2});
    for (const auto& list : lists) {
      put(lengths, static_cast<int32_t>(list.size()));
      put(offsets, static_cast<int64_t>(numbers.size()));
      for (int64_t number : list) put(numbers, number);
    }
    put(documents, int64_t{0});
    put(documents, static_cast<int64_t>(lists.size()));
    write_file_atomically(dir_ / (name + ".bin"), numbers);
    write_file_atomically(dir_ / (name + ".idx"), head + lengths + offsets + documents);
  }
  // Returns the error for a pair of files.
  std::string complaint(const Lists& distinct, const Lists& samples) {
    write("m_index_to_metric", distinct);
    write("m_index_to_sample", samples);
    return complaint("m_index_to_metric");
  }
  std::string complaint(const std::string& name) {
    try {
      read_deepspeed_values(dir_ / name);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  void remove(const std::string& name) {
    for (const char* extension : {".bin", ".idx"}) std::filesystem::remove(dir_ / (name + extension));
  }
  const TempDir folder_;
  const std::filesystem::path dir_ = folder_.path();
};

TEST_F(DeepSpeedIndex, IsReadBackFromAnyOfItsFiles) {
  // Real values, then whole values over them: the scale of the first must not be used for the second.
  for (const std::vector<double>& values : {std::vector<double>{0.5, 1.25, -2, 0.5, 7}, {3, 1, 2, 1, 9}, {5, 4, 3, 2, 1}}) {
    EXPECT_EQ(write_deepspeed_index(dir_, "m", values), values[0] == 0.5 ? 1e6 : 1);
    for (const char* name : {"m_sample_to_metric", "m_index_to_metric", "m_index_to_sample"})
      for (const char* extension : {"", ".bin", ".idx"})
        EXPECT_EQ(read_metric(dir_ / (std::string(name) + extension), {"m", 5, ""}), values) << name << extension;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 7) << "nothing is left aside";
}

TEST_F(DeepSpeedIndex, OfLargeValuesKeepsTheirOrder) {
  for (const std::vector<double>& values :
       {std::vector<double>{1.7e18, 1.7e18 + 1e9, 1.6e18}, {-9e18, 9e18, 3}, {5e12 + 0.5, 5e12 + 1.5, -8e12}}) {
    write_deepspeed_index(dir_, "m", values);
    const std::vector<double> read = read_metric(dir_ / "m_sample_to_metric", {"m", 3, ""});
    for (size_t i = 0; i < values.size(); i++) EXPECT_NEAR(read[i], values[i], 1e-5) << values[0];
  }
  EXPECT_THROW(write_deepspeed_index(dir_, "m", std::vector<double>{1, 1e19}), UserError);
}

TEST_F(DeepSpeedIndex, OfTheirsIsReadByValue) {
  write("m_index_to_metric", {{-4}, {10}, {11}});
  write("m_index_to_sample", {{2}, {3, 0}, {1}});
  EXPECT_EQ(read_deepspeed_values(dir_ / "m_index_to_metric"), (std::vector<double>{10, 11, -4, 10}));
  EXPECT_EQ(read_deepspeed_values(dir_ / "m_index_to_sample.bin"), (std::vector<double>{10, 11, -4, 10}));
}

TEST_F(DeepSpeedIndex, ThatDoesNotFitTogetherIsRefused) {
  const std::string file = (dir_ / "m_index_to_sample.idx").string();
  EXPECT_EQ(complaint({{1}, {2}}, {{0}, {1}, {2}}),
            file + ": curriculum: expected the same number of items as in index_to_metric (2), got 3; "
                   "use DeepSpeed's NAME_sample_to_metric");
  auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(complaint({{1}, {2}}, {{0, 1}, {2, 0}}), "expected each sample once, got sample 0 twice");
  expect(complaint({{1}, {2}}, {{0, 1}, {3}}), "expected each sample from 0 to 3, got no sample 2");
  expect(complaint({{1}, {2}}, {{0, 1}, {int64_t{1} << 50}}), "got no sample 2");
  expect(complaint({{1}, {2}}, {{0, 1}, {-1}}), "expected sample numbers of at least 0, got -1 in item 1");
  expect(complaint({{1}, {2, 3}}, {{0, 1}, {2}}),
         "m_index_to_metric.idx: curriculum: expected one number for each item, got 2 numbers for item 1");
  expect(complaint({{1}, {}}, {{0, 1}, {2}}), "got 0 numbers for item 1");
}

TEST_F(DeepSpeedIndex, WithoutItsOtherHalfIsRefused) {
  write_deepspeed_index(dir_, "m", std::vector<double>{3, 1, 2});
  remove("m_index_to_sample");
  EXPECT_EQ(complaint("m_index_to_metric"),
            (dir_ / "m_index_to_sample.idx").string() +
                ": curriculum: expected both index_to_metric and index_to_sample, each as .bin and .idx, got no such file; "
                "copy it to this folder, or use " + (dir_ / "m_sample_to_metric").string());
  write_deepspeed_index(dir_, "m", std::vector<double>{3, 1, 2});
  remove("m_index_to_metric");
  EXPECT_NE(complaint("m_index_to_sample.idx").find("m_index_to_metric.idx: curriculum: expected both"), std::string::npos);
}

TEST_F(DeepSpeedIndex, OfPercentilesHasNoValues) {
  write("m_index_to_sample_percentile_merged", {{0}, {2}, {1}});
  EXPECT_EQ(complaint("m_index_to_sample_percentile_merged"),
            (dir_ / "m_index_to_sample_percentile_merged.idx").string() +
                ": curriculum: expected a file with values, got a file with percentiles only; use " +
                (dir_ / "m_index_to_metric").string());
  write("m_sample_to_metric", {{3}, {1}, {2}});
  EXPECT_NE(complaint("m_index_to_sample_percentile_merged").find("m_sample_to_metric"), std::string::npos);
}

TEST_F(DeepSpeedIndex, ThatIsTornIsRefused) {
  write("m_sample_to_metric", {{3}, {1, 2}});
  EXPECT_NE(complaint("m_sample_to_metric").find("one number for each sample, got 2 numbers for sample 1"),
            std::string::npos);
  write_deepspeed_index(dir_, "m", std::vector<double>{3, 1, 2, 1, 9});
  std::filesystem::resize_file(dir_ / "m_sample_to_metric.idx", 60);
  EXPECT_NE(complaint("m_sample_to_metric").find("a truncated one"), std::string::npos);
  write_file_atomically(dir_ / "m_sample_to_metric.idx", std::string(200, 'x'));
  EXPECT_NE(complaint("m_sample_to_metric").find("something else"), std::string::npos);
  std::filesystem::resize_file(dir_ / "m_index_to_sample.bin", 39);
  EXPECT_NE(complaint("m_index_to_sample").find("expected 5 numbers in the .bin, got 39 bytes"), std::string::npos);
}

TEST_F(DeepSpeedIndex, WithANoteThatSaysNothingIsRefused) {
  write_deepspeed_index(dir_, "m", std::vector<double>{0.5, 1});
  for (const char* note : {"", "{}", "{\"scale\": 0}", "{\"scale\": \"1\"}", "[1]"}) {
    write_file_atomically(dir_ / "m_scale.json", note);
    EXPECT_NE(complaint("m_sample_to_metric").find("m_scale.json: curriculum: expected"), std::string::npos) << note;
  }
}

TEST_F(DeepSpeedIndex, WantsAFolder) {
  write_file_atomically(dir_ / "text.txt", "x");
  auto said = [&](const std::filesystem::path& folder) -> std::string {
    try {
      write_deepspeed_index(folder, "m", std::vector<double>{1});
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(said(dir_ / "text.txt"),
            (dir_ / "text.txt").string() + ": --deepspeed: expected a folder, got a file; use another folder");
  EXPECT_NE(said(dir_ / "text.txt/inside").find("text.txt/inside: --deepspeed: expected a folder, got"), std::string::npos);
  EXPECT_EQ(said(dir_ / "new/inside"), "no error");
  EXPECT_EQ(said(dir_ / "new/inside"), "no error") << "what is there is written over";
}

}  // namespace
}  // namespace megalith
