#include "planner/links.h"

#include "base/error.h"
#include "planner/input.h"
#include "planner/measurements.h"
#include "planner/own_cache.h"
#include "planner/plan.h"

#include "families/list.h"
#include "memory/allocator.h"

namespace megalith {
namespace {

constexpr auto kTensor = static_cast<size_t>(Axis::tensor), kData = static_cast<size_t>(Axis::data),
               kContext = static_cast<size_t>(Axis::context);

struct LinkSpeeds : OwnCache {
  static Links measured() {
    Links links{};
    links[kData] = {1e-6, 2e9};
    links[kTensor] = {3e-6, 4e9};
    return links;
  }
};

TEST_F(LinkSpeeds, AreKeptForTheLayoutThatTheyWereMeasuredFor) {
  const LinkPlace place{{.data = 2, .tensor = 2}};
  EXPECT_FALSE(known_links(place, 1));
  EXPECT_EQ(measured_links(place, 1, measured)[kTensor].bytes_per_s, 4e9);
  const auto known = known_links(place, 1);
  ASSERT_TRUE(known);
  EXPECT_EQ((*known)[kData].latency_s, 1e-6);
  EXPECT_EQ((*known)[kTensor].bytes_per_s, 4e9);
  EXPECT_EQ((*known)[kContext].bytes_per_s, 0);  // the layout has no such axis
  EXPECT_FALSE(known_links(place, 2));           // other threads
  EXPECT_FALSE(known_links({{.data = 4}}, 1));
  EXPECT_FALSE(known_links({{.data = 2, .tensor = 2}, "0:a 0:a 1:b 1:b"}, 1));
  EXPECT_TRUE(known_links({}, 1));  // one rank has no links
}

TEST_F(LinkSpeeds, OfTheContextAxisDependOnItsForm) {
  const auto try_links = [] {
    Links links{};
    links[kContext] = links[kData] = {1e-6, 2e9};
    return links;
  };
  measured_links({{.context = 2, .context_form = ContextForm::ring}}, 1, try_links);
  EXPECT_TRUE(known_links({{.context = 2, .context_form = ContextForm::ring}}, 1));
  EXPECT_FALSE(known_links({{.context = 2, .context_form = ContextForm::ulysses}}, 1));
}

struct RankPlans : OwnCache {
  void SetUp() override {
    OwnCache::SetUp();
    install_allocator();
    config.run.dir = folder;
    config.model.shape = {&llama_family, 2, 64, 4, 2, 128, 500, 64};
    config.data.sequence = 64;
    config.train.batch = 8;
    config.train.micro_batch = 4;
    config.train.threads = 1;
    config.parallel.data = 2;
  }
  Plan plan(std::vector<int32_t> host_of = {}) const {
    PlanInput input = input_of(config);
    input.host_ranks = 2;
    return make_plan(input, Measuring::forbidden, {.host_of = std::move(host_of)});
  }
  Config config;
};

TEST_F(RankPlans, TakeMeasuredLinksWhereThereAreSome) {
  const Plan before = plan();
  EXPECT_FALSE(before.links_measured);
  EXPECT_EQ(before.speeds.links[kData].bytes_per_s, typical_links()[kData].bytes_per_s);
  measured_links({{.data = 2}}, 1, [] {
    Links links{};
    links[kData] = {1e-3, 1e6};  // slow ones
    return links;
  });
  const Plan after = plan();
  EXPECT_TRUE(after.links_measured);
  EXPECT_EQ(after.speeds.links[kData].bytes_per_s, 1e6);
  EXPECT_GT(after.predicted.seconds, before.predicted.seconds + 0.1);
  config.parallel.data = 1;
  EXPECT_TRUE(plan().links_measured);  // there are no links to measure
}

TEST_F(RankPlans, CountThatRanksOfOneHostShareItsMemory) {
  const Plan one_host = plan({0, 0}), two_hosts = plan({0, 1});
  EXPECT_EQ(one_host.columns, (std::vector<RankColumn>{{{0}, 2}}));
  EXPECT_EQ(two_hosts.columns, (std::vector<RankColumn>{{{0}, 1}}));
  EXPECT_GT(one_host.predicted.seconds, two_hosts.predicted.seconds);
  // An update only reads and writes memory.
  const auto seconds_of_updates = [](const Plan& plan) {
    double sum = 0;
    for (size_t op = 0; op < plan.step.ops.size(); op++)
      if (name(plan.step.ops[op].kind) == "optimizer step")
        sum += plan.predicted.spans[op].end - plan.predicted.spans[op].start;
    return sum;
  };
  const double each = one_host.speeds.op_overhead_s * static_cast<double>(one_host.blocks.size());
  EXPECT_NEAR(seconds_of_updates(one_host) - each, 2 * (seconds_of_updates(two_hosts) - each),
              0.1 * seconds_of_updates(one_host));
}

}  // namespace
}  // namespace megalith
