import { cacheByHeader } from '../http/negotiation/text-cache.ts';

/** A streaming media type of an `Accept` header, with the protocol that its parameters select. */
export interface StreamType {
  readonly format: 'event-stream' | 'json-lines' | 'multipart';
  /** The parameters in lower case, without quotes. */
  readonly parameters: ReadonlyMap<string, string>;
}

const FORMATS: Readonly<Record<string, StreamType['format']>> = {
  'text/event-stream': 'event-stream',
  'application/jsonl': 'json-lines',
  'multipart/mixed': 'multipart',
};

/** The maximum number of media ranges in an Accept header. A longer header counts as absent. */
const MAX_RANGES = 32;
/** A media range ends at a comma outside of quotes (RFC 9110 §5.6.1). */
const RANGE = /(?:"(?:[^"\\]|\\.)*"|[^,"])+/g;
const PARAMETER = /;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/g;

/**
 * Returns the streaming media types that an `Accept` header names, by weight, then in the order of the
 * header. Wildcards select none of them: a client that does not name one cannot read it.
 */
export const streamTypesOf: (accept: string) => readonly StreamType[] = cacheByHeader((accept) => {
  const ranges = accept.match(RANGE) ?? [];
  if (ranges.length > MAX_RANGES) return [];
  return ranges
    .flatMap((range) => parseRange(range))
    .sort((a, b) => b.quality - a.quality)
    .map(({ format, parameters }) => ({ format, parameters }));
});

function parseRange(range: string): (StreamType & { readonly quality: number })[] {
  const [type = ''] = range.split(';', 1);
  const name = type.trim().toLowerCase();
  const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  if (format === undefined) return [];
  const parameters = new Map<string, string>();
  for (const [, parameter = '', quoted, token = ''] of range.matchAll(PARAMETER)) {
    parameters.set(parameter.toLowerCase(), (quoted ?? token).toLowerCase());
  }
  const quality = Number(parameters.get('q') ?? 1);
  return quality > 0 && quality <= 1 ? [{ format, parameters, quality }] : [];
}
