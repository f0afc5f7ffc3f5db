// The index files of DeepSpeed's data analysis: lists of numbers in the .bin/.idx layout of text/shards.h, with one
// difference: numbers have any of its types, whose codes from 6 on are not Megatron's and have changed over time. The
// width of a number tells them apart.
//   NAME_sample_to_metric  item i holds the value of sample i
//   NAME_index_to_metric   item k holds the k-th of the distinct values, rising
//   NAME_index_to_sample   item k lists the samples that have it
// Beside those we write lies NAME_scale.json, {"scale": S}: the values are S times what they stand for, so that whole
// numbers can hold them. DeepSpeed does not look at it; values of its own have none and are what they are.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace megalith {

// Whether both files of the name (PREFIX, or PREFIX with .bin or .idx) are there.
bool is_deepspeed_index(const std::filesystem::path& name);

// A metric's value of each sample, divided by the scale. From NAME_sample_to_metric (or a file of any other name),
// one number an item; from NAME_index_to_metric or NAME_index_to_sample with the other of the two, up to the highest
// sample they list. UserError where it is anything else.
std::vector<double> read_deepspeed_values(const std::filesystem::path& name);

// Makes the folder that index files are to be written to; UserError where that cannot be.
void make_deepspeed_folder(const std::filesystem::path& folder);

// Writes the three pairs of files for a metric into a folder, which is made if need be, and the note on their scale.
// All are written aside; an interruption while they get their names leaves some missing, never new values with an old
// note. DeepSpeed's are whole numbers: where the values are not, they are multiplied by a million and rounded.
// Gives what they were multiplied by. Takes 8 bytes a sample: the order that sorts the values.
double write_deepspeed_index(const std::filesystem::path& folder, const std::string& metric, std::span<const double> values);

}  // namespace megalith
