#include "text/byte_trie.h"

#include <algorithm>

namespace megalith {

ByteTrie::ByteTrie(Keys keys) {
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  grow(1);
  nodes_[kRoot].parent = kRoot;
  nodes_[kRoot].base = 1;  // a child must not use the root's own place
  std::vector<Range> open{{0, keys.size(), 0, kRoot}};
  std::vector<unsigned char> labels;
  while (!open.empty()) {
    Range range = open.back();
    open.pop_back();
    while (range.first < range.last && keys[range.first].first.size() == range.depth) {
      if (range.depth > 0) nodes_[static_cast<size_t>(range.node)].value = keys[range.first].second;
      range.first++;
    }
    auto label = [&](size_t key) { return static_cast<unsigned char>(keys[key].first[range.depth]); };
    labels.clear();
    for (size_t key = range.first; key < range.last; key++)
      if (labels.empty() || labels.back() != label(key)) labels.push_back(label(key));
    if (labels.empty()) continue;
    int32_t base = find_base(labels);
    nodes_[static_cast<size_t>(range.node)].base = base;
    for (size_t key = range.first; key < range.last;) {
      size_t next = key;
      while (next < range.last && label(next) == label(key)) next++;
      int32_t child = base + label(key);
      nodes_[static_cast<size_t>(child)].parent = range.node;
      open.push_back({key, next, range.depth + 1, child});
      key = next;
    }
  }
}

void ByteTrie::grow(size_t size) {
  if (nodes_.size() < size + 256) nodes_.resize(std::max(size + 256, nodes_.size() * 3 / 2));
}

int32_t ByteTrie::find_base(const std::vector<unsigned char>& labels) {
  while (nodes_[first_free_].parent != kNone) grow(++first_free_ + 1);
  size_t tried = 0;
  for (size_t place = std::max<size_t>(first_free_, labels[0] + 1u);; place++) {
    size_t base = place - labels[0];
    grow(base + 256);
    if (nodes_[place].parent != kNone) continue;
    bool free = std::all_of(labels.begin(), labels.end(),
                            [&](unsigned char label) { return nodes_[base + label].parent == kNone; });
    if (free) return static_cast<int32_t>(base);
    // After many holes that are too small, later searches start behind them.
    if (++tried == 512) first_free_ = std::max(first_free_, place - 256);
  }
}

}  // namespace megalith
