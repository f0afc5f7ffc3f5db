#include "schedule/show/draw.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "schedule/random_schedules.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

Schedule drawn() {
  return {.blocks = make_blocks(2, false),
          .micros = 1,
          .training = true,
          .ops = {{.kind = ops::forward, .block = 0, .micro = 0, .after = {}},
                  {.kind = ops::loss, .block = 1, .micro = 0, .after = {0}},
                  {.kind = ops::save, .block = 0, .lane = Lane::write, .after = {}},
                  {.kind = ops::optimizer_step, .block = 0, .lane = Lane::send, .after = {1, 2}}}};
}

TEST(Draw, EachLaneIsARowInProportionToTime) {
  const std::vector<Span> spans{{0, 0.5}, {0.5, 1.5}, {0, 0.75}, {1.5, 2}};
  EXPECT_EQ(draw_timeline(drawn(), spans, 40),
            "compute |FFFFFFLLLLLLLLLLLL......|  75 %\n"
            "write   |SSSSSSSSS...............|  38 %\n"
            "send    |..................UUUUUU|  25 %\n"
            "         0                    2 s\n"
            "         . idle  F forward  L loss\n"
            "         U optimizer step  S save\n");
}

TEST(Draw, OpsThatDidNotRunAreLeftOut) {
  const std::vector<Span> spans{{0, 0.001}, {0.001, -1}, {}, {}};
  const std::string text = draw_timeline(drawn(), spans, 40);
  EXPECT_NE(text.find("compute |FFFFFFFFFFFFFFFFFFFFFFFF| 100 %"), std::string::npos) << text;
  EXPECT_NE(text.find("1 ms"), std::string::npos) << text;
  EXPECT_NE(draw_timeline(drawn(), std::vector<Span>(4), 40).find("compute |........"), std::string::npos);
}

TEST(Draw, NoLineIsWiderThanAsked) {
  const Schedule schedule = with_save(training_step(make_blocks(5, true), 3));
  std::vector<Span> spans;
  for (size_t op = 0; op < schedule.ops.size(); op++)
    spans.push_back({0.123 * double(op), 0.123 * double(op + 1)});
  for (int columns : {40, 80, 100, 173}) {
    std::istringstream lines(draw_timeline(schedule, spans, columns));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
  }
}

TEST(Trace, PredictedAndMeasuredAreTwoProcessesInMicroseconds) {
  const Schedule schedule = drawn();
  const std::vector<Span> predicted{{0, 0.5}, {0.5, 1.5}, {0, 0.75}, {1.5, 2}},
      measured{{0, 0.6}, {0.6, 1}, {0, 1}, {}};
  const auto trace = parse_json(trace_json({{"predicted", &schedule, predicted},
                                                       {"measured \"quoted\"", &schedule, measured},
                                                       {"predicted", &schedule, predicted, 10}}));
  std::map<int, std::string> processes;
  std::map<int, int> ops;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
    if (event.at("ph") == "X") ops[event.at("pid")]++;
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{1, "predicted"}, {2, "measured \"quoted\""}}));
  EXPECT_EQ(ops, (std::map<int, int>{{1, 8}, {2, 3}}));
  auto event = [&](int pid, const std::string& name, int nth = 0) {
    for (const auto& e : trace.at("traceEvents")) {
      if (e.at("ph") == "X" && e.at("pid") == pid && e.at("name") == name && nth-- == 0) return e;
    }
    return nlohmann::json();
  };
  const auto loss = event(1, "loss of head, micro-batch 0");
  EXPECT_DOUBLE_EQ(loss.at("ts"), 500'000);
  EXPECT_DOUBLE_EQ(loss.at("dur"), 1'000'000);
  EXPECT_EQ(loss.at("args").at("micro"), 0);
  EXPECT_EQ(event(2, "save of embedding").at("tid"), static_cast<int>(Lane::write) + 1);
  EXPECT_DOUBLE_EQ(event(1, "optimizer step of embedding", 1).at("ts"), 11'500'000);
}

}  // namespace
}  // namespace megalith
