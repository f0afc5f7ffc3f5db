// Imports llama2.c's version-0 model files (.bin), the format of the TinyStories models.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// Writes a folder with Hugging Face's names: config.json, model.safetensors and, if `tokenizer_json` is not empty,
// tokenizer.json. `out_dir` must be missing or empty. Throws UserError if the size of `bin` does not match its header.
void import_llama2c(const std::filesystem::path& bin, const std::string& tokenizer_json,
                    const std::filesystem::path& out_dir);

// Returns the text of tokenizer.json for that model. `tokenizer` names llama2.c's tokenizer.bin, which is converted, or a
// tokenizer.json, which is used unchanged. Returns an empty text for an empty name.
std::string llama2c_tokenizer(const std::filesystem::path& bin, const std::string& tokenizer);

}  // namespace megalith
