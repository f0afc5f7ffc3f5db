#include "report/metrics.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "temp_dir.h"

namespace megalith {
namespace {

StepMetrics at_step(int64_t step) {
  StepMetrics m;
  m.step = step;
  m[MetricId::loss] = 10.0 / static_cast<double>(step);
  m[MetricId::lr] = 3e-4;
  m[MetricId::grad_norm] = 0.5;
  m[MetricId::tokens] = step * 512;
  m[MetricId::step_s] = 0.25;
  m[MetricId::tokens_per_s] = 2048;
  m[MetricId::mem_peak_bytes] = int64_t{5} << 30;
  return m;
}

std::vector<int64_t> steps_of(const std::vector<StepMetrics>& all) {
  std::vector<int64_t> steps;
  for (const StepMetrics& m : all) steps.push_back(m.step);
  return steps;
}

TEST(Metrics, EveryFieldComesBackBitForBit) {
  TempDir dir;
  StepMetrics m = at_step(7);
  m[MetricId::loss] = 0.1 + 0.2;  // needs all 17 digits
  m.epochs = {1.0 / 3, 2};
  m.skipped = true;
  m[MetricId::loss_scale] = 65536;
  m[MetricId::valid_loss] = 1.0 / 3;
  m[MetricId::save_s] = 1e-9;
  m[MetricId::disk_read_bytes] = int64_t{3} << 40;
  m[MetricId::disk_written_bytes] = 17;
  m.sample = "line\n\"quoted\" \t naïve";
  MetricsLog(dir / "metrics.jsonl", 0).append(m);
  auto all = read_metrics(dir / "metrics.jsonl");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].step, 7);
  EXPECT_EQ(all[0].values, m.values);
  EXPECT_EQ(all[0].epochs, m.epochs);
  EXPECT_TRUE(all[0].skipped);
  EXPECT_EQ(all[0].sample, m.sample);
}

TEST(Metrics, ALineIsPlainJsonWithTheDocumentedNames) {
  auto record = parse_json(to_json_line(at_step(2)));
  for (const char* key :
       {"step", "loss", "lr", "grad_norm", "tokens", "step_s", "tokens_per_s", "mem_peak_bytes"})
    EXPECT_TRUE(record.contains(key)) << key;
  EXPECT_EQ(record.size(), 8u);  // fields of events that did not happen are not written
}

// Other programs read the file: keys, their order and the form of numbers are part of the interface.
TEST(Metrics, ALineIsTheSameByteForByte) {
  StepMetrics m = at_step(4);
  m[MetricId::loss] = std::nan("");
  m.epochs = {0.5};
  m.skipped = true;
  m[MetricId::loss_scale] = 65536;
  m[MetricId::length] = 64;
  m[MetricId::kept] = 32;
  m[MetricId::layer_tokens] = 1024;
  m.difficulty = {{"length", 64}, {"rarity", std::numeric_limits<double>::infinity()}};
  m[MetricId::expert_aux] = 1.01;
  m[MetricId::expert_z] = 0.5;
  m[MetricId::expert_dropped] = 0;
  m[MetricId::expert_load] = 1.75;
  m[MetricId::expert_entropy] = 1.25;
  m.expert_layers = {{3, {0.5, 1.5}, 0.25, 0.625}};
  m[MetricId::disk_read_bytes] = 4096;
  m[MetricId::disk_written_bytes] = 17;
  m[MetricId::disk_experts_called] = 2;
  m[MetricId::valid_loss] = 2;
  m[MetricId::save_s] = 1e-9;
  m.sample = "a\nb";
  EXPECT_EQ(to_json_line(m),
            R"({"step":4,"loss":null,"loss_nonfinite":"nan","lr":0.0003,"grad_norm":0.5,"tokens":2048,"epoch":0.5,)"
            R"("step_s":0.25,"tokens_per_s":2048.0,"mem_peak_bytes":5368709120,"skipped":true,"loss_scale":65536.0,)"
            R"("length":64,"kept":32,"layer_tokens":1024.0,)"
            R"("difficulty":{"length":64.0,"rarity":null,"rarity_nonfinite":"inf"},)"
            R"("experts":{"aux":1.01,"z":0.5,"dropped":0.0,"load":1.75,"entropy":1.25,)"
            R"("layers":[{"layer":3,"load":[0.5,1.5],"dropped":0.25,"entropy":0.625}]},)"
            R"("disk":{"read_bytes":4096,"written_bytes":17,"experts_called":2},)"
            R"("valid_loss":2.0,"save_s":1e-09,"sample":"a\nb"})");
}

TEST(Metrics, OneDataSetHasAnEpochSeveralAList) {
  StepMetrics m = at_step(1);
  m.epochs = {1.5};
  EXPECT_EQ(parse_json(to_json_line(m))["epoch"], 1.5);
  EXPECT_EQ(parse_metrics_line(to_json_line(m))->epochs, m.epochs);
  m.epochs = {0.5, 3};
  EXPECT_EQ(parse_json(to_json_line(m))["epochs"], (nlohmann::json{0.5, 3.0}));
}

TEST(Metrics, ExpertsComeBackFromTheirLine) {
  StepMetrics m = at_step(1);
  m[MetricId::expert_load] = 1.75;
  m.expert_layers = {{3, {0.5, 1.5}, 0.25, 0.625}};
  EXPECT_EQ(parse_json(to_json_line(m))["experts"]["load"], 1.75);
  EXPECT_EQ(parse_metrics_line(to_json_line(m))->values, m.values);
  EXPECT_EQ(parse_metrics_line(to_json_line(m))->expert_layers, m.expert_layers);
}

TEST(Metrics, NonFiniteNumbersAreNullBesideTheirName) {
  StepMetrics m = at_step(1);
  m[MetricId::loss] = std::nan("");
  m[MetricId::grad_norm] = std::numeric_limits<double>::infinity();
  m[MetricId::valid_loss] = -std::numeric_limits<double>::infinity();
  auto record = parse_json(to_json_line(m));
  EXPECT_TRUE(record["loss"].is_null());
  EXPECT_EQ(record["loss_nonfinite"], "nan");
  EXPECT_EQ(record["grad_norm_nonfinite"], "inf");
  auto back = parse_metrics_line(to_json_line(m));
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::isnan(back->get(MetricId::loss)));
  EXPECT_EQ((*back)[MetricId::grad_norm], m[MetricId::grad_norm]);
  EXPECT_EQ((*back)[MetricId::valid_loss], m[MetricId::valid_loss]);
}

TEST(Metrics, BytesThatAreNotUtf8DoNotStopTheRecord) {
  StepMetrics m = at_step(1);
  m.sample = "cut \xE2\x82";
  auto back = parse_metrics_line(to_json_line(m));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->sample->substr(0, 4), "cut ");
}

TEST(Metrics, ResumingDropsLaterStepsAndTheTornEnd) {
  TempDir dir;
  {
    MetricsLog log(dir / "metrics.jsonl", 0);
    for (int64_t step = 1; step <= 10; step++) log.append(at_step(step));
  }
  std::string whole = dir.read("metrics.jsonl");
  dir.write("metrics.jsonl", whole + R"({"step":11,"loss":1.)");
  EXPECT_EQ(read_metrics(dir / "metrics.jsonl").size(), 10u);
  {
    MetricsLog log(dir / "metrics.jsonl", 6);
    EXPECT_EQ(steps_of(read_metrics(dir / "metrics.jsonl")), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
    log.append(at_step(7));
  }
  EXPECT_EQ(steps_of(read_metrics(dir / "metrics.jsonl")), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
  std::string kept = dir.read("metrics.jsonl");
  EXPECT_EQ(kept, whole.substr(0, kept.size()));  // the kept lines are unchanged byte for byte
}

TEST(Metrics, ResumingWhereNothingIsToBeDroppedLeavesTheFileAlone) {
  TempDir dir;
  { MetricsLog(dir / "metrics.jsonl", 0).append(at_step(1)); }
  std::filesystem::create_hard_link(dir / "metrics.jsonl", dir / "same");
  { MetricsLog(dir / "metrics.jsonl", 1).append(at_step(2)); }
  EXPECT_EQ(dir.read("same"), dir.read("metrics.jsonl"));  // not replaced: both names see the new record
}

TEST(Metrics, StartingAnewForgetsTheOldRun) {
  TempDir dir;
  { MetricsLog(dir / "metrics.jsonl", 0).append(at_step(1)); }
  MetricsLog log(dir / "metrics.jsonl", 0);
  EXPECT_TRUE(read_metrics(dir / "metrics.jsonl").empty());
}

TEST(Metrics, ACorruptedLineCostsOnlyItself) {
  TempDir dir;
  std::string first = to_json_line(at_step(1)) + "\n", third = to_json_line(at_step(3)) + "\n";
  dir.write("metrics.jsonl", first + std::string(40, '\0') + "\n[1,2]\n" + third);
  EXPECT_EQ(steps_of(read_metrics(dir / "metrics.jsonl")), (std::vector<int64_t>{1, 3}));
  MetricsLog log(dir / "metrics.jsonl", 3);
  EXPECT_EQ(dir.read("metrics.jsonl"), first + third);
}

TEST(Metrics, DamageIsNamedWithItsLineOnResumingAndReading) {
  TempDir dir;
  const auto line = [](int64_t step) { return to_json_line(at_step(step)) + "\n"; };
  log::start(/*quiet=*/true);
  const auto said = [&](const std::string& content, bool resumes) {
    dir.write("metrics.jsonl", content);
    testing::internal::CaptureStderr();
    if (resumes) MetricsLog(dir / "metrics.jsonl", 3);
    else read_metrics(dir / "metrics.jsonl");
    return testing::internal::GetCapturedStderr();
  };
  for (const bool resumes : {true, false}) {
    EXPECT_EQ(said(line(1) + line(2) + line(3), resumes), "");
    EXPECT_EQ(said(line(1) + line(2) + line(3) + "{\"step\":4,", resumes), "") << "a crash tears the last line";
    const std::string damaged = said(line(1) + "{\"step\":2,gar\n" + line(3), resumes);
    EXPECT_NE(damaged.find("metrics.jsonl:2: damaged line (not a step record); damaged lines, all ignored"), std::string::npos) << damaged;
    const std::string missing = said(line(1) + line(3), resumes);
    EXPECT_NE(missing.find("steps without a record: 1, the first is step 2"), std::string::npos) << missing;
  }
  EXPECT_NE(said(line(1), /*resumes=*/true).find("steps without a record: 2, the first is step 2"), std::string::npos);
}

// A limit on the file's size stands in for a full disk: it too cuts a record in the middle.
TEST(Metrics, RecordsThatAFullDiskRefusesAreWrittenLater) {
  TempDir dir;
  auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  MetricsLog log(dir / "metrics.jsonl", 0);
  log.append(at_step(1));
  rlimit tight = before;
  tight.rlim_cur = std::filesystem::file_size(dir / "metrics.jsonl") + 20;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  log.append(at_step(2));
  log.append(at_step(3));
  EXPECT_EQ(log.lost(), 2);
  EXPECT_EQ(dir.read("metrics.jsonl"), to_json_line(at_step(1)) + "\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  log.append(at_step(4));
  EXPECT_EQ(log.lost(), 0);
  std::string all;
  for (int64_t step = 1; step <= 4; step++) all += to_json_line(at_step(step)) + "\n";
  EXPECT_EQ(dir.read("metrics.jsonl"), all);
}

TEST(Metrics, AnUnwritableDirectoryIsTheUsersMistakeWithItsPath) {
  try {
    MetricsLog log("/proc/nowhere/metrics.jsonl", 0);
    FAIL() << "opened";
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.where, "/proc/nowhere/metrics.jsonl");
  }
}

}  // namespace
}  // namespace megalith
