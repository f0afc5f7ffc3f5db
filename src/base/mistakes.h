// Collects the mistakes that several checks find, so that the user sees all of them at once.
#pragma once
#include <utility>
#include <vector>

#include "base/error.h"

namespace megalith {

// Several mistakes in one error. The message lists them, one in a line.
struct SeveralMistakes : UserError {
  explicit SeveralMistakes(std::vector<UserError> mistakes);
  std::vector<UserError> all;
};

class Mistakes {
 public:
  // Runs a check and keeps the mistakes that it throws. Other exceptions pass through. Returns true if there was none.
  template <class Check>
  bool none_in(const Check& check) {
    try {
      check();
      return true;
    } catch (const SeveralMistakes& mistakes) {
      all_.insert(all_.end(), mistakes.all.begin(), mistakes.all.end());
    } catch (const UserError& mistake) {
      all_.push_back(mistake);
    }
    return false;
  }
  void add(UserError mistake) { all_.push_back(std::move(mistake)); }

  // Throws the only mistake as it is, several as SeveralMistakes. Does nothing if there is no mistake. Leaves out a mistake
  // whose expected value names the key of an earlier mistake, because it may be a consequence of that one.
  void throw_any() const;

 private:
  std::vector<UserError> all_;
};

}  // namespace megalith
