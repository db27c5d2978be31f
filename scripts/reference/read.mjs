// Reads the exports of the package from its sources: each name with its declaration and its docstring.
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { parseDocstring } from './docstring.mjs';

/**
 * The exports of a module by name, re-exports included.
 *
 * @typedef {{ name: string, kind: 'function' | 'const' | 'class' | 'interface' | 'type', file: string, texts: string[], doc: object, members: object[], base: string[] }} Declaration
 * @returns {Map<string, Declaration>}
 */
export function exportsOf(root, file, seen = new Map()) {
  const known = seen.get(file);
  if (known !== undefined) return known;
  const found = new Map();
  seen.set(file, found);
  const source = readFileSync(join(root, file), 'utf8');
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const module = { file, source, comments, locals: localsOf(program) };
  const target = (node) => relative(root, join(root, dirname(file), node.source.value));
  for (const node of program.body) {
    if (node.type === 'ExportAllDeclaration') {
      for (const [name, declaration] of exportsOf(root, target(node), seen)) found.set(name, declaration);
    } else if (node.type === 'ExportNamedDeclaration' && node.source) {
      const exported = exportsOf(root, target(node), seen);
      for (const { local, exported: as } of node.specifiers) {
        const declaration = exported.get(local.name);
        if (declaration !== undefined) found.set(as.name, { ...declaration, name: as.name });
      }
    } else if (node.type === 'ExportNamedDeclaration' && node.declaration) {
      for (const declaration of declarationsIn(module, node)) add(found, declaration);
    }
  }
  return found;
}

/** Adds a declaration. Overloads of a function, and a type with the name of a value, become one entry. */
function add(found, declaration) {
  const earlier = found.get(declaration.name);
  if (earlier === undefined) found.set(declaration.name, declaration);
  else if (declaration.kind === 'const') earlier.texts.unshift(...declaration.texts);
  else if (!declaration.isImplementation) earlier.texts.push(...declaration.texts);
  if (earlier && declaration.kind === 'const')
    Object.assign(earlier, { kind: 'const', doc: declaration.doc });
}

/** The interfaces of a module that it does not export, by name. */
function localsOf({ body }) {
  const interfaces = body.filter(({ type }) => type === 'TSInterfaceDeclaration');
  return new Map(interfaces.map((node) => [node.id.name, node]));
}

const KINDS = {
  FunctionDeclaration: 'function',
  TSDeclareFunction: 'function',
  ClassDeclaration: 'class',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
};

function declarationsIn(module, node) {
  const { declaration } = node;
  const doc = docBefore(module, node.start);
  const text = (from, to) => module.source.slice(from, to).trim();
  if (declaration.type === 'VariableDeclaration') {
    return declaration.declarations.map(({ id }) => ({
      name: id.name,
      kind: 'const',
      file: module.file,
      texts: [`const ${text(id.start, id.typeAnnotation?.end ?? id.end)}`],
      doc,
      members: [],
      base: [],
    }));
  }
  const kind = KINDS[declaration.type];
  if (kind === undefined) return [];
  const body = declaration.body;
  const end = kind === 'type' ? declaration.end : (body?.start ?? declaration.end);
  return [
    {
      name: declaration.id.name,
      kind,
      file: module.file,
      texts: [text(declaration.start, end).replace(/;$/, '')],
      doc,
      isImplementation: declaration.type === 'FunctionDeclaration',
      ...(kind === 'interface' ? contentOf(module, declaration) : { members: [], base: [] }),
    },
  ];
}

/** The members and bases of an interface. Members of a base that the module does not export are its own. */
function contentOf(module, { extends: bases, body }) {
  const content = { members: [], base: [] };
  for (const base of bases) {
    const text = module.source.slice(base.start, base.end);
    const local = module.locals.get(text);
    const inherited = local === undefined ? { members: [], base: [text] } : contentOf(module, local);
    content.members.push(...inherited.members);
    content.base.push(...inherited.base);
  }
  content.members.push(...membersOf(module, body.body));
  return content;
}

function membersOf(module, nodes) {
  const members = [];
  for (const node of nodes) {
    const doc = docBefore(module, node.start);
    const text = module.source.slice(node.start, node.end).replace(/[;,]$/, '');
    if (node.type === 'TSPropertySignature') {
      const type = node.typeAnnotation;
      const annotation =
        type === null ? '' : module.source.slice(type.typeAnnotation.start, type.typeAnnotation.end);
      members.push({ name: nameOf(module, node.key), type: annotation, optional: node.optional, doc });
    } else if (node.type === 'TSMethodSignature') {
      members.push({ name: `${nameOf(module, node.key)}()`, type: text, optional: node.optional, doc });
    } else {
      members.push({
        name: node.type === 'TSIndexSignature' ? '[key]' : '()',
        type: text,
        optional: false,
        doc,
      });
    }
  }
  return members;
}

const nameOf = ({ source }, key) => source.slice(key.start, key.end);

/** The docstring that ends immediately before a node. */
function docBefore({ comments, source }, start) {
  const comment = comments.findLast(({ type, value, end }) => {
    return (
      type === 'Block' && value.startsWith('*') && end <= start && source.slice(end, start).trim() === ''
    );
  });
  return parseDocstring(comment?.value ?? '');
}
