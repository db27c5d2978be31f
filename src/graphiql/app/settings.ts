/** What the server wrote into the page. */
interface Config {
  endpoint?: string;
  subscriptionEndpoint?: string;
  subscriptions: boolean;
  headersEditor: boolean;
  persistHeaders: boolean;
  defaultQuery?: string;
  defaultHeaders?: string;
  theme: 'system' | 'light' | 'dark';
  inputValueDeprecation: boolean;
  schemaDescription: boolean;
}

/** The operation that a link carries. */
export interface LinkedOperation {
  query: string | undefined;
  variables: string | undefined;
  operationName: string | undefined;
}

const OWN = ['query', 'variables', 'operationName', 'raw'] as const;

export const config: Config = JSON.parse(document.querySelector('#graphiql-config')?.textContent ?? '{}');

/** From the fragment, which no server sees, or else from the query string. Only ever shown: it runs when the visitor says so. */
export const linked: LinkedOperation = readLink();

/** Without an option it is this page's own URL, so proxies and TLS need no setting; foreign parameters stay (a tenant, a token). */
export const endpoint: string = new URL(config.endpoint ?? withoutOperation(), location.href).href;

export const socketEndpoint: string = new URL(
  config.subscriptionEndpoint ?? config.endpoint ?? withoutSlash(endpoint),
  location.href,
).href.replace(/^http/, 'ws');

/** A mount answers with a slash at the end as well, the path of the sockets is exact. */
function withoutSlash(href: string): string {
  const url = new URL(href);
  url.pathname = url.pathname.replace(/\/$/, '');
  return url.href;
}

function readLink(): LinkedOperation {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const found = fragment.has('query') ? fragment : new URLSearchParams(location.search);
  const of = (name: string): string | undefined => found.get(name) ?? undefined;
  return { query: of('query'), variables: pretty(of('variables')), operationName: of('operationName') };
}

function pretty(json: string | undefined): string | undefined {
  try {
    return json === undefined ? undefined : JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** This page's URL without the operation that a link carried. */
export function withoutOperation(): string {
  const url = new URL(location.href);
  url.hash = '';
  for (const name of OWN) url.searchParams.delete(name);
  return url.href;
}

/** A link that opens this page with an operation; in the fragment it stays out of every log. */
export function linkTo({ query, variables, operationName }: LinkedOperation): string {
  const parameters = new URLSearchParams();
  if (query) parameters.set('query', query);
  if (variables) parameters.set('variables', variables);
  if (operationName) parameters.set('operationName', operationName);
  return `${withoutOperation()}#${parameters}`;
}

/** Takes the operation out of the address once it was edited: a reload then shows the edited one, not the old one anew. */
export function forgetLink(): void {
  if (location.href !== withoutOperation()) history.replaceState(history.state, '', withoutOperation());
}
