#include "config/experts_options.h"

#include <algorithm>

#include "base/error.h"
#include "config/option_types.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.model.shape.experts.member; }

constexpr double kMost = 1e5;

bool uses_experts(const Config& c) {
  return c.model.shape.experts.any();
}
std::function<bool(const Config&)> with_router(std::initializer_list<Router> routers) {
  return [all = std::vector<Router>(routers)](const Config& c) {
    return uses_experts(c) && std::find(all.begin(), all.end(), c.model.shape.experts.router) != all.end();
  };
}

// "none", or a number above 0.
Entry capacity() {
  auto field = FIELD(capacity);
  Entry e = number("model.experts.capacity", field, above(0), "none",
                   "Largest number of tokens of a group that an expert processes, as a multiple of the mean number per "
                   "expert. If more tokens choose the expert, the others skip it. none: no limit.");
  e.words = {"none"};
  e.set = [=, plain = std::move(e.set)](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar || value.text != "none") return plain(c, value);
    field(c) = 0;
    return true;
  };
  e.get = [=, plain = std::move(e.get)](const Config& c) {
    return field(c) == 0 ? std::optional<std::string>("none") : plain(c);
  };
  return e;
}

}  // namespace

std::vector<Option> experts_options() {
  auto shape = [](Entry e) {
    return std::move(e).unless([](const Config& c) { return !c.model.from.empty(); });
  };
  auto used = [&](Entry e) {
    return e.applies ? shape(std::move(e)) : shape(std::move(e).when("model.experts.count is given", uses_experts));
  };
  auto balances = with_router({Router::softmax, Router::noisy, Router::switch_, Router::gshard});
  return {
      shape(count_or("none", 0, "model.experts.count", FIELD(count), between(1, kMost), "none",
                     "llama: number of experts in a layer. They replace the feed-forward layer. Each token uses a few of "
                     "them. none: a model without experts.")),
      used(count("model.experts.every", FIELD(every), between(1, kMost), "1",
                 "Every N-th layer has experts. With 2, these are the second layer, the fourth and so on.")),
      used(count("model.experts.dense_first", FIELD(dense_first), between(0, kMost), "0",
                 "Number of layers at the start of the model that have no experts.")),
      used(count_or("auto", 0, "model.experts.top_k", FIELD(top_k), between(1, kMost), "auto",
                    "Number of experts that each token uses (on average, with the router expert_choice). auto: 1 with the "
                    "router switch, otherwise 2.")),
      used(choice(
          "model.experts.router", FIELD(router), "softmax",
          "How tokens are assigned to experts. softmax: to the experts with the largest softmax weights, as in Mixtral. "
          "noisy: the same, with learned noise. switch: only to the expert with the largest weight. gshard: to the two "
          "with the largest weights, to the second at random. expert_choice: experts choose tokens. sigmoid: to the "
          "experts with the largest sigmoids, with a bias that balances the load.")),
      used(count_or("auto", 0, "model.experts.ffn", FIELD(ffn), between(1, kFfn), "auto",
                    "Width of an expert. auto: model.ffn.")),
      used(count("model.experts.shared", FIELD(shared), between(0, kFfn), "0",
                 "Width of a shared expert, which every token uses. A sigmoid weights its output. 0: no shared expert.")),
      used(boolean("model.experts.normalise", FIELD(normalise), "true",
                   "If true, the expert weights of a token are scaled so that they add up to 1.")
               .when("model.experts.router is softmax or sigmoid", with_router({Router::softmax, Router::sigmoid}))),
      used(capacity()),
      used(count_or("sequence", 0, "model.experts.group", FIELD(group), between(1, kMany), "sequence",
                    "Size of a group: this many consecutive tokens of a sequence. Capacity and load are computed per "
                    "group. sequence: each sequence is a group.")
               .in("tokens")),
      used(count_or("none", 0, "model.experts.across", FIELD(across), between(1, 1e6), "none",
                    "Form groups across the batch instead: a group is the tokens at one position of this many sequences. "
                    "The router expert_choice needs this. Inside a sequence, the choice of an expert would depend on "
                    "later tokens. none: groups are inside sequences.")
               .in("sequences")),
      used(number("model.experts.aux_loss", FIELD(aux_loss), from(0), "0.01", "Weight of the load-balancing loss.")
               .when("model.experts.router is softmax, noisy, switch or gshard", balances)),
      used(number("model.experts.z_loss", FIELD(z_loss), from(0), "0.001",
                  "Weight of the z-loss (squared log-sum-exp of the router's logits), which keeps the logits small.")
               .when("model.experts.router is not sigmoid",
                     [](const Config& c) { return uses_experts(c) && c.model.shape.experts.router != Router::sigmoid; })),
      used(number("model.experts.jitter", FIELD(jitter), fraction(), "0",
                  "During training, the input of the router is multiplied by random numbers from 1 - jitter to 1 + jitter.")
               .when("model.experts.router is switch", with_router({Router::switch_}))),
      used(number("model.experts.bias_rate", FIELD(bias_rate), from(0), "0.001",
                  "Change of an expert's bias per step. The bias falls if the expert has too many tokens, and rises if it "
                  "has too few.")
               .when("model.experts.router is sigmoid", with_router({Router::sigmoid}))),
      used(boolean("model.experts.share_layers", FIELD(share_layers), "false",
                   "If true, all layers share the weights of attention and experts, and each layer has its own norms "
                   "(WideNet).")),
  };
}

#undef FIELD

void check_experts(const Config& config, const ModelShape& s, const WhereOf& where) {
  const Experts& x = s.experts;
  auto require = [&](bool holds, std::string_view key, std::string expected, std::string got, std::string hint = "") {
    if (!holds)
      throw UserError({where ? where(key) : "", std::string(key), std::move(expected), std::move(got), std::move(hint)});
  };
  if (!x.any()) return;
  require(s.family->uses.experts, "model.experts.count",
          fmt::format("model.arch {}", families_with(&ShapeFields::experts)),
          fmt::format("model.arch {}", s.family->name), "remove it, or change model.arch");
  require(!s.output_bias, "model.output_bias", "false with model.experts", "true", "remove it");
  const int64_t most = x.router == Router::noisy ? x.count - 1 : x.count;
  const std::string all = x.router == Router::noisy ? "less than" : "at most";
  require(x.top_k <= most, "model.experts.top_k", fmt::format("{} model.experts.count ({})", all, x.count),
          fmt::format("{}", x.top_k),
          x.router == Router::noisy ? "lower it: noise needs at least one expert that is not chosen" : "");
  require(x.router != Router::switch_ || x.top_k == 1, "model.experts.top_k", "1, because model.experts.router is switch",
          fmt::format("{}", x.top_k), "use model.experts.router: softmax for more");
  require(x.router != Router::gshard || x.top_k == 2, "model.experts.top_k", "2, because model.experts.router is gshard",
          fmt::format("{}", x.top_k), "use model.experts.router: softmax for other numbers");
  bool some = false;
  for (int64_t i = 0; i < s.layers; i++) some = some || x.in_layer(i);
  require(some, x.dense_first > 0 ? "model.experts.dense_first" : "model.experts.every",
          fmt::format("at least one layer with experts among the {} layers", s.layers), "none",
          "use a smaller value");
  require(!x.share_layers || (x.every == 1 && x.dense_first == 0), "model.experts.share_layers",
          "false unless every layer has experts", "true", "remove model.experts.every and model.experts.dense_first");
  require(!x.share_layers || (config.memory.spill.empty() && !config.memory.device), "model.experts.share_layers",
          "false with memory.spill or memory.device", "true", "set it to false: this combination is not supported");
  const bool parts = config.parallel.pipeline > 1 || config.parallel.zero > 1;
  require(!x.share_layers || !parts, "model.experts.share_layers", "false with parallel.pipeline or parallel.zero above 1",
          "true", "set it to false: this combination is not supported");
  require(x.group == 0 || x.across == 0, "model.experts.across", "either model.experts.group or model.experts.across",
          "both", "remove one");
  require(x.router != Router::expert_choice || x.across > 0, "model.experts.router",
          "model.experts.across or another router", "expert_choice",
          "set model.experts.across: N, so that experts choose among N sequences at one position; otherwise a token would "
          "see later tokens");
  require(x.router != Router::expert_choice || config.train.sample_tokens == 0, "train.sample_tokens",
          "0 with model.experts.router expert_choice", fmt::format("{}", config.train.sample_tokens),
          "set it to 0: generating samples is not supported with this router");
  require(x.across == 0 || config.train.batch % x.across == 0, "model.experts.across",
          fmt::format("a divisor of train.batch ({})", config.train.batch), fmt::format("{}", x.across));
  const int64_t micro = config.train.micro_batch;
  require(x.across == 0 || (micro > 0 && micro % x.across == 0), "train.micro_batch",
          fmt::format("a multiple of model.experts.across ({})", x.across),
          micro > 0 ? fmt::format("{}", micro) : "auto");
  for (const CurriculumSettings& entry : config.curriculum)
    require(x.across == 0 || !entry.changes_length() || entry.hold == Hold::sequences, "curriculum",
            "hold: sequences, because model.experts.across is set", "hold: tokens",
            "use hold: sequences: the number of sequences must not change");
}

}  // namespace megalith
