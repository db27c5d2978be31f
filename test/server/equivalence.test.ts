/** @tags node-lines */
import * as http from 'node:http';
import { createServer } from '../../middleware/server.ts';
import { type Exchange, type ExchangeResponse, requestHttp1, requestHttp2, serving } from '../exchange.ts';
import { eachExpress } from '../express.ts';
import type { App, Behaviour, ExpressModule } from './behaviours/behaviour.ts';
import { errors } from './behaviours/errors.ts';
import { forget, prototypes } from './behaviours/prototypes.ts';
import { requests } from './behaviours/requests.ts';
import { responses } from './behaviours/responses.ts';

const behaviours = [...prototypes, ...requests, ...responses, ...errors];

// Error pages show where an error came from, which is not the same place in http and http2.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

eachExpress((express) => {
  afterEach(() => forget(express));

  describe.each(behaviours)('an app that $title', (behaviour) => {
    it('an Express app behaves equally with createServer', async () => {
      const plain = await observe(express, behaviour, (app) => http.createServer(app), requestHttp1);
      const ours = await observe(express, behaviour, (app) => createServer(app), requestHttp1);
      expect(ours).toEqual(plain);
      expect(plain).toHaveLength(behaviour.requestsToSend.length);
    });

    it('an Express app behaves equally over HTTP/2', async () => {
      const plain = await observe(express, behaviour, (app) => http.createServer(app), requestHttp1);
      const ours = await observe(
        express,
        behaviour,
        (app) => createServer(app, { http2: true }),
        requestHttp2,
      );
      expect(ours).toEqual(plain);
    });
  });
});

/** The responses of a behaviour in a new app. */
async function observe(
  express: ExpressModule,
  { define, requestsToSend }: Behaviour,
  serve: (app: App) => Parameters<typeof serving>[0],
  sendRequest: Exchange,
): Promise<ExchangeResponse[]> {
  const app = express();
  app.set('env', 'test');
  const later = define(app, express);
  const server = serve(app);
  if (typeof later === 'function' && later !== app) later();
  return serving(server, async (port) => {
    const results: ExchangeResponse[] = [];
    for (const one of requestsToSend)
      results.push(await sendRequest(port, typeof one === 'string' ? { path: one } : one));
    return results;
  });
}
