// A schema with fields that fail in each way, for comparisons of error modes. Each engine has its own copy of graphql.

export const MODES = ['PROPAGATE', 'NULL', 'HALT'];

export const SDL = `
  type Query { node: Node, strict: Node!, nodes: [Node], strictNodes: [Node!]! }
  type Node {
    id: ID!
    text: String
    fails: String
    strictFails: String!
    late: String!
    lateFails: String!
    missing: String!
    next: Node
    strictNext: Node!
    nodes: [Node!]
    strictNodes: [Node]!
    holes: [Node!]
    strictHoles: [[Node!]!]!
  }
`;

const fail = () => {
  throw new Error('failed');
};
const node = { id: '1' };
const pair = () => [node, node];

const RESOLVERS = {
  text: () => 'text',
  fails: fail,
  strictFails: fail,
  late: async () => 'late',
  lateFails: async () => fail(),
  missing: () => null,
  next: () => node,
  strictNext: async () => node,
  node: () => node,
  strict: async () => node,
  nodes: pair,
  strictNodes: pair,
  holes: () => [node, null],
  strictHoles: () => [[node], [node, null]],
};

export function addResolvers(schema) {
  for (const name of ['Query', 'Node']) {
    for (const field of Object.values(schema.getType(name).getFields())) {
      field.resolve = RESOLVERS[field.name] ?? ((source) => source[field.name]);
    }
  }
  return schema;
}

const SCALARS = ['id', 'text', 'fails', 'strictFails', 'late', 'lateFails', 'missing'];
const OBJECTS = ['next', 'strictNext', 'nodes', 'strictNodes', 'holes', 'strictHoles'];
const ROOTS = ['node', 'strict', 'nodes', 'strictNodes'];

/** Returns a random query. `random` returns a whole number below its argument. */
export function randomQuery(random) {
  const some = (names) => names.filter(() => random(3) === 0);
  const fields = (depth) => {
    const objects = depth === 0 ? [] : some(OBJECTS).map((name) => `${name} ${fields(depth - 1)}`);
    return `{ id ${[...some(SCALARS), ...objects].join(' ')} }`;
  };
  return `{ a: node { id } ${some(ROOTS)
    .map((name) => `${name} ${fields(2)}`)
    .join(' ')} }`;
}
