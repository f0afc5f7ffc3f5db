#include "report/trace_data.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"

namespace megalith {
namespace {

using nlohmann::json;

constexpr size_t kMostEvents = 12000;  // per timeline

struct Event {
  int64_t lane;
  int64_t name;
  double start, length;  // microseconds
  int64_t block;
  int64_t micro;
};

class Names {
 public:
  int64_t index(const std::string& name) {
    auto [entry, added] = indices_.try_emplace(name, static_cast<int64_t>(list_.size()));
    if (added) list_.push_back(name);
    return entry->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, int64_t> indices_;
  std::vector<std::string> list_;
};

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : print_json(value); }

double number(const json& event, const char* key) {
  auto field = event.find(key);
  return field != event.end() && field->is_number() ? field->get<double>() : 0;
}

std::string text_of(const json& event, const char* key) {
  auto field = event.find(key);
  return field == event.end() ? std::string() : text_of(*field);
}

// "backward of layer 3, micro-batch 1" -> "backward": block and micro-batch are arguments.
std::string kind_of(const std::string& name) { return name.substr(0, name.find(" of ")); }

// Keeps the longest kMostEvents events, sorts them by start, and shifts the first to 0. Returns how many were left out.
size_t tidy(std::vector<Event>& events) {
  size_t left_out = 0;
  if (events.size() > kMostEvents) {
    left_out = events.size() - kMostEvents;
    std::nth_element(events.begin(), events.begin() + kMostEvents, events.end(),
                     [](const Event& a, const Event& b) { return a.length > b.length; });
    events.resize(kMostEvents);
  }
  std::ranges::stable_sort(events, {}, &Event::start);
  double zero = events.empty() ? 0 : events.front().start;
  for (Event& event : events) event.start -= zero;
  return left_out;
}

json rows(const std::vector<Event>& events) {
  json list = json::array();
  auto tenth = [](double us) { return static_cast<double>(static_cast<int64_t>(us * 10 + 0.5)) / 10; };
  for (const Event& e : events)
    list.push_back(json::array({e.lane, e.name, tenth(e.start), tenth(e.length), e.block, e.micro}));
  return list;
}

}  // namespace

json trace_data(const json& trace) {
  // The format also allows a plain list.
  const json* list = trace.is_array() ? &trace : nullptr;
  if (trace.is_object() && trace.contains("traceEvents")) list = &trace["traceEvents"];
  if (!list || !list->is_array()) throw std::runtime_error("no list of traceEvents");
  Names names, blocks;
  json lanes = json::object();
  std::map<int64_t, std::string> titles;  // by process
  std::map<int64_t, std::vector<Event>> by_process;
  for (const json& event : *list) {
    if (!event.is_object()) continue;
    const json args = event.value("args", json::object());
    const auto process = static_cast<int64_t>(number(event, "pid"));
    const auto lane = static_cast<int64_t>(number(event, "tid"));
    const std::string phase = text_of(event, "ph"), name = text_of(event, "name");
    if (phase == "M" && name == "process_name") titles[process] = text_of(args, "name");
    if (phase == "M" && name == "thread_name") lanes[std::to_string(lane)] = text_of(args, "name");
    if (phase != "X") continue;
    Event e{lane, names.index(kind_of(name)), number(event, "ts"), number(event, "dur"), -1, -1};
    if (args.contains("block")) e.block = blocks.index(text_of(args, "block"));
    if (args.contains("micro") && args["micro"].is_number_integer()) e.micro = args["micro"].get<int64_t>();
    lanes.emplace(std::to_string(lane), text_of(event, "cat"));
    by_process[process].push_back(e);
  }
  std::vector<Event> predicted, measured;
  for (auto& [process, events] : by_process) {
    auto title = titles.find(process);
    bool planned = title == titles.end() ? process == 1 : title->second.starts_with("predicted");
    auto& side = planned ? predicted : measured;
    side.insert(side.end(), events.begin(), events.end());
  }
  size_t left_out = tidy(predicted) + tidy(measured);
  return {{"names", names.list()}, {"blocks", blocks.list()}, {"lanes", lanes}, {"left_out", left_out},
          {"predicted", rows(predicted)}, {"measured", rows(measured)}};
}

}  // namespace megalith
