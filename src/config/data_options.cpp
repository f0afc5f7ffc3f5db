#include "config/data_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/join.h"
#include "config/option_types.h"

namespace megalith {
namespace {

#define FIELD(member) [](auto& config) -> auto& { return config.member; }

// The kind of a tokenizer to train is no path.
Entry tokenizer_path() {
  Entry e = text("data.tokenizer.path", FIELD(data.tokenizer.path), "none; with model.from, the folder's tokenizer",
                 "Tokenizer: tokenizer.json, SentencePiece .model, .tiktoken, WordPiece vocab.txt, or a folder with one of "
                 "these.");
  e.advice = "to train a tokenizer, write tokenizer: {train: bpe, vocab: 4096}";
  e.set = [plain = std::move(e.set)](Config& c, const Yaml& value) { return value.text != "bpe" && plain(c, value); };
  return e;
}

// data.tokenizer.train: bpe. Config keeps only the size. The word exists so that we can add other kinds later.
Entry tokenizer_to_train() {
  Entry e = entry("data.tokenizer.train", OptionType::choice, {}, "none",
                  "Train a tokenizer of this kind on data.train before the run, instead of reading one from a path.");
  e.words = {"bpe"};
  e.set = [](Config& c, const Yaml& value) {
    if (value.kind != Yaml::Kind::scalar || value.text != "bpe") return false;
    c.data.tokenizer.train_vocab = 4096;
    return true;
  };
  e.get = [](const Config&) { return "bpe"; };
  return e;
}

// Reads one weighted entry of data.train: {path: a.txt, weight: 0.7}.
std::pair<std::string, double> read_weighted(const Yaml& entry) {
  auto refuse = [&](const std::string& got) {
    throw UserError({entry.where, "data.train", "{path: PATH, weight: NUMBER} with a number above 0", got,
                     "give a weight to every entry or to none"});
  };
  if (entry.kind != Yaml::Kind::map) refuse(entry.describe());
  std::optional<std::string> path;
  std::optional<double> weight;
  for (const auto& [key, value] : entry.entries) {
    if (key == "path" && is_text(value) && !value.text.empty())
      path = value.text;
    else if (key == "weight")
      weight = read_number(value, above(0));
    else
      refuse(fmt::format("{}: {}", key, value.describe()));
    if (key == "weight" && !weight) refuse(fmt::format("weight: {}", value.describe()));
  }
  if (!path || !weight) refuse(path ? "an entry without a weight" : "an entry without a path");
  return {*path, *weight};
}

// Paths, or paths with weights. With weights, each entry is a separate data set, blended with the others.
Entry training_data() {
  Entry e = entry(
      "data.train", OptionType::blend, {}, "none (required for training)",
      "Training data: text, gzip or zstd text, JSON lines or token shards, as file names or patterns. With weights, each "
      "entry is a data set with its own epochs. Its share of the samples is its weight divided by the sum of all weights.");
  e.set = [](Config& c, const Yaml& value) {
    const bool one = value.kind == Yaml::Kind::map;
    auto is_map = [](const Yaml& item) { return item.kind == Yaml::Kind::map; };
    if (one || std::any_of(value.items.begin(), value.items.end(), is_map)) {
      std::vector<std::string> paths;
      std::vector<double> weights;
      for (const Yaml& item : one ? std::vector{value} : value.items) {
        auto [path, weight] = read_weighted(item);
        paths.push_back(path);
        weights.push_back(weight);
      }
      c.data.train = std::move(paths);
      c.data.weights = std::move(weights);
      return true;
    }
    auto paths = read_texts(value);
    if (!paths) return false;
    c.data.train = std::move(*paths);
    c.data.weights.clear();
    return true;
  };
  e.get = [](const Config& c) {
    if (c.data.weights.empty()) return write_texts(c.data.train);
    std::vector<std::string> entries;
    for (size_t i = 0; i < c.data.train.size(); i++)
      entries.push_back(fmt::format("{{path: {}, weight: {}}}", quote_yaml(c.data.train[i]),
                                    write_number(c.data.weights[i])));
    return fmt::format("[{}]", join(entries, ", "));
  };
  return e;
}

}  // namespace

std::vector<Option> data_options() {
  auto trains = [](const Config& c) { return c.data.tokenizer.train_vocab > 0; };
  auto has_no = [](auto has) { return [has](const Config& c) { return !has(c); }; };
  return {
      training_data().in("path"),
      // Must not change on resume, like data.train: without data.valid, a part of the training data is used for
      // validation.
      texts("data.valid", FIELD(data.valid), "none", "Validation data, in the same formats as data.train.").in("path"),
      number("data.valid_fraction", FIELD(data.valid_fraction), fraction(), "0.01",
             "Fraction of the training data that is used for validation instead. 0: no validation.")
          .when("data.valid is empty", [](const Config& c) { return c.data.valid.empty(); }),
      tokenizer_path()
          .in("path")
          .short_form()
          .unless([](const Config& c) { return c.data.tokenizer.path.empty(); }),
      tokenizer_to_train().unless(has_no(trains)),
      count("data.tokenizer.vocab", FIELD(data.tokenizer.train_vocab), between(257, kVocab), "4096",
            "Vocabulary size of the tokenizer to train. It includes 256 bytes and the special tokens.")
          .in("tokens")
          .unless(has_no(trains)),
      count("data.sequence", FIELD(data.sequence), between(1, kMany), "256",
            "Length of a training sequence. At most model.context.")
          .in("tokens"),
      choice("data.attention", FIELD(data.attention), "sequence",
             "Which tokens a token can attend to: its whole sequence, or only its document. With document, positions count "
             "from the start of the document."),
      text("data.cache", FIELD(data.cache), "the run directory",
           "Directory for the token shards (files of token ids) that the run makes from text.")
          .in("directory")
          .free(),
      text("data.text_field", FIELD(data.text_field), "text", "In JSON lines: the field that contains the text.",
           1),
      text("data.separator", FIELD(data.separator), "none: a file is one document",
           "In text files: a line with exactly this text ends a document."),
      text("data.separator_token", FIELD(data.separator_token), "none: a file is one document",
           "In text files: this text ends a document, anywhere in a line. Example: <|endoftext|>.")
          .when("data.separator is empty", [](const Config& c) { return c.data.separator.empty(); }),
  };
}

#undef FIELD

}  // namespace megalith
