import { IncomingMessage, ServerResponse } from 'node:http';
import { inherits } from './members.ts';

/** What we know of an Express app, 4 or 5: the prototypes that it gives to each request and response. */
export interface ExpressApp {
  request: object;
  response: object;
}

/** Whether an app re-prototypes its requests as Express does. */
export function isExpress<App extends object>(app: App): app is App & ExpressApp {
  const { handle, request, response } = app as Partial<Record<string, unknown>>;
  return (
    typeof handle === 'function' &&
    inherits(request, IncomingMessage.prototype) &&
    inherits(response, ServerResponse.prototype)
  );
}
