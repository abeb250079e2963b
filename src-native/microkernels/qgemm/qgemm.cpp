#include "microkernels/qgemm/qgemm.h"

#include "microkernels/common/targets.h"

namespace infernode::microkernels {

INFERNODE_DECLARE_TABLES(QgemmTable, qgemm_table)
#if defined(__x86_64__) || defined(_M_X64)
extern const QgemmTable qgemm_table_vnni, qgemm_table_amx;
#endif

const QgemmTable& qgemm_table(CpuRung rung) noexcept {
#if defined(__x86_64__) || defined(_M_X64)
  if (rung >= CpuRung::Amx) return qgemm_table_amx;
  if (rung >= CpuRung::Vnni) return qgemm_table_vnni;
#endif
  return INFERNODE_PICK_TABLE(qgemm_table, rung);
}

}  // namespace infernode::microkernels
