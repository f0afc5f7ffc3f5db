// Adafactor (Shazeer & Stern, 2018, algorithms 4 and 5). The second moments of a matrix are one number per row and one per
// column. There is no momentum. The learning rate is that of the schedule: no relative steps, no scaling by the parameter's
// size. Weight decay is decoupled. With b = 1 - t^-0.8 and eps = 1e-30:
//   matrix  R = b R + (1 - b) (mean over the row of g^2 + eps);  C likewise over the column
//           u = g / sqrt(R C / mean(R))
//   other   V = b V + (1 - b) (g^2 + eps);  u = g / sqrt(V)
//   p *= 1 - lr wd;  p -= lr u / max(1, rms(u) / d),  d = 1
// Statistics of round 0 are the new R and C, so apply may write them from every slice of the matrix. Those of round 1 are
// the sums of u^2 over fixed chunks of the parameter. All sums run in element order. So slices processed in order give the
// same bits as the whole parameter.
#include <cmath>

#include "base/error.h"
#include "optim/kernel.h"
#include "optim/optimizer.h"

namespace megalith {
namespace {

constexpr double kEps = 1e-30;
constexpr double kDecayPower = -0.8;
constexpr double kClip = 1.0;         // d
constexpr int64_t kSumChunk = 65536;  // elements per number of round 1

bool is_matrix(const ParameterFacts& parameter) {
  return parameter.shape.size() == 2;
}

int64_t elements(const ParameterFacts& parameter) {
  int64_t n = 1;
  for (int64_t d : parameter.shape) n *= d;
  return n;
}

// Calls body(row, first, last) for the pieces of rows that elements [begin, end) consist of.
template <class Body>
void for_rows(int64_t begin, int64_t end, int64_t columns, const Body& body) {
  while (begin < end) {
    const int64_t row = begin / columns, last = std::min(end, (row + 1) * columns);
    body(row, begin, last);
    begin = last;
  }
}

// The same on several threads. One thread handles all of a row.
template <class Body>
void for_rows_parallel(int64_t begin, int64_t end, int64_t columns, const Body& body) {
  const int64_t first_row = begin / columns, rows = (end + columns - 1) / columns - first_row;
  for_chunks(rows, std::max<int64_t>(1, kElementChunk / columns), [&](int64_t first, int64_t last) {
    for_rows(std::max(begin, (first_row + first) * columns), std::min(end, (first_row + last) * columns),
             columns, body);
  });
}

// Adds weight * g^2 of each element to `sum`, in order.
MEGALITH_KERNEL double add_squares(double sum, double weight, float scale, int64_t n, const float* g) {
  for (int64_t i = 0; i < n; i++) {
    const double x = g[i] * scale;
    sum += weight * (x * x);
  }
  return sum;
}

MEGALITH_KERNEL void add_squares_each(double weight, float scale, int64_t n, const float* __restrict g,
                                      double* __restrict sums) {
  for (int64_t i = 0; i < n; i++) {
    const double x = g[i] * scale;
    sums[i] += weight * (x * x);
  }
}

MEGALITH_KERNEL double add_update_squares(double sum, float row, float scale, int64_t n, const float* g,
                                          const float* column) {
  for (int64_t i = 0; i < n; i++) {
    const double u = g[i] * scale * row * column[i];
    sum += u * u;
  }
  return sum;
}

MEGALITH_KERNEL void update_row(float row, float scale, float keep, float rate, int64_t n,
                                float* __restrict p, const float* __restrict g,
                                const float* __restrict column) {
  for (int64_t i = 0; i < n; i++) p[i] = p[i] * keep - rate * (g[i] * scale * row * column[i]);
}

struct Blend {  // factors that blend a moment with a new square
  float keep, add;
};

MEGALITH_KERNEL double add_element_squares(double sum, Blend b, float scale, int64_t n, const float* g,
                                           const float* v) {
  for (int64_t i = 0; i < n; i++) {
    const float x = g[i] * scale;
    const float moment = b.keep * v[i] + b.add * (x * x + static_cast<float>(kEps));
    const double u = x / __builtin_sqrtf(moment);
    sum += u * u;
  }
  return sum;
}

MEGALITH_KERNEL void update_elements(Blend b, float scale, float keep, float rate, int64_t n,
                                     float* __restrict p, const float* __restrict g, float* __restrict v) {
  for (int64_t i = 0; i < n; i++) {
    const float x = g[i] * scale;
    v[i] = b.keep * v[i] + b.add * (x * x + static_cast<float>(kEps));
    p[i] = p[i] * keep - rate * (x / __builtin_sqrtf(v[i]));
  }
}

// Factors of a gradient element: that of its row times that of its column.
struct Factored {
  std::vector<float> row, column;
  Factored(const std::vector<double>& moments, int64_t rows, int64_t columns)
      : row(static_cast<size_t>(rows)), column(static_cast<size_t>(columns)) {
    double mean = 0;
    for (int64_t r = 0; r < rows; r++) mean += moments[r];
    mean /= static_cast<double>(rows);
    for (int64_t r = 0; r < rows; r++) row[r] = static_cast<float>(1 / std::sqrt(moments[r] / mean));
    for (int64_t c = 0; c < columns; c++) column[c] = static_cast<float>(1 / std::sqrt(moments[rows + c]));
  }
};

class Adafactor final : public Optimizer {
 public:
  explicit Adafactor(const TrainSettings& s) : decay_(s.weight_decay) {}

  std::vector<SlotSpec> slots(const ParameterFacts& parameter) const override {
    if (!is_matrix(parameter)) return {{"exp_avg_sq"}};
    return {{"exp_avg_sq_row", SlotExtent::row}, {"exp_avg_sq_col", SlotExtent::column}};
  }

  int statistics_rounds() const override { return 2; }

  int64_t statistics_size(const ParameterFacts& parameter, int round) const override {
    if (round == 1) return (elements(parameter) + kSumChunk - 1) / kSumChunk;
    return is_matrix(parameter) ? parameter.shape[0] + parameter.shape[1] : 0;
  }

  void gather(int round, const ParameterSlice& slice, const Update& update,
              const std::vector<std::vector<double>>& earlier, std::span<double> statistics) const override {
    if (round == 1)
      gather_update_squares(slice, update, earlier, statistics);
    else if (is_matrix(*slice.parameter))
      gather_moments(slice, update, statistics);
  }

  void apply(const ParameterSlice& slice, const Update& update,
             const std::vector<std::vector<double>>& statistics) const override {
    const ParameterFacts& parameter = *slice.parameter;
    double squares = 0;
    for (double s : statistics[1]) squares += s;
    const double rms = std::sqrt(squares / static_cast<double>(elements(parameter)));
    const auto rate = static_cast<float>(update.lr / std::max(1.0, rms / kClip));
    const auto keep = static_cast<float>(1 - update.lr * (parameter.decays ? decay_ : 0));
    const auto scale = static_cast<float>(update.gradient_scale);
    float* value = slice.value.data();
    const float* gradient = slice.gradient.data();
    const int64_t n = std::ssize(slice.value);
    if (!is_matrix(parameter)) {
      for_chunks(n, kElementChunk, [&](int64_t begin, int64_t end) {
        update_elements(blend(update), scale, keep, rate, end - begin, value + begin, gradient + begin,
                        slice.slots[0].data() + begin);
      });
      return;
    }
    const int64_t rows = parameter.shape[0], columns = parameter.shape[1];
    const Factored factored(statistics[0], rows, columns);
    for_rows_parallel(slice.begin, slice.begin + n, columns, [&](int64_t row, int64_t first, int64_t last) {
      update_row(factored.row[row], scale, keep, rate, last - first, value + (first - slice.begin),
                 gradient + (first - slice.begin), factored.column.data() + first % columns);
    });
    for (int64_t r = 0; r < rows; r++) slice.slots[0][r] = static_cast<float>(statistics[0][r]);
    for (int64_t c = 0; c < columns; c++) slice.slots[1][c] = static_cast<float>(statistics[0][rows + c]);
  }

 private:
  static double beta(const Update& update) {
    return 1 - std::pow(static_cast<double>(update.step), kDecayPower);
  }
  static Blend blend(const Update& update) {
    return {static_cast<float>(beta(update)), static_cast<float>(1 - beta(update))};
  }

  // Round 0 of a matrix: the new moments of the rows, then of the columns. The slice that holds the first element adds the
  // terms that do not come from gradients.
  static void gather_moments(const ParameterSlice& slice, const Update& update,
                             std::span<double> statistics) {
    const int64_t rows = slice.parameter->shape[0], columns = slice.parameter->shape[1];
    const int64_t begin = slice.begin, end = begin + std::ssize(slice.value);
    const double b = beta(update);
    if (begin == 0 && end > 0) {
      for (int64_t r = 0; r < rows; r++) statistics[r] += b * slice.slots[0][r] + (1 - b) * kEps;
      for (int64_t c = 0; c < columns; c++) statistics[rows + c] += b * slice.slots[1][c] + (1 - b) * kEps;
    }
    const auto scale = static_cast<float>(update.gradient_scale);
    const float* gradient = slice.gradient.data();
    const double row_weight = (1 - b) / static_cast<double>(columns);
    for_rows_parallel(begin, end, columns, [&](int64_t row, int64_t first, int64_t last) {
      statistics[row] =
          add_squares(statistics[row], row_weight, scale, last - first, gradient + (first - begin));
    });
    const double column_weight = (1 - b) / static_cast<double>(rows);
    // The columns are divided over the threads, so that the rows of each column are added in order.
    for_chunks(columns, 64, [&](int64_t left, int64_t right) {
      for_rows(begin, end, columns, [&](int64_t row, int64_t first, int64_t last) {
        first = std::max(first, row * columns + left);
        last = std::min(last, row * columns + right);
        if (first < last)
          add_squares_each(column_weight, scale, last - first, gradient + (first - begin),
                           statistics.data() + rows + first % columns);
      });
    });
  }

  static void gather_update_squares(const ParameterSlice& slice, const Update& update,
                                    const std::vector<std::vector<double>>& earlier,
                                    std::span<double> statistics) {
    const int64_t begin = slice.begin, end = begin + std::ssize(slice.value);
    const auto scale = static_cast<float>(update.gradient_scale);
    // Calls body(sum, first, last) for each aligned chunk; `first` and `last` are elements of the parameter.
    const auto for_sums = [&](const auto& body) {
      const int64_t first_chunk = begin / kSumChunk;
      for_chunks((end + kSumChunk - 1) / kSumChunk - first_chunk, 1, [&](int64_t k, int64_t) {
        const int64_t chunk = first_chunk + k;
        body(statistics[chunk], std::max(begin, chunk * kSumChunk), std::min(end, (chunk + 1) * kSumChunk));
      });
    };
    if (!is_matrix(*slice.parameter)) {
      for_sums([&](double& sum, int64_t first, int64_t last) {
        sum = add_element_squares(sum, blend(update), scale, last - first,
                                  slice.gradient.data() + (first - begin),
                                  slice.slots[0].data() + (first - begin));
      });
      return;
    }
    const int64_t columns = slice.parameter->shape[1];
    const Factored factored(earlier[0], slice.parameter->shape[0], columns);
    for_sums([&](double& sum, int64_t first, int64_t last) {
      for_rows(first, last, columns, [&](int64_t row, int64_t a, int64_t z) {
        sum = add_update_squares(sum, factored.row[row], scale, z - a, slice.gradient.data() + (a - begin),
                                 factored.column.data() + a % columns);
      });
    });
  }

  double decay_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(const TrainSettings& settings) {
  return std::make_unique<Adafactor>(settings);
}

}  // namespace megalith
