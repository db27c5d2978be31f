import { subscribe } from 'node:diagnostics_channel';

/** The tracing channels of graphql 17 that the compiled engine publishes on. */
const CHANNELS = ['execute', 'execute:variableCoercion', 'execute:rootSelectionSet'];
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];

let recorded: string[] = [];

/** Records all events from now on. graphql 16 publishes none. */
export function recordEvents(): void {
  for (const name of CHANNELS) {
    for (const event of EVENTS) {
      subscribe(`tracing:graphql:${name}:${event}`, (context) => {
        recorded.push(`${name} ${event} ${describe(context as object)}`);
      });
    }
  }
}

/** Returns the events since the last call. */
export function takeEvents(): readonly string[] {
  const events = recorded;
  recorded = [];
  return events;
}

/** The properties of a context, in their order. */
function describe(context: object): string {
  return Object.entries(context)
    .map(([name, value]) => `${name}=${describeValue(name, value)}`)
    .join(' ');
}

/** The values of resolvers may be of any kind, so only results, arguments and variables are compared in depth. */
function describeValue(name: string, value: unknown): string {
  const isResponse = typeof value === 'object' && value !== null && ('data' in value || 'errors' in value);
  if (name === 'args' || name === 'rawVariableValues' || (name === 'result' && isResponse)) {
    return json(value);
  }
  return value instanceof Error ? String(value) : Object.prototype.toString.call(value) + typeof value;
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    return String(error);
  }
}
