import { buildSchema, GraphQLError, type GraphQLSchema } from 'graphql';
import { graphqlHTTP, Upload } from '../../middleware/graphql.ts';
import { TIMES } from '../../src/idempotency/mutations.ts';
import type { Caller } from '../../types/caller.ts';
import type { ConnectRequest } from '../../types/connect.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { IdempotencyOptions } from '../../types/idempotency.ts';
import { atEnd, type Listening, listen } from '../kit.ts';

export const SDL = `
  scalar Upload
  type Query { count: Int! }
  type Payment { id: ID! amount: Int! late: String bug: String }
  input Payee { name: String! city: String }
  type Mutation {
    pay(amount: Int!, to: Payee): Payment!
    refund(amount: Int!): Payment
    fail(kind: String): Payment
    store(file: Upload!): String
  }
`;

/** What the resolvers have done, and what they wait for. */
export class Effects {
  count = 0;
  failures = 0;
  readonly #gates: (() => void)[] = [];
  isGated = false;

  /** Lets the resolvers that wait continue. */
  open(): void {
    this.isGated = false;
    for (const open of this.#gates.splice(0)) open();
  }

  get waiting(): number {
    return this.#gates.length;
  }

  async pass(): Promise<void> {
    if (this.isGated) await new Promise<void>((resolve) => this.#gates.push(resolve));
  }
}

export function createSchema(effects: Effects): GraphQLSchema {
  const schema = buildSchema(SDL);
  Object.assign(schema.getType('Upload') ?? {}, Upload);
  const pay = async (_: unknown, { amount }: { readonly amount: number }): Promise<object> => {
    const id = ++effects.count;
    await effects.pass();
    const late = (): Promise<string> => new Promise((resolve) => setImmediate(resolve, 'late'));
    const bug = (): string => {
      throw new Error('a bug');
    };
    return { id, amount, late, bug };
  };
  const fields = schema.getMutationType()?.getFields() ?? {};
  const resolvers = {
    pay,
    refund: pay,
    fail: (_: unknown, { kind }: { readonly kind: string }) => {
      effects.count++;
      effects.failures++;
      if (kind === 'bug') throw new Error('secret');
      const http = { status: 402, headers: { 'x-reason': 'funds' } };
      throw new GraphQLError('No funds', { extensions: { code: 'FUNDS', http } });
    },
    store: async (_: unknown, { file }: { readonly file: Upload }) => {
      effects.count++;
      await effects.pass();
      return file.text();
    },
  };
  for (const [name, resolve] of Object.entries(resolvers)) Object.assign(fields[name] ?? {}, { resolve });
  Object.assign(schema.getQueryType()?.getFields()['count'] ?? {}, { resolve: () => effects.count });
  return schema;
}

export const callerOf = ({ headers }: Pick<ConnectRequest, 'headers'>): Caller | null =>
  headers['x-user'] === undefined ? null : { id: String(headers['x-user']) };

export interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly headers: Headers;
  readonly data: Readonly<Record<string, unknown>> | null | undefined;
  readonly codes: readonly unknown[];
  readonly body: string;
}

export interface Service extends Listening {
  readonly effects: Effects;
  readonly reports: unknown[];
  post(body: object, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

/** Changes the times until the end of the test. */
export function useTimes(times: Partial<typeof TIMES>): void {
  const before = { ...TIMES };
  atEnd(() => void Object.assign(TIMES, before));
  Object.assign(TIMES, times);
}

export async function serve(
  { lease, wait, ...idempotency }: Partial<IdempotencyOptions & typeof TIMES> = {},
  options: GraphQLOptions = {},
): Promise<Service> {
  useTimes({ ...(lease !== undefined && { lease }), ...(wait !== undefined && { wait }) });
  const effects = new Effects();
  const reports: unknown[] = [];
  const handler = graphqlHTTP(createSchema(effects), {
    onError: (error) => void reports.push(error),
    caller: callerOf,
    idempotency,
    ...options,
  });
  const listening = await listen(handler, '/');
  return { ...listening, effects, reports, post: (body, headers = {}) => post(listening.url, body, headers) };
}

export async function post(
  url: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const isForm = body instanceof FormData;
  const type = isForm ? { 'x-requested-with': 'test' } : { 'content-type': 'application/json' };
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...type, ...headers },
    body: isForm ? body : JSON.stringify(body),
  });
  return toAnswer(response.status, response.headers, await response.text());
}

function toAnswer(status: number, headers: Headers, body: string): Answer {
  const parsed = body.startsWith('{') ? JSON.parse(body) : {};
  const codes = (parsed.errors ?? []).map(
    ({ extensions }: { extensions?: { code?: unknown } }) => extensions?.code,
  );
  return {
    status,
    replayed: headers.get('idempotency-replayed') === 'true',
    headers,
    data: parsed.data,
    codes,
    body,
  };
}
