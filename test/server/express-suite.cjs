// Puts createServer behind every server that Express's own tests make. In a checkout of expressjs/express, 4 or 5, after
// `npm install` there and `npm run build` here:
//   npx mocha --require …/test/server/express-suite.cjs --require test/support/env --check-leaks test/ test/acceptance/
const http = require('node:http');
const { createServer } = require('../../dist/server.cjs');

const original = http.createServer;
let made = 0;
let making = false;

// `app.listen` and supertest both end here; createServer itself does too.
http.createServer = (...given) => {
  if (making) return original(...given);
  making = true;
  try {
    made++;
    return createServer(...given.reverse());
  } finally {
    making = false;
  }
};

process.on('exit', () => process.stdout.write(`${made} servers were made by createServer\n`));
