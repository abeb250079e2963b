#pragma once
// The ways to make a product of float32 sums: methods, one file each kind, of which whoever needs to know asks the same
// two questions: can it run there, and how long would it take. The quickest is taken, product by product.

#include <optional>
#include <string>
#include <vector>

#include "cost/model.h"
#include "kernel/kernel.h"
#include "microkernels/gemm/gemm.h"

namespace infernode::ops {

/// What decides how long a product takes, and which methods can make it.
struct ProductSite {
  std::size_t m = 1, n = 1, k = 0;
  bool trans_a = false, trans_b = false, codes = false;  ///< codes: B is of 8 bits
  microkernels::FloatType a_type = microkernels::FloatType::kF32, b_type = microkernels::FloatType::kF32;
  /// How B was packed before, as weights are; kNone: it lies as trans_b and b_type say.
  microkernels::PackedForm packed = microkernels::PackedForm::kNone;
  bool constant = false;  ///< B is yet to be packed, by whichever table multiplies it
};

ProductSite product_site(const microkernels::GemmArgs& args);
/// Of a node that makes Y = A * B of float32, transposed as transA and transB say; nullopt where its sizes are symbols.
std::optional<ProductSite> product_site(const kernel::KernelInfo& info);

struct ProductMethod {
  const char* name;  ///< of its rates in cost/tables
  const char* text;  ///< what it does, for docs/kernels.md
  int place;         ///< of two that are expected to take as long the one of the lower place is taken
  microkernels::GemmWay way;
  bool unit;  ///< made by the matrix unit
  /// With the loops of that table.
  bool (*can_run)(const ProductSite& site, const microkernels::GemmTable& table);
  /// What it does for one product, counted.
  cost::Terms (*terms)(const ProductSite& site, const microkernels::GemmTable& table);

  /// What an expected time is multiplied by to compete with others.
  double margin() const noexcept { return unit ? cost::kUnitProductMargin : 1; }
};

/// All methods. Each file adds its own by a function `void register_product_<file>(ProductMethods& methods)`, which
/// CMake finds.
class ProductMethods {
 public:
  void add(const ProductMethod& method) { all_.push_back(method); }
  /// In the order of their places.
  static const std::vector<ProductMethod>& all();

 private:
  std::vector<ProductMethod> all_;
};

/// A method with the loops of a rung.
struct ProductChoice {
  const ProductMethod* method;
  const microkernels::GemmTable* table;
  const cost::Row* row;  ///< of its rates; null where it was not measured
  std::string name;      ///< the method's, and the rung's where that is a lower one than the CPU's
};

struct ProductWay {
  const microkernels::GemmTable* table;
  microkernels::GemmWay way;
};

/// The methods that a node may be made by, with the rates of its CPU.
class ProductLoops {
 public:
  /// Loops of the kernels' precision, or, for operands that are not float32, those that pack B as float32 numbers.
  explicit ProductLoops(const microkernels::KernelSet& kernels, bool float32 = true);
  /// Of the node's first input's type, and its method alone where one is given. A constant B is packed for the
  /// quickest.
  explicit ProductLoops(const kernel::KernelInfo& info);

  /// Packs constant operands for all of them that can read packed ones.
  const microkernels::GemmTable& packing() const { return *packing_; }
  /// The quickest of those that can run; the packing table's own choice where none was measured.
  ProductWay quickest(const ProductSite& site) const;
  /// Those that can run, the quickest first.
  std::vector<ProductChoice> choices(const ProductSite& site) const;

 private:
  /// Calls each(choice, nanoseconds) for those that can run; infinite where a method was not measured.
  template <class Each>
  void for_each(const ProductSite& site, Each each) const;

  const microkernels::GemmTable* packing_;
  std::vector<ProductChoice> all_;
};

}  // namespace infernode::ops
