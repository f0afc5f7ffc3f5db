#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "config/presets.h"
#include "engine/threads.h"
#include "memory/io_method.h"
#include "memory/machine.h"
#include "planner/calibration.h"
#include "planner/measurements.h"

namespace megalith {

CommandResult run_doctor(const CommandContext& context, const DoctorArguments& arguments) {
  const std::string& spill = arguments.spill;
  const int64_t cores = usable_cores();
  set_threads(cores);
  ModelShape shape = find_preset("gpt2-124m").shape;
  fill_defaults(shape);
  if (!spill.empty() && !std::filesystem::is_directory(spill))
    throw UserError({"command line", "--spill", "a folder", spill, "create it first"});
  MachineSpeeds speeds = calibrate({shape, {4, 256}}, {cores, std::filesystem::current_path(), spill});
  std::string text = fmt::format(
      "processor         {}\ncores             {}\nusable memory     {}\ncompute           {:.0f} GFLOP/s (float32, "
      "layers and head of gpt2-124m)\nmemory bandwidth  {:.1f} GB/s\ndisk write        {:.2f} GB/s (this folder)\n",
      processor_name(), cores, show(usable_memory()), speeds.flops / 1e9, speeds.memory_bandwidth / 1e9,
      speeds.disk_write / 1e9);
  nlohmann::json result{{"processor", processor_name()},
                        {"cores", cores},
                        {"memory_bytes", usable_memory().value},
                        {"flops", speeds.flops},
                        {"memory_bandwidth", speeds.memory_bandwidth},
                        {"disk_write", speeds.disk_write}};
  if (!spill.empty()) {
    const std::string way = describe(choose_io_method(spill));
    text += fmt::format("spill method      {}\nspill read        {:.2f} GB/s\nspill write       {:.2f} GB/s\n"
                        "spill both        {:.2f} GB/s (read and write together)\n",
                        way, speeds.spill_read / 1e9, speeds.spill_write / 1e9, speeds.spill_mixed / 1e9);
    result["spill"] = {{"way", way},
                       {"read", speeds.spill_read},
                       {"write", speeds.spill_write},
                       {"mixed", speeds.spill_mixed}};
  }
  print(context, text + fmt::format("saved in          {}\n", calibration_file().string()));
  return {ExitCode::done, result};
}

}  // namespace megalith
