// The table of known_elsewhere.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/hub_name.h"
#include "config/known_elsewhere.h"
#include "config/option_types.h"

namespace megalith {
namespace {

constexpr int64_t kBytesOfAToken = 4;  // of English text, with a vocabulary of 30 to 50 thousand tokens

// Returns the bytes of the text in data.train. Nothing if an entry is not the name of a text file.
std::optional<int64_t> text_bytes(const DataSettings& data) {
  int64_t bytes = 0;
  for (const std::string& entry : data.train) {
    const std::filesystem::path file = entry;
    std::error_code unknown;
    const bool packed = file.extension() == ".gz" || file.extension() == ".zst" || file.extension() == ".bin";
    if (packed || !std::filesystem::is_regular_file(file, unknown)) return std::nullopt;
    bytes += static_cast<int64_t>(std::filesystem::file_size(file, unknown));
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

std::string steps_of_epochs(const Yaml& value, const Config& config) {
  const std::optional<double> epochs = read_number(value, above(0));
  const std::optional<int64_t> bytes = text_bytes(config.data);
  if (!epochs || !bytes) return "";
  const int64_t tokens = std::max<int64_t>(1, *bytes / kBytesOfAToken);
  const double a_step = static_cast<double>(config.train.batch) * static_cast<double>(config.data.sequence);
  return fmt::format("here about {} x {} / ({} x {}), so set train.steps to {:.0f}", *epochs, show_count(tokens),
                     config.train.batch, config.data.sequence, std::ceil(*epochs * static_cast<double>(tokens) / a_step));
}

std::string download_of(const Yaml& value, const Config&) {
  return how_to_download(value.text);
}

constexpr std::string_view kStepsOfEpochs =
    "Megalith counts steps: train.steps = epochs x tokens of data.train / (train.batch x data.sequence); a token is about "
    "4 bytes of text";
constexpr std::string_view kNoAccumulation =
    "no setting is needed: train.batch counts the sequences of a whole step, train.micro_batch those computed at once";
constexpr std::string_view kResumes =
    "no setting is needed: repeat the command and the run resumes from its last checkpoint";
constexpr std::string_view kOwnReports =
    "not supported: every run writes metrics.jsonl, TensorBoard files and report.html";
constexpr std::string_view kRanks = "not a setting: start N ranks with the option --ranks N of `megalith train`";
constexpr std::string_view kNoDevice = "remove it: this version computes on CPUs only";
constexpr std::string_view kNoAdapters = "LoRA and other adapters are not supported in this version";
constexpr std::string_view kNoFewBits = "4-bit and 8-bit weights are not supported in this version";
constexpr std::string_view kExactAttention = "no setting is needed: attention never stores all scores";
constexpr std::string_view kLocalFiles = "give local files: Megalith downloads nothing";
constexpr std::string_view kLocalFolder = "give a local folder";
constexpr std::string_view kBothBetas = "write both: [0.9, 0.95]";

constexpr KnownKey kKeys[] = {
    // Sections
    {"training trainer trainingargs trainingarguments trainargs hyperparameters optimization", "train", ""},
    {"network architectureparams modelargs modelconfig", "model", ""},
    {"dataargs dataconfig", "data", ""},
    {"distributed parallelism", "parallel", ""},
    // Length of the run
    {"epochs epoch numepochs numtrainepochs maxepochs", "", kStepsOfEpochs, steps_of_epochs},
    {"maxsteps maxiters trainiters trainsteps maxtrainsteps numsteps numtrainsteps totalsteps iterations iters",
     "train.steps", ""},
    {"trainsamples", "train.steps", "steps are samples divided by train.batch"},
    {"maxtokens totaltokens numtokens", "train.tokens", ""},
    {"earlystopping earlystoppingpatience patience", "", "early stopping is not supported: press Ctrl-C, and the run saves"},
    // Batches
    {"bs batchsize globalbatchsize trainbatchsize", "train.batch", ""},
    {"perdevicetrainbatchsize perdevicebatchsize trainmicrobatchsizepergpu microbatchsize", "train.micro_batch",
     "train.batch counts the sequences of a whole step"},
    {"perdeviceevalbatchsize evalbatchsize", "", "no setting is needed: validation uses the micro-batch of training"},
    {"gradientaccumulationsteps gradaccum gradaccumsteps accumulategradbatches accumulationsteps gradacc", "",
     kNoAccumulation},
    // Optimizer
    {"learningrate baselr maxlr peaklr", "train.lr", ""},
    {"minlearningrate lrmin", "train.min_lr", ""},
    {"warmupsteps numwarmupsteps warmupiters lrwarmupiters lrwarmupsteps", "train.warmup", ""},
    {"warmupratio", "train.warmup", "it counts steps: multiply the ratio by train.steps"},
    {"train.schedule train.scheduletype lrscheduler lrschedulertype lrschedule lrdecaystyle scheduler", "train.decay", ""},
    {"lrdecayiters", "train.steps", "the learning rate falls until the end of the run"},
    {"beta1 beta2 adambeta1 adambeta2", "train.betas", kBothBetas},
    {"epsilon adamepsilon adameps", "train.eps", ""},
    {"wd", "train.weight_decay", ""},
    {"gradclip clipgrad clipnorm gradientclipping gradientclipval maxgradnorm", "train.clip", ""},
    {"optim optimizertype", "train.optimizer", ""},
    {"dtype torchdtype mixedprecision amp bf16 fp16 fp32 half", "train.precision", ""},
    {"tf32", "", kNoDevice},
    {"labelsmoothing labelsmoothingfactor", "", "label smoothing is not supported in this version"},
    {"ema emadecay", "", "averaged weights (EMA) are not supported in this version"},
    {"compile torchcompile", "", "torch.compile is not supported and not needed: remove it"},
    // Reports and checkpoints
    {"evalsteps evalinterval valinterval valsteps evalstrategy evaluationstrategy", "train.eval_every", ""},
    {"evaliters", "train.eval_batches", ""},
    {"loggingsteps loginterval logsteps", "train.log_every", ""},
    {"savesteps saveevery saveinterval savefreq savestrategy checkpointinterval", "checkpoint.every", ""},
    {"savetotallimit", "checkpoint.keep", ""},
    {"output outputdir outputpath outdir savedir logdir loggingdir name runname expname experimentname", "run.dir", ""},
    {"overwriteoutputdir overwrite", "", "not supported: choose another run.dir to start again"},
    {"save checkpointdir ckptdir", "run.dir", "checkpoints are saved in its folder checkpoints"},
    {"load", "model.from", "to resume a run, repeat its command"},
    {"resume resumefrom resumefromcheckpoint", "", kResumes},
    {"wandb wandbproject wandbrunname usewandb project entity logger logging mlflow neptune comet", "", kOwnReports},
    {"reportto tensorboard", "", "no setting is needed: every run writes metrics.jsonl, TensorBoard files and report.html"},
    {"pushtohub hubmodelid hubtoken", "", "uploads are not supported: `megalith export` writes a Hugging Face folder"},
    {"randomseed dataseed", "run.seed", ""},
    // Model
    {"model.path model.name model.dir modelname modelpath modelnameorpath basemodel initfrom pretrained frompretrained "
     "pretrainedmodel pretrainedmodelnameorpath",
     "model.from", kLocalFolder, download_of},
    {"modelsize", "model.preset", "`megalith presets` lists all"},
    {"model.type model.family modeltype architecture architectures", "model.arch", ""},
    {"nlayer nlayers numlayers numhiddenlayers depth", "model.layers", ""},
    {"nembd dmodel dim embeddim embeddingdim hiddendim hiddensize width", "model.hidden", ""},
    {"nhead nheads numheads numattentionheads attentionheads", "model.heads", ""},
    {"nkvheads numkvheads numkeyvalueheads numquerygroups", "model.kv_heads", ""},
    {"intermediatesize ffnhiddensize ffndim dff dimfeedforward ninner mlpdim", "model.ffn", ""},
    {"vocabsize", "model.vocab", "auto takes the size of the tokenizer"},
    {"model.maxseqlen model.seqlen model.maxlength model.blocksize model.sequencelength maxpositionembeddings npositions nctx "
     "contextlength contextsize",
     "model.context", "training sequences have data.sequence tokens"},
    {"dropout dropoutrate", "model.dropout", "write dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}"},
    {"embdpdrop", "model.dropout.embedding", ""},
    {"residpdrop hiddendropout hiddendropoutprob", "model.dropout.residual", ""},
    {"attnpdrop attentiondropout attentionprobsdropoutprob", "model.dropout.attention", ""},
    {"activation activationfunction hiddenact norm normtype normalization posembed positionembedding positionembeddingtype",
     "", "no setting is needed: it follows from model.arch"},
    {"bias attentionbias", "model.qkv_bias", "gpt2 and bert always have biases"},
    {"tiewordembeddings tieembeddings tiedembeddings weighttying", "model.tied", ""},
    {"initializerrange initstd", "", "no setting is needed: initial weights have a standard deviation of 0.02"},
    {"usecache", "", "remove it: generation always keeps keys and values"},
    {"rmsnormeps layernormeps layernormepsilon", "model.norm_eps", ""},
    {"ropebase rotarybase", "model.rope_theta", ""},
    {"numexperts nexperts numlocalexperts", "model.experts.count", ""},
    {"moetopk numexpertspertok", "model.experts.top_k", ""},
    {"lora lorar lorarank loraalpha adapter adapters peft qlora", "", kNoAdapters},
    {"loadin4bit loadin8bit quantization quantizationconfig bnb4bitcomputedtype", "", kNoFewBits},
    {"flashattention flashattention2 flashattn useflashattention useflashattn attnimplementation sdpa", "",
     kExactAttention},
    {"trustremotecode", "", "remove it: Megalith runs no code of model folders"},
    {"objective.type objective.name objective.task", "objective.kind", ""},
    {"mlm task", "objective", "write objective: masked for bert, else causal"},
    {"mlmprobability mlmprob maskprob", "objective.mask_fraction", ""},
    // Data
    {"seqlen seqlength sequencelength sequencelen maxseqlen maxseqlength maxlength maxlen", "data.sequence", ""},
    {"blocksize", "data.sequence", "the model's own limit is model.context"},
    {"dataset datasets datasetname datasetpath hfdataset", "data.train", kLocalFiles},
    {"data.path data.paths data.file data.files data.name data.dir datapath datadir trainfile trainpath "
     "traindata trainingdata inputfile files file corpus text texts", "data.train", ""},
    {"data.test val validation validationfile validfile validdata valdata valfile evaldataset evaldata testdata",
     "data.valid", ""},
    {"valsetsize valsplit valfraction testsize split", "data.valid_fraction", ""},
    {"textcolumn textkey contentfield", "data.text_field", ""},
    {"cachedir", "data.cache", ""},
    {"streaming", "", "no setting is needed: text is read piece by piece"},
    {"shuffle", "", "no setting is needed: training data are always shuffled"},
    {"samplepacking packing", "",
     "no setting is needed: documents are packed; data.attention: document separates them"},
    {"data.tokenizer.type data.tokenizer.kind data.tokenizer.algorithm", "data.tokenizer.train", ""},
    {"data.tokenizer.size", "data.tokenizer.vocab", ""},
    {"tokenizertype tokenizermodel tokenizername tokenizerpath tokenizerfile tokenizer", "data.tokenizer", ""},
    {"numworkers dataloadernumworkers", "", "no setting is needed: tokens are read from files directly"},
    // Ranks and memory
    {"tensormodelparallelsize tensorparallelsize tensorparalleldegree tensorparallel tp", "parallel.tensor", ""},
    {"pipelinemodelparallelsize pipelineparallelsize pipelineparalleldegree pipelineparallel pp", "parallel.pipeline", ""},
    {"contextparallelsize contextparalleldegree cp", "parallel.context", ""},
    {"expertmodelparallelsize ep", "parallel.expert", ""},
    {"dataparallelsize dataparallelsharddegree dataparallelreplicatedegree ddp dp", "parallel.data", ""},
    {"zerostage stage zerooptimization", "parallel.zero", "it takes a stage from 0 to 3"},
    {"fsdp", "parallel.zero", "stage 3 does what FSDP does"},
    {"usedistributedoptimizer", "parallel.zero", "set it to 1"},
    {"deepspeed deepspeedconfig", "",
     "remove it: parallel.zero is ZeRO, memory.spill offloads, and `megalith config from-deepspeed` translates curricula"},
    {"sequenceparallel", "", "no setting is needed: parallel.tensor always includes it"},
    {"gradientcheckpointing activationcheckpointing checkpointactivations recomputegranularity", "memory.recompute",
     "auto recomputes only what does not fit"},
    {"offload cpuoffload offloadoptimizer offloadparam offloadfolder nvmepath", "memory.spill",
     "it takes a folder on a fast disk"},
    {"memorylimit maxmemory maxram", "memory.ram", ""},
    {"numthreads cores numcpus", "train.threads", ""},
    {"ranks worldsize numprocs numprocesses nproc nprocpernode numgpus ngpus ngpu gpus devices", "", kRanks},
    {"hosts nnodes numnodes hostfile", "", "not a setting: use the option --hosts a:2,b:2 of `megalith train`"},
    {"device devicemap accelerator cuda gpu usecpu", "", kNoDevice},
};

constexpr KnownWord kWords[] = {
    {"train.optimizer",
     "adam adamwtorch adamwtorchfused adamwhf adamw8bit adam8bit pagedadamw8bit fusedadam cpuadam deepspeedcpuadam", "adamw"},
    {"train.precision", "bfloat16", "bf16"},
    {"train.precision", "float16 half mixed 16", "fp16"},
    {"train.precision", "float32 float full no 32", "fp32"},
    {"train.decay", "none constantwithwarmup", "constant"},
    {"train.decay", "cosinewithminlr cosinewithwarmup cosineannealing", "cosine"},
    {"train.decay", "linearwithwarmup", "linear"},
    {"train.decay", "inversesquareroot", "inverse_sqrt"},
    {"model.arch", "llama2 llama3 mistral mixtral qwen2 qwen2moe", "llama"},
    {"model.arch", "gpt", "gpt2"},
    {"model.preset", "gpt2 gpt2small gpt2base", "gpt2-124m"},
    {"model.preset", "gpt2medium", "gpt2-355m"},
    {"model.preset", "gpt2large", "gpt2-774m"},
    {"model.preset", "gpt2xl", "gpt2-1.5b"},
    {"model.preset", "bert bertbaseuncased", "bert-base"},
    {"model.preset", "bertlargeuncased", "bert-large"},
    {"model.preset", "llama llamatiny llamasmall", "llama-10m"},
    {"model.preset", "tinyllama", "llama-1b"},
    {"model.preset", "llama7b llama2 llama27b", "llama-7b"},
    {"model.preset", "qwen2", "qwen2-0.5b"},
    {"objective.kind", "clm autoregressive nexttoken lm causallm", "causal"},
    {"objective.kind", "mlm maskedlm", "masked"},
    {"objective.kind", "prefixlm", "prefix"},
    {"memory.recompute", "true yes on uniform", "full"},
    {"memory.recompute", "false no off", "none"},
};

}  // namespace

std::span<const KnownKey> known_keys() { return kKeys; }
std::span<const KnownWord> known_words() { return kWords; }

}  // namespace megalith
