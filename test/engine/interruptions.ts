// Run by interruptions.test.ts: throws, rejects and aborts at every point of some executions, under both engines.
import { versionInfo } from 'graphql';
import { schemaOf } from './cases/case.ts';
import { engines, outcomeOf, prepare, settingsOf, unguardedGraphqlJs } from './compare.ts';
import { type Action, Recorder } from './recorder.ts';

const SDL = /* GraphQL */ `
  scalar Leaf
  interface Being { name: String }
  type Dog implements Being { name: String bark: String! leaf: Leaf }
  type Cat implements Being { name: String meow: String! leaf: Leaf! }
  union Pet = Dog | Cat
  type Row { id: ID! now: String later: String must: String! leaf: Leaf rows: [Row!] next: Row }
  type Query {
    now: String later: String leaf: Leaf row: Row mustRow: Row! rows: [Row!]! promised: [Row] leaves: [Leaf!]
    being: Being pets: [Pet] echo(leaf: Leaf): String
  }
  type Mutation { first: String second: Row third: [Leaf!]! fourth: Pet fifth: String! }
`;

const QUERIES = {
  'a synchronous query':
    '{ now row { ...R } rows { id now leaf } leaves echo(leaf: "x") } fragment R on Row { id now leaf }',
  'a promised query':
    '{ later now row { later must next { later } } promised { id later must } leaf mustRow { must later } }',
  'lists of promises': '{ rows { id later rows { must } } promised { later must } leaves now }',
  'abstract types':
    '{ being { name ... on Dog { bark leaf } } pets { __typename ... on Dog { bark } ... on Cat { meow leaf } } later }',
  'a mutation':
    'mutation { first second { now later must } third fourth { ... on Cat { meow } ... on Dog { leaf } } fifth }',
} as const;

/** The recorder of the current execution; there is one execution at a time. */
let recorder = new Recorder();

type Source = { readonly id: string; readonly kind?: string };
const place = (source: Source | undefined, field: string): string => `${source?.id ?? ''}.${field}`;
const now = (field: string, value: unknown) => (source: Source | undefined) =>
  recorder.at(place(source, field), value);
const later = (field: string, value: unknown) => (source: Source | undefined) =>
  recorder.later(place(source, field), value);
const row = (id: string, depth = 0): Source => ({ id: `${id}${depth}` });
const rows = (field: string, promised: boolean) => (source: Source | undefined) =>
  recorder.at(
    place(source, field),
    [1, 2].map((n) => {
      const item = row(`${place(source, field)}.${n}`);
      return promised ? recorder.later(`${item.id} item`, item, n) : item;
    }),
  );
const pet = (field: string, kind: string) => (source: Source | undefined) =>
  recorder.later(place(source, field), { id: place(source, field), kind }, 1);

const schema = schemaOf(
  SDL,
  {
    'Query.now': now('now', 'now'),
    'Query.later': later('later', 'later'),
    'Query.leaf': now('leaf', 'leaf'),
    'Query.row': (source) => recorder.at(place(source, 'row'), row('row')),
    'Query.mustRow': (source) => recorder.later(place(source, 'mustRow'), row('mustRow')),
    'Query.rows': rows('rows', false),
    'Query.promised': rows('promised', true),
    'Query.leaves': (source) =>
      recorder.at(place(source, 'leaves'), ['a', recorder.later('leaf item', 'b'), 'c']),
    'Query.being': pet('being', 'Dog'),
    'Query.pets': () => [pet('pets', 'Cat')({ id: 'one' }), { id: 'two', kind: 'Dog' }],
    'Query.echo': (source, { leaf }: { leaf: string }) => recorder.at(place(source, 'echo'), leaf),
    'Row.now': now('now', 'now'),
    'Row.later': later('later', 'later'),
    'Row.must': later('must', 'must'),
    'Row.leaf': (source: Source) => recorder.at(place(source, 'leaf'), `leaf of ${source.id}`),
    'Row.next': (source: Source) => recorder.later(place(source, 'next'), row(source.id, 1)),
    'Row.rows': rows('rows', true),
    'Dog.name': now('name', 'Rex'),
    'Dog.bark': later('bark', 'wuff'),
    'Dog.leaf': (source: Source) => recorder.later(place(source, 'leaf'), `leaf of ${source.id}`),
    'Cat.meow': now('meow', 'miau'),
    'Cat.leaf': (source: Source) => recorder.at(place(source, 'leaf'), `leaf of ${source.id}`),
    'Mutation.first': now('first', 'one'),
    'Mutation.second': () => recorder.later('second', row('second')),
    'Mutation.third': () => ['x', recorder.later('third item', 'y')],
    'Mutation.fourth': pet('fourth', 'Cat'),
    'Mutation.fifth': later('fifth', 'five'),
  },
  {
    Leaf: {
      serialize: (value: unknown) => recorder.at(`serialize ${value}`, value),
      parseLiteral: () => recorder.at('parse', 'parsed'),
      parseValue: (value: unknown) => value,
    },
    Pet: { resolveType: ({ id, kind }: Source) => recorder.later(`type of ${id}`, kind, 1) },
    Dog: { isTypeOf: ({ id, kind }: Source) => recorder.later(`is ${id} a dog`, kind === 'Dog', 1) },
    Cat: { isTypeOf: ({ id, kind }: Source) => recorder.at(`is ${id} a cat`, kind === 'Cat') },
  },
);
const settings = settingsOf();
const ACTIONS: readonly Action[] = ['throw', 'reject', 'abort', 'abort and throw'];

interface Result {
  readonly text: string;
  /** The points that were reached until the response, except those after a promise, whose timing may differ. */
  readonly reached: string;
  readonly unhandled: number;
}

let unhandled = 0;
process.on('unhandledRejection', () => {
  unhandled++;
});
type Run = ReturnType<typeof prepare>;

async function execute(run: Run, own: Recorder, afterwards?: () => Promise<void>): Promise<Result> {
  recorder = own;
  const before = unhandled;
  const text = await outcomeOf(() => run({ signal: own.controller.signal }));
  const reached = own.reached.filter((point) => !point.endsWith('settled')).join();
  await afterwards?.();
  for (let i = 0; i < 3; i++) await new Promise(setImmediate);
  return { text, reached, unhandled: unhandled - before };
}

const differences: string[] = [];
const check = (at: string, ours: unknown, theirs: unknown): void => {
  if (ours !== theirs) differences.push(`${at}\n  ${ours}\nnot\n  ${theirs}`);
};
let points = 0;
let buffers = 0;
const { allocUnsafeSlow } = Buffer;

for (const [title, query] of Object.entries(QUERIES)) {
  const reference = prepare(unguardedGraphqlJs, schema, query, settings);
  const ours = prepare(engines.compiled, schema, query, settings);
  const uninterrupted = new Recorder();
  const whole = await execute(reference, uninterrupted);
  const firstWait = uninterrupted.reached.findIndex((point) => point.endsWith('settled'));
  // While promises of the previous execution settle, another one starts with the buffer that it gave back.
  const next = async (): Promise<void> => {
    recorder = new Recorder();
    check(`${title}, next`, await outcomeOf(() => ours({})), whole.text);
  };
  await execute(ours, new Recorder(), next);
  // From here on the pool has a buffer for every execution.
  Buffer.allocUnsafeSlow = (size) => {
    buffers++;
    return allocUnsafeSlow(size);
  };
  for (const [index, point] of uninterrupted.reached.entries()) {
    for (const action of ACTIONS) {
      points++;
      const theirs = await execute(reference, new Recorder(point, action));
      const mine = await execute(ours, new Recorder(point, action), next);
      const at = `${title}, ${action} at ${point}`;
      if (mine.unhandled > theirs.unhandled) differences.push(`${at}: unhandled rejection`);
      // Before the first wait only a resolver can abort; the engine checks the signal when it waits.
      if (action.startsWith('abort') && index < firstWait) continue;
      // graphql-js 16 alone knows no signal. The engine starts no later field of the mutation.
      const isStopped =
        versionInfo.major < 17 && title === 'a mutation' && mine.text.startsWith('threw Error: aborted');
      if (!isStopped) check(at, mine.text, theirs.text);
      check(
        `${at}, reached`,
        mine.reached,
        isStopped ? theirs.reached.slice(0, mine.reached.length) : theirs.reached,
      );
    }
  }
  Buffer.allocUnsafeSlow = allocUnsafeSlow;
}
process.stdout.write(JSON.stringify({ points, differences, buffers }));
