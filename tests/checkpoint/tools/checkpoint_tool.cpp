// Our side of safetensors_agreement.py: small commands that write, dump and rewrite folders.
//   write DIR            a checkpoint with a tensor of every type: element i is (7 i + 3) mod 251 (bool: its parity)
//   dump DIR             tensors of a model folder as JSON: name -> [type, shape, the floats' bits]
//   rewrite SRC DIR LIMIT [bf16]  config and weights through our types, in files of at most LIMIT bytes
//   shape DIR            reads config.json and writes it again
//   import BIN DIR       reads llama2.c's format
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "tools/import_llama2c.h"

using namespace megalith;

namespace {

int64_t sample(int64_t i) {
  return (7 * i + 3) % 251;
}

void write_element(DType dtype, int64_t value, std::byte* out) {
  if (dtype == DType::boolean) value &= 1;
  if (dtype == DType::f64) {
    double wide = static_cast<double>(value);
    std::memcpy(out, &wide, 8);
  } else if (is_float(dtype)) {
    float narrow = static_cast<float>(value);
    from_f32(dtype, std::span(&narrow, 1), std::span(out, static_cast<size_t>(size_of(dtype))));
  } else {
    std::memcpy(out, &value, static_cast<size_t>(size_of(dtype)));  // little-endian: the low bytes
  }
}

void write(const std::string& dir) {
  std::vector<TensorSpec> specs{
      {"scalar", DType::f32, {}}, {"none", DType::f32, {0, 3}}, {"näme \"x\"", DType::f32, {2}}};
  for (int i = 0; i <= static_cast<int>(DType::boolean); i++) {
    DType dtype = static_cast<DType>(i);
    specs.push_back({std::string(torch_name(dtype)), dtype, {3, i + 1, 5}});
  }
  std::vector<FileSpec> files = plan_files(specs, 1 << 20);
  CheckpointWriter writer(dir, files, {});
  for (const TensorSpec& spec : specs) {
    std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
    for (int64_t i = 0; i < spec.elements(); i++)
      write_element(spec.dtype, sample(i), bytes.data() + i * size_of(spec.dtype));
    writer.write(files[0].file, spec.name, 0, bytes);
  }
  writer.commit({{"step", 1}});
}

std::vector<float> read(const WeightSource& source, const TensorSpec& spec) {
  std::vector<float> values(static_cast<size_t>(spec.elements()));
  source.read_f32(spec.name, 0, values);
  return values;
}

void dump(const std::string& dir) {
  WeightSource source = WeightSource::open_model(dir);
  nlohmann::json out;
  for (const TensorSpec& spec : source.tensors()) {
    std::vector<uint32_t> bits;
    if (is_float(spec.dtype))
      for (float value : read(source, spec)) {
        bits.emplace_back();
        std::memcpy(&bits.back(), &value, 4);
      }
    out[spec.name] = {torch_name(spec.dtype), spec.shape, bits};
  }
  fmt::print("{}\n", print_json(out));
}

void rewrite(const std::string& from, const std::string& to, int64_t limit, DType dtype) {
  ModelShape shape = read_hf_config(from);
  WeightSource source = WeightSource::open_model(from);
  std::vector<TensorSpec> specs = source.tensors();
  for (TensorSpec& spec : specs) spec.dtype = dtype;
  source.check_matches(specs);
  std::vector<FileSpec> files = plan_files(specs, limit);
  auto small = index_file(files);
  small.emplace_back("config.json", hf_config(shape, {}, dtype));
  CheckpointWriter writer(to, files, small);
  for (const FileSpec& file : files)
    for (const TensorSpec& spec : file.tensors) {
      std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
      from_f32(dtype, read(source, spec), bytes);
      writer.write(file.file, spec.name, 0, bytes);
    }
  writer.commit(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  args.resize(5);
  try {
    if (args[0] == "write") return write(args[1]), 0;
    if (args[0] == "dump") return dump(args[1]), 0;
    if (args[0] == "rewrite")
      return rewrite(args[1], args[2], std::stoll(args[3]), args[4] == "bf16" ? DType::bf16 : DType::f32), 0;
    if (args[0] == "shape") return fmt::print("{}", hf_config(read_hf_config(args[1]))), 0;
    if (args[0] == "import") return import_llama2c(args[1], "", args[2]), 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  fmt::print(stderr, "unknown command\n");
  return 2;
}
