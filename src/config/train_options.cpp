#include "config/train_options.h"

#include <deque>

#include "config/option_types.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

// Stores a text for the whole program: an option keeps only a view of its condition.
std::string_view kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

// Restricts an option to the optimizers that read it.
Entry for_optimizers(Entry option, bool (*reads_it)(const OptimizerRow&)) {
  return std::move(option).when(kept("train.optimizer is " + optimizer_words(reads_it)),
                                [=](const Config& c) { return reads_it(row_of(c.train.optimizer)); });
}

// State can be packed if it is per element. An optimizer whose only state is momentum has no state if momentum is 0.
std::string_view where_state_can_be_packed() {
  return kept(fmt::format(
      "train.optimizer is {}, or {} with momentum (the state of {} is small)",
      optimizer_words([](const OptimizerRow& row) { return row.elementwise && !row.momentum; }, ", "),
      optimizer_words([](const OptimizerRow& row) { return row.elementwise && row.momentum; }),
      optimizer_words([](const OptimizerRow& row) { return !row.elementwise; })));
}
bool state_can_be_packed(const Config& c) {
  const OptimizerRow& optimizer = row_of(c.train.optimizer);
  return optimizer.elementwise && (!optimizer.momentum || c.train.momentum > 0);
}

bool decays_to_an_end(const Config& c) {
  return c.train.decay == Decay::cosine || c.train.decay == Decay::linear || c.train.decay == Decay::wsd;
}

// The only key that sets another key: the length of a run in tokens. Reads data.sequence and train.batch, which come
// earlier in the table and so are already set.
Entry tokens_as_steps() {
  Entry e = entry("train.tokens", OptionType::count, between(1, 9e18), "from train.steps",
                  "Length of the run in tokens, instead of train.steps. It is rounded up to whole steps.");
  e.set = [range = e.range](Config& c, const Yaml& value) {
    auto tokens = read_count(value, range);
    int64_t a_step = c.step_sequences() * c.data.sequence;
    if (tokens) c.train.steps = *tokens / a_step + (*tokens % a_step != 0);
    return tokens.has_value();
  };
  e.get = [](const Config&) { return std::nullopt; };
  return e;
}

}  // namespace

std::vector<Option> train_options() {
  return {
      count("train.batch", FIELD(train.batch), between(1, kMany), "32", "Number of sequences per step, of all ranks "
                                                                        "together.")
          .in("sequences"),
      count_or(
          "auto", 0, "train.micro_batch", FIELD(train.micro_batch), between(1, kMany), "auto",
          "Number of sequences that are computed at once. It must be a divisor of train.batch. auto: chosen from the "
          "shape of the model and the memory limit, once for the whole run. Losses are bit-identical only between runs "
          "with the same micro-batch.")
          .in("sequences"),
      count("train.steps", FIELD(train.steps), between(1, 9e18), "1000", "Length of the run in steps.")
          .in("steps")
          .free(),
      tokens_as_steps().in("tokens").free(),
      choice("train.schedule_by", FIELD(train.schedule_by), "tokens if train.tokens is given, else steps",
             "Unit in which the length of the run, warm-up, decay and validations are counted. With tokens, a step in "
             "these settings stands for the tokens of one full batch. With layer_tokens, a token that some layers drop "
             "counts less.")
          .free(),
      count_or("auto", 0, "train.threads", FIELD(train.threads), between(1, 4096), "auto",
               "Number of compute threads of a rank. auto: the cores of the host divided by its ranks, chosen once for "
               "the whole run."),
      choice("train.optimizer", FIELD(train.optimizer), "adamw", "Algorithm that updates the parameters."),
      choice("train.optimizer_state", FIELD(train.optimizer_state), "fp32",
             "Format of the optimizer state between updates: 4, 2 or 1 bytes per number (int8 with one scale per 256 "
             "numbers). Rounding is random, so that small changes are not lost.")
          .when(where_state_can_be_packed(), state_can_be_packed),
      number("train.lr", FIELD(train.lr), above(0), "0.0003", "Learning rate after warm-up.").free(),
      number("train.min_lr", FIELD(train.min_lr), from(0), "train.lr / 10",
             "Learning rate at the end of a cosine, linear or wsd decay.")
          .free()
          .unless([](const Config& c) { return !decays_to_an_end(c); }),
      count("train.warmup", FIELD(train.warmup), between(0, 9e18), "0",
            "Number of steps at the start in which the learning rate rises to train.lr.")
          .in("steps")
          .free(),
      choice("train.decay", FIELD(train.decay), "cosine",
             "How the learning rate falls after warm-up. wsd: it stays at train.lr until the last train.decay_steps "
             "steps. If a run resumes before these steps, train.steps can grow without a jump of the learning rate.")
          .free(),
      count("train.decay_steps", FIELD(train.decay_steps), between(0, 9e18),
            "train.steps / 5, at most the steps after warm-up",
            "Number of steps at the end of a wsd run in which the learning rate falls linearly to train.min_lr. 0: it "
            "does not fall.")
          .in("steps")
          .free()
          .unless([](const Config& c) { return c.train.decay != Decay::wsd; }),
      for_optimizers(two_numbers("train.betas", FIELD(train.beta1), FIELD(train.beta2), fraction(), "[0.9, 0.95]",
                                 "Decay rates of the first and the second moment of the gradient.")
                         .free(),
                     [](const OptimizerRow& row) { return row.betas; }),
      for_optimizers(
          number("train.eps", FIELD(train.eps), above(0), "1e-08", "Small number that is added to the square root of the "
                                                                   "second moment.").free(),
          [](const OptimizerRow& row) { return row.eps; }),
      for_optimizers(number("train.momentum", FIELD(train.momentum), fraction(), "0.9",
                            "Fraction of the last update that the next update contains.")
                         .free(),
                     [](const OptimizerRow& row) { return row.momentum; }),
      number("train.weight_decay", FIELD(train.weight_decay), from(0), "0.1",
             "Decoupled weight decay. Norms and biases have none.")
          .free(),
      number("train.clip", FIELD(train.clip), from(0), "1", "Largest norm of the whole gradient. A larger gradient is "
                                                            "scaled down to this norm. 0: no clipping.")
          .free(),
      choice("train.precision", FIELD(train.precision), "fp32",
             "Precision of the computation. Parameters and moments stay fp32."),
      count("train.eval_every", FIELD(train.eval_every), between(0, 9e18), "200",
            "Number of steps between validations, counted in the unit of train.schedule_by. 0: only at the end.")
          .in("steps")
          .free(),
      count("train.eval_batches", FIELD(train.eval_batches), between(0, kMany), "20",
            "Number of batches per validation. 0: all validation data.")
          .in("batches")
          .free(),
      count("train.log_every", FIELD(train.log_every), between(1, kMany), "1",
            "Number of steps between log lines, if the output is not a terminal. metrics.jsonl has every step.")
          .in("steps")
          .free(),
      count("train.max_bad_steps", FIELD(train.max_bad_steps), between(1, kMany), "10",
            "The run stops after this many skipped steps in a row. A step is skipped if its loss or gradient is not "
            "finite.")
          .in("steps")
          .free(),
      count("train.sample_tokens", FIELD(train.sample_tokens), between(0, kMany), "0",
            "Length of a text sample that is generated with each validation. 0: no sample.")
          .in("tokens")
          .free(),
      text("train.sample_prompt", FIELD(train.sample_prompt), "none", "Text with which the sample begins.")
          .free()
          .when("train.sample_tokens is above 0", [](const Config& c) { return c.train.sample_tokens > 0; }),
  };
}

#undef FIELD

}  // namespace megalith
