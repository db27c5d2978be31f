/** The settings that the server wrote into the page. */
interface Config {
  endpoint?: string;
  /** `false`: the page opens no WebSocket. */
  subscriptionEndpoint?: string | false;
  defaultQuery?: string;
}

/** The operation in a link. */
interface LinkedOperation {
  query: string | undefined;
  variables: string | undefined;
  operationName: string | undefined;
}

const OPERATION_PARAMETERS = ['query', 'variables', 'operationName', 'raw'] as const;

export const config: Config = JSON.parse(document.querySelector('#graphiql-config')?.textContent ?? '{}');

/** Read from the fragment, which is not sent to servers, or from the query string. It runs only after a click. */
export const linked: LinkedOperation = readLink();

/** The default is the URL of this page, so proxies and TLS need no option. It keeps other query parameters (a tenant, a token). */
export const endpoint: string = new URL(config.endpoint ?? withoutOperation(), location.href).href;

export const socketEndpoint: string = new URL(
  config.subscriptionEndpoint || config.endpoint || withoutSlash(endpoint),
  location.href,
).href.replace(/^http/, 'ws');

/** Removes a trailing slash: the path of WebSockets is exact, while a mount also matches with the slash. */
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

/** The URL of this page without the operation of a link. */
function withoutOperation(): string {
  const url = new URL(location.href);
  url.hash = '';
  for (const name of OPERATION_PARAMETERS) url.searchParams.delete(name);
  return url.href;
}

/** A link that opens this page with an operation. The operation is in the fragment, which servers do not log. */
export function linkTo({ query, variables, operationName }: LinkedOperation): string {
  const parameters = new URLSearchParams();
  if (query) parameters.set('query', query);
  if (variables) parameters.set('variables', variables);
  if (operationName) parameters.set('operationName', operationName);
  return `${withoutOperation()}#${parameters}`;
}

/** Removes the operation from the address after an edit, so that a reload shows the edited operation. */
export function forgetLink(): void {
  if (location.href !== withoutOperation()) history.replaceState(history.state, '', withoutOperation());
}
