// TensorBoard event files: TFRecord framing around Event messages. We encode the messages ourselves, without protobuf.
// Fields and numbers follow TensorFlow's event.proto, summary.proto and tensor.proto. The framing is that of its
// record_writer (length, masked crc32c of the length, data, masked crc32c of the data).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "report/metrics.h"

namespace megalith {

// One event file per process: directory/events.out.tfevents.SECONDS.HOST.PID. Its name sorts after existing files.
class TensorBoardLog {
 public:
  // After a resume, tells TensorBoard to ignore steps after `resumed_step` in earlier files.
  TensorBoardLog(const std::filesystem::path& directory, int64_t resumed_step);
  ~TensorBoardLog();
  TensorBoardLog(const TensorBoardLog&) = delete;
  TensorBoardLog& operator=(const TensorBoardLog&) = delete;

  // Writes all metrics with a tag in metric_table.h, the limits of a curriculum, and the sample as text. Flushes at
  // once. On a full disk it warns once and writes no more events. It never stops the run.
  void append(const StepMetrics& metrics);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(std::string_view data);
  std::filesystem::path path_;
  int fd_ = -1;
  bool broken_ = false;  // a record was written only partly; later ones would be unreadable, so none are written
};

}  // namespace megalith
