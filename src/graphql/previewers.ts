import type { IncomingHttpHeaders } from 'node:http';
import { createNegotiator } from '../http/negotiation/accept.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from './exchange.ts';

/** Programs that follow links in messages and pages: previewers of chats and mail, crawlers of search engines. */
const LINK_FOLLOWER =
  /bot\b|bot[/-]|crawl|spider|preview|facebookexternalhit|facebookcatalog|meta-externalagent|whatsapp|slack|twitter|discord|telegram|linkedin|skype|pinterest|embedly|vkshare|quora link|iframely|mastodon|archive\.org/i;

const negotiate = createNegotiator([
  JSON_TYPE,
  GRAPHQL_TYPE,
  'text/html',
  'application/xhtml+xml',
  'image/png',
  'image/webp',
  'image/avif',
]);

/** Returns why a GET may come from a program that follows links; undefined for any other client. */
export function linkFollowerSignal({ accept, 'user-agent': agent }: IncomingHttpHeaders): string | undefined {
  if (agent !== undefined && LINK_FOLLOWER.test(agent))
    return 'its User-Agent is that of a link previewer or crawler';
  const { type } = negotiate(accept);
  if (type === undefined || type === JSON_TYPE || type === GRAPHQL_TYPE) return undefined;
  return 'its Accept header prefers a page or an image';
}
