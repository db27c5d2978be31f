import type { UsageClient } from '../../types/usage.ts';
import { isObject, isString } from '../options/rules.ts';

/** A client by its key: its name and version. */
export interface Client {
  readonly name: string;
  readonly version: string | undefined;
  readonly key: string;
}

/** Returns the client of a request, or of a WebSocket with the payload of `connection_init`. */
export type ClientReader = (
  source: object,
  connectionParams: Readonly<Record<string, unknown>> | undefined,
) => Client;

const clientNamed = (name: string): Client => ({ name, version: undefined, key: name });
/** Operations whose client has no name. */
const UNNAMED = clientNamed('_UNNAMED');
/** Further clients, and those with a name that is too long. */
export const OTHER: Client = clientNamed('_OTHER');

/** The clients of one day that are counted separately: anybody can invent names. */
const MAX_CLIENTS = 100;
const ACCEPTED = /^[^\p{Cc}]{1,100}$/u;

/** The names of headers, and of members of `connection_init`: of Hive and Cosmo, and of Apollo. */
const NAMES = [
  ['graphql-client-name', 'graphql-client-version'],
  ['apollographql-client-name', 'apollographql-client-version'],
] as const;

type Values = Readonly<Record<string, unknown>>;

/** Reads the client that a request or a WebSocket names. */
export const readClient: ClientReader = (source, connectionParams) => {
  const { headers = {} } = source as { readonly headers?: Values };
  return fromValues(connectionParams ?? {}) ?? fromValues(headers) ?? UNNAMED;
};

function fromValues(values: Values): Client | undefined {
  for (const [nameOf, versionOf] of NAMES) {
    const name = Object.hasOwn(values, nameOf) ? values[nameOf] : undefined;
    if (isString(name) && name !== '') return createClient(name, values[versionOf]);
  }
  return undefined;
}

function createClient(name: string, version: unknown): Client {
  if (version === undefined || version === '') return ACCEPTED.test(name) ? clientNamed(name) : OTHER;
  if (!isString(version) || !ACCEPTED.test(name) || !ACCEPTED.test(version)) return OTHER;
  return { name, version, key: `${name}@${version}` };
}

/** Reads what the option `usage.client` returned; undefined for a value of another type. */
export function toClient(returned: unknown): Client | undefined {
  if (returned === undefined) return UNNAMED;
  const { name, version }: Partial<Record<keyof UsageClient, unknown>> = isObject(returned)
    ? returned
    : { name: returned };
  if (!isString(name) || name === '' || (version !== undefined && !isString(version))) return undefined;
  return createClient(name, version);
}

/** The clients of one day. */
export class DailyClients {
  readonly #byKey = new Map<string, Client>([
    [UNNAMED.key, UNNAMED],
    [OTHER.key, OTHER],
  ]);

  /** Returns one object per client, and `_OTHER` for further ones. */
  of(given: Client): Client {
    const known = this.#byKey.get(given.key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= MAX_CLIENTS) return OTHER;
    this.#byKey.set(given.key, given);
    return given;
  }
}
