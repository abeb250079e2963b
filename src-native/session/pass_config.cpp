#include "session/pass_config.h"

#include <algorithm>
#include <set>

#include "passes/names.h"

namespace infernode::session {

namespace {

std::set<std::string, std::less<>> listed_optimizers(std::string_view text) {
  std::set<std::string, std::less<>> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.find(','));
    passes::add_optimizer(items, text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return items;
}

/// How large a folded constant may be; 0 is no bound.
std::size_t folding_limit(const SessionOptions& options, std::size_t fallback) {
  constexpr const char* kKey = "optimization.constant_folding_max_output_size_in_bytes";
  constexpr std::size_t kMost = std::size_t{1} << 40;
  const auto bytes = number_of<std::size_t>(options.config, kKey, "a number of bytes", kAnyNumber);
  if (!bytes) return fallback;
  return *bytes == 0 ? kMost : std::min(*bytes, kMost);
}

/// How products with weights of few bits are made.
void configure_products(passes::PassOptions& to, const SessionOptions& options) {
  to.accuracy_level =
      number_of<std::int64_t>(options.config, "session.qdq_matmulnbits_accuracy_level", "a number from 0 to 4",
                              [](std::int64_t level) { return level >= 0 && level <= 4; })
          .value_or(to.accuracy_level);
  const auto block = number_of<std::int64_t>(options.config, "session.qdq_matmulnbits_block_size",
                                             "a power of two from 16 to 256, 0 or -1", [](std::int64_t size) {
                                               return size == 0 || size == -1 ||
                                                      (size >= 16 && size <= 256 && (size & (size - 1)) == 0);
                                             });
  if (block && *block != 0) to.block_size = *block == -1 ? 0 : *block;
}

}  // namespace

void configure(passes::PassOptions& to, const SessionOptions& options) {
  to.disabled = listed_optimizers(text_of(options.config, "optimization.disable_specified_optimizers"));
  if (is_on(options.config, "session.disable_double_qdq_remover")) to.disabled.emplace("DoubleQDQPairsRemover");
  if (is_on(options.config, "session.disable_quant_qdq")) {
    for (const char* name : {"QDQSelectorActionTransformer", "DQMatMulNBitsFusion", "DequantizeMatMulFusion",
                             "GatherDequantizeFusion", "QDQPropagationTransformer", "DoubleQDQPairsRemover",
                             "WeightBiasQuantization", "WhereDummyDq", "EnsureUniqueDQForNodeUnit"})
      to.disabled.emplace(name);
  }
  if (is_on(options.config, "optimization.enable_cast_chain_elimination")) to.enabled.emplace("CastChainElimination");
  if (is_on(options.config, "session.enable_dq_matmulnbits_fusion")) to.enabled.emplace("DQMatMulNBitsFusion");
  if (is_on(options.config, "session.enable_quant_qdq_cleanup")) to.enabled.emplace("QDQFinalCleanupTransformer");
  configure_products(to, options);
  to.keep_dequantizers = is_on(options.config, "session.disable_qdq_constant_folding");
  to.max_folded_bytes = folding_limit(options, to.max_folded_bytes);
  to.max_dequantized_bytes = folding_limit(options, to.max_dequantized_bytes);
}

runtime::ShapeCheck shape_check(const SessionOptions& options) {
  constexpr std::string_view kKey = "session.check_symbolic_shapes";
  if (is_on(options.config, kKey)) return runtime::ShapeCheck::Contradictions;
  return text_of(options.config, kKey) == "complete" ? runtime::ShapeCheck::Complete : runtime::ShapeCheck::Off;
}

}  // namespace infernode::session
