#include "checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/file_handle.h"

namespace megalith {
namespace {

using nlohmann::ordered_json;

constexpr int version = 1;

// Hashes the text without spaces: only the content of the manifest counts, not its layout.
std::string own_hash(const ordered_json& body) {
  return show_hash(xxh3(as_bytes(print_json(body))));
}

uint64_t parse_hash(const std::string& text) {
  uint64_t hash = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("a hash that is not 16 hexadecimal digits");
  return hash;
}

Manifest from_json(const ordered_json& body) {
  auto natural = [](const ordered_json& number) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      throw std::invalid_argument("a size or offset that is not a whole number");
    return number.get<int64_t>();
  };
  Manifest manifest;
  for (const ordered_json& file : body.at("files")) {
    std::string name = file.at("file");
    if (!stays_inside(name)) throw std::invalid_argument("a file name that leaves the checkpoint");
    manifest.sizes[name] = natural(file.at("size"));
  }
  for (const ordered_json& extent : body.at("extents"))
    manifest.extents.push_back({extent.at("file"), natural(extent.at("offset")), natural(extent.at("length")),
                                parse_hash(extent.at("xxh3"))});
  std::string problem = manifest.normalise();
  if (!problem.empty()) throw std::invalid_argument(problem);
  return manifest;
}

}  // namespace

std::string show_hash(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

bool stays_inside(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && stays_inside(name.substr(slash + 1));
}

std::string Manifest::normalise() {
  std::erase_if(extents, [](const Extent& e) { return e.length == 0; });
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  });
  std::map<std::string, int64_t> covered;
  for (const Extent& e : extents) {
    auto size = sizes.find(e.file);
    int64_t& end = covered[e.file];
    if (size == sizes.end()) return fmt::format("an extent of {}, which is not listed", e.file);
    if (e.offset != end || e.length > size->second - end)
      return fmt::format("extents of {} that do not follow each other at byte {}", e.file, end);
    end += e.length;
  }
  for (const auto& [file, size] : sizes)
    if (covered[file] != size)
      return fmt::format("extents of {} that end at byte {} of {}", file, covered[file], size);
  return "";
}

std::string to_json(const Manifest& manifest) {
  ordered_json body{
      {"version", version}, {"files", ordered_json::array()}, {"extents", ordered_json::array()}};
  for (const auto& [file, size] : manifest.sizes) body["files"].push_back({{"file", file}, {"size", size}});
  for (const Extent& e : manifest.extents)
    body["extents"].push_back(
        {{"file", e.file}, {"offset", e.offset}, {"length", e.length}, {"xxh3", show_hash(e.xxh3)}});
  std::string hash = own_hash(body);
  body["xxh3"] = hash;
  return print_json(body, 1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  auto refuse = [&](const std::string& got, const std::string& hint = "the checkpoint is damaged") -> UserError {
    return UserError({where, "", "a valid manifest of a checkpoint", got, hint});
  };
  ordered_json body = try_parse_ordered_json(text, where);
  if (!body.is_object()) throw refuse("something that is not a JSON object");
  if (body.value("version", ordered_json()) != version)
    throw refuse(
        "version " +
        print_ascii_json(body.value("version", ordered_json())),
        fmt::format("only version {} is supported: use the version of megalith that wrote the checkpoint", version));
  ordered_json hash = body.value("xxh3", ordered_json());
  body.erase("xxh3");
  if (hash != own_hash(body)) throw refuse("a manifest that differs from its checksum");
  try {
    return from_json(body);
  } catch (const ordered_json::exception&) {
    throw refuse("a manifest with a missing field or a field of the wrong type");
  } catch (const std::invalid_argument& error) {
    throw refuse(error.what());
  }
}

}  // namespace megalith
