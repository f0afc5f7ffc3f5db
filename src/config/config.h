// The settings of a run as values. parse.h fills and checks them once, from YAML and overrides. After that they are
// only read. Settings that depend on the data or the machine stay open here; the comment at the field says so (example:
// the vocabulary of a tokenizer that is trained later).
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
  std::string dir;        // run directory; default runs/NAME, where NAME is the YAML file's name
  uint64_t seed = 1;
  int64_t restarts = 3;   // how often a crashed run of several ranks is restarted
  int64_t watchdog = 0;   // longest time of an op of several ranks, in seconds; 0 = auto, -1 = off
  bool operator==(const RunSettings&) const = default;
};

struct ModelSettings {
  std::string preset;     // as written; empty if fields or a folder give the shape
  std::string from;       // Hugging Face folder or checkpoint to start from; empty = from scratch
  bool new_head = false;  // with `from`: the head starts from initial weights instead of the folder's
  // The part of the shape that the settings give. With `from`, this is only dropout; the rest comes from the folder.
  // `vocab` is 0 if neither preset nor field gives it; then it follows from the tokenizer. run/run.h has the complete
  // shape.
  ModelShape shape;
  bool operator==(const ModelSettings&) const = default;
};

// How a loss compares the sequences of a batch. A sample has `columns` sequences: anchor, positive, hard negatives.
struct Comparison {
  int64_t columns = 0;         // 0: sequences are not compared
  double temperature = 0.05;   // similarities are divided by it
  bool symmetric = false;      // positives must find their anchors, too; the loss is the mean of both directions
  bool any() const { return columns > 0; }
  int64_t sequences() const { return any() ? columns : 1; }  // of a sample
};

// The sequences of a sample that belong together.
enum class Pairs { dropout, columns, neighbours };

struct ObjectiveSettings {
  Objective kind = Objective::causal;
  double mask_fraction = 0.15;   // with needs_mask: fraction of the tokens that become targets
  bool whole_words = false;      // with needs_mask: masks all pieces of a word or none
  double span_fraction = 0.15;   // with moves_text: fraction of the tokens in spans
  double span_length = 3;        // with moves_text: mean tokens of a span
  // Objectives that compare sequences:
  double temperature = 0.05;
  Pooling pooling = Pooling::mean;
  Pairs pairs = Pairs::dropout;
  bool symmetric = false;
  std::vector<std::string> columns{"anchor", "positive"}, negative_columns;  // Pairs::columns: fields of JSON lines
  // How the sequences of a batch are compared. Its `columns` are 0 if they are not.
  Comparison comparison() const {
    if (!compares()) return {};
    const auto count = static_cast<int64_t>(2 + (by_columns() ? negative_columns.size() : 0));
    return {.columns = count, .temperature = temperature, .symmetric = symmetric};
  }
  int64_t sequences_of_sample() const { return comparison().sequences(); }
  bool compares() const { return row_of(kind).compares; }
  bool by_columns() const { return compares() && pairs == Pairs::columns; }
  bool operator==(const ObjectiveSettings&) const = default;
};

struct TokenizerSettings {
  std::string path;          // tokenizer.json, vocab.txt, ...; empty: train one
  int64_t train_vocab = 0;   // > 0: train a byte-level BPE of this size on data.train
  bool operator==(const TokenizerSettings&) const = default;
};

// The tokens that a position may see: its whole sequence, or only its document (positions then count from the start of
// the document).
enum class AttentionReach { sequence, document };

struct DataSettings {
  std::vector<std::string> train;  // files, globs or token-shard prefixes
  std::vector<double> weights;     // one per entry of `train`, above 0; empty: all entries are one data set, not blended
  std::vector<std::string> valid;
  double valid_fraction = 0.01;    // fraction of the training data; used if `valid` is empty
  TokenizerSettings tokenizer;
  int64_t sequence = 256;
  std::string cache;               // directory for token shards of text; empty: the run directory
  std::string text_field = "text"; // field of a JSON line that contains the text
  AttentionReach attention = AttentionReach::sequence;
  std::string separator;           // text files: a line with exactly this ends a document; empty: a file is one document
  std::string separator_token;     // text files: this text, anywhere, ends a document
  bool operator==(const DataSettings&) const = default;
};

enum class Decay { cosine, linear, inverse_sqrt, constant, wsd };

// Unit in which progress is counted.
enum class Counted { steps, tokens, layer_tokens };

struct TrainSettings {
  int64_t steps = 1000;            // computed from `tokens` if given; counted in full batches, see schedule_by
  Counted schedule_by = Counted::steps;  // unit of the run's length, warm-up, decay and validations
  int64_t batch = 32;              // sequences per step, over all ranks
  int64_t micro_batch = 0;         // sequences computed at once; 0 = auto
  int64_t threads = 0;             // compute threads; 0 = one per core
  OptimizerKind optimizer = OptimizerKind::adamw;
  Packing optimizer_state = Packing::fp32;  // format of the optimizer state between updates
  double lr = 3e-4;
  double min_lr = 3e-5;            // learning rate at the end of cosine, linear and wsd decay
  int64_t warmup = 0;              // steps
  Decay decay = Decay::cosine;
  int64_t decay_steps = 0;         // wsd: steps at the end of the run in which the learning rate falls
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double momentum = 0.9;           // sgd
  double weight_decay = 0.1;
  double clip = 1.0;               // global gradient norm; 0 = no clipping
  Precision precision = Precision::fp32;
  Packing activations = Packing::fp32;  // memory.activations: format of activations between forward and backward
  int64_t eval_every = 200;        // counted in steps of full batches, see schedule_by; 0 = only at the end
  int64_t eval_batches = 20;       // batches per validation; 0 = all validation data
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
  std::optional<Bytes> ram;        // empty = auto: the memory of the cgroup or the machine, minus a margin
  std::string spill;               // directory of the disk tier; empty = no spilling
  int64_t window = 0;              // blocks; 0 = auto
  std::optional<Bytes> device;     // memory of the device that computes; empty: the host computes
  int64_t device_bandwidth = 0;    // bandwidth of a simulated device, bytes per second in each direction; 0 = real device
  Recompute recompute = Recompute::automatic;
  int64_t recompute_every = 0;     // Recompute::every: layers in a chain; only the first layer keeps its input
  bool operator==(const MemorySettings&) const = default;
};

struct CheckpointSettings {
  int64_t every = 200;             // steps; 0 = only at the end; -1 = never
  int64_t keep = 2;
  bool operator==(const CheckpointSettings&) const = default;
};

// How a number grows during a run: the difficulty of a curriculum, or the tokens that a layer keeps.
struct PacingSettings {
  double from = 0, to = 0;
  double step = 1;                 // values are rounded down to multiples of this, but not below `from`; 0: no rounding
  int64_t over = 0;                // how long it takes to reach `to`, in `unit`
  Counted unit = Counted::steps;   // steps or tokens
  double root = 1;                 // from + (to - from) (t / over)^(1 / root)
  struct Point {
    int64_t begin;                 // in `unit`
    double value;
    bool operator==(const Point&) const = default;
  };
  std::vector<Point> table;        // replaces the formula: each value holds from its `begin` on; the first begins at 0
  bool operator==(const PacingSettings&) const = default;
};

enum class CurriculumApply { truncate, reshape, filter };
enum class DifficultyUnit { value, percentile };
enum class Hold { sequences, tokens };

// One entry of `curriculum`.
struct CurriculumSettings {
  std::string metric;              // length, rarity, ...; any name is allowed with `file`
  CurriculumApply apply = CurriculumApply::filter;
  DifficultyUnit unit = DifficultyUnit::value;
  Hold hold = Hold::sequences;     // quantity that stays constant in a batch when sequences are short
  std::string file;                // file with one number per sample, made by the user; empty: `megalith analyze` makes it
  std::string checkpoint;          // metric loss: the model that computes the loss
  PacingSettings pacing;
  bool changes_length() const { return apply != CurriculumApply::filter; }
  bool operator==(const CurriculumSettings&) const = default;
};

// Layers that process only some tokens of each sequence.
struct TokenDroppingSettings {
  bool middle = true;              // true: all layers except the first and the last; false: `layers`
  std::vector<int64_t> layers;     // counted from 0, sorted
  PacingSettings pacing{.step = 16};  // tokens of a sequence that a layer keeps
  bool keep_special = false;       // drop special tokens only if no other token is left to drop
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
  int64_t step_sequences() const { return train.batch * objective.sequences_of_sample(); }
  bool operator==(const Config&) const = default;
};

}  // namespace megalith
