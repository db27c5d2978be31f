import { randomUUID } from 'node:crypto';

export const lines = (count) => Array.from({ length: count }, (_, index) => `line ${index} of a list`);

const INCREMENTAL = `
  directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @stream(if: Boolean! = true, label: String, initialCount: Int! = 0) on FIELD
`;

const TYPES = `
  directive @cacheControl(maxAge: Int) on FIELD_DEFINITION | OBJECT
  directive @cacheTag(format: String!) repeatable on FIELD_DEFINITION | OBJECT
  directive @cost(weight: String!) on FIELD_DEFINITION | OBJECT
  directive @listSize(
    assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true
  ) on FIELD_DEFINITION
  scalar Upload

  type Query {
    hello(s: String): String
    a(x: Int): Query
    b: Query
    id: Int
    lines(count: Int!): [String]
    slow(of: Int): String
    books(first: Int = 10): [Book] @listSize(slicingArguments: ["first"])
    article(id: ID!): Article @cacheControl(maxAge: 60)
    late(id: ID!): Article @cacheControl(maxAge: 1)
  }
  type Book @cost(weight: "3") { title: String }
  type Article @cacheTag(format: "article-{$key.id}") { id: ID! title: String! body: [String] }
  type Mutation {
    size(file: Upload): Int
    unread(file: Upload): String
    rename(id: ID!, title: String!): Article
  }
  type Subscription { tick: Int shared: Int bulk: [String] }
`;

/** The schema of the server. With graphql 17 it declares `@defer` and `@stream`. */
export function createSchema({ buildSchema, version }, pubsub, Upload) {
  const isIncremental = !version.startsWith('16.');
  const schema = buildSchema(isIncremental ? INCREMENTAL + TYPES : TYPES);
  Object.assign(schema.getType('Upload'), {
    parseValue: Upload.parseValue,
    ...(Upload.coerceInputValue && { coerceInputValue: Upload.coerceInputValue }),
  });
  const titles = new Map();
  const articleOf = (id) => ({ id, title: titles.get(id) ?? 'first', body: () => lines(50) });
  const later = (value, milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds, value));
  const resolvers = {
    Query: {
      hello: () => 'world',
      a: () => ({}),
      b: () => ({}),
      id: () => 1,
      lines: (_, { count }) => lines(Math.min(count, 20_000)),
      slow: () => later('slow', 200),
      books: (_, { first }) => lines(Math.min(first, 100)).map((title) => ({ title })),
      article: (_, { id }) => articleOf(id),
      late: (_, { id }) => later(articleOf(id), 30),
    },
    Mutation: {
      async size(_, { file }) {
        let size = 0;
        for await (const chunk of file.createReadStream()) size += chunk.length;
        return size;
      },
      unread: (_, { file }) => file?.filename ?? randomUUID(),
      rename(_, { id, title }) {
        // Malicious clients choose ids, too.
        if (titles.has(id) || titles.size < 100) titles.set(id, title);
        return articleOf(id);
      },
    },
  };
  for (const [type, fields] of Object.entries(resolvers)) {
    for (const [name, resolve] of Object.entries(fields)) {
      schema.getType(type).getFields()[name].resolve = resolve;
    }
  }
  const topics = { tick: 'tick', shared: 'tick', bulk: 'bulk' };
  for (const [name, field] of Object.entries(schema.getSubscriptionType().getFields())) {
    field.subscribe = () => pubsub.subscribe(topics[name]);
    field.resolve = (value) => value;
  }
  return schema;
}
