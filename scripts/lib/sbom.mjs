// The bill of materials of a release, in the format of CycloneDX: what its packages depend on, and what is compiled into them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from './project.mjs';

const compiledIn = ['protozero', 'node-addon-api', 'node-api-headers'];
const licences = { protozero: 'BSD-2-Clause' }; // which its package.json leaves out

const hash = (integrity) => {
  const [algorithm, value] = integrity.split(/-(.*)/);
  return { alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(value, 'base64').toString('hex') };
};

function ofNpm(name, scope) {
  const { packages } = JSON.parse(readFileSync(at('package-lock.json'), 'utf8'));
  const { version, license, integrity } = packages[`node_modules/${name}`];
  return {
    type: 'library',
    name,
    version,
    scope,
    purl: `pkg:npm/${name}@${version}`,
    'bom-ref': `pkg:npm/${name}@${version}`,
    licenses: [{ license: { id: license ?? licences[name] } }],
    hashes: [hash(integrity)],
  };
}

/** What is fetched from elsewhere: the pins stand in the scripts that fetch it. */
function ofPyPI(name, pin, file, license, description) {
  const text = readFileSync(at('scripts', file), 'utf8');
  const [, version, sha256] = pin.exec(text);
  const purl = `pkg:pypi/${name}@${version}`;
  const hashes = [{ alg: 'SHA-256', content: sha256 }];
  return {
    type: 'library',
    name,
    version,
    scope: 'required',
    purl,
    'bom-ref': purl,
    description,
    licenses: [{ expression: license }],
    hashes,
  };
}

/** @param {{ name: string, version: string, path: string, sha256: string }[]} packages those of the release */
export function billOfMaterials(packages) {
  const { version, license, dependencies } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const components = [
    ...packages.map((one) => ({
      type: 'library',
      name: one.name,
      version: one.version,
      purl: `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`,
      'bom-ref': `pkg:npm/${one.name.replace('@', '%40')}@${one.version}`,
      licenses: [{ license: { id: license } }],
      hashes: [{ alg: 'SHA-256', content: one.sha256 }],
    })),
    ...Object.keys(dependencies).map((name) => ofNpm(name, 'required')),
    ...compiledIn.map((name) => ofNpm(name, 'required')),
    ofPyPI(
      'pywuffs',
      /pywuffs==([\d.]+)'[^]*?sha256 = '([0-9a-f]{64})'/,
      'setup.mjs',
      'Apache-2.0 OR MIT',
      'Wuffs, whose C file is compiled in',
    ),
    ofPyPI(
      'ziglang',
      /version = '([\d.]+)'[^]*?sha256 = '([0-9a-f]{64})'/,
      join('lib', 'zig.mjs'),
      'MIT AND (Apache-2.0 WITH LLVM-exception)',
      'the compiler; its C++ library and runtime are linked in',
    ),
  ];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'library', name: 'infernode', version, 'bom-ref': `infernode@${version}` } },
    components,
    dependencies: [{ ref: `infernode@${version}`, dependsOn: components.map((one) => one['bom-ref']) }],
  };
}
