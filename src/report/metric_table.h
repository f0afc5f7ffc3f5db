// The metrics of a step, one row each, in the order of metrics.jsonl. metrics.jsonl, TensorBoard, the report, the plain
// progress line and docs/reference/metrics.md read this table. A new metric needs one enumerator and one row here, and
// one line where it is measured.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

enum class MetricId : uint8_t {
  step, loss, lr, grad_norm, tokens, epoch, step_s, tokens_per_s, mem_peak_bytes, skipped, loss_scale, length, kept,
  layer_tokens, difficulty, expert_aux, expert_z, expert_dropped, expert_load, expert_entropy, expert_layers,
  disk_read_bytes, disk_written_bytes, disk_experts_called, valid_loss, valid_bits_per_byte, save_s, sample,
  count
};
inline constexpr size_t kMetricCount = static_cast<size_t>(MetricId::count);

enum class MetricForm : uint8_t {
  real,   // metrics.jsonl: a number, or null and a string KEY_nonfinite ("nan", "inf", "-inf")
  whole,  // metrics.jsonl: a whole number, without ".0"
  own,    // not a single number: StepMetrics has a field for it
};

enum class MetricUnit : uint8_t { none, nats, seconds, tokens, tokens_per_s, bytes };
std::string_view name(MetricUnit unit);  // for display: "tokens/s"; empty for none

struct MetricRow {
  MetricId id;
  std::string_view key;         // metrics.jsonl; "disk.read_bytes" is `read_bytes` in the object `disk`
  MetricForm form;
  MetricUnit unit;
  std::string_view about;       // its meaning, and when it is present
  std::string_view tag = "";    // TensorBoard; empty: not shown there
  std::string_view chart = "";  // title of its chart in the report; metrics with one title share a chart; empty: no chart
  std::string_view label = "";  // its name in the legend of that chart
  std::string_view line = "";   // its name in plain progress lines; empty: not shown there
  bool noisy = false;           // charts smooth it
};

inline constexpr std::array<MetricRow, kMetricCount> kMetrics = [] {
  using enum MetricForm;
  using enum MetricUnit;
  using Id = MetricId;
  return std::array<MetricRow, kMetricCount>{{
      {Id::step, "step", own, none, "Steps done, including this one. The first step is 1."},
      {Id::loss, "loss", real, nats,
       "Mean loss over the targets (predicted tokens) of the step. It may be non-finite in a skipped step.",
       "loss/train", "Loss", "training", "loss", true},
      {Id::lr, "lr", real, none, "Learning rate.", "lr", "Learning rate", "rate", "lr"},
      {Id::grad_norm, "grad_norm", real, none, "Global gradient norm, before clipping.", "grad_norm", "Gradient norm",
       "norm before clipping", "grad", true},
      {Id::tokens, "tokens", whole, MetricUnit::tokens, "Tokens that the run has consumed so far."},
      {Id::epoch, "epoch", own, none,
       "Passes over the training data so far. If data sets are blended, the key is `epochs`, a list with one number per "
       "data set."},
      {Id::step_s, "step_s", real, seconds, "Duration of the step, without validation."},
      {Id::tokens_per_s, "tokens_per_s", real, MetricUnit::tokens_per_s, "Speed of this step.", "tokens_per_s", "Speed",
       "tokens/s", "tok/s", true},
      {Id::mem_peak_bytes, "mem_peak_bytes", whole, bytes, "Peak memory of the process so far.", "mem_peak_bytes",
       "Peak memory", "peak so far", "memory"},
      {Id::skipped, "skipped", own, none, "`true` if the loss or gradient was not finite. Such a step changes nothing."},
      {Id::loss_scale, "loss_scale", real, none, "Loss scale, with `train.precision: fp16`.", "loss_scale"},
      {Id::length, "length", whole, MetricUnit::tokens, "Length of the sequences, if a curriculum changes it.", "length",
       "Sequence", "length"},
      {Id::kept, "kept", whole, MetricUnit::tokens,
       "Number of tokens of a sequence that the layers with token dropping process.", "kept",
       "Sequence", "kept by layers that drop tokens"},
      {Id::layer_tokens, "layer_tokens", real, MetricUnit::tokens,
       "Tokens consumed so far, with a curriculum or token dropping. A token that one of L layers dropped counts 1/L less.",
       "layer_tokens"},
      {Id::difficulty, "difficulty", own, none, "The limits of the curriculum: an object with one limit per metric.",
       "difficulty/NAME", "Difficulty"},
      {Id::expert_aux, "experts.aux", real, none,
       "Balancing loss of the routers, without its weight: mean over tokens and layers.", "experts/aux"},
      {Id::expert_z, "experts.z", real, none, "Z loss of the routers, without its weight: mean over tokens and layers.",
       "experts/z"},
      {Id::expert_dropped, "experts.dropped", real, none, "Share of the choices that no expert took, 0 to 1.",
       "experts/dropped"},
      {Id::expert_load, "experts.load", real, none,
       "Tokens of the busiest expert divided by the mean of its layer, in the layer where this is largest.", "experts/load",
       "Busiest expert", "tokens / mean", "", true},
      {Id::expert_entropy, "experts.entropy", real, nats, "Entropy of the routers: mean over tokens and layers.",
       "experts/entropy"},
      {Id::expert_layers, "experts.layers", own, none,
       "A list with one object per layer: `load` (of every expert, divided by the mean), `dropped` and `entropy`. Present "
       "in about 200 steps of a run."},
      {Id::disk_read_bytes, "disk.read_bytes", whole, bytes, "Bytes that rank 0 read from `memory.spill` in this step.",
       "disk/read_bytes", "Disk traffic", "read", "", true},
      {Id::disk_written_bytes, "disk.written_bytes", whole, bytes,
       "Bytes that rank 0 wrote to `memory.spill` in this step.",
       "disk/written_bytes", "Disk traffic", "written", "", true},
      {Id::disk_experts_called, "disk.experts_called", whole, none,
       "Number of experts that a layer had to wait for, because the previous step did not use them.", "disk/experts_called"},
      {Id::valid_loss, "valid_loss", real, nats, "Validation loss, if a validation follows the step.", "loss/valid",
       "Loss", "validation", "valid"},
      {Id::valid_bits_per_byte, "valid_bits_per_byte", real, none,
       "Validation loss in bits per byte of text, if the run has a tokenizer and predicts next tokens. You can compare it "
       "between tokenizers.",
       "bits_per_byte/valid", "Bits per byte", "validation"},
      {Id::save_s, "save_s", real, seconds, "Time that saving a checkpoint added to this step.", "save_s"},
      {Id::sample, "sample", own, none, "Text generated after this step, with `train.sample_tokens`.", "sample"},
  }};
}();
static_assert([] {
  for (size_t i = 0; i < kMetricCount; i++)
    if (kMetrics[i].id != static_cast<MetricId>(i)) return false;
  return true;
}(), "rows stand in the order of MetricId");

inline constexpr const MetricRow& row_of(MetricId id) { return kMetrics[static_cast<size_t>(id)]; }

// Returns all rows. Rows of one chart are together, at the position of the first of them in the table.
std::vector<std::vector<const MetricRow*>> metrics_by_chart();

std::string metrics_reference();  // docs/reference/metrics.md; a test keeps the file equal to it

}  // namespace megalith
