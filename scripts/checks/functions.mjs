// Functions are shorter than 80 lines, from the line of their name to their last brace.
import { isCpp, isScript } from '../lib/source-files.mjs';

const mostLines = 80;
const generated = /do not edit/;

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

/** The functions of a file: first line (from 1) and number of lines. */
export function functionsOf(text, script) {
  const code = codeOnly(text, script);
  const functions = [];
  const open = [];
  let statement = 0;
  let line = 1;
  let statementLine = 1;
  for (let i = 0; i < code.length; i++) {
    const c = code[i];
    if (c === '\n') line += 1;
    if (c === '{') {
      const head = code.slice(statement, i).trim();
      open.push({ line: statementLine, isFunction: opensFunction(head) });
    } else if (c === '}') {
      const block = open.pop();
      if (block?.isFunction) functions.push({ line: block.line, lines: line - block.line + 1 });
    }
    if (c === '{' || c === '}' || c === ';') {
      statement = i + 1;
      statementLine = 0;
    } else if (statementLine === 0 && !/\s/.test(c)) statementLine = line;
  }
  return functions;
}

export function check(files, read) {
  const problems = [];
  for (const path of files.filter((name) => isCpp(name) || isScript(name))) {
    const text = read(path);
    if (generated.test(text.slice(0, 300))) continue;
    for (const { line, lines } of functionsOf(text, isScript(path))) {
      if (lines >= mostLines) problems.push(`${path}:${line}: a function of ${lines} lines, fewer than ${mostLines} are wanted`);
    }
  }
  return problems;
}
