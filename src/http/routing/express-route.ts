import type { ConnectRequest } from '../../../types/connect.ts';
import { pathOf } from './url-path.ts';

interface Route {
  readonly path?: unknown;
  readonly stack?: readonly { readonly handle?: unknown }[];
}

/**
 * Whether `middleware` is asked as a handler of a route (`router.post('/graphql', …)`), which strips nothing. `req.route` says
 * too little: Express leaves it there when the route has passed the request on.
 */
export function isRouted(req: ConnectRequest, middleware: unknown): boolean {
  const route = req.route as Route | undefined;
  if (route === undefined) return false;
  if (Array.isArray(route.stack) && route.stack.some(({ handle }) => handle === middleware)) return true;
  // A function around it may be what hangs there.
  const path = withoutSlash(pathOf(req.url));
  return path !== '' && [route.path].flat().some((pattern) => isExactly(pattern, path));
}

/** Whether the patterns of the route that a request is on match paths below its own, where `file` is one. */
export function takesBelow(req: ConnectRequest, file: string): boolean {
  const below = `${withoutSlash(pathOf(req.url))}/${file}`;
  return [(req.route as Route).path]
    .flat()
    .some((pattern) => (pattern instanceof RegExp ? pattern.test(below) : String(pattern).includes('*')));
}

/** Whether a pattern stands for this path and for none below it. */
function isExactly(pattern: unknown, path: string): boolean {
  if (pattern instanceof RegExp) return pattern.test(path) && !pattern.test(`${path}/below`);
  if (typeof pattern !== 'string' || pattern.includes('*')) return false;
  const segments = withoutSlash(path).split('/');
  const wanted = withoutSlash(pattern).split('/');
  return segments.length === wanted.length && wanted.every((one, i) => isSegment(one, segments[i] as string));
}

/** Routes ignore case unless told otherwise; what a parameter takes is not looked at. */
const isSegment = (pattern: string, segment: string): boolean =>
  /[:({]/.test(pattern) || pattern.toLowerCase() === segment.toLowerCase();

const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path);
