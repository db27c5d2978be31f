// What the search box finds: the order of the results, and an excerpt of each.
import localSearchIndex from '@localSearchIndex';
import MiniSearch, { type SearchOptions } from 'minisearch';

/** A section of a page. Titles are HTML, in which code keeps its entities. */
export interface Found {
  readonly href: string;
  readonly title: string;
  readonly parents: readonly string[];
  /** Pieces of the text; every second one is a term that was found. */
  readonly excerpt: readonly string[];
}

export type Search = (text: string) => readonly Found[];

const MAX_RESULTS = 16;
const EXCERPT = 170;

/** What people call things that the pages call differently. `N+1` has no words, so its synonyms replace it. */
const SYNONYMS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/\bn ?\+ ?1\b/gi, 'dataloader batches'],
  [/\bauth(?:n|z)?\b/gi, 'auth authentication'],
  [/\b(?:roles?|permissions?|rbac)\b/gi, 'authorization'],
  [/\bspa\b/gi, 'single-page app'],
  [/\bjwt\b/gi, 'jwt token authentication'],
  [/\bprisma\b/gi, 'prisma dataloader'],
  [/\b(?:rate.?limit\w*|throttl\w*|quotas?)/gi, 'rate limit budgets'],
  [/\b(?:query )?complexity\b/gi, 'cost'],
  [/\b(?:graceful shutdown|sigterm)\b/gi, 'drain health'],
  [/\bk8s\b/gi, 'kubernetes'],
  [/\b(?:s3|r2|minio|gcs)\b/gi, 's3 object storage'],
  [/\b(?:sse|eventsource)\b/gi, 'sse streaming'],
  [/\b(?:websockets?|ws)\b/gi, 'websocket subscriptions'],
  [/\bapq\b/gi, 'apq automatic'],
  [/\bpersisted (?:quer(?:y|ies)|operations?)\b/gi, 'persisted queries documents by id'],
  [/\b(?:csrf|xsrf)\b/gi, 'csrf refused by default security'],
  [/\b(?:playground|landing ?page|sandbox)\b/gi, 'graphiql'],
  [/\bsocket\.io\b/gi, 'other websockets'],
  [/\bbatching\b/gi, 'batches'],
  [/\b(?:logging|logger|pino|winston)\b/gi, 'log line per operation'],
  [/\bcontext\b/gi, 'context resolvers'],
  [/\b(?:metrics|prometheus)\b/gi, 'observability'],
  [/\b(?:tracing|traces?|spans?|otel)\b/gi, 'opentelemetry'],
  [/\bserve-?index\b/gi, 'list directory'],
  [/\brewrites?\b/gi, 'redirects'],
  [/\b(?:clean|pretty|extensionless) urls?\b|\.html\b/gi, 'links without .html'],
  [/\btrailing slash(?:es)?\b/gi, 'one url for each page'],
  [/\b(?:gzip|brotli|zstd)\b/gi, 'compressing'],
  [/\b(?:csp|content.security.policy)\b/gi, 'html pages policy'],
  [/\b(?:sri|subresource integrity)\b/gi, 'refuse scripts changed'],
  [/\b(?:chunks?|chunkloaderror)\b/gi, 'earlier builds'],
  [/\b(?:signed|expiring|presigned) (?:urls?|links?)\b/gi, 'links that expire'],
  [/\b(?:i18n|locales?)\b/gi, 'languages'],
  [/\b(?:vhosts?|virtual hosts?|multi-?tenan\w*)\b/gi, 'several sites'],
  [/\b(?:multer|busboy|formidable)\b/gi, 'files from forms'],
  [/\b(?:federation|stitching|gateway)\b/gi, 'subgraph'],
  [/\bnextjs\b/gi, 'next.js'],
  [/\bconnection_?params\b/gi, 'sign-in context sockets'],
  [/\bpub ?sub\b/gi, 'publish scaling'],
  [/\breconnect\w*/gi, 'resuming'],
  [/\b(?:http\/?2|h2|tls|ssl)\b/gi, 'https http/2'],
  [/\b(?:timeouts?|deadlines?)\b/gi, 'time of an operation'],
  [/\b(?:jest|supertest|vitest)\b/gi, 'testing'],
  [/\bcodegen\b/gi, 'types of resolvers'],
];
/** Words that say nothing about a page. */
const STOPPED = /\b(?:a|an|and|for|from|how|i|in|is|my|of|on|or|the|to|with)\b/gi;
/** Generated and measured pages repeat the words of all others, and pages about other packages those of the guides. */
const WEIGHTS: readonly (readonly [page: RegExp, weight: number])[] = [
  [/\/(?:api|engine)(?:\/|#|$)/, 0.3],
  [/\/benchmarks/, 0.15],
  [/\/(?:testing|troubleshooting)#./, 0.5],
  [/\/migrating/, 0.4],
  [/#known-limits/, 0.2],
];

const OPTIONS: SearchOptions = {
  prefix: true,
  // Short words have neighbours that mean something else: `auth` and `path`.
  fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  weights: { fuzzy: 0.2, prefix: 0.7 },
  boost: { title: 8, titles: 2, text: 1 },
  boostDocument(id, _term, stored) {
    const isPage = (stored?.['titles'] as readonly string[] | undefined)?.length === 0;
    const weight = WEIGHTS.find(([page]) => page.test(String(id)))?.[1] ?? 1;
    return weight * (isPage ? 2 : 1);
  },
};

/** Loads the index of this version of the site. */
export async function loadSearch(): Promise<Search> {
  const { default: json } = await localSearchIndex.root();
  const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles', 'text'] };
  const index = MiniSearch.loadJSON(json, fields);
  return (text) =>
    index
      .search(expand(text), OPTIONS)
      .slice(0, MAX_RESULTS)
      .map(({ id, terms, title, titles, text: body }) => ({
        href: id,
        title,
        parents: titles,
        excerpt: excerptOf(body, terms),
      }));
}

/** Adds synonyms, and removes the words of a sentence. */
function expand(text: string): string {
  const words = SYNONYMS.reduce((all, [pattern, words]) => all.replace(pattern, words), text);
  const telling = words.replace(STOPPED, '').trim();
  return telling === '' ? text : telling;
}

/** The part of a text with the first term, split at the terms. */
function excerptOf(body: string, terms: readonly string[]): string[] {
  const { textContent } = new DOMParser().parseFromString(body, 'text/html').body;
  const text = (textContent ?? '').replace(/\s+/g, ' ').trim();
  const longest = [...terms].sort((one, other) => other.length - one.length);
  const pattern = new RegExp(`(${longest.map(escapeTerm).join('|')})`, 'i');
  const at = Math.max(0, text.search(pattern));
  const start = at < 60 ? 0 : text.indexOf(' ', at - 50) + 1;
  const end = text.length - start <= EXCERPT ? text.length : text.lastIndexOf(' ', start + EXCERPT);
  const part = `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`;
  return part.split(new RegExp(pattern.source, 'gi'));
}

const escapeTerm = (term: string): string => term.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
