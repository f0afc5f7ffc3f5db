// The list of all op families.
#include <array>
#include <vector>

#include "base/error.h"
#include "schedule/op_type.h"
#include "schedule/ops/all.h"

namespace megalith {
namespace {

class Table {
 public:
  Table() {
    for (std::span<const OpType> family :
         {std::span<const OpType>(ops::compute_family::kTypes), std::span<const OpType>(ops::residency_family::kTypes),
          std::span<const OpType>(ops::device_family::kTypes), std::span<const OpType>(ops::ranks_family::kTypes),
          std::span<const OpType>(ops::pipeline_family::kTypes), std::span<const OpType>(ops::save_family::kTypes)})
      add(family);
  }

  void add(std::span<const OpType> types) {
    for (const OpType& type : types) {
      for (const OpType* other : all_)
        MEGALITH_ASSERT(other->kind != type.kind && other->letter != type.letter && other->name != type.name,
                        "two ops have the number, letter or name of \"{}\"", type.name);
      MEGALITH_ASSERT(type.due && type.effects, "the op \"{}\" is incomplete", type.name);
      by_number_[static_cast<size_t>(type.kind)] = &type;
      list();
    }
  }

  void remove(std::span<const OpType> types) {
    for (const OpType& type : types) by_number_[static_cast<size_t>(type.kind)] = nullptr;
    list();
  }

  const OpType* at(OpKind kind) const { return by_number_[static_cast<size_t>(kind)]; }
  std::span<const OpType* const> all() const { return all_; }

 private:
  void list() {
    all_.clear();
    for (const OpType* type : by_number_)
      if (type) all_.push_back(type);
  }

  std::array<const OpType*, 256> by_number_{};
  std::vector<const OpType*> all_;
};

Table& table() {
  static Table table;
  return table;
}

}  // namespace

const OpType& type_of(OpKind kind) {
  const OpType* type = table().at(kind);
  MEGALITH_ASSERT(type, "no op has the number {}", static_cast<int>(kind));
  return *type;
}

std::span<const OpType* const> op_types() { return table().all(); }

ExtraOps::ExtraOps(std::span<const OpType> types) : types_(types) { table().add(types_); }
ExtraOps::~ExtraOps() { table().remove(types_); }

Traffic traffic_of(const Schedule& schedule) {
  Traffic sum;
  for (const Op& op : schedule.ops) {
    const Traffic one = traffic_of(schedule, op);
    sum.read += one.read;
    sum.written += one.written;
    sum.copied += one.copied;
  }
  return sum;
}

}  // namespace megalith
