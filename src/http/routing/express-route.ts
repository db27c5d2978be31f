import type { ConnectRequest } from '../../../types/connect.ts';
import { pathOf } from './url-path.ts';

interface Route {
  readonly path?: unknown;
  readonly stack?: readonly { readonly handle?: unknown }[];
}

/**
 * Whether `middleware` runs as a handler of a route (`router.post('/graphql', …)`), which strips no prefix. Testing `req.route`
 * is not enough: Express leaves it set after the route has called `next`.
 */
export function isRouted(req: ConnectRequest, middleware: unknown): boolean {
  const route = req.route as Route | undefined;
  if (route === undefined) return false;
  if (Array.isArray(route.stack) && route.stack.some(({ handle }) => handle === middleware)) return true;
  // The route may have a function that wraps the middleware.
  const path = withoutSlash(pathOf(req.url));
  return path !== '' && [route.path].flat().some((pattern) => isExactly(pattern, path));
}

/** Whether the route of a request also matches a file below the path of the request. */
export function matchesBelow(req: ConnectRequest, file: string): boolean {
  const below = `${withoutSlash(pathOf(req.url))}/${file}`;
  return [(req.route as Route).path]
    .flat()
    .some((pattern) => (pattern instanceof RegExp ? pattern.test(below) : String(pattern).includes('*')));
}

/** Whether a pattern matches this path and no path below it. */
function isExactly(pattern: unknown, path: string): boolean {
  if (pattern instanceof RegExp) return pattern.test(path) && !pattern.test(`${path}/below`);
  if (typeof pattern !== 'string' || pattern.includes('*')) return false;
  const segments = withoutSlash(path).split('/');
  const wanted = withoutSlash(pattern).split('/');
  return segments.length === wanted.length && wanted.every((one, i) => isSegment(one, segments[i] as string));
}

/** Compares case-insensitively, as routes do by default; a segment with a parameter matches any segment. */
const isSegment = (pattern: string, segment: string): boolean =>
  /[:({]/.test(pattern) || pattern.toLowerCase() === segment.toLowerCase();

const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path);
