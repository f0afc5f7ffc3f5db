#include "cli/engine_commands.h"

#include <memory>
#include <utility>

#include "cli/run_file.h"

namespace megalith {
namespace {

// Completes a command. The engine program runs it; another program only parses its options.
template <class Arguments>
Command run_by(const EngineCommands* engine,
               CommandResult (*EngineCommands::*action)(const CommandContext&, const Arguments&),
               std::shared_ptr<Arguments> arguments, Command command) {
  if (engine)
    command.run = [action = engine->*action, arguments](const CommandContext& context) {
      return action(context, *arguments);
    };
  command.arguments = std::move(arguments);
  return command;
}

constexpr const char* kOutlookRanks =
    "Predict for this number of ranks (processes) on this host. Default: as many as the settings in `parallel` need.";

}  // namespace

Command train_command(const EngineCommands* engine) {
  auto a = std::make_shared<TrainArguments>();
  return run_by(
      engine, &EngineCommands::train, a,
      {"train", "Train a model, or resume the run if its directory has a checkpoint.",
       "The run directory is run.dir, by default runs/NAME for NAME.yaml. `megalith config` explains all settings. Ctrl-C "
       "saves a checkpoint and stops. The same command then resumes the run.",
       {"megalith train first.yaml", "megalith train first.yaml run.dir=runs/two --ranks 2 train.steps=20"},
       {run_path(a->path), run_overrides(a->overrides),
        {"--ranks N", &a->ranks,
         "Start N processes (ranks) that divide the work. Restart them after a crash. Default: one process, or the "
         "processes that mpirun or srun started.",
         {.least = 1}},
        {"--hosts HOST:RANKS,...", &a->hosts,
         "Hosts on which the ranks run, with the number of ranks of each host, such as a:2,b:2. The ranks are started with "
         "ssh. Default: this host, or the nodes of the Slurm job.",
         {.needs = "--ranks"}},
        {"--interface NAME", &a->interface, kInterfaceHelp, {.needs = "--ranks"}},
        {"--dry-run", &a->dry_run,
         "Check settings, files and memory, and show the plan. Nothing is trained or written."}}});
}

Command memory_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::memory, a,
                {"memory", "Show how much memory and disk a run needs, without training.",
                 "If the run does not fit into memory.ram, the command lists settings to change and exits with code 2. "
                 "docs/guides/memory.md explains the table.",
                 {"megalith memory first.yaml", "megalith memory large.yaml memory.ram=300MiB memory.spill=spill"},
                 {run_path(a->path), run_overrides(a->overrides), {"--ranks N", &a->ranks, kOutlookRanks, {.least = 1}}}});
}

Command simulate_command(const EngineCommands* engine) {
  auto a = std::make_shared<OutlookArguments>();
  return run_by(engine, &EngineCommands::simulate, a,
                {"simulate", "Predict the time of one training step and show its timeline, without training.",
                 "The first call measures the speed of the machine, which takes a few seconds.",
                 {"megalith simulate first.yaml --svg step.svg",
                  "megalith simulate first.yaml --ranks 2 parallel.pipeline=2"},
                 {run_path(a->path), run_overrides(a->overrides),
                  {"--ranks N", &a->ranks, kOutlookRanks, {.least = 1}},
                  {"--svg FILE", &a->svg, "Also draw the timeline and the memory into this SVG file. Default: no file."},
                  {"--trace FILE", &a->trace,
                   "Also write the timeline to this JSON file, which ui.perfetto.dev opens. Default: no file."}}});
}

Command analyze_command(const EngineCommands* engine) {
  auto a = std::make_shared<AnalyzeArguments>();
  return run_by(
      engine, &EngineCommands::analyze, a,
      {"analyze", "Compute the difficulty of every training sample, for curricula.",
       "A curriculum trains on easy samples first (docs/guides/efficiency.md). The results are shown here and in "
       "analysis/analysis.html in the run directory.",
       {"megalith analyze first.yaml", "megalith analyze first.yaml --metric length,rarity --examples 3"},
       {run_path(a->path), run_overrides(a->overrides),
        {"--metric NAME,...", &a->metrics,
         "Metrics to compute, separated by commas: length, rarity, length_rarity, compression, loss, or a metric that the "
         "curriculum reads from a file. Default: the metrics by which the curriculum filters. If there are none: length, "
         "rarity, length_rarity and compression.",
         {.one_value = true, .separator = ','}},  // the next argument may be KEY=VALUE
        {"--checkpoint CKPT", &a->checkpoint,
         "Model that computes the metric loss: a run directory, a checkpoint or a Hugging Face folder. Default: the model "
         "that the curriculum names."},
        {"--deepspeed DIR", &a->deepspeed,
         "Also write index files to this folder, in the format of DeepSpeed. Default: no files."},
        {"--examples N", &a->examples, "Number of samples to show: the N easiest and the N hardest.",
         {.shows_default = true, .least = 0, .most = 1000}}}});
}

Command generate_command(const EngineCommands* engine) {
  auto a = std::make_shared<GenerateArguments>();
  return run_by(
      engine, &EngineCommands::generate, a,
      {"generate", "Generate text that continues a prompt.",
       "The model chooses one token after the other at random. Likely tokens are chosen more often. The options change this "
       "choice.",
       {"megalith generate runs/first --prompt \"You may\" --tokens 40 --temperature 0.7",
        "megalith generate runs/first --interactive"},
       {{"CKPT", &a->path, kModelPath, {.required = true}},
        {"--prompt TEXT", &a->prompts,
         "Text to continue. Can be repeated: several prompts run as one batch. Default: the model begins a new document.",
         {.one_value = true}},
        {"--prompts FILE", &a->prompts_file,
         "File with one prompt per line. In a .json or .jsonl file, each prompt is a text, or an object with the text in "
         "the field `prompt`. Default: no file."},
        {"-i,--interactive", &a->interactive, "Read lines from standard input and continue each of them. Ctrl-D ends the "
                                              "session."},
        {"--tokens N", &a->tokens, "Largest number of tokens to generate for a prompt.", {.shows_default = true, .least = 0}},
        {"--temperature X", &a->temperature,
         "Randomness. Below 1, likely tokens become more likely. With 0, always take the most likely token.",
         {.shows_default = true, .least = 0}},
        {"--top-k K", &a->top_k, "Choose only among the K most likely tokens. With 0, choose among all tokens.",
         {.shows_default = true, .least = 0}},
        {"--top-p P", &a->top_p,
         "Choose only among the most likely tokens that together have the probability P, from 0 to 1.",
         {.shows_default = true, .least = 0, .most = 1}},
        {"--repetition-penalty X", &a->repetition_penalty,
         "Above 1, tokens that already occurred become less likely.",
         {.shows_default = true, .least = 0.01, .most = 100}},
        {"--stop TEXT", &a->stop, "End the generated text before this text. Can be repeated. Default: none.",
         {.one_value = true}},
        {"--seed N", &a->seed, "Seed of the random choices. The same seed gives the same text.",
         {.shows_default = true}}}});
}

Command eval_command(const EngineCommands* engine) {
  auto a = std::make_shared<EvalArguments>();
  return run_by(engine, &EngineCommands::eval, a,
                {.name = "eval",
                 .about = "Measure how well a model predicts a text, answers questions, or finds similar texts.",
                 .details = "A file for --choices has one question per line. `answer` is the index of the right choice, "
                            "counted from 0:\n"
                            "  {\"context\": \"Two and two are\", \"choices\": [\"four.\", \"ten.\"], \"answer\": 0}\n"
                            "A file for --pairs has two texts per line, and a number that says how similar they are:\n"
                            "  {\"a\": \"A cat sleeps.\", \"b\": \"A cat is asleep.\", \"score\": 4.5}\n"
                            "A file for --retrieval has a text per line, and the text that it should find:\n"
                            "  {\"query\": \"How old is Rome?\", \"positive\": \"Rome was founded in 753 BC.\"}",
                 .examples = {"megalith eval runs/first --data my.txt",
                              "megalith eval runs/first --data my.txt --window 64 --stride 32"},
                 .options = {{"CKPT", &a->path, kModelPath, {.required = true}},
                             {"--data FILE", &a->files,
                              "Text files or JSON lines to evaluate. Patterns such as 'books/*.txt' are allowed."},
                             {"--window N", &a->window,
                              "Number of tokens that the model reads at once. Default: the context of the model.",
                              {.least = 1}},
                             {"--stride N", &a->stride,
                              "Number of tokens from the start of a window to the start of the next one. Default: the "
                              "window, so that windows do not overlap.",
                              {.least = 1}},
                             {"--choices FILE", &a->choices, "File with multiple-choice questions, as shown above."},
                             {"--joint TEXT", &a->joint,
                              "Text between context and choice, unless there is white space already. Default: one space."},
                             {"--pairs FILE", &a->pairs,
                              "File with scored pairs, as shown above. Shows the rank correlation (Spearman) between the "
                              "scores and the similarity of the vectors."},
                             {"--retrieval FILE", &a->retrieval,
                              "File with queries, as shown above. Shows how often the vector of a query is most similar "
                              "to the vector of the right text, among the texts of all queries."}},
                 .one_required = {"--data", "--choices", "--pairs", "--retrieval"}});
}

Command embed_command(const EngineCommands* engine) {
  auto a = std::make_shared<EmbedArguments>();
  return run_by(engine, &EngineCommands::embed, a,
                {"embed", "Turn texts into vectors. Similar texts get similar vectors.",
                 "Models that were trained with objective: contrastive make good vectors, and so do models of "
                 "sentence-transformers. For other models, the vector is the mean of the outputs.",
                 {"megalith embed runs/first my.txt --out vectors.npy",
                  "megalith embed runs/first my.txt --out vectors.safetensors"},
                 {{"CKPT", &a->path, kModelPath, {.required = true}},
                  {"FILE", &a->files,
                   "Text files. Each line is a text and gets one vector. In a .json or .jsonl file, each object has a text.",
                   {.required = true}},
                  {"--out FILE", &a->out,
                   "File to write. With the ending .npy, it is a NumPy array. Otherwise it is a safetensors file with the "
                   "tensor `embeddings`.",
                   {.required = true}},
                  {"--field NAME", &a->field, "Field of JSON objects that contains the text.", {.shows_default = true}}}});
}

Command doctor_command(const EngineCommands* engine) {
  auto a = std::make_shared<DoctorArguments>();
  return run_by(engine, &EngineCommands::doctor, a,
                {"doctor", "Measure the speed of this machine: processor, memory and disk.",
                 "The result is kept in ~/.cache/megalith. Plans and predictions of later runs use it.",
                 {"megalith doctor", "megalith doctor --spill ."},
                 {{"--spill DIR", &a->spill,
                   "Also measure how fast the disk of this folder reads and writes, as a run with memory.spill does. "
                   "Default: only the writing speed of the current folder."}}});
}

}  // namespace megalith
