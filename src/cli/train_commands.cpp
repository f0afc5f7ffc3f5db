#include <memory>

#include "cli/commands.h"
#include "config/options.h"
#include "config/parse.h"
#include "report/html.h"
#include "train/train.h"

namespace megalith {
namespace {

// What is found out only when the run begins (data, folders, memory) is still a mistake in a file: say in which.
TrainResult train_from(const std::string& path, const std::vector<std::string>& overrides) {
  Config config = load_config(path, overrides);
  try {
    return train(std::move(config));
  } catch (const UserError& error) {
    if (!error.parts.where.empty() || !(find_option(error.parts.key) || is_section(error.parts.key))) throw;
    UserError::Parts parts = error.parts;
    parts.where = path;
    throw UserError(std::move(parts));
  }
}

}  // namespace

void add_train(CLI::App& app, CommandContext& context) {
  {
    CLI::App* command = app.add_subcommand("train", "train a model; run again: resume");
    auto path = std::make_shared<std::string>();
    auto overrides = std::make_shared<std::vector<std::string>>();
    command->add_option("RUN.yaml", *path, "the run's settings")->required();
    command->add_option("key=value", *overrides, "settings that replace the file's (values are YAML)");
    command->callback([=, &context] {
      context.action = [=, &context] {
        TrainResult result = train_from(*path, *overrides);
        const nlohmann::json& s = result.summary;
        if (s.value("state", "") == "finished")
          print(context, fmt::format("done: {} steps, loss {:.4f}{}\ncheckpoint  {}\n", s.value("steps", int64_t{0}),
                                     s.value("loss", 0.0),
                                     s.contains("valid_loss") ? fmt::format(", validation loss {:.4f}", s["valid_loss"].get<double>()) : "",
                                     s.value("checkpoint", "")));
        else if (s.value("state", "") == "interrupted")
          print(context, fmt::format("interrupted after step {}; the same command goes on from {}\n", s.value("steps", int64_t{0}),
                                     s.value("checkpoint", "")));
        return CommandResult{result.code, s};
      };
    });
  }
  {
    CLI::App* command = app.add_subcommand("report", "write a run's report.html again");
    auto dir = std::make_shared<std::string>();
    command->add_option("RUN_DIR", *dir, "a run directory")->required();
    command->callback([=, &context] {
      context.action = [=, &context] {
        write_report(*dir);
        std::string file = (std::filesystem::path(*dir) / "report.html").string();
        print(context, file + "\n");
        return CommandResult{ExitCode::done, {{"report", file}}};
      };
    });
  }
}

}  // namespace megalith
