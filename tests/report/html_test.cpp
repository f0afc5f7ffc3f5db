// The page's parts; that an HTML parser agrees is report_page.py's to show.
#include "report/html.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "report/metrics.h"
#include "report/series.h"
#include "report/trace_data.h"
#include "schedule/op_type.h"
#include "temp_dir.h"

namespace megalith {
namespace {

using nlohmann::json;

StepMetrics at_step(int64_t step) {
  StepMetrics m;
  m.step = step;
  m[MetricId::loss] = 5;
  m[MetricId::tokens] = 100 * step;
  m[MetricId::step_s] = 2;
  m[MetricId::mem_peak_bytes] = 1000 + step;
  return m;
}

size_t times(const std::string& text, const std::string& piece) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) n++;
  return n;
}

json embedded_data(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  size_t from = page.find(open) + open.size();
  return parse_json(page.substr(from, page.find("</script>", from) - from));
}

TEST(Report, AnEmptyRunDirectoryStillHasAPageThatNamesWhatIsMissing) {
  TempDir dir;
  write_report(dir.path());
  json data = embedded_data(dir.read("report.html"));
  for (const char* name : {"config.yaml", "plan.json", "metrics.jsonl", "summary.json", "trace.json"})
    EXPECT_EQ(data["files"][name], "missing") << name;
  EXPECT_TRUE(data["so_far"].is_null());
  EXPECT_EQ(data["run"], dir.path().filename().string());
}

TEST(Report, DrawsLengthsAndLimitsOfACurriculumOnce) {
  TempDir dir;
  {
    MetricsLog log(dir / "metrics.jsonl", 0);
    for (int64_t step : {1, 2}) {
      StepMetrics m = at_step(step);
      m[MetricId::length] = 64 * step;
      m[MetricId::kept] = 32 * step;
      m.difficulty = {{"length", 64.0 * static_cast<double>(step)}, {"rarity", 10.5 * static_cast<double>(step)}};
      log.append(m);
    }
  }
  json curves = report_data(dir.path())["curves"];
  EXPECT_EQ(curves["length"], (json{{"x", {1, 2}}, {"mean", {64.0, 128.0}}}));
  EXPECT_EQ(curves["kept"], (json{{"x", {1, 2}}, {"mean", {32.0, 64.0}}}));
  EXPECT_EQ(curves["difficulty/rarity"], (json{{"x", {1, 2}}, {"mean", {10.5, 21.0}}}));
  EXPECT_TRUE(curves["difficulty/length"]["x"].empty());
}

TEST(Report, DrawsTheChartsOfTheTableWithOneCurveASeries) {
  TempDir dir;
  MetricsLog(dir / "metrics.jsonl", 0).append(at_step(1));
  const json data = report_data(dir.path());
  EXPECT_EQ(data["charts"][0]["title"], "Loss");  // the page draws the first one large
  EXPECT_EQ(data["charts"][0]["series"].size(), 2u);
  for (const json& chart : data["charts"])
    for (const json& series : chart["series"])
      EXPECT_TRUE(data["curves"].contains(series["key"].get<std::string>())) << series;
}

TEST(Report, HoldsPlanSummaryConfigurationAndCurves) {
  TempDir dir;
  {
    MetricsLog log(dir / "metrics.jsonl", 0);
    StepMetrics checked = at_step(2);
    checked[MetricId::valid_loss] = 4.5;
    checked.sample = "Once upon";
    log.append(at_step(1));
    log.append(checked);
  }
  dir.write("plan.json", R"({"budget_bytes": 4096, "predicted": {"step_s": 1.5}})");
  dir.write("summary.json", R"({"state": "finished", "steps": 2})");
  dir.write("config.yaml", "data:\n  train: [a.txt, b.txt]\n  sequence: 64\ntrain: {batch: 8}\n");
  json data = report_data(dir.path());
  EXPECT_EQ(data["plan"]["predicted"]["step_s"], 1.5);
  EXPECT_EQ(data["summary"]["state"], "finished");
  EXPECT_EQ(data["facts"]["train"], (json{"a.txt", "b.txt"}));
  EXPECT_EQ(data["facts"]["sequence"], "64");
  EXPECT_EQ(data["curves"]["loss"], (json{{"x", {1, 2}}, {"mean", {5.0, 5.0}}}));
  EXPECT_EQ(data["curves"]["valid_loss"], (json{{"x", {2}}, {"mean", {4.5}}}));
  EXPECT_EQ(data["samples"]["list"][0], (json{{"step", 2}, {"text", "Once upon"}}));
  EXPECT_EQ(data["so_far"]["tokens"], 200);
  EXPECT_EQ(data["so_far"]["peak_bytes"], 1002);
  EXPECT_EQ(embedded_data(render_report(data)), data);
}

TEST(Report, ExplainsEveryOp) {
  TempDir dir;
  const json legend = report_data(dir.path())["op_legend"];
  for (const OpType* type : op_types()) {
    ASSERT_TRUE(legend.contains(std::string(type->name))) << type->name;
    EXPECT_GT(legend[std::string(type->name)]["about"].get<std::string>().size(), 10u) << type->name;
  }
}

TEST(Report, FilesThatCannotBeReadAreNamedWithTheReasonAndTheRestIsShown) {
  TempDir dir;
  dir.write("plan.json", R"({"predicted": )");
  dir.write("trace.json", R"({"events": []})");
  dir.write("summary.json", R"({"steps": 2})");
  dir.write("config.yaml", "a: [1\n");  // no YAML, but text all the same
  json data = report_data(dir.path());
  EXPECT_NE(data["files"]["plan.json"].get<std::string>().find("plan.json:1:15: expected JSON"), std::string::npos);
  EXPECT_EQ(data["files"]["trace.json"], "no list of traceEvents");
  EXPECT_EQ(data["summary"]["steps"], 2);
  EXPECT_EQ(data["config"], "a: [1\n");
}

TEST(Report, TextOfTheRunCannotLeaveItsPlace) {
  json data{{"run", "a<b>&\"{{js}}"}, {"sample", "</script><script>alert(1)</script><!-- {{css}} \xFF"}};
  std::string page = render_report(data);
  EXPECT_EQ(times(page, "<script"), 2u);
  EXPECT_EQ(times(page, "</script>"), 2u);
  EXPECT_NE(page.find("<title>a&lt;b&gt;&amp;&quot;{{js}} · Megalith</title>"), std::string::npos);
  EXPECT_NE(page.find("{{css}}"), std::string::npos);  // the sample's, untouched
}

TEST(Report, NeedsNothingFromOutside) {
  std::string page = render_report({{"run", "x"}});
  for (const char* piece : {"http:", "https:", "src=", "href=", "@import", "url(h", "fetch(", "XMLHttp"})
    EXPECT_EQ(page.find(piece), std::string::npos) << piece;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);  // the browser then refuses all external resources
}

TEST(Report, ManyStepsStayLightAndKeepTheirExtremes) {
  std::vector<Point> points;
  for (int64_t i = 1; i <= 100000; i++) points.push_back({i, std::sin(static_cast<double>(i))});
  points[70000].y = 50;
  points[70001].y = -50;
  points[5].y = std::nan("");
  json curve = bucketed(points, 1000);
  EXPECT_EQ(curve["x"].size(), 1000u);
  EXPECT_EQ(*std::max_element(curve["max"].begin(), curve["max"].end()), 50.0);
  EXPECT_EQ(*std::min_element(curve["min"].begin(), curve["min"].end()), -50.0);
  EXPECT_GE(curve["x"].front(), 1);
  EXPECT_LE(curve["x"].back(), 100000);
  for (size_t b = 0; b < 1000; b++) {
    EXPECT_LE(curve["min"][b], curve["mean"][b]);
    EXPECT_LE(curve["mean"][b], curve["max"][b]);
  }
}

TEST(Report, SkippedStepsAreCountedAndListedAsWritten) {
  TempDir dir;
  {
    MetricsLog log(dir / "metrics.jsonl", 0);
    for (int64_t step = 1; step <= 500; step++) {
      StepMetrics m = at_step(step);
      m.skipped = step % 2 == 0;
      if (m.skipped) m[MetricId::loss] = std::nan("");
      log.append(m);
    }
  }
  json data = report_data(dir.path());
  EXPECT_EQ(data["skipped"]["count"], 250);
  EXPECT_EQ(data["skipped"]["list"].size(), 100u);
  EXPECT_EQ(data["skipped"]["list"].front()["step"], 2);
  EXPECT_EQ(data["skipped"]["list"].back()["step"], 500);
  EXPECT_EQ(data["skipped"]["list"].front()["loss"], "nan");
  EXPECT_EQ(data["curves"]["loss"]["x"].size(), 250u);
}

TEST(Report, ARunDirectoryThatIsNoneIsTheUsersMistake) {
  TempDir dir;
  try {
    write_report(dir / "absent");
    FAIL() << "written";
  } catch (const UserError& error) {
    EXPECT_EQ(error.parts.where, (dir / "absent").string());
    EXPECT_EQ(error.parts.expected, "a run directory");
  }
}

json op(const char* name, int pid, int tid, double ts, double dur, const json& args = json::object()) {
  return {{"name", name}, {"cat", "compute"}, {"ph", "X"}, {"ts", ts},
          {"dur", dur},   {"pid", pid},       {"tid", tid}, {"args", args}};
}

TEST(ReportTrace, OpsAreSplitIntoPredictedAndMeasuredFromZeroOn) {
  const json where{{"block", "layer 1"}, {"micro", 0}};
  json trace = trace_data({{"traceEvents",
                            {op("backward of layer 1, micro-batch 0", 2, 0, 130, 20, where),
                             op("forward of layer 1, micro-batch 0", 2, 0, 100, 30, where),
                             op("clip", 1, 4, 7, 1)}}});
  EXPECT_EQ(trace["names"], (json{"backward", "forward", "clip"}));
  EXPECT_EQ(trace["measured"], (json{{0, 1, 0.0, 30.0, 0, 0}, {0, 0, 30.0, 20.0, 0, 0}}));
  EXPECT_EQ(trace["predicted"], (json{{4, 2, 0.0, 1.0, -1, -1}}));
  EXPECT_EQ(trace["blocks"], json{"layer 1"});
}

TEST(ReportTrace, NamesOfProcessesAndThreadsDecideWhereTheyAreGiven) {
  auto naming = [](const char* what, const char* name) {
    return json{{"ph", "M"}, {"name", what}, {"pid", 2}, {"tid", 3}, {"args", {{"name", name}}}};
  };
  json named = trace_data(
      {naming("process_name", "predicted"), naming("thread_name", "write"), op("save", 2, 3, 0, 5)});
  EXPECT_EQ(named["predicted"].size(), 1u);
  EXPECT_EQ(named["lanes"]["3"], "write");
}

TEST(ReportTrace, OfVeryManyOpsTheShortestAreLeftOutAndCounted) {
  json events = json::array();
  for (int i = 0; i < 13000; i++) events.push_back(op("forward", 2, 0, i * 10, i < 1000 ? 1 : 9));
  json trace = trace_data({{"traceEvents", events}});
  EXPECT_EQ(trace["left_out"], 1000);
  EXPECT_EQ(trace["measured"].size(), 12000u);
  EXPECT_EQ(trace["measured"][0][3], 9.0);
}

}  // namespace
}  // namespace megalith
