#include "launch/environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

namespace megalith::launch {
namespace {

// Parses Slurm's "4(x2),3": the number of tasks of each node in order, where (xN) repeats a number N times.
std::optional<int> tasks_of_node(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    int tasks = 0, nodes = 1;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), tasks);
    if (error != std::errc()) return std::nullopt;
    const std::string_view rest(end, static_cast<size_t>(item.data() + item.size() - end));
    if (rest.starts_with("(x")) std::from_chars(rest.data() + 2, rest.data() + rest.size(), nodes);
    if (node < nodes) return tasks;
    node -= nodes;
  }
  return std::nullopt;
}

}  // namespace

Environment environment(const std::function<const char*(const char*)>& get) {
  auto number = [&](const char* name) -> std::optional<int> {
    const char* text = get(name);
    if (!text) return std::nullopt;
    const std::string_view whole(text);
    int value = 0;
    auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
    if (error != std::errc() || end != whole.data() + whole.size() || value < 0) return std::nullopt;
    return value;
  };
  auto first = [&](auto... names) {
    std::optional<int> found;
    ((found = found ? found : number(names)), ...);
    return found;
  };
  Environment e;
  // A batch script has SLURM_PROCID too, but is not a step of several tasks.
  const bool slurm_step = number("SLURM_STEP_ID") && number("SLURM_STEP_NUM_TASKS").value_or(1) > 1;
  const auto rank = slurm_step ? first("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
                               : first("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK");
  if (!rank) return e;
  e.role = get(kSupervisorVariable) ? Role::supervised : Role::joined;
  e.rank = *rank;
  e.size = first("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS").value_or(1);
  e.local_rank = first("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID").value_or(0);
  if (auto size = first("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")) e.local_size = *size;
  else if (const char* list = get("SLURM_STEP_TASKS_PER_NODE"))
    e.local_size = tasks_of_node(list, number("SLURM_NODEID").value_or(0)).value_or(1);
  return e;
}

Environment environment() {
  return environment([](const char* name) { return std::getenv(name); });
}

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  return host_name() + "/" + boot;
}

}  // namespace megalith::launch
