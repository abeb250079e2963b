import type { NativeValueInfo } from '../native.js';
import { elementTypeOfCode } from '../tensor/element-types.js';

const keywords =
  'any as async await bigint boolean break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in instanceof interface let never new null number object package private protected public return static string super switch symbol this throw true try type typeof undefined unknown var void while with yield'; // prettier-ignore
/** Names that TypeScript has taken, or the declarations themselves. */
const taken = new Set([...keywords.split(' '), 'ModelTensor', 'ModelValue']);

/** Whether an interface may have the name. */
export const isInterfaceName = (name: string): boolean => /^[A-Za-z_$][\w$]*$/.test(name) && !taken.has(name);

/** How each file of declarations begins. */
export const writtenBy = '// Written by `infernode types ';

/** The declarations of a model's inputs and outputs: one interface of `name`. `source` is what the first line names. */
export function modelTypes(
  name: string,
  source: string,
  inputs: readonly NativeValueInfo[],
  outputs: readonly NativeValueInfo[],
): string {
  const required = inputs.filter(({ overridable }) => !overridable);
  const optional = inputs.filter(({ overridable }) => overridable);
  const body = [member('inputs', required), member('optionalInputs', optional), member('outputs', outputs)].join('\n');
  const imports = ['ModelTensor', 'ModelValue'].filter((type) => body.includes(`: ${type}`)).join(', ');
  const head = `${writtenBy}${source.replace(/[\r\n\u2028\u2029`]/g, ' ')}\`: do not edit.\n`;
  const import_ = imports === '' ? '' : `import type { ${imports} } from 'infernode';\n\n`;
  return `${head}${import_}export interface ${name} {\n${body}\n}\n`;
}

/** A name for the interface of a model: that of its file in PascalCase. */
export function interfaceName(path: string): string {
  const stem = path.replace(/^.*[/\\]/, '').replace(/\.(onnx|ort)$/i, '');
  const words = stem.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
  return isInterfaceName(name) ? name : `Model${name}`;
}

function member(key: string, values: readonly NativeValueInfo[]): string {
  if (values.length === 0) return `  ${key}: {};`;
  const lines = values.map((info) => `    ${property(info.name)}: ${typeOf(info)};`);
  return [`  ${key}: {`, ...new Set(lines), '  };'].join('\n'); // a model may give an output twice
}

const property = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

function typeOf({ kind, optional, elementType, shape }: NativeValueInfo): string {
  const type = elementTypeOfCode(elementType);
  if (kind !== 'tensor' || optional || type === undefined) return 'ModelValue';
  const dims = shape === null ? 'null' : `[${shape.map((dim) => JSON.stringify(dim)).join(', ')}]`;
  return `ModelTensor<'${type.name}', ${dims}>`;
}
