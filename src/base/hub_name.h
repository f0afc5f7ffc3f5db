// Names of models on the Hugging Face Hub, such as gpt2 or Qwen/Qwen2-0.5B. Other programs download a model by its name;
// newcomers write such names where we expect a folder.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// Returns how to download the model, if `path` does not exist and may be such a name. Otherwise returns an empty text.
std::string how_to_download(const std::filesystem::path& path);

// Returns what to do about a missing folder or file of a model: a similar path, how to download it, or the current folder.
std::string where_to_get(const std::filesystem::path& missing);

}  // namespace megalith
