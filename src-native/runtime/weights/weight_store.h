#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/content_hash.h"
#include "base/function_ref.h"
#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace infernode::runtime {

/// Packed weights and mapped files, shared by all sessions of the process while any of them uses them. Thread-safe.
class WeightStore {
 public:
  /// The mapping of a file; sessions over the same file (same device, inode, size, modification time) share one.
  std::shared_ptr<const MappedFile> map(const std::string& path);
  /// The mapping of this store in which an address lies; null where there is none.
  std::shared_ptr<const MappedFile> find(const void* address);

  /// The packed form of `weight`: made once for weights that lie in a mapping of this store (they are told apart by
  /// where they lie), for each caller anew otherwise and then shared by what is in it. `format` names transformation
  /// and packing.
  tensor::Buffer pack(const tensor::Tensor& weight, std::string_view format,
                      FunctionRef<tensor::Buffer(const tensor::Tensor&)> make);
  /// The same bytes in memory that all who hold them share, read only: `bytes` itself unless someone gave these before
  /// and uses them still. Compares them with what may be the same.
  tensor::Buffer share(tensor::Buffer bytes);
  /// Lets go of the resident pages of a mapping of this store that hold nothing but these bytes of a weight: a later
  /// reader gets them from the file. Nothing where the weight lies elsewhere.
  void release_pages(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes);

 private:
  struct Packed;
  std::shared_ptr<const MappedFile> find_locked(const void* address) const;
  void release_pages_locked(const tensor::Tensor& weight, std::size_t offset, std::size_t bytes) const;
  void drop_expired_locked();
  std::mutex mutex_;
  std::vector<std::weak_ptr<const MappedFile>> files_;
  std::map<std::string, std::weak_ptr<Packed>> packed_;
  std::multimap<ContentHash, std::weak_ptr<const tensor::Buffer>> shared_;  ///< by a look at some of their bytes
  std::size_t sweep_from_ = 64;  ///< entries from which the next sweep for expired ones pays
};

}  // namespace infernode::runtime
