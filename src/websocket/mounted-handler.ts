import type { Server } from 'node:net';
import { coreOf } from '../core/core.ts';

/** A list of middleware, as Express 4, Express 5 and Connect store it. */
interface Stack {
  readonly stack?: readonly Layer[];
}

interface Layer {
  readonly handle?: unknown;
  /** The path of a mount of Connect, or a route of Express. */
  readonly route?: string | Stack;
  /** The part of the path that the last call of `match` has matched. Newer versions of Express return it. */
  readonly path?: string;
  match?(path: string): boolean | { readonly path?: string };
}

/** The member with the middleware is `_router` in Express 4, `router` in Express 5 and `stack` in Connect. */
interface App extends Stack {
  readonly lazyrouter?: unknown;
  readonly _router?: Stack;
  readonly router?: Stack;
}

/** Whether an app of the server has a handler of `graphqlHTTP` mounted on a path. */
export function hasHandlerAt(server: Server, path: string): boolean {
  const listeners: unknown[] = server.listeners('request');
  try {
    return listeners.some((listener) => {
      const app = listener as App;
      // In Express 4 the getter of `router` throws.
      const router = app.lazyrouter === undefined ? app.router : app._router;
      return contains(router ?? app, path);
    });
  } catch {
    // Another object with members of these names. This check must not end the process.
    return false;
  }
}

function contains({ stack }: Stack, path: string): boolean {
  if (!Array.isArray(stack)) return false;
  return stack.some((layer: Layer) => {
    const rest = restOf(layer, path);
    if (rest === undefined) return false;
    if (typeof layer.route === 'object' && contains(layer.route, '/')) return true;
    // A handler that is mounted on a prefix passes on the paths below it.
    if (coreOf(layer.handle) !== undefined) return rest === '/' || rest === path;
    return contains(layer.handle as Stack, rest);
  });
}

/**
 * Returns the path below the mount of a layer; undefined if the layer does not match. The layers of a route
 * match any path.
 */
function restOf(layer: Layer, path: string): string | undefined {
  if (typeof layer.handle !== 'function') return undefined;
  const mount = mountOf(layer, path);
  if (mount === undefined) return undefined;
  const rest = path.slice(mount.length);
  if (!path.toLowerCase().startsWith(mount.toLowerCase())) return undefined;
  if (rest === '') return '/';
  return rest.startsWith('/') || mount.endsWith('/') ? rest : undefined;
}

/**
 * Returns the beginning of the path that a layer matches, `''` for a layer of a route; undefined if it does
 * not match.
 */
function mountOf(layer: Layer, path: string): string | undefined {
  if (typeof layer.route === 'string') return layer.route;
  const matched = layer.match?.(path);
  if (matched === false) return undefined;
  return (typeof matched === 'object' ? matched.path : layer.path) ?? '';
}
