#include "text/tokenizer_json.h"

#include <nlohmann/json.hpp>

namespace megalith {

using nlohmann::json;

json added_token_json(TokenId id, const std::string& content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

json byte_level_json(bool prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

json bpe_json(json vocab, json merges) {
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

json tokenizer_file_json(json model, json added_tokens) {
  return {{"version", "1.0"},          {"truncation", nullptr},
          {"padding", nullptr},        {"added_tokens", std::move(added_tokens)},
          {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
          {"post_processor", nullptr}, {"decoder", nullptr},
          {"model", std::move(model)}};
}

json marked_text_decoder_json(bool strip_first_space) {
  json steps = json::array({json{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                            json{{"type", "ByteFallback"}}, json{{"type", "Fuse"}}});
  if (strip_first_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

}  // namespace megalith
