// docs/api.md from the declarations of the package, which `npm run build -- --ts` makes in dist/.
import ts from 'typescript';
import { furtherEntries } from './bundle.mjs';
import { at } from './project.mjs';

const oneLine = (text) => text.replaceAll(/\s+/g, ' ').trim();
const textOf = (node) => oneLine(node.getText().replaceAll(/\/\*\*[^]*?\*\//g, '')).replace(/;$/, '');
const docOf = (symbol, checker) => oneLine(ts.displayPartsToString(symbol?.getDocumentationComment(checker)));

const signatureOf = (node) => textOf(node).replace(/^(?:export |declare )+/, '');

/** What an interface or class declares, or the interface that an alias is another name of. */
function declaredMembers(declaration, checker) {
  if (!ts.isTypeAliasDeclaration(declaration)) return declaration.members ?? [];
  const { symbol } = checker.getTypeAtLocation(declaration.type);
  const meant = ts.isTypeReferenceNode(declaration.type)
    ? symbol?.declarations?.find(ts.isInterfaceDeclaration)
    : undefined;
  return meant?.members ?? [];
}

/** Members in the order of the source, overloads together: each its signatures and its meaning. */
function membersOf(declaration, checker) {
  const found = new Map();
  for (const member of declaredMembers(declaration, checker)) {
    const flags = ts.getCombinedModifierFlags(member);
    if (flags & ts.ModifierFlags.Private) continue;
    const isStatic = (flags & ts.ModifierFlags.Static) !== 0;
    const name = member.name?.getText() ?? ts.SyntaxKind[member.kind];
    if (name.startsWith('#')) continue;
    const key = `${isStatic} ${name}`;
    const entry = found.get(key) ?? { signatures: [], docs: new Set() };
    entry.signatures.push(textOf(member));
    for (const each of member.jsDoc ?? []) entry.docs.add(oneLine(ts.getTextOfJSDocComment(each.comment) ?? ''));
    found.set(key, entry);
  }
  return [...found.values()].map(({ signatures, docs }) => {
    const meaning = [...docs].filter(Boolean).join(' ');
    return `- ${signatures.map((text) => `\`${text}\``).join('<br>')}${meaning === '' ? '' : `<br>${meaning}`}`;
  });
}

/** An export's section: what it is, what it means, its members. */
function section(name, symbol, checker) {
  const lines = [`### ${name}`, ''];
  const doc = docOf(symbol, checker);
  if (doc !== '') lines.push(doc, '');
  for (const declaration of symbol.declarations) {
    const members = membersOf(declaration, checker);
    const isAlias = ts.isTypeAliasDeclaration(declaration);
    if (isAlias && members.length === 0) lines.push(`\`${signatureOf(declaration)}\``, '');
    else if (ts.isFunctionDeclaration(declaration)) lines.push(`\`${signatureOf(declaration)}\``, '');
    else if (members.length > 0) lines.push(...members, '');
  }
  return lines;
}

/** docs/api.md as the declarations in dist/ have it. */
export function apiPage() {
  const entries = ['index', ...furtherEntries].map((name) => at('dist', `${name}.d.ts`));
  const program = ts.createProgram(entries, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    typeRoots: [at('node_modules', '@types')],
    skipLibCheck: true,
  });
  const checker = program.getTypeChecker();
  const [index, ...others] = entries.map((path) => checker.getSymbolAtLocation(program.getSourceFile(path)));
  const meant = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const groups = { functions: [], classes: [], types: [] };
  const common = [];
  for (const exported of checker.getExportsOfModule(index)) {
    const name = exported.name;
    const symbol = meant(exported);
    const file = symbol.declarations[0].getSourceFile().fileName;
    if (!file.startsWith(`${at('dist')}/`)) common.push(name);
    else {
      const { flags } = symbol;
      const group = flags & ts.SymbolFlags.Function ? 'functions' : flags & ts.SymbolFlags.Value ? 'classes' : 'types';
      groups[group].push([name, symbol]);
    }
  }
  const sections = (title, list) => [`## ${title}`, '', ...list.sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([name, symbol]) => section(name, symbol, checker))]; // prettier-ignore
  return [
    '# API',
    '',
    'Written by `npm run docs:api` from the declarations of the package. What options mean stands in [options](options.md), what errors',
    'mean in [errors](errors.md); [using](using.md) shows how the parts are put together.',
    '',
    ...sections('Functions', groups.functions),
    ...sections('Classes', groups.classes),
    ...sections('Types', groups.types),
    ...others.flatMap((module, i) => sections(`infernode/${furtherEntries[i]}`, checker.getExportsOfModule(module).map((each) => [each.name, meant(each)]))), // prettier-ignore
    '## From onnxruntime-common',
    '',
    'Exported as that package declares them:',
    '',
    `${common.sort().map((name) => `\`${name}\``).join(', ')}.`, // prettier-ignore
    '',
  ].join('\n');
}
