// Both ends of a connection between hosts prove that they know the secret of the run. The secret itself is never sent.
//
//   supervisor  {"challenge": C}
//   monitor     {"host": H, "challenge": D, "proof": HMAC(secret, "monitor", C, D, H)}
//   supervisor  {"proof": HMAC(secret, "supervisor", C, D, H)}
//
// C and D are new random numbers, so a proof that was overheard is useless for another connection.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/new_file.h"

namespace megalith::launch {

inline constexpr size_t kLongestHello = 1024;   // bytes of one line of the handshake
inline constexpr double kHandshake_s = 5;       // time from the connection to the proof

std::string new_secret();

class SupervisorHandshake {
 public:
  explicit SupervisorHandshake(std::string secret) : secret_(std::move(secret)) {}
  std::string greeting() const;  // the first line
  struct Admitted {
    std::string host, reply;
  };
  std::optional<Admitted> admit(std::string_view line) const;  // empty if the proof is wrong

 private:
  std::string secret_, challenge_ = random_hex(32);
};

class MonitorHandshake {
 public:
  MonitorHandshake(std::string secret, std::string host) : secret_(std::move(secret)), host_(std::move(host)) {}
  std::optional<std::string> answer(std::string_view greeting);  // empty if this is not a greeting
  bool accepts(std::string_view reply) const;                    // after answer()

 private:
  std::string secret_, host_, their_challenge_, challenge_ = random_hex(32);
};

}  // namespace megalith::launch
