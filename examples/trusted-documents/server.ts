// An API that executes only the operations of its page: `npx tsx examples/trusted-documents/server.ts`. See README.md.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { graphqlHTTP, staticFiles } from 'espalier';
import express from 'express';
import { buildSchema } from 'graphql';

const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const books = [
  {
    id: '1',
    title: 'Around the World in Eighty Days',
    author: 'Jules Verne',
    pages: 300,
    likes: 0,
    genre: 'ADVENTURE',
  },
  {
    id: '2',
    title: 'On the Origin of Species',
    author: 'Charles Darwin',
    pages: 502,
    likes: 0,
    genre: 'SCIENCE',
  },
  {
    id: '3',
    title: 'The Chemical History of a Candle',
    author: 'Michael Faraday',
    pages: 223,
    likes: 0,
    genre: 'SCIENCE',
  },
];
const rootValue = {
  books: ({ genre }: { genre?: string }) =>
    books.filter((book) => genre === undefined || book.genre === genre),
  book: ({ id }: { id: string }) => books.find((book) => book.id === id),
  like: ({ id }: { id: string }) => {
    const book = books.find((each) => each.id === id);
    if (book !== undefined) book.likes += 1;
    return book;
  },
};

/** A real application checks a session here. */
const isStaff = ({ headers }: { headers: { cookie?: string | undefined } }): boolean =>
  /(?:^|; )staff=1(?:;|$)/.test(headers.cookie ?? '');

const app = express();
app.use(
  '/graphql',
  graphqlHTTP(buildSchema(readFileSync(path('schema.graphql'), 'utf8')), {
    rootValue,
    getMutations: false,
    graphiql: (req) => isStaff(req),
    introspection: (source) => isStaff(source),
    documents: { from: path('persisted-documents.json'), only: (source) => !isStaff(source) },
  }),
);
// Signs in as staff, to show GraphiQL.
app.get('/staff', (_req, res) => {
  res.cookie('staff', '1', { sameSite: 'lax', httpOnly: true }).redirect('/graphql');
});
app.use(staticFiles(path('public'), true));

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Books on http://localhost:${port}`);
});
