#include "train/remote_hosts.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/new_file.h"
#include "base/start_threads.h"

namespace megalith {
namespace {

constexpr int64_t kMessageBytes = int64_t{1} << 20;  // maximum bytes of one message
constexpr int kFirst = 0, kRemote = 1;        // places in a channel between rank 0 and a remote rank

// Describes the piece that follows. An empty file name means the end.
std::string header_of(const std::string& file, const std::string& tensor, int64_t element, int64_t bytes) {
  return print_json(nlohmann::json{{"file", file}, {"tensor", tensor}, {"element", element}, {"bytes", bytes}});
}

void send_text(Channel& channel, const std::string& text) {
  const int64_t bytes = std::ssize(text);
  channel.send(std::as_bytes(std::span(&bytes, 1)), kFirst);
  channel.send(std::as_bytes(std::span(text)), kFirst);
}

std::string receive_text(Channel& channel) {
  int64_t bytes = 0;
  channel.receive(std::as_writable_bytes(std::span(&bytes, 1)), kRemote);
  std::string text(static_cast<size_t>(bytes), '\0');
  channel.receive(std::as_writable_bytes(std::span(text)), kRemote);
  return text;
}

// The files of a folder, or the file itself (as ""), with their sizes.
nlohmann::json files_of(const std::filesystem::path& path) {
  nlohmann::json files = nlohmann::json::array();
  if (std::filesystem::is_regular_file(path)) files.push_back({"", std::filesystem::file_size(path)});
  if (!std::filesystem::is_directory(path)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), entry.file_size()});
  return files;
}

}  // namespace

RemoteHosts::RemoteHosts(World& world, const std::filesystem::path& folder) : world_(world) {
  const std::filesystem::path token = folder / fmt::format(".seen-{}", world.broadcast(world.rank() == 0 ? random_hex(8) : "", 0));
  if (world.rank() == 0) write_file_atomically(token, "");
  world.barrier();
  const std::vector<std::string> seen = world.all_gather(std::filesystem::exists(token) ? "yes" : "");
  if (world.rank() == 0) std::filesystem::remove(token);
  for (int rank = 0; rank < world.size(); rank++) {
    if (!seen[static_cast<size_t>(rank)].empty()) continue;
    remote_ranks_.push_back(rank);
    if (world.rank() != 0 && world.rank() != rank) continue;
    channels_.push_back(world.channel({0, rank}, "checkpoint"));
    if (world.rank() == rank) channel_to_first_ = 0;
  }
}

void RemoteHosts::bring(const std::filesystem::path& path) {
  const bool writes = is_remote() && leads_host();
  const auto files = parse_json(world_.broadcast(world_.rank() == 0 ? print_json(files_of(path)) : "", 0));
  if (files.empty()) return;
  if (writes) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(files[0][0] == "" ? path.parent_path() : path);
  }
  for (const auto& entry : files) {
    const std::string name = entry[0];
    const std::filesystem::path file = name.empty() ? path : path / name;
    std::ifstream in;
    std::ofstream out;
    if (world_.rank() == 0) in.open(file, std::ios::binary);
    if (writes) out.open(file, std::ios::binary);
    for (int64_t left = entry[1]; left > 0; left -= kMessageBytes) {
      std::string piece(static_cast<size_t>(world_.rank() == 0 ? std::min(left, kMessageBytes) : 0), '\0');
      if (world_.rank() == 0) in.read(piece.data(), std::ssize(piece));
      piece = world_.broadcast(piece, 0);
      if (writes) out.write(piece.data(), std::ssize(piece));
    }
    out.close();
    if (world_.rank() == 0 && !in) throw Fault(fmt::format("{} cannot be read", file.string()));
    if (writes && !out) throw Fault(fmt::format("{} cannot be written", file.string()));
  }
  world_.barrier();  // files must be complete before a rank reads them
}

void RemoteHosts::forget(const std::filesystem::path& path) {
  world_.barrier();
  if (is_remote() && leads_host()) std::filesystem::remove_all(path);
}

void RemoteHosts::begin_receiving(Write write) {
  if (world_.rank() != 0) return;
  for (size_t remote = 0; remote < channels_.size(); remote++)
    receiving_.push_back(start_thread([this, remote, write] {
      try {
        receive_from(remote, write);
      } catch (const Fault&) {  // the world was stopped; the rank that stopped it reports why
      }
    }));
}

void RemoteHosts::receive_from(size_t remote, const Write& write) {
  Channel& channel = channels_[remote];
  std::vector<std::byte> piece;
  while (true) {
    const auto header = parse_json(receive_text(channel));
    if (header["file"] == "") return;
    piece.resize(header["bytes"].get<size_t>());
    channel.receive(piece, kRemote);
    write(header["file"], header["tensor"], header["element"], piece);
  }
}

void RemoteHosts::finish_receiving() {
  for (std::thread& thread : receiving_) thread.join();
  receiving_.clear();
}

void RemoteHosts::stop_receiving() {
  if (receiving_.empty()) return;
  world_.stop();
  finish_receiving();
}

void RemoteHosts::send(const std::string& file, const std::string& tensor, int64_t element, int64_t element_bytes,
                    std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<size_t>(bytes.size(), kMessageBytes));
    send_text(channels_.front(), header_of(file, tensor, element, std::ssize(piece)));
    channels_.front().send(piece, kFirst);
    element += std::ssize(piece) / element_bytes;
    bytes = bytes.subspan(piece.size());
  }
}

void RemoteHosts::send_end() { send_text(channels_.front(), header_of("", "", 0, 0)); }

}  // namespace megalith
