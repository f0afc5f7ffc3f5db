// TensorBoard event files: TFRecord framing around Event messages encoded by hand: no protobuf is linked.
// Fields and numbers follow tensorflow's event.proto, summary.proto and tensor.proto; framing is that of
// tensorflow's record_writer (length, masked crc32c of the length, data, masked crc32c of the data).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "report/metrics.h"

namespace megalith {

// One event file a process: directory/events.out.tfevents.SECONDS.HOST.PID, newer than those already there.
class TensorBoardLog {
 public:
  // After a resume TensorBoard is told to forget what earlier files say about steps after `resumed_step`.
  TensorBoardLog(const std::filesystem::path& directory, int64_t resumed_step);
  ~TensorBoardLog();
  TensorBoardLog(const TensorBoardLog&) = delete;
  TensorBoardLog& operator=(const TensorBoardLog&) = delete;

  // All metrics that have a tag in metric_table.h, the limits of a curriculum, and the sample as text.
  // Flushed at once. A full disk ends the file with one warning; it never stops the run.
  void append(const StepMetrics& metrics);

  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(std::string_view data);
  std::filesystem::path path_;
  int fd_ = -1;
  bool broken_ = false;  // what follows a torn record could not be read, so nothing does
};

}  // namespace megalith
