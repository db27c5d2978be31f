// Started by express-static.test.ts: express.static with several options, in a process without Jest, whose modules take the
// errors of node:fs for errors of another realm. The header x-options selects the options by their index.
const [module, root, list] = process.argv.slice(2);
const { default: express } = await import(module);

const apps = JSON.parse(list).map((options) => {
  const app = express().disable('x-powered-by');
  app.use('/mount', express.static(root, options ?? undefined));
  app.use((_req, res) => void res.status(299).end());
  app.use((error, _req, res, _next) => {
    const { name, status, statusCode, expose, message, code } = error;
    res.status(298).json({ name, status, statusCode, expose, message, code });
  });
  return app;
});

const dispatch = express().use((req, res, next) => apps[Number(req.headers['x-options'])](req, res, next));
const server = dispatch.listen(0, '127.0.0.1', () => console.log(server.address().port));
