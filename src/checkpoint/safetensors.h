// The safetensors format: 8 bytes of header length, a JSON header, then the tensors' bytes without gaps. Headers are not
// trusted: anything that does not follow the format exactly is a UserError with the reason.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file_handle.h"
#include "checkpoint/tensor_spec.h"

namespace megalith {

struct TensorEntry {
  TensorSpec spec;
  int64_t offset = 0;  // offset of the first byte from the beginning of the file
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// Largest header accepted, in bytes. The reference implementation has the same limit.
inline constexpr int64_t max_safetensors_header = 100'000'000;

// `prefix` is the beginning of a file of `file_size` bytes, at least up to the end of the header. If the file is shorter
// than its header claims, `prefix` is the whole file. `where` names the file in errors.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix, int64_t file_size,
                                           const std::string& where);

// Returns the header length and header of a file with these tensors in this order. Its size is a multiple of 8 bytes.
// The tensors' bytes follow without gaps.
std::string build_safetensors_header(std::span<const TensorSpec> tensors);

// An open file. Reads with pread instead of a mapping. So a disk error is an exception instead of a signal, and pages of
// the file never count as our memory. Reading is thread-safe.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return file_.path(); }
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const TensorEntry* find(std::string_view name) const;  // null: no such tensor

  // Elements [element_offset, element_offset + out.size()) in row-major order, converted from any float type.
  void read_f32(const std::string& name, int64_t element_offset, std::span<float> out) const;
  // The same without conversion; `out` is a whole number of elements.
  void read_bytes(const std::string& name, int64_t element_offset, std::span<std::byte> out) const;

 private:
  const TensorEntry& checked(const std::string& name, int64_t element_offset, int64_t count) const;

  FileHandle file_;
  SafetensorsHeader header_;
  std::map<std::string, size_t, std::less<>> index_;  // name -> position in header_.tensors
};

}  // namespace megalith
