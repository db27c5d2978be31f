import { BadRequestException, UseGuards } from '@nestjs/common';
import { Args, Context, Field, Mutation, ObjectType, Query, Resolver, Subscription } from '@nestjs/graphql';
import { createPubSub } from 'espalier/pubsub';
import { type AppContext, SignedIn } from './accounts.js';

@ObjectType()
export class Message {
  @Field(() => String) author!: string;
  @Field(() => String) text!: string;
}

@Resolver()
export class Messages {
  // Pass a transport, such as the URL of a Redis, if there are several processes.
  readonly #events = createPubSub<{ sent: Message }>();
  readonly #latest: Message[] = [];

  @Query(() => [Message])
  messages(): readonly Message[] {
    return this.#latest;
  }

  @Mutation(() => Message)
  @UseGuards(SignedIn)
  async send(
    @Args('text', { type: () => String }) text: string,
    @Context() { caller }: AppContext,
  ): Promise<Message> {
    if (text.trim() === '') throw new BadRequestException('The text is empty');
    const message = { author: caller?.name ?? '', text };
    this.#latest.unshift(message);
    this.#latest.splice(100);
    await this.#events.publish('sent', message);
    return message;
  }

  @Subscription(() => Message, { resolve: (message: Message) => message })
  @UseGuards(SignedIn)
  sent(): AsyncIterable<Message> {
    return this.#events.subscribe('sent');
  }
}
