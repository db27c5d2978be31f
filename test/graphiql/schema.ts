import { EventEmitter, on } from 'node:events';
import {
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { Upload } from '../../middleware/graphql.ts';

/** The schema of the tested pages, and the source of its subscription. */
export function createSchema() {
  const tap = new EventEmitter();
  const Book = new GraphQLObjectType({
    name: 'Book',
    description: 'A *printed* book.',
    fields: {
      name: { type: GraphQLString, deprecationReason: 'Use title' },
      title: { type: new GraphQLNonNull(GraphQLString) },
      pages: { type: GraphQLInt },
    },
  });
  const query = new GraphQLObjectType({
    name: 'Query',
    fields: {
      greet: { type: GraphQLString, deprecationReason: 'Use hello', resolve: () => 'Greetings' },
      hello: {
        type: GraphQLString,
        description: 'Says **hello**.',
        args: { name: { type: GraphQLString, defaultValue: 'world' } },
        resolve: (_root, { name }) => `Hello ${name}`,
      },
      authorization: {
        type: GraphQLString,
        resolve: (_root, _args, { headers }) => headers.authorization,
      },
      books: {
        type: new GraphQLList(Book),
        resolve: () => [
          { title: 'Walden', pages: 352 },
          { title: 'Silent Spring', pages: 400 },
        ],
      },
    },
  });
  const mutation = new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      rename: {
        type: GraphQLString,
        args: { to: { type: GraphQLString } },
        resolve: (_root, { to }) => `Renamed to ${to}`,
      },
      send: {
        type: GraphQLString,
        args: { file: { type: Upload }, files: { type: new GraphQLList(Upload) } },
        resolve: async (_root, { file, files = [] }: { file?: Upload; files?: Upload[] }) => {
          const all = [file, ...files].filter((item) => item !== undefined);
          return (await Promise.all(all.map(async (item) => `${item.filename}: ${await item.text()}`))).join(
            ', ',
          );
        },
      },
    },
  });
  const subscription = new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      count: {
        type: GraphQLInt,
        async *subscribe() {
          const counts = on(tap, 'count');
          tap.emit('subscribed');
          for await (const [count] of counts) yield { count };
        },
      },
      token: {
        type: GraphQLString,
        async *subscribe(_root, _args, { connectionParams }) {
          yield { token: connectionParams.Authorization ?? 'no token' };
        },
      },
    },
  });
  return {
    schema: new GraphQLSchema({ description: 'A small library.', query, mutation, subscription }),
    tap,
  };
}
