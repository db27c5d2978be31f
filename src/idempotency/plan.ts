import { createHash, type Hash } from 'node:crypto';
import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  print,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  visit,
} from 'graphql';
import type { UploadedFile } from '../../types/uploads.ts';
import { UPLOADED } from '../core/limits.ts';
import { fragmentsOf } from '../execution/document.ts';
import type { ExecuteOperation, PreparedOperation, ValidatedOperation } from '../execution/types.ts';

type Variables = Readonly<Record<string, unknown>>;

/** Compiles a part of an operation. */
export type Compile = (operation: ValidatedOperation) => ExecuteOperation;

/** A key of the response at the root of a mutation. Several nodes may select it. */
export interface RootField {
  readonly responseKey: string;
  readonly name: string;
  readonly nodes: readonly FieldNode[];
}

interface RootNode {
  readonly node: FieldNode;
  /** The directives of the field and of the fragments around it. */
  readonly directives: readonly DirectiveNode[];
}

/** A part of an operation: one root field with what it needs. */
interface Part {
  readonly operation: OperationDefinitionNode;
  /** What the fingerprint covers. */
  readonly text: string;
  readonly variables: readonly string[];
}

/** The root fields of one mutation, each of which can be executed for itself. */
export class MutationPlan {
  readonly #prepared: PreparedOperation;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #roots: readonly RootNode[];
  readonly #parts = new Map<string, Part>();
  readonly #compiled = new Map<string, ExecuteOperation>();

  constructor(prepared: PreparedOperation) {
    this.#prepared = prepared;
    this.#fragments = fragmentsOf(prepared.document);
    this.#roots = [...this.#rootsOf(prepared.operation.selectionSet, [])];
  }

  /** The root fields that the variables include, in the order of their execution. */
  fields(variables: Variables): RootField[] {
    const fields = new Map<string, { responseKey: string; name: string; nodes: FieldNode[] }>();
    for (const { node, directives } of this.#roots) {
      if (!directives.every((directive) => this.#includes(directive, variables))) continue;
      const responseKey = (node.alias ?? node.name).value;
      const known = fields.get(responseKey);
      if (known === undefined) fields.set(responseKey, { responseKey, name: node.name.value, nodes: [node] });
      else known.nodes.push(node);
    }
    return [...fields.values()];
  }

  /** The values of `@idempotent(key:)` at a field. */
  keysOf({ nodes }: RootField, variables: Variables): unknown[] {
    const used = nodes.flatMap(({ directives = [] }) => directives);
    return used
      .filter(({ name }) => name.value === 'idempotent')
      .flatMap((directive) =>
        (directive.arguments ?? []).map(({ value }) => this.#valueOf(value, variables)),
      );
  }

  /** Returns the function that executes one field of several. */
  executeOf({ responseKey }: RootField, compile: Compile): ExecuteOperation {
    let execute = this.#compiled.get(responseKey);
    if (execute === undefined) {
      const { schema, source, document, errorMode } = this.#prepared;
      const { operation } = this.partOf(responseKey);
      const definitions = [operation, ...this.#fragments.values()];
      execute = compile({ schema, source, document: { ...document, definitions }, operation, errorMode });
      this.#compiled.set(responseKey, execute);
    }
    return execute;
  }

  partOf(responseKey: string): Part {
    let part = this.#parts.get(responseKey);
    if (part === undefined) {
      const { operation: whole, errorMode = '' } = this.#prepared;
      const selectionSet = {
        ...whole.selectionSet,
        selections: this.#select(whole.selectionSet, responseKey),
      };
      const operation = { ...whole, selectionSet };
      const used = new Set<string>();
      const fragments = [...this.#fragments.values()];
      const Variable = ({ name }: { readonly name: { readonly value: string } }): void => {
        used.add(name.value);
      };
      for (const node of [selectionSet, ...fragments]) visit(node, { Variable });
      const definitions = (whole.variableDefinitions ?? []).filter((each) =>
        used.has(each.variable.name.value),
      );
      const text = [errorMode, ...[...definitions, selectionSet, ...fragments].map(print)].join('\n');
      part = { operation, text, variables: definitions.map(({ variable }) => variable.name.value) };
      this.#parts.set(responseKey, part);
    }
    return part;
  }

  *#rootsOf(set: SelectionSetNode, around: readonly DirectiveNode[]): Generator<RootNode> {
    for (const selection of set.selections) {
      const directives = [...around, ...(selection.directives ?? [])];
      if (selection.kind === Kind.FIELD) yield { node: selection, directives };
      else {
        const inner = this.#setOf(selection);
        if (inner !== undefined) yield* this.#rootsOf(inner, directives);
      }
    }
  }

  #setOf(selection: Exclude<SelectionNode, FieldNode>): SelectionSetNode | undefined {
    if (selection.kind === Kind.INLINE_FRAGMENT) return selection.selectionSet;
    return this.#fragments.get(selection.name.value)?.selectionSet;
  }

  /** The selections at the root without all other fields. Fragments become part of the operation. */
  #select(set: SelectionSetNode, responseKey: string): SelectionNode[] {
    return set.selections.flatMap((selection): SelectionNode[] => {
      if (selection.kind === Kind.FIELD) {
        return (selection.alias ?? selection.name).value === responseKey ? [selection] : [];
      }
      const inner = this.#setOf(selection);
      const selections = inner === undefined ? [] : this.#select(inner, responseKey);
      if (selections.length === 0) return [];
      const { directives = [] } = selection;
      const selectionSet = { kind: Kind.SELECTION_SET, selections } as const;
      return [{ kind: Kind.INLINE_FRAGMENT, directives, selectionSet }];
    });
  }

  #includes({ name, arguments: given = [] }: DirectiveNode, variables: Variables): boolean {
    const value = given[0] && this.#valueOf(given[0].value, variables);
    if (name.value === 'skip') return value !== true;
    return name.value !== 'include' || value !== false;
  }

  #valueOf(node: ValueNode, variables: Variables): unknown {
    if (node.kind === Kind.STRING || node.kind === Kind.BOOLEAN) return node.value;
    if (node.kind !== Kind.VARIABLE) return undefined;
    const name = node.name.value;
    if (Object.hasOwn(variables, name)) return variables[name];
    const definitions = this.#prepared.operation.variableDefinitions ?? [];
    const fallback = definitions.find(({ variable }) => variable.name.value === name)?.defaultValue;
    return fallback && this.#valueOf(fallback, {});
  }
}

/** Returns the fingerprint of a root field: of its selection, its variables, and the contents of its files. */
export async function fingerprint(
  plan: MutationPlan,
  { responseKey }: RootField,
  variables: Variables,
): Promise<string> {
  const { text, variables: names } = plan.partOf(responseKey);
  const used = Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(variables, name) ? [[name, variables[name]]] : [])),
  );
  const files: UploadedFile[] = [];
  const hash = createHash('sha256').update(`${text}\n${canonical(used, files)}`);
  for (const file of files) await addFile(hash, file);
  return hash.digest('base64url');
}

async function addFile(hash: Hash, { filename, mimetype, createReadStream }: UploadedFile): Promise<void> {
  const content = createHash('sha256');
  for await (const chunk of createReadStream()) content.update(chunk);
  hash.update(JSON.stringify([filename, mimetype, content.digest('hex')]));
}

/** JSON text with the members of objects in the order of their names. Files are collected. */
function canonical(value: unknown, files: UploadedFile[]): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, files)).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (isFile(value)) return `file ${files.push(value)}`;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member, files)}`).join()}}`;
}

const isFile = (value: object): value is UploadedFile => Object.hasOwn(value, UPLOADED);
