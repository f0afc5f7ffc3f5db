#include "schedule/show/draw_svg.h"

#include <gtest/gtest.h>

#include <regex>

#include "schedule/random_schedules.h"
#include "schedule/predict/simulator.h"
#include "schedule/toy_speeds.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

struct Drawn {
  Schedule step;
  Simulation simulated;
  std::string svg;
};

Drawn drawn(int64_t budget) {
  auto blocks = make_blocks(5, true);
  blocks[1].name = "layer <0> & \"more\"";
  Drawn d;
  d.step = with_residency(training_step(blocks, 2, ComputeOrder::by_block), std::vector<Placement>(5, Placement::on_disk), 2);
  d.simulated = simulate(d.step, predict_costs(d.step, kToySpeeds));
  d.svg = draw_svg({"a <title>", "sub & title", &d.step, d.simulated.spans, 1000, budget});
  return d;
}

size_t times(const std::string& text, const std::string& piece) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) n++;
  return n;
}

TEST(DrawSvg, EveryWideOpIsARectangleInProportionToItsTime) {
  const Drawn d = drawn(0);
  const OpId op = find(d.step, ops::backward, 2, 0);
  const double share = (d.simulated.spans[op].end - d.simulated.spans[op].start) / d.simulated.seconds;
  const std::string name = "<title>backward of layer 1, micro-batch 0: ";
  const size_t at = d.svg.find(name);
  ASSERT_NE(at, std::string::npos);
  const std::string rectangle = d.svg.substr(d.svg.rfind("<rect", at), at - d.svg.rfind("<rect", at));
  std::smatch width;
  ASSERT_TRUE(std::regex_search(rectangle, width, std::regex("width='([0-9.]+)'")));
  EXPECT_NEAR(std::stod(width[1]), share * 1040, 1.5);  // tolerance: the gap between ops and the rounding
}

TEST(DrawSvg, NamesWhatItShowsAndEscapesWhatIsNotItsOwn) {
  const std::string svg = drawn(0).svg;
  for (const char* text : {">compute<", ">read<", ">write<", ">load updated<", ">offload gradient<", ">writes a gradient to disk<", ">staging<", ">process<",
                           "a &lt;title&gt;", "sub &amp; title", "layer &lt;0&gt; &amp; &quot;more&quot;"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(times(svg, "<svg"), 1u);
  EXPECT_EQ(times(svg, "<text"), times(svg, "</text>"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(DrawSvg, TheBudgetIsALineOnlyWhereItIsNear) {
  const int64_t peak = drawn(0).simulated.peak_bytes + 1000;
  EXPECT_EQ(times(drawn(peak * 5 / 4).svg, ">budget<"), 1u);
  EXPECT_EQ(times(drawn(peak * 100).svg, ">budget<"), 0u);
}

}  // namespace
}  // namespace megalith
