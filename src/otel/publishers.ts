import type { SpanContext } from '@opentelemetry/api';

/** The spans that published events of this process, by payload. Only payloads that are objects have one. */
const publishers = new WeakMap<object, SpanContext>();

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Remembers the span that publishes a payload. */
export function rememberPublisher(payload: unknown, span: SpanContext): void {
  if (isObject(payload)) publishers.set(payload, span);
}

/** Returns the span that has published an event. */
export const publisherOf = (event: unknown): SpanContext | undefined =>
  isObject(event) ? publishers.get(event) : undefined;
