// The index files of DeepSpeed's data analysis: lists of numbers in the .bin/.idx layout of text/shards.h. There is one
// difference: numbers may have any of DeepSpeed's types. Its type codes from 6 on differ from Megatron's and have
// changed over time. The width of a number tells them apart.
//   NAME_sample_to_metric  item i holds the value of sample i
//   NAME_index_to_metric   item k holds the k-th of the distinct values, ascending
//   NAME_index_to_sample   item k lists the samples that have this value
// We also write NAME_scale.json, {"scale": S}: the stored values are S times the real ones, so that whole numbers can
// hold them. DeepSpeed ignores it. Files written by DeepSpeed have no scale; their values are used unchanged.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace megalith {

// True if both files of the name (PREFIX, or PREFIX with .bin or .idx) exist.
bool is_deepspeed_index(const std::filesystem::path& name);

// Returns a metric's value for each sample, divided by the scale. NAME_sample_to_metric (or a file of any other name)
// has one number per item. NAME_index_to_metric and NAME_index_to_sample are read together, up to the highest sample
// that they list. Throws UserError for anything else.
std::vector<double> read_deepspeed_values(const std::filesystem::path& name);

// Creates the folder for index files. Throws UserError if it cannot.
void make_deepspeed_folder(const std::filesystem::path& folder);

// Writes the three pairs of files for a metric and its scale into a folder, which it creates if necessary. All are
// written to temporary files and then renamed. If the renaming is interrupted, some files are missing, but new values
// never have an old scale. DeepSpeed's values are whole numbers. Other values are multiplied by a million and rounded.
// Returns the factor. Needs 8 bytes per sample, for the order that sorts the values.
double write_deepspeed_index(const std::filesystem::path& folder, const std::string& metric, std::span<const double> values);

}  // namespace megalith
