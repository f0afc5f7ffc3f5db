// Parts of the tokenizer.json files that we write.
#pragma once
#include <nlohmann/json.hpp>

#include <string>

#include "text/tokenizer.h"

namespace megalith {

inline nlohmann::json added_token_json(TokenId id, const std::string& content, bool special = true) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

inline nlohmann::json byte_level_json(bool prefix_space, bool use_regex = true) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// The BPE model's settings around its "vocab" and "merges".
inline nlohmann::json bpe_json(nlohmann::json vocab, nlohmann::json merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

// A whole file; parts that are not given are null.
inline nlohmann::json tokenizer_file_json(nlohmann::json model, nlohmann::json added_tokens) {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"added_tokens", std::move(added_tokens)},
          {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
          {"post_processor", nullptr}, {"decoder", nullptr},
          {"model", std::move(model)}};
}

// How texts with a mark for every space are turned back, with byte tokens: Llama-2's decoder.
inline nlohmann::json marked_text_decoder_json(bool strip_first_space) {
  using nlohmann::json;
  json steps = json::array({json{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                            json{{"type", "ByteFallback"}}, json{{"type", "Fuse"}}});
  if (strip_first_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

}  // namespace megalith
