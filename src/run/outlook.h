// What a run would be, found out without beginning it: for `memory` and `simulate`, which leave nothing behind.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/config.h"
#include "planner/plan.h"
#include "text/tokenizer.h"

namespace megalith {

// The folder whose weights a new run begins with; empty where it makes its own. Asked before anything takes time.
std::filesystem::path folder_to_start_from(const Config& config, const std::function<void(const std::string&)>& say);

// The shape may come from a folder, its vocabulary from a tokenizer of `vocab` tokens (0: there is none); after this
// the config is complete.
void complete_shape(Config& config, const std::filesystem::path& folder, int64_t vocab);

// The plan, with what it decided written into the config. What `train` runs and what the others show.
// A run that has begun is told only what it may change where it does not fit.
enum class Begun : bool { no, yes };
Plan plan_run(Config& config, Measuring measuring, const Seat& seat = {}, Begun begun = Begun::no);

// The settings of a run that goes on: what it was begun with, with the changes that are allowed. What another layout divides
// otherwise is decided again.
Config go_on_with(const Config& saved, const Config& now);

// What is known of a run that has not begun, or has stopped.
struct Prospect {
  Config config;                        // complete, but for what plan_run decides
  std::unique_ptr<Tokenizer> tokenizer; // kept loaded: it is part of what the process takes; may be null
  std::vector<std::string> notes;       // what was taken from where, a line each
  Begun begun = Begun::no;
};

// `config` with its layout resolved. From what there is already: the run's own decisions where it has begun, its tokenizer,
// the config's. Text is not tokenized and no tokenizer trained: of one that will be, the size asked for is taken. UserError
// as train's.
Prospect look_ahead(Config config);

}  // namespace megalith
