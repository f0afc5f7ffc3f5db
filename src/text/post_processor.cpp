#include "text/post_processor.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/component.h"

namespace megalith {
namespace {

TokenId checked_id(const Component& component, const nlohmann::json& json) {
  if (!json.is_number_integer() || json.get<int64_t>() < 0 || json.get<int64_t>() >= kLargestVocab)
    component.bad(fmt::format("token ids from 0 to {}", kLargestVocab - 1), print_json(json));
  return json.get<TokenId>();
}

PostProcessor read_template(const Component& component) {
  PostProcessor around;
  bool text_seen = false;
  for (const auto& part : component.array("single")) {
    if (part.is_object() && part.contains("Sequence")) {
      text_seen = true;
    } else if (part.is_object() && part.contains("SpecialToken")) {
      auto name = part.at("SpecialToken").at("id").get<std::string>();
      const auto& known = component.json.at("special_tokens");
      if (!known.contains(name)) component.bad("special_tokens with all tokens of the template", "none for " + name);
      for (const auto& id : known.at(name).at("ids"))
        (text_seen ? around.after : around.before).push_back(checked_id(component, id));
    } else {
      component.bad("Sequence and SpecialToken in the template", print_json(part));
    }
  }
  return around;
}

}  // namespace

PostProcessor read_post_processor(const Component& component) {
  if (component.json.is_null()) return {};
  std::string type = component.type();
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(component);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return {{checked_id(component, component.array("cls").at(1))},
            {checked_id(component, component.array("sep").at(1))}};
  if (type == "Sequence") {
    PostProcessor all;
    size_t index = 0;
    for (const auto& part : component.array("processors")) {
      PostProcessor one = read_post_processor(component.child(part, index++));
      all.before.insert(all.before.begin(), one.before.begin(), one.before.end());
      all.after.insert(all.after.end(), one.after.begin(), one.after.end());
    }
    return all;
  }
  component.unknown({"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"});
}

}  // namespace megalith
