// Reduces a Chrome trace to the data of the report's timeline.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace megalith {

// Reads Chrome's trace events ({"traceEvents": [...]}). Events with ph X are ops; times are in microseconds, args are
// {block, micro}. The process with a name "predicted..." (or number 1, if it has no name) is the prediction. All others
// are measured. tid is the lane. Its name is its thread_name, or otherwise the category of its events. Returns
//   names: [..], blocks: [..], lanes: {tid: name}, left_out: n,
//   predicted, measured: [[lane, name index, start, length, block index or -1, micro or -1], ...] by start.
// Both begin at time 0. If there are too many events, leaves out the shortest. Throws if this is not a trace.
nlohmann::json trace_data(const nlohmann::json& trace);

}  // namespace megalith
