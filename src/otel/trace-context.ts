import {
  type Context,
  context,
  isSpanContextValid,
  type Link,
  propagation,
  type Span,
  SpanKind,
  type TextMapGetter,
  trace,
} from '@opentelemetry/api';
import type { ObservedOperation } from '../execution/observed.ts';

type Carrier = Readonly<Record<string, unknown>>;

/** Reads an object that a client has sent as JSON. */
const CLIENT_VALUES: TextMapGetter<Carrier> = {
  keys: (carrier) => Object.keys(carrier),
  get(carrier, key) {
    const value = Object.hasOwn(carrier, key) ? carrier[key] : undefined;
    return typeof value === 'string' ? value : undefined;
  },
};

/** The place of an operation's span in a trace. */
export interface Parent {
  readonly context: Context;
  readonly kind: SpanKind;
  readonly links: Link[];
}

/** The contexts of the upgrade requests of open sockets that had one. */
export type UpgradeContexts = WeakMap<object, Context>;

/**
 * Returns the parent of an operation. Over HTTP it is the active span, for example of
 * `@opentelemetry/instrumentation-http`; a trace context in `extensions` is then linked. Without an active
 * span, and over sockets, it is the first of these with a trace context: `extensions` of the operation, the
 * payload of `connection_init`, the headers of the request.
 */
export function parentOf(operation: ObservedOperation, upgrades: UpgradeContexts): Parent {
  const active = context.active();
  const { origin, request, socket } = operation;
  const extensions = origin?.extensions;
  if (socket === undefined) {
    if (hasSpan(active)) {
      return {
        context: active,
        kind: SpanKind.INTERNAL,
        links: linksTo(extract(active, extensions), active),
      };
    }
    const base = request === undefined ? active : propagation.extract(active, request.headers);
    return { context: extract(base, extensions), kind: SpanKind.SERVER, links: [] };
  }
  // The span that was active when the socket was opened may be active for all its messages.
  const opened = upgrades.get(socket) ?? trace.deleteSpan(active);
  const initialised = extract(opened, origin?.connectionParams);
  return { context: extract(initialised, extensions), kind: SpanKind.SERVER, links: [] };
}

/** Returns the parent of work for a request: the active span, or the span that the headers name. */
export function parentOfRequest(headers: Readonly<Record<string, unknown>>): Context {
  const active = context.active();
  return hasSpan(active) ? active : propagation.extract(active, headers);
}

/** Returns the context of a span below `parent`; `parent` without a span. */
export const contextOf = (span: Span | undefined, parent: Context): Context =>
  span === undefined ? parent : trace.setSpan(parent, span);

/** Returns the context that the headers of an upgrade name; undefined if they name none. */
export function upgradeContext(headers: Readonly<Record<string, unknown>>): Context | undefined {
  const base = trace.deleteSpan(context.active());
  const extracted = propagation.extract(base, headers);
  return extracted === base ? undefined : extracted;
}

const extract = (base: Context, carrier: Carrier | undefined): Context =>
  carrier === undefined ? base : propagation.extract(base, carrier, CLIENT_VALUES);

function hasSpan(active: Context): boolean {
  const span = trace.getSpan(active);
  return span !== undefined && isSpanContextValid(span.spanContext());
}

/** Returns a link to the span of a context, unless it is that of `base`. */
function linksTo(extracted: Context, base: Context): Link[] {
  if (extracted === base) return [];
  const remote = trace.getSpanContext(extracted);
  return remote === undefined || remote === trace.getSpanContext(base) ? [] : [{ context: remote }];
}
