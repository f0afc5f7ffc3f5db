// write_run_report DIR: makes a small run directory with hostile text in it and writes its report.html, for
// report_page.py.
#include <filesystem>
#include <fstream>

#include "report/html.h"
#include "report/metrics.h"

using namespace megalith;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::filesystem::path dir = arguments[1];
  MetricsLog log(dir / "metrics.jsonl", 0);
  for (int64_t step = 1; step <= 3000; step++) {
    StepMetrics m;
    m.step = step;
    m[MetricId::loss] = 10.0 / static_cast<double>(step);
    if (step == 3000) m.sample = "</script><img src=x onerror=alert(1)> {{js}} <!-- & \"quoted\"";
    log.append(m);
  }
  std::ofstream(dir / "config.yaml") << "data:\n  train: ['</script><b>.txt']\n";
  write_report(dir);
}
