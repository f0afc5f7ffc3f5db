#include "data/metric_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "temp_dir.h"

namespace megalith {
namespace {

class MetricFile : public testing::Test {
 protected:
  std::string complaint(const std::filesystem::path& path, int64_t samples = 3, const std::string& data = "d") {
    try {
      read_metric(path, {"m", samples, data});
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  std::filesystem::path text(const std::string& content) {
    write_file_atomically(dir_ / "values.txt", content);
    return dir_ / "values.txt";
  }
  const TempDir folder_;
  const std::filesystem::path dir_ = folder_.path();
};

TEST_F(MetricFile, IsWrittenAsideAndGoneOnFrom) {
  const MetricSubject subject{"m", 5, "d"};
  const std::filesystem::path path = dir_ / "m.metric";
  {
    MetricWriter writer(path, subject);
    writer.add(std::vector<double>{1, 2.5, -3});
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(has_metric(path, subject));
  std::ofstream(path.string() + ".part", std::ios::app) << "torn";  // an incomplete number
  {
    MetricWriter other(dir_ / "n.metric", {"n", 5, "d"});
    EXPECT_EQ(other.done(), 0);
  }
  MetricWriter writer(path, subject);
  EXPECT_EQ(writer.done(), 3);
  writer.add(std::vector<double>{4, 5e300});
  writer.finish();
  EXPECT_TRUE(has_metric(path, subject));
  EXPECT_FALSE(has_metric(path, {"m", 5, "e"}));
  EXPECT_EQ(read_metric(path, subject), (std::vector<double>{1, 2.5, -3, 4, 5e300}));
  EXPECT_EQ(complaint(path, 5, "e"),
            path.string() + ": curriculum: expected values for the data of this run (5 samples, e), got values for "
                            "other data (5 samples, d); "
                            "run `megalith analyze` on this configuration again");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_NE(complaint(path, 5).find("a truncated one"), std::string::npos);
}

TEST_F(MetricFile, IsGoneOnFromTheFirstValueThatACrashLost) {
  const MetricSubject subject{"m", 2000, "d", "any name of a model"};
  const std::filesystem::path path = dir_ / "m.metric", part = path.string() + ".part";
  std::vector<double> values(2000);
  for (size_t i = 0; i < values.size(); i++) values[i] = i % 3 == 0 ? 0 : 1.0 / static_cast<double>(i);
  {
    MetricWriter writer(path, subject);
    writer.add(std::span(values).first(1500));
  }
  EXPECT_EQ(MetricWriter(path, subject).done(), 1500);  // values of 0 are not lost
  std::string content = read_file(part);
  const size_t head = content.find('\n') + 1;
  EXPECT_EQ(head % 8, 0u);
  std::fill_n(content.begin() + 4096, 4096, '\0');  // a block that was not written to the disk, before one that was
  std::ofstream(part, std::ios::binary) << content;
  MetricWriter writer(path, subject);
  EXPECT_EQ(writer.done(), static_cast<int64_t>((4096 - head) / 8));
  writer.add(std::span(values).subspan(static_cast<size_t>(writer.done())));
  writer.finish();
  const std::vector<double> there = read_metric(path, subject);
  EXPECT_EQ(there, values);
  EXPECT_FALSE(std::signbit(there[0]));
}

TEST_F(MetricFile, WithAFirstLineOfAnotherKindIsRefused) {
  for (const char* wrong : {R"("metric":"m","samples":"3","data":"d"})", R"("metric":"m","samples":3,"data":7})",
                            R"("metric":"m","samples":3,"data":"d","model":[]})", R"("metric":"m"})", "[3]}", "torn"}) {
    const std::string said = complaint(text(fmt::format("{{\"megalith_metric\":1,{}\n123456781234567812345678", wrong)));
    EXPECT_NE(said.find("values.txt: curriculum: expected a first line that describes the values, got \"{"),
              std::string::npos) << said;
  }
}

TEST_F(MetricFile, OfTheUserIsOneNumberALine) {
  EXPECT_EQ(read_metric(text("1\n2.5\r\n-3e4"), {"m", 3, ""}), (std::vector<double>{1, 2.5, -3e4}));
  EXPECT_NE(complaint(text("1\n2\n")).find("one number for each of the 3 training samples, got 2"), std::string::npos);
  EXPECT_NE(complaint(text("1\nx\n3\n")).find("values.txt:2: curriculum: expected one number per line, got \"x\""),
            std::string::npos);
  EXPECT_NE(complaint(text("1\nnan\n3\n")).find("expected finite numbers, got nan for sample 1"), std::string::npos);
}

TEST_F(MetricFile, OfTheUserMayHaveWhiteSpaceAndPluses) {
  EXPECT_EQ(read_metric(text(" +1\t\n\t2.5  \r\n-3e4\n\n \t\r\n"), {"m", 3, ""}), (std::vector<double>{1, 2.5, -3e4}));
  EXPECT_NE(complaint(text("1\n2\n \n3\n")).find("values.txt:3: curriculum: expected one number per line, got \"\""),
            std::string::npos);
  for (const char* wrong : {"+-1", "++1", "+", "1 2", "1,5"})
    EXPECT_NE(complaint(text(fmt::format("{}\n2\n3\n", wrong))).find(fmt::format("values.txt:1: curriculum: expected one "
                                                                                 "number per line, got \"{}\"", wrong)),
              std::string::npos);
}

TEST_F(MetricFile, ThatIsNoTextIsShownInPrintableCharacters) {
  const std::string said = complaint(text(std::string("\x93NUMPY\x01\0v\x1b[31m", 14) + "\n3\n"));
  EXPECT_NE(said.find(R"(got "\x93NUMPY\x01\x00v\x1b[31m")"), std::string::npos) << said;
}

}  // namespace
}  // namespace megalith
