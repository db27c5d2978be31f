/** @tags graphql */
import http from 'node:http';
import { buildSchema } from 'graphql';
import { authTypeDefs, visibleSchema } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { inject, subscribe } from '../../middleware/testing.ts';
import type { AuthResolveInfo } from '../../types/auth.ts';
import type { ContextSource } from '../../types/connect.ts';

// The options of docs/authorization.md together, with the tokens of its example.

interface Caller {
  readonly user: string;
  readonly scopes: readonly string[];
}

/** The callers by token; one that is removed has expired. */
let callers: Map<string, Caller>;
/** Resolves before the second event. */
let second: Promise<void>;
let continueEvents: () => void;
beforeEach(() => {
  second = new Promise((resolve) => {
    continueEvents = resolve;
  });
  callers = new Map([
    ['ada', { user: 'ada', scopes: ['notes:write'] }],
    ['bob', { user: 'bob', scopes: [] }],
  ]);
});

async function callerOf(
  { headers }: ContextSource,
  { connectionParams }: { connectionParams?: Readonly<Record<string, unknown>> | undefined },
): Promise<Caller | null> {
  const token = String(connectionParams?.['authorization'] ?? headers.authorization);
  return callers.get(token) ?? null;
}

const schema = buildSchema(`${authTypeDefs}
  type Query { news: String me: String @authenticated archive: String @policy(policies: [["paid"]]) own: String @authenticated }
  type Mutation { addNote(text: String!, pinned: Boolean = true @policy(policies: [["paid"]])): Boolean @requiresScopes(scopes: [["notes:write"]]) }
  type Subscription { ticks: Int @authenticated }`);

const rootValue = {
  news: 'NEWS',
  me: (_args: object, caller: Caller | null) => caller?.user,
  archive: 'ARCHIVE',
  own(_args: object, _caller: unknown, { auth }: AuthResolveInfo) {
    auth.assert('notes:write');
    return 'OWN';
  },
  addNote: ({ pinned }: { pinned: boolean }) => pinned,
  async *ticks() {
    yield { ticks: 1 };
    await second;
    yield { ticks: 2 };
  },
};

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  const serve = (mode: 'reject' | 'null') => {
    const handler = graphqlHTTP(schema, {
      engine,
      rootValue,
      context: callerOf,
      auth: {
        async scopes(req, { context, connectionParams }) {
          const caller = context === undefined ? await callerOf(req, { connectionParams }) : context;
          return (caller as Caller | null)?.scopes ?? null;
        },
        policies: (names, _req, { context }) =>
          (context as Caller | null)?.user === 'ada' ? names.filter((name) => name === 'paid') : [],
        mode,
        schemaFor: (scopes, whole) =>
          visibleSchema(whole, scopes, scopes?.includes('notes:write') ? ['paid'] : []),
      },
    });
    const server = http.createServer((req, res) => handler(req, res, () => res.end()));
    attachSubscriptions(server, handler, { contextPer: 'event' });
    return server;
  };

  it.each(['reject', 'null'] as const)(
    'tokens, policies, info.auth and schemas of callers, mode %s',
    async (mode) => {
      const server = serve(mode);
      const ask = async (query: string, authorization?: string) => {
        const { data, errors } = await inject(server, { query, headers: { authorization } });
        return { data, codes: errors?.map(({ extensions }) => extensions?.['code']) };
      };
      const names = async (authorization?: string) =>
        JSON.stringify(
          (await ask('{ __schema { types { name fields { name args { name } } } } }', authorization)).data,
        );
      expect(await names('ada')).toMatch(/archive.*addNote.*pinned/s);
      expect(await names('bob')).toMatch(/"me"/);
      expect(await names('bob')).not.toMatch(/archive|addNote/);
      expect(await names()).not.toMatch(/"me"|ticks/);

      expect(await ask('{ news me archive own }', 'ada')).toEqual({
        data: { news: 'NEWS', me: 'ada', archive: 'ARCHIVE', own: 'OWN' },
        codes: undefined,
      });
      expect((await ask('mutation { addNote(text: "t") }', 'ada')).data).toEqual({ addNote: true });
      expect((await ask('mutation { addNote(text: "t", pinned: false) }', 'ada')).data).toEqual({
        addNote: false,
      });
      expect(await ask('{ me own }', 'bob')).toEqual({
        data: { me: 'bob', own: null },
        codes: ['FORBIDDEN'],
      });
      expect((await ask('{ archive }', 'bob')).codes).toEqual(['GRAPHQL_VALIDATION_FAILED']);
      expect((await ask('{ me }', 'forged')).codes).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    },
  );

  it.each(['reject', 'null'] as const)('a token that expires between two events, mode %s', async (mode) => {
    const server = serve(mode);
    const connectionParams = { authorization: 'ada' };
    const events = await subscribe(server, { query: 'subscription { ticks }', connectionParams });
    expect((await events.next()).value).toEqual({ data: { ticks: 1 } });
    callers.clear();
    continueEvents();
    const rest: unknown[] = [];
    for await (const { data, errors } of events) rest.push(errors?.[0]?.extensions?.['code'] ?? data);
    expect(rest.at(-1)).toBe('UNAUTHENTICATED');
  });
});
