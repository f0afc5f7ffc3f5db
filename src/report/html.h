// report.html: everything a run directory says, as one file that needs nothing else.
#pragma once
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace megalith {

// Reads config.yaml, plan.json, metrics.jsonl, summary.json and trace.json of a run directory and writes
// report.html beside them, atomically. Any of them may be missing or unreadable: its section says so. Throws
// UserError when `run_dir` is no directory or cannot be written.
void write_report(const std::filesystem::path& run_dir);

// What write_report embeds (schema in report_data.cpp); apart for tests.
nlohmann::json report_data(const std::filesystem::path& run_dir);

// The page around it.
std::string render_report(const nlohmann::json& data);

}  // namespace megalith
