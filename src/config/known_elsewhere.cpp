#include "config/known_elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace megalith {
namespace {

constexpr std::string_view kTokensOfEpochs = "set train.tokens to the tokens of your data times the epochs";
constexpr std::string_view kNoAccumulation =
    "no setting is needed: train.batch counts the sequences of a whole step, train.micro_batch those computed at once";

constexpr KnownKey kKeys[] = {
    // Length of the run
    {"epochs", "", kTokensOfEpochs},
    {"numepochs", "", kTokensOfEpochs},
    {"numtrainepochs", "", kTokensOfEpochs},
    {"maxsteps", "train.steps", ""},
    {"maxiters", "train.steps", ""},
    {"trainiters", "train.steps", ""},
    {"numsteps", "train.steps", ""},
    {"iterations", "train.steps", ""},
    {"trainsamples", "train.steps", "steps are samples divided by train.batch"},
    {"maxtokens", "train.tokens", ""},
    {"totaltokens", "train.tokens", ""},
    // Batches
    {"bs", "train.batch", ""},
    {"batchsize", "train.batch", ""},
    {"globalbatchsize", "train.batch", ""},
    {"trainbatchsize", "train.batch", ""},
    {"perdevicetrainbatchsize", "train.micro_batch", ""},
    {"trainmicrobatchsizepergpu", "train.micro_batch", ""},
    {"microbatchsize", "train.micro_batch", ""},
    {"gradientaccumulationsteps", "", kNoAccumulation},
    {"gradaccum", "", kNoAccumulation},
    {"gradaccumsteps", "", kNoAccumulation},
    {"accumulategradbatches", "", kNoAccumulation},
    {"gradacc", "", kNoAccumulation},
    // Optimizer
    {"learningrate", "train.lr", ""},
    {"minlearningrate", "train.min_lr", ""},
    {"lrmin", "train.min_lr", ""},
    {"warmupsteps", "train.warmup", ""},
    {"warmupiters", "train.warmup", ""},
    {"lrwarmupiters", "train.warmup", ""},
    {"lrwarmupsteps", "train.warmup", ""},
    {"warmupratio", "train.warmup", "it counts steps: multiply the ratio by train.steps"},
    {"lrscheduler", "train.decay", ""},
    {"lrschedulertype", "train.decay", ""},
    {"lrdecaystyle", "train.decay", ""},
    {"scheduler", "train.decay", ""},
    {"lrdecayiters", "train.steps", "the learning rate falls until the end of the run"},
    {"beta1", "train.betas", "write both: [0.9, 0.95]"},
    {"beta2", "train.betas", "write both: [0.9, 0.95]"},
    {"adambeta1", "train.betas", "write both: [0.9, 0.95]"},
    {"adambeta2", "train.betas", "write both: [0.9, 0.95]"},
    {"adamepsilon", "train.eps", ""},
    {"adameps", "train.eps", ""},
    {"wd", "train.weight_decay", ""},
    {"gradclip", "train.clip", ""},
    {"clipgrad", "train.clip", ""},
    {"gradientclipping", "train.clip", ""},
    {"maxgradnorm", "train.clip", ""},
    {"optim", "train.optimizer", ""},
    {"dtype", "train.precision", ""},
    {"torchdtype", "train.precision", ""},
    {"mixedprecision", "train.precision", ""},
    {"bf16", "train.precision", "set it to bf16"},
    {"fp16", "train.precision", "set it to fp16"},
    {"amp", "train.precision", ""},
    // Reports and checkpoints
    {"evalsteps", "train.eval_every", ""},
    {"evalinterval", "train.eval_every", ""},
    {"evaliters", "train.eval_batches", ""},
    {"valsteps", "train.eval_every", ""},
    {"loggingsteps", "train.log_every", ""},
    {"loginterval", "train.log_every", ""},
    {"savesteps", "checkpoint.every", ""},
    {"saveevery", "checkpoint.every", ""},
    {"saveinterval", "checkpoint.every", ""},
    {"savefreq", "checkpoint.every", ""},
    {"checkpointinterval", "checkpoint.every", ""},
    {"savetotallimit", "checkpoint.keep", ""},
    {"outputdir", "run.dir", ""},
    {"outdir", "run.dir", ""},
    {"save", "run.dir", "checkpoints are saved in its folder checkpoints"},
    {"load", "model.from", "to resume a run, repeat its command"},
    {"resume", "", "no setting is needed: repeat the command and the run resumes from its last checkpoint"},
    {"resumefromcheckpoint", "", "no setting is needed: repeat the command and the run resumes from its last checkpoint"},
    {"wandbproject", "",
     "Weights & Biases is not supported; every run writes metrics.jsonl, TensorBoard files and report.html"},
    {"reportto", "", "no setting is needed: every run writes metrics.jsonl, TensorBoard files and report.html"},
    {"randomseed", "run.seed", ""},
    // Model
    {"modelnameorpath", "model.from", "give a local folder"},
    {"basemodel", "model.from", "give a local folder"},
    {"initfrom", "model.from", "give a local folder"},
    {"pretrainedmodel", "model.from", "give a local folder"},
    {"modeltype", "model.arch", ""},
    {"nlayer", "model.layers", ""},
    {"nlayers", "model.layers", ""},
    {"numlayers", "model.layers", ""},
    {"numhiddenlayers", "model.layers", ""},
    {"depth", "model.layers", ""},
    {"nembd", "model.hidden", ""},
    {"dmodel", "model.hidden", ""},
    {"dim", "model.hidden", ""},
    {"hiddensize", "model.hidden", ""},
    {"nhead", "model.heads", ""},
    {"nheads", "model.heads", ""},
    {"numheads", "model.heads", ""},
    {"numattentionheads", "model.heads", ""},
    {"nkvheads", "model.kv_heads", ""},
    {"numkeyvalueheads", "model.kv_heads", ""},
    {"numquerygroups", "model.kv_heads", ""},
    {"intermediatesize", "model.ffn", ""},
    {"ffnhiddensize", "model.ffn", ""},
    {"dff", "model.ffn", ""},
    {"vocabsize", "model.vocab", ""},
    {"maxpositionembeddings", "model.context", ""},
    {"npositions", "model.context", ""},
    {"tiewordembeddings", "model.tied", ""},
    {"rmsnormeps", "model.norm_eps", ""},
    {"layernormeps", "model.norm_eps", ""},
    {"numexperts", "model.experts.count", ""},
    {"moetopk", "model.experts.top_k", ""},
    {"lora", "", "LoRA is not supported in this version"},
    {"lorar", "", "LoRA is not supported in this version"},
    {"lorarank", "", "LoRA is not supported in this version"},
    {"adapter", "", "LoRA and other adapters are not supported in this version"},
    {"peft", "", "LoRA and other adapters are not supported in this version"},
    {"loadin4bit", "", "4-bit models are not supported in this version"},
    {"loadin8bit", "", "8-bit models are not supported in this version"},
    {"flashattention", "", "no setting is needed: attention never stores all scores"},
    {"attnimplementation", "", "no setting is needed: attention never stores all scores"},
    // Data
    {"seqlen", "data.sequence", ""},
    {"seqlength", "data.sequence", ""},
    {"sequencelength", "data.sequence", ""},
    {"sequencelen", "data.sequence", ""},
    {"maxseqlength", "data.sequence", ""},
    {"maxlength", "data.sequence", ""},
    {"blocksize", "data.sequence", "the model's own limit is model.context"},
    {"contextlength", "model.context", "training sequences have data.sequence tokens"},
    {"dataset", "data.train", "give local files"},
    {"datasets", "data.train", "give local files"},
    {"datasetname", "data.train", "give local files"},
    {"datapath", "data.train", ""},
    {"trainfile", "data.train", ""},
    {"traindata", "data.train", ""},
    {"validationfile", "data.valid", ""},
    {"validdata", "data.valid", ""},
    {"valsetsize", "data.valid_fraction", ""},
    {"split", "data.valid_fraction", ""},
    {"samplepacking", "", "no setting is needed: documents are packed; data.attention: document separates them"},
    {"tokenizertype", "data.tokenizer", ""},
    {"tokenizermodel", "data.tokenizer", ""},
    {"numworkers", "", "no setting is needed: tokens are read from files directly"},
    // Ranks and memory
    {"tensormodelparallelsize", "parallel.tensor", ""},
    {"tensorparallelsize", "parallel.tensor", ""},
    {"tp", "parallel.tensor", ""},
    {"pipelinemodelparallelsize", "parallel.pipeline", ""},
    {"pipelineparallelsize", "parallel.pipeline", ""},
    {"pp", "parallel.pipeline", ""},
    {"contextparallelsize", "parallel.context", ""},
    {"cp", "parallel.context", ""},
    {"expertmodelparallelsize", "parallel.expert", ""},
    {"ep", "parallel.expert", ""},
    {"dataparallelsize", "parallel.data", ""},
    {"dp", "parallel.data", ""},
    {"zerostage", "parallel.zero", ""},
    {"stage", "parallel.zero", ""},
    {"zerooptimization", "parallel.zero", ""},
    {"fsdp", "parallel.zero", "stage 3 does what FSDP does"},
    {"usedistributedoptimizer", "parallel.zero", "set it to 1"},
    {"sequenceparallel", "", "no setting is needed: parallel.tensor always includes it"},
    {"gradientcheckpointing", "memory.recompute", ""},
    {"activationcheckpointing", "memory.recompute", ""},
    {"recomputegranularity", "memory.recompute", ""},
    {"offload", "memory.spill", ""},
    {"cpuoffload", "memory.spill", ""},
    {"offloadoptimizer", "memory.spill", ""},
    {"offloadparam", "memory.spill", ""},
    {"numthreads", "train.threads", ""},
    {"numgpus", "", "start N ranks with the option --ranks N"},
    {"nprocpernode", "", "start N ranks with the option --ranks N"},
    {"device", "", "remove it: this version computes on CPUs only"},
};

constexpr KnownWord kWords[] = {
    {"train.optimizer", "adam", "adamw"},          {"train.optimizer", "adamwtorch", "adamw"},
    {"train.optimizer", "adamwtorchfused", "adamw"}, {"train.optimizer", "fusedadam", "adamw"},
    {"train.optimizer", "cpuadam", "adamw"},       {"train.optimizer", "deepspeedcpuadam", "adamw"},
    {"train.precision", "bfloat16", "bf16"},       {"train.precision", "float16", "fp16"},
    {"train.precision", "half", "fp16"},           {"train.precision", "float32", "fp32"},
    {"train.precision", "float", "fp32"},          {"train.precision", "32", "fp32"},
    {"train.decay", "none", "constant"},           {"train.decay", "constantwithwarmup", "constant"},
    {"train.decay", "cosinewithminlr", "cosine"},  {"train.decay", "inversesquareroot", "inverse_sqrt"},
    {"model.arch", "mistral", "llama"},            {"model.arch", "mixtral", "llama"},
    {"model.arch", "qwen2", "llama"},              {"model.arch", "gpt", "gpt2"},
    {"objective.kind", "clm", "causal"},           {"objective.kind", "autoregressive", "causal"},
    {"objective.kind", "mlm", "masked"},           {"objective.kind", "prefixlm", "prefix"},
    {"memory.recompute", "true", "full"},          {"memory.recompute", "uniform", "full"},
};

// Makes "learning-rate", "learningRate" and "learning_rate" the same word.
std::string plain(std::string_view word) {
  std::string result;
  for (const char c : word)
    if (c != '_' && c != '-') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::span<const KnownKey> known_keys() { return kKeys; }
std::span<const KnownWord> known_words() { return kWords; }

std::optional<std::string> advice_for_key(std::string_view key) {
  const std::string last = plain(key.substr(key.rfind('.') + 1));
  const auto known = std::ranges::find(kKeys, last, &KnownKey::theirs);
  if (known == std::end(kKeys)) return std::nullopt;
  if (known->ours.empty()) return std::string(known->advice);
  return fmt::format("use {}{}{}", known->ours, known->advice.empty() ? "" : "; ", known->advice);
}

std::string_view word_for(std::string_view option, std::string_view value) {
  const std::string word = plain(value);
  for (const KnownWord& known : kWords)
    if (known.option == option && known.theirs == word) return known.ours;
  return {};
}

}  // namespace megalith
