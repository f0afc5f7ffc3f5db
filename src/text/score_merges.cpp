#include "text/score_merges.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "text/utf8.h"

namespace megalith {

std::vector<ScoreMerge> merges_by_score(std::span<const std::string> names, std::span<const float> scores) {
  std::unordered_map<std::string_view, TokenId> ids;
  for (size_t id = 0; id < names.size(); id++) ids.emplace(names[id], static_cast<TokenId>(id));
  std::vector<ScoreMerge> merges;
  for (size_t id = 0; id < names.size(); id++) {
    const std::string_view name = names[id];
    for (size_t cut = 0; cut < name.size();) {
      cut += code_point_at(name, cut).bytes;
      auto left = ids.find(name.substr(0, cut)), right = ids.find(name.substr(cut));
      if (cut < name.size() && left != ids.end() && right != ids.end())
        merges.push_back({scores[id], left->second, right->second, static_cast<TokenId>(id)});
    }
  }
  std::stable_sort(merges.begin(), merges.end(), [](const ScoreMerge& a, const ScoreMerge& b) {
    return std::tuple(-a.score, a.left, a.right) < std::tuple(-b.score, b.left, b.right);
  });
  return merges;
}

nlohmann::json merges_json(std::span<const ScoreMerge> merges, std::span<const std::string> names) {
  nlohmann::json list = nlohmann::json::array();
  for (const ScoreMerge& merge : merges)
    list.push_back({names[static_cast<size_t>(merge.left)], names[static_cast<size_t>(merge.right)]});
  return list;
}

}  // namespace megalith
