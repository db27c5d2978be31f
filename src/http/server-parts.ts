import type { Server } from 'node:net';

/** Closes a part of a server, such as its sockets, over a period of `drain` milliseconds. */
type ClosePart = (options: { readonly drain: number }) => Promise<void>;

/** `Symbol.for` makes it equal in the CommonJS and the ES build. */
const PARTS: unique symbol = Symbol.for('espalier.parts');

type ServerWithParts = Server & { [PARTS]?: Set<ClosePart> };

/** Adds a part that has to be closed when the server drains. */
export function addPart(server: Server, close: ClosePart): void {
  const parts = (server as ServerWithParts)[PARTS] ?? new Set<ClosePart>();
  parts.add(close);
  Object.defineProperty(server, PARTS, { value: parts, configurable: true });
}

/** Closes all parts of a server. An error of a part does not stop the others. */
export async function closeParts(server: Server, drain: number): Promise<void> {
  const parts = (server as ServerWithParts)[PARTS] ?? [];
  await Promise.allSettled(Array.from(parts, (close) => close({ drain })));
}
