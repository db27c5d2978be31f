import { makeExecutableSchema } from '@graphql-tools/schema';
import type DataLoader from 'dataloader';
import { Upload, type UploadedFile } from 'espalier';
import type { PubSub } from 'espalier/pubsub';
import { GraphQLError, type GraphQLSchema } from 'graphql';
import type { Person, SharedFile, Store } from './store.ts';

export interface Context {
  readonly userId: string | undefined;
  readonly people: DataLoader<string, Person | undefined>;
}

/** The events: a file was shared with a person, whose id is part of the topic. */
export type Events = { [topic: `shared:${string}`]: { fileShared: SharedFile } };

const typeDefs = `
  scalar Upload
  type Person { id: ID!, name: String! }
  type File { id: ID!, name: String!, size: Int!, url: String!, owner: Person }
  type FilePage { files: [File!]!, cursor: ID }
  type Query {
    me: Person
    "The files that you own or that were shared with you. Pass the cursor of a page for the next one."
    files(search: String, first: Int = 20, after: ID): FilePage!
  }
  type Mutation {
    addFile(file: Upload!): File!
    share(id: ID!, with: String!): File!
  }
  type Subscription { fileShared: File! }
`;

const signedIn = ({ userId }: Context): string => {
  if (userId !== undefined) return userId;
  throw new GraphQLError('Sign in first', { extensions: { code: 'UNAUTHENTICATED' } });
};

const notFound = (what: string): GraphQLError =>
  new GraphQLError(`There is no ${what}`, { extensions: { code: 'NOT_FOUND' } });

export function createSchema(store: Store, events: PubSub<Events>): GraphQLSchema {
  const resolvers = {
    Upload,
    File: {
      url: ({ id }: SharedFile) => `/files/${id}`,
      owner: ({ ownerId }: SharedFile, _args: object, { people }: Context) => people.load(ownerId),
    },
    Query: {
      me: (_root: unknown, _args: object, { userId, people }: Context) =>
        userId === undefined ? undefined : people.load(userId),
      files(
        _root: unknown,
        { search, first, after }: { search?: string; first: number; after?: string },
        context: Context,
      ) {
        const all = store.filesFor(signedIn(context), search);
        const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
        const files = all.slice(start, start + first);
        return { files, cursor: start + first < all.length ? files.at(-1)?.id : undefined };
      },
    },
    Mutation: {
      addFile(_root: unknown, { file }: { file: UploadedFile }, context: Context) {
        const userId = signedIn(context);
        if (file.size === 0)
          throw new GraphQLError('The file is empty', { extensions: { code: 'EMPTY_FILE' } });
        return store.add(userId, file);
      },
      async share(_root: unknown, { id, with: name }: { id: string; with: string }, context: Context) {
        const file = store.find(id);
        if (file === undefined || file.ownerId !== signedIn(context)) throw notFound(`file ${id}`);
        const reader = store.findPerson(name);
        if (reader === undefined) throw notFound(`person called ${name}`);
        file.readers.add(reader.id);
        await events.publish(`shared:${reader.id}`, { fileShared: file });
        return file;
      },
    },
    Subscription: {
      fileShared: {
        subscribe: (_root: unknown, _args: object, context: Context) =>
          events.subscribe(`shared:${signedIn(context)}`),
      },
    },
  };
  return makeExecutableSchema({ typeDefs, resolvers });
}
