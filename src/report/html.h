// report.html: everything in a run directory as one self-contained file.
#pragma once
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace megalith {

// Reads config.yaml, plan.json, metrics.jsonl, summary.json and trace.json of a run directory, and writes report.html
// beside them, atomically. If one of them is missing or unreadable, its section says so. Throws UserError if `run_dir`
// is not a directory or cannot be written.
void write_report(const std::filesystem::path& run_dir);

// Returns the data that write_report embeds (schema in report_data.cpp). Public for tests.
nlohmann::json report_data(const std::filesystem::path& run_dir);

// Returns the page that contains `data`.
std::string render_report(const nlohmann::json& data);

}  // namespace megalith
