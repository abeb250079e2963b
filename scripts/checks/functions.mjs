// Functions are shorter than 80 lines, from the line of their name to their last brace, or, of Python, their last statement.
import { isCpp, isPython, isScript } from '../lib/source-files.mjs';

const mostLines = 80;
const written = /do not edit/i;

/** The text with comments, strings, regular expressions and preprocessor lines blanked; lines and columns stay. */
export function codeOnly(text, script) {
  const literals = script
    ? /\/\/.*|\/\*[^]*?\*\/|`(?:\\[^]|[^`\\])*`|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|(?<=[=(,:!&|?{;\n]\s*|return )\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g
    : /\/\/.*|\/\*[^]*?\*\/|R"(\w*)\([^]*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'/g;
  const blank = (literal) => literal.replace(/[^\n]/g, ' ');
  const code = text.replace(literals, blank);
  return script ? code : code.replace(/^[ \t]*#(?:.*\\\n)*.*/gm, blank);
}

// A brace opens a function's body where the statement before it has parameters and is no other kind of block.
const otherBlock = /^(?:(?:else\s+)?if|for|while|switch|catch|do|else|try|namespace|struct|class|enum|union|interface|export\s+default|extern)\b/; // prettier-ignore
const callback = /[,(]\s*(?:async\s*)?(?:\([^()]*\)|\w+)\s*=>$|\[[^\][]*\]\s*(?:\([^]*\)[^]*)?$/;

function opensFunction(head) {
  if (!head.includes('(') || otherBlock.test(head)) return false;
  return /\)[^()=;]*$|=>\s*$|\)\s*(?:->|:)[^;{}]*$/.test(head) && !callback.test(head);
}

/** Whether a brace is part of the statement before it: an argument, an initializer, a type. */
const isPart = (head, parens, script) => parens > 0 || /\S$/.test(head) || (script && /\)\s*:\s*$/.test(head));

/** The functions of a file: first line (from 1) and number of lines. */
export function functionsOf(text, script) {
  const code = codeOnly(text, script);
  const functions = [];
  const open = [];
  const statement = () => ({ start: 0, line: 0, parens: 0 });
  let now = statement();
  let line = 1;
  for (let i = 0; i < code.length; i++) {
    const c = code[i];
    if (c === '\n') line += 1;
    if (now.line === 0 && /[^\s{};]/.test(c)) now = { start: i, line, parens: 0 };
    if (c === '(') now.parens += 1;
    if (c === ')') now.parens -= 1;
    if (c === '{') {
      const head = now.line === 0 ? '' : code.slice(now.start, i);
      const part = head !== '' && isPart(head, now.parens, script);
      open.push({ before: now, part, isFunction: !part && opensFunction(head.trim()) });
      now = statement();
    } else if (c === '}') {
      const block = open.pop();
      if (block?.isFunction) functions.push({ line: block.before.line, lines: line - block.before.line + 1 });
      now = block?.part ? block.before : statement();
    } else if (c === ';' && now.parens === 0) now = statement();
  }
  return functions;
}

const pythonLiterals = /"{3}[^]*?"{3}|'{3}[^]*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#.*/g;

/** Comments go; a text becomes a quote in each of its lines, those after the first deeper than any statement. */
const withoutText = (literal) =>
  literal[0] === '#' ? '' : literal.replace(/^.*/, '"').replaceAll(/\n.*/g, `\n${' '.repeat(200)}"`);

/** The same of a Python file: a function ends before the first statement that is indented no more than its `def`. */
export function pythonFunctionsOf(text) {
  const functions = [];
  const open = [];
  let last = 0;
  for (const [index, line] of [...text.replace(pythonLiterals, withoutText).split('\n'), 'end'].entries()) {
    const depth = line.search(/\S/);
    if (depth < 0) continue;
    const begins = !/^\s*[)\]}]/.test(line); // not the end of a statement of several lines
    while (begins && open.length > 0 && open.at(-1).depth >= depth) {
      const begin = open.pop().line;
      functions.push({ line: begin, lines: last - begin + 1 });
    }
    last = index + 1;
    if (/^\s*(async\s+)?def\s/.test(line)) open.push({ depth, line: last });
  }
  return functions;
}

export function check(files, read) {
  const problems = [];
  for (const path of files.filter((name) => isCpp(name) || isScript(name) || isPython(name))) {
    const text = read(path);
    if (written.test(text.slice(0, 300))) continue;
    for (const { line, lines } of isPython(path) ? pythonFunctionsOf(text) : functionsOf(text, isScript(path))) {
      if (lines >= mostLines)
        problems.push(`${path}:${line}: a function of ${lines} lines, fewer than ${mostLines} are wanted`);
    }
  }
  return problems;
}
