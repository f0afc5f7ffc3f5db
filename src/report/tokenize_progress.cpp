#include "report/tokenize_progress.h"

#include "base/log.h"
#include "base/units.h"
#include "report/task_progress.h"
#include "base/stop_signals.h"

namespace megalith {

TokenizeCounts tokenize_with_progress(const std::vector<std::filesystem::path>& files,
                                      const CorpusOptions& options, const Tokenizer& tokenizer,
                                      const std::filesystem::path& prefix, int64_t threads) {
  StopSignals signals("\nstopping; the finished part is kept. Press Ctrl-C again to stop now.\n");
  TaskProgress progress("tokenizing");
  bool begun = false;
  TokenizeHooks hooks;
  hooks.threads = threads;
  hooks.stop = [&] { return signals.stop_requested(); };
  hooks.progress = [&](int64_t done, int64_t total, const TokenizeCounts& counts) {
    if (!begun && done > 0)
      log::info("resuming tokenization: {} of {} are done", show(Bytes(done)),
                show(Bytes(total)));
    begun = true;
    progress.update(done, total, show_count(counts.tokens) + " tokens");
  };
  TokenizeCounts counts = tokenize_corpus(files, options, tokenizer, prefix, hooks);
  if (counts.not_utf8 > 0)
    log::warn(
        "{} of {} documents contain bytes that are not UTF-8; these bytes are kept unchanged. If the text is Latin-1, "
        "convert it first: iconv -f LATIN1 -t UTF-8",
        counts.not_utf8, counts.documents);
  return counts;
}

}  // namespace megalith
