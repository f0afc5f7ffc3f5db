// The embedding of a model: rows of the token table, learned positions if the family has them, dropout.
#pragma once
#include <optional>

#include "model/block.h"
#include "model/layers/dropout.h"
#include "model/layers/table.h"

namespace megalith {

class TokenEmbedding : public EmbeddingBlock {
 public:
  using EmbeddingBlock::EmbeddingBlock;

  at::Tensor forward(const at::Tensor&, const Pass& pass, Tape*) override {
    at::Tensor x_NC = tokens_.forward(pass);
    if (positions_) add_positions(*positions_, x_NC, pass);
    dropout_.drop(x_NC, pass);
    return x_NC;
  }

  at::Tensor backward(const at::Tensor& g_NC, const Pass& pass, Tape&) override {
    const at::Tensor g = dropout_.backward(g_NC, pass);
    if (positions_) add_position_gradient(*positions_, g, pass);
    tokens_.backward(g, pass);
    return {};
  }

  Weight table() const override { return tokens_.weight; }
  void fold() override { tokens_.fold(); }

 protected:
  TokenTable tokens_{shape_, exchanges_};
  std::optional<Weight> positions_;
  DropPlace dropout_{shape_.dropout.embedding, RandomUse::embedding_dropout};
};

}  // namespace megalith
