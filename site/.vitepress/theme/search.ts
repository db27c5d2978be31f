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
  [/\bspa\b/gi, 'spa single-page app fallback'],
  [/\bjwt\b/gi, 'jwt token authentication'],
  [/\bprisma\b/gi, 'prisma dataloader'],
  [/\brate.?limit\w*/gi, 'rate limit budgets'],
  [/\b(?:graceful shutdown|sigterm)\b/gi, 'graceful shutdown drain'],
  [/\b(?:k8s|kubernetes)\b/gi, 'kubernetes'],
  [/\b(?:s3|r2|minio|gcs)\b/gi, 's3 object storage'],
  [/\b(?:sse|eventsource)\b/gi, 'sse server-sent events streaming'],
  [/\b(?:websockets?|ws)\b/gi, 'websocket subscriptions'],
  [/\bapq\b/gi, 'apq persisted queries documents'],
  [/\bpersisted quer(?:y|ies)\b/gi, 'persisted queries documents by id'],
  [/\bcsrf\b/gi, 'csrf cross-site security'],
  [/\bplayground\b/gi, 'graphiql'],
  [/\b(?:metrics|tracing|prometheus)\b/gi, 'observability opentelemetry'],
];
/** Words that say nothing about a page. */
const STOPPED = /\b(?:a|an|and|for|from|how|i|in|is|my|of|on|or|the|to|with)\b/gi;
/** Generated and measured pages repeat the words of all others, and pages about other packages those of the guides. */
const WEIGHTS: readonly (readonly [page: RegExp, weight: number])[] = [
  [/\/(?:api|benchmarks|engine)(?:\/|#|$)/, 0.3],
  [/\/migrating/, 0.5],
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
