#include "launch/handshake.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/sha256.h"

namespace megalith::launch {
namespace {

constexpr size_t kLongestHost = 255;  // bytes; the limit of host names in POSIX

// Incoming messages are not trusted: a field of another type counts as missing.
std::string text_field(const nlohmann::json& message, const char* key) {
  if (!message.is_object()) return "";
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

// Challenges have a fixed length and the host is last, so different inputs always give different messages.
std::string proof(const std::string& secret, std::string_view who, std::string_view c, std::string_view d,
                  std::string_view host) {
  return hex(hmac_sha256(secret, fmt::format("megalith {} {} {} {}", who, c, d, host)));
}

bool is_challenge(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string new_secret() { return random_hex(32); }

std::string SupervisorHandshake::greeting() const { return print_json(nlohmann::json{{"challenge", challenge_}}) + "\n"; }

std::optional<SupervisorHandshake::Admitted> SupervisorHandshake::admit(std::string_view line) const {
  const nlohmann::json message = try_parse_json(line);
  const std::string host = text_field(message, "host"), theirs = text_field(message, "challenge");
  if (host.empty() || host.size() > kLongestHost || !is_challenge(theirs)) return std::nullopt;
  if (!equal_in_constant_time(text_field(message, "proof"), proof(secret_, "monitor", challenge_, theirs, host)))
    return std::nullopt;
  const std::string ours = proof(secret_, "supervisor", challenge_, theirs, host);
  return Admitted{host, print_json(nlohmann::json{{"proof", ours}}) + "\n"};
}

std::optional<std::string> MonitorHandshake::answer(std::string_view greeting) {
  their_challenge_ = text_field(try_parse_json(greeting), "challenge");
  if (!is_challenge(their_challenge_)) return std::nullopt;
  return print_json(nlohmann::json{{"host", host_},
                                   {"challenge", challenge_},
                                   {"proof", proof(secret_, "monitor", their_challenge_, challenge_, host_)}}) +
         "\n";
}

bool MonitorHandshake::accepts(std::string_view reply) const {
  return is_challenge(their_challenge_) &&
         equal_in_constant_time(text_field(try_parse_json(reply), "proof"),
                                proof(secret_, "supervisor", their_challenge_, challenge_, host_));
}

}  // namespace megalith::launch
