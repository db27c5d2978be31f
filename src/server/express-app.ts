import { IncomingMessage, ServerResponse } from 'node:http';
import { inherits } from './descriptors.ts';

/** The members of an Express 4 or 5 app that are used here: the prototypes of its requests and responses. */
export interface ExpressApp {
  request: object;
  response: object;
}

/** Whether an app sets the prototypes of its requests and responses, as Express does. */
export function isExpressApp<App extends object>(app: App): app is App & ExpressApp {
  const { handle, request, response } = app as Partial<Record<string, unknown>>;
  return (
    typeof handle === 'function' &&
    inherits(request, IncomingMessage.prototype) &&
    inherits(response, ServerResponse.prototype)
  );
}
