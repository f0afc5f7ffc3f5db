#include "base/hub_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/similar_file.h"

namespace megalith {
namespace {

bool may_be_hub_name(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const bool begins = !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) && name.back() != '/';
  return begins && std::ranges::all_of(name, fits) && std::ranges::count(name, '/') <= 1 && !name.starts_with("runs/");
}

bool names_file(const std::filesystem::path& path) {
  constexpr std::string_view kEndings[] = {".yaml", ".yml", ".json", ".safetensors", ".bin",
                                           ".pt",   ".gguf", ".txt",  ".model"};
  return std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings);
}

}  // namespace

std::string how_to_download(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code ignored;
  const bool in_a_folder = path.has_parent_path() && std::filesystem::exists(path.parent_path(), ignored);
  if (!may_be_hub_name(name) || names_file(path) || in_a_folder || std::filesystem::exists(path, ignored)) return "";
  return fmt::format("Megalith downloads nothing: if {0} is a model of Hugging Face, run `hf download {0} --local-dir {0}`",
                     name);
}

std::string where_to_get(const std::filesystem::path& missing) {
  const std::string download = how_to_download(missing);
  std::error_code ignored;
  if (download.empty() || std::filesystem::is_directory(similar_path(missing), ignored)) return where_it_may_be(missing);
  return download + ", then repeat this command";
}

}  // namespace megalith
