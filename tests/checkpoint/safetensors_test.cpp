#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "base/philox.h"
#include "checkpoint/support.h"

namespace megalith {
namespace {

using test::TempDir;
using test::user_error;

std::string file_with(const std::string& json, int64_t data_bytes) {
  uint64_t length = json.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + json + std::string(static_cast<size_t>(data_bytes), 'x');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(as_bytes(file), std::ssize(file), "f.safetensors");
}

std::string refusal(const std::string& json, int64_t data_bytes) {
  return user_error([&] { parse(file_with(json, data_bytes)); });
}

TEST(Safetensors, BuiltHeaderParsesBackWithOffsetsThatFollowFromTheShapes) {
  std::vector<TensorSpec> specs{{"b", DType::bf16, {3, 5}},
                                {"a", DType::f32, {}},
                                {"empty", DType::i64, {0, 7}},
                                {"z", DType::u8, {1}}};
  std::string header = build_safetensors_header(specs);
  EXPECT_EQ(header.size() % 8, 0u);
  SafetensorsHeader back = parse(header + std::string(30 + 4 + 1, 'x'));
  int64_t offset = std::ssize(header);
  ASSERT_EQ(back.tensors.size(), specs.size());
  for (size_t i = 0; i < specs.size(); i++) {
    EXPECT_EQ(back.tensors[i].spec, specs[i]);
    EXPECT_EQ(back.tensors[i].offset, offset);
    offset += specs[i].bytes();
  }
  EXPECT_EQ(back.metadata.at("format"), "pt");
}

TEST(Safetensors, AFileMayHoldNoTensors) {
  EXPECT_TRUE(parse(file_with("{}", 0)).tensors.empty());
}

TEST(Safetensors, LengthsThatLieAreRefused) {
  std::string file = file_with("{}", 0);
  EXPECT_CONTAINS(user_error([&] { parse(file.substr(0, 5)); }), "at least 8 bytes, got 5");
  EXPECT_CONTAINS(user_error([&] { parse(""); }), "at least 8 bytes, got 0");
  for (uint64_t length :
       {uint64_t{3}, uint64_t{100'000'000}, uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    std::memcpy(file.data(), &length, 8);
    EXPECT_CONTAINS(user_error([&] { parse(file); }), "a header of");
  }
  EXPECT_CONTAINS(refusal("", 4), "an empty one");
  EXPECT_CONTAINS(refusal(" {}", 0), "begins with {");
}

struct Hostile {
  const char* json;
  int64_t data_bytes;
  const char* reason;
};

TEST(Safetensors, HostileHeadersAreRefusedWithTheirReason) {
  const std::vector<Hostile> cases{
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8, "JSON"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x)", 8, "JSON"},
      {"{\"\xff\xfe\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "UTF-8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
       16, "twice"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "twice"},
      {R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", 2, "F8_E4M3"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "only some of them"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})", 8, "more"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 8, "two data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "got -2"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "whole numbers"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}})", 8,
       "9223372036854775808"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})", 8, "whole numbers"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "less than 2^63"},
      {R"({"a":{"dtype":"F32","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, "less than 2^63"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "12 bytes for shape [3]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "data_offsets [8, 0]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[9223372036854775800,9223372036854775807]}})", 8,
       "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[9223372036854775799,9223372036854775807]}})", 8,
       "gap"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", 16, "gap"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 15, "truncated"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9, "9 bytes after the header"},
      {R"({"a":[1]})", 0, "an array"},
      {R"({"a":{"dtype":["F32"],"shape":[],"data_offsets":[0,4]}})", 4, "dtype as text"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, "an array"},
      {R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})", 4, "an object"},
      {R"({"a":null})", 0, "null"},
      {R"({"__metadata__":{"a":{}}})", 0, "text"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, "twice"},
  };
  for (const Hostile& c : cases) {
    std::string message = refusal(c.json, c.data_bytes);
    EXPECT_CONTAINS(message, c.reason);
    EXPECT_TRUE(message.starts_with("f.safetensors: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Safetensors, DeepJsonIsRefusedWithoutDescending) {
  std::string deep = R"({"a":)" + std::string(5'000'000, '[');
  EXPECT_CONTAINS(refusal(deep, 0), "an array");
}

TEST(Safetensors, RandomDamageIsAcceptedOrAUserErrorAndNothingElse) {
  std::vector<TensorSpec> specs{{"a.weight", DType::f32, {2, 3}}, {"b", DType::f16, {5}}};
  const std::string good = build_safetensors_header(specs) + std::string(34, 'x');
  Philox random(7, RandomUse::test, 2);
  const std::string alphabet = "{}[]\",:0123456789-eE.\\u \xff\x80";
  int refused = 0, rounds = 20000;
  for (int round = 0; round < rounds; round++) {
    std::string file = good;
    for (uint64_t edit = 0; edit < 1 + random.below(static_cast<uint64_t>(round) * 8, 3); edit++) {
      uint64_t index = static_cast<uint64_t>(round) * 64 + edit * 4;
      size_t at = random.below(index, file.size());
      switch (random.below(index + 1, 3)) {
        case 0:
          file[at] = alphabet[random.below(index + 2, alphabet.size())];
          break;
        case 1:
          file.erase(at, 1 + random.below(index + 2, 4));
          break;
        default:
          file.insert(at, 1, alphabet[random.below(index + 2, alphabet.size())]);
      }
    }
    try {
      SafetensorsHeader header = parse(file);
      for (const TensorEntry& tensor : header.tensors)
        ASSERT_LE(tensor.offset + tensor.spec.bytes(), std::ssize(file));
    } catch (const UserError&) {
      refused++;
    }
  }
  EXPECT_GT(refused, rounds / 2);
}

TEST(Safetensors, AnySliceReadsBackFromAnyFloatType) {
  TempDir temp;
  std::vector<float> values = test::ramp(200'000, -100);  // more than one conversion buffer
  for (float& v : values) v = f32_from_bf16(bf16_from_f32(v));
  for (DType dtype : {DType::f32, DType::bf16}) {
    TensorSpec pad{"pad", DType::u8, {3}}, spec{"w", dtype, {200, 1000}};
    std::string file = build_safetensors_header(std::vector{pad, spec}) + "abc";
    std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
    from_f32(dtype, values, bytes);
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    write_file_atomically(temp / "w.safetensors", file);
    SafetensorsFile reader(temp / "w.safetensors");
    std::vector<float> slice(150'000);
    reader.read_f32("w", 12'345, slice);
    EXPECT_TRUE(std::equal(slice.begin(), slice.end(), values.begin() + 12'345));
    std::byte letters[2];
    reader.read_bytes("pad", 1, letters);
    EXPECT_EQ(static_cast<char>(letters[0]), 'b');
    EXPECT_THROW(reader.read_f32("w", 200'000 - 10, std::span(slice).first(11)), Bug);
    EXPECT_CONTAINS(user_error([&] { reader.read_f32("pad", 0, std::span(slice).first(1)); }), "U8");
    EXPECT_CONTAINS(user_error([&] { reader.read_f32("v", 0, slice); }), "a tensor with this name");
  }
}

TEST(Safetensors, AFileThatCannotBeReadSaysWhy) {
  TempDir temp;
  EXPECT_CONTAINS(user_error([&] { SafetensorsFile(temp / "none"); }), "No such file");
  EXPECT_CONTAINS(user_error([&] { SafetensorsFile{temp.path()}; }), "Is a directory");
  ASSERT_EQ(::mkfifo((temp / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(user_error([&] { SafetensorsFile(temp / "pipe"); }), "expected a regular file, got a pipe or a device");
  const std::string deep = R"({"a": )" + std::string(30000, '[');
  const uint64_t length = deep.size();
  write_file_atomically(temp / "deep", std::string(reinterpret_cast<const char*>(&length), 8) + deep);
  EXPECT_CONTAINS(user_error([&] { SafetensorsFile(temp / "deep"); }), "expected an object, got an array");
  write_file_atomically(temp / "lie", std::string(8, '\x7f'));
  EXPECT_CONTAINS(user_error([&] { SafetensorsFile(temp / "lie"); }), "a header of at most");
}

}  // namespace
}  // namespace megalith
