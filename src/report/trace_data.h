// A Chrome trace made small for the report's timeline.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace megalith {

// From Chrome's trace events ({"traceEvents": [...]}, of which those with ph X are ops, times in
// microseconds, args {block, micro}) of two processes: the one called "predicted..." (or, where it has no
// name, number 1), and any other, measured. tid is the lane, called by its thread_name or else by its events'
// category. Gives
//   names: [..], blocks: [..], lanes: {tid: name}, left_out: n,
//   predicted, measured: [[lane, name index, start, length, block index or -1, micro or -1], ...] by start,
// each beginning at 0. Of very many events the shortest are left out. Throws when it is no trace.
nlohmann::json trace_data(const nlohmann::json& trace);

}  // namespace megalith
