#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/function_ref.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "runtime/weights/weight_store.h"
#include "tensor/tensor.h"

namespace infernode::runtime {

/// The packed weights of a model in a file, so that the next process maps them instead of packing anew. An entry is
/// known by its weight (the bytes, or their place in a file that has not changed) and by how it is packed, the file by
/// the build of the engine: one that does not fit the model costs time and changes no answer.
class WeightCache {
 public:
  /// Maps the file; up to `threads`, the caller's among them, read all of it once and compare check sums while the
  /// caller goes on, until it packs something. A file that is not there is empty; one that is damaged or of another
  /// build counts as such, which is logged. All arguments outlive this.
  WeightCache(std::string path, WeightStore& weights, ThreadPool& pool, std::size_t threads, const Logger& logger);

  /// As WeightStore::pack, which packs what the file lacks. From any thread.
  tensor::Buffer pack(const tensor::Tensor& weight, std::string_view format,
                      FunctionRef<tensor::Buffer(const tensor::Tensor&)> make);

  /// Replaces the file, where it lacked something, by one with all that pack() gave. What goes wrong is logged.
  void save();

 private:
  /// A part of an entry that has a check sum of its own.
  struct Block {
    std::span<const std::byte> bytes;
    ContentHash sum;
  };
  struct Check;
  void read(const std::shared_ptr<const MappedFile>& file);
  void check_in_background();
  void finish_check_locked();
  void warn(std::string_view why) const;
  void write(const std::string& path) const;
  /// What tells the weight's bytes from others.
  std::string source_of_locked(const tensor::Tensor& weight);

  std::string path_;
  WeightStore& weights_;
  ThreadPool& pool_;
  std::size_t threads_;
  const Logger& logger_;
  std::mutex mutex_;                                                    ///< guards what follows
  std::shared_ptr<Check> check_;                                        ///< null when it is over
  std::map<std::string, tensor::Buffer, std::less<>> entries_, given_;  ///< of the file; of this load
  std::map<std::shared_ptr<const MappedFile>, std::string> stamps_;     ///< of files that weights lie in
  std::size_t hits_ = 0, misses_ = 0;
};

}  // namespace infernode::runtime
