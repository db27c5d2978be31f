import { Module } from '@nestjs/common';
import {
  Directive,
  Field,
  GraphQLModule,
  ID,
  ObjectType,
  Query,
  ResolveReference,
  Resolver,
} from '@nestjs/graphql';
import { resolveReferences } from 'espalier';
import type { GraphQLResolveInfo } from 'graphql';
import { EspalierDriver, type EspalierOptions } from './espalier.driver.js';

@ObjectType()
@Directive('@key(fields: "id")')
export class User {
  @Field(() => ID) id!: string;
  @Field(() => String) name!: string;
}

@Resolver(() => User)
export class Users {
  // One call for all users that the router asks for at the same time.
  readonly #load = resolveReferences((references: readonly User[]) => this.find(references));

  find(references: readonly Pick<User, 'id'>[]): User[] {
    return references.map(({ id }) => ({ id, name: `User ${id}` }));
  }

  @Query(() => User, { nullable: true })
  firstUser(): User | undefined {
    return this.find([{ id: '1' }])[0];
  }

  @ResolveReference()
  resolveReference(reference: User, context: object, info: GraphQLResolveInfo) {
    return this.#load(reference, context, info);
  }
}

/** A subgraph of Apollo Federation 2. */
@Module({
  imports: [
    GraphQLModule.forRoot<EspalierOptions>({
      driver: EspalierDriver,
      autoSchemaFile: { federation: 2 },
    }),
  ],
  providers: [Users],
})
export class UsersModule {}
