#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace megalith {
namespace {

using nlohmann::json;

constexpr int64_t length_bytes = 8;  // the header's length, little-endian

// A name from the file, shortened and escaped for one line of a message.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, 80));
  return print_ascii_json(json(text)) + (name.size() > 80 ? "..." : "");
}

// Reads the header's JSON while it is parsed: {name: {"dtype": s, "shape": [n...], "data_offsets": [a, b]}, ...,
// "__metadata__": {s: s}}. Anything else stops the parser at once. So depth and memory are bounded by the header's
// length.
class HeaderSax : public nlohmann::json_sax<json> {
 public:
  struct Tensor {
    std::string name;
    std::optional<std::string> dtype;
    std::optional<std::vector<int64_t>> shape, offsets;
  };
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;

  explicit HeaderSax(const std::string& where) : where_(where) {}

  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    throw UserError({where_, key_path(), expected, got, "the file is damaged, or is not a safetensors file"});
  }

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_float(double, const std::string& text) override { return value(shown(text)); }
  bool binary(json::binary_t&) override { return value("binary"); }
  bool number_integer(int64_t number) override {
    if (number < 0) return value(std::to_string(number));
    return number_unsigned(static_cast<uint64_t>(number));
  }
  bool number_unsigned(uint64_t number) override {
    if (level_ != Level::array || number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return value(std::to_string(number));
    array_->push_back(static_cast<int64_t>(number));
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == Level::metadata) {
      metadata[field_] = text;
    } else if (level_ == Level::tensor && field_ == "dtype") {
      tensors.back().dtype = text;
    } else {
      return value(shown(text));
    }
    return true;
  }

  bool key(std::string& text) override {
    if (level_ == Level::top) {
      name_ = text;
      if (!names_.insert(text).second) refuse("unique names", "this name twice");
      return true;
    }
    field_ = text;
    if (level_ == Level::metadata && metadata.contains(text)) refuse("unique names", "this name twice");
    if (level_ == Level::tensor) {
      const Tensor& t = tensors.back();
      if (text != "dtype" && text != "shape" && text != "data_offsets")
        refuse("dtype, shape or data_offsets", shown(text));
      if ((text == "dtype" && t.dtype) || (text == "shape" && t.shape) ||
          (text == "data_offsets" && t.offsets))
        refuse("unique fields", shown(text) + " twice");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (level_ == Level::outside) {
      level_ = Level::top;
    } else if (level_ == Level::top && name_ == "__metadata__") {
      level_ = Level::metadata;
    } else if (level_ == Level::top) {
      level_ = Level::tensor;
      tensors.push_back({name_, {}, {}, {}});
    } else {
      return value("an object");
    }
    return true;
  }

  bool end_object() override {
    if (level_ == Level::tensor) {
      const Tensor& t = tensors.back();
      if (!t.dtype || !t.shape || !t.offsets) refuse("dtype, shape and data_offsets", "only some of them");
      if (t.offsets->size() != 2) refuse("two data_offsets", std::to_string(t.offsets->size()));
    }
    level_ = level_ == Level::top ? Level::outside : Level::top;
    field_.clear();
    return true;
  }

  bool start_array(size_t) override {
    if (level_ != Level::tensor || field_ == "dtype") return value("an array");
    auto& target = field_ == "shape" ? tensors.back().shape : tensors.back().offsets;
    array_ = &target.emplace();
    level_ = Level::array;
    return true;
  }

  bool end_array() override {
    level_ = Level::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    name_.clear();
    // "[json.exception...] parse error at line 1, column 7: syntax error ...; last read: ..."
    std::string reason = error.what();
    if (size_t end = reason.find("; last read"); end != std::string::npos) reason.resize(end);
    if (size_t start = reason.find("column"); start != std::string::npos)
      if (size_t colon = reason.find(": ", start); colon != std::string::npos) reason.erase(0, colon + 2);
    refuse("a JSON header", fmt::format("{} (byte {} of the header)", reason, position));
  }

 private:
  enum class Level { outside, top, metadata, tensor, array };

  std::string key_path() const { return name_.empty() ? "header" : shown(name_); }

  // Reports a value of the wrong type.
  bool value(const std::string& got) const {
    if (level_ == Level::array) refuse(fmt::format("whole numbers from 0 to 2^63-1 in {}", field_), got);
    if (level_ == Level::metadata) refuse("text", got);
    if (level_ == Level::tensor) refuse(field_ == "dtype" ? "dtype as text" : field_ + " as an array", got);
    refuse("an object", got);
  }

  const std::string& where_;
  Level level_ = Level::outside;
  std::string name_, field_;
  std::set<std::string> names_;
  std::vector<int64_t>* array_ = nullptr;  // points into tensors.back()
};

TensorSpec checked_spec(const HeaderSax::Tensor& t, const std::string& where) {
  std::optional<DType> dtype = dtype_from_safetensors(*t.dtype);
  if (!dtype)
    throw UserError({where, shown(t.name), "F32, BF16, F16, F64 or an integer type", shown(*t.dtype),
                     "other types are not supported: convert the tensor first"});
  int64_t bytes = size_of(*dtype);
  for (int64_t extent : *t.shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw UserError(
          {where, shown(t.name), "a shape of less than 2^63 bytes", show_shape(*t.shape), "the file is damaged"});
  int64_t begin = (*t.offsets)[0], end = (*t.offsets)[1];
  if (end < begin || end - begin != bytes)
    throw UserError({where, shown(t.name),
                     fmt::format("{} bytes for shape {} of {}", bytes, show_shape(*t.shape), *t.dtype),
                     fmt::format("data_offsets [{}, {}]", begin, end), "the file is damaged"});
  return {t.name, *dtype, *t.shape};
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix, int64_t file_size,
                                           const std::string& where) {
  auto refuse = [&](const std::string& expected, const std::string& got) {
    throw UserError({where, "", expected, got, "the file is damaged, or is not a safetensors file"});
  };
  if (file_size < length_bytes || prefix.size() < length_bytes)
    refuse("at least 8 bytes", fmt::format("{}", file_size));
  uint64_t length;
  std::memcpy(&length, prefix.data(), sizeof length);
  if (length > static_cast<uint64_t>(max_safetensors_header))
    refuse(fmt::format("a header of at most {} bytes", max_safetensors_header), fmt::format("{}", length));
  int64_t data_begin = length_bytes + static_cast<int64_t>(length);
  if (data_begin > file_size || data_begin > static_cast<int64_t>(prefix.size()))
    refuse(fmt::format("a header of {} bytes", length), fmt::format("a file of {} bytes", file_size));

  const char* text = reinterpret_cast<const char*>(prefix.data()) + length_bytes;
  if (length == 0 || *text != '{')
    refuse("a header that begins with {", length == 0 ? "an empty one" : "something else");
  HeaderSax sax(where);
  json::sax_parse(text, text + length, &sax);

  SafetensorsHeader header;
  header.metadata = std::move(sax.metadata);
  for (const HeaderSax::Tensor& t : sax.tensors)
    header.tensors.push_back({checked_spec(t, where), (*t.offsets)[0]});
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorEntry& a, const TensorEntry& b) {
                     // An empty tensor precedes the tensor that begins at the same offset.
                     return std::pair(a.offset, a.spec.bytes()) < std::pair(b.offset, b.spec.bytes());
                   });
  int64_t expected = 0, data_size = file_size - data_begin;
  for (TensorEntry& tensor : header.tensors) {
    if (tensor.offset != expected)
      throw UserError(
          {where, shown(tensor.spec.name), fmt::format("bytes that begin at offset {}", expected),
           fmt::format("{}", tensor.offset),
           tensor.offset > expected ? "the file has a gap before this tensor" : "this tensor overlaps the previous one"});
    if (tensor.spec.bytes() > data_size - expected)
      throw UserError({where, shown(tensor.spec.name), fmt::format("{} bytes", tensor.spec.bytes()),
                       fmt::format("{} up to the end of the file", data_size - expected),
                       "the file is truncated"});
    expected += tensor.spec.bytes();
    tensor.offset += data_begin;
  }
  if (expected != data_size)
    refuse(fmt::format("{} bytes of tensors", expected),
           fmt::format("{} bytes after the header", data_size));
  return header;
}

std::string build_safetensors_header(std::span<const TensorSpec> tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};  // transformers requires it
  int64_t offset = 0;
  std::set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    MEGALITH_ASSERT(names.insert(tensor.name).second && tensor.name != "__metadata__", "{}", tensor.name);
    int64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", safetensors_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = print_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  std::string result(length_bytes, '\0');
  std::memcpy(result.data(), &length, sizeof length);
  return result + text;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(FileHandle::open_to_read(path)) {
  int64_t size = file_.size();
  std::vector<std::byte> prefix(static_cast<size_t>(std::min(size, length_bytes)));
  file_.read_at(0, prefix);
  if (size >= length_bytes) {
    uint64_t length;
    std::memcpy(&length, prefix.data(), sizeof length);
    // The parser reports a wrong length. This check only prevents a huge allocation.
    if (length <= static_cast<uint64_t>(std::min(size - length_bytes, max_safetensors_header))) {
      prefix.resize(length_bytes + length);
      file_.read_at(0, prefix);
    }
  }
  header_ = parse_safetensors_header(prefix, size, path.string());
  for (size_t i = 0; i < header_.tensors.size(); i++) index_[header_.tensors[i].spec.name] = i;
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

const TensorEntry& SafetensorsFile::checked(const std::string& name, int64_t element_offset,
                                            int64_t count) const {
  const TensorEntry* tensor = find(name);
  if (!tensor) throw UserError({path().string(), shown(name), "a tensor with this name", "no such tensor", ""});
  MEGALITH_ASSERT(element_offset >= 0 && count >= 0 && element_offset <= tensor->spec.elements() - count,
                  "elements {} + {} of {}, which has {}", element_offset, count, name,
                  tensor->spec.elements());
  return *tensor;
}

void SafetensorsFile::read_bytes(const std::string& name, int64_t element_offset,
                                 std::span<std::byte> out) const {
  const TensorEntry* known = find(name);
  int64_t size = known ? size_of(known->spec.dtype) : 1, count = static_cast<int64_t>(out.size()) / size;
  const TensorEntry& tensor = checked(name, element_offset, count);
  MEGALITH_ASSERT(count * size == static_cast<int64_t>(out.size()));
  file_.read_at(tensor.offset + element_offset * size, out);
}

void SafetensorsFile::read_f32(const std::string& name, int64_t element_offset, std::span<float> out) const {
  const TensorEntry& tensor = checked(name, element_offset, static_cast<int64_t>(out.size()));
  DType dtype = tensor.spec.dtype;
  if (!is_float(dtype))
    throw UserError(
        {path().string(), shown(name), "a floating-point tensor", std::string(safetensors_name(dtype)), ""});
  int64_t size = size_of(dtype), offset = tensor.offset + element_offset * size;
  if (dtype == DType::f32) return file_.read_at(offset, std::as_writable_bytes(out));
  std::vector<std::byte> buffer(std::min<size_t>(out.size(), 1 << 16) * static_cast<size_t>(size));
  while (!out.empty()) {
    size_t count = std::min<size_t>(out.size(), 1 << 16);
    std::span<std::byte> bytes = std::span(buffer).first(count * static_cast<size_t>(size));
    file_.read_at(offset, bytes);
    to_f32(dtype, bytes, out.first(count));
    out = out.subspan(count);
    offset += static_cast<int64_t>(bytes.size());
  }
}

}  // namespace megalith
