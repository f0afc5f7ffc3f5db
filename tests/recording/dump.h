// Parts of `recording_dump`. It prints as text what a build computes without training, so that the texts of two builds can
// be compared. The words of the output are defined here or come from YAML. So if a C++ name changes, this source changes,
// but the output does not. Op names are the exception: they come from the schedule (tests/recording/names.json).
#pragma once
#include <string>
#include <vector>

#include "config/config.h"

namespace megalith::recording {

// A model as the `model` section of a YAML file, and the objective that fits it.
struct NamedModel {
  std::string name, yaml, objective = "causal";
};
std::vector<NamedModel> preset_models();
std::vector<NamedModel> small_models();  // each architecture, each router, tied and untied
std::vector<NamedModel> all_models();

// A run of 8 sequences of 64 tokens, 2 at once; `more` are lines of YAML that are added.
Config read_run(const NamedModel& model, const std::string& more = "");

// Sections of the dump. Each prints to stdout.
void dump_facts();
void dump_parameters();
void dump_hugging_face();
void dump_strategies();
void dump_schedules();
void dump_costs();
void dump_memory();
void dump_checks();
void dump_drawings();

}  // namespace megalith::recording
