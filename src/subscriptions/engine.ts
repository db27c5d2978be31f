import { makeServer, type Server } from 'graphql-ws';
import type { ConnectAnswer } from '../../types/subscriptions.ts';
import { wrongReturnValue } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { Connection } from './connection.ts';
import { connectionContext } from './context.ts';
import type { Operation } from './operation.ts';
import { start } from './start.ts';

/** graphql-ws as the state machine of both subprotocols; results go past it, in frames of our own. */
export function createEngine(): Server<Connection> {
  return makeServer<Record<string, unknown>, Connection>({
    // The sweep keeps this deadline.
    connectionInitWaitTimeout: 0,
    onConnect: (engine) => {
      const connection = engine.extra;
      connection.engine = engine;
      connection.schedule.initialised();
      return connect(connection, engine.connectionParams ?? {});
    },
    onSubscribe: ({ extra }, id) => extra.operations.find(id) as Operation,
    subscribe: (args) => {
      const operation = args as Operation;
      if (operation.live) start(operation);
      return operation;
    },
    onError: ({ extra }, id) => extra.operations.find(id)?.failure,
  });
}

/** Decides on a connection: its schema, its context, then the application's hook. */
async function connect(
  connection: Connection,
  params: Record<string, unknown>,
): Promise<boolean | Record<string, unknown>> {
  const { core, settings, contextFor } = connection.hub;
  const { websocket, request } = connection;
  connection.params = params;
  connection.schema = await core.schemaFor(request);
  connection.context = connectionContext(await contextFor(websocket), params);
  if (request === undefined || connection.closing) return false;
  const answer = await settings.onConnect?.({ ...connection.view(), request });
  connection.letGo();
  return accept(connection, answer);
}

function accept(connection: Connection, answer: ConnectAnswer): boolean | Record<string, unknown> {
  if (typeof answer !== 'object' || answer === null) return answer !== false;
  const { expiresAt, ...payload } = answer;
  if (expiresAt !== undefined) connection.schedule.expires(epochOf(expiresAt));
  return Object.keys(payload).length === 0 || payload;
}

/** Milliseconds since 1970. A number this small can only be seconds, as in a JWT's `exp`. */
function epochOf(moment: Date | number): number {
  const value = Number(moment);
  // It would never come.
  if (Number.isNaN(value))
    throw wrongReturnValue(
      SUBSCRIPTION_OPTIONS,
      'onConnect',
      { expiresAt: moment },
      'a Date or a number as expiresAt',
    );
  return value < 1e11 ? value * 1000 : value;
}
