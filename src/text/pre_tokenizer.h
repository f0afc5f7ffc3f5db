// Cuts text into words. The model tokenizes each word separately.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace megalith {

struct Component;

class PreTokenizer {
 public:
  // Receives the words in order. A view is valid during the call only.
  class Sink {
   public:
    virtual void word(std::string_view text) = 0;

   protected:
    ~Sink() = default;
  };

  virtual ~PreTokenizer() = default;
  // `begins`: the text is the beginning of the input. `continues`: the text continues an earlier piece of the input. If
  // both are false, the text follows a special token.
  struct Place {
    bool begins = true;
    bool continues = false;
  };
  virtual void split(std::string_view text, Place place, Sink& sink) const = 0;
};

// Facts about a pre-tokenizer that the model needs.
struct PreTokenizerTraits {
  bool byte_level = false;  // the model's vocabulary is written in GPT-2's byte alphabet
  std::string word_marker;  // stands for a space at the beginning of a word; empty if the pre-tokenizer uses no marker
};

// Returns null for a JSON null: the whole text is one word. Supports Sequence, ByteLevel, Split, Metaspace,
// WhitespaceSplit, BertPreTokenizer, Digits.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Component& component, PreTokenizerTraits& traits);

}  // namespace megalith
