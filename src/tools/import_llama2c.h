// Import of llama2.c's version-0 model files (.bin): the layout of the TinyStories models.
#pragma once
#include <filesystem>
#include <string>

namespace megalith {

// Writes a folder with Hugging Face's names: config.json, model.safetensors and, where the text is not empty,
// tokenizer.json. out_dir must be missing or empty. A file of any other size than its header says is a
// UserError.
void import_llama2c(const std::filesystem::path& bin, const std::string& tokenizer_json,
                    const std::filesystem::path& out_dir);

// The text of tokenizer.json for that model: from llama2.c's tokenizer.bin, or a tokenizer.json as it is. Empty for an
// empty name.
std::string llama2c_tokenizer(const std::filesystem::path& bin, const std::string& tokenizer);

}  // namespace megalith
