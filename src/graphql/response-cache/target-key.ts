import type { ConnectRequest } from '../../../types/connect.ts';
import { ID_PARAMETERS, OPERATION_PARAMETERS } from '../../core/documents/reference.ts';
import { cacheByHeader, cacheByText } from '../../http/negotiation.ts';
import { hasParameter, pathOf, publicHostOf } from '../../http/routing.ts';
import type { Exchange } from '../exchange.ts';

const PORT = /:\d+$/;

/** Request targets whose parameters are kept, as for those of operations. */
const TARGETS = { entries: 500, length: 2048 };

/**
 * Creates the function that returns the part of keys that separates requests by host, path and further parameters of
 * the URL. They also separate the entries of HTTP caches (RFC 9111 §2): an application may take the tenant from them.
 * Processes of one application may have different ports. Neither host nor path contains the line break: a `Host` with
 * a slash must not look like another host with a longer path.
 */
export function createTargetKey({
  documents,
}: {
  readonly documents: unknown;
}): (req: ConnectRequest) => string {
  const own = new Set<string>([...OPERATION_PARAMETERS, ...(documents === undefined ? [] : ID_PARAMETERS)]);
  const isFurther = (name: string): boolean => !own.has(name);
  const furtherParameters = cacheByText(
    (url) =>
      url
        .slice(url.indexOf('?') + 1)
        .split('&')
        .filter((pair) => hasParameter(`?${pair}`, isFurther))
        .join('&'),
    TARGETS,
  );
  return (req) => {
    const host = publicHostOf(req)?.replace(PORT, '') ?? '';
    const url = req.originalUrl ?? req.url ?? '';
    const target = `${host}\n${pathOf(url)}`;
    if (!url.includes('?')) return target;
    if (hasBody(req)) return withParameters(target, url.slice(url.indexOf('?') + 1));
    // Most requests have none. Their URLs often differ, so this is not kept.
    return hasParameter(url, isFurther) ? withParameters(target, furtherParameters(url)) : target;
  };
}

const withParameters = (target: string, parameters: string): string =>
  parameters === '' ? target : `${target}?${parameters}`;

/** Whether the parameters of the operation are in the body, and none in the URL. */
const hasBody = ({ method }: ConnectRequest): boolean => method === 'POST' || method === 'QUERY';

/** The names in a header `Vary`, without those that the cache or a compressor considers. */
const fieldNames = cacheByHeader((vary) =>
  vary
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'accept' && name !== 'accept-encoding'),
);

/**
 * The part of keys that separates requests by the header `Vary` that earlier middleware has set, for example of
 * translations. Undefined for `*`: each response is another one (RFC 9110 §12.5.5).
 */
export function declaredVariants({ req, res }: Pick<Exchange, 'req' | 'res'>): string | undefined {
  const vary = res.getHeader('vary');
  if (vary === undefined) return '';
  const names = fieldNames(String(vary));
  if (names.length === 0) return '';
  if (names.includes('*')) return undefined;
  return `\n${JSON.stringify(names.map((name) => [name, req.headers[name]]))}`;
}
