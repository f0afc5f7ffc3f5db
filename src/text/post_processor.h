// The tokens put around a text when special tokens are asked for: [CLS] … [SEP], <s> …
#pragma once
#include <vector>

#include "text/token_model.h"

namespace megalith {

struct Component;

struct PostProcessor {
  std::vector<TokenId> before, after;
};

// Knows TemplateProcessing (its template for one text), BertProcessing, RobertaProcessing, ByteLevel (which
// changes no ids), Sequence and null.
PostProcessor read_post_processor(const Component& component);

}  // namespace megalith
