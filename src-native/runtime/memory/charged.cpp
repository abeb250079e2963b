#include "runtime/memory/charged.h"

#include <utility>

#include "tensor/texts.h"

namespace infernode::runtime {

Charged::Charged(std::shared_ptr<kernel::MemoryBudget> b, std::size_t n) : budget(std::move(b)), bytes(n) {
  budget->reserve(bytes);
}

Charged::~Charged() { budget->release(bytes); }

void charge_texts(tensor::Value& value, const std::shared_ptr<kernel::MemoryBudget>& budget,
                  const kernel::RunContext& run) {
  if (!value.is_tensor() || value.tensor().dtype() != tensor::DType::String) return;
  const tensor::Tensor& texts = value.tensor();
  const tensor::Buffer& block = texts.buffer();
  const std::size_t bytes = tensor::outside_bytes(texts, [&] { run.check(); });
  if (bytes == 0 || !block.held_alone()) return;
  auto charge = std::make_shared<Charged>(budget, bytes);
  charge->block = block;
  tensor::Buffer charged(block.data(), block.size(), std::move(charge), block.device(), block.writable());
  value = tensor::Tensor(texts.dtype(), texts.shape(), std::move(charged));
}

}  // namespace infernode::runtime
