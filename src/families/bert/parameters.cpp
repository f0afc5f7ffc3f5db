#include <fmt/format.h>

#include "families/list.h"
#include "families/parameter_list.h"

namespace megalith::bert {

std::vector<BlockSpec> parameters(const ModelShape& s, const Mesh& mesh) {
  const Cutter own(mesh);
  const int64_t C = s.hidden, F = s.ffn;
  std::vector<BlockSpec> blocks;
  const std::string e = "bert.embeddings.";
  blocks.push_back(embedding_block({own.rows(matrix(e + "word_embeddings.weight", {s.vocab, C})),
                                    matrix(e + "position_embeddings.weight", {s.context, C}),
                                    matrix(e + "token_type_embeddings.weight", {s.token_types, C}),
                                    ones(e + "LayerNorm.weight", C), zeros(e + "LayerNorm.bias", C)}));
  for (int64_t i = 0; i < s.layers; i++) {
    std::string p = fmt::format("bert.encoder.layer.{}.", i);
    blocks.push_back(layer_block(i, {own.rows(matrix(p + "attention.self.query.weight", {C, C})),
                                     joined(own.rows(matrix(p + "attention.self.key.weight", {C, C}))),
                                     joined(own.rows(matrix(p + "attention.self.value.weight", {C, C}))),
                                     own.rows(zeros(p + "attention.self.query.bias", C)),
                                     joined(own.rows(zeros(p + "attention.self.key.bias", C))),
                                     joined(own.rows(zeros(p + "attention.self.value.bias", C))),
                                     own.columns(matrix(p + "attention.output.dense.weight", {C, C})),
                                     zeros(p + "attention.output.dense.bias", C),
                                     ones(p + "attention.output.LayerNorm.weight", C),
                                     zeros(p + "attention.output.LayerNorm.bias", C),
                                     own.rows(matrix(p + "intermediate.dense.weight", {F, C})),
                                     own.rows(zeros(p + "intermediate.dense.bias", F)),
                                     own.columns(matrix(p + "output.dense.weight", {C, F})),
                                     zeros(p + "output.dense.bias", C),
                                     ones(p + "output.LayerNorm.weight", C), zeros(p + "output.LayerNorm.bias", C)}));
  }
  blocks.push_back(head_block({}));
  if (s.head == HeadKind::representation) return blocks;
  const std::string h = "cls.predictions.";
  // Every rank has the whole transform, and computes its own rows with it.
  std::vector<ParameterSpec>& head = blocks.back().parameters;
  head = {matrix(h + "transform.dense.weight", {C, C}), zeros(h + "transform.dense.bias", C),
          ones(h + "transform.LayerNorm.weight", C), zeros(h + "transform.LayerNorm.bias", C),
          // The name that transformers computes with: an untied decoder has its own bias.
          own.rows(zeros(h + (s.tied ? "bias" : "decoder.bias"), s.vocab))};
  if (!s.tied) head.push_back(own.rows(matrix(h + "decoder.weight", {s.vocab, C})));
  return blocks;
}

}  // namespace megalith::bert
