// A schema whose promises settle one at a time, in an order that does not depend on the engine.
import { buildSchema, type GraphQLResolveInfo, type GraphQLSchema } from 'graphql';
import { DIRECTIVES } from '../graphql/incremental-schema.ts';
import { type Choices, hash } from './choices.ts';

const NODE_FIELDS = `
  id: ID! name: String slow: String fails: String failsLater: String must: String! mustLater: String!
  node: Node later: Node strict: Node! nodes: [Node] strictNodes: [Node!]! any: Any anyLater: Any`;

export const orderedSchema = (): GraphQLSchema =>
  buildSchema(`${DIRECTIVES}
    interface Any { id: ID! name: String slow: String }
    type Query { ${NODE_FIELDS} }
    type Mutation { ${NODE_FIELDS} }
    type Node implements Any { ${NODE_FIELDS} }
    type Other implements Any { id: ID! name: String slow: String node: Node }
  `);

/** The promises of one execution. */
export class Gates {
  /** The paths of all calls of resolvers. */
  readonly calls: string[] = [];
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** Whether an event occurs at a path: in `parts` of 100 cases. */
  chance(path: string, event: string, parts: number): boolean {
    return hash(`${event}:${path}`, this.#seed) % 100 < parts;
  }

  wait(path: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(path) ?? [];
      waiting.push(resolve);
      this.#waiting.set(path, waiting);
    });
  }

  /** Settles the next promise. Returns whether there was one. */
  release(): boolean {
    const [path] = [...this.#waiting.keys()].sort((a, b) => hash(a, this.#seed) - hash(b, this.#seed));
    if (path === undefined) return false;
    const waiting = this.#waiting.get(path) ?? [];
    waiting.shift()?.();
    if (waiting.length === 0) this.#waiting.delete(path);
    return true;
  }
}

const pathOf = ({ path }: GraphQLResolveInfo): string => {
  const keys: (string | number)[] = [];
  for (let at: typeof path | undefined = path; at !== undefined; at = at.prev) keys.push(at.key);
  return keys.reverse().join('.');
};

/** The resolver of all fields. */
export function resolveOrdered(
  _source: unknown,
  _args: unknown,
  gates: Gates,
  info: GraphQLResolveInfo,
): unknown {
  const { fieldName } = info;
  const path = pathOf(info);
  gates.calls.push(path);
  const isLate = /slow|later/i.test(fieldName) || gates.chance(path, 'late', 10);
  const value = (): unknown => resultAt(fieldName, path, gates);
  return isLate ? gates.wait(path).then(value) : value();
}

function resultAt(fieldName: string, path: string, gates: Gates): unknown {
  if (fieldName.startsWith('fails') || gates.chance(path, 'fails', 4)) throw new Error(`fails at ${path}`);
  if (gates.chance(path, 'null', 8)) return null;
  if (/odes$/.test(fieldName))
    return Array.from({ length: hash(path, 1) % 3 }, () => ({ __typename: 'Node' }));
  if (/any/.test(fieldName)) return { __typename: gates.chance(path, 'other', 50) ? 'Other' : 'Node' };
  if (/node|later|strict/.test(fieldName)) return { __typename: 'Node' };
  return `${fieldName} of ${path} "☃"`;
}

const LEAVES = ['id', 'name', 'slow', 'fails', 'failsLater', 'must', 'mustLater'];
const OBJECTS = ['node', 'later', 'strict', 'nodes', 'strictNodes'];
const DEFERS = [
  '@defer',
  '@defer',
  '@defer',
  '@defer(label: "one")',
  '@defer(label: "t\\"wo")',
  '@defer(if: $yes)',
  '@defer(if: $no)',
  '@defer(if: false)',
  '',
];

/** Creates a random document with `@defer`. */
export function randomDeferred(choices: Choices): string {
  const fragments: string[] = [];
  const root = choices.chance(40) ? 'mutation' : 'query';
  const type = root === 'query' ? 'Query' : 'Mutation';
  const selection = selectionOf(choices, type, { fragments, depth: 0 });
  return `${root} ($yes: Boolean!, $no: Boolean!) ${selection}\n${fragments.join('\n')}`;
}

interface Place {
  readonly fragments: string[];
  readonly depth: number;
}

function selectionOf(choices: Choices, type: string, place: Place): string {
  const count = 1 + choices.choose(place.depth > 4 ? 2 : 4);
  const parts = Array.from({ length: count }, () => itemOf(choices, type, place));
  return `{ ${parts.join(' ')} }`;
}

function itemOf(choices: Choices, type: string, { fragments, depth }: Place): string {
  const inner = { fragments, depth: depth + 1 };
  const kind = choices.choose(10);
  if (depth > 6 || kind < 3)
    return choices.pick(type === 'Any' || type === 'Other' ? LEAVES.slice(0, 3) : LEAVES);
  if (kind < 5 && type !== 'Any' && type !== 'Other') {
    return `${choices.pick(OBJECTS)} ${selectionOf(choices, 'Node', inner)}`;
  }
  if (kind === 5 && type !== 'Any' && type !== 'Other') {
    return `${choices.pick(['any', 'anyLater'])} ${selectionOf(choices, 'Any', inner)}`;
  }
  const target = type === 'Any' ? choices.pick(['Node', 'Other', 'Any']) : type;
  const directive = choices.pick(DEFERS);
  if (kind < 8) return `... on ${target} ${directive} ${selectionOf(choices, target, inner)}`;
  if (fragments.length > 0 && target === 'Node' && choices.chance(100)) {
    const known = choices.choose(fragments.length);
    if (fragments[known]?.includes(' on Node ') === true) return `...F${known} ${directive}`;
  }
  const text = selectionOf(choices, target, inner);
  const name = `F${fragments.length}`;
  fragments.push(`fragment ${name} on ${target} ${text}`);
  return `...${name} ${directive} ${choices.chance(60) ? `...${name} ${choices.pick(DEFERS)}` : ''}`;
}
