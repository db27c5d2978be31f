import { buildSchema, GraphQLError, type GraphQLSchema, versionInfo } from 'graphql';

export const V17: boolean = versionInfo.major >= 17;

export const DIRECTIVES = `
  directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @stream(if: Boolean! = true, label: String, initialCount: Int! = 0) on FIELD
`;

/** The calls of resolvers, and a gate for the slow ones. */
interface Calls {
  readonly names: string[];
  /** Lets the next call of a slow resolver finish. */
  release(): void;
  /** Generators of streamed lists that are open. */
  open: number;
  signal: AbortSignal | undefined;
  /** Called with the context when a slow resolver starts. */
  onSlow?: (context: unknown) => void;
}

/** Creates a schema that declares `@defer` and `@stream`, with resolvers that wait for the test. */
export function incrementalSchema(): { schema: GraphQLSchema; calls: Calls } {
  const schema = buildSchema(`${DIRECTIVES}
    type Query { hello: String slow: String failing: String expected: String node: Node list: [Int] items: [Int] required: Node }
    type Node { name: String slow: String must: String! node: Node }
    type Mutation { set: Node }
    type Subscription { tick: Int }
  `);
  const gates: (() => void)[] = [];
  let released = 0;
  const gate = (): Promise<void> =>
    new Promise((resolve) => {
      if (released > 0) {
        released--;
        resolve();
      } else gates.push(resolve);
    });
  const calls: Calls = {
    names: [],
    release() {
      const open = gates.shift();
      if (open === undefined) released++;
      else open();
    },
    open: 0,
    signal: undefined,
  };
  const resolve = (type: string, name: string, resolver: (...args: never[]) => unknown): void => {
    const fields = (schema.getType(type) as ReturnType<GraphQLSchema['getQueryType']>)?.getFields();
    Object.assign(fields?.[name] ?? {}, {
      resolve: (...args: never[]) => {
        calls.names.push(name);
        return resolver(...args);
      },
    });
  };
  resolve('Query', 'hello', () => 'world');
  resolve('Query', 'node', () => ({ name: 'n' }));
  resolve('Mutation', 'set', () => ({ name: 'n' }));
  resolve('Node', 'node', () => ({ name: 'inner' }));
  resolve('Query', 'list', () => [1, 2, 3]);
  for (const type of ['Query', 'Node']) {
    resolve(
      type,
      'slow',
      async (_: unknown, __: unknown, context: unknown, info: { getAbortSignal?(): AbortSignal }) => {
        calls.onSlow?.(context);
        calls.signal = info.getAbortSignal?.();
        await gate();
        return 'slow';
      },
    );
  }
  resolve('Query', 'failing', () => {
    throw new Error('secret detail');
  });
  resolve('Query', 'expected', () => {
    throw new GraphQLError('on purpose');
  });
  resolve('Node', 'must', () => null);
  resolve('Query', 'items', async function* () {
    calls.open++;
    try {
      for (let item = 1; item <= 3; item++) {
        await gate();
        yield item;
      }
    } finally {
      calls.open--;
    }
  });
  Object.assign(schema.getSubscriptionType()?.getFields()['tick'] ?? {}, {
    async *subscribe() {
      yield { tick: 1 };
    },
  });
  return { schema, calls };
}
