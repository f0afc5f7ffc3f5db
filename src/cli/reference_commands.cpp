#include <ATen/Parallel.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/commands.h"
#include "config/from_deepspeed.h"
#include "config/options.h"
#include "config/presets.h"
#include "config/reference.h"
#include "memory/disk_way.h"
#include "memory/machine.h"
#include "planner/calibration.h"
#include "planner/measurements.h"

namespace megalith {
namespace {

CommandResult doctor(const CommandContext& context, const std::string& spill) {
  const int64_t cores = usable_cores();
  at::set_num_threads(static_cast<int>(cores));
  ModelShape shape = find_preset("gpt2-124m").shape;
  fill_defaults(shape);
  if (!spill.empty() && !std::filesystem::is_directory(spill))
    throw UserError({"command line", "--spill", "a folder", spill, ""});
  MachineSpeeds speeds = calibrate({shape, {4, 256}}, cores, std::filesystem::current_path(), spill);
  std::string text = fmt::format(
      "processor         {}\ncores             {}\nmemory to use     {}\ncompute           {:.0f} GFLOP/s (float32, "
      "layers and head of gpt2-124m)\nmemory bandwidth  {:.1f} GB/s\ndisk write here   {:.2f} GB/s\n",
      processor_name(), cores, show(usable_memory()), speeds.flops / 1e9, speeds.memory_bandwidth / 1e9,
      speeds.disk_write / 1e9);
  nlohmann::json result{{"processor", processor_name()},
                        {"cores", cores},
                        {"memory_bytes", usable_memory().value},
                        {"flops", speeds.flops},
                        {"memory_bandwidth", speeds.memory_bandwidth},
                        {"disk_write", speeds.disk_write}};
  if (!spill.empty()) {
    const std::string way = describe(choose_disk_way(spill));
    text += fmt::format("spilling by       {}\nspill read        {:.2f} GB/s\nspill write       {:.2f} GB/s\n"
                        "spill both        {:.2f} GB/s together\n",
                        way, speeds.spill_read / 1e9, speeds.spill_write / 1e9, speeds.spill_mixed / 1e9);
    result["spill"] = {{"way", way},
                       {"read", speeds.spill_read},
                       {"write", speeds.spill_write},
                       {"mixed", speeds.spill_mixed}};
  }
  print(context, text + fmt::format("measurements in   {}\n", calibration_file().string()));
  return {ExitCode::done, result};
}

}  // namespace

void add_reference(CLI::App& app, CommandContext& context) {
  {
    CLI::App* command = app.add_subcommand("config", "explain settings");
    auto key = std::make_shared<std::string>();
    auto schema = std::make_shared<bool>(false);
    command->add_option("KEY", *key, "a setting or a section; none: all");
    command->add_flag("--schema", *schema, "print the JSON schema for editors");
    CLI::App* translate = command->add_subcommand("from-deepspeed", "data efficiency settings of a ds_config.json as ours");
    auto file = std::make_shared<std::string>();
    translate->add_option("FILE", *file, "a ds_config.json")->required();
    command->callback([=, &context] {
      context.action = [=, &context] {
        if (!file->empty()) {
          const FromDeepSpeed ours = from_deepspeed(read_file(*file), *file);
          std::string shown;
          for (const std::string& note : ours.notes) shown += "# " + note + "\n";
          print(context, shown + ours.yaml);
          return CommandResult{ExitCode::done, {{"yaml", ours.yaml}, {"notes", ours.notes}}};
        }
        std::string text = *schema ? reference_schema() : explain(*key);
        print(context, text);
        return CommandResult{ExitCode::done, {{"text", text}}};
      };
    });
  }
  {
    CLI::App* command = app.add_subcommand("presets", "list the models known by name");
    command->callback([&context] {
      context.action = [&context] {
        print(context, list_presets());
        nlohmann::json all = nlohmann::json::array();
        for (const Preset& preset : presets()) {
          ModelShape shape = preset.shape;
          fill_defaults(shape);
          all.push_back({{"name", preset.name}, {"parameters", parameter_count(shape)}});
        }
        return CommandResult{ExitCode::done, {{"presets", all}}};
      };
    });
  }
  {
    CLI::App* command = app.add_subcommand("doctor", "measure this machine");
    auto spill = std::make_shared<std::string>();
    command->add_option("--spill", *spill, "also measure the disk under this folder, as memory.spill would use it");
    command->callback([=, &context] { context.action = [=, &context] { return doctor(context, *spill); }; });
  }
}

}  // namespace megalith
