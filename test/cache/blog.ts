import express from 'express';
import type { GraphQLSchema } from 'graphql';
import { type GraphQLHandler, type GraphQLOptions, graphqlHTTP } from '../../middleware/index.ts';
import { type Resolvers, schemaOf } from './service.ts';

/** The directive as docs/caching.md has it. */
export const TAG_DIRECTIVE = `
  directive @cacheTag(format: String!) repeatable on FIELD_DEFINITION | OBJECT | INTERFACE
`;

const TYPES = `
  ${TAG_DIRECTIVE}
  type Query {
    post(id: ID!): Post @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.id}")
    posts(author: ID, ids: [ID!]): [Post!]! @cacheControl(maxAge: 60) @cacheTag(format: "posts")
    me: User @cacheControl(maxAge: 60, scope: PRIVATE)
    brief: Int @cacheControl(maxAge: 1)
    greeting: String @cacheControl(maxAge: 60, vary: ["Accept-Language"])
    unstable: Int @cacheControl(maxAge: 1)
    uncached: Int
    slow(id: ID!): Post @cacheControl(maxAge: 60)
    search(filter: Filter): [Post!]! @cacheControl(maxAge: 60)
  }
  input Filter { text: String first: Int tags: [String!] }
  type Mutation {
    editPost(id: ID!, title: String!): Post
    addPost(author: ID!, title: String!): Post @cacheTag(format: "posts") @cacheTag(format: "author-{$args.author}")
  }
  type Subscription { postEdited: Post }
  type Post @cacheTag(format: "post-{$key.id}") { id: ID! title: String! author: User @cacheControl(inheritMaxAge: true) }
  type User @cacheTag(format: "user-{$key.id}") { id: ID! name: String! }
`;

interface Post {
  readonly id: string;
  title: string;
  readonly authorId: string;
}

/** A blog that counts the calls of its root resolvers. */
export interface Blog {
  readonly schema: GraphQLSchema;
  readonly posts: Map<string, Post>;
  readonly calls: Record<string, number>;
  /** Resolvers that replace those of the blog. */
  readonly resolvers: Resolvers;
}

export function createBlog(resolvers: Resolvers = {}): Blog {
  const posts = new Map(
    ['1', '2', '3'].map((id) => [id, { id, title: `title ${id}`, authorId: id === '3' ? 'b' : 'a' }]),
  );
  const calls: Record<string, number> = {};
  const count = (name: string): number => {
    calls[name] = (calls[name] ?? 0) + 1;
    return calls[name];
  };
  const own: Resolvers = {
    Query: {
      post(_: unknown, { id }: { id: string }) {
        count('post');
        return posts.get(id);
      },
      posts(_: unknown, { author }: { author?: string }) {
        count('posts');
        return [...posts.values()].filter(({ authorId }) => author === undefined || authorId === author);
      },
      me(_: unknown, __: unknown, context?: { user?: string }) {
        count('me');
        return { id: context?.user ?? 'none', name: `name of ${context?.user}` };
      },
      brief: () => count('brief'),
      greeting: (_: unknown, __: unknown, context?: { language?: string }) => {
        count('greeting');
        return `hello in ${context?.language}`;
      },
      uncached: () => count('uncached'),
      search: () => {
        count('search');
        return [];
      },
    },
    Mutation: {
      editPost(_: unknown, { id, title }: { id: string; title: string }) {
        const post = posts.get(id);
        if (post !== undefined) post.title = title;
        return post;
      },
      addPost(_: unknown, { author, title }: { author: string; title: string }) {
        const post = { id: `${posts.size + 1}`, title, authorId: author };
        posts.set(post.id, post);
        return post;
      },
    },
    Post: {
      author: ({ authorId }: Post) => ({ id: authorId, name: `name of ${authorId}` }),
    },
  };
  for (const [type, fields] of Object.entries(resolvers)) own[type] = { ...own[type], ...fields };
  return { schema: schemaOf(TYPES, own), posts, calls, resolvers: own };
}

/** A blog at /graphql with the option `cache`. */
export function serveBlog(
  blog: Blog,
  options: GraphQLOptions = {},
): { readonly app: express.Express; readonly handler: GraphQLHandler } {
  const handler = graphqlHTTP(blog.schema, { httpCache: true, responseCache: true, ...options });
  return { app: express().use('/graphql', handler), handler };
}
