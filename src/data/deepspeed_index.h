// The index files of DeepSpeed's data analysis: lists of numbers in the .bin/.idx layout of text/shards.h, with one
// difference: numbers have any of its types, whose codes from 6 on are not Megatron's and have changed over time. The
// width of a number tells them apart.
//   NAME_sample_to_metric  item i holds the value of sample i
//   NAME_index_to_metric   item k holds the k-th of the distinct values, rising
//   NAME_index_to_sample   item k lists the samples that have it
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace megalith {

// Whether PREFIX.idx (or a name that ends so, or in .bin) is there.
bool is_deepspeed_index(const std::filesystem::path& name);

// The numbers of NAME_sample_to_metric, one an item. UserError where it is anything else.
std::vector<double> read_deepspeed_values(const std::filesystem::path& name);

// Writes the three pairs of files for a metric into a folder, each aside and renamed. DeepSpeed's are whole numbers:
// where the values are not, they are multiplied by a million and rounded. Gives what they were multiplied by.
double write_deepspeed_index(const std::filesystem::path& folder, const std::string& metric, std::span<const double> values);

}  // namespace megalith
