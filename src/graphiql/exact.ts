import type { Reply } from '../http/reply/write-reply.ts';
import { escapeHtml } from './escape.ts';
import { FILES } from './page.ts';

/** What a browser is told instead of a blank page. A 500, since it is the application that has to change. */
export function exactRouteReply(path: string): Reply {
  const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;
  const body = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>GraphiQL needs a prefix</title>
<h1>GraphiQL needs a prefix, and this is an exact route</h1>
<p>The page's files live below its path, at ${code(`${path}/${FILES}/…`)}, where an exact route never answers.</p>
<p>Mount it with ${code(`app.use('${path}', graphqlHTTP(schema))`)}, or switch the page off with ${code('graphiql: false')}.</p>
<p>The GraphQL API itself works here as it is.</p>
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
