// The compiler of the CUDA provider's kernels: NVIDIA's wheels of one version, without the rest of the toolkit.
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cachePath } from './cache.mjs';
import { fetchPackage, folderOnce } from './download.mjs';

const wheels = {
  'nvidia-cuda-nvcc==13.0.88': '56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03',
  'nvidia-nvvm==13.0.88': 'c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0',
  'nvidia-cuda-crt==13.0.88': '2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4',
  'nvidia-cuda-runtime==13.0.96': '7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548',
  'nvidia-cuda-cccl==13.0.85': 'e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649',
};

/** Fetches nvcc to where providers/cuda/kernels/CMakeLists.txt looks for it, and returns its path. Linux on x64 only. */
export async function ensureNvcc() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(`nvcc is fetched for Linux on x64 only, this is ${process.platform} on ${process.arch}`);
  }
  const toolkit = join('nvidia', 'cu13');
  const folder = await folderOnce(cachePath('nvcc-13.0'), async (temporary) => {
    for (const [spec, sha256] of Object.entries(wheels)) await fetchPackage({ from: 'pip', spec, sha256 }, temporary);
    for (const programs of [join(toolkit, 'bin'), join(toolkit, 'nvvm', 'bin')]) {
      for (const name of readdirSync(join(temporary, programs))) chmodSync(join(temporary, programs, name), 0o755);
    }
  });
  return join(folder, toolkit, 'bin', 'nvcc');
}
