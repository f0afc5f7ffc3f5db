// A run's settings as values. Filled once by parse.h from YAML and overrides, checked, then only read: after
// parsing there are no strings to look up and nothing is filled in later (what needs the data or the machine,
// like the vocabulary of a tokenizer still to be trained, is said at the field).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/number_formats.h"
#include "base/units.h"
#include "config/objective_table.h"
#include "config/optimizer_table.h"
#include "families/model_shape.h"
#include "layout/layout.h"

namespace megalith {

struct RunSettings {
  std::string dir;        // run directory; default runs/NAME with NAME from the YAML file's name
  uint64_t seed = 1;
  int64_t restarts = 3;   // of a crashed multi-rank run
  int64_t watchdog = 0;   // seconds an op of several ranks may take; 0 = auto, -1 = off
  bool operator==(const RunSettings&) const = default;
};

struct ModelSettings {
  std::string preset;     // as written; empty when given by fields or folder
  std::string from;       // Hugging Face folder or checkpoint to start from; empty = from scratch
  // The shape as far as the settings give it. With `from`, only dropout: the rest comes from the folder. `vocab` is 0 if
  // neither preset nor field gives it: it follows from the tokenizer. run/run.h has the complete shape.
  ModelShape shape;
  bool operator==(const ModelSettings&) const = default;
};

struct ObjectiveSettings {
  Objective kind = Objective::causal;
  double mask_fraction = 0.15;   // with few_targets: share of the tokens that become targets
  bool whole_words = false;      // with few_targets: all pieces of a word or none
  bool operator==(const ObjectiveSettings&) const = default;
};

struct TokenizerSettings {
  std::string path;          // tokenizer.json, vocab.txt, ...; empty: train one
  int64_t train_vocab = 0;   // > 0: train a byte-level BPE of this size on data.train
  bool operator==(const TokenizerSettings&) const = default;
};

// What a position may see: its whole sequence, or only the document it belongs to (positions count from its start).
enum class AttentionReach { sequence, document };

struct DataSettings {
  std::vector<std::string> train;  // files, globs or token-shard prefixes
  std::vector<double> weights;     // of the entries of `train`, above 0; empty: they are one data set, not blended
  std::vector<std::string> valid;
  double valid_fraction = 0.01;    // of the training data, where `valid` is empty
  TokenizerSettings tokenizer;
  int64_t sequence = 256;
  std::string cache;               // where token shards of text are kept; empty: the run directory
  std::string text_field = "text"; // of JSON lines
  AttentionReach attention = AttentionReach::sequence;
  std::string separator;           // text files: a line with exactly this ends a document; empty: a file is one
  std::string separator_token;     // text files: this text, wherever it stands, ends a document
  bool operator==(const DataSettings&) const = default;
};

enum class Decay { cosine, linear, inverse_sqrt, constant, wsd };

// What progress is counted in.
enum class Counted { steps, tokens, layer_tokens };

struct TrainSettings {
  int64_t steps = 1000;            // resolved from `tokens` where that was given; of full batches, see schedule_by
  Counted schedule_by = Counted::steps;  // what the length of the run, warm-up, decay and validations are counted in
  int64_t batch = 32;              // sequences a step, over all ranks
  int64_t micro_batch = 0;         // sequences at once; 0 = auto
  int64_t threads = 0;             // compute threads; 0 = the machine's cores
  OptimizerKind optimizer = OptimizerKind::adamw;
  Packing optimizer_state = Packing::fp32;  // how its state is kept between updates
  double lr = 3e-4;
  double min_lr = 3e-5;            // where cosine, linear and wsd decay end
  int64_t warmup = 0;              // steps
  Decay decay = Decay::cosine;
  int64_t decay_steps = 0;         // wsd: steps at the end of the run in which the rate falls
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0.9;           // sgd
  double weight_decay = 0.1;
  double clip = 1.0;               // global gradient norm; 0 = no clipping
  Precision precision = Precision::fp32;
  Packing activations = Packing::fp32;  // memory.activations: how they are kept from forward to backward
  int64_t eval_every = 200;        // steps of full batches, see schedule_by; 0 = only at the end
  int64_t eval_batches = 20;       // batches a validation; 0 = all of the validation data
  int64_t log_every = 1;           // steps between plain log lines (metrics.jsonl has every step)
  int64_t max_bad_steps = 10;      // skipped steps in a row (non-finite numbers) before the run stops
  int64_t sample_tokens = 0;       // tokens of a text sample generated with each validation; 0 = none
  std::string sample_prompt;
  bool operator==(const TrainSettings&) const = default;
};

struct ParallelSettings {
  int64_t data = 0;                // 0 = auto
  int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  ContextForm context_form = ContextForm::ring;
  int64_t zero = 0;
  PipelineOrder schedule = PipelineOrder::one_f_one_b;
  int64_t interleave = 1;
  bool operator==(const ParallelSettings&) const = default;
};

enum class Recompute { automatic, none, selective, full, every };

struct MemorySettings {
  std::optional<Bytes> ram;        // empty = auto: what the cgroup or the machine has, less a margin
  std::string spill;               // directory of the disk tier; empty = no spilling
  int64_t window = 0;              // blocks; 0 = auto
  std::optional<Bytes> device;     // memory of the device that computes; empty = the host computes
  int64_t device_bandwidth = 0;    // of a simulated device, bytes a second each way; 0 = it is a real one
  Recompute recompute = Recompute::automatic;
  int64_t recompute_every = 0;     // Recompute::every: layers in a chain of which the first keeps its input
  bool operator==(const MemorySettings&) const = default;
};

struct CheckpointSettings {
  int64_t every = 200;             // steps; 0 = only at the end; -1 = never
  int64_t keep = 2;
  bool operator==(const CheckpointSettings&) const = default;
};

// How a number grows while a run goes on: the difficulty of a curriculum, the tokens that a layer keeps.
struct PacingSettings {
  double from = 0, to = 0;
  double step = 1;                 // values are rounded down to multiples of it, never below `from`; 0: they are not
  int64_t over = 0;                // of `unit`, until `to` is reached
  Counted unit = Counted::steps;   // steps or tokens
  double root = 1;                 // from + (to - from) (t / over)^(1 / root)
  struct Point {
    int64_t begin;                 // in `unit`
    double value;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> table;        // instead of a formula: each value from its beginning on; the first begins at 0
  bool operator==(const PacingSettings&) const = default;
};

enum class CurriculumApply { truncate, reshape, filter };
enum class DifficultyUnit { value, percentile };
enum class Hold { sequences, tokens };

// One line of `curriculum`.
struct CurriculumSettings {
  std::string metric;              // length, rarity, ...; any name with `file`
  CurriculumApply apply = CurriculumApply::filter;
  DifficultyUnit unit = DifficultyUnit::value;
  Hold hold = Hold::sequences;     // what of a batch stays the same when sequences are short
  std::string file;                // one number a sample, the user's own; empty: `megalith analyze` makes it
  std::string checkpoint;          // metric loss: the model whose loss it is
  PacingSettings pacing;
  bool changes_length() const { return apply != CurriculumApply::filter; }
  bool operator==(const CurriculumSettings&) const = default;
};

// Layers that process only some tokens of each sequence.
struct TokenDroppingSettings {
  bool middle = true;              // all layers but the first and the last, or those listed
  std::vector<int64_t> layers;     // from 0, rising
  PacingSettings pacing{.step = 16};  // tokens kept of a sequence
  bool keep_special = false;       // special tokens are kept before all others
  bool on() const { return pacing.over > 0 || !pacing.table.empty(); }
  std::vector<int64_t> layers_of(int64_t model_layers) const {
    if (!middle) return layers;
    std::vector<int64_t> all;
    for (int64_t i = 1; i + 1 < model_layers; i++) all.push_back(i);
    return all;
  }
  bool operator==(const TokenDroppingSettings&) const = default;
};

struct Config {
  RunSettings run;
  ModelSettings model;
  ObjectiveSettings objective;
  DataSettings data;
  std::vector<CurriculumSettings> curriculum;
  TokenDroppingSettings token_dropping;
  TrainSettings train;
  ParallelSettings parallel;
  MemorySettings memory;
  CheckpointSettings checkpoint;
  bool operator==(const Config&) const = default;
};

}  // namespace megalith
