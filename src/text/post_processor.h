// The tokens that are put around a text if the caller asks for special tokens: [CLS] … [SEP], <s> …
#pragma once
#include <vector>

#include "text/token_model.h"

namespace megalith {

struct Component;

struct PostProcessor {
  std::vector<TokenId> before, after;
};

// Supports TemplateProcessing (the template for a single text), BertProcessing, RobertaProcessing, ByteLevel (which
// changes no ids), Sequence and null.
PostProcessor read_post_processor(const Component& component);

}  // namespace megalith
