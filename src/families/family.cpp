#include "families/family.h"

namespace megalith {

ModelShape default_shape(const Family& family) {
  ModelShape shape = family.defaults();
  shape.family = &family;
  return shape;
}

void fill_defaults(ModelShape& shape) {
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.ffn == 0) shape.family->fill(shape);
  if (!shape.experts.any()) return;
  if (shape.experts.top_k == 0) shape.experts.top_k = shape.experts.router == Router::switch_ ? 1 : 2;
  if (shape.experts.ffn == 0) shape.experts.ffn = shape.ffn;
}

}  // namespace megalith
