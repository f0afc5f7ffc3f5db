#include "train/saver.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/sentence_files.h"
#include "checkpoint/store.h"
#include "checkpoint/weight_names.h"
#include "engine/process_groups.h"
#include "engine/state_pieces.h"

namespace megalith {
namespace {

template <class PartsOf>
std::vector<TensorSpec> specs(StatePieces& model, const PartsOf& parts_of) {
  std::vector<TensorSpec> out;
  for (BlockId b = 0; b < static_cast<BlockId>(model.blocks()); b++)
    for (const TensorPiece& part : parts_of(b)) out.push_back({part.name, part.type, part.shape});
  return out;
}

}  // namespace

Save::Save(std::filesystem::path dir, std::vector<FileSpec> files,
           std::vector<std::pair<std::string, std::string>> small_files, const nlohmann::json& state, ProcessGroups* groups,
           RemoteHosts* remote)
    : dir_(std::move(dir)), state_(std::make_unique<nlohmann::json>(state)), groups_(groups), remote_(remote) {
  for (const FileSpec& file : files)
    for (const TensorSpec& tensor : file.tensors) file_of_.emplace_back(tensor.name, file.file);
  std::sort(file_of_.begin(), file_of_.end());
  if (groups_) {
    begin_together(std::move(files), std::move(small_files));
    return;
  }
  try {
    std::filesystem::create_directories(dir_.parent_path());
    writer_ = std::make_unique<CheckpointWriter>(dir_, std::move(files), std::move(small_files));
  } catch (const std::exception& fault) {
    give_up(fault.what());
  }
}

// Rank 0 broadcasts the folder in which it writes, or an empty text if it cannot. The other ranks join it there.
void Save::begin_together(std::vector<FileSpec> files, std::vector<std::pair<std::string, std::string>> small_files) {
  std::string aside;
  if (groups_->first()) {
    try {
      std::filesystem::create_directories(dir_.parent_path());
      writer_ = std::make_unique<CheckpointWriter>(dir_, files, std::move(small_files));
      aside = writer_->aside().string();
    } catch (const std::exception& fault) {
      give_up(fault.what());
    }
  }
  aside = groups_->world().broadcast(aside, 0);
  if (aside.empty()) return;
  if (remote_ && groups_->first())
    remote_->begin_receiving([this](const std::string& file, const std::string& tensor, int64_t element,
                                 std::span<const std::byte> bytes) { write_here(file, tensor, element, bytes); });
  sends_ = remote_ && remote_->is_remote();
  if (groups_->first() || sends_) return;
  try {
    writer_ = CheckpointWriter::join(aside, files);
  } catch (const std::exception& fault) {
    give_up(fault.what());
  }
}

// Collects every rank's part, or the reason why a rank has no part. Commits only if all ranks have their parts. The part of
// rank 0 includes what remote ranks sent.
void Save::commit_together() {
  nlohmann::json mine = nlohmann::json::object();
  if (sends_) remote_->send_end();
  if (remote_) remote_->finish_receiving();
  try {
    if (writer_ && !groups_->first()) mine["part"] = writer_->finish_part();
  } catch (const Fault& fault) {
    give_up(fault.what());
  }
  if (!writer_ && !sends_) mine["fault"] = fault_;
  const std::vector<std::string> all = groups_->world().all_gather(print_json(mine));
  if (groups_->first() && writer_) {
    std::string fault;
    for (size_t rank = 1; rank < all.size() && fault.empty(); rank++) {
      const nlohmann::json theirs = parse_json(all[rank]);
      if (theirs.contains("fault")) fault = fmt::format("rank {}: {}", rank, theirs["fault"].get<std::string>());
      else if (theirs.contains("part")) writer_->add_part(theirs["part"].get<std::string>());
    }
    try {
      if (fault.empty()) writer_->commit(*state_);
      else give_up(fault);
    } catch (const Fault& own) {
      give_up(own.what());
    }
    done_ = writer_ != nullptr;
  }
  done_ = groups_->world().broadcast(done_ ? "done" : "", 0) == "done";
  writer_.reset();
}

void Save::give_up(const std::string& why) {
  writer_.reset();
  fault_ = why;
  log::warn("checkpoint {} not saved: {}; training continues, earlier checkpoints are unchanged",
            dir_.filename().string(), why);
}

Save::~Save() {
  if (remote_) remote_->stop_receiving();
}

void Save::write(Kind, const TensorPiece& part) {
  write_as(part.name, part);
  if (const std::string copy = copy_in_files(part.name); !copy.empty()) write_as(copy, part);
}

void Save::write_as(const std::string& name, const TensorPiece& part) {
  auto found = std::lower_bound(file_of_.begin(), file_of_.end(), std::pair(name, std::string()));
  MEGALITH_ASSERT(found != file_of_.end() && found->first == name, "no file of the checkpoint contains {}", name);
  if (sends_) remote_->send(found->second, name, part.begin, size_of(part.type), part.bytes());
  else write_here(found->second, name, part.begin, part.bytes());
}

void Save::write_here(const std::string& file, const std::string& tensor, int64_t element,
                      std::span<const std::byte> bytes) {
  std::lock_guard turn(writing_);
  if (!writer_) return;
  try {
    writer_->write(file, tensor, element, bytes);
  } catch (const Fault& fault) {
    give_up(fault.what());
  }
}

void Save::commit() {
  if (groups_) return commit_together();
  if (!writer_) return;
  try {
    writer_->commit(*state_);
    done_ = true;
    writer_.reset();
  } catch (const Fault& fault) {
    give_up(fault.what());
  }
}

Saver::Saver(std::filesystem::path checkpoints, StatePieces& model, const Tokenizer* tokenizer, int64_t longest, int64_t keep,
             ProcessGroups* groups, RemoteHosts* remote)
    : checkpoints_(std::move(checkpoints)), keep_(keep), groups_(groups), remote_(remote) {
  const auto parameters = specs(model, [&](BlockId b) { return model.parameters(b); });
  std::vector<FileSpec> model_files = plan_files(with_copies(parameters), kShardLimit);
  small_files_ = index_file(model_files);
  files_ = std::move(model_files);
  for (FileSpec& file : plan_files(specs(model, [&](BlockId b) { return model.optimizer_state(b); }), kShardLimit,
                                   "optimizer", Numbering::always))
    files_.push_back(std::move(file));
  SpecialIds ids;
  if (tokenizer) {
    ids = {tokenizer->begin_token(), tokenizer->end_token()};
    for (auto& file : tokenizer->files()) small_files_.push_back(std::move(file));
  }
  const ModelShape& shape = model.shape();
  small_files_.emplace_back("config.json", hf_config(shape, ids));
  if (shape.head == HeadKind::representation)
    for (auto& file : sentence_files({.pooling = shape.pooling, .longest = longest}, shape)) small_files_.push_back(std::move(file));
}

std::unique_ptr<Save> Saver::begin(int64_t step, const nlohmann::json& state) {
  return std::make_unique<Save>(checkpoints_ / checkpoint_name(step), files_, small_files_, state, groups_, remote_);
}

bool Saver::finish(const Save& save, int64_t step) {
  if (save.done() && (!groups_ || groups_->first())) prune(checkpoints_, keep_, step);
  return save.done();
}

}  // namespace megalith
