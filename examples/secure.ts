// helmet, and one session for HTTP and sockets: `npx tsx examples/secure.ts`, then /login?name=Ada, then /graphql.
import { randomBytes } from 'node:crypto';
import { attachSubscriptions, type ConnectingSubscription, createServer, graphqlHTTP } from 'espalier';
import express from 'express';
import session from 'express-session';
import { buildSchema } from 'graphql';
import helmet from 'helmet';

const secret = process.env.SESSION_SECRET ?? randomBytes(32).toString('hex');
const sessions = session({ secret, resave: false, saveUninitialized: false, cookie: { sameSite: 'lax' } });
// One function for both transports: over a socket its argument has the session of the upgrade request.
const context = (req: { session?: { name?: string } }) => ({ name: req.session?.name });
type Context = ReturnType<typeof context>;

const schema = buildSchema('type Query { me: String } type Subscription { greetings: String }');
async function* greetings(_args: object, { name }: Context) {
  yield { greetings: `Welcome ${name}` };
}
const rootValue = { me: (_args: object, { name }: Context) => name, greetings };
const graphql = graphqlHTTP(schema, { rootValue, context });

const app = express().use(helmet(), sessions).use('/graphql', graphql);
app.get('/login', ({ query, session }, res) => void res.json(Object.assign(session, { name: query.name })));
const port = Number(process.env.PORT ?? 3000);
const server = createServer(app).listen(port, () => console.log(`http://localhost:${port}/login?name=Ada`));
// The session middleware runs before the upgrade. A client without a login is closed with 4403.
const onConnect = ({ context: { name } }: ConnectingSubscription<Context>) => name !== undefined;
attachSubscriptions(server, graphql, { middleware: [sessions], onConnect });
