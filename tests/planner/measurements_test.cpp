#include "planner/measurements.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "planner/own_cache.h"

namespace megalith {
namespace {

struct Cache : OwnCache {
  // Returns what a new process gets if it would measure `measured`. On a busy machine its thread waits an hour for a core.
  double get(double measured, bool busy = false) {
    double waited = 0;
    Measurements known(1, /*may_measure=*/true, [&] { return waited; });
    const double value = known.get("speed", [&] {
      if (busy) waited += 3600;
      return measured;
    });
    known.save();
    return value;
  }
  // Changes the file as if ten minutes had passed.
  void let_time_pass() {
    auto all = parse_json(read_file(calibration_file()));
    for (auto& machine : all)
      for (auto& entry : machine)
        if (entry.is_object()) entry["until"] = entry["until"].get<int64_t>() - 601;
    write_file_atomically(calibration_file(), print_json(all));
  }
};

TEST_F(Cache, WhatWasMeasuredIsKept) {
  EXPECT_EQ(get(7), 7);
  let_time_pass();
  EXPECT_EQ(get(8), 7);
}

TEST_F(Cache, WhatWasMeasuredOnABusyMachineIsMeasuredAgainAfterAWhile) {
  EXPECT_EQ(get(7, /*busy=*/true), 7);
  EXPECT_EQ(get(8), 7);  // the next start does not measure again
  let_time_pass();
  Measurements looked_at(1, /*may_measure=*/false);
  EXPECT_EQ(looked_at.get("speed", {}), 7);  // better than nothing
  EXPECT_TRUE(looked_at.complete());
  EXPECT_EQ(get(8), 8);
}

// The second number comes from the same measurement as the first, and took no time.
TEST_F(Cache, WhatWasMeasuredInOneGoIsBusyTogether) {
  double waited = 0;
  Measurements known(1, /*may_measure=*/true, [&] { return waited; });
  known.get("first", [&] {
    waited += 3600;
    return 1.0;
  });
  known.get("second", [] { return 2.0; });
  known.save();
  let_time_pass();
  Measurements again(1, /*may_measure=*/true);
  EXPECT_EQ(again.get("second", [] { return 3.0; }), 3);
}

// The report shows the warning, also for a run that finds the measurements in the cache.
TEST_F(Cache, ABusyMachineIsWarnedAboutWhereverItsMeasurementsAreUsed) {
  get(7, /*busy=*/true);
  Measurements cached(1, /*may_measure=*/false);
  EXPECT_EQ(cached.warning(), "") << "nothing was asked for";
  cached.get("speed", {});
  EXPECT_NE(cached.warning().find("other programs used the cores"), std::string::npos) << cached.warning();
  let_time_pass();
  get(8);
  Measurements at_rest(1, /*may_measure=*/false);
  at_rest.get("speed", {});
  EXPECT_EQ(at_rest.warning(), "");
}

TEST_F(Cache, WhatIsDamagedOrOfAnotherMachineIsNotTaken) {
  get(7);
  for (const char* damage : {"{\"broken", "[]", "{\"x\": 3}"}) {
    write_file_atomically(calibration_file(), damage);
    EXPECT_EQ(get(8), 8);
  }
  Measurements of_more_threads(2, /*may_measure=*/false);
  of_more_threads.get("speed", {});
  EXPECT_FALSE(of_more_threads.complete());
}

}  // namespace
}  // namespace megalith
