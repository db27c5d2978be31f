import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parseSync } from '@swc/core';

const FUNCTION =
  /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ClassMethod|PrivateMethod|Constructor|MethodProperty|GetterProperty|SetterProperty)$/;

/** Reads the sources below a root: each TypeScript file with its imports, exports and functions. */
export function readSources(root) {
  const modules = new Map();
  for (const file of ['types', 'src', 'middleware'].flatMap((folder) => listFiles(root, folder))) {
    if (/\.tsx?$/.test(file)) modules.set(file, parse(file, readFileSync(join(root, file))));
  }
  for (const [file, module] of modules) module.targets = targetsOf(file, module, modules);
  return modules;
}

/** Lists the files below a folder, except those of installed packages and builds. */
export function listFiles(root, folder) {
  return filesBelow(join(root, folder), folder).sort();
}

function filesBelow(directory, path) {
  return (unlessRemoved(() => readdirSync(directory, { withFileTypes: true })) ?? []).flatMap((entry) => {
    const { name } = entry;
    if (entry.isFile()) return [`${path}/${name}`];
    if (!entry.isDirectory() || name === 'node_modules' || name === 'dist') return [];
    return filesBelow(join(directory, name), `${path}/${name}`);
  });
}

/** Returns undefined for a path that does not exist: tests that run at the same time remove their files. */
export function unlessRemoved(read) {
  try {
    return read();
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(file, bytes) {
  const text = bytes.toString();
  // Offsets are in bytes and continue from one parsed file to the next. The empty statement marks where the file starts.
  const module = parseSync(`;${text}`, { syntax: 'typescript', tsx: file.endsWith('x'), target: 'es2023' });
  const imports = [];
  const exports = [];
  const functions = [];
  const anyTypes = [];
  const textOf = ({ start, end }) =>
    bytes.subarray(start - module.span.start - 1, end - module.span.start - 1);
  const lineOf = ({ start }) => linesOf(bytes.subarray(0, start - module.span.start - 1));
  /** Returns the lines of the outermost functions at or below a node. */
  const visit = (node) => {
    if (typeof node !== 'object' || node === null) return 0;
    const specifier = specifierOf(node);
    if (specifier !== undefined) {
      imports.push({ specifier, typeOnly: isTypeOnly(node), names: importedNames(node) });
    }
    for (const name of exportedNames(node)) exports.push({ name, line: lineOf(node.span) });
    if (node.type === 'TsKeywordType' && node.kind === 'any') anyTypes.push(lineOf(node.span));
    const inner = Object.values(node).reduce((sum, child) => sum + visit(child), 0);
    if (!FUNCTION.test(node.type ?? '') || node.span === undefined) return inner;
    const lines = linesOf(textOf(node.span));
    functions.push({ lines, ownLines: lines - inner, line: lineOf(node.span) });
    return lines - 1;
  };
  visit(module.body);
  return { text, imports, exports, functions, anyTypes };
}

function linesOf(bytes) {
  return bytes.toString().split('\n').length;
}

function specifierOf(node) {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      return node.source?.value;
    case 'TsImportType':
      return node.argument.value;
    case 'CallExpression':
      return loads(node) ? node.arguments[0].expression.value : undefined;
    default:
      return undefined;
  }
}

/** Whether a call is `import()`, or `require` of a module of the sources. */
function loads({ callee, arguments: [first] }) {
  if (callee.type === 'Import') return first !== undefined;
  return callee.value === 'require' && String(first?.expression.value).startsWith('.');
}

/** Whether an import or a re-export is gone at run time. */
function isTypeOnly({ type, typeOnly, specifiers = [] }) {
  if (type === 'TsImportType' || typeOnly === true) return true;
  return specifiers.length > 0 && specifiers.every((entry) => entry.isTypeOnly === true);
}

/** The names that an import or a re-export takes from its module; undefined for all of them. */
function importedNames({ specifiers, qualifier }) {
  if (specifiers === undefined) return qualifier?.value === undefined ? undefined : [qualifier.value];
  const names = specifiers.map((entry) => {
    if (entry.type === 'ImportDefaultSpecifier') return 'default';
    return (entry.imported ?? entry.orig ?? entry.local)?.value;
  });
  return specifiers.some(({ type }) => /Namespace/.test(type)) ? undefined : names;
}

/** The names that a statement exports. */
function exportedNames({ type, declaration, specifiers }) {
  if (type === 'ExportDeclaration') {
    const declared = declaration.declarations ?? [declaration];
    return declared.map(({ id, identifier }) => (id ?? identifier).value);
  }
  if (type !== 'ExportNamedDeclaration') return [];
  return specifiers.map(({ exported, orig, name }) => (exported ?? orig ?? name).value);
}

/** The modules of which a file imports values by a relative path. */
function targetsOf(file, { imports }, modules) {
  return imports
    .filter(({ typeOnly }) => !typeOnly)
    .map(({ specifier }) => targetOf(file, specifier, modules))
    .filter((target) => target !== undefined);
}

/** The module that a relative path in a file leads to. */
export function targetOf(file, specifier, modules) {
  if (!specifier.startsWith('.')) return undefined;
  const path = posix.join(dirname(file), specifier);
  return [path, `${path}.ts`, `${path}.tsx`].find((name) => modules.has(name));
}
