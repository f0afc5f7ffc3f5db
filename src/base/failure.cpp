#include "base/failure.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

namespace megalith {
namespace {

// A path that cannot be used is the user's mistake. A file that vanished is a fault.
Failure failure_of_path(const std::filesystem::filesystem_error& error) {
  constexpr int kMistakes[] = {ENAMETOOLONG, EACCES, EPERM, ENOTDIR, ELOOP, EROFS};
  const bool mistake = std::ranges::find(kMistakes, error.code().value()) != std::end(kMistakes);
  const std::string path = error.path1().string();
  return {mistake ? ExitCode::user : ExitCode::fault,
          path.empty() ? error.what() : fmt::format("{}: {}", shortened(path), error.code().message())};
}

Failure failure_with_whole_words(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UserError& error) {
    return {ExitCode::user, error.what()};
  } catch (const Interrupted& error) {
    return {ExitCode::interrupted, error.what()};
  } catch (const Fault& error) {
    return {ExitCode::fault, error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return failure_of_path(error);
  } catch (const std::system_error& error) {  // usually a thread that could not be started
    return {ExitCode::fault, error.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::fault, "out of memory"};
  } catch (const Bug& error) {
    return {ExitCode::bug, error.what()};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return {ExitCode::bug, text.substr(0, text.find('\n'))};
  } catch (...) {
    return {ExitCode::bug, "an exception that is not a std::exception"};
  }
}

}  // namespace

Failure failure_of(const std::exception_ptr& thrown) {
  Failure failure = failure_with_whole_words(thrown);
  failure.text = with_short_words(failure.text);
  return failure;
}

}  // namespace megalith
