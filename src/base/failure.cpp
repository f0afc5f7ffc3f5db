#include "base/failure.h"

#include <filesystem>
#include <new>

namespace megalith {

Failure failure_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UserError& error) {
    return {ExitCode::user, error.what()};
  } catch (const Interrupted& error) {
    return {ExitCode::interrupted, error.what()};
  } catch (const Fault& error) {
    return {ExitCode::fault, error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
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

}  // namespace megalith
