import { isObject, optionError, show } from '../options/settle.ts';
import { NODE_CLASSES } from './classes.ts';
import { NODE_HTTP2_CLASSES } from './http2.ts';
import { inherits } from './members.ts';

/** Options that name a class, and Node's class that it must extend. */
const BASES: Readonly<Record<string, { prototype: object; name: string }>> = {
  IncomingMessage: NODE_CLASSES.IncomingMessage,
  ServerResponse: NODE_CLASSES.ServerResponse,
  Http1IncomingMessage: NODE_CLASSES.IncomingMessage,
  Http1ServerResponse: NODE_CLASSES.ServerResponse,
  ...NODE_HTTP2_CLASSES,
};

/** Refuses what Node would only trip over at the first request. All other options are Node's to judge. */
export function checkArguments(app: unknown, options: unknown): void {
  if (typeof app !== 'function') refuse(`the app must be a function (req, res), not ${show(app)}`);
  if (!isObject(options)) refuse(`the options must be an object, not ${show(options)}`);
  for (const [name, value] of Object.entries(options as object)) {
    if (value === undefined) continue;
    if (name === 'http2' && typeof value !== 'boolean')
      refuse(`option "http2" is ${show(value)}; accepted: a boolean`);
    const node = Object.hasOwn(BASES, name) ? BASES[name] : undefined;
    if (node !== undefined && !extendsClass(value, node)) {
      refuse(`option "${name}" is ${show(value)}; accepted: a class that extends Node's ${node.name}`);
    }
  }
}

function extendsClass(value: unknown, node: { prototype: object }): boolean {
  return value === node || (typeof value === 'function' && inherits(value.prototype, node.prototype));
}

function refuse(message: string): never {
  throw optionError(`createServer: ${message}`, 'server');
}
