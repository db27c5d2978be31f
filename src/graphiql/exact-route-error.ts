import type { ConnectRequest } from '../../types/connect.ts';
import type { Reply } from '../http/reply/write-reply.ts';
import { pathOf, withoutSlash } from '../http/routing/url-path.ts';
import { escapeHtml } from './escape.ts';
import { FILES } from './page.ts';

/**
 * Creates a page that explains why GraphiQL cannot load on this route. The status is 500: the application has
 * to be changed.
 */
export function exactRouteError(path: string): Reply {
  const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>GraphiQL cannot run on an exact route</title>
<h1>GraphiQL cannot run on an exact route</h1>
<p>The files of the page are at ${code(`${path}/${FILES}/\u2026`)}, which an exact route does not match.</p>
<p>Mount the handler with ${code(`app.use('${path}', graphqlHTTP(schema))`)}, or switch GraphiQL off with ${code('graphiql: false')}.</p>
<p>The GraphQL API works on this route.</p>
</html>
`;
  return { status: 500, headers: HEADERS, body };
}

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** Whether the route of a request also matches a file below the path of the request. */
export function matchesBelow(req: ConnectRequest, file: string): boolean {
  const below = `${withoutSlash(pathOf(req.url))}/${file}`;
  return [(req.route as { readonly path?: unknown }).path]
    .flat()
    .some((pattern) => (pattern instanceof RegExp ? pattern.test(below) : String(pattern).includes('*')));
}
